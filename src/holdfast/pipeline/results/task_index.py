"""<home>/task-index.json: all pipeline tasks with sessions, results and policies. Derived from the packets.

The runner of each task writes its `state/phase-links.json`; this module combines them. Only the first line of
a journal is read: it has the spec.
"""

from __future__ import annotations

from holdfast import clock
from holdfast.errors import HoldfastError
from holdfast.model import events as ev
from holdfast.model import roles
from holdfast.model.spec import TaskSpec
from holdfast.packet import load
from holdfast.store import atomic, journal
from holdfast.store.layout import Packet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from holdfast.store.layout import Home


def update(home: Home) -> dict[str, Any]:
    """The current index. The file is written only if it changed."""
    entries: dict[str, dict[str, Any]] = {}
    for task_id in load.task_ids(home):
        entry = _entry(home.packet(task_id))
        if entry is not None:
            entries[task_id] = entry
    index = task_index(entries, at=clock.iso_now())
    try:
        old = atomic.read_json(home.task_index) or {}
    except HoldfastError:
        old = {}
    if old.get("tasks") == index["tasks"]:
        return old
    if entries or old:
        atomic.write_json(home.task_index, index, durable=False)
    return index


def task_index(entries: Mapping[str, dict[str, Any]], *, at: str) -> dict[str, Any]:
    """The content of the file."""
    return {"schema": "holdfast.task-index/1", "updated_at": at, "tasks": dict(sorted(entries.items()))}


def task_entry(
    spec: TaskSpec, manifest: Mapping[str, Any], sessions: Mapping[str, str | None]
) -> dict[str, Any]:
    """One task. `manifest` is its manifest.json; `sessions` has the agents' own session ids by stage."""
    phases: dict[str, list[dict[str, Any]]] = {}
    for stage in spec.stages:
        row = {"stage": stage.name, "agent": stage.agent, "session_id": sessions.get(stage.name)}
        phases.setdefault(roles.get(stage.role).phase, []).append(row)
    pipeline = spec.pipeline
    return {
        "status": manifest.get("status"),
        "run": manifest.get("run"),
        "started_at": manifest.get("started_at"),
        "finished_at": manifest.get("finished_at"),
        "intent": pipeline.intent if pipeline is not None else None,
        "profile": pipeline.profile if pipeline is not None else None,
        "policies": {}
        if pipeline is None
        else {
            "retry_budget": pipeline.retry_budget,
            "paid_call_budget": pipeline.paid_call_budget,
            "max_wallclock_s": pipeline.max_wallclock_s,
            "digest_policy": pipeline.digest_policy,
        },
        "phases": phases,
        "links": Packet(f"tasks/{spec.task_id}").phase_links,
    }


def _entry(packet: Packet) -> dict[str, Any] | None:
    """The entry of a task; None if it has no phases or cannot be read."""
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
        entry = task_entry(spec.evolve(stages=tuple(played)), load.read_manifest(packet), sessions)
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
