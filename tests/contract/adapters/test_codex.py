"""Codex: errors known by their text, limits, what was cut off, and the command lines."""

from __future__ import annotations

import json

import pytest

from holdfast import clock
from holdfast.agents.codex.adapter import ADAPTER
from holdfast.agents.codex.events import error_kind
from holdfast.agents.replay import fold, replay
from holdfast.agents.shared import reset_times
from holdfast.model.spec import SandboxSpec
from tests.contract.adapters import recorded

BASE = ["/n/codex", "exec", "--json", "-c", "features.plugin_discovery_prefetch=false"]
ID = "01a1de0a-a6b0-7603-bf5e-101b9243f78a"
SPEC = recorded.launch_spec("codex", program="/n/codex", session_id=ID, resume_count=1)


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("unexpected status 401 Unauthorized: bad key, url: http://x", "auth"),
        ("unexpected status 403 Forbidden: no", "auth"),
        ("Missing environment variable: `OPENAI_API_KEY`.", "no_auth"),
        ("unexpected status 503 Service Unavailable: upstream", "server_error"),
        ("Selected model is at capacity. Please try a different model.", "overloaded"),
        ("Codex ran out of room in the model's context window. Start a new thread …", "context_too_long"),
        ("Input exceeds the maximum length of 1048576 characters. (code -32602)", "context_too_long"),
        ("stream disconnected before completion: Rate limit reached for gpt-5 …", "rate_limit"),
        ("The model `gpt-9` does not exist or you do not have access to it.", "model_not_found"),
        ("Reconnecting failed: error sending request for url", "network"),
        ("thread 01a1 already has an active writer", "crashed"),
        ("something that nobody has seen before", "crashed"),
    ],
)
def test_an_error_is_known_by_its_text(message: str, kind: str) -> None:
    assert error_kind(message) == kind


#: 2026-11-15 12:00 UTC.
NOW = clock.parse_iso("2026-11-15T12:00:00Z")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("usage limit reached|1794726612", "2026-11-15T07:10:12.000Z"),
        ("Please try again in 1m20s.", "2026-11-15T12:01:20.000Z"),
        ("Please try again in 28ms.", "2026-11-15T12:00:00.028Z"),
        ("try again in 2 days 3 hours 5 minutes.", "2026-11-17T15:05:00.000Z"),
        ("You've hit your limit · resets 3pm (UTC)", "2026-11-15T15:00:00.000Z"),
        ("You've hit your limit · resets 3am (Europe/Berlin)", "2026-11-16T02:00:00.000Z"),
        ("limit · resets Nov 17, 3pm (UTC)", "2026-11-17T15:00:00.000Z"),
        ("limit · resets Jan 2 at 12:30am (UTC)", "2027-01-02T00:30:00.000Z"),
        ("resets Foo 99, 3pm", None),
        ("try again later", None),
    ],
)
def test_the_end_of_a_limit_is_read_from_its_sentence(text: str, expected: str | None) -> None:
    assert reset_times.find(text, NOW) == expected


