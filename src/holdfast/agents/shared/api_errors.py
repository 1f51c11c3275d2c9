"""Outcomes of refused model requests, for agents that pass on status and text.

The text decides within a status (a 429 can be a rate limit or an empty account). The status decides if the
text is not known. Without a status, only the text counts.
"""

from __future__ import annotations

import re
import time

from holdfast import clock
from holdfast.agents.shared import reset_times, spans

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_CONTEXT = re.compile(
    r"prompt (?:is )?too long|request_too_large|input is too long|context[_ ](?:length|window)[_ ]?exceed"
    r"|exceeds? (?:the |this )?(?:model'?s )?(?:maximum |available )?context"
    r"|maximum (?:context|prompt) length"
    r"|exceeds the maximum number of tokens|input token count.*exceeds|too many tokens|token limit exceeded"
    r"|context window exceeds|greater than the context length|exceeded model token limit",
    re.IGNORECASE,
)
_QUOTA = re.compile(
    r"insufficient[_ ]quota|exceeded your current quota|quota exceeded|credit balance|out of credits|billing"
    r"|payment required|usage[_ ]limit|spending limit|per[- ]day|daily",
    re.IGNORECASE,
)
_RATE = re.compile(r"rate[_ -]?limit|too many requests|resource_exhausted|throttl", re.IGNORECASE)
_OVERLOADED = re.compile(r"overloaded|over capacity|at capacity", re.IGNORECASE)
_MODEL = re.compile(
    r"model[^.\n]{0,120}(?:not found|does not exist|not_found|unknown|not supported)|unknown model"
    r"|model_not_found",
    re.IGNORECASE,
)
_NO_KEY = re.compile(r"no api[- ]?key|api key is missing|missing api key|not logged in|/login", re.IGNORECASE)
_KEY = re.compile(
    r"invalid[_ ](?:x-)?api[_ -]?key|incorrect api key|unauthorized|authentication|forbidden"
    r"|token (?:has )?expired",
    re.IGNORECASE,
)
_NETWORK = re.compile(
    r"\bterminated\b|connect(?:ion)? (?:error|refused|reset|closed|timed)|cannot connect|socket|fetch failed"
    r"|ECONN\w+|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|EPIPE|network|timed? ?out|stream ended|premature close|tls"
    r"|certificate",
    re.IGNORECASE,
)


def kind(status: int | None, text: str) -> str | None:
    """The outcome of a refusal; None if it is not known."""
    if status is None:
        return _by_text(text)
    if status in (401, 403):
        return "auth"
    if status == 402 or (status in (400, 429) and _QUOTA.search(text)):
        return "quota"
    if status == 429:
        return "rate_limit"
    if status == 408:
        return "network"
    if status == 529 or (status >= 500 and _OVERLOADED.search(text)):
        return "overloaded"
    if status >= 500:
        return "server_error"
    if status == 413 or _CONTEXT.search(text):
        return "context_too_long"
    if status == 404 or _MODEL.search(text):
        return "model_not_found"
    return "invalid_request" if status >= 400 else _by_text(text)


def _by_text(text: str) -> str | None:
    table = (
        (_CONTEXT, "context_too_long"),
        (_NO_KEY, "no_auth"),
        (_QUOTA, "quota"),
        (_RATE, "rate_limit"),
        (_OVERLOADED, "overloaded"),
        (_KEY, "auth"),
        (_MODEL, "model_not_found"),
        (_NETWORK, "network"),
    )
    return next((outcome for pattern, outcome in table if pattern.search(text)), None)


# ── reset times ─────────────────────────────────────────────────────────────

_RETRY = re.compile(r"retry (?:in|after) (\d+(?:\.\d+)?) ?s", re.IGNORECASE)
_FIELD = re.compile(r"\\?\"(resets_at|resets_in_seconds|retry_after)\\?\": ?(\d+(?:\.\d+)?)")


def resets_at(text: str, said_at: float, headers: Mapping[str, str] | None = None) -> str | None:
    """When the limit ends, from the server's headers or text; `said_at` is the time of the response."""
    for name, value in (headers or {}).items():
        reset = _by_header(name.lower(), value, said_at)
        if reset is not None:
            return reset
    field = _FIELD.search(text)
    if field is not None:
        number = float(field[2])
        return _time(number if field[1] == "resets_at" else said_at + number, said_at)
    retry = _RETRY.search(text)
    if retry is not None:
        return _time(said_at + float(retry[1]), said_at)
    reset = reset_times.find(text, said_at)
    return _time(clock.parse_iso(reset), said_at) if reset is not None else None


def _by_header(name: str, value: str, said_at: float) -> str | None:
    try:
        match name:
            case "retry-after-ms":
                return _time(said_at + float(value) / 1000, said_at)
            case "retry-after" if value.strip().replace(".", "", 1).isdigit():
                return _time(said_at + float(value), said_at)
            case "retry-after":
                at = time.strptime(value.strip(), "%a, %d %b %Y %H:%M:%S GMT")
                return _time(clock.parse_iso(time.strftime("%Y-%m-%dT%H:%M:%SZ", at)), said_at)
            case "anthropic-ratelimit-unified-reset":
                return _time(float(value), said_at)
            case _:
                return None
    except (ValueError, OverflowError):
        return None


def _time(at: float, said_at: float) -> str | None:
    return clock.iso(at) if said_at < at <= said_at + spans.LONGEST_S else None
