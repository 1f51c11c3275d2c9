"""Claude Code's todo list.

`TodoWrite` writes the whole list. If it is disabled, as in headless runs of 2.1.197, `TaskCreate` and
`TaskUpdate` change one entry each: the answer to the first has the entry's number, counted from 1 in a
session, and `TaskList` answers with all of them.
"""

from __future__ import annotations

import json

from holdfast.agents.shared import todo_list

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.model import events as ev

TOOLS = frozenset({"TodoWrite", "TaskCreate", "TaskUpdate", "TaskList"})
#: An entry's number has at most this many digits.
_DIGITS = 9


class Todos:
    """The list, as far as one attempt has shown it. A call counts once its answer confirms it.

    A resumed session may have entries that this process never mentioned. Then the total is unknown until
    `TaskList`.
    """

    def __init__(self) -> None:
        #: Calls without an answer: id → name and arguments.
        self._calls: dict[str, tuple[str, bytes]] = {}
        #: Number of an entry → its state and text.
        self._entries: dict[int, tuple[str, str]] = {}
        #: Every entry up to this one was listed.
        self._listed = 0
        self._is_partial = False
        #: The last reported progress: most reads of the list change nothing.
        self._told: ev.AgentProgress | None = None

    def called(self, tool_id: str, name: str, arguments: bytes) -> None:
        """One of `TOOLS` was called."""
        self._calls[tool_id] = (name, arguments)

    def awaits(self, tool_id: str) -> bool:
        """Whether this call was one of them."""
        return tool_id in self._calls

    def answered(self, tool_id: str, answer: bytes, *, is_error: bool) -> list[ev.AgentEvent]:
        """The progress after an answer. `answer` is the `tool_use_result` of its line. Never raises."""
        name, arguments = self._calls.pop(tool_id, ("", b""))
        if not name or is_error:
            return []
        if name == "TodoWrite":
            return todo_list.of_call(arguments)
        request, result = _object(arguments), _object(answer)
        match name:
            case "TaskCreate":
                task: Any = result.get("task")
                number = task.get("id") if isinstance(task, dict) else None  # pyright: ignore
                self._put(number, "pending", request.get("subject"))
            case "TaskUpdate" if result.get("success") is not False:
                self._change(request)
            case "TaskList":
                self._replace(result.get("tasks"))
            case _:
                return []
        progress = todo_list.progress(self._entries.values())
        if not self._is_whole or progress == self._told:
            return []
        self._told = progress
        return [progress.evolve()]  # the caller adds its position

    @property
    def _is_whole(self) -> bool:
        """Whether every number up to the highest was seen. Two answers may come in either order."""
        new = [number for number in self._entries if number > self._listed]
        return not self._is_partial and len(new) == max(new, default=self._listed) - self._listed

    def _put(self, key: Any, state: Any, text: Any) -> None:
        number = _number(key)
        if number is None or not isinstance(state, str):
            self._is_partial = True
            return
        self._entries[number] = (state, text if isinstance(text, str) else "")

    def _change(self, request: dict[str, Any]) -> None:
        number = _number(request.get("taskId"))
        if number not in self._entries:
            self._is_partial = True
            return
        state, text = self._entries[number]
        self._put(request["taskId"], request.get("status") or state, request.get("subject") or text)

    def _replace(self, tasks: Any) -> None:
        if not isinstance(tasks, list):
            return
        self._entries, self._is_partial = {}, False
        for task in tasks:  # pyright: ignore[reportUnknownVariableType]
            if isinstance(task, dict):
                self._put(task.get("id"), task.get("status"), task.get("subject"))  # pyright: ignore
        self._listed = max(self._entries, default=0)


def _object(data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def _number(key: Any) -> int | None:
    is_number = isinstance(key, str) and key.isascii() and key.isdecimal() and len(key) <= _DIGITS
    return int(key) if is_number else None
