"""Replay a recorded run with the same readers, fold and classification as in a live attempt."""

from __future__ import annotations

from holdfast import clock
from holdfast.agents.base import End
from holdfast.model import events as ev
from holdfast.model.attempt import Attempt
from holdfast.model.fold import apply
from holdfast.model.process import Exit
from holdfast.model.task import Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.agents.base import Adapter

#: How much of stderr an adapter gets, as in a live attempt.
_TAIL_CHARS = 4096
#: Maximum length of `final_text`.
_FINAL_CHARS = 80


def replay(adapter: Adapter, stdout: bytes, stderr: str, exit: int | None) -> dict[str, Any]:
    """The result of one run. A negative `exit` is a signal; null means 0."""
    attempt = fold(adapter, stdout, stderr)
    end = End(
        exit=exit_of(exit),
        stderr_tail=stderr[-_TAIL_CHARS:],
        is_torn=bool(stdout) and not stdout.endswith(b"\n"),
    )
    outcome = adapter.classify(end, attempt)
    return {
        "outcome": outcome.kind,
        "detail": outcome.detail,
        "resets_at": outcome.resets_at,
        "resumable": outcome.resumable,
        "session_id": attempt.session_id,
        "tools_started": attempt.tools_started,
        "tools_finished": attempt.tools_finished,
        "input_tokens": attempt.usage.input_tokens,
        "output_tokens": attempt.usage.output_tokens,
        "cost_usd": attempt.usage.cost_usd,
        "final_text": attempt.last_text[:_FINAL_CHARS] or None,
        "retries_seen": attempt.retries_seen,
    }


def fold(adapter: Adapter, stdout: bytes, stderr: str = "") -> Attempt:
    """Fold the events of a run.

    A reader that understands stderr has `read_stderr(line: bytes) -> list[AgentEvent]`; the order of the two
    streams is not recorded, so stderr comes after stdout.
    """
    reader = adapter.reader()
    task = Task()
    apply(
        task,
        ev.AttemptOpened(attempt=1, attempt_id="att_replay", stage="main", agent=adapter.name, mode="fresh"),
        "",
    )
    assert task.attempt is not None
    at, offset = clock.iso_now(), 0
    read_stderr = getattr(reader, "read_stderr", None)
    for line in stdout.split(b"\n"):
        offset += len(line) + 1
        _take(task, reader.read(line), offset, at) if line else None
    for line in stderr.encode("utf-8", "replace").split(b"\n") if read_stderr is not None else ():
        offset += len(line) + 1
        _take(task, read_stderr(line), offset, at)  # pyright: ignore[reportOptionalCall]
    _take(task, reader.finish(), offset + 1, at)
    return task.attempt


def _take(task: Task, events: list[ev.AgentEvent], offset: int, at: str) -> None:
    for event in events:
        # Through JSON, as in the journal: an adapter may rely only on what a successor can read.
        again = ev.decode({"type": event.type, **event.to_json()})
        assert isinstance(again, ev.AgentEvent)
        apply(task, again.place(1, offset), at)


def exit_of(status: int | None) -> Exit:
    """The exit record of a status as `subprocess` returns it."""
    number = -status if status is not None and status < 0 else None
    code = 128 + number if number is not None else status or 0
    return Exit(
        by="recorder",
        wait_status=number if number is not None else code << 8,
        exit_code=code,
        exit_signal=number,
        at="",
    )
