"""The protocol of `holdfast mcp`: versions, errors, sizes and ends. Never a traceback."""

from __future__ import annotations

import json
import os

import jsonschema
import pytest

from holdfast import spawn
from holdfast.views.mcp import server
from tests.support import kin
from tests.support.mcp import MODERN, Client
from tests.support.tasks import Task, workspace
from tests.support.waiting import eventually

VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")


@pytest.fixture(autouse=True)
def in_a_home(home: str) -> None:
    workspace()


@pytest.mark.parametrize("version", VERSIONS)
def test_each_version_of_the_handshake(version: str) -> None:
    with Client() as client:
        result = client.ask("initialize", {"protocolVersion": version, "capabilities": {}})
        assert result["protocolVersion"] == version
        assert result["serverInfo"]["name"] == "holdfast"
        assert set(result["capabilities"]) == {"tools", "resources"}
        client.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        assert client.ask("ping") == {}
        assert "resultType" not in client.ask("tools/list")


@pytest.mark.parametrize("version", ["1999-01-01", "2026-07-28", None, 7])
def test_an_unknown_version_of_the_handshake_gets_the_newest(version: object) -> None:
    with Client() as client:
        result = client.ask("initialize", {"protocolVersion": version})
        assert result["protocolVersion"] == VERSIONS[-1]


