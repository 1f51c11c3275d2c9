"""holdfast show: what a task is doing."""

from __future__ import annotations

import os

from holdfast import clock, paths
from holdfast.errors import CorruptFile, HoldfastError
from holdfast.model.status import ENDS, Status
from holdfast.packet import load, runner_lost
from holdfast.store import atomic
from holdfast.store import lock as locks
from holdfast.store.layout import Home, Packet
from holdfast.views import full_disk
from holdfast.views.cli.parse.command_spec import JSON, TASK, Command
from holdfast.views.cli.show import amounts, describe, fit_text, leftovers, out, tail, terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Attempts and lines of output that are shown.
_ATTEMPTS, _LINES = 10, 5
#: The column in which facts begin.
_AT = 10

COMMAND = Command(
    name="show",
    summary="Show one task: state, stages, attempts, usage, and what to do next.",
    examples=("holdfast show 20260131-fix", "holdfast show 20260131-fix --json | jq .status"),
    arguments=(TASK,),
    options=(JSON.evolve(help="Print manifest.json."),),
)


def run(values: dict[str, Any]) -> int:
    """Print the manifest, as JSON or for people."""
    packet = load.find(Home(paths.home()), values["task"], archived=True)
    manifest = load.read_manifest(packet)
    if values["json"]:
        out.data({**manifest, "runner_gone": runner_lost.is_gone(packet, manifest["status"])})
        return 0
    columns = terminal.width()
    of = ""
    for name, text in facts(packet, manifest, clock.now()):
        of = name or of
        lines = fit_text.wrap(
            fit_text.as_displayed(text),
            columns,
            first=f"{name:{_AT}}",
            rest=" " * _AT,
            is_quoted=of == "output",
        )
        if name == "state":
            lines[0] = lines[0].replace(manifest["status"], terminal.coloured_state(manifest["status"]), 1)
        for line in lines:
            print(line)
    return 0


def facts(packet: Packet, manifest: dict[str, Any], now: float) -> list[tuple[str, str]]:
    """What a person wants to know, name by name."""
    interrupt: dict[str, Any] = manifest.get("interrupt") or {}
    # A question is told once, under its own name.
    asks = bool(interrupt) and describe.is_question(manifest)
    is_told = asks and manifest.get("status_reason") == interrupt.get("reason")
    why = "" if is_told else manifest.get("status_reason")
    rows = [
        ("task", manifest["task_id"]),
        ("name", manifest.get("task_name") or ""),
        ("state", f"{manifest['status']}: {why}" if why else manifest["status"]),
    ]
    item = None
    if manifest["status"] == Status.QUEUED:
        from holdfast.views.cli.queue import wait_reason  # a database, for those alone that wait in it

        item, paused = wait_reason.find_item(packet.home, packet.task_id)
        if item is not None:
            waits = wait_reason.reason(item, paused) or wait_reason.keeper_reason(packet.home)
            rows.append(("queue", f"{item.state}: {waits}" if waits else item.state))
    if describe.waiting_for(manifest):
        rows.append(("waits", describe.waiting_for(manifest).removeprefix("waits ")))
    if asks:
        rows.append(("question", interrupt.get("reason") or ""))
    if manifest.get("wake_at"):
        left_s = clock.parse_iso(manifest["wake_at"]) - now
        rows.append(("wakes", f"{manifest['wake_at']} (in {clock.words(max(0.0, left_s))})"))
    model = f", model {manifest['model']}" if manifest.get("model") else ""
    bypass = ", permission prompts bypassed (--yolo)" if manifest.get("yolo") else ""
    rows += [("agent", f"{manifest['agent']}{model}{bypass}"), ("project", manifest["project_dir"])]
    worktree = _worktree(packet)
    if worktree is not None:
        rows.append(("worktree", f"{worktree['path']} on the branch {worktree['branch']}"))
    if manifest.get("session_id"):
        rows.append(("session", manifest["session_id"]))
    if describe.agent_step(manifest):
        rows.append(("steps", describe.agent_step(manifest)))
    rows += _stages(manifest) + _attempts(packet, manifest) + _times(packet, manifest, now)
    rows.append(("usage", _usage(manifest)))
    if manifest["status"] in ENDS:
        rows.append(("exit", describe.exit_status(manifest)))
    elif manifest.get("pid"):
        rows.append(("process", str(manifest["pid"])))
    disk = full_disk.trouble(packet.home) if manifest["status"] not in ENDS else ""
    if disk:
        rows.append(("disk", disk))
    gone = _runner(packet, manifest["status"])
    if gone:
        rows.append(("runner", gone))
    left = leftovers.as_lines(packet)
    rows += [("left over" if at == 0 else "", line) for at, line in enumerate(left)]
    lines = tail.last_lines(packet.output_log, _LINES)
    rows += [("output" if at == 0 else "", line) for at, line in enumerate(lines)]
    rows.append(("files", packet.path))
    steps = describe.after_failure(packet, manifest) or describe.next_steps(
        manifest, turn=item.state if item is not None else ""
    )
    if worktree is not None and manifest["status"] == Status.COMPLETED and _has_unmerged_work(packet):
        steps = [
            (f"holdfast diff {packet.task_id}", "read what it changed"),
            (f"holdfast apply {packet.task_id}", "bring that into the project"),
            *steps,
        ]
    elif worktree is None and manifest["status"] == Status.COMPLETED and _wrote_in_place(packet):
        steps = [(f"holdfast diff {packet.task_id}", "read what it changed"), *steps]
    if gone and os.path.exists(packet.home.down):
        steps = [("holdfast up", "bring a keeper, which starts another runner"), *steps]
    daemons = leftovers.still_running(packet) if left else {}
    if daemons:
        steps = [*steps, (f"kill {' '.join(map(str, daemons))}", "end what it left running")]
    for at, (command, meaning) in enumerate(steps):
        rows.append(("next" if at == 0 else "", f"{command}   {meaning}"))
    return rows


