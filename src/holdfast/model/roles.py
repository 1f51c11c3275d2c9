"""The roles that an agent can play in a stage: one table, a row per role.

Configuration, prompts, gates and results all read it. A stage is named `<agent>_<role>`, and any agent can
play any role.
"""

from __future__ import annotations

from holdfast.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

#: In `Role.reads`: the reports of all earlier stages.
ALL = ("*",)
#: In `Role.reads`: the reports of the stages that did the work.
WORK = ("impl", "fix", "test_impl", "runbook")
#: The heading under which a brief rewrites the context pack.
UPDATED_PACK = "Updated Context Pack"


class Role(Record):
    """What a role does, which checks its stage must pass, and which reports it gets."""

    about: str
    #: Selects the model and the effort in the agent files; one of PURPOSES.
    purpose: str
    #: With the option `impl_mode: one_shot`, the model and the effort of one_shot are used instead.
    is_shortened: bool = False
    #: The stage may change the workspace. If False, a profile can still allow it (`writes:`) where
    #: `may_write` is True.
    writes: bool = False
    may_write: bool = False
    #: Checks of the gate, beside those that every stage must pass; in this order.
    checks: tuple[str, ...] = ()
    #: Headings that the report must have (check `headings`).
    headings: tuple[str, ...] = ()
    #: Lines of text that the report must have (check `lines`).
    min_lines: int = 0
    #: Roles whose earlier reports are attached to the prompt; or ALL.
    reads: tuple[str, ...] = ()
    #: The merged findings of all reviewers are attached to the prompt.
    reads_findings: bool = False
    #: The report has findings; they join the merged list.
    has_findings: bool = False
    #: The findings of this report replace those of the reports before it.
    joins_findings: bool = False
    #: The heading under which the report decides on the work.
    decides_under: str = ""
    #: The changes of the work and the results of the acceptance commands are attached to the prompt.
    reads_work: bool = False
    #: It compares candidates: their changes and the results of their acceptance commands are attached.
    compares: bool = False
    #: The report has a new context pack and acceptance commands for the stages after it.
    is_brief: bool = False

    @property
    def phase(self) -> str:
        """The phase of the work: plan, impl, review or verify."""
        return "impl" if self.purpose == "one_shot" else self.purpose


PURPOSES = ("impl", "review", "verify", "plan", "one_shot")
_REVIEWER = Role(
    about="Reviews the change.",
    purpose="review",
    checks=("headings", "confirm", "severity"),
    headings=("Findings", "Test gaps", "Breaking changes", "Minimal fix"),
    reads=WORK,
    has_findings=True,
    reads_work=True,
)
ROLES: dict[str, Role] = {
    "brief": Role(
        about="Reads the request and rewrites the context pack.",
        purpose="plan",
        is_shortened=True,
        checks=("headings",),
        headings=("Summary", "Acceptance", "Scope", "Constraints", "Verify Commands", UPDATED_PACK),
        is_brief=True,
    ),
    "impl": Role(
        about="Changes the code.",
        purpose="impl",
        writes=True,
        may_write=True,
        checks=("patch",),
    ),
    "judge": Role(
        about="Chooses the best of several candidates.",
        purpose="review",
        checks=("choice",),
        reads=WORK,
        decides_under="Choice",
        compares=True,
    ),
    "verify": Role(
        about="Judges the result of the acceptance commands.",
        purpose="verify",
        checks=("acceptance",),
        reads=WORK,
        decides_under="Verdict",
        reads_work=True,
    ),
    "review": _REVIEWER,
    "security_review": _REVIEWER.evolve(about="Reviews the change for security only."),
    "review_consolidate": _REVIEWER.evolve(
        about="Merges the earlier reviews into one.",
        reads=ALL,
        reads_findings=True,
        joins_findings=True,
    ),
    "fix": Role(
        about="Fixes the findings of the reviews, one by one.",
        purpose="impl",
        writes=True,
        may_write=True,
        checks=("headings", "patch"),
        headings=("Fixed", "Not fixed", "Checks"),
        reads=("review_consolidate",),
        reads_findings=True,
    ),
    "test_design": Role(
        about="Designs the tests.",
        purpose="plan",
        is_shortened=True,
        checks=("lines",),
        min_lines=10,
    ),
    "test_impl": Role(
        about="Proposes tests as a patch.",
        purpose="impl",
        may_write=True,
        checks=("headings", "patch"),
        headings=("Added or Updated Tests", "Unified Diff", "Rationale"),
    ),
    "static_verify": Role(
        about="Checks without running anything: risks, rollback, go or no-go.",
        purpose="verify",
        checks=("headings",),
        headings=("Pre-execution checks", "Dangerous changes", "Rollback plan", "Go/No-Go"),
        decides_under="Go/No-Go",
        reads_work=True,
    ),
    "runbook": Role(
        about="Does the whole task in one stage and reports what it did.",
        purpose="one_shot",
        may_write=True,
        checks=("headings",),
        headings=("Problem", "Plan", "Commands", "Risks"),
    ),
    "plan_draft": Role(about="Writes the first plan.", purpose="plan"),
    "plan_enrich": Role(about="Adds what the plan misses.", purpose="plan", reads=ALL),
    "plan_review": Role(about="Reviews the plans.", purpose="review", reads=ALL),
    "plan_consolidate": Role(about="Merges the earlier plans into one.", purpose="plan", reads=ALL),
}
#: The role of a plain run: nothing is checked or attached because of it.
_UNKNOWN = Role(about="", purpose="impl")


def get(name: str) -> Role:
    """The row of a role; an empty row if the table has none, as for a plain run."""
    return ROLES.get(name, _UNKNOWN)


def reads(role: str, earlier: str) -> bool:
    """Whether a stage of `role` gets the report of an earlier stage of the role `earlier`."""
    wanted = get(role).reads
    return wanted == ALL or earlier in wanted


def purpose(role: str, impl_mode: str | None = None) -> str:
    """The purpose whose model and effort a role uses."""
    row = ROLES[role]
    return "one_shot" if impl_mode == "one_shot" and row.is_shortened else row.purpose


def split(stage: str, agents: Iterable[str]) -> tuple[str, str] | None:
    """The agent and the role of a stage name (`codex_impl`: codex, impl); None if one of them is unknown."""
    for agent in agents:
        role = stage.removeprefix(f"{agent}_")
        if role != stage and role in ROLES:
            return agent, role
    return None


def stage_names(agents: Iterable[str]) -> list[str]:
    """All stages that these agents can play."""
    return [f"{agent}_{role}" for agent in agents for role in ROLES]
