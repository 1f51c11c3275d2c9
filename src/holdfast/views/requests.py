"""Send a request to a task: write it to the inbox, make sure a runner is alive, wait for the answer.

To many tasks, all requests are posted before the first answer is awaited: their runners work at once.
"""

from __future__ import annotations

import json
import os
import shlex

from holdfast import clock, files
from holdfast.errors import (
    CorruptFile,
    DiskFull,
    HoldfastError,
    NotFound,
    NotPossible,
    RequestRefused,
    Unanswered,
)
from holdfast.model import permissions
from holdfast.model.request import rules
from holdfast.model.status import ENDS, Status
from holdfast.packet import asker, inbox, load
from holdfast.packet.kill_runner import KILL_S, Patience
from holdfast.runner_process import start_runner
from holdfast.store import admitted, atomic, audit, process, projects, pulse, seals
from holdfast.store import lock as locks
from holdfast.store.layout import Packet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from holdfast.packet.asker import Asker

ANSWER_S = 2.0
_RESTART_S = 0.3
#: How much of a command an error shows.
_SHOWN_CHARS = 2000


class Sent:
    """A request to several tasks: those that accepted it, and why the others did not."""

    def __init__(self) -> None:
        self.accepted: list[Packet] = []
        self.failed: list[tuple[Packet, HoldfastError]] = []


def send_request(packet: Packet, verb: str, args: dict[str, Any]) -> None:
    """Send it and wait until it is applied.

    Raises ForPersons; RequestRefused with the runner's reason and a hint on what to do instead; or Unanswered
    after 2 s: the request then stays pending.
    """
    for _, error in send_all([packet], verb, lambda _: args).failed:
        raise error


def send_all(
    packets: Sequence[Packet], verb: str, args: Callable[[Packet], dict[str, Any]], *, kills: bool = False
) -> Sent:
    """Send a request to each task, then await the answers: their runners work at once.

    A refusal has a hint on what to do instead. With `kills`, runners that do not answer are killed.
    """
    sent, posted, who = Sent(), list[Posted](), asker.find()
    args_of: dict[str, dict[str, Any]] = {}
    for packet in packets:
        try:
            _check(who, packet, verb)  # first, because it says what would run
            args_of[packet.task_id] = args(packet)
            posted.append(
                post_request(packet, verb, args_of[packet.task_id], wakes=kills, kills=kills, who=who)
            )
        except HoldfastError as error:
            sent.failed.append((packet, error))
    for request, error in answers(posted):
        if error is None:
            sent.accepted.append(request.packet)
            continue
        if isinstance(error, RequestRefused):
            error.hint = _possible(request.packet, verb, args_of[request.packet.task_id])
        sent.failed.append((request.packet, error))
    return sent


def _possible(packet: Packet, refused: str, args: dict[str, Any]) -> str:
    """What to do instead of the refused verb with these arguments."""
    manifest = load.read_manifest(packet)
    if manifest["status"] == Status.COMPLETED:
        # A plain retry continues with what is not done, which is nothing here.
        stages: list[dict[str, Any]] = manifest.get("stages") or []
        stage = str(stages[0]["name"]) if len(stages) == 1 else "STAGE"
        words = ["holdfast", "retry", packet.task_id, "--from", stage]
        if refused in ("retry", "resume"):
            words += _options(args)
        # An agent can write the manifest, and people copy the command.
        return f"to run it again: {shlex.join(words)}"
    from holdfast.model import next_action
    from holdfast.views.text import next_steps

    steps = next_steps.read(packet, manifest).choices
    return next_action.hint(step for step in steps if step.command.split()[1:2] != [refused])


def _options(args: dict[str, Any]) -> list[str]:
    """The options of `retry` that ask for the same."""
    words = ["--reset"] if args.get("reset") else []
    for name in ("message", "deadline", "permissions"):
        words += [f"--{name}", str(args[name])] if args.get(name) is not None else []
    for change in args.get("set") or ():
        words += ["--set", change]
    return words


def stop_all(packets: Sequence[Packet], args: dict[str, Any]) -> tuple[Sent, list[Packet]]:
    """Ask tasks to stop. Those that have ended are left as they are, and returned besides."""
    going: list[Packet] = []
    ended: list[Packet] = []
    for packet in packets:
        # A request that is pending, such as a retry, may bring it back.
        (ended if _has_ended(packet) and not inbox.names(packet) else going).append(packet)
    sent = send_all(going, "stop", lambda _: args, kills=bool(args.get("now")))
    for packet, error in list(sent.failed):
        if isinstance(error, RequestRefused) and _has_ended(packet):
            sent.failed.remove((packet, error))  # it ended meanwhile
            ended.append(packet)
    return sent, ended


