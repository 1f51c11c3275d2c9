"""A batch: what a few lines of raw logs came to, without secrets. Events for the journal, lines for whoever reads output.log."""

from __future__ import annotations

import sys

from holdfast.model import events as ev
from holdfast.model import readable
from holdfast.model.execution import Execution
from holdfast.redact import LineRedactor, Redactor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

#: What a readable line is cut to.
_SHOWN_CHARS = 2000
#: A shorter line can hold no secret, and a flood has millions of them.
_HARMLESS_BYTES = 7
#: As much of what was drawn over is looked through for the begin of a key.
_DRAWN_BYTES = 64 * 1024
#: Fields of events that hold an agent's words, and what they are cut to.
_LIMITS = {
    "text": 4000,
    "summary": 200,
    "message": 1000,
    "reason": 500,
    "name": 200,
    "subtype": 100,
    "current_step": 200,
}
#: The same for each kind of event: hundreds of thousands may come in a second, and most have none or one.
_LIMITS_OF = {
    cls: [(name, limit) for name, limit in _LIMITS.items() if name in cls.all_fields]
    for cls in ev.EVENTS.values()
}
_NOWHERE = (0, 0)


class LogBatch:
    """Of one attempt, in the order of its lines."""

    def __init__(self, execution: Execution, redact: Redactor) -> None:
        self._execution = execution
        self._redact = redact
        self._last = ("", "")
        #: Those that the journal does not have yet.
        self.events: list[ev.AgentEvent] = []
        #: For output.log.
        self.shown: list[str] = []

    def read(
        self,
        read: Callable[[bytes], list[ev.AgentEvent]],
        line: bytes,
        offset: int,
        *,
        stream: str = "stdout",
        is_shown: bool = True,
    ) -> bool:
        """Take in what a reader makes of a line. Returns whether that is anything.

        A line that makes it fail is no event: the raw log keeps it, and runner after runner would die of it.
        """
        try:
            events = read(line)
            if not events:
                return False
            found: list[ev.AgentEvent] = []
            words: list[str] = []
            for event in events:
                if not event.is_sound():
                    continue
                limits = _LIMITS_OF[type(event)]
                if limits:
                    event = self._redacted(event, limits)
                found.append(event.place(self._execution.number, offset, stream))
                if is_shown:
                    words += readable.lines(event)
        except Exception:  # whoever reads runner.log sees it; an adapter's fault must not end the task
            import traceback  # dear to load, and hardly ever needed

            print(f"a reader failed on {line[:200]!r}", file=sys.stderr)
            traceback.print_exc()
            return False
        if not found:
            return False
        if words:
            self.shown += [readable.plain(text[:_SHOWN_CHARS]) for text in words]
        reached, count = self._execution.reached.get(stream, _NOWHERE)
        # Of a line that holds several events, a power cut leaves the first of them.
        self.events += found if offset > reached else found[count:] if offset == reached else ()
        return True

    def show(self, line: bytes, redact: LineRedactor) -> None:
        """Take in a line as it is, but for secrets and for what moves the cursor."""
        if len(line) < _HARMLESS_BYTES and line.isalnum() and not redact.is_inside:
            self.shown.append(line.decode("ascii", "replace"))
            return
        if b"\r" in line:
            line = self._last_state(line, redact)
        cut = line[: _SHOWN_CHARS * 4]
        text = readable.plain(cut.decode("utf-8", "replace"))
        more = f" … ({len(line)} bytes)" if len(line) > len(cut) else ""
        self.shown.append(redact(text)[: _SHOWN_CHARS * 2] + more)

    def _last_state(self, line: bytes, redact: LineRedactor) -> bytes:
        """Of a line that was drawn over itself, as a progress bar is, what stood there at last. A key may have begun before."""
        line = line.rstrip(b"\r \t")
        before, _, last = line.rpartition(b"\r")
        if before:
            redact.remember(before[-_DRAWN_BYTES:].replace(b"\r", b"\n").decode("utf-8", "replace"))
        return last

    def note_left_out(self, count: int, log: str) -> None:
        """Say that so many bytes of a log were passed over."""
        self.shown.append(f"[{count} bytes left out; all of it is in {log}]")

    def _redacted(self, event: ev.AgentEvent, limits: list[tuple[str, int]]) -> ev.AgentEvent:
        # First redacted, then cut: a secret across the cut would leave its first half. (Readers cut further out.)
        changes: dict[str, str] | None = None
        store = event.__dict__
        for name, limit in limits:
            value = store[name]
            if value and isinstance(value, str):
                clean = self._clean(value)
                if len(clean) > limit:
                    clean = clean[:limit]
                if clean is not value and clean != value:
                    changes = {**(changes or {}), name: clean}
        return event if changes is None else event.evolve(**changes)

    def _clean(self, text: str) -> str:
        """`text` without secrets. A result often is the very text that was said just before."""
        if text is not self._last[0]:
            self._last = (text, self._redact(text))
        return self._last[1]
