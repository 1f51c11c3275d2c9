"""Roles that an agent can play in a stage: one table, read by configuration, prompts and gates."""

from __future__ import annotations

from holdfast.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class Role(Record):
    """What a role is for. A stage is named `<agent>_<role>`; any agent can play any role."""

    about: str
    #: Chooses models and efforts in the agent files: impl, review, verify, plan or one_shot.
    purpose: str
    #: It may change the workspace. Where False, a profile may still let a stage write (`writes:`), if `may_write`.
    writes: bool = False
    may_write: bool = False
    #: The prompt's template, `prompts/<template>.md`.
    template: str


ROLES: dict[str, Role] = {
    "brief": Role(about="Reads the request and rewrites the context pack.", purpose="plan", template="brief"),
    "impl": Role(about="Changes the code.", purpose="impl", writes=True, may_write=True, template="impl"),
    "verify": Role(
        about="Judges the result of the acceptance commands.", purpose="verify", template="verify"
    ),
    "review": Role(about="Reviews the change.", purpose="review", template="review"),
    "security_review": Role(
        about="Reviews the change for security alone.", purpose="review", template="security_review"
    ),
    "review_consolidate": Role(
        about="Makes one review of the earlier ones.", purpose="review", template="review_consolidate"
    ),
    "fix": Role(
        about="Fixes what the reviews found, one after the other.",
        purpose="impl",
        writes=True,
        may_write=True,
        template="fix",
    ),
    "test_design": Role(about="Designs the tests.", purpose="plan", template="test_design"),
    "test_impl": Role(
        about="Proposes tests as a patch.", purpose="impl", may_write=True, template="test_impl"
    ),
    "static_verify": Role(
        about="Checks without running anything: dangers, rollback, go or no-go.",
        purpose="verify",
        template="static_verify",
    ),
    "runbook": Role(
        about="Does it in one go, and says what it did.",
        purpose="one_shot",
        may_write=True,
        template="runbook",
    ),
    "plan_draft": Role(about="Writes the first plan.", purpose="plan", template="plan_draft"),
    "plan_enrich": Role(about="Adds to the plan what is missing.", purpose="plan", template="plan_enrich"),
    "plan_review": Role(about="Reviews the plans.", purpose="review", template="plan_review"),
    "plan_consolidate": Role(
        about="Makes one plan of the earlier ones.", purpose="plan", template="plan_consolidate"
    ),
}
PURPOSES = ("impl", "review", "verify", "plan", "one_shot")
#: With `impl_mode: one_shot` these take the models of one_shot (instead of plan).
_SHORTENED = ("brief", "test_design")


def purpose(role: str, impl_mode: str | None = None) -> str:
    """The purpose of a role."""
    return "one_shot" if impl_mode == "one_shot" and role in _SHORTENED else ROLES[role].purpose


def split(stage: str, agents: Iterable[str]) -> tuple[str, str] | None:
    """`codex_impl` → codex, impl. None when no agent of these and no role make up the name."""
    for agent in agents:
        role = stage.removeprefix(f"{agent}_")
        if role != stage and role in ROLES:
            return agent, role
    return None


def names(agents: Iterable[str]) -> list[str]:
    """Every stage that these agents can be."""
    return [f"{agent}_{role}" for agent in agents for role in ROLES]