def stop(packet: Packet, args: dict[str, Any]) -> bool:
    """Ask one task to stop. False if it has ended already. Raises the error of a refused request."""
    sent, ended = stop_all([packet], args)
    for _, error in sent.failed:
        raise error
    return not ended


def _has_ended(packet: Packet) -> bool:
    try:
        return load.read_true(load.wherever(packet))["status"] in ENDS
    except HoldfastError:
        return False  # the request reports what is wrong with it


def answers(requests: Sequence[Posted]) -> Iterator[tuple[Posted, HoldfastError | None]]:
    """Each request as it is answered, with None or why it was refused.

    When no answer came for a while, those that are left are Unanswered; they stay pending.
    """
    left = list(requests)
    last_mono, pause_s = clock.mono(), 0.002
    while left:
        for posted in list(left):
            error = None
            try:
                if not posted.is_answered():
                    continue
            except HoldfastError as refusal:
                error = refusal
            left.remove(posted)
            last_mono, pause_s = clock.mono(), 0.002
            yield posted, error
        if left and clock.mono() - last_mono > max(posted.patience_s for posted in left):
            yield from ((posted, _unanswered(posted)) for posted in left)
            return
        if left:
            clock.sleep(pause_s)
            pause_s = min(pause_s * 1.5, 0.05)


def _unanswered(posted: Posted) -> Unanswered:
    task_id = posted.packet.task_id
    return Unanswered(
        f"the runner of {task_id} did not answer '{posted.verb}' within {posted.patience_s:.0f}s",
        hint=f"the request is still pending; 'holdfast show {task_id}' shows the task",
    )


class Posted:
    """A request in the inbox of a task."""

    def __init__(
        self, packet: Packet, request_id: str, verb: str, *, wakes: bool, kills: bool = False
    ) -> None:
        self.packet = packet
        self.verb = verb
        self._id = request_id
        self._path = packet.request(request_id)
        self._started_mono = clock.mono()
        self._is_answered = False
        self._wakes = wakes
        self._patience = Patience(packet) if kills else None
        #: How long to wait for an answer.
        self.patience_s = ANSWER_S + (KILL_S if kills else 0.0)

    def is_answered(self) -> bool:
        """Whether it was applied. Starts another runner if the last one has exited.

        Raises RequestRefused with the runner's reason, CorruptFile if no runner can ever answer.
        """
        if self._is_answered or not os.path.exists(self._path):
            if not self._is_answered:
                _raise_unless_applied(self.packet, self._id, self.verb)
            self._is_answered = True
            return True
        # The runner may have exited just before the request was written: start another.
        now_mono = clock.mono()
        if now_mono - self._started_mono > _RESTART_S:
            self._started_mono = now_mono
            if locks.is_held(self.packet.runner_lock):
                if self._wakes:
                    pulse.wake(self.packet.runner_lock)
                if self._patience is not None:
                    self._patience.look()  # then the next look starts another
            else:
                _raise_if_unreadable(self.packet, self._path, self.verb)
                start_runner(self.packet)
        return False


class Insistence:
    """Looks after a task that was told to stop, until it has ended: its runner may be stopped or die after
    its answer."""

    def __init__(self, packet: Packet) -> None:
        self._packet = packet
        self._patience = Patience(packet)
        self._started_mono = clock.mono()

    def look(self) -> None:
        """To be called often. Kills a runner that does nothing, and starts one if there is none."""
        if locks.is_held(self._packet.runner_lock):
            self._patience.look()
        elif clock.mono() - self._started_mono > _RESTART_S:
            self._started_mono = clock.mono()
            if not _has_ended(self._packet):
                start_runner(self._packet)


def post_request(
    packet: Packet,
    verb: str,
    args: dict[str, Any],
    *,
    wakes: bool = False,
    kills: bool = False,
    who: Asker | None = None,
) -> Posted:
    """Write a request, and make sure that a runner sees it. Does not wait. Raises ForPersons if `who`
    (default: who runs this process) may not ask for it.

    With `wakes`, a runner that a signal stopped is continued while the answer is awaited. Otherwise the
    keeper does that. With `kills`, one that does nothing for KILL_S is killed, and another is started.
    """
    process.require_proc()
    who = who or asker.find()
    _check(who, packet, verb)
    try:
        request = inbox.drop(packet, verb, args, by=who.by, asker=who.kind)
    except DiskFull as error:
        from holdfast.views import disk_full  # rarely needed

        raise disk_full.with_kill_hint(error, [packet]) from error
    audit.append(
        packet.home,
        {
            "operation": f"request.{verb}",
            "task_id": packet.task_id,
            "by": request.by,
            "asker": request.asker,
            "request": request.id,
            **_changes(args),
        },
    )
    posted = Posted(packet, request.id, verb, wakes=wakes, kills=kills)
    if not inbox.ring(packet):
        start_runner(packet)
    return posted


