"""What the agent is told when it goes on: what happened, what was cut off, what to check first. Pure text."""

from __future__ import annotations

from holdfast.model.attempt import Attempt
from holdfast.model.task import Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

#: Changed files that are named.
_CHANGES = 40


def refusal(reasons: Sequence[str]) -> str:
    """Why a gate did not let the work pass, for the one who did it."""
    listed = "\n".join(f"- {reason}" for reason in reasons)
    return f"The check of your work did not pass. Put this right, then give the whole report again:\n{listed}"


def pre_work(reasons: Sequence[str]) -> str:
    """What the repository's own checks said before the agent began: then it does not look for the fault in its own work."""
    listed = "\n".join(f"- {reason}" for reason in reasons)
    return f"Before you began, these checks of the repository failed:\n{listed}"


def answer(text: str) -> str:
    """What a person said to a question, or on the way."""
    return f"A person answered:\n\n{text}"


def resume_message(
    task: Task, attempt: Attempt | None, *, refused: Sequence[str] = (), changed: Sequence[str] = ()
) -> str:
    """For the same session: it knows the task, it does not know what happened. `refused`: why the gate did not let its
    work pass; `changed`: files that were changed since it began."""
    parts: list[str] = []
    if refused:
        parts.append(refusal(refused))
    elif attempt is not None:
        goal = "go on" if task.spec.pipeline is None else "go on, and end with the whole report"
        parts.append(
            f"Your process ended before the task was finished ({_how(attempt)}). This is the same session: {goal}."
        )
        if attempt.open_tools:
            calls = "\n".join(
                f"- {tool.name} {tool.summary}".rstrip() for tool in attempt.open_tools.values()
            )
            parts.append(f"These tool calls were cut off. Each may have half-run: check first.\n{calls}")
    parts += _changes(changed)
    if task.answer:
        parts.append(answer(task.answer))
    return "\n\n".join(parts) or "Go on with the task."


def recovery_briefing(
    task: Task, attempt: Attempt | None, request: str, *, changed: Sequence[str] = ()
) -> str:
    """For a new session, of this agent or another: the request, what is known, and the last words."""
    parts = [
        "An earlier session worked on this task and cannot go on. Look at what is there before you change anything."
    ]
    if attempt is not None:
        parts.append(f"The earlier session ended: {_how(attempt)}.")
        if attempt.open_tools:
            calls = "\n".join(
                f"- {tool.name} {tool.summary}".rstrip() for tool in attempt.open_tools.values()
            )
            parts.append(f"It was running these when it ended; each may have half-run:\n{calls}")
        if attempt.last_words:
            parts.append(f"Its last words were:\n\n{attempt.last_words}")
    parts += _changes(changed)
    if task.answer:
        parts.append(answer(task.answer))
    return "\n\n".join([*parts, f"The request:\n\n{request}"])


def _changes(changed: Sequence[str]) -> list[str]:
    if not changed:
        return []
    listed = "\n".join(f"- {path}" for path in changed[:_CHANGES])
    more = f"\n- … and {len(changed) - _CHANGES} more" if len(changed) > _CHANGES else ""
    return [f"Files changed so far (by the earlier work, or by somebody else):\n{listed}{more}"]


def _how(attempt: Attempt) -> str:
    ended = attempt.ended
    if ended is None:
        return "its end was not seen"
    if attempt.intent is not None:
        return f"stopped: {attempt.intent.reason}"
    return f"{ended.outcome}: {ended.detail}" if ended.detail else ended.outcome
