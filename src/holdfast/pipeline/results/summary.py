"""outputs/_summary.md, the summary for users and supervising agents: at most 80 lines for any task. Pure.

The conclusion and the next action come first, then budgets, stages, and the output of the latest failure.
Every part is shortened to its share of the lines, so nothing is cut off at the end.
"""

from __future__ import annotations

import json

from holdfast import clock
from holdfast.model.status import Status
from holdfast.pipeline.results.summary_facts import FailureView, StageLine, SummaryView

MAX_LINES = 80
#: Lines of the latest failure's stderr.
HEAD, TAIL = 20, 20
#: Lines of output of a task without a failure.
OUTPUT_LINES = 20
#: Characters of a line of prose, and of a line of output.
_PROSE, _RAW = 300, 200
#: Lines reserved for the latest failure: its facts and a few lines of output.
_FAILURE_ROOM = 24
#: How many repairs are shown, the last ones.
_MAX_REPAIRS = 2
#: How many reasons or remarks are shown.
_MAX_REASONS = 8
#: Lines of a stage in full: heading, facts, empty line.
_STAGE_LINES = 3


def render(view: SummaryView) -> str:
    """The text, with at most MAX_LINES lines."""
    lines = [*_head(view), "", *_budgets(view)]
    if view.items:
        lines += ["", "## Items", "", *(f"- {_prose(item, 200)}" for item in view.items)]
    if view.stages:
        kept = _FAILURE_ROOM if view.failure is not None else 0
        lines += ["", *_stage_part(view.stages, MAX_LINES - len(lines) - kept - 1)]
    if view.failure is not None:
        lines += ["", *_failure_part(view.failure, MAX_LINES - len(lines) - 1)]
    if view.failure is None or not view.failure.excerpt.strip():
        # Five more lines: a heading, empty lines and two fences.
        room = min(OUTPUT_LINES, MAX_LINES - len(lines) - 5)
        if room > 0 and view.tail.strip():
            lines += ["", "## Last output", "", *_fenced(view.tail.strip("\r\n").splitlines()[-room:])]
    return "\n".join(lines) + "\n"


def _head(view: SummaryView) -> list[str]:
    action, failure = view.action, view.failure
    because = f": {_prose(view.reason)}" if view.reason.strip() else ""
    done = sum(stage.state == "done" for stage in view.stages)
    progress = f" ({done} of {len(view.stages)} stages done)" if len(view.stages) > 1 else ""
    but = (
        ", but its reviewers or verifiers object"
        if view.objections and view.status == Status.COMPLETED
        else ""
    )
    lines = [
        f"# {_prose(view.task_name, 80)}: {view.status}",
        "",
        f"{_CONCLUSION.get(view.status, 'The task is ' + _prose(view.status, 40))}{progress}{but}{because}",
        "",
        f"- next_action: **{action.name}** ({_prose(action.why)})"
        if action.why
        else f"- next_action: **{action.name}**",
    ]
    if action.command:
        lines.append(f"- command: {_code(action.command)}")
    if action.then:
        lines.append(f"- then: {_code(action.then)}")
    if failure is not None and not failure.is_healed:
        kind, stage = _prose(failure.failure_class, 40), _prose(failure.stage, 80)
        lines.append(f"- error: {kind}, signature {_code(failure.signature)}, in {stage}")
    lines += [f"- **{_prose(text, 200)}**" for text in view.objections[:_MAX_REASONS]]
    lines.append(f"- task: {_prose(view.task_id, 80)}")
    if view.goal.strip():
        lines.append(f"- goal: {_prose(view.goal)}")
    repairs = f", repairs: {len(view.repairs)}" if view.repairs else ""
    lines.append(f"- attempts: {view.attempts}, retries: {view.retries}{repairs}")
    if view.run > 1:
        lines.append(
            f"- run: {view.run}; attempts, paid calls, tokens and cost are of all runs, the rest of this one"
        )
    lines += [f"- repaired: {_prose(why, 200)}" for why in view.repairs[-_MAX_REPAIRS:]]
    if view.started_at != view.created_at:
        lines.append(f"- created: {view.created_at or '-'}")
    lines.append(f"- started: {view.started_at or '-'}, finished: {view.finished_at or '-'}")
    if view.updated_at:
        lines.append(f"- updated: {view.updated_at}")
    if view.exit_code is not None and (view.exit_code or view.status == Status.COMPLETED):
        lines.append(f"- exit code: {view.exit_code}")
    if view.takeover is not None:
        by, how, files = view.takeover
        lines.append(f"- a person ({_prose(by, 60)}) took over its session: {how}, {files} files changed")
    lines += [f"- asked: {_prose(asked, 200)} (answer: {_prose(told, 200)})" for asked, told in view.answers]
    if view.leftovers:
        lines.append(f"- still running {_prose(view.leftovers)}")
    lines += [f"- {_prose(remark, 200)}" for remark in view.remarks[:_MAX_REASONS]]
    if len(view.remarks) > _MAX_REASONS:
        lines.append(f"- and {len(view.remarks) - _MAX_REASONS} more remarks")
    return lines


