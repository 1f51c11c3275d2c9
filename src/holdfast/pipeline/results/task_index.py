"""<home>/task-index.json: the tasks that have phases, with their sessions, results and policies. Derived from the packets.

The runner of each task keeps its `state/phase-links.json`; here they are put together. Journals are not folded: their first
line has what was asked, and that is all that is read of them.
"""

from __future__ import annotations

from holdfast import clock
from holdfast.errors import HoldfastError
from holdfast.model import events as ev
from holdfast.model.spec import TaskSpec
from holdfast.packet import load
from holdfast.pipeline.results import phases
from holdfast.store import atomic, journal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.store.layout import Home, Packet


def update(home: Home) -> dict[str, Any]:
    """The index as it is now; the file is written where it is another one."""
    entries: dict[str, dict[str, Any]] = {}
    for task_id in load.task_ids(home):
        entry = _entry(home.packet(task_id))
        if entry is not None:
            entries[task_id] = entry
    index = phases.task_index(entries, at=clock.iso_now())
    try:
        old = atomic.read_json(home.task_index) or {}
    except HoldfastError:
        old = {}
    if old.get("tasks") == index["tasks"]:
        return old
    if entries or old:
        atomic.write_json(home.task_index, index, durable=False)
    return index


def _entry(packet: Packet) -> dict[str, Any] | None:
    """The entry of a task; None where it has no phases, or cannot be read: others can."""
    try:
        links = atomic.read_json(packet.phase_links)
        spec = _spec(packet) if links is not None else None
        if links is None or spec is None:
            return None
        stages: dict[str, Any] = {
            name: stage for phase in links["phases"].values() for name, stage in phase["stages"].items()
        }
        played = [
            stage.evolve(agent=stages.get(stage.name, {}).get("agent") or stage.agent)
            for stage in spec.stages
        ]
        sessions = {name: stage.get("session_id") for name, stage in stages.items()}
        entry = phases.task_entry(spec.evolve(stages=tuple(played)), load.read_manifest(packet), sessions)
        for rows in entry["phases"].values():
            for row in rows:
                row["artifact"] = stages.get(row["stage"], {}).get("artifact")
        entry["results"] = {name: phase["canonical"] for name, phase in links["phases"].items()}
    except (HoldfastError, OSError, KeyError, TypeError, AttributeError, ValueError):
        return None
    return entry


def _spec(packet: Packet) -> TaskSpec | None:
    for _, event in journal.read(packet.journal):
        return TaskSpec.from_json(event.spec) if isinstance(event, ev.TaskCreated) else None
    return None
