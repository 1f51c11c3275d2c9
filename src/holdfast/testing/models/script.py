"""The script: chooses the turn for each request."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from holdfast.testing.models.reading import all_texts, last_user_text, offered_tools
from holdfast.testing.models.shapes import sample
from holdfast.testing.models.turns import Turn, Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.testing.models.record import ModelRequest
    from holdfast.testing.models.routes import ApiName

SideRequests = Literal["without_tools", "none"]


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A turn for requests that match all given conditions. It takes no turn of the sequence."""

    turn: Turn
    contains: str | None = None
    """A substring of the user's last text."""
    anywhere: str | None = None
    """A substring of any text, system prompt, call or result of the request."""
    model: str | None = None
    """A substring of the model's name."""
    api: ApiName | None = None
    nth: int | None = None
    """Only the n-th conversation request of the server; retries count."""
    is_side: bool = False
    """Whether it matches side requests instead of conversation requests."""
    times: int | None = None
    """How many requests it answers; None means all that match."""

    def fits(self, request: ModelRequest, nth: int) -> bool:
        """Whether the rule matches this request."""
        return (
            request.is_side == self.is_side
            and (self.nth is None or self.nth == nth)
            and (self.api is None or self.api == request.api)
            and (self.model is None or self.model in request.model)
            and (self.contains is None or self.contains in last_user_text(request))
            and (self.anywhere is None or any(self.anywhere in text for text in all_texts(request)))
        )


class Choice(NamedTuple):
    """A turn and its position in the script."""

    place: str
    turn: Turn


class Script:
    """Turns in order, for the conversation requests of one server.

    1. The first rule that matches and is not used up.
    2. For a side request, `side`; by default "ok", or a minimal JSON value if the request wants JSON.
    3. The next turn, or the one that the function returns.
    4. `after`, when all turns are used up.
    """

    def __init__(
        self,
        turns: Sequence[Turn] | Callable[[ModelRequest], Turn] = (),
        *,
        rules: Sequence[Rule] = (),
        after: Turn | None = None,
        side: Turn | None = None,
        side_requests: SideRequests | Callable[[ModelRequest], bool] = "without_tools",
        usage: Usage | None = None,
        models: Sequence[str] = ("scripted-model",),
    ) -> None:
        self._function = turns if callable(turns) else None
        self._turns = [] if callable(turns) else list(turns)
        self._rules = list(rules)
        self._after = after or Turn(text="done")
        self._side = side
        self._side_requests: SideRequests | Callable[[ModelRequest], bool] = side_requests
        self.usage = usage or Usage()
        self.models = list(models)
        self._lock = threading.Lock()
        self._position = 0
        self._used = [0] * len(self._turns)
        self._rule_used = [0] * len(self._rules)
        self._conversations = 0

    @property
    def turns_left(self) -> int:
        """Turns that were not used yet. A turn that repeats forever counts until its first use."""
        with self._lock:
            rest = self._turns[self._position :]
            begun = bool(rest) and self._used[self._position] > 0
            return len(rest) - (1 if begun and rest[0].repeats is None else 0)

    def is_side(self, request: ModelRequest) -> bool:
        """Whether it asks for a title, a summary or a classification: clients send these without tools."""
        if request.route.operation != "generate" or self._side_requests == "none":
            return False
        if callable(self._side_requests):
            return self._side_requests(request)
        return not offered_tools(request)

    def choose(self, request: ModelRequest) -> Choice:
        """The turn for a request; it counts as used."""
        with self._lock:
            if request.is_conversation:
                self._conversations += 1
            for index, rule in enumerate(self._rules):
                is_used_up = rule.times is not None and self._rule_used[index] >= rule.times
                if not is_used_up and rule.fits(request, self._conversations):
                    self._rule_used[index] += 1
                    return Choice(f"rules[{index}]", rule.turn)
            if request.is_side:
                return Choice("side", self._side or _harmless(request))
            if self._function is None:
                return self._next()
        # Outside the lock: the function may wait for another request.
        return Choice("function", self._function(request))

    def _next(self) -> Choice:
        if self._position == len(self._turns):
            return Choice("after", self._after)
        index = self._position
        turn = self._turns[index]
        self._used[index] += 1
        if turn.repeats is not None and self._used[index] >= turn.repeats:
            self._position += 1
        return Choice(f"turns[{index}]", turn)


def _harmless(request: ModelRequest) -> Turn:
    codec = request.codec
    schema = codec.wanted_schema(request.json) if codec and request.json else None
    return Turn(text="ok" if schema is None else json.dumps(sample(schema)))
