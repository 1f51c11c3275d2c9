"""Claude Code: refusals, limits, what was cut off, and the command lines."""

from __future__ import annotations

import json

import pytest

from holdfast.agents.base import End
from holdfast.agents.claude.adapter import ADAPTER
from holdfast.agents.claude.events import Lines
from holdfast.agents.replay import exit_of, fold, replay
from holdfast.model import events as ev
from tests.contract.adapters import recorded

BASE = ["claude", "-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages"]
ID = "8e2f005b-6dfd-4830-8789-13234e1004f6"
SPEC = recorded.launch_spec("claude", session_id=ID)


@pytest.mark.parametrize(
    ("stderr", "kind", "words"),
    [
        ("Error: Session ID 8e2f is already in use.", "unknown_session", "already in use"),
        (
            "--dangerously-skip-permissions cannot be used with root/sudo privileges for security reasons",
            "usage_error",
            "IS_SANDBOX=1",
        ),
        ("Error: piped stdin input exceeds 10MB. Pass …", "usage_error", "10MB"),
        ("Segmentation fault", "crashed", "Segmentation"),
        ("", "crashed", "exit status 1"),
    ],
)
def test_a_refusal_before_any_call(stderr: str, kind: str, words: str) -> None:
    outcome = ADAPTER.classify(End(exit=exit_of(1), stderr_tail=stderr), fold(ADAPTER, b""))
    assert outcome.kind == kind
    assert words in outcome.detail


def test_a_result_that_does_not_say_whether_it_is_an_error_is_no_success() -> None:
    run = recorded.run("claude/a401_maxretries0")
    assert replay(ADAPTER, run.stdout, run.stderr, 1)["outcome"] == "auth"
    assert replay(ADAPTER, run.stdout + b'{"type":"result"}\n', run.stderr, 0)["outcome"] != "success"


def _step(kind: str, caller: str | None = None, **more: object) -> bytes:
    """A step of a call of the model."""
    line = {"type": "stream_event", "event": {"type": kind, **more}, "parent_tool_use_id": caller}
    return json.dumps(line, separators=(",", ":")).encode()


def _began(tokens: int, caller: str | None = None) -> bytes:
    return _step("message_start", caller, message={"usage": {"input_tokens": tokens, "output_tokens": 1}})


def _answered(tokens: int, caller: str | None = None) -> bytes:
    return _step("message_delta", caller, usage={"output_tokens": tokens})


@pytest.mark.req("BUD-9")
@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([_began(1000), _answered(20), _answered(50), _step("message_stop")], [(1000, 50)]),
        # Two calls; the second was cut off, and is known when the log ends.
        ([_began(10), _answered(2), _step("message_stop"), _began(30)], [(10, 2), (30, 1)]),
        # One that broke off and was made again was paid for as well.
        ([_began(10), _began(10), _answered(2), _step("message_stop")], [(10, 1), (10, 2)]),
        # A sub-agent at the same time.
        (
            [_began(1), _began(5, "t1"), _answered(2), _answered(6, "t1"), _step("message_stop", "t1")],
            [(5, 6), (1, 2)],
        ),
        ([_answered(5), _step("message_stop"), _step("message_start"), b'{"type":"stream_event"'], []),
    ],
)
def test_the_tokens_of_a_call_are_known_when_it_ends(
    lines: list[bytes], expected: list[tuple[int, int]]
) -> None:
    reader = Lines()
    events = [event for line in lines for event in reader.read(line)] + reader.finish()
    used = [event for event in events if isinstance(event, ev.AgentUsage)]
    assert [(event.input_tokens, event.output_tokens) for event in used] == expected
    assert not any(event.cumulative for event in used)


def test_the_tokens_of_a_result_replace_those_of_its_calls() -> None:
    run = recorded.run("claude/slow_partial")
    state = fold(ADAPTER, run.stdout)
    assert (state.usage.input_tokens, state.usage.output_tokens) == (1000, 50)
    before_result = b"".join(line for line in run.stdout.splitlines(True) if b'"type":"result"' not in line)
    state = fold(ADAPTER, before_result)
    assert (state.usage.input_tokens, state.usage.output_tokens, state.usage.cost_usd) == (1000, 50, None)


