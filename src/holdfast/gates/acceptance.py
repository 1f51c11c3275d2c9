"""The acceptance gate: run the commands that prove the work, in the workspace, each with a time limit.

Commands that a brief proposed replace those of the manifest and are screened. What a person wrote runs as it
is.
"""

from __future__ import annotations

from holdfast.errors import HoldfastError
from holdfast.gates import command, screen, script
from holdfast.gates.base import Case, Check
from holdfast.model.record import Record
from holdfast.store import atomic
from holdfast.workspace import base as bases
from holdfast.workspace.current_tree import current_tree
from holdfast.workspace.scope import Scope
from holdfast.workspace.snapshots.changes import few, within
from holdfast.workspace.snapshots.trees import Trees


class Commands(Record):
    """The commands to run."""

    lines: tuple[str, ...]
    #: The brief proposed them; otherwise they are from the manifest.
    is_proposed: bool


def commands_of(case: Case) -> Commands:
    """The commands of the brief if it has any, else those of the manifest."""
    proposed = script.commands(case.script) if case.script else ()
    if proposed:
        return Commands(lines=proposed, is_proposed=True)
    return Commands(lines=case.pipeline.acceptance_commands, is_proposed=False)


def check(case: Case) -> Check:
    """Run all commands and record what each did."""
    commands = commands_of(case)
    reasons: list[str] = []
    source = "proposed by the brief, and screened" if commands.is_proposed else "from the manifest"
    artifact = [
        f"# Acceptance of {case.stage.name}\n",
        f"Commands: {len(commands.lines)}, {source}. Directory: {case.directory}\n",
    ]
    tree_before = _tree(case) if commands.lines else None
    for line in commands.lines:
        objection = screen.objection(line) if commands.is_proposed else None
        if objection is not None:
            reasons.append(f"refused to run `{command.shortened(case.redact(line))}`: {objection}")
            artifact.append(f"## $ {line}\n\n- refused, not run: {objection}\n")
            continue
        limit_s = case.pipeline.acceptance_timeout_s
        result = command.run(line, cwd=case.directory, limit_s=limit_s, redact=case.redact)
        artifact.append(result.entry)
        reasons += [result.failure] if result.failure else []
    if not commands.lines:
        artifact.append("There are no commands.\n")
    remarks = _byproducts(case, tree_before)
    artifact += [f"{remark}\n" for remark in remarks]
    artifact.append(f"Result: {'not passed' if reasons else 'passed'}\n")
    if case.artifact_at is not None:
        text = case.redact("\n".join(artifact))
        atomic.write(case.artifact_at, text.encode("utf-8", "backslashreplace"), durable=True)
    if not commands.lines:
        return Check(name="acceptance", passed=True, reasons=("there are no acceptance commands",))
    return Check(name="acceptance", passed=not reasons, reasons=tuple(reasons or remarks))


def _tree(case: Case) -> str | None:
    """The workspace now; None if it is not recorded or cannot be read. It is only needed for a remark."""
    try:
        base = bases.read(case.packet)
        return None if base is None else current_tree(case.packet, base)
    except HoldfastError:
        return None


def _byproducts(case: Case, tree_before: str | None) -> list[str]:
    """A remark on files that the commands left outside the scope.

    `diff` and `apply` leave them out, so they are no failure.
    """
    base, tree_after = bases.read(case.packet), _tree(case)
    if base is None or tree_before is None or tree_after is None:
        return []
    scope = Scope(case.pipeline.scope_allow, case.pipeline.scope_deny)
    _, paths = within(Trees.of(case.packet), tree_before, tree_after, scope=scope, prefix=base.place.prefix)
    if not paths:
        return []
    count = f"{len(paths)} file{'s' if len(paths) != 1 else ''}"
    return [f"the commands left {count} outside the scope: {few(paths)}; 'diff' and 'apply' leave them out"]
