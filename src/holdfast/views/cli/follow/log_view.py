"""Printing a task's log while it grows, for `attach` and `logs -f`."""

from __future__ import annotations

import codecs
import os
import sys

from holdfast import clock
from holdfast.model.status import Status
from holdfast.packet import load
from holdfast.store import atomic, tail
from holdfast.store.layout import AttemptDir, Packet
from holdfast.views.cli.follow.loop import View
from holdfast.views.cli.show import out, terminal
from holdfast.views.text import describe, fit_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TextIO

    from holdfast.views.text.sanitize import Sanitizer

_READ_BYTES = 65536
#: Columns of the goal that `attach` prints first.
_GOAL_COLUMNS = 200
#: How often a follower asks the queue what a task waits for.
_ASK_S = 2.0


class GrowingFile:
    """A file that is printed on stdout, or another stream, as it grows."""

    def __init__(
        self,
        path: str,
        *,
        is_text: bool,
        has_whole_lines: bool = False,
        before: Callable[[], None] = lambda: None,
        stream: TextIO | None = None,
        narrate: Callable[[bytes], bytes] | None = None,
    ) -> None:
        """`is_text`: it is UTF-8. `has_whole_lines`: a line is printed once it is complete. `before` is
        called before something is printed. `narrate` makes whole lines, or none, what is printed."""
        self.path = path
        self._offset = 0
        self._has_whole_lines = has_whole_lines
        self._incomplete = b""
        self._before, self._narrate = before, narrate
        self._stream = stream or sys.stdout
        # Bytes pass through unchanged, except to a terminal, or as text to a locale other than UTF-8.
        self._sanitizer = _sanitizer() if terminal.is_terminal(self._stream) else None
        is_utf8 = codecs.lookup(self._stream.encoding or "ascii").name == "utf-8"
        passes = (is_utf8 or not is_text) and self._sanitizer is None
        self._decoder = None if passes else codecs.getincrementaldecoder("utf-8")("replace")

    def skip_to_last_lines(self, count: int) -> None:
        """Start with the last `count` lines."""
        data, self._offset = tail.last_lines(self.path, count)
        self._print(data)

    def print_new(self, *, is_last: bool = False) -> None:
        """Print what was added. With `is_last`, also an incomplete line."""
        try:
            with atomic.stream(self.path) as file:
                file.seek(self._offset)
                while data := file.read(_READ_BYTES):
                    self._offset += len(data)
                    self._print(data)
        except FileNotFoundError:
            pass
        if is_last and self._incomplete:
            rest, self._incomplete = self._incomplete, b""
            self._write(rest + b"\n")
        if self._narrate is not None:
            self._write(self._narrate(b""))
        self._stream.flush()

    def close(self) -> None:
        """Restore the terminal's colour. Nothing more is printed."""
        if self._sanitizer is not None:
            self._stream.write(self._sanitizer.end())
            self._stream.flush()

    def _print(self, data: bytes) -> None:
        if self._has_whole_lines:
            data = self._incomplete + data
            cut = data.rfind(b"\n") + 1
            data, self._incomplete = data[:cut], data[cut:]
        if data and self._narrate is not None:
            data = self._narrate(data)
        self._write(data)

    def _write(self, data: bytes) -> None:
        if not data:
            return
        self._before()
        if self._decoder is None:
            self._stream.buffer.write(data)
            return
        text = self._decoder.decode(data)
        if self._sanitizer is not None:
            text = self._sanitizer.show(text)
            # A message or a line below it must not get the colour of unfinished output.
            text += self._sanitizer.end() if self._has_whole_lines else ""
        self._stream.write(text)


def _sanitizer() -> Sanitizer:
    from holdfast.views.text.sanitize import Sanitizer  # only needed for a terminal

    return Sanitizer(has_colour=terminal.has_colour())


def _narrator(packet: Packet, stream: TextIO | None, *, from_start: bool) -> Callable[[bytes], bytes] | None:
    """What tells about tools and usage: only on a terminal. A pipe or file gets the bytes of the log."""
    if not terminal.is_terminal(stream or sys.stdout):
        return None
    from holdfast.views.cli.follow.narrator import Narrator

    return Narrator(packet, from_start=from_start)


