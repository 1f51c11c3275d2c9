"""The context of an interrupt, for the person who answers it: `state/interrupts/<n>/`.

    context.json   task, agent, workspace, git status, last events
    summary.md     the same as text
    logs.txt       the last lines of output.log
    work.json      the work item, if there is one

Everything is redacted. Failures to save are only logged in runner.log; saving takes a few seconds at most.
"""

from __future__ import annotations

import json
import os

from holdfast import clock, files, ids
from holdfast.errors import HoldfastError
from holdfast.model.status import Cause
from holdfast.packet import work_file
from holdfast.redact import Redactor
from holdfast.store import atomic, tail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.runner.ledger import Ledger
    from holdfast.store.layout import Packet

SCHEMA = "holdfast.context/1"
LOG_LINES = 100
EVENTS = 20
#: Timeout of git: the workspace may be huge, or on a disk that hangs.
GIT_S = 5.0
_GIT_CHARS = 20000
_TAIL_BYTES = 256 * 1024


def save(ledger: Ledger, reason: str, *, cause: str = "", approval: str | None = None) -> str | None:
    """Save the context of an interrupt. Returns its directory, or None if that failed; never raises."""
    try:
        return _save(ledger, reason, cause, approval)
    except (OSError, HoldfastError, ValueError) as error:
        files.log(f"the context of the interrupt was not saved: {error!r}")
        return None


def _save(ledger: Ledger, reason: str, cause: str, approval: str | None) -> str:
    packet, redact = ledger.packet, ledger.redact
    atomic.make_directory(packet.interrupts)
    directory = packet.interrupt(_next_number(packet.interrupts))
    atomic.make_new_directory(directory.path)
    item = work_file.read(packet)
    context = _masked(
        {**_context(ledger, reason, cause, item), "resume": _resume(packet.task_id, cause, approval)}, redact
    )
    _write(directory.logs, redact(ledger.tail(LOG_LINES)) + "\n")
    if item is not None:
        atomic.write_json(directory.work, _masked(item, redact), durable=False)
    _write(directory.summary, _summary(context))
    # Written last: if it exists, the others do too.
    _write(directory.context, json.dumps(context, ensure_ascii=False, indent=1) + "\n")
    return directory.path


def _masked(value: Any, redact: Redactor) -> Any:
    """Redact each string separately; masks across strings would break the JSON."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {name: _masked(inner, redact) for name, inner in value.items()}  # pyright: ignore
    if isinstance(value, list):
        return [_masked(inner, redact) for inner in value]  # pyright: ignore
    return value


def _write(path: str, text: str) -> None:
    atomic.write(path, text.encode("utf-8", "backslashreplace"), durable=False)


def _next_number(folder: str) -> int:
    return max((ids.number_in(name) or 0 for name in os.listdir(folder)), default=0) + 1


def _context(ledger: Ledger, reason: str, cause: str, item: dict[str, Any] | None) -> dict[str, Any]:
    task, attempt = ledger.task, ledger.task.attempt
    cwd = _workspace(ledger)
    return {
        "schema": SCHEMA,
        "task_id": task.spec.task_id,
        "task_name": task.spec.task_name,
        "goal": task.spec.goal,
        "timestamp": clock.iso_now(),
        "interrupt_reason": reason,
        "interrupt_cause": cause,
        "status": str(task.status),
        "stage": task.stage,
        "stages_done": list(task.stages_done),
        "agent": attempt.agent if attempt is not None else task.spec.agent,
        "actor": _actor(ledger),
        "session_id": attempt.attempt_id if attempt is not None else None,
        "agent_session_id": task.session_id,
        "attempt": attempt.number if attempt is not None else None,
        "attempts": task.attempt_count,
        "project_dir": task.spec.project_dir,
        "cwd": cwd,
        "git": _git(ledger.packet, cwd),
        "last_words": attempt.last_words[-2000:] if attempt is not None else "",
        "open_tools": [
            {"name": tool.name, "summary": tool.summary}
            for tool in (attempt.open_tools.values() if attempt is not None else ())
        ],
        "work": item if item is not None else (task.spec.work or None),
        "events": _last_events(ledger.packet.journal),
    }


def _actor(ledger: Ledger) -> str:
    try:
        data = atomic.read_json(ledger.packet.env) or {}
    except HoldfastError:
        data = {}
    env: Any = data.get("env") or {}
    return str(env.get("BD_ACTOR") or "holdfast")


def _workspace(ledger: Ledger) -> str:
    """The agent's working directory, as the journal has it."""
    task = ledger.task
    return task.workspace_of(task.stage) if task.stage else task.spec.project_dir


