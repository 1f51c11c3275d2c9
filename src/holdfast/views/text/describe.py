"""A manifest as text: times, reasons, progress, and how the task ended."""

from __future__ import annotations

from holdfast import clock
from holdfast.model.elapsed import began_at
from holdfast.model.elapsed import elapsed_s as elapsed_s
from holdfast.model.soundness import UNREADABLE
from holdfast.model.status import DOWN_COMMAND, ENDS, INTERRUPTED_BY, Status, needs_look
from holdfast.views.text import amounts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.store.layout import Packet

#: Shorter waits are not named.
_LEAST_WAIT_S = 1.0
#: The length to which `one_line` cuts.
_ONE_LINE_CHARS = 300


def one_line(raw: bytes) -> str:
    """The beginning of a file as one line, without control characters."""
    decoded = raw.decode("utf-8", "replace")
    text = " ".join("".join(char if char.isprintable() else " " for char in decoded).split())
    return text if len(text) <= _ONE_LINE_CHARS else text[: _ONE_LINE_CHARS - 1] + "…"


def state(manifest: dict[str, Any]) -> str:
    """The state of a task for people: `stopping` while its agent is being stopped, `held` if the queue does
    not start it by itself."""
    if manifest.get("stopping"):
        return "stopping"
    return _queue_state(manifest) or str(manifest["status"])


#: States of queued tasks that the queue does not start by itself.
HELD = ("held", "poison")
#: Groups of tasks in a list, in this order.
GROUPS = ("needs you", "working", "waiting", "queued", "ended")
#: How far `report` looks back. What failed before that needs you no more: it was seen, or does not matter.
LOOK_BACK, _LOOK_BACK_S = "24h", 24 * 3600.0


def group(manifest: dict[str, Any], now: float | None = None, *, is_archived: bool = False) -> str:
    """The group of a task in a list. What was archived was dealt with."""
    status = manifest["status"]
    if status in ENDS:
        is_open = not is_archived and needs_look(manifest)
        is_open = is_open and (manifest.get("finished_at") or "") >= look_back_to(now)
        return "needs you" if is_open else "ended"
    if status in (Status.INTERRUPTED, UNREADABLE) or (status == Status.QUEUED and is_held(manifest)):
        return "needs you"
    return str(status) if status in (Status.WAITING, Status.QUEUED) else "working"


def heading(group: str, count: int, shown: int, hint: str = "") -> str:
    """`ended (30, the last 18 shown)`: the line above the tasks of a group. `hint`: how to see the others."""
    part = f", the last {shown} shown{hint}" if shown < count else ""
    return f"{group} ({count}{part})"


def look_back_to(now: float | None = None) -> str:
    """The time since which an ended task may need you."""
    return clock.iso((clock.now() if now is None else now) - _LOOK_BACK_S)


def is_held(row: dict[str, Any]) -> bool:
    """Whether only a person can let a queued task start, according to its place in the queue."""
    return _queue_state(row) in HELD


def _queue_state(row: dict[str, Any]) -> str:
    """The state of its item, if its place is known (`queue_places`)."""
    place: dict[str, Any] | None = row.get("queue")
    return place["state"] if place else ""


def took(manifest: dict[str, Any], now: float) -> str:
    """`took 3m20s, waited 1h02m, plus 20m00s for a person`: the time of its last run, and its waits. After a
    `retry` it says so: what was used is of all runs."""
    waited_s, asked_s = manifest.get("waited_s") or 0.0, manifest.get("asked_s") or 0.0
    waits = [f"waited {clock.duration_text(waited_s)}"] if waited_s >= _LEAST_WAIT_S else []
    if asked_s >= _LEAST_WAIT_S:
        waits.append(f"{'plus' if waits else 'waited'} {clock.duration_text(asked_s)} for a person")
    last = "the last run " if (manifest.get("run") or 1) > 1 else ""
    return ", ".join([f"{last}took {clock.duration_text(elapsed_s(manifest, now))}", *waits])


def starts(manifest: dict[str, Any]) -> list[tuple[str, str]]:
    """When it was created, and when its last run started: one line if that is the same."""
    created, started = manifest["started_at"], began_at(manifest)
    if started == created:
        return [("started", created)]
    return [("created", created), *([("started", started)] if started else [])]


def repairs(manifest: dict[str, Any], stage: str) -> str:
    """`after 2 repairs`; empty if the gate of the stage never sent work back."""
    count = sum(repair["failed_stage"] == stage for repair in manifest.get("repairs") or ())
    return f"after {amounts.plural(count, 'repair')}" if count else ""