_CONCLUSION: dict[str, str] = {
    Status.COMPLETED: "The task is completed",
    Status.FAILED: "The task failed",
    Status.ABANDONED: "The task was abandoned",
    Status.KILLED: "The task was stopped",
    Status.TIMEOUT: "The task ran out of time",
    Status.INTERRUPTED: "The task needs a person",
    Status.WAITING: "The task is waiting and will continue by itself",
}


def _budgets(view: SummaryView) -> list[str]:
    lines = ["## Budgets", ""]
    if view.paid_calls is not None:
        of = f" of {view.paid_call_budget}" if view.paid_call_budget is not None else ""
        lines.append(f"- paid calls: {view.paid_calls}{of}")
    deadline = f" of {clock.duration_text(view.deadline_s)}" if view.deadline_s is not None else ""
    call = (
        f", at most {clock.duration_text(view.call_limit_s)} per call"
        if view.call_limit_s is not None
        else ""
    )
    lines.append(f"- active time: {clock.duration_text(view.active_s)}{deadline}{call}")
    if not (view.input_tokens or view.output_tokens):  # no agent uses none: it did not report them
        tokens = "unknown"
    else:
        tokens = f"{view.input_tokens or 0} in, {view.output_tokens or 0} out"
        tokens = f"at least {tokens}" if view.uncounted_takeovers else tokens
    limit = f" of {view.budget_tokens}" if view.budget_tokens is not None else ""
    # At least nothing is no information.
    is_unknown = view.cost_usd is None or (view.unpriced_calls and not view.cost_usd)
    cost = "unknown" if is_unknown else f"${view.cost_usd:.2f}"
    if not is_unknown and view.unpriced_calls:
        cost = f"at least {cost}"
    dollars = f" of ${view.budget_usd:.2f}" if view.budget_usd is not None else ""
    is_free = not view.has_paid and tokens == cost == "unknown" and not (limit or dollars)
    lines.append("- no paid calls" if is_free else f"- tokens: {tokens}{limit}; cost: {cost}{dollars}")
    return lines


def _stage_part(stages: tuple[StageLine, ...], room: int) -> list[str]:
    """All stages in full if they fit; else one line each; else the most important ones and a count."""
    lines = ["## Stages", ""]
    room -= len(lines)
    if len(stages) * _STAGE_LINES - 1 <= room:
        for stage in stages:
            lines += [f"### {_stage_title(stage)}", _stage_facts(stage), ""]
        return lines[:-1]
    if len(stages) > room:
        room = max(1, room - 1)
        # Failed and running stages matter more than done and pending ones.
        ranked = sorted(range(len(stages)), key=lambda number: (_RANK.get(stages[number].state, 0), -number))
        shown = sorted(ranked[:room])
    else:
        shown = list(range(len(stages)))
    lines += [f"- {_stage_title(stages[number])}; {_stage_facts(stages[number])}" for number in shown]
    if len(shown) < len(stages):
        rest = [stages[number].state for number in range(len(stages)) if number not in shown]
        counts = ", ".join(f"{rest.count(state)} {_prose(state, 20)}" for state in dict.fromkeys(rest[:40]))
        lines.append(f"- and {len(rest)} more: {_prose(counts)}")
    return lines


