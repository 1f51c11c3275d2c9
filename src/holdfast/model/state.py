"""The state of a task, with the data that exists only in that state."""

from __future__ import annotations

from holdfast.model.record import Record
from holdfast.model.status import ENDS, Status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.model.events import TaskMoved


class State(Record):
    """A state without further data."""

    status: Status


class Waiting(State):
    """The task sleeps until a backoff or a limit of the service is over."""

    status: Status = Status.WAITING
    wake_at: str | None = None


class Interrupted(State):
    """The task waits for a person."""

    status: Status = Status.INTERRUPTED
    #: The question to the person.
    question: str
    since: str
    #: The stage that waits for approval.
    approval: str | None = None
    #: Whether the interrupt file was written, so that removing it resumes the task.
    has_file: bool = False
    #: A request interrupted it at once, because no agent had to be stopped first.
    by_request: bool = False


class Answer(Record):
    """What a person answered to an interrupt."""

    question: str
    #: Empty if the task was resumed without a message.
    answer: str
    at: str
    #: `resumed by ada@host`.
    how: str
    #: Who asked: `agent` (an interrupt file), `person` (a request); empty for a limit, a failure or a gate.
    asked_by: str = ""


def closed_question(question: str) -> str:
    """The question of an interrupt that is over. One that still says "waits for approval", with the command
    to give it, would be taken for an open one."""
    stage, found, _ = question.rpartition(" waits for approval: 'holdfast approve ")
    return f"{stage} waited for approval" if found else question


class Ended(State):
    """The task has ended; only a retry opens it again."""

    finished_at: str


def state_after(event: TaskMoved, at: str) -> State:
    """The state that a move leads to."""
    status = Status(event.new)
    if status is Status.WAITING:
        return Waiting(wake_at=event.wake_at)
    if status is Status.INTERRUPTED:
        return Interrupted(
            question=event.interrupt or event.reason,
            since=at,
            approval=event.approval,
            has_file=event.marked,
            by_request=event.request is not None,
        )
    if status in ENDS:
        return Ended(status=status, finished_at=at)
    return State(status=status)
