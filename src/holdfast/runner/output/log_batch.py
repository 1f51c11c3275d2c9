"""A batch of raw log lines, redacted: events for the journal and readable lines for output.log."""

from __future__ import annotations

from holdfast import files
from holdfast.model import events as ev
from holdfast.model import readable
from holdfast.model.execution import Execution
from holdfast.redact import LineRedactor, Redactor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

#: Maximum length of a readable line.
_SHOWN_CHARS = 2000
#: Shorter alphanumeric lines are too short for a known secret; a flood has millions of them.
_HARMLESS_BYTES = 7
#: How much overwritten text (before a carriage return) is searched for the start of a private key.
_DRAWN_BYTES = 64 * 1024
#: Text fields of events and their maximum lengths.
_LIMITS = {
    "text": 4000,
    "summary": 200,
    "message": 1000,
    "reason": 500,
    "result": 1000,
    "name": 200,
    "subtype": 100,
    "current_step": 200,
}
#: The same per event class, computed once: hundreds of thousands of events may come in a second.
_LIMITS_OF = {
    cls: [(name, limit) for name, limit in _LIMITS.items() if name in cls.all_fields]
    for cls in ev.EVENTS.values()
}
_NOWHERE = (0, 0)


class LogBatch:
    """Events and readable lines of one attempt, in the order of its output."""

    def __init__(self, execution: Execution, redact: Redactor, folder: str = "") -> None:
        """`folder` is where the agent works: paths below it are shown relative to it."""
        self._execution = execution
        self._redact = redact
        self._folder = folder
        self._last = ("", "")
        #: Finds when a line was printed, if it is read late: else its events have the time of the journal.
        self.find_printed_at: Callable[[bytes], str | None] | None = None
        #: Events that the journal does not have yet.
        self.events: list[ev.AgentEvent] = []
        #: Lines for output.log.
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
        """Add the events that a reader finds in a line. Returns whether there are any.

        If the reader raises, the line is taken for no event; otherwise every runner would crash on it again.
        """
        try:
            events = read(line)
            if not events:
                return False
            printed_at = self.find_printed_at(line) if self.find_printed_at is not None else None
            placed: list[ev.AgentEvent] = []
            texts: list[str] = []
            for event in events:
                if not event.is_sound():
                    continue
                limits = _LIMITS_OF[type(event)]
                if self._folder and type(event) is ev.AgentToolStarted and self._folder in event.summary:
                    event = event.evolve(summary=readable.relative(event.summary, self._folder))
                if limits:
                    event = self._redacted(event, limits)
                placed.append(event.place(self._execution.number, offset, stream, printed_at))
                if is_shown:
                    texts += readable.lines(event)
        except Exception:  # a bug in an adapter must not end the task; runner.log gets the traceback
            import traceback  # slow to import, rarely needed

            files.log(f"the adapter's reader failed on {line[:200]!r}\n{traceback.format_exc()}")
            return False
        if not placed:
            return False
        if texts:
            self.shown += [readable.plain(text[:_SHOWN_CHARS]) for text in texts]
        reached, count = self._execution.reached.get(stream, _NOWHERE)
        # A power cut can leave only the first events of a line in the journal.
        self.events += placed if offset > reached else placed[count:] if offset == reached else ()
        return True

    def show(self, line: bytes, redact: LineRedactor) -> None:
        """Add a raw line, without secrets and terminal control codes."""
        if len(line) < _HARMLESS_BYTES and line.isalnum() and not redact.reads_short_lines:
            self.shown.append(line.decode("ascii", "replace"))
            return
        if b"\r" in line:
            line = self._last_state(line, redact)
        cut = line[: _SHOWN_CHARS * 4]
        text = readable.plain(cut.decode("utf-8", "replace"))
        more = f" … ({len(line)} bytes)" if len(line) > len(cut) else ""
        self.shown.append(redact(text)[: _SHOWN_CHARS * 2] + more)

    def _last_state(self, line: bytes, redact: LineRedactor) -> bytes:
        """The final state of a line with carriage returns (a progress bar).

        A key may start in an earlier state.
        """
        line = line.rstrip(b"\r \t")
        before, _, last = line.rpartition(b"\r")
        if before:
            redact.remember(before[-_DRAWN_BYTES:].replace(b"\r", b"\n").decode("utf-8", "replace"))
        return last

    def note_left_out(self, count: int, log: str) -> None:
        """Add a line that says how many bytes of a log were skipped."""
        self.shown.append(f"[{count} bytes left out; see {log}]")

    def _redacted(self, event: ev.AgentEvent, limits: list[tuple[str, int]]) -> ev.AgentEvent:
        # Redact before truncating: the first half of a truncated secret would not be recognized.
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
        """`text` without secrets. Cached, because a result often repeats the last text."""
        if text is not self._last[0]:
            self._last = (text, self._redact(text))
        return self._last[1]