@pytest.mark.req("BUD-9")
@pytest.mark.parametrize(
    ("label", "outcome"),
    [
        ("authentication_failed", "auth"),
        ("billing_error", "quota"),
        ("rate_limit", "rate_limit"),
        ("overloaded", "overloaded"),
        ("model_not_found", "model_not_found"),
        ("max_output_tokens", "crashed"),
        ("invalid_request", "invalid_request"),
        ("server_error", "server_error"),
        ("an_error_of_tomorrow", "server_error"),
    ],
)
def test_the_class_of_an_error_is_enough_where_no_status_was_given(label: str, outcome: str) -> None:
    """The text says nothing, and there is no `api_error_status`."""
    stdout = (
        b'{"type":"assistant","message":{"content":[{"type":"text","text":"API Error"}]},"error":"%s"}\n'
        b'{"type":"result","subtype":"success","is_error":true,"result":"API Error"}\n' % label.encode()
    )
    assert replay(ADAPTER, stdout, "", 1)["outcome"] == outcome


def test_text_that_was_cut_off_is_the_last_text() -> None:
    run = recorded.run("claude/slow_partial")
    head = run.stdout[: run.stdout.index(b'{"type":"assistant"')]
    assert replay(ADAPTER, head, "", -9)["final_text"] == "w0 w1 w2 "


def test_a_refused_plan_limit_says_when_it_ends() -> None:
    stdout = (
        b'{"type":"rate_limit_event","rate_limit_info":'
        b'{"status":"rejected","resetsAt":1778565600,"rateLimitType":"five_hour"}}\n'
        b'{"type":"assistant","message":{"content":[{"type":"text","text":"You\'ve hit your limit"}]},'
        b'"error":"rate_limit"}\n'
        b'{"type":"result","subtype":"success","is_error":true,"api_error_status":429,'
        b'"result":"You\'ve hit your limit"}\n'
    )
    found = replay(ADAPTER, stdout, "", 1)
    assert (found["outcome"], found["resets_at"]) == ("quota", "2026-05-12T06:00:00.000Z")


def test_a_limit_that_was_only_announced_does_not_count() -> None:
    run = recorded.run("claude/text")
    notice = (
        b'{"type":"rate_limit_event","rate_limit_info":{"status":"allowed_warning","resetsAt":1778565600}}\n'
    )
    assert replay(ADAPTER, notice + run.stdout, "", 0)["outcome"] == "success"
    assert fold(ADAPTER, notice).rate_limit is None
    # Nor is a temporary limit taken for used-up credit.
    refused = (
        b'{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"wait"}\n'
    )
    assert replay(ADAPTER, notice + refused, "", 1)["outcome"] == "rate_limit"


def test_half_an_emoji_does_not_lose_the_result() -> None:
    line = b'{"type":"result","subtype":"success","is_error":false,"result":"cut \\ud83d","session_id":"s"}\n'
    assert replay(ADAPTER, line, "", 0)["outcome"] == "success"


def test_a_success_needs_its_exit_status_unless_we_ended_a_lingering_process() -> None:
    run = recorded.run("claude/bgtool")
    attempt = fold(ADAPTER, run.stdout)
    killed = End(exit=exit_of(-9))
    assert ADAPTER.classify(killed, attempt).kind == "killed"
    attempt.intent = ev.StopIntended(attempt=1, intent="linger", reason="")
    assert ADAPTER.classify(killed, attempt).kind == "success"


def test_a_call_that_was_cut_off_is_named() -> None:
    run = recorded.run("claude/sigKILL_midtool")
    (tool,) = fold(ADAPTER, run.stdout).open_tools.values()
    assert (tool.name, tool.summary) == ("Bash", "sleep 120; echo slept")


