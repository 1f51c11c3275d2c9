"""Reading requests gives the same results for every API."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.testing.models import (
    ModelRequest,
    ModelServer,
    all_texts,
    last_user_text,
    offered_tools,
    passages,
    system_text,
    tool_calls,
    tool_results,
    user_texts,
)
from tests.integration.testing.models.conftest import APIS, TOOLS, path, send

ARGUMENTS = {"command": "ls"}
#: The same conversation, as each client writes it: a note and a prompt, a call, its result.
HISTORY: dict[str, dict[str, Any]] = {
    "anthropic": {
        "system": [{"type": "text", "text": "Be good."}],
        "messages": [
            {
                "role": "user",
                "content": [{"type": "text", "text": "note"}, {"type": "text", "text": "do it"}],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm"},
                    {"type": "text", "text": "Looking."},
                    {"type": "tool_use", "id": "c1", "name": "Bash", "input": ARGUMENTS},
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "c1",
                        "content": [{"type": "text", "text": "a.txt"}],
                    }
                ],
            },
        ],
    },
    "responses": {
        "instructions": "Be good.",
        "input": [
            {
                "type": "message",
                "role": "user",
                "content": [{"type": "input_text", "text": "note"}, {"type": "input_text", "text": "do it"}],
            },
            {"type": "reasoning", "summary": []},
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "Looking."}],
            },
            {"type": "function_call", "call_id": "c1", "name": "Bash", "arguments": json.dumps(ARGUMENTS)},
            {"type": "function_call_output", "call_id": "c1", "output": "a.txt"},
        ],
    },
    "chat": {
        "messages": [
            {"role": "system", "content": "Be good."},
            {
                "role": "user",
                "content": [{"type": "text", "text": "note"}, {"type": "text", "text": "do it"}],
            },
            {
                "role": "assistant",
                "content": "Looking.",
                "tool_calls": [
                    {
                        "id": "c1",
                        "type": "function",
                        "function": {"name": "Bash", "arguments": json.dumps(ARGUMENTS)},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "a.txt"},
        ]
    },
    "gemini": {
        "systemInstruction": {"role": "user", "parts": [{"text": "Be good."}]},
        "contents": [
            {"role": "user", "parts": [{"text": "note"}, {"text": "do it"}]},
            {
                "role": "model",
                "parts": [
                    {"text": "Looking."},
                    {"functionCall": {"id": "c1", "name": "Bash", "args": ARGUMENTS}},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"id": "c1", "name": "Bash", "response": {"output": "a.txt"}}}
                ],
            },
        ],
    },
}


def recorded(api: str, body: dict[str, Any]) -> ModelRequest:
    with ModelServer() as server:
        send(server, path(api), {"model": "m", **body})
        return server.requests[0]


def test_a_conversation_is_read_alike(api: str) -> None:
    request = recorded(api, HISTORY[api] | {"tools": TOOLS[api]})
    assert last_user_text(request) == "note\ndo it"
    assert user_texts(request) == ["note", "do it"]
    assert system_text(request) == "Be good."
    [call] = tool_calls(request)
    assert (call.id, call.name, json.loads(call.arguments)) == ("c1", "Bash", ARGUMENTS)
    [result] = tool_results(request)
    assert (result.id, result.name, result.text, result.is_error) == ("c1", "Bash", "a.txt", False)
    assert all_texts(request)[:4] == ["Be good.", "note", "do it", "Looking."]
    assert all_texts(request)[-1] == "a.txt"
    assert [tool.name for tool in offered_tools(request)] == ["Bash"]
    roles = [(passage.role, passage.kind) for passage in passages(request)]
    assert roles[-2:] == [("assistant", "call"), ("tool", "result")]


@pytest.mark.parametrize("api", APIS)
def test_a_prompt_arrives_byte_for_byte(api: str) -> None:
    prompt = "\"quotes\" 'and' \\ $(date) `x` \r\n\t\0 🪸 é " + "x" * 500_000
    bodies: dict[str, Any] = {
        "anthropic": {"messages": [{"role": "user", "content": prompt}]},
        "responses": {"input": prompt},
        "chat": {"messages": [{"role": "user", "content": prompt}]},
        "gemini": {"contents": [{"parts": [{"text": prompt}]}]},
    }
    assert last_user_text(recorded(api, bodies[api])) == prompt


def test_junk_where_messages_should_be_is_read_as_nothing(api: str) -> None:
    names = ("messages", "input", "contents", "system", "instructions", "systemInstruction", "tools")
    for junk in (None, 1, "x", [], [1, None, "x"], {}, [{}], [{"content": 1}], [[[]]]):
        request = recorded(api, dict.fromkeys(names, junk))
        assert tool_results(request) == []
        assert isinstance(all_texts(request), list)
        assert isinstance(offered_tools(request), list)


def test_errors_of_tools_are_distinguished_if_the_api_does() -> None:
    block = {"type": "tool_result", "tool_use_id": "c", "is_error": True, "content": "no"}
    anthropic = recorded("anthropic", {"messages": [{"role": "user", "content": [block]}]})
    part = {"functionResponse": {"name": "Bash", "response": {"error": "no"}}}
    gemini = recorded("gemini", {"contents": [{"role": "user", "parts": [part]}]})
    for request in (anthropic, gemini):
        [result] = tool_results(request)
        assert (result.text, result.is_error) == ("no", True)
    assert last_user_text(anthropic) == ""
