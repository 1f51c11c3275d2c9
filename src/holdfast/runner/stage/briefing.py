"""Messages for an agent that continues a task: what happened, and what to check first. Pure functions."""

from __future__ import annotations

from holdfast.model import amendment
from holdfast.model.attempt import Attempt
from holdfast.model.task import Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.model.events import TakeoverEnded

#: Maximum number of changed files listed.
_CHANGES = 40


def refusal(reasons: Sequence[str], evidence: str = "", rest: str = "") -> str:
    """Why the gate refused the work; the start of what its commands printed, and the file with the rest."""
    listed = "\n".join(f"- {reason}" for reason in reasons)
    text = f"Your work did not pass the check. Fix the following, then give the full report again:\n{listed}"
    if evidence:
        more = f" (all of it is in {rest})" if rest else ""
        text += f"\n\nThe commands ran on a clean checkout and printed{more}:\n\n{evidence}"
    return text


def pre_work(reasons: Sequence[str]) -> str:
    """Repository checks that failed before the agent started, so that it does not blame its own work."""
    listed = "\n".join(f"- {reason}" for reason in reasons)
    return f"Before you began, these checks of the repository failed:\n{listed}"


def answer(task: Task) -> list[str]:
    """What was asked, and a person's answer or message; empty if there is none."""
    if task.handback is not None:
        return _handed_back(task, task.handback)
    last = task.answers[-1] if task.answers else None
    if last is None or last.answer != (task.answer or ""):
        return [f"A person answered:\n\n{task.answer}"] if task.answer else []
    question = {
        "agent": "You asked a person, and were stopped until the answer came. You asked:",
        "person": "A person interrupted you:",
    }.get(last.asked_by, "The task was interrupted, and a person was asked:")
    reply = (
        f"A person answered:\n\n{last.answer}"
        if last.answer
        else "A person resumed the task without a message."
    )
    return [f"{question}\n\n{last.question}", reply]


def _handed_back(task: Task, ended: TakeoverEnded) -> list[str]:
    """Tells the agent that a person, not holdfast, wrote the last messages in its session."""
    parts = [
        "Meanwhile a person took over this session: they talked to you here and may have changed files by "
        "hand. Now you work alone again: continue the task."
    ]
    if ended.files:
        files = "1 file" if ended.files == 1 else f"{ended.files} files"
        parts.append(f"What changed in the workspace during that time ({files}):\n\n{ended.diff}".rstrip())
    elif ended.how == "lost":
        parts[0] += " Their connection was lost, so check the current state of your files first."
    if task.answer:
        parts.append(f"Their message:\n\n{task.answer}")
    return parts


def resume_message(
    task: Task, attempt: Attempt | None, *, refused: str = "", changed: Sequence[str] = ()
) -> str:
    """The message for a resumed session, which knows the task but not what happened since.

    `refused`: the `refusal` of its work; `changed`: files changed since it started.
    """
    parts: list[str] = []
    if refused:
        parts.append(refused)
    elif attempt is not None:
        goal = "continue" if task.spec.pipeline is None else "continue, and end with the full report"
        parts.append(
            f"Your process ended before the task was finished ({_cause(attempt)}). "
            f"This is the same session: {goal}."
        )
        if attempt.open_tools:
            parts.append(
                "These tool calls were interrupted. Each may have run partially: "
                f"check before you repeat it.\n{_open_calls(attempt)}"
            )
    parts += _changes(changed)
    if task.amended_in == task.run and (changes := amendment.for_agent(task.amended)):
        parts.append(changes)
    parts += answer(task)
    return "\n\n".join(parts) or "Continue the task."


def recovery_briefing(
    task: Task, attempt: Attempt | None, request: str, *, changed: Sequence[str] = ()
) -> str:
    """The prompt of a new session that replaces another: what is known, the last message, and the request."""
    parts = [
        "An earlier session worked on this task and cannot continue. "
        "Check the current state before you change anything."
    ]
    if attempt is not None:
        parts.append(f"The earlier session ended: {_cause(attempt)}.")
        if attempt.open_tools:
            parts.append(
                "These tool calls were running when it ended; each may have run partially:\n"
                + _open_calls(attempt)
            )
        if attempt.last_words:
            parts.append(f"Its last message was:\n\n{attempt.last_words}")
    parts += _changes(changed)
    parts += answer(task)
    return "\n\n".join([*parts, f"The request:\n\n{request}"])


def _open_calls(attempt: Attempt) -> str:
    return "\n".join(f"- {tool.name} {tool.summary}".rstrip() for tool in attempt.open_tools.values())


def _changes(changed: Sequence[str]) -> list[str]:
    if not changed:
        return []
    listed = "\n".join(f"- {path}" for path in changed[:_CHANGES])
    more = f"\n- … and {len(changed) - _CHANGES} more" if len(changed) > _CHANGES else ""
    return [f"Files changed so far (by the earlier session or by someone else):\n{listed}{more}"]


def _cause(attempt: Attempt) -> str:
    ended = attempt.ended
    if ended is None:
        return "cause unknown"
    if attempt.intent is not None:
        return f"stopped: {attempt.intent.reason}"
    return f"{ended.outcome}: {ended.detail}" if ended.detail else ended.outcome
