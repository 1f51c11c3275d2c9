"""Which turn answers which request, and scripts in files."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.testing.models import (
    ModelRequest,
    ModelServer,
    Rule,
    Script,
    ScriptError,
    Turn,
    last_user_text,
    rate_limit,
    script_from_data,
    text,
)
from tests.integration.testing.models.conftest import ask, body, path, send
from tests.integration.testing.models.reader import said


def hear(server: ModelServer, prompt: str = "do it", *, api: str = "chat", tools: bool = True) -> str:
    return said(api, ask(server, api, prompt, tools=tools)).text


def test_turns_come_in_order_and_then_the_last_word() -> None:
    with ModelServer(Script([text("one"), text("two").times(2)], after=text("enough"))) as server:
        assert server.script.turns_left == 2
        assert [hear(server) for _ in range(5)] == ["one", "two", "two", "enough", "enough"]
        assert server.script.turns_left == 0
        places = [request.turn for request in server.conversations()]
    assert places == ["turns[0]", "turns[1]", "turns[1]", "after", "after"]


def test_a_turn_can_repeat_for_ever() -> None:
    with ModelServer([rate_limit().forever(), text("never")]) as server:
        assert {ask(server, "chat").status for _ in range(20)} == {429}
        assert server.script.turns_left == 1


def test_side_requests_take_no_turn(api: str) -> None:
    with ModelServer([text("the answer")]) as server:
        assert hear(server, "a title for this chat, please", api=api, tools=False) == "ok"
        assert hear(server, api=api) == "the answer"
        assert [request.is_side for request in server.requests] == [True, False]
        assert len(server.conversations()) == 1


def test_side_requests_can_be_part_of_the_conversation() -> None:
    with ModelServer(Script([text("a")], side_requests="none")) as server:
        assert hear(server, tools=False) == "a"
    with ModelServer(Script([text("a")], side_requests=lambda r: "title" in last_user_text(r))) as server:
        assert [hear(server, "title"), hear(server, tools=False)] == ["ok", "a"]
    with ModelServer(Script(side=text("My title"))) as server:
        assert hear(server, tools=False) == "My title"


def test_a_side_request_that_wants_json_gets_json_that_fits(api: str) -> None:
    schema = {
        "type": "object",
        "properties": {
            "reasoning": {"type": "string"},
            "model_choice": {"type": "string", "enum": ["flash", "pro"]},
            "score": {"type": "integer", "minimum": 3},
            "list": {"type": "array"},
            "maybe": {"anyOf": [{"type": "boolean"}, {"type": "null"}]},
            "optional": {"type": "string"},
        },
        "required": ["reasoning", "model_choice", "score", "list", "maybe"],
    }
    wanted: dict[str, Any] = {
        "anthropic": {"output_config": {"format": {"type": "json_schema", "schema": schema}}},
        "responses": {"text": {"format": {"type": "json_schema", "schema": schema}}},
        "chat": {"response_format": {"type": "json_schema", "json_schema": {"schema": schema}}},
        "gemini": {
            "generationConfig": {"responseMimeType": "application/json", "responseJsonSchema": schema}
        },
    }
    with ModelServer() as server:
        got = send(server, path(api), body(api, tools=False) | wanted[api])
    assert json.loads(said(api, got).text) == {
        "reasoning": "ok",
        "model_choice": "flash",
        "score": 3,
        "list": [],
        "maybe": False,
    }


def test_rules_come_first_and_take_no_turn() -> None:
    rules = [
        Rule(contains="ping", turn=text("pong"), times=1),
        Rule(nth=3, turn=text("third")),
        Rule(api="gemini", turn=text("hello Gemini")),
        Rule(model="some", anywhere="needle", turn=text("found")),
        Rule(is_side=True, contains="title", turn=text("Title")),
        Rule(model="other-model", turn=text("never")),
    ]
    with ModelServer([text("one"), text("two"), text("three")], rules=rules) as server:
        heard = [hear(server, prompt) for prompt in ("ping", "ping", "x", "y", "a needle in hay")]
        heard += [hear(server, "title", tools=False), hear(server, api="gemini"), hear(server)]
        places = [request.turn for request in server.requests]
    assert heard == ["pong", "one", "third", "two", "found", "Title", "hello Gemini", "three"]
    assert places[0] == "rules[0]"


def test_a_function_answers() -> None:
    def reply(request: ModelRequest) -> Turn:
        return text(last_user_text(request).upper())

    with ModelServer(reply) as server:
        assert [hear(server, "a"), hear(server, "b")] == ["A", "B"]
        assert hear(server, tools=False) == "ok"
        assert server.requests[0].turn == "function"


def test_a_failing_function_is_reported_to_client_and_test() -> None:
    def reply(request: ModelRequest) -> Turn:
        raise KeyError("oops")

    with ModelServer(reply) as server:
        got = ask(server, "anthropic")
        assert got.status == 400
        assert "KeyError" in got.json["error"]["message"]
        assert server.errors == ["request 1: script: KeyError: 'oops'"]


FILE: dict[str, Any] = {
    "schema": "holdfast.model-script/1",
    "turns": [
        {"text": "hi", "usage": {"input_tokens": 7, "output_tokens": 8}},
        {"text": "look", "tool": {"name": "Bash", "arguments": {"command": "ls"}}},
        {"tools": [{"name": "A"}, {"name": "B"}]},
        {"shell": "pwd"},
        {"rate_limit": {"retry_after_s": 2}, "times": 2},
        {"empty": True, "is_cut_off": True},
        {"raw": {"status": 502, "body": "bad gateway", "headers": {"X-A": 1}}},
        {"text": "slow", "piece_delay_s": 0.001, "head_delay_s": 0.001, "pieces": 2},
        {"stall": {"limit_s": 0.01}},
    ],
    "rules": [{"when": {"contains": "ping"}, "turn": {"text": "pong"}, "times": 1}],
    "after": {"quota": {}},
    "side": {"text": "side"},
    "usage": {"input_tokens": 1, "output_tokens": 2},
    "models": ["a", "b"],
}


def test_a_script_file_says_the_same_as_python() -> None:
    with ModelServer(script_from_data(FILE)) as server:
        assert hear(server, "ping") == "pong"
        assert hear(server, tools=False) == "side"
        first = said("chat", ask(server, "chat"))
        assert (first.text, first.usage) == ("hi", (7, 8, 0))
        second = said("chat", ask(server, "chat"))
        assert (second.text, second.calls, second.usage) == ("look", [("Bash", {"command": "ls"})], (1, 2, 0))
        assert said("chat", ask(server, "chat")).calls == [("A", {}), ("B", {})]
        assert said("chat", ask(server, "chat")).calls == [("Bash", {"command": "pwd"})]
        limited = [ask(server, "chat") for _ in range(2)]
        assert [(got.status, got.headers["retry-after"]) for got in limited] == [(429, "2")] * 2
        assert said("chat", ask(server, "chat")).stop == "length"
        assert (bad := ask(server, "chat")).status == 502
        assert bad.headers["x-a"] == "1"
        assert hear(server) == "slow"
        assert hear(server).startswith("one two")
        assert ask(server, "chat").json["error"]["code"] == "insufficient_quota"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": "x"}, 'schema: expected "holdfast.model-script/1", got "x"'),
        ({"turn": []}, "turn: unknown key (known: schema, turns"),
        ({"turns": {}}, "turns: expected a list, got {}"),
        ({"turns": [1]}, "turns[0]: expected an object, got 1"),
        ({"turns": [{"txt": "a"}]}, "turns[0].txt: unknown key (known: text"),
        ({"turns": [{"text": 1}]}, "turns[0].text: expected a string, got 1"),
        ({"turns": [{"tool": {}}]}, "turns[0].tool.name: missing"),
        ({"turns": [{"write": {"path": "a"}}]}, "turns[0].write.content: missing"),
        ({"turns": [{"raw": {}}]}, "turns[0].raw.status: missing"),
        ({"turns": [{"text": "a", "quota": {}}]}, "turns[0]: quota, text exclude each other"),
        ({"turns": [{"stall": {}, "drop": {}}]}, "turns[0]: stall and drop exclude each other"),
        ({"turns": [{"drop": {"how": "softly"}}]}, 'turns[0].drop.how: expected "reset" or "close"'),
        ({"turns": [{"text": "a", "times": 0}]}, "turns[0].times: expected a whole number, at least 1"),
        ({"rules": [{"when": {"api": "x"}, "turn": {}}]}, "rules[0].when.api: expected one of anthropic"),
        ({"rules": [{"when": {}}]}, "rules[0].turn: missing"),
        ({"side_requests": "all"}, 'side_requests: expected "without_tools" or "none"'),
    ],
)
def test_a_mistake_in_a_script_names_its_place(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ScriptError) as caught:
        script_from_data(FILE | change)
    assert str(caught.value).startswith(message)