def refusal(repair: dict[str, str]) -> str:
    """`the gate of codex_verify refused the work, which goes back to codex_impl: make test failed`."""
    back = f", which goes back to {repair['stage']}" if repair["stage"] != repair["failed_stage"] else ""
    return f"the gate of {repair['failed_stage']} refused the work{back}: {repair['reason']}"


def in_state_s(manifest: dict[str, Any], now: float) -> float:
    """Seconds since the task entered its state."""
    return max(0.0, now - clock.parse_iso(manifest["status_updated_at"]))


def agent_step(manifest: dict[str, Any]) -> str:
    """`3/10 writing the tests`; empty if the agent does not report its steps."""
    if not manifest.get("progress"):
        return ""
    from holdfast.packet import work_file  # few agents report steps

    return " ".join(work_file.as_text(manifest).split())


def with_step(manifest: dict[str, Any], line: str) -> str:
    """`[3/10 writing the tests] ok`: the agent's step and a line of output, unless they are the same."""
    if not manifest.get("progress"):
        return line
    step = f"[{agent_step(manifest)}]"
    return line if step in ("[]", line) else f"{step} {line}".rstrip()


def reason(manifest: dict[str, Any], now: float) -> str:
    """The reason of its state, and for a waiting task when it goes on."""
    reason, wake_at = manifest["status_reason"] or "", manifest.get("wake_at")
    if not wake_at or manifest["status"] != Status.WAITING:
        return reason
    return f"{reason}; goes on in {clock.whole_seconds(max(0.0, clock.parse_iso(wake_at) - now))}"


#: States in which `waiting_for` counts.
_CAN_WAIT = (Status.SPAWNING, Status.RUNNING, Status.COMPLETING)


def waiting_for(manifest: dict[str, Any]) -> str:
    """`waits for the workspace (fix is writing)`: why a task cannot continue; empty if it can."""
    if waiting := manifest.get("asking"):
        return f"waits for a person, with {', '.join(waiting)}"
    resource = manifest.get("waiting_for")
    # A task that is stopped or interrupted while it waits keeps the field.
    is_waiting = bool(resource) and manifest["status"] in _CAN_WAIT
    return f"waits for {resource}" if is_waiting else ""


def transition(old: object, new: object, reason: object) -> str:
    """`running → crashed: killed by signal 9`. A reason that repeats the state's name is shortened."""
    detail = str(reason or "").removeprefix(f"{new}: ")
    states = f"{old} → {new}" if old and new else str(new or "")
    return ": ".join(part for part in (states, detail) if part)


def answer(event: dict[str, Any]) -> str:
    """`; answer: use the test database`: a person's answer, after the move that it caused."""
    return f"; answer: {event['answer']}" if event.get("answer") else ""


def without_headings(text: str) -> str:
    """A report in one line, without the signs that begin its headings."""
    if "#" not in text:
        return text
    return " ".join(word for word in text.split(" ") if word.strip("#") or not word)


def last_words(manifest: dict[str, Any], line: str) -> str:
    """The agent's last words, else the last line of output, unless that only repeats the result."""
    return manifest.get("last_words") or ("" if line.startswith(("[result: ", "[session ")) else line)


def exit_status(manifest: dict[str, Any]) -> list[str]:
    """How the last process ended; nothing if that would mislead: it succeeded, but the task did not."""
    if manifest.get("exit_signal"):
        return [f"killed by signal {manifest['exit_signal']}"]
    code = manifest.get("exit_code")
    if code == 0 and manifest["status"] != Status.COMPLETED:
        return []
    return ["no exit code" if code is None else f"exit code {code}"]


def concerns(manifest: dict[str, Any]) -> str:
    """`tools denied: Bash (--permissions full allows more); codex_review: 1 blocker`: what a person should
    know about a completed task."""
    objected = ""
    if manifest.get("concerns"):
        from holdfast.model import concerns as objections  # few tasks have any

        objected = objections.all_as_text(manifest["concerns"])
    denied: list[dict[str, str]] = manifest.get("denied") or []
    found = [manifest["left_out"]] if manifest.get("left_out") else list[str]()
    if denied and manifest["status"] == Status.COMPLETED:
        allow, tools = denied[0]["allow"], denied[0].get("tools") or ""
        more = f" (--permissions {allow} allows more)" if allow else ""
        found.append((f"tools denied: {tools}" if tools else "tools denied") + more)
    if manifest.get("over_budget"):
        last = " in the last run" if (manifest.get("run") or 1) > 1 else ""
        found.append(f"over budget: {manifest['over_budget']}{last}")
    return "; ".join([*found, objected] if objected else found)