def _git(packet: Packet, cwd: str) -> dict[str, Any] | None:
    """`git status --porcelain=v2 --branch` of the workspace; None outside of git.

    With the excludes of the task's start where they were kept: for `clean_git`, and with snapshots.
    """
    # Imported late: it imports subprocess.
    from holdfast.workspace import frozen_settings, git

    # Submodules are left out: git would start a git in each, with settings that an agent can write.
    words = ["status", "--porcelain=v2", "--branch", "--untracked-files=normal", "--ignore-submodules=all"]
    try:
        repository = git.find(cwd)
        if repository is None:
            return None
        frozen = frozen_settings.read(packet)
        output = git.run(words, of=repository, cwd=cwd, frozen=frozen, limit_s=GIT_S)
    except HoldfastError as error:
        return {"status": None, "branch": None, "head": None, "error": str(error)[:500]}
    lines = output.decode("utf-8", "replace").splitlines()
    facts = dict(line[2:].split(" ", 1) for line in lines if line.startswith("# ") and " " in line[2:])
    return {
        "branch": facts.get("branch.head"),
        "head": facts.get("branch.oid"),
        "status": "\n".join(lines)[:_GIT_CHARS],
        "error": None,
    }


def _last_events(path: str) -> list[dict[str, Any]]:
    lines = tail.end_bytes(path, _TAIL_BYTES).splitlines()
    events: list[dict[str, Any]] = []
    for line in lines[-EVENTS:]:
        try:
            events.append(json.loads(line))
        except ValueError:
            continue  # the first line may be incomplete
    return events


def _resume(task_id: str, cause: str, approval: str | None) -> str:
    """The command that continues it. Only a question has an answer: a failure or a limit asks nothing."""
    if approval:
        return f"holdfast approve {task_id}"
    return f"holdfast resume {task_id}" + ("" if cause else " -m 'ANSWER'")


def _summary(context: dict[str, Any]) -> str:
    git: dict[str, Any] = context["git"] or {}
    changed = [line for line in (git.get("status") or "").splitlines() if line[:1] in ("1", "2", "u", "?")]
    tools = "; ".join(f"{tool['name']} {tool['summary']}".strip() for tool in context["open_tools"])
    rows = [
        ("reason", context["interrupt_reason"]),
        ("task", f"{context['task_id']}: {context['task_name']}"),
        ("stage", context["stage"] or "-"),
        (
            "agent",
            f"{context['agent']}, attempt {context['attempts'] or '-'} ({context['session_id'] or '-'})",
        ),
        ("session", context["agent_session_id"] or "-"),
        ("workspace", context["cwd"]),
        (
            "git",
            f"{git['branch']} at {str(git['head'])[:12]}, {len(changed)} changed" if git.get("head") else "-",
        ),
        (
            "work",
            work_file.as_text(context["work"] if "progress" in (context["work"] or {}) else None) or "-",
        ),
        ("open tool calls", tools or "-"),
    ]
    state = "was interrupted" if context["interrupt_cause"] == Cause.DOWN else "waits for a person"
    lines = [f"# {context['task_id']} {state}", "", f"{context['timestamp']}", ""]
    lines += [f"- {name}: {text}" for name, text in rows]
    if changed:
        lines += ["", "## Changed files", "", *(f"    {line}" for line in changed[:40])]
    if context["last_words"]:
        lines += ["", "## Last message", "", context["last_words"]]
    lines += ["", "## Continue", "", f"    {context['resume']}", ""]
    return "\n".join(lines)