def test_a_time_without_a_zone_is_local(monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    monkeypatch.setenv("TZ", "Etc/GMT-2")
    time.tzset()
    try:
        assert reset_times.find("try again at 8:00 AM.", NOW) == "2026-11-16T06:00:00.000Z"
        assert reset_times.find("try again at Nov 18th, 2026 1:05 PM.", NOW) == "2026-11-18T11:05:00.000Z"
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_call_that_was_cut_off_is_named() -> None:
    run = recorded.run("codex/sigKILL_midtool_native")
    (tool,) = fold(ADAPTER, run.stdout).open_tools.values()
    assert (tool.name, tool.summary) == ("command_execution", "/bin/bash -lc 'sleep 120; echo slept'")


def test_a_panic_is_a_crash() -> None:
    run = recorded.run("codex/sigINT_midtool_native")
    assert replay(ADAPTER, run.stdout, "thread 'main' panicked", 101)["outcome"] == "crashed"


@pytest.mark.req("RES-2")
@pytest.mark.parametrize(
    ("changes", "options", "expected"),
    [
        ({}, {}, []),
        ({"model": "gpt-5"}, {}, ["-m", "gpt-5"]),
        ({"permissions": "read"}, {}, ["-s", "read-only"]),
        ({"permissions": "edit"}, {}, ["-s", "workspace-write"]),
        (
            {"permissions": "full"},
            {},
            ["--dangerously-bypass-approvals-and-sandbox", "--skip-git-repo-check"],
        ),
        (
            {"permissions": "full"},
            {"skip_git_repo_check": True},
            ["--dangerously-bypass-approvals-and-sandbox", "--skip-git-repo-check"],
        ),
        ({"permissions": "full"}, {"sandbox": "read-only"}, ["-s", "read-only"]),
        ({}, {"sandbox": "workspace-write"}, ["-s", "workspace-write"]),
        ({"permissions": "edit"}, {"sandbox": "read-only"}, ["-s", "read-only"]),
        ({}, {"skip_git_repo_check": True}, ["--skip-git-repo-check"]),
    ],
)
def test_the_command_line(
    changes: dict[str, object], options: dict[str, object], expected: list[str]
) -> None:
    spec = SPEC.evolve(task=SPEC.task.evolve(options=options), **changes)
    first, again = ADAPTER.launch(spec), ADAPTER.resume(spec)
    assert first.argv == [*BASE, *expected, "-"]
    assert again.argv == [*BASE, *expected, "resume", ID, "-"]
    assert first.stdin == again.stdin == "/packet/prompt.md"
    assert first.home is None


@pytest.mark.req("SBX-1")
@pytest.mark.parametrize("profile", ["read", "edit"])
def test_in_our_sandbox_it_makes_none_of_its_own(profile: str) -> None:
    boxed = SPEC.task.evolve(sandbox=SandboxSpec())
    argv = ADAPTER.launch(SPEC.evolve(task=boxed, permissions=profile)).argv
    assert argv == [*BASE, "--dangerously-bypass-approvals-and-sandbox", "-"]
    chosen = boxed.evolve(options={"sandbox": "read-only"})
    assert ADAPTER.launch(SPEC.evolve(task=chosen, permissions=profile)).argv == [
        *BASE,
        "-s",
        "read-only",
        "-",
    ]


def test_the_home_is_private_and_outlives_the_attempt() -> None:
    home = ADAPTER.launch(SPEC.evolve(state_directory="/t/state")).home
    assert home is not None
    assert (home.variable, home.path, home.default) == ("CODEX_HOME", "/t/state/codex", ".codex")
    assert "auth.json" in home.links
    assert "sessions" not in home.links
    assert home.copies == ("config.toml",)


def test_a_session_of_the_person_is_found_in_the_persons_home() -> None:
    spec = SPEC.evolve(state_directory="/t/state")
    home = ADAPTER.resume(spec.evolve(task=spec.task.evolve(session=ID))).home
    assert home is not None
    assert "sessions" in home.links


@pytest.mark.parametrize(
    ("output", "outcome"),
    [
        ("/bin/bash: line 1: /x/out: Read-only file system\n", "permission_denied_but_finished"),
        ("make: *** [test] Error 1\n", "tool_failed_but_finished"),
    ],
)
def test_a_command_that_meets_the_border_of_the_sandbox_is_denied(output: str, outcome: str) -> None:
    item = {"id": "i1", "type": "command_execution", "command": "echo x > /x/out", "status": "in_progress"}
    ended = {**item, "aggregated_output": output, "exit_code": 1, "status": "failed"}
    lines = [
        {"type": "thread.started", "thread_id": ID},
        {"type": "item.started", "item": item},
        {"type": "item.completed", "item": ended},
        {"type": "item.completed", "item": {"id": "i2", "type": "agent_message", "text": "All done."}},
        {"type": "turn.completed", "usage": {}},
    ]
    stdout = b"".join(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in lines)
    assert replay(ADAPTER, stdout, "", 0)["outcome"] == outcome