#: About acceptance commands that prove nothing.
PASSED_BEFORE = "acceptance passed before the work as well"


def retries(manifest: dict[str, Any]) -> int:
    """The retries that have begun. One that is planned, or was when the task was stopped, does not count."""
    return min(manifest.get("total_retries") or 0, max(0, (manifest.get("attempt") or 0) - 1))


def has_passed_before(manifest: dict[str, Any]) -> bool:
    """Whether the acceptance commands of a completed task prove nothing about its work."""
    stages: list[dict[str, Any]] = manifest.get("stages") or []
    return manifest["status"] == Status.COMPLETED and any(stage.get("passed_before") for stage in stages)


def remarks(manifest: dict[str, Any]) -> str:
    """`applied; tools denied in codex_review`: what is worth a word about a task, and no concern."""
    readers: list[str] = manifest.get("denied_readers") or []
    parts = ["applied"] if manifest.get("applied") else []
    parts += [PASSED_BEFORE] if has_passed_before(manifest) else []
    parts += [f"tools denied in {', '.join(readers)}"] if readers else []
    return "; ".join(parts)


def interruption(manifest: dict[str, Any], how: str = "needs a person") -> str:
    """Why an interrupted task does not go on by itself."""
    from holdfast.model import next_action  # few tasks are interrupted

    task_id = manifest["task_id"]
    interrupt: dict[str, Any] = manifest.get("interrupt") or {}
    reason = str(interrupt.get("reason") or manifest["status_reason"])
    if next_action.is_question(manifest):
        return f"{task_id} {how}: {reason}"
    (resume,) = next_action.for_manifest(manifest).steps
    if next_action.is_of_down(manifest):
        return f"{task_id} was interrupted by '{DOWN_COMMAND}'; {resume.as_hint()}"
    return f"{task_id} was interrupted: {interrupt_words(reason)}; {resume.as_hint()}"


def interrupt_words(reason: str) -> str:
    """The reason of an interrupt by a person, after the state: `by ada@host`, or their message."""
    return f"by {reason.removeprefix(INTERRUPTED_BY)}" if reason.startswith(INTERRUPTED_BY) else reason


def is_fan_out(manifest: dict[str, Any]) -> bool:
    """Whether the task merges the work of others, its items."""
    from holdfast.model import fan_out  # few tasks are looked at in this way

    labels: dict[str, str] = manifest.get("labels") or {}
    return labels.get(fan_out.LABEL) == manifest["task_id"]


def mark_waiting_for_person(manifest: dict[str, Any], packet: Packet) -> None:
    """Set `asking` of a fan-out in which only a person can let something go on: the tasks that wait."""
    if manifest["status"] == Status.RUNNING and is_fan_out(manifest):
        from holdfast.packet import fan_out as records  # few tasks are one

        if waiting := records.waiting_for_person(packet):
            manifest["asking"] = waiting


def mark_left_out(manifest: dict[str, Any], packet: Packet) -> None:
    """Set `left_out` of a task whose fan-out did not merge its work: why."""
    if manifest["status"] == Status.COMPLETED and manifest.get("labels"):
        from holdfast.packet import fan_out as records  # few tasks have labels

        if refused := records.refusal(packet, manifest):
            manifest["left_out"] = refused


def takeover_end(how: str | None) -> str:
    """How a takeover ended, in a word or two."""
    return {"handed_back": "handed back", "lost": "lost"}.get(how or "", "ended")


def takeover(manifest: dict[str, Any], *, is_held: bool) -> list[str]:
    """`taken over by ada at 12:00:01; handed back at 12:10:00, 1 file changed`; nothing if it never was."""
    taken: dict[str, Any] | None = manifest.get("takeover")
    if not taken:
        return []
    by, ended = taken.get("by") or "a person", taken.get("ended")
    begin = f"taken over by {by} at {amounts.second(str(taken.get('at')))}"
    if not ended:
        return [f"{begin}; {by} has its session now" if is_held else f"{begin}; lost"]
    how = takeover_end(ended.get("how"))
    files = f", {amounts.plural(ended['files'], 'file')} changed" if ended.get("files") else ""
    return [f"{begin}; {how} at {amounts.second(str(ended.get('at')))}{files}"]