def _worktree(packet: Packet) -> dict[str, Any] | None:
    """The record of the task's worktree, as long as that is there."""
    try:
        found = atomic.read_json(os.path.join(packet.workspace, "worktree.json"))
    except CorruptFile:
        return None
    return found if found is not None and os.path.isdir(found.get("path") or "") else None


def _has_unmerged_work(packet: Packet) -> bool:
    """Whether there is something to apply. Git is asked, so only where there is a worktree; and it may not know."""
    from holdfast.workspace.worktrees import apply

    try:
        return apply.is_needed(packet)
    except HoldfastError:
        return False


def _runner(packet: Packet, status: str) -> str:
    """That the runner is gone, where one should be, and who brings another; else nothing."""
    if not runner_lost.is_gone(packet, status):
        return ""
    home = packet.home
    is_new = locks.owner(packet.runner_lock) is None
    said = "none yet" if is_new else "gone; what the agent does meanwhile is recorded"
    if locks.is_held(home.keeper_lock):
        return f"{said}. The keeper starts {'one' if is_new else 'another'} in a moment"
    if os.path.exists(home.down):
        return f"{said}. This home is down: 'holdfast up' brings a keeper, which starts another"
    return f"{said}. No keeper lives: 'holdfast up' brings one, which starts another"


def _wrote_in_place(packet: Packet) -> bool:
    """Whether the task worked in the project itself, with a record of what stood there before."""
    if not os.path.exists(os.path.join(packet.workspace, "base.json")):
        return False
    try:
        spec = load.fold(packet).spec
    except HoldfastError:
        return False
    return spec.workspace == "in_place" and any(stage.writes for stage in spec.stages)


def _stages(manifest: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        ("stages" if at == 0 else "", f"{stage['name']}  {stage['state']}")
        for at, stage in enumerate(manifest.get("stages") or [])
    ]


def _attempts(packet: Packet, manifest: dict[str, Any]) -> list[tuple[str, str]]:
    count = manifest["attempt"]
    retries = manifest["total_retries"]
    in_a_row = f", {manifest['retry_count']} in a row" if manifest["retry_count"] else ""
    run = f", run {manifest['run']}" if manifest.get("run", 1) > 1 else ""
    names = load.attempt_names(packet)
    # Numbered like attempts, and none: the count is of agents.
    chores = sum("." in name for name in names)
    beside = f" of agents, and {amounts.plural(chores, 'chore')} of ours around them" if chores else ""
    tries = f"retries: {retries}{in_a_row}" if retries else "no retries"
    rows = [("attempts", f"{count}{beside}, {tries}{run}")]
    if len(names) > _ATTEMPTS:
        rows.append(("", f"… {len(names) - _ATTEMPTS} before these"))
    for name in names[-_ATTEMPTS:]:
        try:
            record = atomic.read_json(packet.attempt(name).record) or {}
        except CorruptFile:
            record = {}
        ended: dict[str, Any] = record.get("ended") or {}
        if ended:
            detail = f": {ended['detail']}" if ended.get("detail") else ""
            how = f"{ended['outcome']} after {clock.words(ended.get('lived_s', 0.0))}{detail}"
        elif not os.path.exists(packet.attempt(name).identity):
            how = "has not started"
        else:
            how = "ended" if os.path.exists(packet.attempt(name).exit) else "open"
        rows.append(("", f"{name}  {how}"))
    return rows


def _times(packet: Packet, manifest: dict[str, Any], now: float) -> list[tuple[str, str]]:
    started = manifest["started_at"]
    ended = manifest.get("finished_at")
    took = clock.words(describe.elapsed_s(manifest, now))
    rows = [("started", f"{started} ({clock.words(max(0.0, now - clock.parse_iso(started)))} ago)")]
    if ended:
        rows.append(("ended", f"{ended} (took {took})"))
    elif at := _progress_at(packet, manifest):
        rows.append(("progress", f"{clock.iso(at)} ({clock.words(max(0.0, now - at))} ago)"))
    if manifest.get("deadline_at") and not ended:
        rows.append(("deadline", manifest["deadline_at"]))
    return rows


def _progress_at(packet: Packet, manifest: dict[str, Any]) -> float:
    """When the agent did or printed something, 0 for never. The manifest is written when something happens, and for output
    alone only now and then: the raw logs know better."""
    told = manifest.get("last_progress_at")
    found = clock.parse_iso(told) if told else 0.0
    for name in load.attempt_names(packet)[-1:]:
        for path in (packet.attempt(name).stdout, packet.attempt(name).stderr):
            try:
                state = os.stat(path)
            except OSError:
                continue
            found = max(found, state.st_mtime if state.st_size else 0.0)
    return found


def _usage(manifest: dict[str, Any]) -> str:
    heartbeat: dict[str, Any] = manifest.get("heartbeat") or {}
    parts = [
        amounts.usage(manifest.get("usage")),
        amounts.plural(heartbeat.get("message_count") or 0, "message"),
        amounts.plural(heartbeat.get("tool_calls") or 0, "tool call"),
    ]
    return ", ".join(parts)
