"""How an attempt can end, and the named sets that decisions are made of."""

from __future__ import annotations

from holdfast.model.record import Record


class Outcome(Record):
    """The classified end of an attempt."""

    kind: str
    detail: str = ""
    #: When the agent said it can go on (rate limits), as a time.
    resets_at: str | None = None
    #: False where the program kept nothing that could go on: the next attempt is a new session with a briefing.
    resumable: bool = True


#: Finished with an answer; two of them with a flaw that the summary names.
SUCCESS = frozenset({"success", "tool_failed_but_finished", "permission_denied_but_finished"})
#: Nothing wrong with task or agent: it waits, and no retry is burned.
MUST_WAIT = frozenset({"rate_limit", "quota", "overloaded"})
#: A person has to do something before another try makes sense.
NEEDS_PERSON = frozenset({"auth", "no_auth", "not_trusted", "max_turns", "max_budget"})
#: This agent cannot work until a person did something; another agent could.
CANNOT_SERVE = frozenset({"auth", "no_auth", "spawn_failed", "model_not_found"})
#: Trying again cannot help.
FINAL = frozenset({"failed", "usage_error", "invalid_request", "model_not_found"})
#: The same session cannot go on; a fresh one with a briefing can.
NEEDS_FRESH_SESSION = frozenset({"unknown_session", "context_too_long"})
#: The task's own fault is unproven: resumed, no retry burned.
BLAMELESS = frozenset({"lost", "void"})
#: Everything else is a failure that a resume may heal.
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
