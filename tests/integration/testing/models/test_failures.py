"""Every failure, in the format of every vendor."""

from __future__ import annotations

import time
from typing import Any

import pytest

from holdfast.testing.models import (
    ModelServer,
    Turn,
    bad_request,
    context_too_long,
    failure,
    forbidden,
    model_not_found,
    overloaded,
    quota,
    rate_limit,
    server_error,
    unauthorized,
    unavailable,
    usage_limit,
)
from tests.integration.testing.models.conftest import APIS, Got, ask

TURNS: dict[str, Turn] = {
    "rate_limit": rate_limit(),
    "usage_limit": usage_limit(),
    "quota": quota(),
    "unauthorized": unauthorized(),
    "forbidden": forbidden(),
    "bad_request": bad_request(),
    "model_not_found": model_not_found(),
    "context_too_long": context_too_long(),
    "server_error": server_error(),
    "unavailable": unavailable(),
    "overloaded": overloaded(),
}
#: kind → (status, what the vendor calls it) in the order anthropic, OpenAI, gemini
EXPECTED = {
    "rate_limit": ((429, "rate_limit_error"), (429, "rate_limit_exceeded"), (429, "RESOURCE_EXHAUSTED")),
    "usage_limit": ((429, "rate_limit_error"), (429, "usage_limit_reached"), (429, "RESOURCE_EXHAUSTED")),
    "quota": ((400, "invalid_request_error"), (429, "insufficient_quota"), (429, "RESOURCE_EXHAUSTED")),
    "unauthorized": ((401, "authentication_error"), (401, "invalid_api_key"), (401, "UNAUTHENTICATED")),
    "forbidden": ((403, "permission_error"), (403, "missing_scope"), (403, "PERMISSION_DENIED")),
    "bad_request": (
        (400, "invalid_request_error"),
        (400, "invalid_request_error"),
        (400, "INVALID_ARGUMENT"),
    ),
    "model_not_found": ((404, "not_found_error"), (404, "model_not_found"), (404, "NOT_FOUND")),
    "context_too_long": (
        (400, "invalid_request_error"),
        (400, "context_length_exceeded"),
        (400, "INVALID_ARGUMENT"),
    ),
    "server_error": ((500, "api_error"), (500, "server_error"), (500, "INTERNAL")),
    "unavailable": ((503, "api_error"), (503, "server_error"), (503, "UNAVAILABLE")),
    "overloaded": ((529, "overloaded_error"), (503, "server_is_overloaded"), (503, "UNAVAILABLE")),
}


def kind_of(api: str, got: Got) -> str:
    error: dict[str, Any] = got.json["error"]
    assert isinstance(error["message"], str)
    if api == "anthropic":
        assert got.json["type"] == "error"
        return error["type"]
    if api == "gemini":
        assert error["code"] == got.status
        return error["status"]
    return error["code"] or error["type"]


def test_a_failure_has_the_status_and_body_of_the_vendor(api: str) -> None:
    with ModelServer(list(TURNS.values())) as server:
        for kind in TURNS:
            got = ask(server, api)
            expected = EXPECTED[kind][{"anthropic": 0, "gemini": 2}.get(api, 1)]
            assert (kind, got.status, kind_of(api, got)) == (kind, *expected)
            assert got.headers["content-type"] == "application/json"


def test_a_streamed_request_fails_with_the_same_status(api: str) -> None:
    with ModelServer([rate_limit(2), unauthorized(), overloaded(529)]) as server:
        assert [ask(server, api, stream=True).status for _ in range(3)] == [429, 401, 529]


def test_retry_after_is_announced_only_where_it_is_given(api: str) -> None:
    with ModelServer([rate_limit(), rate_limit(2), rate_limit(0.5)]) as server:
        values = [ask(server, api).headers.get("retry-after") for _ in range(3)]
    assert values == [None, "2", "0.5"]


def test_gemini_puts_the_wait_and_the_quota_into_details() -> None:
    with ModelServer([rate_limit(20), usage_limit(60), quota(), rate_limit()]) as server:
        errors = [ask(server, "gemini").json["error"] for _ in range(4)]
    per_minute, retry = errors[0]["details"]
    assert "PerMinute" in per_minute["violations"][0]["quotaId"]
    assert retry == {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "20s"}
    assert "Please retry in 20s" in errors[0]["message"]
    assert "PerDay" in errors[1]["details"][0]["violations"][0]["quotaId"]
    assert errors[1]["details"][1]["retryDelay"] == "60s"
    assert "PerDay" in errors[2]["details"][0]["violations"][0]["quotaId"]
    assert "details" not in errors[3]


def test_a_usage_limit_says_when_it_resets() -> None:
    with ModelServer([usage_limit(7200).forever()]) as server:
        anthropic, responses = ask(server, "anthropic"), ask(server, "responses")
    expected = time.time() + 7200
    assert anthropic.headers["anthropic-ratelimit-unified-status"] == "rejected"
    assert abs(int(anthropic.headers["anthropic-ratelimit-unified-reset"]) - expected) < 60
    error = responses.json["error"]
    assert error["resets_in_seconds"] == 7200
    assert abs(error["resets_at"] - expected) < 60


def test_responses_reports_these_inside_the_stream_as_the_vendor_does() -> None:
    with ModelServer([context_too_long(), quota()]) as server:
        got = [ask(server, "responses", stream=True) for _ in range(2)]
    assert [one.status for one in got] == [200, 200]
    assert [one.events[-1]["type"] for one in got] == ["response.failed"] * 2
    codes = [one.events[-1]["response"]["error"]["code"] for one in got]
    assert codes == ["context_length_exceeded", "insufficient_quota"]


@pytest.mark.parametrize("api", APIS)
def test_any_failure_can_come_inside_the_stream(api: str) -> None:
    with ModelServer([failure("overloaded", in_stream=True, message="too much")]) as server:
        got = ask(server, api, stream=True)
    assert got.status == 200
    assert "too much" in str(got.events[-1])


def test_the_model_is_named_and_the_message_can_be_set(api: str) -> None:
    with ModelServer(
        [model_not_found(), bad_request("my words"), failure("forbidden", status=451)]
    ) as server:
        assert "some-model" in ask(server, api).json["error"]["message"]
        assert ask(server, api).json["error"]["message"] == "my words"
        assert ask(server, api).status == 451
