"""holdfast doctor: check this machine and this home."""

from __future__ import annotations

from holdfast import paths
from holdfast.errors import HoldfastError
from holdfast.store.layout import Home
from holdfast.views.cli.parse.command_spec import JSON, Command
from holdfast.views.cli.show import out, terminal
from holdfast.views.doctor import agents, machine, supervision
from holdfast.views.doctor import home as home_checks
from holdfast.views.doctor.finding import FAIL, WARN, Finding, fail
from holdfast.views.text import amounts, fit_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

COMMAND = Command(
    name="doctor",
    summary="Check this machine and this home.",
    description="Prints a fix for every problem; changes nothing. Exits 1 if a check failed, 0 otherwise "
    "(also with warnings).",
    examples=("holdfast doctor", "holdfast doctor --json"),
    options=(JSON,),
)

#: Width of level and name of a check.
_INDENT = 18
_COLOURS = {"ok": "32", "warn": "33", "fail": "31"}


def run(values: dict[str, Any]) -> int:
    """Run all checks, then print the findings."""
    home = Home(paths.chosen_home())
    findings = _check_all(home)
    failed = [finding for finding in findings if finding.level == FAIL]
    if values["json"]:
        out.data(
            {
                "schema": "holdfast.doctor/1",
                "home": home.path,
                "is_well": not failed,
                "findings": [finding.to_json() for finding in findings],
            }
        )
        return 1 if failed else 0
    for finding in findings:
        _print(finding)
    warned = sum(finding.level == WARN for finding in findings)
    checks, warnings = amounts.plural(len(findings), "check"), amounts.plural(warned, "warning")
    print(f"\n{checks}, {len(failed)} failed, {warnings}")
    return 1 if failed else 0


def _check_all(home: Home) -> list[Finding]:
    """Run every check: the machine first, then the home."""
    checks: tuple[tuple[str, Callable[[], Finding]], ...] = (
        ("python", machine.python),
        ("kernel", machine.kernel),
        ("clock", machine.system_clock),
        ("inotify", machine.inotify),
        ("sleep", machine.sleep),
        ("tmux", machine.tmux_program),
        ("git", machine.git),
        ("sandbox", machine.sandbox),
        ("agents", agents.summary),
        *((name, lambda name=name: agents.one(name)) for name in agents.installed()),
        ("home", lambda: home_checks.directory(home)),
        ("records", lambda: home_checks.records(home)),
        ("disk", lambda: home_checks.disk(home)),
        ("filesystem", lambda: home_checks.filesystem(home)),
        ("config", supervision.config),
        ("keeper", lambda: supervision.keeper(home)),
        ("service", lambda: supervision.service(home)),
        ("staging", lambda: home_checks.staging(home)),
        ("tasks", lambda: home_checks.tasks(home)),
    )
    return [_run_check(name, check) for name, check in checks]


def _run_check(name: str, check: Callable[[], Finding]) -> Finding:
    """A check that cannot run has failed."""
    try:
        return check()
    except (HoldfastError, OSError) as error:
        return fail(name, f"cannot check: {error}", getattr(error, "hint", "") or "see 'home' above")


def _print(finding: Finding) -> None:
    name, rest = f"{finding.level:4}  {finding.check:10}  ", " " * _INDENT
    first, *others = fit_text.wrap(
        fit_text.as_displayed(finding.said), terminal.width(), first=name, rest=rest
    )
    colour = _COLOURS[finding.level] if terminal.has_colour() else None
    level = finding.level
    print(first if colour is None else first.replace(level, f"\x1b[{colour}m{level}\x1b[0m", 1))
    for line in others:
        print(line)
    if finding.fix:
        out.say(f"fix: {finding.fix}", first=rest, rest=rest)
