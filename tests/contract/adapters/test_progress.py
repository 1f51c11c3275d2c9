"""To-do lists: lines as the real programs print them, and the progress that each reports.

Claude Code 2.1.197, Gemini CLI 0.61.0 and OpenCode 1.18.33 were run with a scripted model that calls these
tools; Codex's item is that of its published event types, and Claude's TodoWrite that of versions in which it
is on.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.agents import registry
from holdfast.agents.claude.todos import TOOLS, Todos
from holdfast.agents.shared import todo_list
from holdfast.model import events as ev

Step = tuple[int, int, str | None]
TODOS = [("Look around", "completed"), ("Write the tests", "in_progress"), ("Tidy up", "pending")]
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=5)
    | st.sampled_from(["1", "2", "completed"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["todos", "status", "content", "id", "taskId", "task", "tasks", "subject", "success"]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=12,
)


def said(agent: str, *lines: dict[str, Any]) -> list[Step]:
    """The progress that an agent's reader reports, line by line."""
    reader = registry.adapter(agent).reader()
    found: list[ev.AgentEvent] = []
    for line in lines:
        found += reader.read(json.dumps(line, separators=(",", ":")).encode())
    assert all(event.is_sound() for event in found)
    return [
        (event.steps_completed, event.steps_total, event.current_step)
        for event in found
        if isinstance(event, ev.AgentProgress)
    ]


# ── Claude Code ──


def call(tool_id: str, name: str, given: dict[str, Any], *, parent: str | None = None) -> dict[str, Any]:
    block = {"type": "tool_use", "id": tool_id, "name": name, "input": given}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "content": [block]}
    return {"type": "assistant", "message": message, "parent_tool_use_id": parent, "session_id": "S"}


def answer(tool_id: str, text: str, result: Any, *, is_error: bool = False) -> dict[str, Any]:
    block = {"tool_use_id": tool_id, "type": "tool_result", "content": text}
    if is_error:
        block["is_error"] = True
    return {
        "type": "user",
        "message": {"role": "user", "content": [block]},
        "parent_tool_use_id": None,
        "session_id": "S",
        "timestamp": "2026-11-15T12:58:25.523Z",
        "tool_use_result": result,
    }


def create(number: int, subject: str) -> list[dict[str, Any]]:
    tool_id = f"toolu_c{number}"
    return [
        call(tool_id, "TaskCreate", {"subject": subject, "description": "d", "activeForm": "…"}),
        answer(
            tool_id,
            f"Task #{number} created successfully: {subject}",
            {"task": {"id": str(number), "subject": subject}},
        ),
    ]


def update(number: int, state: str) -> list[dict[str, Any]]:
    tool_id = f"toolu_u{number}{state}"
    result = {"success": True, "taskId": str(number), "updatedFields": ["status"]}
    return [
        call(tool_id, "TaskUpdate", {"taskId": str(number), "status": state}),
        answer(tool_id, f"Updated task #{number} status", result),
    ]


def listed(*tasks: tuple[int, str, str]) -> list[dict[str, Any]]:
    found = [{"id": str(one), "subject": subject, "status": state} for one, subject, state in tasks]
    return [call("toolu_l", "TaskList", {}), answer("toolu_l", "#1 …", {"tasks": found})]


@pytest.mark.req("PKT-16")
def test_claude_counts_its_tasks() -> None:
    lines = [
        *create(1, "Look around"),
        *create(2, "Write the tests"),
        *update(1, "completed"),
        *update(2, "in_progress"),
    ]
    assert said(
        "claude", *lines, *listed((1, "Look around", "completed"), (2, "Write the tests", "in_progress"))
    ) == [
        (0, 1, None),
        (0, 2, None),
        (1, 2, None),
        (1, 2, "Write the tests"),
    ]
    assert said("claude", *lines, *update(2, "deleted"))[-1] == (1, 1, None)


def test_claude_answers_two_calls_in_either_order() -> None:
    (first, made_first), (second, made_second) = create(1, "a"), create(2, "b")
    assert said("claude", first, second, made_second, made_first) == [(0, 2, None)]


def test_a_resumed_session_of_claude_is_counted_once_all_of_it_was_listed() -> None:
    assert said("claude", *update(1, "completed")) == []
    assert said("claude", *create(3, "c"), *update(3, "in_progress")) == []
    lines = [
        *update(1, "completed"),
        *listed((1, "a", "completed"), (4, "b", "in_progress")),
        *create(5, "c"),
    ]
    assert said("claude", *lines) == [(1, 2, "b"), (1, 3, "b")]


