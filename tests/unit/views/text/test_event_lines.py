"""Events as lines: one way of counting attempts."""

from __future__ import annotations

from holdfast.model.attempt_numbers import AttemptNumbers
from holdfast.views.text import event_lines

AT = "2026-01-31T12:00:00.000Z"


def opened(number: int, kind: str = "agent") -> dict:
    return {
        "type": "attempt.opened", "at": AT, "attempt": number, "stage": "impl", "kind": kind,
        "agent": "command" if kind != "agent" else "claude", "mode": "fresh",
    }  # fmt: skip


def test_attempts_have_the_numbers_that_show_gives_them() -> None:
    events = [
        opened(1, "prepare"),
        {"type": "attempt.ended", "at": AT, "attempt": 1, "outcome": "success"},
        opened(2),
        {"type": "attempt.started", "at": AT, "attempt": 2, "pid": 7},
        {"type": "task.moved", "at": AT, "old": "spawning", "new": "running", "reason": "attempt 1"},
        {"type": "takeover.started", "at": AT, "attempt": 3},
        opened(4),
        opened(5, "gate"),
        {"type": "gate.judged", "at": AT, "attempt": 4, "passed": True},
        {"type": "stop.intended", "at": AT, "attempt": None, "intent": "stop"},
    ]
    numbers, lines = AttemptNumbers(), list[str]()
    for event in events:
        numbers.apply(event)
        lines.append(event_lines.fields(event, numbers))
    assert lines == [
        "prepare of impl",
        "prepare success",
        "1 of impl by claude (fresh)",
        "attempt=1 pid=7",
        "spawning → running: attempt 1",
        "attempt=takeover",
        "2 of impl by claude (fresh)",
        "gate of impl",
        "attempt=2 passed=True",
        "intent=stop",
    ]
