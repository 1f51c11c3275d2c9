"""What the agent is told when it goes on: what happened, what was cut off, what to check first. Pure text."""

from __future__ import annotations

from holdfast.model.task import Attempt, Task


def resume_message(task: Task, attempt: Attempt | None) -> str:
    """For the same session: it knows the task, it does not know what happened."""
    parts: list[str] = []
    if attempt is not None:
        parts.append(
            f"Your process ended before the task was finished ({_how(attempt)}). This is the same session: go on."
        )
        if attempt.open_tools:
            calls = "\n".join(
                f"- {tool.name} {tool.summary}".rstrip() for tool in attempt.open_tools.values()
            )
            parts.append(f"These tool calls were cut off. Each may have half-run: check first.\n{calls}")
    if task.answer:
        parts.append(f"A person answered:\n\n{task.answer}")
    return "\n\n".join(parts) or "Go on with the task."


def recovery_briefing(task: Task, attempt: Attempt | None, request: str) -> str:
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
        if attempt.last_text:
            parts.append(f"Its last words were:\n\n{attempt.last_text}")
    if task.answer:
        parts.append(f"A person answered:\n\n{task.answer}")
    return "\n\n".join([*parts, f"The request:\n\n{request}"])


def _how(attempt: Attempt) -> str:
    ended = attempt.ended
    if ended is None:
        return "its end was not seen"
    if attempt.intent is not None:
        return f"stopped: {attempt.intent.reason}"
    return f"{ended.outcome}: {ended.detail}" if ended.detail else ended.outcome
