"""Fold what agents report (see fold.py)."""

from __future__ import annotations

from holdfast import clock
from holdfast.ids import is_safe_name
from holdfast.model import events as ev
from holdfast.model.attempt import Attempt
from holdfast.model.task import Task
from holdfast.model.usage import Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def apply_agent_event(task: Task, event: ev.AgentEvent, at: str) -> None:
    """Apply what an agent printed to its attempt."""
    attempt = task.find_attempt(event.attempt)
    if attempt is None:
        return
    offset, count = attempt.reached.get(event.stream, (0, 0))
    if event.offset > offset:
        attempt.reached[event.stream] = (event.offset, 1)
    else:
        attempt.reached[event.stream] = (offset, count + 1 if event.offset == offset else 1)
    attempt.retry_at = None
    if attempt.unanswered_since is not None and type(event) in _AFTER_ANSWER:
        attempt.unanswered_since = None
    task.runner_crashes = 0
    # A table, not a chain of isinstance: there may be hundreds of thousands of events per second.
    fold = _FOLDS.get(type(event))
    if fold is not None:
        fold(task, attempt, event, at)


def _session(task: Task, attempt: Attempt, event: ev.AgentSession, at: str) -> None:
    if not is_safe_name(event.session_id):
        return  # an agent can print anything, and this becomes an argument of the next attempt's command line
    attempt.session_id = event.session_id
    task.stage_state(attempt.stage).session_id = event.session_id


def _text(task: Task, attempt: Attempt, event: ev.AgentText, at: str) -> None:
    attempt.messages += 1
    task.messages += 1
    attempt.earlier_text, attempt.last_text = attempt.last_text, event.text


def _tool_started(task: Task, attempt: Attempt, event: ev.AgentToolStarted, at: str) -> None:
    attempt.tools_started += 1
    attempt.is_limited = False
    task.tool_calls += 1
    attempt.open_tools[event.tool_id] = event


def _tool_finished(task: Task, attempt: Attempt, event: ev.AgentToolFinished, at: str) -> None:
    attempt.tools_finished += 1
    attempt.is_limited = False
    attempt.tool_failed = attempt.tool_failed or event.is_error
    started = attempt.open_tools.pop(event.tool_id, None)
    if event.denied:
        name = started.name if started is not None else "a tool"
        attempt.denied_tools = tuple(dict.fromkeys((*attempt.denied_tools, name)))


def _used(task: Task, attempt: Attempt, event: ev.AgentUsage, at: str) -> None:
    base = Usage() if event.cumulative else attempt.usage
    attempt.usage = base.plus(event)
    attempt.usage_is_of_session = event.of_session


def _retry(task: Task, attempt: Attempt, event: ev.AgentRetry, at: str) -> None:
    attempt.retry = event
    attempt.retries_seen += 1
    attempt.unanswered_since = attempt.unanswered_since or at
    attempt.is_limited = attempt.is_limited or event.is_limited
    attempt.retry_at = clock.iso(clock.parse_iso(at) + (event.delay_s or 0.0))


def _rate_limit(task: Task, attempt: Attempt, event: ev.AgentRateLimit, at: str) -> None:
    # Some programs report it several times, not always with a reset time.
    if event.resets_at is not None or attempt.rate_limit is None:
        attempt.rate_limit = event
    attempt.is_limited = True


def _progress(task: Task, attempt: Attempt, event: ev.AgentProgress, at: str) -> None:
    # A list without steps means that it was cleared.
    task.progress = event if event.steps_total > 0 else None
    task.progress_at = at


def _error(task: Task, attempt: Attempt, event: ev.AgentError, at: str) -> None:
    attempt.error = event


def _result(task: Task, attempt: Attempt, event: ev.AgentResult, at: str) -> None:
    attempt.result = event


#: Events that an agent prints only after the model has answered.
_AFTER_ANSWER = frozenset(
    {
        ev.AgentText,
        ev.AgentToolStarted,
        ev.AgentToolFinished,
        ev.AgentUsage,
        ev.AgentProgress,
        ev.AgentResult,
    }
)
_FOLDS: dict[type[ev.AgentEvent], Any] = {
    ev.AgentSession: _session,
    ev.AgentText: _text,
    ev.AgentToolStarted: _tool_started,
    ev.AgentToolFinished: _tool_finished,
    ev.AgentUsage: _used,
    ev.AgentRetry: _retry,
    ev.AgentRateLimit: _rate_limit,
    ev.AgentProgress: _progress,
    ev.AgentError: _error,
    ev.AgentResult: _result,
}
