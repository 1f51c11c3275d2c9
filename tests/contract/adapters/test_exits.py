"""The exit status and stderr of each program are mapped to outcomes: a missing program, a usage error, a
failure, a timeout."""

from __future__ import annotations

import pytest

from holdfast.agents import registry
from holdfast.agents.replay import replay
from holdfast.model import outcome as oc
from holdfast.pipeline.triage import Failure, FailureClass, triage
from tests.contract.adapters.recorded import AGENTS

BAD_INPUT, NO_LOGIN, BUDGET = FailureClass.TOOLING, FailureClass.AUTH, FailureClass.BUDGET
PASSING, NO_IDEA = FailureClass.TRANSIENT, FailureClass.UNKNOWN
NOT_TRUSTED = "Not inside a trusted directory and --skip-git-repo-check was not specified."
#: Program, exit status (negative: a signal), its words on stderr → outcome, class.
EXITS = [
    ("gemini", 1, "Unknown argument: frob", "usage_error", BAD_INPUT),
    ("gemini", 41, "Please set an Auth method", "no_auth", NO_LOGIN),
    ("gemini", 42, "No input provided via stdin.", "usage_error", BAD_INPUT),
    ("gemini", 42, "Error resuming session: Invalid session identifier", "unknown_session", PASSING),
    ("gemini", 44, "no sandbox", "usage_error", BAD_INPUT),
    ("gemini", 52, "Invalid settings", "usage_error", BAD_INPUT),
    ("gemini", 53, "Reached max session turns", "max_turns", BUDGET),
    ("gemini", 55, "not trusted", "not_trusted", NO_LOGIN),
    ("gemini", 429 % 256, "", "rate_limit", PASSING),
    ("gemini", 503 % 256, "", "server_error", PASSING),
    ("gemini", 130, "", "interrupted", PASSING),
    ("gemini", 1, "", "crashed", NO_IDEA),
    ("codex", 2, "error: unexpected argument '--frob' found", "usage_error", BAD_INPUT),
    ("codex", 1, "No prompt provided via stdin.", "usage_error", BAD_INPUT),
    ("codex", 1, NOT_TRUSTED, "not_trusted", NO_LOGIN),
    ("codex", 101, "thread 'main' panicked at src/main.rs:1", "crashed", NO_IDEA),
    ("copilot", 1, "error: unknown option '--frob'", "usage_error", BAD_INPUT),
    ("copilot", 1, "Error: No authentication information found.", "no_auth", NO_LOGIN),
    ("copilot", 1, "Error: No session or task matched 'x'", "unknown_session", PASSING),
    ("copilot", 1, "", "crashed", NO_IDEA),
    ("claude", 1, "error: unknown option '--frob'", "usage_error", BAD_INPUT),
    ("claude", 1, "No conversation found with session ID: x", "unknown_session", PASSING),
    ("claude", 143, "", "interrupted", PASSING),
    ("claude", 3, "", "crashed", NO_IDEA),
    ("opencode", 1, "You must provide a message or a command", "usage_error", BAD_INPUT),
    ("opencode", 1, "Error: Session not found", "unknown_session", PASSING),
    ("opencode", 3, "", "crashed", NO_IDEA),
    ("pi", 3, "", "crashed", NO_IDEA),
    ("command", 3, "", "failed", NO_IDEA),
    *((name, -9, "", "killed", PASSING) for name in AGENTS),
    *((name, -15, "", "interrupted", PASSING) for name in AGENTS),
]  # fmt: skip
KNOWN = (
    oc.SUCCESS
    | oc.MUST_WAIT
    | oc.NEEDS_PERSON
    | oc.FINAL
    | oc.NEEDS_FRESH_SESSION
    | oc.BLAMELESS
    | oc.RESUMABLE
)


@pytest.mark.req("PIP-12")
@pytest.mark.parametrize(("agent", "code", "stderr", "outcome", "kind"), EXITS)
def test_an_exit_is_a_typed_outcome(
    agent: str, code: int, stderr: str, outcome: str, kind: FailureClass
) -> None:
    found = replay(registry.adapter(agent), b"", stderr, code)
    assert found["outcome"] == outcome
    assert outcome in KNOWN
    failure = Failure(stage="s", outcome=found["outcome"], detail=found["detail"], stderr_excerpt=stderr)
    assert triage(failure).failure_class == kind


@pytest.mark.req("PIP-12")
@pytest.mark.parametrize("agent", [name for name in registry.names() if name != "scripted"])
@pytest.mark.parametrize(
    "code", [1, 2, 10, 11, 12, 13, 14, 30, 31, 33, 41, 42, 53, 124, 126, 127, 255, -6, -11]
)
def test_no_exit_without_a_result_is_a_success_or_without_a_type(agent: str, code: int) -> None:
    found = replay(registry.adapter(agent), b"", "", code)["outcome"]
    assert found in KNOWN
    assert found not in oc.SUCCESS


@pytest.mark.req("PIP-12", "SUP-13")
@pytest.mark.parametrize("agent", [name for name in registry.names() if name not in ("scripted", "command")])
@pytest.mark.parametrize("stderr", ["", "Error: read ECONNRESET\n"])
def test_exit_status_0_without_a_result_is_no_success(agent: str, stderr: str) -> None:
    found = replay(registry.adapter(agent), b"", stderr, 0)["outcome"]
    assert found in KNOWN
    assert found not in oc.SUCCESS


@pytest.mark.req("PIP-12")
@pytest.mark.parametrize(
    ("outcome", "kind"),
    [
        ("spawn_failed", FailureClass.TOOLING),
        ("usage_error", FailureClass.TOOLING),
        ("failed", FailureClass.UNKNOWN),
        ("timeout", FailureClass.TIMEOUT),
    ],
)
def test_missing_tool_bad_input_failure_and_timeout_are_distinguished(
    outcome: str, kind: FailureClass
) -> None:
    assert triage(Failure(stage="s", outcome=outcome)).failure_class == kind
