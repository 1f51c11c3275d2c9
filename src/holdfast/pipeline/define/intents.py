"""Intents, and the options that a manifest can set."""

from __future__ import annotations

from holdfast.model.record import Record


class Intent(Record):
    """What a packet is for. By default it runs the profile of the same name in its group."""

    group: str
    about: str
    #: The code is changed: at least one stage must write. If False, no stage may.
    changes: bool = False
    #: Other groups whose profiles it can select.
    also: tuple[str, ...] = ()


class PipelineOption(Record):
    """An option of a pipeline."""

    about: str
    values: tuple[str, ...]
    groups: tuple[str, ...]
    #: It describes the profile: a manifest can only set the value that the profile has.
    is_shape: bool = False


GROUPS = ("impl", "review", "plan")
INTENTS: dict[str, Intent] = {
    "safe_impl": Intent(group="impl", changes=True, about="Brief, implement, verify, review."),
    "one_shot_impl": Intent(group="impl", changes=True, about="Brief, implement in one stage, verify."),
    "design_only": Intent(
        group="impl", also=("plan",), about="Brief, test design, review; nothing is changed."
    ),
    "review_only": Intent(group="review", about="One review."),
    "review_cross": Intent(group="review", about="Two reviews, merged into one."),
    "post_impl_review": Intent(
        group="review", about="Reviews, tests and verification of what was implemented."
    ),
}
OPTIONS: dict[str, PipelineOption] = {
    "impl_mode": PipelineOption(
        about="How the change is implemented.",
        values=("safe", "one_shot"),
        groups=("impl",),
        is_shape=True,
    ),
    "review_mode": PipelineOption(
        about="Who reviews.", values=("codex_only", "cross"), groups=("review",), is_shape=True
    ),
    "timeout_mode": PipelineOption(
        about="Whether the time limit of the agent file stops a call (`enforce`) or not (`wait_done`). "
        "`budgets.max_wallclock_sec` always does.",
        values=("enforce", "wait_done"),
        groups=GROUPS,
    ),
    "security_lens": PipelineOption(
        about="Whether a security review runs in parallel to the other reviews: never, always, or if the "
        "task touches security (`auto`).",
        values=("off", "auto", "always"),
        groups=("impl", "review"),
    ),
    "consolidate_mode": PipelineOption(
        about="How several results are merged.", values=("standard",), groups=("review", "plan")
    ),
}
#: (intent, option, value) → the profile that this option selects.
PROFILE_OF = {("review_only", "review_mode", "codex_only"): "codex_only"}
DIGEST_POLICIES = ("off", "auto", "aggressive")
#: The gate after the last stage: a pull request whose checks must pass.
CI = ("off", "draft", "ready")
WORKSPACES = ("in_place", "worktree")
TIMEOUT_MODES = OPTIONS["timeout_mode"].values
