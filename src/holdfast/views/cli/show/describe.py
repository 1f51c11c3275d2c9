"""A manifest in words: how long, how much, what next."""

from __future__ import annotations

from holdfast import clock
from holdfast.errors import HoldfastError
from holdfast.model.status import BY_DOWN, ENDS, Status
from holdfast.store import atomic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.store.layout import Packet


def elapsed_s(manifest: dict[str, Any], now: float) -> float:
    """From the beginning of the task to its end, or to now; to wait for a turn is no work."""
    begun, ended = manifest.get("begun_at"), manifest.get("finished_at")
    if begun is None and manifest["status"] == Status.QUEUED:
        return 0.0
    return max(
        0.0, (clock.parse_iso(ended) if ended else now) - clock.parse_iso(begun or manifest["started_at"])
    )


def in_state_s(manifest: dict[str, Any], now: float) -> float:
    """Since the task came into its state."""
    return max(0.0, now - clock.parse_iso(manifest["status_updated_at"]))


def agent_step(manifest: dict[str, Any]) -> str:
    """`3/10 writing the tests`; nothing where the agent says nothing of its steps."""
    if not manifest.get("progress"):
        return ""
    # Loaded for those few who say something.
    from holdfast.packet import work_file

    return " ".join(work_file.words(manifest).split())


def reason(manifest: dict[str, Any], now: float) -> str:
    """The reason of its state, and when it goes on by itself."""
    reason, wake_at = manifest["status_reason"] or "", manifest.get("wake_at")
    if not wake_at or manifest["status"] != "waiting":
        return reason
    left_s = int(max(0.0, clock.parse_iso(wake_at) - now) + 0.5)
    return f"{reason}; goes on in {clock.words(left_s).replace('.0s', 's')}"


def waiting_for(manifest: dict[str, Any]) -> str:
    """`waits for the workspace, in which fix writes`: why a task cannot continue; empty if it can."""
    resource = manifest.get("waiting_for")
    # A task that is stopped or interrupted while it waits keeps the field.
    is_waiting = bool(resource) and manifest["status"] in (Status.SPAWNING, Status.COMPLETING)
    return f"waits for {resource}" if is_waiting else ""


def with_step(manifest: dict[str, Any], line: str) -> str:
    """A line of the agent's behind the step that it is at, `[3/10 writing the tests] ok`, unless it says just that."""
    said = f"[{agent_step(manifest)}]"
    return line if said in ("[]", line) else f"{said} {line}".rstrip()


def transition(old: object, new: object, reason: object) -> str:
    """`running → crashed: killed by signal 9`. A reason that begins with the state's name says it once."""
    said = str(reason or "").removeprefix(f"{new}: ")
    went = f"{old} → {new}" if old and new else str(new or "")
    return ": ".join(part for part in (went, said) if part)


def exit_status(manifest: dict[str, Any]) -> str:
    """How the last process ended."""
    if manifest.get("exit_signal"):
        return f"killed by signal {manifest['exit_signal']}"
    code = manifest.get("exit_code")
    return "no exit code" if code is None else f"exit code {code}"


def is_question(manifest: dict[str, Any]) -> bool:
    """Whether an interrupted task asks something. One that was interrupted as its home went down can just go on."""
    interrupt: dict[str, Any] = manifest.get("interrupt") or {}
    return (interrupt.get("reason") or manifest.get("status_reason")) != BY_DOWN


def interruption(manifest: dict[str, Any], how: str = "needs a person") -> str:
    """Why an interrupted task does not go on by itself."""
    task_id = manifest["task_id"]
    if not is_question(manifest):
        return f"{task_id} was interrupted by '{BY_DOWN}'; 'holdfast resume {task_id}' goes on"
    interrupt: dict[str, Any] = manifest.get("interrupt") or {}
    return f"{task_id} {how}: {interrupt.get('reason') or manifest['status_reason']}"


def after_failure(packet: Packet, manifest: dict[str, Any]) -> list[tuple[str, str]]:
    """What the failure asks for that a task of a pipeline stands at: not every one is healed by another try. Nothing where none was
    looked into."""
    if manifest["status"] not in (Status.FAILED, Status.TIMEOUT, Status.ABANDONED, Status.INTERRUPTED):
        return []
    try:
        failure: dict[str, Any] = atomic.read_json(packet.last_failure) or {}
    except HoldfastError:
        return []
    # One that failed stands at it. Another may have got over it, and stand at something else.
    detail = failure.get("detail") or "\n"
    is_at_it = detail in (manifest.get("status_reason") or "")
    if manifest["status"] in (Status.ABANDONED, Status.INTERRUPTED) and not is_at_it:
        return []
    action: dict[str, Any] = failure.get("next_action") or {}
    then = "then go on, with a word to the agent" if " -m " in action.get("then", "") else "then go on"
    steps = [(action.get("command", ""), action.get("why", "")), (action.get("then", ""), then)]
    if manifest["status"] == Status.INTERRUPTED:
        steps.append((f"holdfast stop {manifest['task_id']}", "give it up"))
    return [(command, meaning) for command, meaning in steps if command]


def next_steps(manifest: dict[str, Any], *, turn: str = "") -> list[tuple[str, str]]:
    """Commands that make sense now, and what each does. `turn` is the state of its item in the queue."""
    task_id, status = manifest["task_id"], manifest["status"]
    if turn in ("held", "poison"):
        return [
            (f"holdfast queue retry {task_id}", "let it go all the same"),
            (f"holdfast queue rm {task_id}", "give it up"),
        ]
    if status == Status.QUEUED:
        return [
            (f"holdfast queue show {task_id}", "see what it waits for"),
            (f"holdfast queue rm {task_id}", "give it up"),
        ]
    interrupt: dict[str, Any] = manifest.get("interrupt") or {}
    if status == Status.INTERRUPTED and interrupt.get("approval"):
        return [
            (f"holdfast approve {task_id}", "let the stage start"),
            (f"holdfast reject {task_id} -m 'WHY'", "end it"),
        ]
    if status == Status.INTERRUPTED and not is_question(manifest):
        return [(f"holdfast resume {task_id}", "go on"), (f"holdfast stop {task_id}", "give it up")]
    if status == Status.INTERRUPTED:
        return [
            (f"holdfast resume {task_id} -m 'ANSWER'", "answer and go on"),
            (f"holdfast stop {task_id}", "give it up"),
        ]
    if status == Status.WAITING:
        return [(f"holdfast resume {task_id}", "go on now"), (f"holdfast stop {task_id}", "give it up")]
    if status == Status.COMPLETED:
        return [
            (f"holdfast logs {task_id}", "read its output"),
            (f"holdfast rm {task_id}", "remove its files"),
        ]
    if status == Status.ABANDONED and "deadline" in (manifest.get("status_reason") or ""):
        return [
            (f"holdfast retry {task_id} --deadline 10h", "go on, with more time"),
            (f"holdfast logs {task_id} -n 40", "see what happened"),
        ]
    if status in ENDS:
        return [
            (f"holdfast logs {task_id} -n 40", "see what happened"),
            (f"holdfast retry {task_id}", "try again"),
        ]
    return [(f"holdfast logs -f {task_id}", "follow its output"), (f"holdfast stop {task_id}", "stop it")]
