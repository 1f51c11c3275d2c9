"""holdfast doctor: is everything here that a task needs?"""

from __future__ import annotations

from holdfast import paths
from holdfast.errors import HoldfastError
from holdfast.store.layout import Home
from holdfast.views.cli.parse.command_spec import JSON, Command
from holdfast.views.cli.show import amounts, fit_text, out, terminal
from holdfast.views.doctor import agents, machine, place
from holdfast.views.doctor.finding import FAIL, WARN, Finding, fail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

COMMAND = Command(
    name="doctor",
    summary="Check the machine and this home, and say what to do about what is wrong.",
    description="Changes nothing. Exits 0 when nothing failed (warnings do not count), 1 otherwise.",
    examples=("holdfast doctor", "holdfast doctor --json"),
    options=(JSON,),
)

#: Columns of the level and the name of a check.
_INDENT = 18
_COLOURS = {"ok": "32", "warn": "33", "fail": "31"}


def run(values: dict[str, Any]) -> int:
    """Ask everything, then print."""
    home = Home(paths.chosen_home())
    findings = look(home)
    failed = [found for found in findings if found.level == FAIL]
    if values["json"]:
        out.data(
            {
                "schema": "holdfast.doctor/1",
                "home": home.path,
                "is_well": not failed,
                "findings": [found.to_json() for found in findings],
            }
        )
        return 1 if failed else 0
    for found in findings:
        _print(found)
    warned = sum(found.level == WARN for found in findings)
    print(
        f"\n{amounts.plural(len(findings), 'check')}, {len(failed)} failed, {amounts.plural(warned, 'warning')}"
    )
    return 1 if failed else 0


def look(home: Home) -> list[Finding]:
    """Every check, in the order in which a person would look."""
    checks: tuple[tuple[str, Callable[[], Finding]], ...] = (
        ("python", machine.python),
        ("kernel", machine.kernel),
        ("clock", machine.system_clock),
        ("inotify", machine.inotify),
        ("tmux", machine.tmux_program),
        ("git", machine.git),
        ("agents", agents.summary),
        *((name, lambda name=name: agents.one(name)) for name in agents.installed()),
        ("home", lambda: place.directory(home)),
        ("disk", lambda: place.disk(home)),
        ("filesystem", lambda: place.filesystem(home)),
        ("config", place.config),
        ("keeper", lambda: place.keeper(home)),
        ("service", lambda: place.service(home)),
        ("staging", lambda: place.staging(home)),
        ("tasks", lambda: place.packets(home)),
    )
    return [_ask(name, check) for name, check in checks]


def _ask(name: str, check: Callable[[], Finding]) -> Finding:
    """A question that cannot even be asked is an answer too."""
    try:
        return check()
    except (HoldfastError, OSError) as error:
        return fail(
            name, f"cannot tell: {error}", getattr(error, "hint", "") or "see what is said of the home"
        )


def _print(found: Finding) -> None:
    name, rest = f"{found.level:4}  {found.check:10}  ", " " * _INDENT
    said, *others = fit_text.wrap(fit_text.as_displayed(found.said), terminal.width(), first=name, rest=rest)
    colour = _COLOURS[found.level] if terminal.has_colour() else None
    print(said if colour is None else said.replace(found.level, f"\x1b[{colour}m{found.level}\x1b[0m", 1))
    for line in others:
        print(line)
    if found.fix:
        out.say(f"fix: {found.fix}", first=rest, rest=rest)
