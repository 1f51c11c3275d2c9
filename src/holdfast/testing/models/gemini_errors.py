"""The errors of Gemini."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.testing.models.wire import Refusal

if TYPE_CHECKING:
    from holdfast.testing.models.turns import Failure, FailureKind

_QUOTA = "You exceeded your current quota, please check your plan and billing details."
_TYPES = "type.googleapis.com/google.rpc."

#: kind → (HTTP status, status, message)
ERRORS: dict[FailureKind, tuple[int, str, str]] = {
    "rate_limit": (429, "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota)."),
    "usage_limit": (429, "RESOURCE_EXHAUSTED", _QUOTA),
    "quota": (429, "RESOURCE_EXHAUSTED", _QUOTA),
    "unauthorized": (401, "UNAUTHENTICATED", "API key not valid. Please pass a valid API key."),
    "forbidden": (403, "PERMISSION_DENIED", "The caller does not have permission"),
    "bad_request": (400, "INVALID_ARGUMENT", "Request contains an invalid argument."),
    "model_not_found": (
        404,
        "NOT_FOUND",
        "models/{model} is not found for API version v1beta, or is not supported for generateContent.",
    ),
    "context_too_long": (
        400,
        "INVALID_ARGUMENT",
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    ),
    "server_error": (500, "INTERNAL", "An internal error has occurred. Please retry."),
    "unavailable": (503, "UNAVAILABLE", "The service is currently unavailable."),
    "overloaded": (503, "UNAVAILABLE", "The model is overloaded. Please try again later."),
}


def refusal(failure: Failure, model: str) -> Refusal:
    http_status, status, message = ERRORS[failure.kind]
    http_status = failure.status or http_status
    message = message.replace("{model}", model)
    headers: dict[str, str] = {}
    details: list[dict[str, Any]] = []
    match failure.kind:
        case "rate_limit" if failure.retry_after_s is not None:
            # The CLI reads the delay from the details; other clients read the header.
            headers["Retry-After"] = f"{failure.retry_after_s:g}"
            message = f"{_QUOTA} Please retry in {failure.retry_after_s:g}s."
            details = [_quota_failure("PerMinute", model), _retry_info(failure.retry_after_s)]
        case "usage_limit" | "quota":
            details = [_quota_failure("PerDay", model)]
            if failure.retry_after_s is not None:
                details.append(_retry_info(failure.retry_after_s))
        case "unauthorized":
            details = [
                {
                    "@type": f"{_TYPES}ErrorInfo",
                    "reason": "API_KEY_INVALID",
                    "domain": "googleapis.com",
                }
            ]
        case _:
            pass
    error: dict[str, Any] = {"code": http_status, "message": failure.message or message, "status": status}
    if details:
        error["details"] = details
    return Refusal(http_status, {"error": error}, headers)


def _retry_info(wait_s: float) -> dict[str, Any]:
    return {"@type": f"{_TYPES}RetryInfo", "retryDelay": f"{wait_s:g}s"}


def _quota_failure(period: str, model: str) -> dict[str, Any]:
    violation = {
        "quotaMetric": "generativelanguage.googleapis.com/generate_content_free_tier_requests",
        "quotaId": f"GenerateRequests{period}PerProjectPerModel-FreeTier",
        "quotaDimensions": {"location": "global", "model": model},
        "quotaValue": "10",
    }
    return {"@type": f"{_TYPES}QuotaFailure", "violations": [violation]}