@pytest.mark.req("LCH-11", "BUD-5", "RES-3")
@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, []),
        ({"model": "sonnet"}, ["--model", "claude-sonnet-5"]),
        ({"model": "claude-haiku-4-5"}, ["--model", "claude-haiku-4-5"]),
        ({"permissions": "full"}, ["--dangerously-skip-permissions"]),
        ({"permissions": "full", "is_root": True}, ["--dangerously-skip-permissions"]),
        (
            {"permissions": "read"},
            ["--permission-mode", "default", "--disallowedTools", "Edit", "Write", "NotebookEdit"],
        ),
        ({"permissions": "edit"}, ["--permission-mode", "acceptEdits", "--allowedTools", "Bash"]),
        (
            {"permissions": "edit", "allowed_tools": ("Bash(make:*)",)},
            ["--permission-mode", "acceptEdits", "--allowedTools", "Bash(make:*)"],
        ),
        ({"max_turns": 3, "budget_usd": 2.5}, ["--max-turns", "3", "--max-budget-usd", "2.5"]),
        ({"system_prompt_path": "/s.md"}, ["--append-system-prompt-file", "/s.md"]),
        ({"settings_path": "/s.json"}, ["--settings", "/s.json"]),
        ({"allowed_tools": ("Read", "Bash(git log:*)")}, ["--allowedTools", "Read", "Bash(git log:*)"]),
    ],
)
def test_the_command_line(changes: dict[str, object], expected: list[str]) -> None:
    first, again = ADAPTER.launch(SPEC.evolve(**changes)), ADAPTER.resume(SPEC.evolve(**changes))
    assert first.argv == [*BASE, "--session-id", ID, *expected]
    assert again.argv == [*BASE, "--resume", ID, *expected]
    assert first.stdin == again.stdin == "/packet/prompt.md"
    assert first.env == again.env == {"DISABLE_AUTOUPDATER": "1"}


def test_a_permission_mode_is_an_option_of_the_task() -> None:
    for profile in ("", "full"):
        spec = recorded.launch_spec("claude", options={"permission_mode": "plan"}, permissions=profile)
        argv = ADAPTER.launch(spec).argv
        assert argv[-2:] == ["--permission-mode", "plan"]
        assert "--dangerously-skip-permissions" not in argv


@pytest.mark.parametrize(
    ("words", "denied"),
    [
        ("<tool_use_error>Error: No such tool available: Write. Write exists but is not enabled", True),
        ("<tool_use_error>Error: No such tool available: AskUserQuestion.", False),
        ("Claude requested permissions to write to /x, but you haven't granted it yet.", True),
    ],
)
def test_a_tool_that_the_profile_takes_away_is_denied(words: str, denied: bool) -> None:
    block = {"type": "tool_result", "tool_use_id": "t1", "is_error": True, "content": words}
    line = {"type": "user", "message": {"role": "user", "content": [block]}}
    (finished,) = ADAPTER.reader().read(json.dumps(line, separators=(",", ":")).encode())
    assert isinstance(finished, ev.AgentToolFinished)
    assert finished.denied is denied


@pytest.mark.parametrize(
    ("status", "error", "is_limited"),
    [(429, "rate_limit", True), (529, "overloaded", False), (500, "line 429", False)],
)
def test_the_status_of_a_retry_says_whether_it_is_a_limit(status: int, error: str, is_limited: bool) -> None:
    line = f'{{"type":"system","subtype":"api_retry","error_status":{status},"error":"{error}"}}'
    (retry,) = ADAPTER.reader().read(line.encode())
    assert isinstance(retry, ev.AgentRetry)
    assert retry.is_limited is is_limited


@pytest.mark.parametrize(
    ("said", "result", "is_new", "words", "report"),
    [
        ("all green", "all green", False, "all green", "all green"),
        ("all green", " all green\n", False, "all green", "all green"),
        ("all green", "", False, "all green", "all green"),
        ("looking around", "The answer is 42", True, "The answer is 42", "The answer is 42"),
        ("all tests are green", "done", True, "done", "all tests are green"),
        ("", "The answer is 42", True, "The answer is 42", "The answer is 42"),
    ],
)
def test_the_text_of_a_result_is_the_last_word_if_it_was_not_said_before(
    said: str, result: str, is_new: bool, words: str, report: str
) -> None:
    message = {"role": "assistant", "content": [{"type": "text", "text": said}]}
    lines = [
        {"type": "assistant", "message": message},
        {"type": "result", "subtype": "success", "is_error": False, "result": result},
    ]
    attempt = fold(ADAPTER, b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    assert attempt.result is not None
    assert (attempt.result.is_new, attempt.last_words, attempt.report) == (is_new, words, report)
