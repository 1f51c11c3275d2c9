"""Copilot CLI: interrupts, errors that no recording has, its file of tokens, and the command lines."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.agents.copilot.adapter import ADAPTER, Copilot
from holdfast.agents.replay import replay
from holdfast.model.events import AgentUsage
from tests.contract.adapters import recorded

SPEC = recorded.launch_spec("copilot", program="/opt/copilot")


@pytest.mark.parametrize("type_", [b"agent.interrupted", b"abort", b"assistant.idle"])
def test_each_sign_of_an_interrupt_is_enough(type_: bytes) -> None:
    signs = (b'"agent.interrupted"', b'"abort"', b'"assistant.idle"')
    lines = [
        line
        for line in recorded.run("copilot/n_term_stubborn").stdout.splitlines(keepends=True)
        if b'"' + type_ + b'"' in line or not any(sign in line[:40] for sign in signs)
    ]
    assert replay(ADAPTER, b"".join(lines), "", 0)["outcome"] == "interrupted"


# ── errors that no recording has ────────────────────────────────────────────


def _run(*lines: tuple[str, dict[str, Any]], exit_code: int = 1) -> bytes:
    made = [{"type": type_, "data": data, "timestamp": "2026-11-15T06:00:00.000Z"} for type_, data in lines]
    last = {"type": "result", "sessionId": "7c1e", "exitCode": exit_code}
    return b"".join(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in [*made, last])


@pytest.mark.parametrize(
    ("error", "outcome", "resets_at"),
    [
        (
            {
                "errorType": "rate_limit",
                "message": "you've hit a rate limit. Please try again in 15 hours 23 minutes.",
            },
            "rate_limit", "2026-11-15T21:23:00.000Z",
        ),
        (
            {"errorType": "rate_limit", "statusCode": 429, "message": "Please retry after 2733 seconds. (x)"},
            "rate_limit", "2026-11-15T06:45:33.000Z",
        ),
        (
            {
                "errorType": "quota", "statusCode": 402, "message": "You have exceeded your monthly quota",
                "quotaSnapshots": {"premium_interactions": {"resetDate": "2026-12-01T00:00:00Z"}},
            },
            "quota", "2026-12-01T00:00:00.000Z",
        ),
        ({"errorType": "query", "statusCode": 503, "message": "503 x"}, "server_error", None),
        ({"errorType": "query", "statusCode": 503, "message": "The model is overloaded"}, "overloaded", None),
        ({"errorType": "query", "statusCode": 403, "message": "403 x"}, "auth", None),
        (
            {"errorType": "query", "message": "Request exceeds the model's prompt budget of 128000"},
            "context_too_long", None,
        ),
        ({"errorType": "query", "message": "who knows"}, "crashed", None),
    ],
)  # fmt: skip
def test_an_error_has_a_class(error: dict[str, Any], outcome: str, resets_at: str | None) -> None:
    found = replay(ADAPTER, _run(("session.error", error)), "", 1)
    assert (found["outcome"], found["resets_at"]) == (outcome, resets_at)


def test_an_error_after_a_lost_connection_is_one_of_the_network() -> None:
    lost = ("model.call_failure", {"failureKind": "transport", "errorMessage": "x"})
    error = ("session.error", {"errorType": "query", "message": "Failed to get response; retried 5 times"})
    assert replay(ADAPTER, _run(lost, error), "", 1)["outcome"] == "network"


def test_an_error_that_nothing_made_good_is_no_success() -> None:
    error = ("session.error", {"errorType": "rate_limit", "message": "x"})
    answer = ("assistant.message", {"content": "done"})
    assert replay(ADAPTER, _run(answer, error, exit_code=0), "", 0)["outcome"] == "rate_limit"
    assert replay(ADAPTER, _run(error, answer, exit_code=0), "", 0)["outcome"] == "success"


def test_an_exit_status_that_contradicts_the_result_is_no_success() -> None:
    assert replay(ADAPTER, recorded.run("copilot/text").stdout, "", 1)["outcome"] == "crashed"


# ── command lines ───────────────────────────────────────────────────────────


@pytest.mark.req("RES-7")
@pytest.mark.parametrize(
    ("changes", "more"),
    [
        ({}, []),
        ({"model": "gpt-5"}, ["--model", "gpt-5"]),
        ({"permissions": "read"}, ["--deny-tool=write", "--deny-tool=shell"]),
        ({"permissions": "edit"}, ["--allow-tool=write", "--allow-tool=shell"]),
        ({"permissions": "full"}, ["--allow-all-tools", "--allow-all-paths"]),
        # Denied tools could not be allowed again.
        ({"permissions": "read", "allowed_tools": ("shell(git)",)}, ["--allow-tool=shell(git)"]),
        ({"allowed_tools": ("shell(echo)", "write")}, ["--allow-tool=shell(echo)", "--allow-tool=write"]),
    ],
)
def test_the_command_line(changes: dict[str, Any], more: list[str]) -> None:
    spec = SPEC.evolve(**changes)
    begin = ["/opt/copilot", "--output-format", "json"]
    assert ADAPTER.launch(spec).argv == [*begin, "--session-id", "7c1e", *more]
    assert ADAPTER.resume(spec).argv == [*begin, "--resume=7c1e", *more]


def test_the_prompt_goes_by_stdin_and_nothing_updates_itself() -> None:
    launch = ADAPTER.launch(SPEC)
    assert launch.stdin == "/packet/prompt.md"
    assert launch.env == {"COPILOT_AUTO_UPDATE": "false"}


def test_the_native_binary_is_looked_for_beside_the_wrapper_and_below_it() -> None:
    native = ADAPTER.capabilities.native
    assert native[:2] == ("../copilot-linux-x64/copilot", "node_modules/@github/copilot-linux-x64/copilot")


def test_its_tokens_come_from_a_file_of_the_attempt() -> None:
    spec = SPEC.evolve(directory="/packet/attempts/001")
    for launch in (ADAPTER.launch(spec), ADAPTER.resume(spec)):
        flag = launch.argv.index("--usage-output-file")
        assert launch.argv[flag + 1] == "/packet/attempts/001/usage.json"
    copilot = Copilot()
    assert copilot.usage_file(spec.directory) == "/packet/attempts/001/usage.json"
    assert copilot.usage_file("") is None


def test_the_file_counts_the_whole_session() -> None:
    (usage,) = Copilot().read_usage(recorded.read("copilot/usage-resumed.json"))
    assert usage == AgentUsage(input_tokens=1334, output_tokens=61, cumulative=True, of_session=True)


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b"null", b'{"modelMetrics":[]}', b'{"modelMetrics":{"m":{}}}', b"\xff"]
)
def test_a_file_that_cannot_be_read_says_nothing(data: bytes) -> None:
    assert Copilot().read_usage(data) == []
