"""Outcomes of an attempt, and the sets of outcomes that decisions use."""

from __future__ import annotations

from holdfast.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Outcome(Record):
    """The classified end of an attempt."""

    kind: str
    detail: str = ""
    #: When the limit is lifted, if the agent reported it.
    resets_at: str | None = None
    #: False if the program kept no session to resume: the next attempt is a new session with a briefing.
    resumable: bool = True


#: Finished, but the program refused tools that the agent wanted to use.
DENIED = "permission_denied_but_finished"
#: Finished with a result; two of them with a flaw that the summary names.
SUCCESS = frozenset({"success", "tool_failed_but_finished", DENIED})
#: Neither task nor agent is at fault: wait; costs no retry.
MUST_WAIT = frozenset({"rate_limit", "quota", "overloaded"})
#: Of these, the service says when they end.
HAS_RESET_TIME = frozenset({"rate_limit", "quota"})
#: A person must act before a retry can help.
NEEDS_PERSON = frozenset({"auth", "no_auth", "not_trusted", "max_turns", "max_budget"})
#: This agent cannot work until a person acts; another agent may.
CANNOT_SERVE = frozenset({"auth", "no_auth", "spawn_failed", "model_not_found"})
#: A retry cannot help.
FINAL = frozenset({"failed", "usage_error", "invalid_request", "model_not_found"})
#: The session cannot be resumed; a new one with a briefing is needed.
NEEDS_FRESH_SESSION = frozenset({"unknown_session", "context_too_long"})
#: Not known to be the task's fault: resumed; costs no retry.
BLAMELESS = frozenset({"lost", "void"})
#: All other failures: a resume may help; costs a retry.
RESUMABLE = frozenset(
    {
        "crashed",
        "killed",
        "interrupted",
        "truncated",
        "network",
        "server_error",
        "empty_reply",
        "hung",
        "spawn_failed",
        "timeout",
    }
)


def is_at_limit(manifest: dict[str, Any]) -> bool:
    """Whether an attempt of its active stages ended at a limit of the service. One that waits after a crash
    did not."""
    stages: list[dict[str, Any]] = manifest.get("stages") or []
    return any(stage.get("state") == "active" and str(stage.get("outcome")) in MUST_WAIT for stage in stages)


def unannounced_wait_s(waits: int) -> float:
    """How long to wait for a limit without an announced end: 1, 2, 4 … minutes, an hour at most.

    `waits` is the number of attempts in a row that ended at a limit.
    """
    return min(60.0 * 2.0 ** min(max(waits, 1) - 1, 10), 3600.0)
