"""An attempt: one lifetime of one agent process."""

from __future__ import annotations

from holdfast.model import events as ev
from holdfast.model.execution import Execution
from holdfast.model.outcome import SUCCESS
from holdfast.model.usage import Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.model.state import Answer


class Attempt(Execution):
    """What the journal knows about one attempt."""

    def __init__(self, opened: ev.AttemptOpened) -> None:
        super().__init__(opened)
        self.mode = opened.mode
        self.session_id = opened.session_id
        #: The requested session; the program may report another one.
        self.asked_session_id = opened.session_id
        self.resume_count = opened.resume_count
        #: Its number as shown to users: chores do not count.
        self.ordinal = opened.attempt
        #: Number and end of the stage's attempt before, if that failed.
        self.failed_before: tuple[int, ev.AttemptEnded] | None = None
        #: The repair that begins with it.
        self.repair: ev.RepairPlanned | None = None
        #: What people answered since the attempt before.
        self.answered: tuple[Answer, ...] = ()
        #: The message of the `retry` that began a run with it, empty without one; None for other attempts.
        self.retried: str | None = None
        #: Whether the decision on its end has been journalled.
        self.is_decided = False
        self.triage: ev.FailureTriaged | None = None
        #: The failure signature for which it was counted.
        self.counted_as = ""
        self.leftovers: ev.LeftoversFound | None = None
        self.open_tools: dict[str, ev.AgentToolStarted] = {}
        self.result: ev.AgentResult | None = None
        self.error: ev.AgentError | None = None
        self.rate_limit: ev.AgentRateLimit | None = None
        self.retry: ev.AgentRetry | None = None
        #: Its last event other than text reported a limit of the service; some programs then wait for hours.
        self.is_limited = False
        self.retry_at: str | None = None
        self.retries_seen = 0
        #: The first of its retries since the model last answered.
        self.unanswered_since: str | None = None
        self.tools_started = 0
        self.tools_finished = 0
        self.tool_failed = False
        #: The names of tools that the program refused.
        self.denied_tools: tuple[str, ...] = ()
        self.messages = 0
        self.last_text = ""
        #: The text before `last_text`.
        self.earlier_text = ""
        self.usage = Usage()
        #: The figures include earlier attempts of the session.
        self.usage_is_of_session = False

    @property
    def has_spoken(self) -> bool:
        """Whether it printed any event."""
        return "stdout" in self.reached

    @property
    def last_words(self) -> str:
        """What the agent said last: the text of its result, which comes after all messages; without one, its
        last message, or the one before it if the last one is an error."""
        return self._result_text or self._last_message

    @property
    def report(self) -> str:
        """Its report, as far as the journal has it: some programs print a short text after it, so it is the
        longer one of the last message and the result."""
        return max(self._result_text, self._last_message, key=len)

    @property
    def _result_text(self) -> str:
        """The text of its result; empty if that is an error, or repeats a message."""
        result = self.result
        return result.text if result is not None and result.is_new and not result.is_error else ""

    @property
    def _last_message(self) -> str:
        is_error = self.error is not None and self.error.message == self.last_text
        return self.earlier_text if is_error else self.last_text

    @property
    def has_succeeded(self) -> bool:
        """Whether it ended with success."""
        return self.ended is not None and self.ended.outcome in SUCCESS
