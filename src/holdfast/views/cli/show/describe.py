"""A manifest in words: how long, how much, what next."""

from __future__ import annotations

from holdfast import clock
from holdfast.errors import HoldfastError
from holdfast.model.status import BY_DOWN, ENDS, WAITS, Status
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


def tokens(manifest: dict[str, Any]) -> str:
    """`12.3k`; nothing where the agent said nothing."""
    usage: dict[str, Any] = manifest.get("usage") or {}
    count = (usage.get("input_tokens") or 0) + (usage.get("output_tokens") or 0)
    return short(count) if count else ""


def cost(manifest: dict[str, Any]) -> str:
    """`$1.20`; nothing where it is unknown."""
    usage: dict[str, Any] = manifest.get("usage") or {}
    usd = usage.get("cost_usd")
    return "" if usd is None else f"${usd:.2f}"


def usage(told: dict[str, Any] | None) -> str:
    """`12.3k tokens in, 950 out, cost $1.20`: of a task or of many. What no agent told is unknown, not zero."""
    told = told or {}
    count_in, count_out = told.get("input_tokens") or 0, told.get("output_tokens") or 0
    is_told = bool(count_in or count_out)
    count = f"{short(count_in)} tokens in, {short(count_out)} out" if is_told else "tokens unknown"
    dollars, silent = cost({"usage": told}), told.get("cost_unknown_of")
    # Of many tasks, a sum without those that told nothing is not what they cost.
    partly = f" (that of {plural(silent, 'task')} is unknown)" if dollars and silent else ""
    return f"{count}, cost {dollars or 'unknown'}{partly}"


def short(count: float) -> str:
    """`950`, `12.3k`, `4.5M`."""
    if count < 1000:
        return str(int(count))
    if count < 999_950:
        return f"{count / 1000:.1f}k"
    return f"{count / 1_000_000:.1f}M"


def size(count_bytes: int) -> str:
    """`12 bytes`, `3.4 kB`."""
    return (
        f"{count_bytes} bytes"
        if count_bytes < 1000
        else f"{short(count_bytes).replace('k', ' k').replace('M', ' M')}B"
    )


def steps(manifest: dict[str, Any]) -> str:
    """`3/10 writing the tests`; nothing where the agent says nothing of its steps."""
    if not manifest.get("progress"):
        return ""
    # Loaded for those few who say something.
    from holdfast.packet import work

    return " ".join(work.words(manifest).split())


def why(manifest: dict[str, Any], now: float) -> str:
    """The reason of its state, and when it goes on by itself."""
    reason, wake_at = manifest["status_reason"] or "", manifest.get("wake_at")
    if not wake_at or manifest["status"] != "waiting":
        return reason
    left_s = int(max(0.0, clock.parse_iso(wake_at) - now) + 0.5)
    return f"{reason}; goes on in {clock.words(left_s).replace('.0s', 's')}"


def waits(manifest: dict[str, Any]) -> str:
    """`waits for the workspace, in which fix writes`: why a task does not start; nothing where it does."""
    said = manifest.get("verdict") or ""
    is_held_up = manifest["status"] in (Status.SPAWNING, Status.COMPLETING) and said.startswith(WAITS)
    return said if is_held_up else ""


def at_step(manifest: dict[str, Any], line: str) -> str:
    """A line of the agent's behind the step that it is at, `[3/10 writing the tests] ok`, unless it says just that."""
    said = f"[{steps(manifest)}]"
    return line if said in ("[]", line) else f"{said} {line}".rstrip()


def plural(count: float, noun: str) -> str:
    """`1 attempt`, `2 attempts`, `0 retries`."""
    said = f"{count:g}" if isinstance(count, float) else str(count)
    if count == 1:
        return f"{said} {noun}"
    return f"{said} {noun[:-1]}ies" if noun.endswith("y") else f"{said} {noun}s"


def minute(at: str) -> str:
    """`2026-01-31 12:00 UTC`: a time, for people."""
    return at[:16].replace("T", " ") + " UTC"


def move(old: object, new: object, reason: object) -> str:
    """`running → crashed: killed by signal 9`. A reason that begins with the state's name says it once."""
    said = str(reason or "").removeprefix(f"{new}: ")
    went = f"{old} → {new}" if old and new else str(new or "")
    return ": ".join(part for part in (went, said) if part)


def exit_words(manifest: dict[str, Any]) -> str:
    """How the last process ended."""
    if manifest.get("exit_signal"):
        return f"killed by signal {manifest['exit_signal']}"
    code = manifest.get("exit_code")
    return "no exit code" if code is None else f"exit code {code}"


def is_question(manifest: dict[str, Any]) -> bool:
    """Whether an interrupted task asks something. One that was interrupted as its home went down can just go on."""
    interrupt: dict[str, Any] = manifest.get("interrupt") or {}
    return (interrupt.get("reason") or manifest.get("status_reason")) != BY_DOWN


def parked(manifest: dict[str, Any], how: str = "needs a person") -> str:
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
