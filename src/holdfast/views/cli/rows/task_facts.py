"""Everything about one task, as named rows: state, stages, attempts, usage, and what to do next."""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.errors import CorruptFile
from holdfast.model import amendment, concerns, next_action
from holdfast.model.outcome import DENIED
from holdfast.model.soundness import is_number
from holdfast.model.status import Status
from holdfast.packet import load
from holdfast.store import atomic
from holdfast.views import disk_full
from holdfast.views.cli.rows.fact_rows import named_rows
from holdfast.views.text import amounts, describe, fit_text, leftovers, log_tail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.model.stage_usage import StageUsage
    from holdfast.store.layout import Packet
    from holdfast.views.facts.detail import Detail
    from holdfast.views.facts.detail_records import Worktree

#: Number of attempts and of output lines shown.
_ATTEMPTS, _LINES = 10, 5
#: Outcomes of attempts whose names do not say what they are.
_OUTCOMES = {DENIED: "success, tools denied", "auth": "login refused", "no_auth": "not logged in"}
_RESTORE = "'holdfast archive --restore {}' brings it back"


def task_facts(task: Detail, now: float) -> list[tuple[str, str]]:
    """Rows of name and text; a row without a name continues the one before."""
    packet, manifest, is_ended = task.packet, task.manifest, task.has_ended
    leftover_lines = leftovers.as_lines(packet)
    rows = [
        ("task", manifest["task_id"]),
        ("name", manifest.get("task_name") or ""),
        *named_rows("labels", [_labels(manifest)] if manifest.get("labels") else []),
        *_state(manifest),
        *named_rows("archived", [_RESTORE.format(packet.task_id)] if task.is_archived else []),
        *named_rows("left out", [text] if (text := _left_out(manifest)) else []),
        *_concerns(manifest),
        *_schedule(task),
        *_queue(task),
        *_waiting(task, now),
        *_answers(manifest),
        *_work(manifest, task.worktree),
        *named_rows("parent", [manifest["parent"]] if manifest.get("parent") else []),
        *_stages(task, now),
        *named_rows("items", [item.text for item in task.items]),
        *_acceptance(task),
        *_repairs(manifest),
        *_pull_request(manifest),
        *_applied(manifest),
        *named_rows("takeover", describe.takeover(manifest, is_held=task.is_taken_over)),
        *_notes(manifest),
        *named_rows("amended", [amendment.as_text(change) for change in manifest.get("amended") or ()]),
        *_attempts(packet, manifest),
        *_times(task, now),
        ("usage", _usage(manifest) if task.items_usage is None else _of_items(task.items_usage)),
        *_budget(task),
    ]
    if is_ended:
        rows += named_rows("exit", [each.removeprefix("exit ") for each in describe.exit_status(manifest)])
    elif manifest.get("pid"):
        rows.append(("process", str(manifest["pid"])))
    if not is_ended and (disk := disk_full.shortage(packet.home)):
        rows.append(("disk", disk))
    if task.lost_runner_message:
        rows.append(("runner", task.lost_runner_message))
    rows += named_rows("left over", leftover_lines)
    rows += named_rows("output", log_tail.last_lines(packet.output_log, _LINES))
    rows.append(("files", packet.path))
    here = f"holdfast show {packet.task_id}"
    steps = [(step.command, step.does) for step in task.next.steps if step.command != here]
    return [*rows, *named_rows("next", _aligned(steps))]


def _aligned(steps: list[tuple[str, str]]) -> list[str]:
    """Commands in one column, what they do in another."""
    width = fit_text.command_width(command for command, _ in steps)
    return [f"{command:{width}}   {does}" for command, does in steps]


def _left_out(manifest: dict[str, Any]) -> str:
    return str(manifest.get("left_out") or "").removeprefix("left out ")


def _labels(manifest: dict[str, Any]) -> str:
    labels: dict[str, str] = manifest.get("labels") or {}
    return ", ".join(f"{key}={text}" for key, text in labels.items())


def _state(manifest: dict[str, Any]) -> list[tuple[str, str]]:
    """The state with its reason; a question has its own row instead."""
    interrupt: dict[str, Any] = manifest.get("interrupt") or {}
    question = interrupt.get("reason") if interrupt and next_action.is_question(manifest) else None
    reason = manifest.get("status_reason")
    if question is not None and reason == question:
        reason = ""
    if stopping := manifest.get("stopping"):
        reason = stopping["reason"]
    state = describe.state(manifest)
    return [("state", f"{state}: {describe.interrupt_words(reason)}" if reason else state)]


