"""Journals, manifests and gate results of version 0.1.0, which recorded some facts only as text."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.model import events as ev
from holdfast.model import legacy
from holdfast.model.events import decode

MOVED: dict[str, Any] = {"type": "task.moved", "old": "running", "new": "interrupted"}
INTENDED: dict[str, Any] = {"type": "stop.intended", "attempt": 1, "intent": "interrupt"}
TRIAGED: dict[str, Any] = {
    "type": "failure.triaged",
    "stage": "a_run",
    "attempt": 0,
    "outcome": "preflight_failed",
    "failure_class": "tooling",
    "signature": "s",
}


@pytest.mark.parametrize(
    ("line", "field", "value"),
    [
        ({**MOVED, "reason": "r", "interrupt": "holdfast down --now"}, "cause", "down"),
        ({**MOVED, "reason": "which one?"}, "cause", ""),
        ({**INTENDED, "reason": "holdfast down --now"}, "cause", "down"),
        ({**INTENDED, "reason": "which one?"}, "cause", ""),
        ({**TRIAGED, "detail": "codex is not installed: no codex in PATH"}, "missing_program", "codex"),
        ({**TRIAGED, "detail": "there is no git in PATH"}, "missing_program", ""),
        ({"type": "agent.retry", "reason": "rate_limit_error (429)"}, "is_limited", True),
        ({"type": "agent.retry", "reason": "overloaded (529)"}, "is_limited", False),
        ({"type": "agent.retry"}, "is_limited", False),
    ],
)
def test_a_field_that_an_old_journal_lacks_comes_from_its_text(
    line: dict[str, Any], field: str, value: object
) -> None:
    assert getattr(decode(line), field) == value


@pytest.mark.parametrize(
    "event",
    [
        ev.TaskMoved(old="running", new="interrupted", reason="holdfast down --now"),
        ev.StopIntended(attempt=1, intent="interrupt", reason="holdfast down --now"),
        ev.AgentRetry(attempt=1, reason="429"),
        ev.FailureTriaged(
            stage="s", attempt=1, outcome="o", detail="x is not installed", failure_class="c", signature="s"
        ),
    ],
)
def test_in_a_new_journal_the_text_decides_nothing(event: ev.Event) -> None:
    assert decode(ev.encode(event, "2027-01-01T00:00:00.000Z")) == event


@pytest.mark.parametrize(
    ("manifest", "cause"),
    [
        ({"status": "interrupted", "status_reason": "holdfast down --now"}, "down"),
        ({"status": "interrupted", "interrupt": {"reason": "holdfast down --now"}}, "down"),
        ({"status": "interrupted", "status_reason": "401: no key (auth)"}, "failure"),
        ({"status": "abandoned", "status_reason": "no retries; the last failure: 401: no key"}, "failure"),
        ({"status": "interrupted", "status_reason": "which one?"}, ""),
        ({"status": "running", "status_reason": "resume after 401: no key"}, ""),
    ],
)
def test_the_cause_of_an_old_manifest(manifest: dict[str, Any], cause: str) -> None:
    assert legacy.cause_of(manifest, {"detail": "401: no key"}) == cause


def test_a_failure_without_details_is_not_the_cause_of_everything() -> None:
    assert legacy.cause_of({"status": "interrupted", "status_reason": "which one?"}, {"detail": ""}) == ""


def test_the_requests_of_a_reviewer_in_an_old_gate_result() -> None:
    remarks = ["STOP_AND_CONFIRM: the key is out", "a remark", "STOP_AND_CONFIRM"]
    assert legacy.confirmations(remarks) == ["the key is out", ""]