class OutputView(View):
    """The log on a stream. On a terminal, a line below it shows the state; elsewhere, messages do."""

    shows_output = True
    pause_s = 0.1
    #: Whether it shows the log from its beginning.
    from_start = True

    def __init__(self, packet: Packet, *, stream: TextIO | None = None) -> None:
        from holdfast.views.cli.follow import progress

        self._stream = stream or sys.stdout
        self._line = progress.RedrawnLine()
        self._asked_mono, self._waits = float("-inf"), ""
        self._messages = None if terminal.can_redraw(sys.stderr) else progress.ProgressMessages(None)
        self._log = GrowingFile(
            packet.output_log,
            is_text=True,
            has_whole_lines=True,
            before=self._line.clear,
            stream=stream,
            narrate=_narrator(packet, stream, from_start=self.from_start),
        )

    def show(self, packet: Packet, manifest: dict[str, Any], *, is_last: bool) -> None:
        """Print new output, then the state. Following a task to its end needs no terminal."""
        try:
            self._log.print_new(is_last=is_last)
        except OSError as error:
            out.go_on_without_terminal(self._stream, error)
        if self._messages is not None:
            self._messages.show(packet, manifest, is_last=is_last)
        elif not is_last:
            waits = self._queue_reason(packet) if manifest["status"] == Status.QUEUED else ""
            self._line.draw(f"\x1b[7m{_status_text(manifest, waits)}\x1b[0m")

    def _queue_reason(self, packet: Packet) -> str:
        """Why a queued task has not started. The queue is opened now and then only."""
        now_mono = clock.mono()
        if now_mono >= self._asked_mono + _ASK_S:
            from holdfast.views.text import queue_reason

            self._asked_mono, self._waits = now_mono, queue_reason.of_task(packet.home, packet.task_id)
        return self._waits

    def say(self, text: str) -> None:
        """Print a message in place of the line."""
        self._line.clear()
        out.talk(text)

    def close(self) -> None:
        """Remove the line."""
        self._line.clear()


class AttachView(OutputView):
    """Begins with the goal and the last lines of the log."""

    from_start = False

    def __init__(self, packet: Packet, *, lines: int) -> None:
        super().__init__(packet)
        manifest = load.read_manifest(packet)
        goal = manifest["goal"] or manifest["task_name"]
        out.talk(f"{packet.task_id}: {fit_text.shorten(goal, _GOAL_COLUMNS)}")
        self._log.skip_to_last_lines(lines)


def _status_text(manifest: dict[str, Any], waits: str) -> str:
    from holdfast.views.cli.follow import progress, stage_news
    from holdfast.views.text import amounts

    parts = [
        manifest["status"],
        stage_news.current(manifest) if stage_news.has_several(manifest) else "",
        f"{manifest['agent']} {progress.elapsed(manifest)}",
        amounts.plural(manifest["attempt"], "attempt") if manifest["attempt"] > 1 else "",
        f"{tokens} tokens" if (tokens := amounts.tokens(manifest)) else "",
        amounts.cost(manifest),
        describe.agent_step(manifest),
        waits or describe.waiting_for(manifest) or manifest["status_reason"] or "",
    ]
    return progress.fit(" | ".join(part for part in parts if part))


class LogsView(View):
    """The readable log, or the raw output of one attempt after the other, on stdout."""

    pause_s = 0.1

    def __init__(
        self,
        packet: Packet,
        *,
        raw: str = "",
        attempt: AttemptDir | None = None,
        narrates: bool = False,
        from_start: bool = True,
    ) -> None:
        """`raw`: `stdout` or `stderr` of `attempt`, else of the latest one; empty for the readable log.
        `narrates`: it is followed, so that a terminal gets more than the log."""
        self.shows_output = not raw
        self._narrate = _narrator(packet, None, from_start=from_start) if narrates and not raw else None
        self._packet, self._raw, self._attempt = packet, raw, attempt
        self._files: dict[str, GrowingFile] = {}
        self._last: GrowingFile | None = None
        self._status = ""

    def print_end(self, count: int | None) -> None:
        """Print the last `count` lines, or everything so far."""
        file = self._last = self._current()
        if file is not None and count is not None:
            file.skip_to_last_lines(count)
        if file is not None:
            file.print_new()

    def show(self, packet: Packet, manifest: dict[str, Any], *, is_last: bool) -> None:
        """Print new output, and why an interrupted task prints nothing."""
        file = self._current()
        if self._last is not None and file is not self._last:
            self._last.print_new()  # the previous attempt may have written more
            self._last.close()
            if file is not None and terminal.is_terminal():
                name = os.path.basename(os.path.dirname(file.path))
                number = dict(load.numbered_attempts(self._packet)).get(name)
                print(f"--- attempt {number or name} ---")
        self._last = file
        if file is not None:
            file.print_new()
        if manifest["status"] != self._status and manifest["status"] == Status.INTERRUPTED and not is_last:
            self.say(describe.interruption(manifest))
        self._status = manifest["status"]

    def say(self, text: str) -> None:
        """Print a message: the task may stay silent for a long time now."""
        out.talk(f"{text} (Ctrl-C stops following)")

    def close(self) -> None:
        """Finish all files."""
        for file in self._files.values():
            file.close()

    def _current(self) -> GrowingFile | None:
        """The file to print now; None before the first attempt."""
        path = self._packet.output_log
        if self._raw:
            attempt = self._attempt or _latest_attempt(self._packet)
            if attempt is None:
                return None
            path = getattr(attempt, self._raw)
        if path not in self._files:
            self._files[path] = GrowingFile(
                path,
                is_text=not self._raw,
                has_whole_lines=self._narrate is not None,
                narrate=self._narrate,
            )
        return self._files[path]


def _latest_attempt(packet: Packet) -> AttemptDir | None:
    """The last one of an agent; a holdfast step only if no agent was started yet."""
    found = load.numbered_attempts(packet)
    of_agents = [name for name, number in found if number is not None]
    names = of_agents or [name for name, _ in found]
    return packet.attempt(names[-1]) if names else None