def _schedule(task: Detail) -> list[tuple[str, str]]:
    """The schedule that it is a run of, and what ends that."""
    if not os.path.isdir(task.packet.home.schedules):
        return []
    from holdfast.queue import schedule  # few homes have one

    found = schedule.of_run(task.packet.home, task.task_id)
    if found is None:
        return []
    return [("schedule", f"{found.name}, every {found.every}; 'holdfast queue rm {found.name}' ends it")]


def _queue(task: Detail) -> list[tuple[str, str]]:
    """The position of a queued task."""
    position = task.queue
    if position is None:
        return []
    return [("queue", f"{position.state}: {position.reason}" if position.reason else position.state)]


def _waiting(task: Detail, now: float) -> list[tuple[str, str]]:
    """What the task waits for: the workspace, an answer, or a time."""
    manifest = task.manifest
    rows: list[tuple[str, str]] = []
    if waits := describe.waiting_for(manifest):
        rows.append(("waits", waits.removeprefix("waits ")))
    interrupt: dict[str, Any] = manifest.get("interrupt") or {}
    if interrupt and next_action.is_question(manifest):
        rows.append((next_action.need(task.next.name), interrupt.get("reason") or ""))
    if manifest.get("wake_at"):
        left_s = clock.parse_iso(manifest["wake_at"]) - now
        rows.append(
            ("wakes", f"{amounts.second(manifest['wake_at'])} (in {clock.duration_text(max(0.0, left_s))})")
        )
    return rows


def _answers(manifest: dict[str, Any]) -> list[tuple[str, str]]:
    """Interrupts that are over: what a person answered, or that the task was just resumed."""
    answers: list[dict[str, str]] = manifest.get("answers") or []
    answered: list[str] = []
    resumed: list[str] = []
    for each in answers:
        how = f"{each['how']}, {amounts.second(each['at'])}"
        if each["answer"]:
            answered += [each["question"], f"  {each['answer']} ({how})"]
        else:
            resumed += [each["question"], f"  {how}"]
    return [*named_rows("answered", answered), *named_rows("resumed", resumed)]


def _work(manifest: dict[str, Any], worktree: Worktree | None) -> list[tuple[str, str]]:
    """Who works where, and how far it is."""
    model = f", model {manifest['model']}" if manifest.get("model") else ""
    profile = f", permissions {manifest['permissions']}" if manifest.get("permissions") else ""
    rows = [
        ("agent", f"{manifest['agent']}{model}{profile}{_sandbox(manifest)}"),
        ("project", manifest["project_dir"]),
    ]
    if worktree is not None:
        rows.append(("worktree", f"{worktree.path} on branch {worktree.branch}"))
    if manifest.get("session_id"):
        rows.append(("session", manifest["session_id"]))
    if steps := describe.agent_step(manifest):
        rows.append(("steps", steps))
    return rows


def _sandbox(manifest: dict[str, Any]) -> str:
    """`, sandbox with network`; empty for a plain command that nothing confines, and for older versions."""
    sandbox: dict[str, Any] | None = manifest.get("sandbox")
    if sandbox is None:
        return ", no sandbox" if manifest.get("permissions") and "sandbox" in manifest else ""
    if hosts := sandbox.get("hosts"):
        return f", sandbox with network to {str(hosts).replace(',', ', ')}"
    return ", sandbox with network" if sandbox.get("network") else ", sandbox without network"


def _notes(manifest: dict[str, Any]) -> list[tuple[str, str]]:
    """What to know of how it works; if it failed, perhaps why."""
    is_over = manifest["status"] == Status.COMPLETED
    return named_rows("note", [] if is_over else manifest.get("notes") or [])


def _applied(manifest: dict[str, Any]) -> list[tuple[str, str]]:
    words = next_action.applied_words(manifest)
    if not words:
        return []
    applied: dict[str, Any] = manifest["applied"]
    files = amounts.plural(applied.get("files") or 0, "file")
    return [("applied", f"{words} at {amounts.second(str(applied.get('at')))}, {files}")]


def _stages(task: Detail, now: float) -> list[tuple[str, str]]:
    """The stages with what each of them took. One stage took what the task took."""
    stages: list[dict[str, Any]] = task.manifest.get("stages") or []
    used: dict[str, StageUsage] = task.usage_by_stage if len(stages) > 1 else {}
    cells = [(stage["name"], _stage_state(stage), *_took(used.get(stage["name"]), now)) for stage in stages]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    rows: list[str] = []
    for stage, row in zip(stages, cells, strict=True):
        columns = "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True))
        rows.append(f"{columns.rstrip()}{_concluded(stage)}")
    return named_rows("stages", rows)


