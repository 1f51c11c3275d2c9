"""The text of a systemd user unit and of a launchd property list for one home's keeper. Pure."""

from __future__ import annotations

from holdfast import own_python
from holdfast.errors import UsageError
from holdfast.model.record import Record
from holdfast.store.digest import sha256

SYSTEMD, LAUNCHD = "systemd", "launchd"

_UNIT = """\
# Written by 'holdfast service install'; 'holdfast service remove' removes it.
[Unit]
Description=holdfast keeper of {described}
StartLimitIntervalSec=600
StartLimitBurst=20

[Service]
Type=exec
ExecStart={command}
{environment}
WorkingDirectory=/
# Runners, recorders and agents are in this unit's cgroup; stop only the keeper.
KillMode=process
# The runner handles an agent that is OOM-killed.
OOMPolicy=continue
TasksMax=infinity
Restart=on-failure
RestartSec=1
# 75: another keeper already runs in this home.
RestartPreventExitStatus=75

[Install]
WantedBy=default.target
"""


class KeeperUnit(Record):
    """The keeper that a unit starts."""

    home: str
    #: Whether the home is the default one, used without HOLDFAST_HOME.
    is_default: bool
    python: str
    #: Log file for launchd; systemd has its journal.
    log: str
    #: XDG_CONFIG_HOME, if it is set: the records of the home are there.
    config: str = ""

    @property
    def variables(self) -> dict[str, str]:
        """The environment of the keeper."""
        config = {"XDG_CONFIG_HOME": self.config} if self.config else {}
        return {"HOLDFAST_HOME": self.home, **config, "HOLDFAST_ROLE": "keeper"}

    @property
    def suffix(self) -> str:
        """Distinguishes the units of several homes."""
        return "" if self.is_default else "-" + sha256(self.home.encode("utf-8", "surrogateescape"))[:8]

    @property
    def unit_name(self) -> str:
        """`holdfast.service`, or `holdfast-<hash>.service`."""
        return f"holdfast{self.suffix}.service"

    @property
    def label(self) -> str:
        """The launchd label."""
        return f"holdfast.keeper{self.suffix}"

    @property
    def argv(self) -> list[str]:
        """The command."""
        return own_python.command("holdfast.keeper", python=self.python)


def systemd(keeper: KeeperUnit) -> str:
    """The text of the unit."""
    return _UNIT.format(
        # Free text, and a backslash at its end would continue the line.
        described=_without_controls(keeper.home).replace("\\", "\\\\").replace("%", "%%") + ".",
        command=" ".join(_quoted(word) for word in keeper.argv),
        environment="\n".join(
            f"Environment={_quoted(f'{name}={value}', in_command=False)}"
            for name, value in keeper.variables.items()
        ),
    )


def launchd(keeper: KeeperUnit) -> str:
    """The text of the property list."""
    import plistlib

    for path in (keeper.home, keeper.config):
        if any(_is_control(char) for char in path):
            raise UsageError(
                f"the path {path!r} has control characters, which a property list cannot have",
                hint="rename the directory",
            )
    properties = {
        "Label": keeper.label,
        "ProgramArguments": keeper.argv,
        "EnvironmentVariables": keeper.variables,
        "WorkingDirectory": "/",
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        # Otherwise launchd kills everything the keeper started when the keeper exits.
        "AbandonProcessGroup": True,
        "ProcessType": "Background",
        "StandardErrorPath": keeper.log,
    }
    return plistlib.dumps(properties, sort_keys=False).decode("utf-8")


def _is_control(char: str) -> bool:
    return char < " " or char == "\x7f"


def _without_controls(text: str) -> str:
    return "".join(" " if _is_control(char) else char for char in text)


def _quoted(word: str, *, in_command: bool = True) -> str:
    """Quoted for systemd.syntax(7): % and, in a command line, $ are escaped by doubling."""
    text = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    text = "".join(f"\\x{ord(char):02x}" if _is_control(char) else char for char in text)
    if in_command:
        text = text.replace("$", "$$")
    is_plain = text == word and all(char.isalnum() or char in "/._-=+:@,~" for char in word)
    return text if is_plain else f'"{text}"'
