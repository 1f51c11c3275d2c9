"""A task, for a program: read it, follow it, answer it, stop it.

Reading looks at the task's files, now, every time. What changes a task is a request to its runner, as from
the command line: it is journalled, and an agent may not decide about its own task.
"""

from __future__ import annotations

import os
from types import MappingProxyType

from holdfast import clock
from holdfast.model.status import ENDS
from holdfast.packet import load
from holdfast.store.layout import Packet
from holdfast.views import requests
from holdfast.views.api import values, waiting
from holdfast.views.facts import log as log_facts
from holdfast.views.facts import summary as summary_facts
from holdfast.views.facts.events import EventReader
from holdfast.views.recovery import KeeperStarter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from holdfast.views.api.values import Applied, Event, Log, PullRequest, Summary, TaskInfo
    from holdfast.views.facts.diff import Diff

#: Between two looks at a journal that is followed.
_PAUSE_S = 0.1


class Task:
    """One task. Two are equal if they are the same task of the same home."""

    def __init__(self, packet: Packet) -> None:
        #: Paths of its files, for code that knows the package.
        self.packet = packet

    @property
    def id(self) -> str:
        """Its id."""
        return self.packet.task_id

    @property
    def path(self) -> str:
        """Its directory, the packet."""
        return self._there().path

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Task) and other.packet.path == self.packet.path

    def __hash__(self) -> int:
        return hash(self.packet.path)

    def __repr__(self) -> str:
        return f"<holdfast.Task {self.id}>"

    # ── reading ──

    def info(self) -> TaskInfo:
        """Its state now. Raises NotFound if it was removed."""
        return values.info_of(self.manifest(), self.path)

    @property
    def status(self) -> str:
        """Its state now, a value of `holdfast.Status`."""
        return self.manifest()["status"]

    def manifest(self) -> dict[str, Any]:
        """Everything about it, as `holdfast show --json` (docs/contracts/manifest.md)."""
        return load.read_manifest(self._there())

    def events(self, *, since: int = 0, follow: bool = False) -> Iterator[Event]:
        """The events of its journal after a cursor; with `follow`, also new ones until it has ended."""
        reader = EventReader(self._there(), offset=since)
        starter = KeeperStarter()
        while True:
            # Check for the end first: what was written before it is then read below.
            is_over = not follow or self.is_over()
            yield from read_events(reader)
            if is_over:
                return
            starter.poll(self.packet, self.status)
            clock.sleep(_PAUSE_S)

    def log(self, *, begin: int = 0, end: int | None = None, limit: int = 65536) -> Log:
        """Whole lines of its readable output from byte `begin`, or with `end` those before it; at most
        `limit` bytes. `log(end=log().size)` is the end of it."""
        found = log_facts.window(self._there(), begin=begin, end=end, limit=limit)
        return values.Log(text=found["text"], begin=found["begin"], end=found["end"], size=found["size"])

    def summary(self) -> Summary:
        """Result, stages, failure and what to do next, in at most 3.5 KB."""
        found = summary_facts.gather(self._there(), self.manifest())
        names = ("status", "text", "left_out_bytes", "path")
        return values.Summary(id=self.id, **{name: found[name] for name in names})

    def diff(self, *, stage: str | None = None, candidate: int | None = None) -> Diff:
        """What it changed within its scope, file by file. Raises NotPossible without a snapshot."""
        from holdfast.views.facts import diff

        number = None if candidate is None else str(candidate)
        return diff.diff(self.packet.home, self.id, stage=stage, candidate=number)

    def patch(self) -> bytes:
        """What it changed within its scope, for `git apply`. Raises NotPossible without a snapshot."""
        from holdfast.views.facts.diff import Comparison

        return Comparison(self._there(), stage=None, candidate=None, everything=False).patch()

    def wait(self, *, timeout_s: float | None = None) -> TaskInfo:
        """Wait until it has ended or needs a person. Raises Unanswered after the timeout."""
        return waiting.wait([self.id], timeout_s=timeout_s)[0]

    # ── requests ──

    def answer(self, text: str = "") -> None:
        """Answer its question, and let it continue. Wakes a task that waits for a time, too.

        This and all other requests raise RequestRefused if the task is in another state, ForPersons if an
        agent asks for its own task, and Unanswered if the runner does not react; the request then stays.
        """
        self._ask("resume", message=text)

    def approve(self, message: str = "") -> None:
        """Approve the stage that waits for it."""
        self._ask("approve", message=message)

    def reject(self, message: str = "") -> None:
        """Reject the stage that waits for approval; the task ends."""
        self._ask("reject", message=message)

    def interrupt(self, question: str = "") -> None:
        """Stop its agent until it is resumed; `question` says why. Returns once it is being stopped."""
        self._ask("interrupt", reason=question)

    def retry(self, message: str = "", *, stage: str | None = None, reset: bool = False) -> None:
        """Run it again after its end, with the environment of this process: what is not done, or all from a
        stage on. With `reset`, paid calls and failures of a packet count from zero again."""
        from holdfast.views.create import again

        chosen = {"message": message or None, "from": stage, "reset": reset}
        options: dict[str, Any] = {"deadline": None, "permissions": None, "set": [], **chosen}
        requests.send_request(self.packet, "retry", again.args_of(self.packet, options))
        again.list_again(self.packet, talk=_ignore)

    def stop(self, reason: str = "", *, now: bool = False) -> None:
        """Stop it: it ends as `killed`. Returns when that is under way; `wait` waits for the end.

        With `now`, its agent gets no time to exit. A task that has ended is left as it is.
        """
        args: dict[str, Any] = {"reason": reason} if reason else {}
        if now:
            args["now"] = True
        requests.stop(self.packet, args)

    # ── its work ──

    def apply(self, *, patch: bool = False, force: bool = False) -> Applied:
        """Merge the work in its worktree into the project, as `holdfast apply`; with `patch`, change the
        files and commit nothing; with `force`, also what a gate refused.

        Raises NotPossible if it has not ended, works in place, has nothing to apply, or on a conflict;
        nothing is changed then. Raises LockHeld while another task writes in the project.
        """
        from holdfast.views.api import work

        return work.apply(self.packet, patch=patch, force=force)

    def pr(
        self,
        *,
        draft: bool = False,
        remote: str | None = None,
        base: str | None = None,
        yes: bool = False,
        wait_s: float | None = None,
    ) -> PullRequest:
        """Push its work and open or update a pull request, as `holdfast pr`. With `wait_s`, wait for the
        checks, at most so long.

        Without `draft`, it must be completed, with no objection. `yes`: push even if settings of the
        repository changed. Raises NotPossible, also if checks are still pending, and LockHeld.
        """
        from holdfast.views.api import work

        return work.pr(self.packet, draft=draft, remote=remote, base=base, yes=yes, wait_s=wait_s)

    def _ask(self, verb: str, **texts: str) -> None:
        args = {name: text for name, text in texts.items() if text}
        requests.send_request(self.packet, verb, args)

    def _there(self) -> Packet:
        """The packet, or its archived copy."""
        return load.wherever(self.packet)

    def is_over(self) -> bool:
        """Whether it has ended, and all its files are written."""
        return self.status in ENDS and os.path.exists(self._there().task_done)


def read_events(reader: EventReader) -> Iterator[Event]:
    """The events that were written since the last call."""
    for cursor, event in reader.placed():
        yield values.Event(
            type=str(event.get("type")),
            at=str(event.get("at")),
            cursor=cursor,
            data=MappingProxyType(event),
        )


def _ignore(text: str) -> None:
    """What `retry` would print about the queue: the state of the task has it."""
