"""What agents report, in the same form for every program. Each event has its position in the log."""

from __future__ import annotations

from holdfast.model.event import Event

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar, Self


#: Types that a field of an agent event may have, by annotation.
_KINDS: dict[str, Any] = {
    "str": str,
    "str | None": (str, type(None)),
    "bool": bool,
    "int": int,
    "int | None": (int, type(None)),
    "float | None": (int, float, type(None)),
}
_NUMBERS = frozenset({"int", "int | None", "float | None"})
#: A larger number is invalid.
_HUGE = 1e15


class AgentEvent(Event):
    """Base of the normalised agent events. A parser leaves the position empty; `place` sets it."""

    attempt: int = 0
    #: Byte offset in the log after the event's line.
    offset: int = 0
    #: The log: stdout, or stderr if the program reports something there.
    stream: str = "stdout"
    #: When it happened, at the latest, if that is much earlier than `at`, when it was read; else left out.
    said_at: str | None = None
    #: For each field of the class: its name, its types, and whether it is a number.
    kinds: ClassVar[tuple[tuple[str, Any, bool], ...]] = ()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        own = cls.__annotations__.items()
        cls.kinds = tuple((name, _KINDS.get(kind, object), kind in _NUMBERS) for name, kind in own)

    def is_sound(self) -> bool:
        """Whether each field has a valid value. An agent may print anything."""
        store = self.__dict__
        for name, kind, is_number in self.kinds:
            value: Any = store[name]
            if not isinstance(value, kind):
                return False
            # This form of the comparison also rejects NaN.
            if is_number and value is not None and not -_HUGE < value < _HUGE:
                return False
        return True

    def to_json(self) -> dict[str, Any]:
        """Plain data. A copy is enough: no field is nested."""
        data = self.__dict__.copy()
        if data["said_at"] is None:
            del data["said_at"]
        return data

    def place(self, attempt: int, offset: int, stream: str = "stdout", said_at: str | None = None) -> Self:
        """Set its position. Changes the event in place: there may be hundreds of thousands per second."""
        store = self.__dict__
        store["attempt"] = attempt
        store["offset"] = offset
        store["stream"] = stream
        if said_at is not None and store["said_at"] is None:
            store["said_at"] = said_at
        return self


class AgentSession(AgentEvent):
    """The agent reported its session."""

    type = "agent.session"
    session_id: str
    model: str | None = None


class AgentText(AgentEvent):
    """The agent printed text."""

    type = "agent.text"
    text: str


class AgentToolStarted(AgentEvent):
    """A tool call began."""

    type = "agent.tool_started"
    tool_id: str
    name: str
    summary: str = ""


class AgentToolFinished(AgentEvent):
    """A tool call ended."""

    type = "agent.tool_finished"
    tool_id: str
    is_error: bool = False
    denied: bool = False
    #: The beginning of what it returned, redacted; empty if the agent does not report it.
    result: str = ""


class AgentUsage(AgentEvent):
    """The agent reported tokens and cost. `cumulative`: the figures replace earlier ones of the attempt, else
    they are added. `of_session`: they include earlier attempts of the same session."""

    type = "agent.usage"
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    cumulative: bool = False
    of_session: bool = False


class AgentRetry(AgentEvent):
    """The agent announced a retry after a pause."""

    type = "agent.retry"
    delay_s: float | None = None
    reason: str = ""
    #: Whether the service refused the call because of a limit (status 429).
    is_limited: bool = False


class AgentRateLimit(AgentEvent):
    """The agent reached a limit of the service. `resets_at` is null if the agent does not report it."""

    type = "agent.rate_limit"
    resets_at: str | None = None
    reason: str = ""


class AgentProgress(AgentEvent):
    """Progress on the agent's to-do list. Not every CLI has one."""

    type = "agent.progress"
    steps_completed: int
    steps_total: int
    #: The current step, if the agent reports it.
    current_step: str | None = None


class AgentError(AgentEvent):
    """The agent reported an error of a known kind."""

    type = "agent.error"
    kind: str
    message: str


class AgentResult(AgentEvent):
    """The agent reported its final result."""

    type = "agent.result"
    is_error: bool
    subtype: str = ""
    text: str = ""
    turns: int | None = None
    #: Its text was not printed before, as a message or an error.
    is_new: bool = False
