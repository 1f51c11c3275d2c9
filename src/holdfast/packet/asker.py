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
    #: Packets of other homes whose agents run this one: a task in another home has no parent in its journal.
    outer: tuple[str, ...] = ()

    @property
    def packets(self) -> tuple[Packet, ...]:
        """The tasks for whose agents it speaks: its own first."""
        return tuple(map(Packet, (self.packet, *self.outer)))


def find() -> Asker:
    """A person, or the agent that runs this process."""
    around = agents_above(os.getppid())
    if not around:
        return Asker(kind="person", by=audit.whoami())
    packet, *others = around
    home = Packet(packet).home.path
    # In its own home, the journal knows better: a runner may be below the agent that had it started.
    outer = tuple(each for each in others if not _is_same(Packet(each).home.path, home))
    return Asker(kind="agent", by=f"agent of {os.path.basename(packet)}", packet=packet, outer=outer)


def reply(by: str) -> Asker:
    """A person's answer that came through another program, such as a chat."""
    return Asker(kind="reply", by=by)


def check(asker: Asker, packet: Packet, verb: str) -> None:
    """Raises ForPersons if an agent asks what only a person may ask of this task."""
    if asker.kind != "agent" or verb not in FOR_PERSONS | FOR_STARTERS:
        return
    packets = asker.packets
    own, which = packets[0], ""
    for task in (task for each in packets for task in _lineage(each)):
        if _is_same(task.path, packet.path):
            which = "its own task" if task is own else "the task that started its own"
    here = [each for each in packets if _is_same(each.home.path, packet.home.path)]
    if not which and verb in FOR_STARTERS and here:
        is_started = any(_is_same(task.path, each.path) for task in _lineage(packet) for each in here)
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
    if home is None or any(_is_same(each.home.path, home.path) for each in asker.packets):
        own = os.path.basename(asker.packet)
        raise ForPersons(
            f"cannot {what}: an agent may not do this",
            hint=f"a person decides; 'holdfast interrupt {own} -m QUESTION' asks one",
        )


def parent_of(asker: Asker, tasks: str) -> str | None:
    """The task whose agent asks, if it is in the home with this directory of tasks."""
    for packet in (asker.packet, *asker.outer) if asker.packet else ():
        if os.path.realpath(os.path.dirname(packet)) == os.path.realpath(tasks):
            return os.path.basename(packet)
    return None


def agents_above(pid: int) -> list[str]:
    """The packets of the attempts to which a process belongs, the innermost first."""
    found: list[str] = []
    for _ in range(_DEEPEST if process.HAS_PROC else 0):
        if pid <= 1:
            break
        for path in process.open_files(pid):
            if path.endswith(("/lock", "/runner.lock")) and is_our_lock(path):
                folder = os.path.dirname(path)
                is_runner = path.endswith("/runner.lock")
                found.append(folder if is_runner else os.path.dirname(os.path.dirname(folder)))
        pid = process.parent(pid)
    return list(dict.fromkeys(found))


def _lineage(own: Packet) -> list[Packet]:
    """A task, the task whose agent started it, and so on."""
    lineage, seen = [own], {own.task_id}
    while True:
        try:
            parent = load.fold(lineage[-1]).spec.parent
            if parent is None or parent in seen:
                return lineage
            lineage.append(own.home.packet(parent))
        except (HoldfastError, OSError):
            return lineage
        seen.add(parent)


def _is_same(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False
