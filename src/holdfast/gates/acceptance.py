"""The acceptance gate: run the commands that prove the work, in a clean room, each with a time limit.

All commands run, even after one has failed. Those of the user run as they were written; those that a brief
adds are screened. If all pass, they run once more on the tree of the task's start: commands that passed there
as well prove nothing about the work, which is reported. A command that cannot start runs there too: if it
could not start before the work either, it is no fault of the work.
"""

from __future__ import annotations

from holdfast.errors import HoldfastError
from holdfast.gates import cannot_start, command, room_commands, screen, script
from holdfast.gates.base import Case, Check, in_scope
from holdfast.model.acceptance import CHECK
from holdfast.model.record import Record
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
    from collections.abc import Callable

    from holdfast.gates.command import CommandResult
    from holdfast.gates.room_commands import Links, Setting
    from holdfast.model.spec import SandboxSpec
    from holdfast.store.layout import Packet
    from holdfast.workspace.base import Base
    from holdfast.workspace.clean_room import Room
    from holdfast.workspace.project_tree import ProjectTree

PROVES_NOTHING = "the acceptance commands passed before the work as well, so they prove nothing about it"
_EITHER = "it could not start before the work either"
_IN_PLACE = "the acceptance commands ran where the agent worked, with everything that it left there"
#: How much of the failing commands' output goes back to the agent.
_EVIDENCE_CHARS = 6000


class Line(Record):
    """One command."""

    text: str
    #: The brief proposed it; otherwise it is the user's.
    is_proposed: bool = False


class Wanted(Record):
    """What is run, and how."""

    lines: tuple[Line, ...]
    #: They prepare a room.
    setup: tuple[str, ...] = ()
    links: Links
    #: Per command.
    limit_s: float
    #: Who gave the commands that were not proposed.
    source: str = "from the manifest"
    title: str
    redact: Callable[[str], str]
    #: The sandbox of the task's agents, in which proposed commands run; null: it has none.
    sandbox: SandboxSpec | None = None
    #: Patterns of paths that it does not show.
    forbidden: tuple[str, ...] = ()


class Judged(Record):
    """The trees of a room: what is judged, and what was there before the work."""

    packet: Packet
    trees: Trees
    base: Base
    tree: str
    #: The user's project.
    project_dir: str


class Result(Record):
    """What the commands did. All texts are redacted."""

    #: Why the work is not accepted; empty if it is.
    reasons: tuple[str, ...] = ()
    #: The start of the output of each command that failed.
    evidence: str = ""
    #: Sections of the artifact.
    entries: tuple[str, ...] = ()
    #: By command: its status, as text.
    statuses: tuple[tuple[str, str], ...] = ()
    #: Commands that could not start, for want of something that is no part of the work; and the reason.
    unstarted: tuple[tuple[str, str], ...] = ()


def commands_of(case: Case) -> tuple[Line, ...]:
    """The commands of the manifest, and after them those that the brief adds."""
    own = tuple(Line(text=text) for text in case.pipeline.acceptance_commands)
    proposed = script.commands(case.script) if case.script else ()
    known = {" ".join(line.text.split()) for line in own}
    added = (text for text in proposed if " ".join(text.split()) not in known)
    return (*own, *(Line(text=text, is_proposed=True) for text in added))


def check(case: Case) -> Check:
    """Run all commands and record what each did."""
    wanted = Wanted(
        lines=commands_of(case),
        setup=case.pipeline.acceptance_setup,
        links=room_commands.Links(names=case.pipeline.acceptance_links, deny=case.pipeline.scope_deny),
        limit_s=case.pipeline.acceptance_timeout_s,
        source="from the manifest" if case.pipeline.intent else "given with --accept",
        title=f"Acceptance of {case.stage.name}",
        redact=case.redact,
        sandbox=case.sandbox,
        forbidden=case.pipeline.forbidden_paths,
    )
    if not wanted.lines:
        _write(case.artifact_at, wanted, ["There are no commands.\n"], where="", passed=True)
        return Check(name=CHECK, passed=True, reasons=("there are no acceptance commands",))
    judged, why = _judged(case)
    if judged is not None:
        return judge(judged, wanted, artifact_at=case.artifact_at)
    before = _tree(case)
    return judge_in_place(
        case,
        wanted,
        why,
        artifact_at=case.artifact_at,
        remarks=lambda: _byproducts(case, before),
    )


