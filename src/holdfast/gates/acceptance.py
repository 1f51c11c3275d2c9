"""The check `acceptance`: run the commands that prove the work, in a clean room, each with a time limit.

The commands of the user run as they were written; those that a brief adds are screened, and run in a sandbox.
If all pass, they run once more on the tree of the task's start, if it is another one: commands that passed
there as well prove nothing about the work, which is reported. A command that cannot start runs there too: if
it could not start before the work either, it is no fault of the work.
"""

from __future__ import annotations

from holdfast.errors import HoldfastError
from holdfast.gates import cannot_start, room_commands, script
from holdfast.gates.acceptance_commands import Acceptance, Command, Result, run
from holdfast.gates.base import Case, Check, in_scope
from holdfast.model.acceptance import CHECK
from holdfast.model.spec import SandboxSpec
from holdfast.sandbox import machine
from holdfast.store import atomic
from holdfast.units import plural
from holdfast.workspace import base as bases
from holdfast.workspace import clean_room
from holdfast.workspace.current_tree import current_tree
from holdfast.workspace.project_tree import locate
from holdfast.workspace.snapshots.changes import few, within
from holdfast.workspace.snapshots.trees import Trees

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.gates.base import Workspace
    from holdfast.gates.cannot_start import Probe
    from holdfast.sandbox.machine import SandboxProblem
    from holdfast.workspace.base import Base
    from holdfast.workspace.clean_room import Room
    from holdfast.workspace.project_tree import ProjectTree

PROVES_NOTHING = "the acceptance commands passed before the work as well, so they prove nothing about it"
_EITHER = "it could not start before the work either"
_IN_PLACE = "the acceptance commands ran where the agent worked, with everything that it left there"


def check(case: Case) -> Check:
    """Run all commands and record what each did."""
    commands, sandbox, left_out = commands_of(case), case.sandbox, ""
    if sandbox is None and any(command.is_proposed for command in commands):
        # An agent, or another program that can write its report, chose them: they do not run with the user's
        # rights.
        sandbox, left_out = SandboxSpec(), _without_sandbox(machine.find_problem())
    if left_out:
        sandbox = None
        commands = tuple(command for command in commands if not command.is_proposed)
        if not commands:
            return Check(name=CHECK, passed=False, reasons=(left_out,), cannot_start=True)
    done = _check(case, commands, sandbox)
    if not left_out:
        return done
    return done.evolve(reasons=(*done.reasons, left_out), is_warning=done.is_warning or done.passed)


def _without_sandbox(problem: SandboxProblem | None) -> str:
    """Why commands of the brief are not run; empty if they are."""
    if problem is None:
        return ""
    return (
        "the commands that the brief proposed were not run, because they run only in a sandbox, and "
        f"{problem.message}; name them in acceptance.commands to run them as you"
    )


def _check(case: Case, commands: tuple[Command, ...], sandbox: SandboxSpec | None) -> Check:
    acceptance = Acceptance(
        commands=commands,
        setup=case.pipeline.acceptance_setup,
        links=room_commands.Links(names=case.pipeline.acceptance_links, deny=case.pipeline.scope_deny),
        limit_s=case.pipeline.acceptance_timeout_s,
        source="from the manifest" if case.pipeline.intent else "given with --accept",
        title=f"Acceptance of {case.stage.name}",
        redact=case.redact,
        sandbox=sandbox,
        forbidden=case.pipeline.forbidden_paths,
    )
    if not acceptance.commands:
        _write(case, acceptance, ["There are no commands.\n"], where="", passed=True)
        return Check(name=CHECK, passed=True, reasons=("there are no acceptance commands",))
    workspace = case.workspace
    if not case.pipeline.acceptance_clean:
        return _check_in_place(case, acceptance, why="acceptance.clean_room is false")
    if workspace is None or not workspace.base.base_tree:
        return _check_in_place(case, acceptance, why="no tree was recorded for it")
    if workspace.base.place.repository is None:
        why = f"{workspace.base.place.directory} is not in a git repository"
        return _check_in_place(case, acceptance, why=why)
    return _check_in_room(case, workspace, acceptance)


def commands_of(case: Case) -> tuple[Command, ...]:
    """The commands of the manifest, and after them those that the brief adds."""
    own = tuple(Command(text=text) for text in case.pipeline.acceptance_commands)
    proposed = script.commands(case.script) if case.script else ()
    known = {" ".join(command.text.split()) for command in own}
    added = (text for text in proposed if " ".join(text.split()) not in known)
    return (*own, *(Command(text=text, is_proposed=True) for text in added))


# ── in a clean room ──


def _check_in_room(case: Case, workspace: Workspace, acceptance: Acceptance) -> Check:
    """Run the commands in a clean room; if they pass, also on the tree of the task's start."""
    base = workspace.base
    tree, _ = in_scope(case, workspace, since=base.base_tree)
    result = _run_on(case, base, tree, acceptance)
    earlier, remarks = Result(), tuple[str, ...]()
    is_changed = tree != base.base_tree
    if not result.reasons:
        earlier = _run_on(case, base, base.base_tree, acceptance) if is_changed else earlier
        remarks = () if earlier.reasons else (PROVES_NOTHING,)
    elif result.unstarted:
        earlier = _run_on(case, base, base.base_tree, _only(acceptance, result)) if is_changed else result
    result, is_stuck = _compared(result, earlier)
    entries = _with_earlier(result, earlier)
    where = "a clean checkout of the tree with the changes in scope"
    entries += [f"{remark}\n" for remark in remarks]
    _write(case, acceptance, entries, where=where, passed=not result.reasons)
    return Check(
        name=CHECK,
        passed=not result.reasons,
        reasons=result.reasons or remarks,
        is_warning=bool(remarks),
        passed_before=bool(remarks),
        cannot_start=is_stuck,
        evidence=result.evidence,
    )


