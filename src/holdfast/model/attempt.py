"""An attempt, so far as the journal knows."""

from __future__ import annotations

from holdfast.model import events as ev
from holdfast.model.outcome import SUCCESS
from holdfast.model.usage import Usage

#: Void attempts in a row after which starting is a failure of its own.
VOID_LIMIT = 3


def dirname(number: int, stage: str, kind: str) -> str:
    """The directory of an attempt below attempts/."""
    return f"{number:03d}-{stage}" if kind == "agent" else f"{number:03d}-{stage}.{kind}"


class Attempt:
    """One lifetime of one agent process, so far as the journal knows."""

    def __init__(self, opened: ev.AttemptOpened) -> None:
        self.number = opened.attempt
        self.attempt_id = opened.attempt_id
        self.stage = opened.stage
        self.agent = opened.agent
        self.mode = opened.mode
        #: `agent`, or a chore of ours: `prepare`, `pre_work`, `gate`.
        self.kind = opened.kind
        self.session_id = opened.session_id
        #: What we asked for; a program may answer with another one.
        self.asked_session_id = opened.session_id
        self.resume_count = opened.resume_count
        self.started: ev.AttemptStarted | None = None
        self.intent: ev.StopIntended | None = None
        #: When somebody first wanted to stop it.
        self.intended_at = ""
        self.ended: ev.AttemptEnded | None = None
        self.swept: ev.AttemptSwept | None = None
        #: What follows from its end was decided and journalled.
        self.is_settled = False
        self.triage: ev.FailureTriaged | None = None
        self.leftovers: ev.LeftoversFound | None = None
        #: Byte of each log behind its last journalled event, and how many ended there: one line can hold several.
        self.reached: dict[str, tuple[int, int]] = {}
        self.open_tools: dict[str, ev.AgentToolStarted] = {}
        self.result: ev.AgentResult | None = None
        self.error: ev.AgentError | None = None
        self.rate_limit: ev.AgentRateLimit | None = None
        self.retry: ev.AgentRetry | None = None
        #: Its last word but for text was about a limit of the service: some programs then wait for hours without another.
        self.is_limited = False
        self.retry_at: str | None = None
        self.retries_seen = 0
        self.tools_started = 0
        self.tools_finished = 0
        self.tool_failed = False
        self.tool_denied = False
        self.messages = 0
        self.last_text = ""
        #: What it said before that.
        self.earlier_text = ""
        self.usage = Usage()
        #: The figures include earlier attempts of the session.
        self.usage_is_of_session = False

    @property
    def has_spoken(self) -> bool:
        """Whether it printed anything that was an event."""
        return "stdout" in self.reached

    @property
    def last_words(self) -> str:
        """What the agent said last. Some programs tell an error in its voice: those words are not its own."""
        is_error = self.error is not None and self.error.message == self.last_text
        return self.earlier_text if is_error else self.last_text

    @property
    def is_open(self) -> bool:
        """Whether its end has not been journalled."""
        return self.ended is None

    @property
    def dirname(self) -> str:
        """Its directory below attempts/."""
        return dirname(self.number, self.stage, self.kind)

    @property
    def has_succeeded(self) -> bool:
        """Whether its end was a success."""
        return self.ended is not None and self.ended.outcome in SUCCESS

    @property
    def intent_name(self) -> str | None:
        """Why we stopped it, if we did."""
        return self.intent.intent if self.intent is not None else None