def _check(who: Asker, packet: Packet, verb: str) -> None:
    asker.check(who, packet, verb)
    if rules(verb).lets_run and not admitted.is_admitted(packet):
        raise _not_admitted(packet, verb)


def _changes(args: dict[str, Any]) -> dict[str, str]:
    """What the request changes, for the audit. Without values: a message may contain anything, and the
    journal has it."""
    names = [str(each).partition("=")[0].rstrip("+-") for each in args.get("set") or ()]
    reasons = [f"--set {', '.join(names)}"] if names else []
    if args.get("permissions") == permissions.FULL:
        reasons.insert(0, "permission prompts bypassed (--permissions full)")
    elif args.get("permissions"):
        reasons.insert(0, f"--permissions {args['permissions']}")
    found = {"reason": "; ".join(reasons)} if reasons else {}
    return {**found, "level": "warn"} if args.get("permissions") == permissions.FULL else found


def _not_admitted(packet: Packet, verb: str) -> NotPossible:
    """It is no task of ours, or no longer the one that a person knows: an agent may have changed what it
    runs while it had no runner."""
    return NotPossible(
        f"cannot {verb} {packet.task_id}: {admitted.objection(packet)}", hint=f"it would run {runs(packet)}"
    )


def runs(packet: Packet) -> str:
    """What a task runs and where, for a person who decides whether it may. Raises as `load.fold`."""
    spec = load.fold(packet).spec
    allowed = sorted({stage.permissions for stage in spec.stages if stage.permissions})
    what = f"{spec.agent} (permissions {', '.join(allowed) or 'none'})"
    if spec.command:
        command = shlex.join(spec.command)
        rest = f" … ({len(command)} characters)" if len(command) > _SHOWN_CHARS else ""
        what = f"the command {command[:_SHOWN_CHARS]}{rest}"
    return f"{what} in {spec.project_dir}"


def adopt(packet: Packet) -> None:
    """A person wants this packet to be a task of this home, as it is now, whoever has made it.

    Raises StorageError.
    """
    try:
        admitted.adopt(packet)
        seals.adopt(packet.seals, packet.journal)
    except OSError as error:
        atomic.storage_failed(error, f"cannot write {packet.admission}")


def accept_project(packet: Packet) -> str:
    """A person wants the task to go on where a link in the place of its project leads now.

    Returns that place; empty if there is no such link. Raises ForPersons, StorageError.
    """
    place = load.moved_project(load.fold(packet).spec)
    if not place or admitted.is_noted(packet, admitted.Kind.PROJECT, place):
        return ""
    asker.require_person("accept another project", home=packet.home)
    try:
        projects.note(packet.home, place)
        admitted.note(packet, admitted.Kind.PROJECT, place)
    except OSError as error:
        atomic.storage_failed(error, f"cannot write {packet.admission}")
    return place


def _raise_if_unreadable(packet: Packet, path: str, verb: str) -> None:
    """Withdraw the request if the journal is unreadable: no runner can ever answer it."""
    try:
        load.fold(packet)
    except HoldfastError as error:
        atomic.forget(path)
        raise CorruptFile(
            f"cannot {verb} {packet.task_id}: its journal is unreadable: {error}",
            hint=f"restore it from a backup; 'holdfast rm --force {packet.task_id}' removes the task",
        ) from error


def _raise_unless_applied(packet: Packet, request_id: str, verb: str) -> None:
    """A runner journals its answer before it removes the request."""
    try:
        with atomic.stream(packet.journal) as file:
            answers = [line for line in files.lines(file) if b'"request":"%s"' % request_id.encode() in line]
    except FileNotFoundError as error:
        raise NotFound(f"task {packet.task_id} was removed meanwhile") from error
    for line in answers:
        if b'"request.refused"' in line:
            raise RequestRefused(f"cannot {verb} {packet.task_id}: {json.loads(line)['reason']}")
    if not answers:
        inbox.revoke(packet, request_id)
        raise RequestRefused(
            f"cannot {verb} {packet.task_id}: its request vanished before a runner read it",
            hint=f"an agent may have removed it from {packet.inbox}; try again",
        )