def _judged(case: Case) -> tuple[Judged | None, str]:
    """The trees for a clean room; None and the reason if there can be none."""
    workspace = case.workspace
    if not case.pipeline.acceptance_clean:
        return None, "acceptance.clean_room is false"
    if workspace is None or not workspace.base.base_tree:
        return None, "no tree was recorded for it"
    if workspace.base.place.repository is None:
        return None, f"{workspace.base.place.directory} is not in a git repository"
    return (
        Judged(
            packet=case.packet,
            trees=workspace.trees,
            base=workspace.base,
            tree=in_scope(case, workspace, since=workspace.base.base_tree)[0],
            project_dir=case.project_dir,
        ),
        "",
    )


# ── in a clean room ──


def judge(judged: Judged, wanted: Wanted, *, artifact_at: str | None) -> Check:
    """Run the commands in a clean room; if they pass, also on the tree of the task's start."""
    project = locate(judged.project_dir)
    with clean_room.entered(judged.packet, judged.trees, judged.base, judged.tree) as room:
        result = _run_in(room, judged, wanted, project)
    earlier, remarks = Result(), tuple[str, ...]()
    if (not result.reasons or result.unstarted) and judged.tree != judged.base.base_tree:
        again = wanted if not result.reasons else _only(wanted, result.unstarted)
        with clean_room.entered(judged.packet, judged.trees, judged.base, judged.base.base_tree) as room:
            earlier = _run_in(room, judged, again, project)
        remarks = () if earlier.reasons or result.reasons else (PROVES_NOTHING,)
    elif result.unstarted:
        earlier = result  # nothing was changed
    stuck = [reason for name, reason in result.unstarted if name in dict(earlier.unstarted)]
    result = result.evolve(
        reasons=tuple(f"{each} ({_EITHER})" if each in stuck else each for each in result.reasons)
    )
    entries = [_with_earlier(entry, status) for entry, status in _paired(result, earlier)]
    where = "a clean checkout of the tree with the changes in scope"
    entries += [f"{remark}\n" for remark in remarks]
    _write(artifact_at, wanted, entries, where=where, passed=not result.reasons)
    return Check(
        name=CHECK,
        passed=not result.reasons,
        reasons=result.reasons or remarks,
        is_warning=bool(remarks),
        passed_before=bool(remarks),
        cannot_start=bool(stuck),
        evidence=result.evidence,
    )


def _only(wanted: Wanted, unstarted: tuple[tuple[str, str], ...]) -> Wanted:
    """Only the commands that could not start, after the setup; only the setup, if it could not."""
    names = dict(unstarted)
    return wanted.evolve(lines=tuple(line for line in wanted.lines if line.text in names))


def _run_in(room: Room, judged: Judged, wanted: Wanted, project: ProjectTree) -> Result:
    setting, boxed = room_commands.of_room(room, project, wanted.links), None
    if wanted.sandbox is not None and any(line.is_proposed for line in wanted.lines):
        boxed = room_commands.of_room_in_sandbox(
            room,
            project,
            wanted.links,
            home=judged.packet.home,
            spec=wanted.sandbox,
            forbidden=wanted.forbidden,
        )
    return run(wanted, setting, for_proposed=boxed, project_dir=project.directory)


def _paired(result: Result, earlier: Result) -> list[tuple[str, str]]:
    """Each section, and how the same command ended before the work."""
    statuses = dict(earlier.statuses)
    names = [name for name, _ in result.statuses]
    return [(entry, statuses.get(name, "")) for entry, name in zip(result.entries, names, strict=True)]


def _with_earlier(entry: str, status: str) -> str:
    if not status:
        return entry
    head, _, rest = entry.partition("\n\n")
    return f"{head}\n\n- before the work: {status}\n{rest}"


# ── in place ──