def _run_on(case: Case, base: Base, tree: str, acceptance: Acceptance) -> Result:
    """Run the commands on a tree, in a clean room."""
    with clean_room.entered(case.packet, Trees.of(case.packet), base, tree) as room:
        return _run_in_room(case, room, locate(case.project_dir), acceptance)


def _run_in_room(case: Case, room: Room, project: ProjectTree, acceptance: Acceptance) -> Result:
    def is_excused(text: str, probe: Probe) -> bool:
        links, project_dir = acceptance.links.names, project.directory
        return not cannot_start.misses_work(text, probe, links=links, project_dir=project_dir)

    setting, boxed = room_commands.of_room(room, project, acceptance.links), None
    if acceptance.sandbox is not None and any(command.is_proposed for command in acceptance.commands):
        boxed = room_commands.of_room_in_sandbox(
            room,
            project,
            acceptance.links,
            home=case.packet.home,
            spec=acceptance.sandbox,
            forbidden=acceptance.forbidden,
        )
    return run(acceptance, setting, for_proposed=boxed, is_excused=is_excused)


# ── before the work ──


def _only(acceptance: Acceptance, result: Result) -> Acceptance:
    """Only the commands that could not start, after the setup; only the setup, if it could not."""
    names = dict(result.unstarted)
    return acceptance.evolve(commands=tuple(each for each in acceptance.commands if each.text in names))


def _compared(result: Result, earlier: Result) -> tuple[Result, bool]:
    """The result, with a remark on what could not start before the work either; and whether there is any."""
    stuck = [reason for name, reason in result.unstarted if name in dict(earlier.unstarted)]
    reasons = tuple(f"{each} ({_EITHER})" if each in stuck else each for each in result.reasons)
    return result.evolve(reasons=reasons), bool(stuck)


def _with_earlier(result: Result, earlier: Result) -> list[str]:
    """Each section, with how the same command ended before the work."""
    statuses, entries = dict(earlier.statuses), list[str]()
    for entry, (name, _) in zip(result.entries, result.statuses, strict=True):
        head, _, rest = entry.partition("\n\n")
        status = statuses.get(name)
        entries.append(f"{head}\n\n- before the work: {status}\n{rest}" if status else entry)
    return entries


# ── in place ──


def _check_in_place(case: Case, acceptance: Acceptance, *, why: str) -> Check:
    """Run the commands where the agent worked, because there can be no clean room. Those that cannot start
    run in a room with the tree of the task's start."""

    def is_excused(text: str, probe: Probe) -> bool:
        return cannot_start.misses_program(text, probe, directory=case.directory)

    setting, boxed = room_commands.in_place(case.directory), None
    if acceptance.sandbox is not None:
        boxed = room_commands.in_sandbox(
            setting, case.packet, acceptance.sandbox, forbidden=acceptance.forbidden
        )
    tree_before = _tree(case)
    result = run(acceptance, setting, for_proposed=boxed, is_excused=is_excused)
    remarks = [f"{_IN_PLACE} ({why})", *_byproducts(case, tree_before)]
    earlier = Result()
    if result.unstarted:
        try:
            base = bases.read(case.packet)
            if base is not None and base.base_tree:
                earlier = _run_on(case, base, base.base_tree, _only(acceptance, result))
        except HoldfastError as error:  # in doubt it is failed work
            remarks.append(f"the commands could not run on the tree of the task's start: {error}")
    result, is_stuck = _compared(result, earlier)
    entries = [*_with_earlier(result, earlier), *(f"{remark}\n" for remark in remarks)]
    _write(case, acceptance, entries, where=case.directory, passed=not result.reasons)
    return Check(
        name=CHECK,
        passed=not result.reasons,
        reasons=result.reasons or tuple(remarks),
        is_warning=not result.reasons,
        cannot_start=is_stuck,
        evidence=result.evidence,
    )


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
    trees, prefix = Trees.of(case.packet), base.place.prefix
    _, paths = within(trees, tree_before, tree_after, scope=case.scope, prefix=prefix)
    if not paths:
        return []
    count = plural(len(paths), "file")
    return [f"the commands left {count} outside the scope: {few(paths)}; 'diff' and 'apply' leave them out"]


def _write(case: Case, acceptance: Acceptance, entries: list[str], *, where: str, passed: bool) -> None:
    """Write the artifact."""
    if case.artifact_at is None:
        return
    proposed = sum(command.is_proposed for command in acceptance.commands)
    parts = (
        [f"{len(acceptance.commands) - proposed} {acceptance.source}"] if acceptance.commands else ["none"]
    )
    parts += [f"{proposed} proposed by the brief, and screened"] if proposed else []
    place = f" Run in: {where}." if where else ""
    head = [f"# {acceptance.title}\n", f"Commands: {', '.join(parts)}.{place}\n"]
    text = acceptance.redact(
        "\n".join([*head, *entries, f"Result: {'passed' if passed else 'not passed'}\n"])
    )
    atomic.write(case.artifact_at, text.encode("utf-8", "backslashreplace"), durable=True)
