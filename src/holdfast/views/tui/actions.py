"""What a person can ask of a task: the requests that the commands send. They wait: run them in a thread."""

from __future__ import annotations

from holdfast import clock
from holdfast.errors import HoldfastError
from holdfast.views import requests, restart_state
from holdfast.views.create import again

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.store.layout import Home, Packet


def stop(home: Home, task_id: str) -> str:
    """Stop it. Returns what to tell the person, as the other functions do; raises HoldfastError."""
    sent, ended = requests.stop_all([home.packet(task_id)], {})
    _raise_first(sent.failed)
    return f"{task_id} has already ended" if ended else f"stopping {task_id}"


def interrupt(home: Home, task_id: str, reason: str) -> str:
    """Interrupt it, so that a person can answer."""
    requests.send_request(home.packet(task_id), "interrupt", {"reason": reason} if reason else {})
    return f"interrupting {task_id}"


def answer(home: Home, task_id: str, message: str) -> str:
    """Answer its question, and let it go on."""
    requests.send_request(home.packet(task_id), "resume", {"message": message} if message else {})
    return _going(home, task_id, "continues")


def approve(home: Home, task_id: str, message: str) -> str:
    """Let the stage start that waits for a person."""
    requests.send_request(home.packet(task_id), "approve", {"message": message} if message else {})
    return _going(home, task_id, "continues")


def reject(home: Home, task_id: str, message: str) -> str:
    """Do not let that stage start."""
    requests.send_request(home.packet(task_id), "reject", {"message": message} if message else {})
    return f"rejected; {task_id} ends"


def retry(home: Home, task_id: str, message: str) -> str:
    """Run an ended task again."""
    packet, told = home.packet(task_id), list[str]()
    requests.send_request(packet, "retry", again.args_of(packet, {"message": message or None}))
    again.list_again(packet, talk=told.append)
    return "; ".join([_going(home, task_id, "runs again"), *told])


def _going(home: Home, task_id: str, how: str) -> str:
    ends_mono = clock.mono() + restart_state.SLOT_WAIT_S
    state = restart_state.as_text(home.packet(task_id), how, ends_mono=ends_mono)
    return f"{task_id} {state}"


def _raise_first(failed: list[tuple[Packet, HoldfastError]]) -> None:
    for _, error in failed:
        raise error
