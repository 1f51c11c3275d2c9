"""Who is asking: a person (or their script), or an agent inside an attempt.

The parents of this process show it: the recorder of an attempt has the attempt's lock open, the runner that
of its task, and both adopt what an agent detaches. Any process can copy or empty an environment, so it
proves nothing. (What an agent of the same user can still do is in docs/security.md.)
"""

from __future__ import annotations

import os

from holdfast.errors import ForPersons, HoldfastError
from holdfast.model.record import Record
from holdfast.model.request import REQUESTS, rules
from holdfast.packet import load
from holdfast.store import admitted, audit, process
from holdfast.store.layout import Home, Packet, is_our_lock

#: What an agent may not ask of its own task, or of one that started it: a person decides.
FOR_PERSONS = frozenset(verb for verb, row in REQUESTS.items() if row.for_persons)
#: What an agent may do only with tasks that it started: it removes work, changes the user's files, or brings
#: another environment.
FOR_STARTERS = frozenset({"rm", "apply", "pr", "retry"})
#: Stop at this depth of parents. No agent can hide behind that many processes.
_DEEPEST = 100_000


class Asker(Record):
    """The sender of a request."""

    #: `person`, `agent`, or `reply`: a person's answer that a program passes on.
    kind: str
    #: For journal and audit.
    by: str
    #: Of an agent: the packet of its task.
    packet: str = ""


def find() -> Asker:
    """A person, or the agent that runs this process."""
    packet = _packet_around()
    if packet is None:
        return Asker(kind="person", by=audit.whoami())
    return Asker(kind="agent", by=f"agent of {os.path.basename(packet)}", packet=packet)


def reply(by: str) -> Asker:
    """A person's answer that came through another program, such as a chat."""
    return Asker(kind="reply", by=by)


def check(asker: Asker, packet: Packet, verb: str) -> None:
    """Raises ForPersons if an agent asks what only a person may ask of this task."""
    if asker.kind != "agent" or verb not in FOR_PERSONS | FOR_STARTERS:
        return
    own = Packet(asker.packet)
    which = ""
    for task in _lineage(own):
        if _is_same(task.path, packet.path):
            which = "its own task" if task is own else "the task that started its own"
    if not which and verb in FOR_STARTERS and _is_same(own.home.path, packet.home.path):
        is_started = any(_is_same(task.path, own.path) for task in _lineage(packet))
        which = "" if is_started else "a task that it did not start"
    if not which and rules(verb).lets_run and not admitted.is_admitted(packet):
        # A person who names it adopts it. An agent may have written it.
        which = "a packet that no command of this home created"
    if which:
        raise ForPersons(
            f"cannot {verb} {packet.task_id}: an agent may not {verb} {which}",
            hint=f"a person decides; 'holdfast interrupt {own.task_id} -m QUESTION' asks one",
        )


def require_person(what: str, *, home: Home | None = None) -> None:
    """Raises ForPersons if an agent wants to do what concerns more than its task.

    With `home`, only if its task is in that home.
    """
    asker = find()
    if asker.kind != "agent":
        return
    if home is None or _is_same(Packet(asker.packet).home.path, home.path):
        own = os.path.basename(asker.packet)
        raise ForPersons(
            f"cannot {what}: an agent may not do this",
            hint=f"a person decides; 'holdfast interrupt {own} -m QUESTION' asks one",
        )


def parent_of(asker: Asker, tasks: str) -> str | None:
    """The task whose agent asks, if it is in the home with this directory of tasks."""
    if not asker.packet or os.path.realpath(os.path.dirname(asker.packet)) != os.path.realpath(tasks):
        return None
    return os.path.basename(asker.packet)


def _lineage(own: Packet) -> list[Packet]:
    """A task, the task whose agent started it, and so on."""
    lineage, seen = [own], {own.task_id}
    while True:
        try:
            parent = load.fold(lineage[-1]).spec.parent
        except (HoldfastError, OSError):
            return lineage
        if parent is None or parent in seen:
            return lineage
        seen.add(parent)
        lineage.append(own.home.packet(parent))


def _is_same(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


def _packet_around() -> str | None:
    """The packet of the innermost attempt above this process."""
    if not process.HAS_PROC:
        return None
    pid = os.getppid()
    for _ in range(_DEEPEST):
        if pid <= 1:
            return None
        for path in process.open_files(pid):
            if path.endswith(("/lock", "/runner.lock")) and is_our_lock(path):
                folder = os.path.dirname(path)
                return folder if path.endswith("/runner.lock") else os.path.dirname(os.path.dirname(folder))
        pid = process.parent(pid)
    return None
