"""Send a request to a task: write it to the inbox, make sure a runner is alive, wait for the answer."""

from __future__ import annotations

import json
import os

from holdfast import clock, files
from holdfast.errors import CorruptFile, DiskFull, HoldfastError, NotFound, RequestRefused, Unanswered
from holdfast.packet import inbox, load
from holdfast.runner_process import start_runner
from holdfast.store import atomic, audit
from holdfast.store import lock as locks
from holdfast.store.layout import Packet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ANSWER_S = 2.0
_RESTART_S = 0.3


def send_request(packet: Packet, verb: str, args: dict[str, Any]) -> None:
    """Send it and wait until it is applied.

    Raises RequestRefused with the runner's reason, or Unanswered after 2 s; the request then stays pending.
    """
    try:
        request = inbox.drop(packet, verb, args, by=audit.whoami())
    except DiskFull as error:
        from holdfast.views import disk_space  # rarely needed

        raise disk_space.with_kill_hint(error, [packet]) from error
    # Without the arguments: a message may contain anything, and the journal has it.
    audit.append(
        packet.home,
        {
            "operation": f"request.{verb}",
            "task_id": packet.task_id,
            "by": request.by,
            "request": request.id,
        },
    )
    path = packet.request(request.id)
    start_mono = last_start_mono = clock.mono()
    if not inbox.ring(packet):
        start_runner(packet)
    pause_s = 0.002
    while os.path.exists(path):
        now_mono = clock.mono()
        if now_mono - start_mono > ANSWER_S:
            raise Unanswered(
                f"the runner of {packet.task_id} did not answer '{verb}' within {ANSWER_S:.0f}s",
                hint=f"the request is still pending; 'holdfast show {packet.task_id}' shows the task",
            )
        # The runner may have exited just before the request was written: start another.
        if now_mono - last_start_mono > _RESTART_S and not locks.is_held(packet.runner_lock):
            last_start_mono = now_mono
            _raise_if_unreadable(packet, path, verb)
            start_runner(packet)
        clock.sleep(pause_s)
        pause_s = min(pause_s * 1.5, 0.05)
    _raise_if_refused(packet, request.id, verb)


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


def _raise_if_refused(packet: Packet, request_id: str, verb: str) -> None:
    try:
        with atomic.stream(packet.journal) as file:
            for line in files.lines(file):
                if request_id.encode() in line and b'"request.refused"' in line:
                    raise RequestRefused(f"cannot {verb} {packet.task_id}: {json.loads(line)['reason']}")
    except FileNotFoundError as error:
        raise NotFound(f"task {packet.task_id} was removed meanwhile") from error
