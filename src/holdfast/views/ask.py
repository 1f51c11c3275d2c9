"""Asking a runner for something: drop the request, make sure that a runner lives, ring, and wait for the answer."""

from __future__ import annotations

import json
import os

from holdfast import clock
from holdfast.errors import CorruptFile, DiskFull, HoldfastError, NotFound, RequestRefused, Unanswered
from holdfast.packet import inbox, load
from holdfast.spawn import start_runner
from holdfast.store import atomic, audit
from holdfast.store import lock as locks
from holdfast.store.layout import Packet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ANSWER_S = 2.0
_RESTART_S = 0.3


def ask(packet: Packet, verb: str, args: dict[str, Any]) -> None:
    """Raises RequestRefused with the runner's reason; Unanswered when nobody answered in 2 s, and the request stands."""
    try:
        request = inbox.drop(packet, verb, args, by=audit.whoami())
    except DiskFull as error:
        from holdfast.views import full_disk  # for this alone

        raise full_disk.with_advice(error, [packet]) from error
    # Not what was said with it: an answer may hold anything, and the journal has it.
    audit.append(
        packet.home,
        {
            "operation": f"request.{verb}",
            "task_id": packet.task_id,
            "by": request.by,
            "request": request.id,
        },
    )
    path = inbox.path_of(packet, request.id)
    start_mono = last_start_mono = clock.mono()
    if not inbox.ring(packet):
        start_runner(packet)
    pause_s = 0.002
    while os.path.exists(path):
        now_mono = clock.mono()
        if now_mono - start_mono > ANSWER_S:
            raise Unanswered(
                f"no runner of {packet.task_id} answered the {verb} within {ANSWER_S:.0f}s",
                hint=f"the request stands and will be carried out; watch with 'holdfast show {packet.task_id}'",
            )
        # The runner may have left just before the request came: then it is up to us.
        if now_mono - last_start_mono > _RESTART_S and not locks.is_held(packet.runner_lock):
            last_start_mono = now_mono
            _raise_if_unreadable(packet, path, verb)
            start_runner(packet)
        clock.sleep(pause_s)
        pause_s = min(pause_s * 1.5, 0.05)
    _raise_if_refused(packet, request.id, verb)


def _raise_if_unreadable(packet: Packet, path: str, verb: str) -> None:
    """A task whose journal cannot be read has no runner, and never will: the request would stand for ever."""
    try:
        load.fold(packet)
    except HoldfastError as error:
        atomic.forget(path)
        raise CorruptFile(
            f"cannot {verb} {packet.task_id}: its journal cannot be read: {error}",
            hint=f"repair it from a backup; 'holdfast rm --force {packet.task_id}' removes it",
        ) from error


def _raise_if_refused(packet: Packet, request_id: str, verb: str) -> None:
    try:
        with open(packet.journal, "rb") as file:
            for line in file:
                if request_id.encode() in line and b'"request.refused"' in line:
                    raise RequestRefused(f"cannot {verb} {packet.task_id}: {json.loads(line)['reason']}")
    except FileNotFoundError as error:
        raise NotFound(f"the task {packet.task_id} was removed meanwhile") from error
