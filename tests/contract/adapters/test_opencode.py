"""OpenCode: how the outcome follows from its lines, its log, and the command lines."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.agents.opencode.adapter import ADAPTER
from holdfast.agents.opencode.events import OpencodeLines
from holdfast.agents.replay import fold, replay
from holdfast.model import events as ev
from tests.contract.adapters import recorded

SESSION = "ses_e2201b921ffeEL1o1kEjdEHo7S"


def line(kind: str, **fields: Any) -> bytes:
    return (
        json.dumps({"type": kind, "timestamp": 1794725920811, "sessionID": SESSION, **fields}).encode()
        + b"\n"
    )


def step(reason: str, *between: bytes) -> bytes:
    tokens = {"input": 1, "output": 2}
    finish = line("step_finish", part={"reason": reason, "tokens": tokens, "cost": 0.5})
    return line("step_start", part={}) + b"".join(between) + finish


def api_error(status: int | None, message: str, **headers: str) -> bytes:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    data = {"message": message, "statusCode": status, "isRetryable": True, "responseHeaders": named}
    return line("error", error={"name": "APIError", "data": {k: v for k, v in data.items() if v is not None}})


SYNTHETIC = line("text", part={"type": "text", "synthetic": True, "text": "Continue if you have next steps"})
TEXT = line("text", part={"type": "text", "text": "an answer"})


# ── what was not recorded ───────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("stdout", "exit", "outcome"),
    [
        (api_error(401, "bad key"), 1, "auth"),
        (api_error(403, "forbidden"), 1, "auth"),
        (api_error(402, "pay"), 1, "quota"),
        (api_error(429, "You exceeded your current quota"), 1, "quota"),
        (api_error(503, "busy"), 1, "server_error"),
        (api_error(503, "The server is overloaded"), 1, "overloaded"),
        (api_error(529, "x"), 1, "overloaded"),
        (api_error(400, "prompt is too long: 250000 tokens"), 1, "context_too_long"),
        (api_error(400, "bad field"), 1, "invalid_request"),
        (api_error(404, "The model `x` does not exist"), 1, "model_not_found"),
        (line("error", error={"name": "ProviderAuthError", "data": {"message": "no key"}}), 1, "no_auth"),
        (
            line("error", error={"name": "ContextOverflowError", "data": {"message": "x"}}),
            1,
            "context_too_long",
        ),
        (
            line("error", error={"name": "UnknownError", "data": {"message": "Unexpected server error"}}),
            1,
            "usage_error",
        ),
        (
            step("stop", TEXT) + line("error", error={"name": "UnknownError", "data": {"message": "Oh"}}),
            1,
            "crashed",
        ),
        (step("stop"), 0, "empty_reply"),
        (step("length", TEXT), 0, "truncated"),
        (step("stop", TEXT), 0, "success"),
        (step("stop", TEXT), 1, "crashed"),
        (step("stop", TEXT), -15, "interrupted"),
        (step("stop", TEXT), -11, "crashed"),
        (step("tool-calls", TEXT), 0, "truncated"),
        (step("stop", TEXT) + line("step_start", part={}), 0, "truncated"),
        (step("stop", TEXT) + step("tool-calls"), 0, "truncated"),
        (step("stop", TEXT) + SYNTHETIC, 0, "truncated"),
        (step("stop", TEXT) + b'{"type":"step_st', 0, "truncated"),
        (b"", 0, "truncated"),
        (b"", 1, "crashed"),
    ],
)
def test_the_outcome_follows_from_status_last_step_and_error(stdout: bytes, exit: int, outcome: str) -> None:
    assert replay(ADAPTER, stdout, "", exit)["outcome"] == outcome


@pytest.mark.parametrize(
    ("stderr", "outcome"),
    [
        ("\x1b[91mError: \x1b[0mSession not found\n", "unknown_session"),
        ("Error: You must provide a message or a command\n", "usage_error"),
        ("EPIPE: broken pipe, write\n", "crashed"),
    ],
)
def test_a_refusal_on_stderr_has_a_class(stderr: str, outcome: str) -> None:
    assert replay(ADAPTER, b"", stderr, 1)["outcome"] == outcome


@pytest.mark.parametrize(
    ("headers", "message", "resets_at"),
    [
        ({"retry_after": "150"}, "x", "2026-11-15T07:01:10.811Z"),
        ({"retry_after_ms": "1500"}, "x", "2026-11-15T06:58:42.311Z"),
        ({"retry_after": "Sun, 15 Nov 2026 08:00:00 GMT"}, "x", "2026-11-15T08:00:00.000Z"),
        ({}, "Please retry in 34.5s.", "2026-11-15T06:59:15.311Z"),
        ({}, "Rate limit reached, try again in 2m0s", "2026-11-15T07:00:40.811Z"),
        ({"retry_after": "99999999999"}, "x", None),
        ({"retry_after": "soon"}, "x", None),
        ({}, "x", None),
    ],
)
def test_the_end_of_a_limit_is_read(headers: dict[str, str], message: str, resets_at: str | None) -> None:
    found = replay(ADAPTER, api_error(429, message, **headers), "", 1)
    assert (found["outcome"], found["resets_at"]) == ("rate_limit", resets_at)


def test_what_it_writes_in_the_name_of_the_user_is_not_the_agents_text() -> None:
    assert fold(ADAPTER, step("stop", TEXT) + SYNTHETIC).last_text == "an answer"


def test_a_broken_character_costs_no_event() -> None:
    cut = b'{"type":"text","sessionID":"s","part":{"text":"half \\ud83d"}}\n'
    raw = b'{"type":"text","sessionID":"s","part":{"text":"bad \xff"}}\n'
    assert fold(ADAPTER, cut).last_text == "half ?"
    assert fold(ADAPTER, raw).last_text == "bad �"


def test_a_line_of_twenty_megabytes_is_one_tool_call_with_a_short_summary() -> None:
    state = {"status": "completed", "input": {"content": "é" * 5_000_000}, "output": "x" * 10_000_000}
    attempt = fold(ADAPTER, line("tool_use", part={"tool": "write", "callID": "c", "state": state}))
    assert (attempt.tools_started, attempt.tools_finished) == (1, 1)


# ── command lines ───────────────────────────────────────────────────────────

BASE = ["opencode", "run", "--format", "json", "--print-logs", "--log-level", "INFO"]
TITLE = ["--title", "holdfast:tsk_1:0"]


@pytest.mark.parametrize(
    ("changes", "rest"),
    [
        ({}, TITLE),
        ({"model": "stub/stub-model"}, [*TITLE, "--model", "stub/stub-model"]),
        (
            {"options": {"agent": "build", "variant": "high"}},
            [*TITLE, "--agent", "build", "--variant", "high"],
        ),
        ({"resume_count": 2}, ["--title", "holdfast:tsk_1:2"]),
        ({"max_turns": 3, "budget_usd": 1.0}, TITLE),
    ],
)
def test_a_launch_takes_each_wish_as_a_flag(changes: dict[str, Any], rest: list[str]) -> None:
    launch = ADAPTER.launch(recorded.launch_spec("opencode", session_id=None, **changes))
    assert launch.argv == [*BASE, *rest]
    assert launch.stdin == "/packet/prompt.md"
    assert launch.env == {"OPENCODE_DISABLE_AUTOUPDATE": "1"}


@pytest.mark.parametrize(
    ("profile", "rest", "rules"),
    [
        ("read", [], {"edit": "deny", "bash": "deny", "external_directory": "deny"}),
        ("edit", [], {"edit": "allow", "bash": "allow", "external_directory": "deny"}),
        ("full", ["--auto"], {"edit": "allow", "bash": "allow", "external_directory": "allow"}),
    ],
)
def test_a_permission_profile_is_a_variable(profile: str, rest: list[str], rules: dict[str, str]) -> None:
    launch = ADAPTER.launch(recorded.launch_spec("opencode", session_id=None, permissions=profile))
    assert launch.argv == [*BASE, *TITLE, *rest]
    assert json.loads(launch.env["OPENCODE_PERMISSION"]) == rules


def test_allowed_tools_win_over_the_profile() -> None:
    spec = recorded.launch_spec("opencode", permissions="edit", allowed_tools=("read",))
    assert json.loads(ADAPTER.launch(spec).env["OPENCODE_PERMISSION"]) == {"*": "deny", "read": "allow"}


def test_resume_names_the_session_and_repeats_all_flags() -> None:
    launch = ADAPTER.resume(
        recorded.launch_spec(
            "opencode", program="/bin/oc", session_id=SESSION, model="a/b", permissions="full", resume_count=1
        )
    )
    assert launch.argv == ["/bin/oc", *BASE[1:], "--session", SESSION, "--model", "a/b", "--auto"]
    assert launch.stdin == "/packet/prompt.md"


def test_what_has_no_flag_goes_by_variables() -> None:
    launch = ADAPTER.launch(
        recorded.launch_spec(
            "opencode",
            allowed_tools=("read", "write"),
            settings_path="/a/oc.json",
            system_prompt_path="/a/system.md",
        )
    )
    assert launch.argv == [*BASE, *TITLE]
    assert launch.env["OPENCODE_CONFIG"] == "/a/oc.json"
    assert launch.env["OPENCODE_PERMISSION"] == '{"*":"deny","read":"allow","edit":"allow"}'
    assert json.loads(launch.env["OPENCODE_CONFIG_CONTENT"]) == {"instructions": ["/a/system.md"]}


@pytest.mark.parametrize(
    ("content", "merged"),
    [
        (
            '{"model": "a/b", "instructions": ["x.md"]}',
            {"model": "a/b", "instructions": ["x.md", "/a/system.md"]},
        ),
        ('{"instructions": 3}', {"instructions": ["/a/system.md"]}),
        ("[", {"instructions": ["/a/system.md"]}),
        ("[1]", {"instructions": ["/a/system.md"]}),
    ],
)
def test_a_system_prompt_adds_to_the_configuration_of_the_person(
    content: str, merged: dict[str, Any]
) -> None:
    launch = ADAPTER.launch(
        recorded.launch_spec(
            "opencode", system_prompt_path="/a/system.md", env={"OPENCODE_CONFIG_CONTENT": content}
        )
    )
    assert json.loads(launch.env["OPENCODE_CONFIG_CONTENT"]) == merged


# ── its log ─────────────────────────────────────────────────────────────────


def logged(name: str) -> list[list[ev.AgentEvent]]:
    """The events of each line of stderr that has some."""
    reader = OpencodeLines()
    lines = recorded.read(f"opencode/{name}.stderr.txt").splitlines()
    return [events for line in lines if (events := reader.read_stderr(line))]


@pytest.mark.req("RES-3")
def test_a_session_is_named_when_it_is_made_long_before_an_answer() -> None:
    (session,), (limit,) = logged("logs-429-3600")
    assert session == ev.AgentSession(session_id="ses_e20e5bb87ffe1PevC6YlgW42sw")
    assert isinstance(limit, ev.AgentRateLimit)
    assert limit.resets_at == "2026-11-15T13:06:45.246Z"
    assert "try again in 3600s" in limit.reason


def test_a_short_wait_is_announced_as_a_retry() -> None:
    _, *retries = logged("logs-503")
    assert [len(events) for events in retries] == [1, 1, 1]
    assert all(isinstance(events[0], ev.AgentRetry) and events[0].delay_s is None for events in retries)
    line = (
        b'timestamp=2026-11-15T12:00:00.000Z level=ERROR run=1 message="stream error" '
        b'providerID=p small=false error.error="%s"'
    )
    limit, retry = OpencodeLines().read_stderr(
        line % b"AI_APICallError: Rate limit. Please try again in 20s."
    )
    assert isinstance(limit, ev.AgentRateLimit)
    assert limit.resets_at == "2026-11-15T12:00:20.000Z"
    assert isinstance(retry, ev.AgentRetry)
    assert retry.delay_s == 20.0
    assert OpencodeLines().read_stderr(line % b"AI_APICallError: Incorrect API key provided.") == []


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"timestamp=",
        b"timestamp=x level=INFO run=1 message=created id=ses_1 parentID=ses_0 title=t",
        b"timestamp=x level=INFO run=1 message=evaluated "
        b'pattern="message=created id=ses_1 x parentID=undefined y"',
        b"echo timestamp=x level=INFO run=1 message=created id=ses_1 x parentID=undefined y",
        b'timestamp=x level=ERROR run=1 message="stream error" providerID=p small=true '
        b'error.error="Rate limit"',
        b"timestamp=\xff level=ERROR run=1 message=\xff",
    ],
)
def test_a_line_that_only_looks_like_it_is_no_event(line: bytes) -> None:
    assert OpencodeLines().read_stderr(line) == []


def test_a_session_is_reported_once_and_a_subagent_never() -> None:
    reader = OpencodeLines()
    created = b"timestamp=x level=INFO run=1 message=created id=%s directory=/p parentID=%s title=t"
    assert reader.read_stderr(created % (SESSION.encode(), b"undefined"))
    assert reader.read_stderr(created % (b"ses_child", SESSION.encode())) == []
    assert reader.read(line("step_start", part={})) == []


def test_its_log_is_for_developers_but_for_the_errors() -> None:
    reader = OpencodeLines()
    lines = recorded.read("opencode/logs-429-3600.stderr.txt").splitlines()
    shown = [line for line in lines if not reader.hides_stderr(line)]
    assert len(shown) == 2
    assert not reader.hides_stderr(b"permission requested: external_directory (...); auto-rejecting")


def test_what_it_says_to_people_is_not_lost_among_its_log() -> None:
    stderr = (
        "timestamp=x level=INFO run=1 message=init\nError: Session not found\n"
        "timestamp=y level=INFO message=z\n"
    )
    found = replay(ADAPTER, b"", stderr, 1)
    assert found["outcome"] == "unknown_session"
    assert (
        replay(ADAPTER, b"", "timestamp=x level=INFO a\n", 1)["detail"] == "exit status 1: nothing on stderr"
    )


@pytest.mark.parametrize(
    ("tool", "outcome"), [("write", "permission_denied_but_finished"), ("nothing", "success")]
)
def test_a_tool_that_the_permissions_take_away_is_denied(tool: str, outcome: str) -> None:
    error = f"Model tried to call unavailable tool '{tool}'. Available tools: glob, grep, invalid, read."
    state = {"status": "completed", "input": {"tool": tool, "error": error}, "output": error}
    parts: list[tuple[str, dict[str, Any]]] = [
        ("step_start", {}),
        ("tool_use", {"type": "tool", "tool": "invalid", "callID": "c1", "state": state}),
        ("step_finish", {"reason": "tool-calls"}),
        ("step_start", {}),
        ("text", {"text": "All done."}),
        ("step_finish", {"reason": "stop"}),
    ]
    lines = [{"type": kind, "timestamp": 1, "sessionID": SESSION, "part": part} for kind, part in parts]
    stdout = b"".join(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in lines)
    assert replay(ADAPTER, stdout, "", 0)["outcome"] == outcome