def _stage_state(stage: dict[str, Any]) -> str:
    """A stage that somebody stopped has not failed."""
    return "stopped" if stage["state"] == "failed" and stage.get("outcome") == "stopped" else stage["state"]


def _took(usage: StageUsage | None, now: float) -> tuple[str, ...]:
    """Time, calls, tokens and cost; `-` for what no agent reported."""
    if usage is None:
        return "", "", "", ""
    open_s = max(0.0, now - clock.parse_iso(usage.since)) if usage.since else 0.0
    used = usage.used
    counts = [count for count in (used.input_tokens, used.output_tokens) if count is not None]
    return (
        clock.duration_text(usage.seconds + open_s),
        amounts.plural(usage.calls, "call"),
        f"{amounts.short(sum(counts)) if any(counts) else '-'} tokens",
        f"${used.cost_usd:.2f}" if used.cost_usd is not None else "$-",
    )


def _concluded(stage: dict[str, Any]) -> str:
    concluded = concerns.as_text(stage.get("decision") or "", stage.get("findings"))
    denied = ", tools were denied" if stage.get("outcome") == DENIED else ""
    return denied + (f": {concluded}" if concluded else "")


def _acceptance(task: Detail) -> list[tuple[str, str]]:
    """What the acceptance commands concluded, in the last gate that ran them, and where to read it."""
    manifest = task.manifest
    if not manifest.get("accept"):
        return []
    count = amounts.plural(manifest["accept"], "command")
    if task.task is None:
        return [("accept", count)]  # its journal is gone
    if task.task.spec.fan_out is not None:
        from holdfast.packet import fan_out  # few tasks are one

        merges = fan_out.accepted_merges(task.packet)
        passed = f"passed at {amounts.plural(merges, 'merge')} (outputs/ITEM.merge.md)"
        return [("accept", f"{count}, {passed if merges else 'not run yet'}")]
    if (judged := task.task.accepted) is None:
        return [("accept", f"{count}, not run yet")]
    concluded = "passed" if judged.passed else "failed"
    if task.task.stage_state(judged.stage).gate_result is not judged:
        # An agent works, or has worked, on it since.
        concluded += (
            f" in {judged.stage}, not run since" if len(manifest["stages"]) > 1 else ", not run since"
        )
    elif after := describe.repairs(manifest, judged.stage):
        concluded += f" {after}"
    before = ", but also before the work" if judged.passed_before else ""
    return [("accept", f"{count}, {concluded}{before} (outputs/{judged.stage}.artifact.md)")]


def _repairs(manifest: dict[str, Any]) -> list[tuple[str, str]]:
    """Work that went back to an agent, and why."""
    found: list[dict[str, str]] = manifest.get("repairs") or []
    lines: list[str] = []
    for each in found:
        refused = f", for {each['failed_stage']}" if each["failed_stage"] != each["stage"] else ""
        lines.append(f"by {each['stage']}{refused}: {each['reason']}")
    return named_rows("repairs", lines)


def _pull_request(manifest: dict[str, Any]) -> list[tuple[str, str]]:
    """The pull request of the gate `ci`, and what was last seen of its checks."""
    found: dict[str, Any] | None = manifest.get("ci")
    return [] if not found else [("checks", f"{found.get('state')}: {found.get('pull_request')}")]


def _concerns(manifest: dict[str, Any]) -> list[tuple[str, str]]:
    found: list[dict[str, str]] = manifest.get("concerns") or []
    return named_rows("concerns", [f"{each['stage']}: {each['text']}" for each in found])


def _attempts(packet: Packet, manifest: dict[str, Any]) -> list[tuple[str, str]]:
    retries, runs = describe.retries(manifest), amounts.in_runs(manifest)
    found = load.numbered_attempts(packet)
    chores = sum(number is None for _, number in found)
    plus = f" plus {amounts.plural(chores, 'holdfast step')}" if chores else ""
    if runs:
        tries = amounts.plural(retries, "automatic retry") if retries else "no automatic retries"
        tries += " in the last one"
    else:
        tries = amounts.plural(retries, "retry") if retries else "no retries"
    rows = [("attempts", f"{manifest['attempt']}{plus}{runs}, {tries}")]
    if len(found) > _ATTEMPTS:
        rows.append(("", f"… {len(found) - _ATTEMPTS} earlier"))
    # The number before the directory, which counts holdfast's steps too.
    return rows + [
        ("", f"{number or '-':>2}  {name}  {_attempt_state(packet, name)}")
        for name, number in found[-_ATTEMPTS:]
    ]


