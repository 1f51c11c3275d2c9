"""Each API, streamed and whole: what was scripted is what a client reads."""

from __future__ import annotations

import json

import pytest

from holdfast.testing.models import ModelServer, call, empty, raw, shell, text, tool, tools, write
from tests.integration.testing.models.conftest import APIS, TOOLS, ask, body, path, send
from tests.integration.testing.models.reader import said

STOPS = {
    "anthropic": ("end_turn", "tool_use", "max_tokens"),
    "responses": ("completed", "completed", "incomplete"),
    "chat": ("stop", "tool_calls", "length"),
    "gemini": ("STOP", "STOP", "MAX_TOKENS"),
}


def test_a_text_arrives_as_it_was_written(api: str, stream: bool) -> None:
    words = 'He said: "ünïcode 🪸 and\nnewlines", and that was all that there was to it.'
    with ModelServer([text(words)]) as server:
        heard = said(api, ask(server, api, stream=stream))
    assert (heard.text, heard.calls, heard.stop) == (words, [], STOPS[api][0])


def test_one_tool_call(api: str, stream: bool) -> None:
    arguments = {"command": "echo 'ü' > \"x y\"", "n": [1, {"deep": None}]}
    with ModelServer([tool("Bash", arguments)]) as server:
        heard = said(api, ask(server, api, stream=stream))
    assert (heard.text, heard.calls, heard.stop) == ("", [("Bash", arguments)], STOPS[api][1])


def test_text_then_several_tool_calls(api: str, stream: bool) -> None:
    with ModelServer([tools(call("A", {"x": 1}), call("B"), text="Two at once.")]) as server:
        heard = said(api, ask(server, api, stream=stream))
    assert (heard.text, heard.calls) == ("Two at once.", [("A", {"x": 1}), ("B", {})])
    assert len(set(heard.ids)) == 2


def test_ids_differ_between_answers_and_servers(api: str) -> None:
    ids: list[str] = []
    for _ in range(2):
        with ModelServer([tool("A").times(2)]) as server:
            ids += said(api, ask(server, api)).ids + said(api, ask(server, api, stream=True)).ids
    assert len(set(ids)) == 4


def test_an_empty_answer(api: str, stream: bool) -> None:
    with ModelServer([empty()]) as server:
        heard = said(api, ask(server, api, stream=stream))
    assert (heard.text, heard.calls, heard.stop) == ("", [], STOPS[api][0])


def test_an_answer_cut_off_by_the_token_limit(api: str, stream: bool) -> None:
    with ModelServer([text("only so far").cut_off()]) as server:
        heard = said(api, ask(server, api, stream=stream))
    assert (heard.text, heard.stop) == ("only so far", STOPS[api][2])


def test_usage_is_what_was_set(api: str, stream: bool) -> None:
    with ModelServer([text("a").using(input_tokens=1234, output_tokens=56, cache_read_tokens=789)]) as server:
        assert said(api, ask(server, api, stream=stream)).usage == (1234, 56, 789)


def test_a_long_text_comes_in_as_many_pieces_as_asked(api: str) -> None:
    long = "word " * 40_000
    with ModelServer([text(long).slowly(0, pieces=5)]) as server:
        got = ask(server, api, stream=True)
    assert said(api, got).text == long
    assert len(got.events) < 20


def test_a_text_without_spaces_is_split_too(api: str) -> None:
    with ModelServer([text("x" * 1000)]) as server:
        got = ask(server, api, stream=True)
    assert said(api, got).text == "x" * 1000
    assert len(got.events) >= 8


def test_chat_sends_usage_only_when_asked() -> None:
    with ModelServer([text("a")]) as server:
        asked = body("chat", stream=True)
        del asked["stream_options"]
        got = send(server, path("chat"), asked)
    assert all(event["choices"] for event in got.events)


def test_gemini_without_sse_streams_a_json_array() -> None:
    with ModelServer([text("one two three"), empty()]) as server:
        target = "/v1beta/models/m:streamGenerateContent"
        chunks = send(server, target, body("gemini")).json
        assert len(send(server, target, body("gemini")).json) == 1
    texts = [chunk["candidates"][0]["content"]["parts"][0]["text"] for chunk in chunks]
    assert "".join(texts) == "one two three"
    assert len(texts) > 1


def test_a_freeform_tool_gets_plain_text(stream: bool) -> None:
    asked = body("responses", stream=stream)
    asked["tools"] = [*TOOLS["responses"], {"type": "custom", "name": "apply_patch"}]
    with ModelServer([tool("apply_patch", {"input": "*** Begin Patch\n"})]) as server:
        heard = said("responses", send(server, path("responses"), asked))
    assert heard.calls == [("apply_patch", "*** Begin Patch\n")]


@pytest.mark.parametrize("api", APIS)
def test_shell_finds_the_tool_of_the_client(api: str) -> None:
    with ModelServer([shell("ls", text="Looking."), write("a b", "it's")]) as server:
        assert said(api, ask(server, api)).calls == [("Bash", {"command": "ls"})]
        # No tool for files: the shell does it.
        heard = said(api, ask(server, api))
    assert heard.calls == [("Bash", {"command": """printf %s 'it'"'"'s' > 'a b'"""})]


def test_portable_calls_fill_in_what_a_tool_requires() -> None:
    shell_tool = {
        "properties": {"cmd": {"type": "array"}, "why": {"type": "string"}, "optional": {"type": "string"}},
        "required": ["cmd", "why"],
    }
    write_tool = {"properties": {"filePath": {"type": "string"}, "content": {"type": "string"}}}
    asked = body("chat")
    asked["tools"] = [
        {"type": "function", "function": {"name": "exec_command", "parameters": shell_tool}},
        {"type": "function", "function": {"name": "write", "parameters": write_tool}},
    ]
    with ModelServer([shell("ls"), write("p", "c")]) as server:
        first, second = (said("chat", send(server, path("chat"), asked)) for _ in range(2))
    assert first.calls == [("exec_command", {"cmd": ["bash", "-c", "ls"], "why": "ok"})]
    assert second.calls == [("write", {"filePath": "p", "content": "c"})]


def test_a_tool_that_is_not_offered_is_an_error_of_the_script() -> None:
    asked = body("chat")
    asked["tools"] = [{"type": "function", "function": {"name": "read"}}]
    with ModelServer([shell("ls")]) as server:
        got = send(server, path("chat"), asked)
        assert server.errors == ["request 1: " + got.json["error"]["message"]]
    assert got.status == 400
    assert "offered: read" in got.json["error"]["message"]


def test_a_reply_of_ones_own(api: str) -> None:
    with ModelServer([raw(418, "teapot", {"Content-Type": "text/plain", "X-Tea": "green"})]) as server:
        got = ask(server, api)
    assert (got.status, got.data) == (418, b"teapot")
    assert (got.headers["content-type"], got.headers["x-tea"]) == ("text/plain", "green")


def test_tokens_are_counted_and_models_listed() -> None:
    with ModelServer() as server:
        assert send(server, "/v1/messages/count_tokens?beta=true", {}).json == {"input_tokens": 100}
        assert send(server, "/v1beta/models/m:countTokens", {}).json == {"totalTokens": 100}
        assert server.conversations() == []
        assert len(server.requests) == 2


def test_answers_are_utf_8(api: str) -> None:
    with ModelServer([text("🪸")]) as server:
        data = ask(server, api, stream=True).data
    assert "🪸".encode() in data
    assert json.dumps("🪸").encode() not in data
