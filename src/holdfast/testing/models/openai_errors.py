"""The errors of OpenAI, which both of its APIs share."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from holdfast.testing.models.wire import Refusal

if TYPE_CHECKING:
    from holdfast.testing.models.turns import Failure, FailureKind

#: kind → (status, type, code, message)
ERRORS: dict[FailureKind, tuple[int, str, str | None, str]] = {
    "rate_limit": (
        429,
        "tokens",
        "rate_limit_exceeded",
        "Rate limit reached for {model} on tokens per min (TPM): Limit 30000, Used 30000, Requested 1000.",
    ),
    "usage_limit": (429, "usage_limit_reached", None, "The usage limit has been reached"),
    "quota": (
        429,
        "insufficient_quota",
        "insufficient_quota",
        "You exceeded your current quota, please check your plan and billing details.",
    ),
    "unauthorized": (401, "invalid_request_error", "invalid_api_key", "Incorrect API key provided."),
    "forbidden": (
        403,
        "invalid_request_error",
        "missing_scope",
        "You have insufficient permissions for this operation. Missing scopes: model.request.",
    ),
    "bad_request": (400, "invalid_request_error", "invalid_request_error", "The request is not valid."),
    "model_not_found": (
        404,
        "invalid_request_error",
        "model_not_found",
        "The model `{model}` does not exist or you do not have access to it.",
    ),
    "context_too_long": (
        400,
        "invalid_request_error",
        "context_length_exceeded",
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 250000 "
        "tokens. Please reduce the length of the messages.",
    ),
    "server_error": (
        500,
        "server_error",
        None,
        "The server had an error while processing your request. Sorry about that!",
    ),
    "unavailable": (503, "server_error", None, "Service Unavailable"),
    "overloaded": (
        503,
        "service_unavailable_error",
        "server_is_overloaded",
        "Our servers are currently overloaded. Please try again later.",
    ),
}


def refusal(failure: Failure, model: str) -> Refusal:
    status, kind, code, message = ERRORS[failure.kind]
    message = message.replace("{model}", model)
    headers: dict[str, str] = {}
    error: dict[str, Any] = {"message": message, "type": kind, "param": None, "code": code}
    wait_s = failure.retry_after_s
    if failure.kind == "usage_limit":
        seconds = int(wait_s or 0)
        error |= {
            "plan_type": "plus",
            "resets_at": int(time.time()) + seconds,
            "resets_in_seconds": seconds,
        }
    elif wait_s is not None:
        headers["Retry-After"] = f"{wait_s:g}"
        error["message"] += f" Please try again in {wait_s:g}s."
    if failure.message is not None:
        error["message"] = failure.message
    return Refusal(failure.status or status, {"error": error}, headers)
