"""Outcome labels for failures of Claude Code, from error class, status and text."""

from __future__ import annotations

_OF_ERROR = {
    "authentication_failed": "auth",
    "billing_error": "quota",
    "rate_limit": "rate_limit",
    "overloaded": "overloaded",
    "model_not_found": "model_not_found",
    "max_output_tokens": "crashed",
}
_OF_STATUS = {401: "auth", 403: "auth", 404: "model_not_found", 429: "rate_limit", 529: "overloaded"}
#: Texts that decide before error class and status.
_OF_TEXT = (
    ("not logged in", "no_auth"),
    ("prompt is too long", "context_too_long"),
    ("credit balance", "quota"),
    ("usage limit", "quota"),
    ("rate limit", "rate_limit"),
    ("hit your", "quota"),
    ("limit reached", "quota"),
    ("overloaded", "overloaded"),
    ("unable to connect", "network"),
    ("connection", "network"),
    ("timed out", "network"),
    ("timeout", "network"),
)


def of_call(error: str, status: int | None, text: str, *, is_refused: bool) -> str:
    """The outcome label of a failed call: from specific texts, then from the error class, then from the
    status."""
    lowered = text[:1000].lower()
    by_text = (kind for words, kind in _OF_TEXT if words in lowered and (kind != "network" or status is None))
    kind = next(by_text, None) or _OF_ERROR.get(error) or _OF_STATUS.get(status or 0)
    if kind is not None:
        return "quota" if kind == "rate_limit" and is_refused else kind
    if error == "invalid_request" or (status is not None and 400 <= status < 500):
        return "invalid_request"
    return "server_error"


def of_result(subtype: str, terminal_reason: str, text: str) -> str | None:
    """The outcome label of a failed result that is not a failed call."""
    if subtype == "error_max_turns":
        return "max_turns"
    if subtype == "error_max_budget_usd":
        return "max_budget"
    if "No conversation found" in text:
        return "unknown_session"
    if terminal_reason == "prompt_too_long":
        return "context_too_long"
    if terminal_reason.startswith("aborted"):
        return "interrupted"
    if subtype == "error_during_execution":
        return "crashed"
    return None
