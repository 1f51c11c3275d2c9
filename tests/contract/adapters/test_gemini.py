"""Gemini CLI: errors that no recording has, retries, and the command lines."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.agents.gemini.adapter import ADAPTER
from holdfast.agents.replay import replay
from tests.contract.adapters import recorded

SPEC = recorded.launch_spec("gemini", program="/opt/gemini")


# ── errors that no recording has ────────────────────────────────────────────


def _failed(message: str, status: int, type_: str = "unknown") -> dict[str, Any]:
    line = {
        "type": "result", "timestamp": "2026-11-15T06:00:00.000Z", "status": "error",
        "error": {"type": type_, "message": message},
    }  # fmt: skip
    return replay(ADAPTER, json.dumps(line, separators=(",", ":")).encode() + b"\n", "", status)


@pytest.mark.parametrize(
    ("message", "status", "outcome", "resets_at"),
    [
        ("[API Error: You have exhausted your daily quota on this model.]", 173, "quota", None),
        (
            "[API Error: You have exhausted your capacity on this model. "
            "Your quota will reset after 1h49m8s.]",
            173,
            "quota",
            "2026-11-15T07:49:08.000Z",
        ),
        (
            "[API Error: You exceeded your current quota. Please retry in 20.5s.]",
            173,
            "rate_limit",
            "2026-11-15T06:00:20.500Z",
        ),
        (
            "[API Error: You exceeded your current quota, please check your plan and billing.]",
            173,
            "quota",
            None,
        ),
        ("[API Error: The model is overloaded. Please try again later.]", 247, "overloaded", None),
        ("[API Error: something else]", 244, "server_error", None),
        ("[API Error: API key not valid. Please pass a valid API key.]", 144, "auth", None),
        ("[API Error: the caller may not]", 147, "auth", None),
        (
            "[API Error: The input token count (1200000) exceeds the maximum number of tokens allowed "
            "(1048576).]",
            144,
            "context_too_long",
            None,
        ),
        ('[API Error: {"error":{"code":404,"status":"NOT_FOUND"}}]', 1, "model_not_found", None),
        ("[API Error: Model stream ended with empty response text.]", 0, "empty_reply", None),
        ("[API Error: nobody knows]", 0, "empty_reply", None),
        ("[API Error: nobody knows]", 1, "network", None),
        ("nobody knows", 1, "crashed", None),
    ],
)
def test_an_error_has_a_class(message: str, status: int, outcome: str, resets_at: str | None) -> None:
    found = _failed(message, status)
    assert (found["outcome"], found["resets_at"]) == (outcome, resets_at)


def test_a_session_id_that_was_used_before_needs_a_new_one() -> None:
    found = replay(ADAPTER, b"", 'Session ID "7c1e" already exists. Use --resume to go on.', 42)
    assert found["outcome"] == "unknown_session"


def test_a_prompt_that_was_cut_off_is_no_success() -> None:
    stderr = "Warning: stdin input truncated to 8388608 bytes."
    assert replay(ADAPTER, b"", stderr, 0)["outcome"] == "usage_error"


def test_an_exit_status_that_contradicts_the_result_is_no_success() -> None:
    assert replay(ADAPTER, recorded.run("gemini/text").stdout, "", 1)["outcome"] == "crashed"


@pytest.mark.parametrize(
    ("tool", "error", "message", "outcome"),
    [
        ("run_shell_command", "tool_not_registered", "", "permission_denied_but_finished"),
        ("no_such_tool", "tool_not_registered", "", "tool_failed_but_finished"),
        ("run_shell_command", "policy_violation", "", "permission_denied_but_finished"),
        (
            "write_file",
            "invalid_tool_params",
            'Path not in workspace: Attempted path "/x" resolves outside the allowed workspace directories',
            "permission_denied_but_finished",
        ),
        ("write_file", "invalid_tool_params", "no file_path", "tool_failed_but_finished"),
    ],
)
def test_a_tool_that_was_taken_away_is_a_denied_one(
    tool: str, error: str, message: str, outcome: str
) -> None:
    lines = [
        {"type": "tool_use", "tool_name": tool, "tool_id": "1", "parameters": {"command": "ls"}},
        {
            "type": "tool_result",
            "tool_id": "1",
            "status": "error",
            "error": {"type": error, "message": message},
        },
        {"type": "result", "status": "success"},
    ]
    stdout = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    assert replay(ADAPTER, stdout, "", 0)["outcome"] == outcome


def test_a_long_text_is_kept_from_its_beginning() -> None:
    delta = (
        '{"type":"message","timestamp":"2026-11-15T06:00:00.000Z","role":"assistant",'
        '"content":"%s","delta":true}\n'
    )
    stdout = "".join(delta % f"w{n} " for n in range(20_000)).encode()
    assert replay(ADAPTER, stdout, "", 0)["final_text"] == "".join(f"w{n} " for n in range(40))[:80]


def test_a_retry_is_announced_with_its_delay() -> None:
    reader: Any = ADAPTER.reader()
    (event,) = reader.read_stderr(b"Suggested retry after 20s.. Retrying after 23812ms...")
    assert event.delay_s == 23.812


# ── command lines ───────────────────────────────────────────────────────────


@pytest.mark.req("RES-7")
@pytest.mark.parametrize(
    ("changes", "more"),
    [
        ({}, []),
        ({"model": "gemini-2.5-pro"}, ["-m", "gemini-2.5-pro"]),
        ({"permissions": "full"}, ["--approval-mode", "yolo", "--skip-trust"]),
        ({"permissions": "read"}, ["--approval-mode", "default"]),
        (
            {"permissions": "edit"},
            ["--approval-mode", "auto_edit", "--allowed-tools=run_shell_command"],
        ),
        (
            {"permissions": "edit", "allowed_tools": ("write_file",)},
            ["--approval-mode", "auto_edit", "--allowed-tools=write_file"],
        ),
        (
            {"allowed_tools": ("run_shell_command(echo)", "write_file")},
            ["--allowed-tools=run_shell_command(echo)", "--allowed-tools=write_file"],
        ),
    ],
)
def test_the_command_line(changes: dict[str, Any], more: list[str]) -> None:
    spec = SPEC.evolve(**changes)
    begin = ["/opt/gemini", "-o", "stream-json"]
    assert ADAPTER.launch(spec).argv == [*begin, "--session-id", "7c1e", *more]
    assert ADAPTER.resume(spec).argv == [*begin, "--resume", "7c1e", *more]


@pytest.mark.parametrize(
    ("options", "profile", "more"),
    [
        ({"approval_mode": "default", "sandbox": False}, "", []),
        (
            {"approval_mode": "default"},
            "edit",
            ["--approval-mode", "auto_edit", "--allowed-tools=run_shell_command"],
        ),
        ({"approval_mode": "plan"}, "full", ["--approval-mode", "plan"]),
        ({"sandbox": True}, "", ["--sandbox"]),
    ],
)
def test_options_of_its_agents_file_are_flags(
    options: dict[str, object], profile: str, more: list[str]
) -> None:
    spec = SPEC.evolve(task=SPEC.task.evolve(options=options), permissions=profile)
    assert ADAPTER.launch(spec).argv[5:] == more


def test_the_prompt_goes_by_stdin_and_the_program_is_one_process() -> None:
    launch = ADAPTER.launch(SPEC)
    assert launch.stdin == "/packet/prompt.md"
    assert launch.env == {"GEMINI_CLI_NO_RELAUNCH": "1"}
    settings_path = ADAPTER.launch(SPEC.evolve(settings_path="/s.json")).env[
        "GEMINI_CLI_SYSTEM_SETTINGS_PATH"
    ]
    assert settings_path == "/s.json"
