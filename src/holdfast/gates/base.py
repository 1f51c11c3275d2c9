"""What a gate works with: the case to judge, the result of a check, and the checks of a stage."""

from __future__ import annotations

from holdfast.model import roles
from holdfast.model.acceptance import CHECK
from holdfast.model.record import Record
from holdfast.workspace.scope import Scope
from holdfast.workspace.snapshots.changes import within

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.model.spec import PipelineSpec, SandboxSpec, StageSpec
    from holdfast.store.layout import Packet
    from holdfast.workspace.base import Base
    from holdfast.workspace.snapshots.changes import Change
    from holdfast.workspace.snapshots.trees import Trees

    CheckFunction = Callable[["Case"], "Check"]


class Check(Record):
    """The result of one check. If it passed, its reasons are remarks."""

    name: str
    passed: bool
    reasons: tuple[str, ...] = ()
    #: The remarks also go into the summary.
    is_warning: bool = False
    #: What the agent is shown if the work goes back to it: the start of a failing command's output.
    evidence: str = ""
    #: Requests for approval by a person before the next stage; an empty text gives no reason.
    confirm: tuple[str, ...] = ()
    #: It passed before the work as well, so it proves nothing about the work.
    passed_before: bool = False
    #: A command could not start, and could not before the work either, so it says nothing about the work.
    cannot_start: bool = False


class Case(Record):
    """Everything that a check can read."""

    packet: Packet
    stage: StageSpec
    pipeline: PipelineSpec
    #: The agent that played the stage, and its report (`outputs/<stage>.<agent>.out`).
    agent: str
    report: str
    attempt: int
    #: The directory in which the task's agents work.
    directory: str
    #: The user's directory; it differs if the task has a worktree.
    project_dir: str = ""
    #: The commands that the brief adds, from the journal: agents can write to the file beside it.
    script: str | None = None
    #: The sandbox of the task's agents; null if it has none.
    sandbox: SandboxSpec | None = None
    #: The acceptance commands run in this gate.
    is_accepting: bool = False
    #: The workspace; null if none was recorded for the stage.
    workspace: Workspace | None = None
    #: Of a judge: the candidates that passed their gates.
    survivors: tuple[StageSpec, ...] = ()
    #: Where a check can write its artifact, and the patch of reverted changes.
    artifact_at: str | None = None
    reverted_at: str = ""
    #: No stage follows.
    is_last: bool = False
    redact: Callable[[str], str] = str

    @property
    def scope(self) -> Scope:
        """What the task may change."""
        return Scope(self.pipeline.scope_allow, self.pipeline.scope_deny)


class Workspace(Record):
    """The working tree of a stage: its tree at the start, its tree now, and the difference."""

    trees: Trees
    base: Base
    old_tree: str
    new_tree: str
    changes: tuple[Change, ...]
    #: Changed hooks and settings of the repository; no tree contains them.
    git_files: tuple[Change, ...] = ()
    #: What changed around a worktree: refs, the user's own tree; as sentences.
    around: tuple[str, ...] = ()
    #: Directories that cannot be read, and could be when the task was created: no tree contains them.
    unreadable: tuple[str, ...] = ()

    @property
    def remarks(self) -> list[str]:
        """What a person must know about the tree that is judged."""
        hidden = [f"{path} cannot be read, so what is in it was not judged" for path in self.unreadable]
        return [*self.around, *hidden]


#: Every candidate must pass this, so that it can be adopted.
OF_CANDIDATE = ("carry",)
#: Every stage must pass these first.
COMMON_FIRST = ("report",)
#: Every stage must pass these after the checks of its role, but before any command is run.
COMMON_LAST = ("scope",)
#: Checks that run commands; they are skipped once another check has failed.
RUNS_COMMANDS = (CHECK,)
#: Checks that read the tree of the project also for a stage that changes nothing.
READS_TREE = ("patch",)
#: The function of each check, loaded when it is needed.
CHECKS = {
    "report": "holdfast.gates.report:check",
    "headings": "holdfast.gates.report:check_headings",
    "lines": "holdfast.gates.report:check_lines",
    "confirm": "holdfast.gates.confirm:check",
    "severity": "holdfast.gates.report:check_severity",
    "patch": "holdfast.gates.patch:check",
    "scope": "holdfast.gates.scope:check",
    "carry": "holdfast.gates.candidate:check_carry",
    "choice": "holdfast.gates.candidate:check_choice",
    CHECK: "holdfast.gates.acceptance:check",
}


def in_scope(case: Case, workspace: Workspace, *, since: str) -> tuple[str, tuple[str, ...]]:
    """The tree `since` with the changes in scope, and the paths of the changes that are out of scope."""
    prefix = workspace.base.place.prefix
    return within(workspace.trees, since, workspace.new_tree, scope=case.scope, prefix=prefix)


def is_writer(stage: StageSpec) -> bool:
    """Whether a stage may change the workspace, within its scope."""
    return stage.writes or stage.role == "impl"


def checks_of(
    stage: StageSpec, *, is_accepting: bool = False, of_packet: tuple[str, ...] = ()
) -> tuple[str, ...]:
    """The names of the checks of a stage, in the order in which they are made.

    `of_packet` are the checks of other packages that the packet asks for.
    """
    of_role = roles.get(stage.role).checks
    if is_accepting and CHECK not in of_role:
        of_role = (*of_role, CHECK)
    without_commands = tuple(name for name in of_role if name not in RUNS_COMMANDS)
    with_commands = tuple(name for name in of_role if name in RUNS_COMMANDS)
    of_candidate = OF_CANDIDATE if stage.candidate else ()
    named = (*COMMON_FIRST, *without_commands, *COMMON_LAST, *of_candidate, *of_packet, *with_commands)
    return tuple(dict.fromkeys(named))  # a check that is named twice is made once
