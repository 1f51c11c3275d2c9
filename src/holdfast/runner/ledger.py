"""The ledger: the only writer of a packet's state.

A fact is appended to the journal and synced, folded into the task, and only then shown in manifest.json. On a
full disk `record` raises and nothing has happened: the runner waits for room and takes its step again.
"""

from __future__ import annotations

import os

from holdfast.errors import CorruptFile, HoldfastError
from holdfast.failpoints import failpoint
from holdfast.model import events as ev
from holdfast.model import manifest
from holdfast.model.fold import apply
from holdfast.model.manifest import Observed
from holdfast.model.status import ENDS
from holdfast.model.task import Task
from holdfast.redact import Redactor
from holdfast.runner.timestamps import NAMES, Timestamps
from holdfast.store import atomic, tail
from holdfast.store.journal import Journal
from holdfast.store.layout import Packet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_TAIL_BYTES = 1024 * 1024


class Ledger:
    """Journal, task and manifest of one packet, for the holder of its lock."""

    def __init__(self, packet: Packet, task: Task, journal: Journal, redact: Redactor) -> None:
        self.packet = packet
        self.task = task
        self.redact = redact
        self.observed = Observed()
        self._journal = journal
        #: Manifest fields of another version, which survive a rewrite; None before the old manifest was read.
        self._unknown_fields: dict[str, Any] | None = None
        #: The manifest that current-session.json has not followed yet.
        self._shown: dict[str, Any] | None = None
        #: What was observed when the files were written, and where their timestamps are.
        self._observed_shown: dict[str, Any] | None = None
        self._timestamps: list[Timestamps] = []
        #: Whether the manifest lacks recorded facts.
        self._is_behind = False
        self._redacted_texts: dict[str, str] = {}

    @property
    def journal_fd(self) -> int:
        """The descriptor of the open journal."""
        return self._journal.descriptor

    @property
    def journal_pin(self) -> str:
        """Length and digest of the journal, so that a chore reads exactly what this runner trusts."""
        return self._journal.pin

    @property
    def first_line(self) -> bytes:
        """The first line of the journal, as this runner has read it."""
        return self._journal.first_line

    @property
    def journal_bytes(self) -> int:
        """The journal's length: while it stays the same, no fact was recorded."""
        return self._journal.size

    def record(self, *events: ev.Event, shown: bool = True) -> None:
        """Make facts durable in one sync, then show them.

        With `shown=False` the manifest waits for the next fact or the next sleep: it must not delay a new
        agent's first instruction.
        """
        if not events:
            return
        if any(isinstance(event, ev.TaskMoved) and event.new in ENDS for event in events):
            # Before the end, a marker can only be an agent's: it would hide the last manifest.
            atomic.remove(self.packet.task_done)
        at = self._journal.append(events)
        for event in events:
            apply(self.task, event, at)
        self._is_behind = True
        if shown:
            failpoint("ledger.before_manifest")
            self.show()

    def show(self) -> None:
        """Write manifest.json. It is derived: on a full disk it stays behind."""
        if self.task.has_ended and os.path.exists(self.packet.task_done):
            return  # readers that waited for the marker expect a manifest that does not change any more
        unknown = self._carry_over()
        self.observed.journal_bytes = self._journal.size
        data = {**unknown, **manifest.render(self.task, self.packet.path, self.observed)}
        data.update(goal=self._redacted(data["goal"]), task_name=self._redacted(data["task_name"]))
        for answer in data.get("answers", ()):
            answer["answer"] = self._redacted(answer["answer"])
        text = atomic.encode_json(data)
        try:
            atomic.write(self.packet.manifest, text, durable=False)
        except HoldfastError:
            return
        self._shown, self._is_behind = data, False
        self._observed_shown = vars(self.observed).copy()
        self._timestamps = [Timestamps(self.packet.manifest, text)]

    def show_work_applied(self) -> None:
        """Add to the manifest of an ended task, which does not change otherwise, that it was applied."""
        try:
            old = atomic.read_json(self.packet.manifest)
            if old is not None and self.task.applied is not None:
                data = atomic.encode_json({**old, "applied": self.task.applied.shown()})
                atomic.write(self.packet.manifest, data, durable=False)
        except HoldfastError:
            return

    def show_later(self) -> None:
        """Write manifest.json before the next sleep: something was observed that is not in the journal."""
        self._is_behind = True

    def beat(self) -> None:
        """Show a heartbeat.

        If nothing else is new, only timestamps are overwritten in place, without a sync.
        """
        old, new = self._observed_shown, vars(self.observed)
        if (
            old is not None
            and not self._is_behind
            and self._shown is None
            and all(old[name] == new[name] for name in new if name not in NAMES or old[name] is None)
            and all(timestamps.renew(old, new) for timestamps in self._timestamps)
        ):
            self._observed_shown = new.copy()
        else:
            self.show()

    def catch_up(self) -> None:
        """Write the manifest if it is behind, and current-session.json if the manifest has changed.

        Called before each sleep, not with each fact: a step may record several.
        """
        if self._is_behind:
            self.show()
        if self._shown is None:
            return
        view, self._shown = manifest.current_session(self.task, self._shown), None
        if "work" in view:
            view["work"]["details"] = self._redacted(view["work"]["details"])
        text = atomic.encode_json(view)
        try:
            atomic.write(self.packet.current_session, text, durable=False)
        except HoldfastError:
            return  # derived: it stays behind
        self._timestamps.append(Timestamps(self.packet.current_session, text))

    def tail(self, lines: int) -> str:
        """The last lines of output.log."""
        data, _ = tail.last_lines(self.packet.output_log, lines, _TAIL_BYTES)
        return "\n".join(data.decode("utf-8", "replace").splitlines()[-lines:])

    def finish(self) -> None:
        """The runner leaves, and has nothing more to record."""
        self._journal.finish()

    def close(self) -> None:
        """Close the journal."""
        self._journal.close()

    def _redacted(self, text: str) -> str:
        """A text of the task without secrets. It does not change and is shown with every fact."""
        if text not in self._redacted_texts:
            self._redacted_texts[text] = self.redact(text)
        return self._redacted_texts[text]

    def _carry_over(self) -> dict[str, Any]:
        """Fields of another version, and on the first call what the earlier runner observed last.

        Read once: only the holder of the lock writes the manifest.
        """
        if self._unknown_fields is None:
            try:
                old = atomic.read_json(self.packet.manifest) or {}
            except CorruptFile:
                old = {}
            self._unknown_fields = {key: value for key, value in old.items() if key not in manifest.FIELDS}
            for name in ("last_checked_at", "last_progress_at", "deadline_at"):
                if getattr(self.observed, name) is None:
                    setattr(self.observed, name, old.get(name))
        return self._unknown_fields