def judge_in_place(
    case: Case,
    wanted: Wanted,
    why: str,
    *,
    artifact_at: str | None,
    remarks: Callable[[], list[str]] = list,
) -> Check:
    """Run the commands where the agent worked, because there can be no clean room."""
    setting, boxed = room_commands.in_place(case.directory), None
    if wanted.sandbox is not None:
        boxed = room_commands.in_sandbox(
            setting, case.packet.home, wanted.sandbox, forbidden=wanted.forbidden
        )
    result = run(wanted, setting, for_proposed=boxed)
    told = [f"{_IN_PLACE} ({why})", *remarks()]
    entries = [*result.entries, *(f"{remark}\n" for remark in told)]
    _write(artifact_at, wanted, entries, where=case.directory, passed=not result.reasons)
    return Check(
        name=CHECK,
        passed=not result.reasons,
        reasons=result.reasons or tuple(told),
        is_warning=not result.reasons,
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


# ── the commands ──


def run(
    wanted: Wanted, setting: Setting, *, for_proposed: Setting | None = None, project_dir: str = ""
) -> Result:
    """Run the setup, and all commands if it succeeds. Those that an agent proposed may have a setting of
    their own. In the room of the project `project_dir`, note those that could not start."""
    reasons: list[str] = []
    unstarted: list[tuple[str, str]] = []

    def cannot(text: str, done: CommandResult, chosen: Setting) -> bool:
        if not project_dir or done.exit_code not in cannot_start.STATUSES:
            return False
        probe, links = cannot_start.probe_in(chosen), wanted.links.names
        return not cannot_start.misses_work(text, probe, links=links, project_dir=project_dir)

    entries: list[str] = []
    evidence: list[str] = []
    statuses: list[tuple[str, str]] = []
    for text in wanted.setup:
        done = command.run(text, setting=setting, limit_s=wanted.limit_s, redact=wanted.redact)
        entries.append(done.entry.replace("## $ ", "## setup: $ ", 1))
        statuses.append((f"setup {text}", done.status))
        if done.failure:
            reasons.append(f"setup: {done.failure}")
            unstarted += [(f"setup {text}", reasons[-1])] if cannot(text, done, setting) else []
            evidence.append(done.evidence)
            break
    for line in wanted.lines if not reasons else ():
        objection = screen.objection(line.text) if line.is_proposed else None
        if objection is not None:
            shown = command.shortened(wanted.redact(line.text))
            reasons.append(f"refused to run `{shown}`: {objection}")
            entries.append(f"## $ {line.text}\n\n- refused, not run: {objection}\n")
            statuses.append((line.text, ""))
            continue
        chosen = for_proposed if line.is_proposed and for_proposed is not None else setting
        done = command.run(line.text, setting=chosen, limit_s=wanted.limit_s, redact=wanted.redact)
        entries.append(done.entry)
        statuses.append((line.text, done.status))
        if done.failure:
            reasons.append(done.failure)
            unstarted += [(line.text, done.failure)] if cannot(line.text, done, chosen) else []
            evidence.append(done.evidence)
    return Result(
        reasons=tuple(reasons),
        entries=tuple(entries),
        statuses=tuple(statuses),
        unstarted=tuple(unstarted),
        evidence="\n".join(evidence)[:_EVIDENCE_CHARS],
    )


def _write(artifact_at: str | None, wanted: Wanted, entries: list[str], *, where: str, passed: bool) -> None:
    """Write the artifact."""
    if artifact_at is None:
        return
    proposed = sum(line.is_proposed for line in wanted.lines)
    parts = [f"{len(wanted.lines) - proposed} {wanted.source}"] if wanted.lines else ["none"]
    parts += [f"{proposed} proposed by the brief, and screened"] if proposed else []
    place = f" Run in: {where}." if where else ""
    head = [f"# {wanted.title}\n", f"Commands: {', '.join(parts)}.{place}\n"]
    text = wanted.redact("\n".join([*head, *entries, f"Result: {'passed' if passed else 'not passed'}\n"]))
    atomic.write(artifact_at, text.encode("utf-8", "backslashreplace"), durable=True)