def test_requests_that_carry_their_version() -> None:
    with Client() as client:
        found = client.ask("server/discover", {"_meta": MODERN})
        assert found["supportedVersions"] == ["2026-07-28"]
        assert found["resultType"] == "complete"
        listed = client.ask("tools/list", {"_meta": MODERN})
        assert (listed["resultType"], listed["cacheScope"]) == ("complete", "private")
        assert listed["ttlMs"] > 0
        called = client.ask("tools/call", {"name": "digest", "arguments": {}, "_meta": MODERN})
        assert called["resultType"] == "complete"
        assert called["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "holdfast"
        waited = client.ask("tools/call", {"name": "wait", "arguments": {"timeout_s": 0}, "_meta": MODERN})
        assert waited["resultType"] == "complete"


def test_a_version_in_a_request_that_is_not_ours() -> None:
    with Client() as client:
        meta = {**MODERN, "io.modelcontextprotocol/protocolVersion": "2031-01-01"}
        error = client.answer(client.post("tools/list", {"_meta": meta}))["error"]
        assert error["code"] == -32022
        assert error["data"]["requested"] == "2031-01-01"
        assert "2026-07-28" in error["data"]["supported"]
        del meta["io.modelcontextprotocol/clientCapabilities"]
        assert client.answer(client.post("tools/list", {"_meta": meta}))["error"]["code"] == -32602


WRONG = [
    (b"{", -32700),
    (b"\xff\xfe{}", -32700),
    (b"[" * 100_000, -32700),
    (b'{"jsonrpc":"2.0","id":' + b"9" * 5000 + b',"method":"ping"}', -32700),
    (b"[]", -32600),
    (b"7", -32600),
    (b'"text"', -32600),
    (b"null", -32600),
    (b'{"id":1,"method":"ping"}', -32600),
    (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
    (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600),
    (b'{"jsonrpc":"2.0","id":1}', -32600),
    (b'{"jsonrpc":"2.0","id":1,"method":"no/such"}', -32601),
    (b'{"jsonrpc":"2.0","id":1,"method":"resources/no"}', -32601),
    (b'{"jsonrpc":"2.0","id":1,"method":"tools/call"}', -32602),
    (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":["x"]}}', -32602),
    (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[1]}', -32602),
    (b'{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"file:///etc/passwd"}}', -32002),
    (
        b'{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"holdfast://task/../x/summary"}}',
        -32002,
    ),
    (b'{"jsonrpc":"2.0","id":1,"method":"resources/read"}', -32002),
]


def test_what_is_wrong_gets_an_error_and_the_server_goes_on() -> None:
    with Client() as client:
        for line, code in WRONG:
            client.send(line)
            error = client.receive()["error"]
            assert (error["code"], line[:80]) == (code, line[:80])
        for ignored in (
            b"",
            b"  ",
            b'{"jsonrpc":"2.0","id":5,"result":{}}',
            b'{"jsonrpc":"2.0","method":"x"}',
        ):
            client.send(ignored)
        assert client.ask("ping") == {}
        assert client.close() == (0, "")


def test_a_line_of_10_mb_is_refused_without_being_kept() -> None:
    with Client() as client:
        assert client.ask("ping") == {}
        before = _resident_mb(client.process.pid)
        client.send(b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"' + b"x" * 10_000_000 + b'"}}')
        error = client.receive()
        assert (error["id"], error["error"]["code"]) == (None, -32600)
        assert client.ask("ping") == {}
        assert _resident_mb(client.process.pid) < before + 6
        assert client.close() == (0, "")


def _resident_mb(pid: int) -> float:
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        (line,) = [line for line in file if line.startswith("VmRSS:")]
    return int(line.split()[1]) / 1024


def test_a_batch_is_answered() -> None:
    with Client() as client:
        client.send([{"jsonrpc": "2.0", "id": at, "method": "ping"} for at in (1, 2)])
        assert [client.receive()["id"] for _ in range(2)] == [1, 2]


def test_a_last_line_without_a_newline_is_answered() -> None:
    client = Client()
    assert client.process.stdin is not None
    out, err = client.process.communicate(b'{"jsonrpc":"2.0","id":1,"method":"ping"}', timeout=30)
    assert (json.loads(out)["result"], err, client.process.returncode) == ({}, b"", 0)


@pytest.mark.parametrize("end", ["stdin", "stdout"])
def test_the_end_of_the_client_during_a_call_is_a_clean_end(end: str) -> None:
    task = Task.shell(kin.WAIT, "--id", "it")
    task.wait_for("running")
    client = Client()
    client.post("tools/call", {"name": "wait", "arguments": {"tasks": ["it"]}})
    client.ask("ping")
    if end == "stdout":
        assert client.process.stdout is not None
        client.process.stdout.close()
        kin.go()
        task.wait_for("completed")
        assert client.process.wait(30) == 0  # although stdin is still open
    assert client.close() == (0, "")
    assert end == "stdout" or task.status() == "running"
    kin.go()


def test_a_cancelled_call_gets_no_answer() -> None:
    task = Task.shell(kin.WAIT, "--id", "it")
    with Client() as client:
        waiting = client.post("tools/call", {"name": "wait", "arguments": {"tasks": ["it"]}})
        client.ask("ping")
        client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": waiting}})
        client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": [1]}})
        kin.go()
        task.wait_for("completed")
        assert client.ask("ping") == {}
        assert _watches(client.process.pid) == 0


def test_a_bug_met_by_a_call_that_waits_is_its_answer_and_the_server_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("planted")

    monkeypatch.setattr("holdfast.views.facts.digest.gather", broken)
    monkeypatch.setattr(spawn, "is_guest", True)  # loading the tools sets it
    (source, to_server), (from_server, sink) = os.pipe(), os.pipe()
    call = {"name": "wait", "arguments": {"labels": {"a": "b"}, "timeout_s": 0}}
    for number, method, params in ((1, "tools/call", call), (2, "ping", {})):
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        os.write(to_server, json.dumps(message).encode() + b"\n")
    os.close(to_server)
    try:
        server._Server(source, sink).run()
    finally:
        os.close(sink)
        os.close(source)
    with open(from_server, encoding="utf-8") as answers:
        first, second = map(json.loads, answers)
    assert (first["id"], first["error"]) == (1, {"code": -32603, "message": "ZeroDivisionError: planted"})
    assert (second["id"], second["result"]) == (2, {})


def _watches(pid: int) -> int:
    """How many inotify instances a process has."""
    folder = f"/proc/{pid}/fd"
    return sum("inotify" in os.readlink(f"{folder}/{name}") for name in os.listdir(folder))


def test_what_a_called_function_prints_is_no_message() -> None:
    """Stdout belongs to the protocol, and stdin too: programs that we run get neither."""
    with Client() as client:
        client.call("digest")
        links = [os.readlink(f"/proc/{client.process.pid}/fd/{number}") for number in (0, 1, 2)]
        assert links[0] == os.devnull
        assert links[1] == links[2]


def test_the_list_of_tools_is_small_and_valid() -> None:
    with Client() as client:
        number = client.post("tools/list", {"_meta": MODERN})
        answer = client.answer(number)
        assert len(json.dumps(answer, separators=(",", ":"), ensure_ascii=False).encode()) <= 6 * 1024
        tools = {tool["name"]: tool for tool in answer["result"]["tools"]}
        assert list(tools) == ["start", "digest", "wait", "show", "say", "stop"]
        for tool in tools.values():
            for schema in (tool["inputSchema"], tool["outputSchema"]):
                jsonschema.Draft202012Validator.check_schema(schema)
                assert schema["type"] == "object"
        assert [name for name, tool in tools.items() if tool["annotations"].get("readOnlyHint")] == [
            "digest",
            "wait",
            "show",
        ]
        assert tools["stop"]["annotations"]["destructiveHint"] is True


def test_an_ended_process_is_reaped(monkeypatch: pytest.MonkeyPatch) -> None:
    """The keeper that a call starts is a child of the server."""
    monkeypatch.delenv("HOLDFAST_KEEPER")
    with Client() as client:
        made = client.call("start", command=["true"], id="it", project=workspace())
        assert made["task_id"] == "it"
        Task(os.path.join(os.environ["HOLDFAST_HOME"], "tasks", "it")).wait_for("completed")

        def no_zombies() -> bool:
            client.ask("ping")
            with open(
                f"/proc/{client.process.pid}/task/{client.process.pid}/children", encoding="utf-8"
            ) as file:
                return all(kin.state(int(child)) != "Z" for child in file.read().split())

        eventually(no_zombies, 10, "no child is a zombie")
