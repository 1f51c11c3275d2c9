"""The ledger: the one hand that writes a packet's state.

A fact is appended to the journal and synced, taken into the task, and only then shown in manifest.json. On a full disk
`record` raises, and nothing has happened: the runner waits for room and takes its step again.
"""

from __future__ import annotations

import os

from holdfast.errors import HoldfastError
from holdfast.failpoints import failpoint
from holdfast.model import events as ev
from holdfast.model import manifest
from holdfast.model.fold import apply
from holdfast.model.status import Status, check_move
from holdfast.model.task import Task
from holdfast.redact import Redactor
from holdfast.runner import moves
from holdfast.runner.timestamps import NAMES, Stamps
from holdfast.store import atomic
from holdfast.store.journal import Journal
from holdfast.store.layout import Packet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_TAIL_BYTES = 16384


class Ledger:
    """Journal, task and manifest of one packet, for the holder of its lock."""

    def __init__(self, packet: Packet, task: Task, journal: Journal, redact: Redactor) -> None:
        self.packet = packet
        self.task = task
        self.redact = redact
        self._journal = journal
        #: What the manifest shows and no decision rests on.
        self.seen: dict[str, Any] = {}
        #: The manifest that current-session.json has not followed yet.
        self._shown: dict[str, Any] | None = None
        #: What was seen when the files were written that show it, and where its times stand in them.
        self._seen_shown: dict[str, Any] | None = None
        self._stamps: list[Stamps] = []
        #: Whether there are facts that the manifest does not show yet.
        self._is_behind = False
        self._cleaned: dict[str, str] = {}

    @property
    def length(self) -> int:
        """Of the journal: while it stays the same, no fact was recorded."""
        return self._journal.size

    def record(self, *events: ev.Event, shown: bool = True) -> None:
        """Make facts durable, in one sync, then show them. With `shown=False` the manifest waits for the next fact or the next
        sleep: between a new runner and its agent's first instruction nobody should wait for it. Not for moves."""
        if not events:
            return
        moves_of = [event for event in events if isinstance(event, ev.TaskMoved)]
        for moved in moves_of:
            moves.before(self, moved)
        at = self._journal.append(events)
        for event in events:
            apply(self.task, event, at)
        for moved in moves_of:
            moves.between(self, moved)
        self._is_behind = True
        if shown:
            failpoint("ledger.before_manifest")
            self.show()
        for moved in moves_of:
            moves.after(self, moved)

    def moved(
        self,
        new: Status,
        reason: str,
        *,
        old: Status | None = None,
        wake_at: str | None = None,
        interrupt: str | None = None,
        request: str | None = None,
        answer: str | None = None,
        approval: str | None = None,
        iteration: int = 0,
    ) -> ev.TaskMoved:
        """The event of a move, checked against the table. `old` is given where a move follows another in one record."""
        old = self.task.status if old is None else old
        check_move(old, new)
        return ev.TaskMoved(
            old=old,
            new=new,
            reason=self.redact(reason) if reason else "",
            wake_at=wake_at,
            interrupt=self.redact(interrupt) if interrupt else None,
            request=request,
            answer=answer,
            approval=approval,
            marked=new is Status.INTERRUPTED,
            iteration=iteration,
        )

    def move(self, new: Status, reason: str, *, interrupt: str | None = None) -> None:
        """Take the task to another state."""
        self.record(self.moved(new, reason, interrupt=interrupt))

    def show(self) -> None:
        """Write manifest.json. It is derived: on a full disk it stays behind."""
        if self.task.has_ended and os.path.exists(self.packet.task_done):
            return  # whoever waits for the marker reads a manifest that does not change any more
        unknown = self._carried_over()
        data = {**unknown, **manifest.render(self.task, self.packet.path, self.seen)}
        data.update(goal=self._clean(data["goal"]), task_name=self._clean(data["task_name"]))
        text = atomic.encode_json(data)
        try:
            atomic.write(self.packet.manifest, text, durable=False)
        except HoldfastError:
            return  # derived: it stays behind, and the next one is whole again
        self._shown, self._is_behind = data, False
        self._seen_shown, self._stamps = self.seen.copy(), [Stamps(self.packet.manifest, text)]

    def beat(self) -> None:
        """Show that somebody looked. Where nothing else is new, times are renewed in place, and nobody waits for the disk."""
        shown, seen = self._seen_shown, self.seen
        is_old_news = (
            shown is not None
            and not self._is_behind
            and self._shown is None
            and all(
                shown.get(name) == value
                for name, value in seen.items()
                if name not in NAMES or shown.get(name) is None
            )
        )
        if is_old_news and all(stamps.renew(shown or {}, seen) for stamps in self._stamps):
            self._seen_shown = seen.copy()
        else:
            self.show()

    def _clean(self, text: str) -> str:
        """What was asked, without secrets; it does not change, and is shown with every fact."""
        if text not in self._cleaned:
            self._cleaned[text] = self.redact(text)
        return self._cleaned[text]

    def catch_up(self) -> None:
        """Write the manifest, if it is behind, and current-session.json, if the manifest has moved on. Before each sleep, not
        with each fact: a step may record several, and nobody polls this one."""
        if self._is_behind:
            self.show()
        if self._shown is None:
            return
        view, self._shown = manifest.current_session(self.task, self._shown), None
        if "work" in view:
            view["work"]["details"] = self._clean(view["work"]["details"])
        text = atomic.encode_json(view)
        try:
            atomic.write(self.packet.current_session, text, durable=False)
        except HoldfastError:
            return  # derived: it stays behind, and the next one is whole again
        self._stamps.append(Stamps(self.packet.current_session, text))

    def _carried_over(self) -> dict[str, Any]:
        """Fields of another version survive a rewrite, and so does what an earlier runner saw last. Read once: nobody else
        writes this file while we hold the lock."""
        if "unknown" not in self.seen:
            try:
                old = atomic.read_json(self.packet.manifest) or {}
            except atomic.CorruptFile:
                old = {}
            self.seen["unknown"] = {key: value for key, value in old.items() if key not in manifest.FIELDS}
            for name in ("last_checked_at", "last_progress_at", "deadline_at"):
                self.seen.setdefault(name, old.get(name))
        return self.seen["unknown"]

    def tail(self, lines: int) -> str:
        """The last lines of output.log."""
        try:
            with open(self.packet.output_log, "rb") as file:
                start = file.seek(0, os.SEEK_END)
                data = b""
                while start > 0 and data.count(b"\n") <= lines:
                    size = min(_TAIL_BYTES, start)
                    start = file.seek(start - size)
                    data = file.read(size) + data
        except FileNotFoundError:
            return ""
        return "\n".join(data.decode("utf-8", "replace").splitlines()[-lines:])

    def close(self) -> None:
        """Close the journal."""
        self._journal.close()
