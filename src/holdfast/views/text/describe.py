"""A manifest as text: times, reasons, progress, and how the task ended."""

from __future__ import annotations

from holdfast import clock
from holdfast.model import concerns as objections
from holdfast.model.soundness import UNREADABLE
from holdfast.model.status import DOWN_COMMAND, ENDS, Status
from holdfast.views.text import amounts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: The length to which `one_line` cuts.
_ONE_LINE_CHARS = 300


def one_line(raw: bytes) -> str:
    """The beginning of a file as one line, without control characters."""
    decoded = raw.decode("utf-8", "replace")
    text = " ".join("".join(char if char.isprintable() else " " for char in decoded).split())
    return text if len(text) <= _ONE_LINE_CHARS else text[: _ONE_LINE_CHARS - 1] + "…"


def state(manifest: dict[str, Any]) -> str:
    """The state of a task for people: `stopping` while its agent is being stopped."""
    return "stopping" if manifest.get("stopping") else str(manifest["status"])


#: Groups of tasks in a list, in this order.
GROUPS = ("needs you", "working", "waiting", "queued", "ended")


def group(manifest: dict[str, Any]) -> str:
    """The group of a task in a list."""
    status = manifest["status"]
    if status in ENDS:
        return "ended"
    if status in (Status.INTERRUPTED, UNREADABLE):
        return "needs you"
    return str(status) if status in (Status.WAITING, Status.QUEUED) else "working"


def elapsed_s(manifest: dict[str, Any], now: float) -> float:
    """Seconds from the start of the task to its end, or to now, without time in the queue and time that it
    waited for people.
    """
    begun, ended = manifest.get("begun_at"), manifest.get("finished_at")
    has_never_run = not manifest.get("attempt") and manifest["status"] in ENDS
    if begun is None and (has_never_run or manifest["status"] == Status.QUEUED):
        return 0.0
    asked_s = manifest.get("asked_s") or 0.0
    if interrupt := manifest.get("interrupt"):
        asked_s += max(0.0, now - clock.parse_iso(interrupt["timestamp"]))
    until = clock.parse_iso(ended) if ended else now
    return max(0.0, until - clock.parse_iso(begun or manifest["started_at"]) - asked_s)


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
    step = f"[{agent_step(manifest)}]"
    return line if step in ("[]", line) else f"{step} {line}".rstrip()


def reason(manifest: dict[str, Any], now: float) -> str:
    """The reason of its state, and for a waiting task when it goes on."""
    reason, wake_at = manifest["status_reason"] or "", manifest.get("wake_at")
    if not wake_at or manifest["status"] != Status.WAITING:
        return reason
    left_s = int(max(0.0, clock.parse_iso(wake_at) - now) + 0.5)
    return f"{reason}; goes on in {clock.duration_text(left_s).replace('.0s', 's')}"


#: States in which `waiting_for` counts.
_CAN_WAIT = (Status.SPAWNING, Status.RUNNING, Status.COMPLETING)


def waiting_for(manifest: dict[str, Any]) -> str:
    """`waits for the workspace (fix is writing)`: why a task cannot continue; empty if it can."""
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
    objected = objections.all_as_text(manifest.get("concerns") or ())
    denied: list[dict[str, str]] = manifest.get("denied") or []
    if not denied or manifest["status"] != Status.COMPLETED:
        return objected
    allow, tools = denied[0]["allow"], denied[0].get("tools") or ""
    told = f"tools denied: {tools}" if tools else "tools denied"
    told += f" (--permissions {allow} allows more)" if allow else ""
    return f"{told}; {objected}" if objected else told


def remarks(manifest: dict[str, Any]) -> str:
    """`applied; tools denied in codex_review`: what is worth a word about a task, and no concern."""
    readers: list[str] = manifest.get("denied_readers") or []
    parts = ["applied"] if manifest.get("applied") else []
    parts += [f"tools denied in {', '.join(readers)}"] if readers else []
    return "; ".join(parts)


def interruption(manifest: dict[str, Any], how: str = "needs a person") -> str:
    """Why an interrupted task does not go on by itself."""
    from holdfast.model import next_action  # few tasks are interrupted

    task_id = manifest["task_id"]
    if not next_action.is_question(manifest):
        (resume,) = next_action.for_manifest(manifest).steps
        return f"{task_id} was interrupted by '{DOWN_COMMAND}'; {resume.as_hint()}"
    interrupt: dict[str, Any] = manifest.get("interrupt") or {}
    return f"{task_id} {how}: {interrupt.get('reason') or manifest['status_reason']}"


def takeover(manifest: dict[str, Any], *, is_held: bool) -> list[str]:
    """`taken over by ada at 12:00:01; handed back at 12:10:00, 1 file changed`; nothing if it never was."""
    taken: dict[str, Any] | None = manifest.get("takeover")
    if not taken:
        return []
    by, ended = taken.get("by") or "somebody", taken.get("ended")
    begin = f"taken over by {by} at {amounts.second(str(taken.get('at')))}"
    if not ended:
        return [f"{begin}; {by} has its session now" if is_held else f"{begin}; lost"]
    how = {"handed_back": "handed back", "kept": "ended", "lost": "lost"}.get(ended.get("how"), "ended")
    files = f", {amounts.plural(ended['files'], 'file')} changed" if ended.get("files") else ""
    return [f"{begin}; {how} at {amounts.second(str(ended.get('at')))}{files}"]
