"""Intents, and the options that a manifest may set: what there is to choose from."""

from __future__ import annotations

from holdfast.model.record import Record


class Intent(Record):
    """What a packet is for. The profile of the same name, in this group, is how."""

    group: str
    about: str
    #: The code is changed: then a stage must write. Otherwise none may.
    changes: bool = False
    #: Further groups whose profiles it may choose.
    also: tuple[str, ...] = ()


class Choice(Record):
    """An option of a pipeline."""

    about: str
    values: tuple[str, ...]
    groups: tuple[str, ...]
    #: It tells the shape of a profile: a manifest may say it where the profile says the same, and nothing else.
    is_shape: bool = False


GROUPS = ("impl", "review", "plan")
INTENTS: dict[str, Intent] = {
    "safe_impl": Intent(group="impl", changes=True, about="Brief, implement, verify, review."),
    "one_shot_impl": Intent(group="impl", changes=True, about="Brief, do it in one go, verify."),
    "design_only": Intent(
        group="impl", also=("plan",), about="Brief, test design, review: nothing is changed."
    ),
    "review_only": Intent(group="review", about="One review."),
    "review_cross": Intent(group="review", about="Two reviews, and one made of both."),
    "post_impl_review": Intent(
        group="review", about="Reviews, tests and verification of what was implemented."
    ),
}
OPTIONS: dict[str, Choice] = {
    "impl_mode": Choice(
        about="How it is implemented.", values=("safe", "one_shot"), groups=("impl",), is_shape=True
    ),
    "review_mode": Choice(
        about="Who reviews.", values=("codex_only", "cross"), groups=("review",), is_shape=True
    ),
    "timeout_mode": Choice(
        about="Whether the time limit of the agent's file stops a call (enforce) or not (wait_done). "
        "budgets.max_wallclock_sec always does.",
        values=("enforce", "wait_done"),
        groups=GROUPS,
    ),
    "security_lens": Choice(
        about="Whether a review for security alone runs beside the others: always, or where the task touches what it is for "
        "(auto).",
        values=("off", "auto", "always"),
        groups=("impl", "review"),
    ),
    "consolidate_mode": Choice(
        about="How several results become one.", values=("standard",), groups=("review", "plan")
    ),
}
#: Where an option chooses the profile: it is still the intent, done in another way.
PROFILE_OF = {("review_only", "review_mode", "codex_only"): "codex_only"}
DIGEST_POLICIES = ("off", "auto", "aggressive")
WORKSPACES = ("in_place", "worktree")
TIMEOUT_MODES = OPTIONS["timeout_mode"].values
