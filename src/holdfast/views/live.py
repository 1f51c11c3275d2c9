"""The live view of one task: its log, and one line that says how it is doing. It only reads."""

from __future__ import annotations

import os
import sys

from holdfast import clock
from holdfast.model.status import ENDS, EXIT_STATUS, Status
from holdfast.packet import load
from holdfast.store.layout import Packet
from holdfast.views.cli import out, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_PAUSE_S = 0.1
_READ_BYTES = 65536
#: How often the time in the line moves.
_TICK_S = 1.0


class Live:
    """Follows a task. The log goes to stdout; what we say ourselves goes to stderr."""

    def __init__(self, packet: Packet, *, lines: int, stays: bool) -> None:
        self.packet = packet
        self.lines = lines
        #: Whether to stay when the task waits for a person.
        self.stays = stays
        self._has_line = sys.stdout.isatty() and sys.stderr.isatty() and table.has_colour()
        self._shown = ""
        self._said = ""
        self._offset = 0
        self._pending = b""
        self._ticked_mono = 0.0

    def follow(self) -> int:
        """Until the task has ended or needs a person; returns the exit status that says how."""
        self._head()
        self._offset = _tail_offset(self.packet.output_log, self.lines)
        while True:
            # The manifest first: what was logged before the end is then read below.
            manifest = load.read_manifest(self.packet)
            status = Status(manifest["status"])
            is_over = (status in ENDS and os.path.exists(self.packet.task_done)) or (
                status is Status.INTERRUPTED and not self.stays
            )
            has_more = self._log(is_over=is_over)
            self._say(manifest)
            if is_over and not has_more:
                self._leave(manifest)
                return EXIT_STATUS[status]
            if not has_more:
                clock.sleep(_PAUSE_S)

    def clear(self) -> None:
        """Take the line away, so that something else can be printed."""
        if self._shown:
            self._write_line("")

    # ── the log ──

    def _log(self, *, is_over: bool) -> bool:
        """Print what is new; returns whether there may be more. The last line is held back until it is whole."""
        data = _read(self.packet.output_log, self._offset)
        self._offset += len(data)
        self._pending += data
        cut = len(self._pending) if is_over and not data else self._pending.rfind(b"\n") + 1
        text, self._pending = self._pending[:cut], self._pending[cut:]
        if text:
            self.clear()
            words = text.decode("utf-8", "replace")
            sys.stdout.write(words if words.endswith("\n") else words + "\n")
            sys.stdout.flush()
        return bool(data)

    # ── the line ──

    def _head(self) -> None:
        manifest = load.read_manifest(self.packet)
        out.talk(f"{self.packet.task_id}: {manifest.get('goal') or manifest.get('task_name')}"[: table.width()])
        out.talk(f"files in {self.packet.path}")

    def _say(self, manifest: dict[str, Any]) -> None:
        """The line where there is one; without it, a line for each change of state."""
        state = _state(manifest)
        if not self._has_line:
            if state != self._said:
                out.talk(f"[{state}]")
            self._said = state
            return
        now_mono = clock.mono()
        if state != self._said or not self._shown or now_mono - self._ticked_mono >= _TICK_S:
            self._said, self._ticked_mono = state, now_mono
            started = clock.parse_iso(manifest["started_at"])
            elapsed = clock.words(max(0.0, clock.now() - started))
            self._write_line(f"[{state} | {elapsed} | Ctrl-C leaves, the task goes on]")

    def _write_line(self, text: str) -> None:
        self._shown = text
        clipped = out.printable(text)[: table.width() - 1]
        sys.stderr.write("\r\x1b[K" + (f"\x1b[7m{clipped}\x1b[0m" if clipped else ""))
        sys.stderr.flush()

    def _leave(self, manifest: dict[str, Any]) -> None:
        self.clear()
        status = manifest["status"]
        if self._has_line:
            out.talk(f"[{_state(manifest)}]")
        if status == Status.INTERRUPTED:
            out.talk(f"it waits for a person; 'holdfast resume {self.packet.task_id}' goes on")
        elif os.path.exists(self.packet.summary):
            out.talk(f"summary in {self.packet.summary}")


def _state(manifest: dict[str, Any]) -> str:
    parts = [manifest["status"]]
    if manifest.get("status_reason"):
        parts[0] += f": {manifest['status_reason']}"
    parts.append(f"{manifest.get('agent')}")
    if manifest.get("attempt"):
        parts.append(f"attempt {manifest['attempt']}")
    return " | ".join(parts)


def _read(path: str, offset: int) -> bytes:
    try:
        with open(path, "rb") as file:
            file.seek(offset)
            return file.read(_READ_BYTES)
    except FileNotFoundError:
        return b""


def _tail_offset(path: str, lines: int) -> int:
    """Where the last `lines` lines begin; a log may be huge, so it is read from its end."""
    try:
        with open(path, "rb") as file:
            start = os.fstat(file.fileno()).st_size
            tail = b""
            while start > 0 and tail.count(b"\n") <= lines:
                step = min(_READ_BYTES, start)
                start -= step
                file.seek(start)
                tail = file.read(step) + tail
    except FileNotFoundError:
        return 0
    kept = b"".join(tail.splitlines(keepends=True)[-lines:]) if lines else b""
    return start + len(tail) - len(kept)
