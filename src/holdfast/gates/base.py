"""What a gate is made of: a case to judge, checks, and which role is checked for what."""

from __future__ import annotations

from holdfast.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.model.spec import PipelineSpec, StageSpec
    from holdfast.store.layout import Packet
    from holdfast.workspace.base import Base
    from holdfast.workspace.snapshots.changes import Change
    from holdfast.workspace.snapshots.trees import Trees

    CheckFunction = Callable[["Case"], "Check"]


class Check(Record):
    """One question and its answer. Reasons of a check that passed are remarks."""

    name: str
    passed: bool
    reasons: tuple[str, ...] = ()
    #: Whether a person should hear the remarks, who reads nothing but the summary.
    is_warning: bool = False


class Case(Record):
    """Everything that a check may look at."""

    packet: Packet
    stage: StageSpec
    pipeline: PipelineSpec
    #: Who played the stage, and what it wrote: `outputs/<stage>.<agent>.out`.
    agent: str
    report: str
    attempt: int
    #: Where the agents of the task work.
    directory: str
    #: What the brief proposed to run, by the journal: the file beside it can be written by agents.
    script: str | None = None
    #: The workspace; null where the stage has none on record.
    workspace: Workspace | None = None
    #: Where a check may leave what people want to read, and a patch of what was taken back.
    artifact_at: str | None = None
    reverted_at: str = ""
    #: Whether no stage comes behind it.
    is_last: bool = False
    redact: Callable[[str], str] = str


class Workspace(Record):
    """The working tree that a stage wrote in: what it was at the stage's start, what it is, and the difference."""

    trees: Trees
    base: Base
    old_tree: str
    new_tree: str
    changes: tuple[Change, ...]
    #: Hooks and settings of the repository that were changed; no tree has them.
    own_files: tuple[Change, ...] = ()


#: Asked of every stage, before anything else.
COMMON = ("report",)
#: What is asked of a role beside that, in this order.
BY_ROLE: dict[str, tuple[str, ...]] = {
    "brief": ("headings",),
    "fix": ("headings", "patch"),
    "impl": ("patch",),
    "review": ("headings", "confirm"),
    "review_consolidate": ("headings", "confirm"),
    "runbook": ("headings",),
    "security_review": ("headings", "confirm"),
    "static_verify": ("headings",),
    "test_design": ("lines",),
    "test_impl": ("headings", "patch"),
    "verify": ("acceptance",),
}
#: Asked of every stage as well, after what it says and before anything of it is run.
OF_WORKSPACE = ("scope",)
#: Where each check is; loaded when it is asked.
CHECKS = {
    "report": "holdfast.gates.report:check",
    "headings": "holdfast.gates.headings:check",
    "lines": "holdfast.gates.headings:check_lines",
    "confirm": "holdfast.gates.confirm:check",
    "patch": "holdfast.gates.patch:check",
    "scope": "holdfast.gates.scope:check",
    "acceptance": "holdfast.gates.acceptance:check",
}
#: A check that runs what an agent left is not asked once another one has failed.
RUNS_THINGS = ("acceptance",)


def is_writer(stage: StageSpec) -> bool:
    """Whether a stage may change the workspace, and so is held to the scope."""
    return stage.writes or stage.role == "impl"


def checks_of(stage: StageSpec) -> tuple[str, ...]:
    """The names of the checks of a stage, in their order."""
    of_role = BY_ROLE.get(stage.role, ())
    before = tuple(name for name in of_role if name not in RUNS_THINGS)
    return (*COMMON, *before, *OF_WORKSPACE, *(name for name in of_role if name in RUNS_THINGS))