def _attempt_state(packet: Packet, name: str) -> str:
    directory = packet.attempt(name)
    try:
        record = atomic.read_json(directory.record) or {}
    except CorruptFile:
        record = {}
    found: Any = record.get("ended") or {}
    ended: dict[str, Any] = found if isinstance(found, dict) else {"outcome": None}  # pyright: ignore
    if ended:
        lived_s = ended.get("lived_s", 0.0)
        if not isinstance(ended.get("outcome"), str) or not is_number(lived_s):
            return f"{directory.record} is damaged"
        detail = f": {ended['detail']}" if ended.get("detail") else ""
        outcome = _OUTCOMES.get(ended["outcome"]) or ended["outcome"].replace("_", " ")
        return f"{outcome} after {clock.duration_text(lived_s)}{detail}"
    if not os.path.exists(directory.identity):
        return "not started"
    return "ended" if os.path.exists(directory.exit) else "running"


def _times(task: Detail, now: float) -> list[tuple[str, str]]:
    manifest = task.manifest
    ended = manifest.get("finished_at")
    rows = [(name, f"{amounts.second(at)} ({_ago(at, now)})") for name, at in describe.starts(manifest)]
    if ended:
        rows.append(("ended", f"{amounts.second(ended)} ({describe.took(manifest, now)})"))
    elif at := task.progress_at:
        rows.append(
            (
                "progress",
                f"{amounts.second(at)} ({_ago(at, now)})",
            )
        )
    if manifest.get("deadline_at") and not ended:
        rows.append(("deadline", _deadline(task)))
    return rows


def _deadline(task: Detail) -> str:
    """When it is reached. While a task does not work, no time counts: then how much of it is left."""
    left = next((each for each in task.budgets if each.name == "active_s" and each.limit is not None), None)
    if left is None or task.manifest["status"] not in (Status.QUEUED, Status.WAITING, Status.INTERRUPTED):
        return amounts.second(task.manifest["deadline_at"])
    rest_s = max(0.0, (left.limit or 0.0) - (left.used or 0.0))
    return f"after {clock.duration_text(rest_s)} more of active time"


def _ago(at: str, now: float) -> str:
    return f"{clock.duration_text(max(0.0, now - clock.parse_iso(at)))} ago"


def _budget(task: Detail) -> list[tuple[str, str]]:
    """The budgets that a person set, and whether one was exceeded: some programs report their cost only at
    the end."""
    lines: list[str] = []
    used: dict[str, Any] = task.manifest.get("usage") or {}
    if all(used.get(name) is None for name in ("cost_usd", "input_tokens", "output_tokens")):
        return []  # nothing was used, as far as is known: the journal need not be read
    since = ", since it was resumed or retried" if task.counts_again else ""
    for each in task.budgets:
        if each.limit is None or each.name not in ("cost_usd", "tokens"):
            continue
        is_money = each.name == "cost_usd"
        limit = f"${each.limit:.2f}" if is_money else f"{amounts.short(each.limit)} tokens"
        spent = (
            "unknown" if each.used is None else f"${each.used:.2f}" if is_money else amounts.short(each.used)
        )
        if each.is_at_least:
            spent = f"at least {spent}" if each.used else "unknown"
        is_over = each.used is not None and each.used > each.limit
        lines.append(f"{spent} of {limit}" + (", exceeded" if is_over else "") + since)
    return named_rows("budget", lines)


def _of_items(used: dict[str, Any]) -> str:
    """The conductor of a fan-out uses nothing itself."""
    return f"{amounts.usage(used, paid_calls=used['paid_calls'])} (all items together)"


def _usage(manifest: dict[str, Any]) -> str:
    heartbeat: dict[str, Any] = manifest.get("heartbeat") or {}
    parts = [
        amounts.usage(manifest.get("usage"), paid_calls=manifest.get("paid_calls")),
        amounts.plural(heartbeat.get("message_count") or 0, "message"),
        amounts.plural(heartbeat.get("tool_calls") or 0, "tool call"),
    ]
    return ", ".join(parts) + amounts.in_runs(manifest)