_RANK = {"failed": 0, "running": 1, "checking": 1, "done": 2, "eliminated": 2, "pending": 3}


def _stage_title(stage: StageLine) -> str:
    played = "/".join(part for part in (stage.agent, stage.role) if part)
    detail = f" ({_prose(played, 60)})" if played else ""
    return f"{_prose(stage.name, 60)}{detail} — {_prose(stage.state, 20)}"


def _stage_facts(stage: StageLine) -> str:
    parts = [
        f"exit {stage.exit_code}" if stage.exit_code is not None else "",
        clock.duration_text(stage.worked_s) if stage.worked_s else "",
        f"{stage.attempts} attempts" if stage.attempts > 1 else "",
        _prose(stage.outcome, 60),
        f"{stage.output_lines} lines of output" if stage.output_lines is not None else "",
        f"{_prose(stage.failure_class, 40)} {_code(stage.signature)}" if stage.failure_class else "",
        f"concludes: {stage.conclusion}" if stage.conclusion else "",
    ]
    return ", ".join(part for part in parts if part) or "nothing yet"


def _failure_part(failure: FailureView, room: int) -> list[str]:
    """The facts as JSON, the reasons, and as much of the output as fits."""
    facts = {
        "stage": _prose(failure.stage, 80),
        "class": _prose(failure.failure_class, 40),
        "signature": _prose(failure.signature, 40),
        "outcome": _prose(failure.outcome, 60),
        "exit_code": failure.exit_code,
        "gate_result": _prose(failure.gate_failed, 60) or None,
        "suggested_actions": [_prose(text, 160) for text in failure.suggested_actions[:3]],
    }
    text = json.dumps(facts, ensure_ascii=False)
    lines = ["## Last Failure" + (" (recovered)" if failure.is_healed else ""), ""]
    lines += ["```json", text, "```"]
    if failure.detail.strip():
        lines.append(f"- detail: {_prose(failure.detail)}")
    reasons = [f"- {_prose(reason, 200)}" for reason in failure.gate_reasons if reason.strip()]
    if len(reasons) > _MAX_REASONS:
        left = len(reasons) - _MAX_REASONS + 1
        reasons = [*reasons[: _MAX_REASONS - 1], f"- and {left} more reasons"]
    lines += reasons
    if failure.rest_in:
        lines.append(f"- all output of the commands: {_code(failure.rest_in)}")
    excerpt = _head_and_tail(failure.excerpt, room - len(lines) - 3)
    if excerpt:
        lines += ["", *_fenced(excerpt)]
    return lines


def _head_and_tail(text: str, room: int) -> list[str]:
    """The first HEAD and the last TAIL lines, or as many as fit, with a note on what is left out."""
    lines = text.strip("\r\n").splitlines()
    if not text.strip() or room < 1:
        return []
    if len(lines) <= min(room, HEAD + TAIL):
        return lines
    room = min(room, HEAD + TAIL + 1) - 1
    if room < 2:
        return lines[-1:]
    head = room // 2
    tail = room - head
    return [*lines[:head], f"… {len(lines) - head - tail} lines left out …", *lines[-tail:]]


def _fenced(lines: list[str]) -> list[str]:
    """A code block whose fence is longer than any in it."""
    cleaned = [_raw(line) for line in lines]
    longest = run = 0
    for char in "\n".join(cleaned):
        run = run + 1 if char == "`" else 0
        longest = max(longest, run)
    fence = "`" * max(3, longest + 1)
    return [fence, *cleaned, fence]


def _raw(line: str) -> str:
    return _cut("".join(char if char.isprintable() else " " for char in line).rstrip(), _RAW)


def _prose(text: str, limit: int = _PROSE) -> str:
    """The text in one line, without control characters and backticks."""
    # A backtick could open a code block that hides the rest.
    line = " ".join(text.split()).replace("`", "'")
    return _cut("".join(char if char.isprintable() else "?" for char in line), limit)


def _code(text: str) -> str:
    return f"`{_prose(text)}`"


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
