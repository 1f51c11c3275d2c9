"""The texts: a systemd user unit and a launchd property list for one home's keeper. Pure."""

from __future__ import annotations

from holdfast.model.record import Record
from holdfast.store.digest import sha256

SYSTEMD, LAUNCHD = "systemd", "launchd"

_UNIT = """\
# Written by 'holdfast service install'; 'holdfast service remove' takes it away.
[Unit]
Description=holdfast keeper of {described}
StartLimitIntervalSec=600
StartLimitBurst=20

[Service]
Type=exec
ExecStart={command}
Environment={home}
Environment=HOLDFAST_ROLE=keeper
WorkingDirectory=/
# Runners, recorders and agents live in this unit's group: only the keeper itself is ever stopped.
KillMode=process
# An agent that the kernel kills for its memory is the runner's business.
OOMPolicy=continue
TasksMax=infinity
Restart=on-failure
RestartSec=1
# Another keeper guards the home already: nothing to do.
RestartPreventExitStatus=75

[Install]
WantedBy=default.target
"""


class Keeper(Record):
    """What a unit has to start."""

    #: The home, and whether it is where it is without HOLDFAST_HOME.
    home: str
    is_default: bool
    python: str
    #: For the log of launchd; systemd has a journal of its own.
    log: str

    @property
    def mark(self) -> str:
        """Tells the units of several homes apart."""
        return "" if self.is_default else "-" + sha256(self.home.encode("utf-8", "surrogateescape"))[:8]

    @property
    def unit_name(self) -> str:
        """`holdfast.service`, or `holdfast-<hash>.service`."""
        return f"holdfast{self.mark}.service"

    @property
    def label(self) -> str:
        """The name that launchd knows it by."""
        return f"holdfast.keeper{self.mark}"

    @property
    def argv(self) -> list[str]:
        """-P: no module of the current directory is taken for one of ours."""
        return [self.python, "-P", "-m", "holdfast.keeper"]


def systemd(keeper: Keeper) -> str:
    """The text of the unit."""
    return _UNIT.format(
        described=keeper.home.replace("%", "%%").replace("\n", " "),
        command=" ".join(_quoted(word) for word in keeper.argv),
        home=_quoted(f"HOLDFAST_HOME={keeper.home}", in_command=False),
    )


def launchd(keeper: Keeper) -> str:
    """The text of the property list."""
    import plistlib

    wanted = {
        "Label": keeper.label,
        "ProgramArguments": keeper.argv,
        "EnvironmentVariables": {"HOLDFAST_HOME": keeper.home, "HOLDFAST_ROLE": "keeper"},
        "WorkingDirectory": "/",
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        # Otherwise launchd kills all that the keeper started when the keeper ends.
        "AbandonProcessGroup": True,
        "ProcessType": "Background",
        "StandardErrorPath": keeper.log,
    }
    return plistlib.dumps(wanted, sort_keys=False).decode("utf-8")


def _quoted(word: str, *, in_command: bool = True) -> str:
    """As systemd.syntax(7) wants it: % and (in a command line) $ stand for themselves when doubled."""
    text = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("\n", "\\n")
    if in_command:
        text = text.replace("$", "$$")
    is_plain = text == word and all(char.isalnum() or char in "/._-=+:@,~" for char in word)
    return text if is_plain else f'"{text}"'
