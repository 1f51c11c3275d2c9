"""How it is said: the stream-json of Claude Code, and plain text."""

from __future__ import annotations

from holdfast.testing import Scenario
from tests.integration.testing.conftest import SESSION, Stage

#: The keys of recorded events that an adapter may rely on.
RECORDED = {
    "init": {
        *("type", "subtype", "cwd", "session_id", "tools", "mcp_servers", "model", "permissionMode"),
        *("slash_commands", "apiKeySource", "claude_code_version", "output_style", "agents", "skills"),
        *("plugins", "uuid"),
    },
    "assistant": {"type", "message", "parent_tool_use_id", "session_id", "uuid"},
    "message": {
        *("id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "usage"),
        "context_management",
    },
    "user": {
        *("type", "message", "parent_tool_use_id", "session_id", "uuid", "timestamp", "tool_use_result"),
    },
    "success": {
        *("type", "subtype", "is_error", "api_error_status", "duration_ms", "duration_api_ms", "num_turns"),
        *("result", "stop_reason", "session_id", "total_cost_usd", "usage", "modelUsage"),
        *("permission_denials", "terminal_reason", "uuid"),
    },
    "error": {
        *("type", "subtype", "duration_ms", "duration_api_ms", "is_error", "num_turns", "stop_reason"),
        *("session_id", "total_cost_usd", "usage", "modelUsage", "permission_denials", "uuid", "errors"),
    },
}


def test_a_stream_has_the_recorded_shape(stage: Stage) -> None:
    scenario = Scenario().say("hello · wörld").tool(command="echo one").say("bye")
    init, text, use, result_of_tool, last, result = stage.play(scenario, model="m-1").events
    assert set(init) == RECORDED["init"]
    assert (init["type"], init["subtype"], init["model"]) == ("system", "init", "m-1")
    assert init["cwd"] == str(stage.work)
    for event in (text, use, last):
        assert set(event) == RECORDED["assistant"]
        assert set(event["message"]) == RECORDED["message"]
        assert len(event["message"]["content"]) == 1
    assert text["message"]["content"] == [{"type": "text", "text": "hello · wörld"}]
    assert text["message"]["id"] == use["message"]["id"] != last["message"]["id"]
    assert set(result_of_tool) == RECORDED["user"]
    assert set(result) == RECORDED["success"]
    assert (result["result"], result["num_turns"], result["terminal_reason"]) == ("bye", 2, "completed")
    assert {event["session_id"] for event in (init, text, use, result_of_tool, result)} == {SESSION}


def test_an_error_result_has_the_recorded_shape(stage: Stage) -> None:
    scenario = Scenario().result(subtype="error_max_turns", errors=["Reached maximum number of turns (3)"])
    result = stage.play(scenario, status=1).events[-1]
    assert set(result) == RECORDED["error"]
    assert result["errors"] == ["Reached maximum number of turns (3)"]


def test_tokens_and_cost_are_those_of_the_process(stage: Stage) -> None:
    scenario = Scenario().usage(input_tokens=1000, output_tokens=50, cost_usd=0.1).say("a")
    scenario.usage(input_tokens=10, output_tokens=5, cache_read_tokens=7, cost_usd=0.2).say("b").result()
    _, first, second, result = stage.play(scenario).events
    assert [event["message"]["usage"]["input_tokens"] for event in (first, second)] == [1000, 10]
    assert (result["usage"]["input_tokens"], result["usage"]["output_tokens"]) == (1010, 55)
    assert (result["usage"]["cache_read_input_tokens"], result["total_cost_usd"]) == (7, 0.3)
    assert result["modelUsage"]["scripted-model"]["costUSD"] == 0.3
    assert stage.play(scenario, resume=True).events[-1]["total_cost_usd"] == 0


def test_denied_permissions_are_listed(stage: Stage) -> None:
    result = stage.play(Scenario().result("half done", denied=["Write"])).events[-1]
    assert [denial["tool_name"] for denial in result["permission_denials"]] == ["Write"]


def test_plain_text_is_plain(stage: Stage) -> None:
    scenario = Scenario().say("hello").tool("build", output="built").tool("test", fails=True)
    scenario.announce_retry(0).usage(input_tokens=5).result("done")
    assert stage.play(scenario, dialect="text").text.splitlines() == [
        "hello",
        "[tool] build started",
        "built",
        "[tool] build finished",
        "[tool] test started",
        "[tool] test failed with exit code 1",
        "retrying in 0 s: rate_limit (429), attempt 1 of 10",
        "done",
    ]


def test_errors_of_plain_text_go_to_stderr(stage: Stage) -> None:
    playing = stage.play(Scenario().result("no luck", is_error=True), dialect="text", status=1)
    assert (playing.text, playing.errors) == ("", "error: no luck\n")
    playing = stage.play(Scenario().rate_limit(), dialect="text", session_id="other", status=1)
    assert playing.errors == "error: API Error: Request rejected (429) · limit\n"