def test_claude_writes_the_whole_list_where_it_can() -> None:
    given = {"todos": [{"content": text, "status": state, "activeForm": text} for text, state in TODOS]}
    written = answer(
        "toolu_1", "Todos have been modified successfully.", {"oldTodos": [], "newTodos": given["todos"]}
    )
    assert said("claude", call("toolu_1", "TodoWrite", given), written) == [(1, 3, "Write the tests")]
    refused = answer(
        "toolu_1", "<tool_use_error>Error: No such tool available: TodoWrite.", "Error: …", is_error=True
    )
    assert said("claude", call("toolu_1", "TodoWrite", given), refused) == []
    # A sub-agent has its own list.
    assert said("claude", call("toolu_1", "TodoWrite", given, parent="toolu_0"), written) == []


@given(calls=st.lists(st.tuples(st.sampled_from(sorted(TOOLS)), JSON, JSON), max_size=6))
def test_no_call_of_claude_makes_its_list_fail(calls: list[tuple[str, Any, Any]]) -> None:
    todos = Todos()
    for name, asked, said in calls:
        todos.called("t", name, json.dumps(asked).encode())
        for event in todos.answered("t", json.dumps(said).encode(), is_error=False):
            assert event.is_sound()


# ── the others ──


@pytest.mark.req("PKT-16")
def test_codex_reports_its_plan() -> None:
    def line(kind: str, *done: bool) -> dict[str, Any]:
        items = [
            {"text": text, "completed": is_done} for (text, _), is_done in zip(TODOS, done, strict=False)
        ]
        return {"type": f"item.{kind}", "item": {"id": "item_1", "type": "todo_list", "items": items}}

    lines = [line("started", False, False), line("updated", True, False), line("updated", True, True)]
    assert said("codex", *lines, line("completed", True, True)) == [
        (0, 2, "Look around"),
        (1, 2, "Write the tests"),
        (2, 2, None),
    ]
    other = {"type": "item.updated", "item": {"id": "item_2", "type": "command_execution", "items": 7}}
    assert said("codex", other) == []


@pytest.mark.req("PKT-16")
def test_gemini_writes_the_whole_list() -> None:
    todos = [{"description": text, "status": state} for text, state in [*TODOS, ("No more", "cancelled")]]
    use = {
        "type": "tool_use", "timestamp": "2026-11-15T12:58:36.141Z", "tool_name": "write_todos",
        "tool_id": "write_todos__1", "parameters": {"todos": todos},
    }  # fmt: skip
    result = {"type": "tool_result", "timestamp": "2026-11-15T12:58:36.428Z", "tool_id": "write_todos__1"}
    assert said("gemini", use, {**result, "status": "success"}) == [(1, 3, "Write the tests")]
    assert said("gemini", use, {**result, "status": "error", "error": {"type": "invalid_tool_params"}}) == []
    assert said("gemini", {**use, "parameters": {"todos": []}}, {**result, "status": "success"}) == [
        (0, 0, None)
    ]


@pytest.mark.req("PKT-16")
def test_opencode_writes_the_whole_list() -> None:
    todos = [{"content": text, "status": state, "priority": "high"} for text, state in TODOS]
    state = {"status": "completed", "input": {"todos": todos}, "output": "[…]", "title": "2 todos"}
    part = {"type": "tool", "tool": "todowrite", "callID": "call_1", "state": state}
    line = {"type": "tool_use", "timestamp": 1794747576039, "sessionID": "ses_1", "part": part}
    assert said("opencode", line) == [(1, 3, "Write the tests")]
    part["state"] = {"status": "error", "input": {"todos": todos}, "error": "rejected permission"}
    assert said("opencode", line) == []


def test_copilot_says_only_that_something_changed() -> None:
    assert said("copilot", {"type": "session.todos_changed", "data": {}, "ephemeral": True}) == []


@given(arguments=JSON)
def test_no_list_makes_a_reader_fail(arguments: Any) -> None:
    for event in todo_list.of_call(json.dumps(arguments).encode()):
        assert event.is_sound()


@pytest.mark.parametrize(
    "raw", [b"", b"[" * 100_000, b'{"todos": 7}', b'{"todos": [["status"]]}', b'{"todos": "ab"}']
)
def test_nonsense_is_no_list(raw: bytes) -> None:
    assert todo_list.of_call(raw) == []
