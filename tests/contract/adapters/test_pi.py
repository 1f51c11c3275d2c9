"""Pi: how the outcome follows from its lines, errors, and the command lines."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.agents.pi.adapter import ADAPTER
from holdfast.agents.replay import fold, replay
from holdfast.model import events as ev
from tests.contract.adapters import recorded

SESSION = "6f1c9d2e-0000-4000-8000-000000000001"


def line(kind: str, **fields: Any) -> bytes:
    return json.dumps({"type": kind, **fields}, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def message(stop: str, text: str = "", error: str | None = None) -> bytes:
    content = [{"type": "text", "text": text}] if text else []
    usage = {"input": 1, "output": 2, "cost": {"total": 0.5}}
    said = {
        "role": "assistant",
        "content": content,
        "usage": usage,
        "stopReason": stop,
        "timestamp": 1794725920811,
    }
    return line("message_end", message=said if error is None else {**said, "errorMessage": error})


def delta(text: str) -> bytes:
    event = {"type": "text_delta", "contentIndex": 0, "delta": text}
    return line("message_update", usage={"input": 0}, assistantMessageEvent=event)


BEGIN = line("session", version=3, id=SESSION) + line("agent_start")
END = line("agent_end", messages=[], willRetry=False)
OLD_END = line("agent_end", messages=[])
SETTLED = line("agent_settled")
ANSWER = message("stop", "an answer")
RETRY = line("auto_retry_start", attempt=1, maxAttempts=3, delayMs=2000, errorMessage="503")


# ── what was not recorded ───────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("stdout", "exit", "outcome"),
    [
        (BEGIN + ANSWER + END + SETTLED, 0, "success"),
        (BEGIN + ANSWER + OLD_END, 0, "success"),
        # Settled, and stopped because it lingered.
        (BEGIN + ANSWER + END + SETTLED, 143, "success"),
        (BEGIN + ANSWER + END, 143, "interrupted"),
        (BEGIN + ANSWER, 0, "truncated"),
        (BEGIN + ANSWER + line("agent_end", messages=[], willRetry=True), 0, "truncated"),
        (BEGIN + ANSWER + END + SETTLED + b'{"type":"agent_st', 0, "truncated"),
        (BEGIN, 0, "truncated"),
        (b"", 0, "truncated"),
        (b"", 1, "crashed"),
        (BEGIN + ANSWER + END + SETTLED + line("agent_start"), 0, "truncated"),
        (BEGIN + ANSWER + END + SETTLED + line("agent_start"), -9, "killed"),
        (BEGIN + message("toolUse", "x") + END + SETTLED, 0, "truncated"),
        (BEGIN + message("stop") + END + SETTLED, 0, "empty_reply"),
        (BEGIN + message("length", "x") + END + SETTLED, 0, "truncated"),
        (BEGIN + message("aborted", "x") + END + SETTLED, 0, "interrupted"),
        (BEGIN + ANSWER + END + line("agent_settled", aborted=True), 0, "interrupted"),
        (
            BEGIN
            + message("error", error="503 busy")
            + OLD_END
            + RETRY
            + line("agent_start")
            + ANSWER
            + OLD_END,
            0,
            "success",
        ),
        (
            BEGIN + message("error", error="503 busy") + OLD_END + RETRY + line("agent_start") + ANSWER,
            0,
            "truncated",
        ),
        (BEGIN + message("error", error="503 busy") + OLD_END + RETRY, 0, "server_error"),
        (
            BEGIN + line("tool_execution_end", toolCallId="c", isError=True) + ANSWER + END + SETTLED,
            0,
            "tool_failed_but_finished",
        ),
    ],
)
def test_the_outcome_follows_from_status_and_last_event(stdout: bytes, exit: int, outcome: str) -> None:
    assert replay(ADAPTER, stdout, "", exit)["outcome"] == outcome


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ('401: {"message":"no"}', "auth"),
        ("403 forbidden", "auth"),
        ("429 slow down", "rate_limit"),
        ('429: {"type":"insufficient_quota"}', "quota"),
        ("503: the model is overloaded", "overloaded"),
        ("529 x", "overloaded"),
        ("500 x", "server_error"),
        ("400: prompt is too long: 250000 tokens > 200000 maximum", "context_too_long"),
        ("400 bad field", "invalid_request"),
        ("404: the model `x` does not exist", "model_not_found"),
        ("Connection error.", "network"),
        ("fetch failed", "network"),
        ("connect ECONNREFUSED 127.0.0.1:1", "network"),
        ("No API key found for stub.", "no_auth"),
        ("Overloaded", "overloaded"),
        ("something else", "crashed"),
        ("", "crashed"),
    ],
)
def test_an_error_has_a_class(text: str, outcome: str) -> None:
    assert replay(ADAPTER, BEGIN + message("error", error=text) + END + SETTLED, "", 0)["outcome"] == outcome


def test_the_end_of_a_limit_is_read_from_the_last_error() -> None:
    first, second = (
        message("error", error=f"429 {text}") for text in ("try again in 2h", "try again in 90s")
    )
    found = replay(ADAPTER, BEGIN + first + END + RETRY + second + END + SETTLED, "", 0)
    assert (found["outcome"], found["resets_at"]) == ("rate_limit", "2026-11-15T07:00:10.811Z")


@pytest.mark.parametrize(
    ("stderr", "exit", "outcome"),
    [
        ("No session found matching 'x'\n", 1, "unknown_session"),
        ("Fork this session into current directory? [y/N] \n", 0, "unknown_session"),
        ("Error: Unknown option: --nonsense\n", 1, "usage_error"),
        ("No API key found for anthropic.\n\nUse /login to log in\n", 1, "no_auth"),
        ('Error: Model "x" not found. Use --list-models to see available models.\n', 1, "model_not_found"),
        ("Error: write EPIPE\n", 1, "crashed"),
    ],
)
def test_a_refusal_on_stderr_has_a_class(stderr: str, exit: int, outcome: str) -> None:
    assert replay(ADAPTER, b"", stderr, exit)["outcome"] == outcome


def test_an_announced_retry_carries_its_delay() -> None:
    retry = fold(ADAPTER, BEGIN + message("error", error="503") + RETRY).retry
    assert retry is not None
    assert retry.delay_s == 2.0


@pytest.mark.parametrize(
    "pieces", [["a ", "b\n", '"c" \\ {', "é😀"], ["\\", '"}}', '"delta":"x"', '"text_delta"']]
)
def test_a_text_that_was_cut_off_is_put_together_from_its_pieces(pieces: list[str]) -> None:
    stdout = BEGIN + b"".join(map(delta, pieces))
    assert fold(ADAPTER, stdout).last_text == "".join(pieces)


def test_thoughts_and_arguments_are_no_text() -> None:
    other = [{"type": kind, "contentIndex": 0, "delta": "x"} for kind in ("thinking_delta", "toolcall_delta")]
    stdout = BEGIN + b"".join(
        line("message_update", usage={}, assistantMessageEvent=event) for event in other
    )
    assert fold(ADAPTER, stdout).last_text == ""


def test_a_broken_character_costs_no_event() -> None:
    half = message("stop", "half X").replace(b"X", b"\\ud83d")
    assert fold(ADAPTER, BEGIN + half).last_text == "half ?"
    assert fold(ADAPTER, BEGIN + message("stop", "bad X").replace(b"X", b"\xff")).last_text == "bad �"


# ── command lines ───────────────────────────────────────────────────────────

BASE = ["pi", "--mode", "json"]


@pytest.mark.parametrize(
    ("changes", "rest"),
    [
        ({}, []),
        ({"model": "stub/stub-model"}, ["--model", "stub/stub-model"]),
        ({"allowed_tools": ("read", "bash")}, ["--tools", "read,bash"]),
        ({"system_prompt_path": "/a/system.md"}, ["--append-system-prompt", "/a/system.md"]),
        (
            {"options": {"provider": "openai", "thinking": "high"}},
            ["--provider", "openai", "--thinking", "high"],
        ),
        ({"permissions": "read"}, ["--tools", "read,grep,find,ls"]),
        ({"permissions": "edit"}, []),
        ({"permissions": "read", "allowed_tools": ("bash",)}, ["--tools", "bash"]),
        ({"permissions": "full"}, ["--approve"]),
        ({"permissions": "full", "is_root": True}, ["--approve"]),
        ({"max_turns": 3, "budget_usd": 1.0, "settings_path": "/a/s.json"}, []),
    ],
)
def test_a_launch_chooses_the_id_and_a_resume_never_begins_an_empty_session(
    changes: dict[str, Any], rest: list[str]
) -> None:
    spec = recorded.launch_spec("pi", session_id=SESSION, **changes)
    launch, resume = ADAPTER.launch(spec), ADAPTER.resume(spec.evolve(resume_count=1))
    assert launch.argv == [*BASE, "--session-id", SESSION, *rest]
    assert resume.argv == [*BASE, "--session", SESSION, *rest]
    for line in (launch, resume):
        assert (line.stdin, line.env) == ("/packet/prompt.md", {"PI_SKIP_VERSION_CHECK": "1"})


def test_the_program_is_the_one_that_was_found() -> None:
    assert ADAPTER.launch(recorded.launch_spec("pi", program="/opt/pi")).argv[0] == "/opt/pi"


@pytest.mark.parametrize(
    ("tool", "text", "denied"),
    [
        ("write", "Tool write not found", True),
        ("write", "no such directory", False),
        ("frobnicate", "Tool frobnicate not found", False),
    ],
)
def test_a_tool_that_the_profile_leaves_out_is_denied(tool: str, text: str, denied: bool) -> None:
    result = {"content": [{"type": "text", "text": text}], "details": {}}
    line = {"type": "tool_execution_end", "toolCallId": "c1", "toolName": tool, "result": result}
    (finished,) = ADAPTER.reader().read(json.dumps({**line, "isError": True}, separators=(",", ":")).encode())
    assert isinstance(finished, ev.AgentToolFinished)
    assert (finished.is_error, finished.denied) == (True, denied)
