"""An execution: one process that a recorder watches for a task, either an attempt or a chore."""

from __future__ import annotations

from holdfast.model import events as ev

#: Starting has failed after this many executions in a row whose recorder died before the process existed.
VOID_LIMIT = 3


def dirname(number: int, stage: str, kind: str) -> str:
    """The name of an execution's directory below attempts/."""
    return f"{number:03d}-{stage}" if kind == "agent" else f"{number:03d}-{stage}.{kind}"


class Execution:
    """What the journal knows about one supervised process."""

    #: `agent`, or what a chore does: `prepare`, `pre_work`, `gate`, `adopt`, `ci`. (A takeover is no
    #: execution.)
    kind = "agent"

    def __init__(self, opened: ev.AttemptOpened) -> None:
        self.number = opened.attempt
        self.attempt_id = opened.attempt_id
        self.stage = opened.stage
        self.agent = opened.agent
        self.started: ev.AttemptStarted | None = None
        self.intent: ev.StopIntended | None = None
        #: When the first stop was requested.
        self.intended_at = ""
        self.ended: ev.AttemptEnded | None = None
        self.swept: ev.AttemptSwept | None = None
        #: Byte of each log after its last journalled event, and how many events ended there.
        self.reached: dict[str, tuple[int, int]] = {}

    @property
    def is_open(self) -> bool:
        """Whether its end has not been journalled."""
        return self.ended is None

    @property
    def dirname(self) -> str:
        """Its directory below attempts/."""
        return dirname(self.number, self.stage, self.kind)

    @property
    def intent_name(self) -> str | None:
        """Why holdfast stopped it, if it did."""
        return self.intent.intent if self.intent is not None else None


class Chore(Execution):
    """A holdfast step around a stage: prepare the workspace, run the repository's checks, judge the work."""

    def __init__(self, opened: ev.AttemptOpened) -> None:
        super().__init__(opened)
        self.kind = opened.kind
