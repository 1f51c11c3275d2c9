"""The acceptance gate: the commands that prove the work, run here and now, in the workspace, each with a time limit.

Commands that a brief proposed hold instead of those of the manifest, and are screened; what a person wrote is run as it is.
"""

from __future__ import annotations

import re

from holdfast import clock
from holdfast.errors import HoldfastError
from holdfast.gates import screen, script, shell
from holdfast.gates.base import Case, Check
from holdfast.model import readable
from holdfast.model.record import Record
from holdfast.store import atomic
from holdfast.workspace import base as bases
from holdfast.workspace.prepare import now
from holdfast.workspace.scope import Scope
from holdfast.workspace.snapshots.changes import within
from holdfast.workspace.snapshots.trees import Trees

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

#: Files that are named in a remark.
_NAMED = 5


class Commands(Record):
    """What is to be run, and who said so."""

    lines: tuple[str, ...]
    is_proposed: bool


def commands_of(case: Case) -> Commands:
    """Those of the brief, if it named any; else what the manifest accepts."""
    proposed = script.commands(case.script) if case.script else ()
    if proposed:
        return Commands(lines=proposed, is_proposed=True)
    return Commands(lines=case.pipeline.acceptance_commands, is_proposed=False)


def check(case: Case) -> Check:
    """Run the commands, all of them, and write down what each did."""
    commands = commands_of(case)
    reasons: list[str] = []
    limit_s = case.pipeline.acceptance_timeout_s
    parts = [f"# Acceptance of {case.stage.name}\n"]
    source = "proposed by the brief, and screened" if commands.is_proposed else "from the manifest"
    parts.append(f"Commands: {len(commands.lines)}, {source}. Directory: {case.directory}\n")
    before = _tree(case) if commands.lines else None
    for command in commands.lines:
        why = screen.objection(command) if commands.is_proposed else None
        if why is not None:
            reasons.append(f"refused to run `{_short(case.redact(command))}`: {why}")
            parts.append(f"## $ {command}\n\n- refused, not run: {why}\n")
            continue
        failed, told = try_one(command, cwd=case.directory, limit_s=limit_s, redact=case.redact)
        parts.append(told)
        reasons += [failed] if failed else []
    if not commands.lines:
        parts.append("No commands were given.\n")
    remarks = _left_behind(case, before)
    parts += [f"{remark}\n" for remark in remarks]
    parts.append(f"Result: {'not passed' if reasons else 'passed'}\n")
    if case.artifact_at is not None:
        text = case.redact("\n".join(parts))
        atomic.write(case.artifact_at, text.encode("utf-8", "backslashreplace"), durable=True)
    if not commands.lines:
        return Check(name="acceptance", passed=True, reasons=("there were no acceptance commands to run",))
    return Check(name="acceptance", passed=not reasons, reasons=tuple(reasons or remarks))


def _tree(case: Case) -> str | None:
    """The workspace as it is now; None where nobody watches it, or where it cannot be read: it is for a remark only."""
    try:
        base = bases.read(case.packet)
        return None if base is None else now(case.packet, base)
    except HoldfastError:
        return None


def _left_behind(case: Case, before: str | None) -> list[str]:
    """A remark on what the commands left outside the scope. It is no failure: `diff` and `apply` leave it out."""
    base, after = bases.read(case.packet), _tree(case)
    if base is None or before is None or after is None:
        return []
    scope = Scope(case.pipeline.scope_allow, case.pipeline.scope_deny)
    _, left = within(Trees.of(case.packet), before, after, scope=scope, prefix=base.place.prefix)
    if not left:
        return []
    count = f"{len(left)} file{'s' if len(left) != 1 else ''}"
    names = ", ".join(left[:_NAMED]) + (", …" if len(left) > _NAMED else "")
    return [f"the commands left {count} outside the scope: {names}; diff and apply leave that out"]


def try_one(
    command: str, *, cwd: str, limit_s: float, redact: Callable[[str], str], in_silence: bool = False
) -> tuple[str, str]:
    """Run one command. Returns why it failed (empty where it did not), and what it did, for the artifact. `in_silence`: what
    it prints is a failure too."""
    done = shell.run([script.shell_path(), "-c", command], cwd=cwd, limit_s=limit_s)
    # As a whole, before anything is cut: half a secret is not known for one.
    output = redact(_plain(done.output))
    command = redact(command)
    failed = ""
    if done.is_timeout:
        failed = f"`{_short(command)}` timed out: it was ended after {clock.words(done.lasted_s)}"
    elif done.exit_code:
        failed = f"`{_short(command)}` failed with exit status {done.exit_code}{_last_words(output)}"
    elif in_silence and output.strip():
        failed = (
            f"`{_short(command)}` printed something, and was expected to print nothing{_last_words(output)}"
        )
    return failed, _told(command, done, output)


def _short(command: str) -> str:
    line = " ".join(command.split())
    return line if len(line) <= 120 else line[:119] + "…"


def _last_words(output: str) -> str:
    lines = [line for line in output.splitlines() if line.strip()]
    return f": {lines[-1].strip()[:200]}" if lines else ""


def _plain(output: bytes) -> str:
    return "\n".join(map(readable.plain, output.decode("utf-8", "replace").split("\n")))


def _told(command: str, done: shell.Done, output: str) -> str:
    output = output.rstrip("\n")
    longest = max((len(run) for run in re.findall(r"`{3,}", output)), default=2)
    fence = "`" * (longest + 1)
    status = (
        f"timed out after {done.lasted_s:.1f} s, ended" if done.is_timeout else f"exit code: {done.exit_code}"
    )
    facts = f"- {status}\n- duration: {done.lasted_s:.1f} s\n"
    cut = f"- output: {done.total_bytes} bytes, the middle is left out\n" if done.is_cut else ""
    return f"## $ {command}\n\n{facts}{cut}\n{fence}\n{output}\n{fence}\n"
