"""Attacks on `holdfast serve`, each refused: from other sites and ports, without a bearer, too much."""

from __future__ import annotations

import json
import os
import resource
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from tests.support import web
from tests.support.tasks import Task, workspace
from tests.support.web import Served, serving


@pytest.fixture
def served(home: str) -> Iterator[Served]:
    workspace()
    with serving() as server:
        yield server


def test_it_listens_on_loopback_alone(served: Served) -> None:
    with open(f"/proc/{served.process.pid}/net/tcp", encoding="utf-8") as file:
        rows = [line.split()[1] for line in file if f":{served.port:04X} " in line and " 0A " in line]
    assert rows == [f"0100007F:{served.port:04X}"]


def test_another_host_is_refused(served: Served) -> None:
    served.enter()
    port = served.port
    names = ("evil.example", "127.0.0.1", f"127.0.0.1.evil.example:{port}", f"evil.example:{port}", "")
    for host in names:
        for path in ("/", "/api/tasks", "/main.js"):
            status, _, body = served.ask("GET", path, Host=host)
            assert status == 421, (host, path, body)


def test_two_hosts_are_refused(served: Served) -> None:
    answer = served.raw(f"GET / HTTP/1.1\r\nHost: {served.host}\r\nHost: evil.example\r\n\r\n".encode())
    assert answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 421"))
    answer = served.raw(b"GET / HTTP/1.0\r\n\r\n")
    assert answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 421"))


def test_another_origin_is_refused(served: Served) -> None:
    served.enter()
    others = ("http://evil.example", "null", None, f"https://{served.host}", "http://127.0.0.1:1")
    for origin in (*others, f"http://localhost:{served.port}"):
        for path in ("/api/session", "/api/token", "/api/tasks", "/api/tasks/x/stop"):
            status, _, _ = served.ask("POST", path, {}, Origin=origin)
            assert status == 403, (origin, path)
        if origin is not None:
            assert served.ask("GET", "/api/tasks", Origin=origin)[0] == 403


def test_a_request_from_another_site_or_port_is_refused(served: Served) -> None:
    served.enter()
    for site in ("cross-site", "same-site", "nonsense"):
        for path in ("/", "/main.js", "/api/tasks"):
            assert served.ask("GET", path, Sec_Fetch_Site=site)[0] == 403
        assert served.ask("POST", "/api/token", {}, Sec_Fetch_Site=site)[0] == 403
    assert served.ask("GET", "/api/tasks", Sec_Fetch_Site="none")[0] == 403, "typed into the address bar"
    assert served.ask("GET", "/", Sec_Fetch_Site="none")[0] == 200


def test_a_form_is_refused(served: Served) -> None:
    served.enter()
    for kind in ("application/x-www-form-urlencoded", "text/plain", "multipart/form-data; boundary=x", None):
        assert served.ask("POST", "/api/token", b"{}", Content_Type=kind)[0] == 415
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        assert served.ask(method, "/api/tasks", Origin=served.base)[0] == 405


def test_no_cookie_lets_anybody_in_and_none_is_set(served: Served) -> None:
    served.enter()
    bearer = served.bearer
    status, headers, _ = served.ask(
        "GET", "/api/tasks", Authorization=None, Cookie=f"bearer={bearer}; session={bearer}"
    )
    assert status == 401
    for path in ("/", "/api/tasks"):
        headers = served.ask("GET", path)[1]
        assert "set-cookie" not in headers
        assert not [name for name in headers if name.startswith("access-control-")]


def test_everything_behind_the_api_needs_the_bearer(served: Served) -> None:
    assert served.ask("GET", "/")[0] == 200
    for path in (
        "tasks",
        "status",
        "form",
        "stream",
        "tasks/x",
        "tasks/x/log",
        "tasks/x/file?path=inputs/a",
        "no",
    ):
        for given in (None, "Bearer ", "Bearer wrong", "Basic abc", f"Bearer {served.token}"):
            assert served.ask("GET", f"/api/{path}", Authorization=given)[0] == 401
    assert served.ask("POST", "/api/tasks/x/stop", {})[0] == 401
    assert served.ask("GET", f"/api/tasks?bearer={served.token}")[0] == 401


def test_a_token_works_once(served: Served) -> None:
    assert served.post("/api/session", {"token": "wrong"})[0] == 403
    assert served.post("/api/session", {"token": ""})[0] == 403
    assert served.post("/api/session", {"token": None})[0] == 403
    served.enter()
    assert served.post("/api/session", {"token": served.token})[0] == 403
    status, found = served.post("/api/token", {})
    assert status == 200
    assert served.post("/api/session", {"token": found["token"]})[0] == 200
    assert served.post("/api/session", {"token": found["token"]})[0] == 403


def test_the_token_is_in_no_argument_variable_or_log(served: Served, home: str) -> None:
    served.enter()
    served.get("/api/status")
    for name in ("cmdline", "environ"):
        with open(f"/proc/{served.process.pid}/{name}", "rb") as file:
            found = file.read()
        assert served.token.encode() not in found
        assert served.bearer.encode() not in found
    for folder, _, names in os.walk(home):
        for name in names:
            with open(os.path.join(folder, name), "rb") as file:
                assert served.token.encode() not in file.read()
    errors = served.stop()
    assert served.token not in errors
    assert served.bearer not in errors


def test_a_large_body_is_refused(served: Served) -> None:
    served.enter()
    assert served.ask("POST", "/api/token", b" " * 65535 + b"{}")[0] == 413
    assert served.ask("POST", "/api/token", b"{}", Content_Length="99999999999999")[0] == 413
    assert served.ask("POST", "/api/token", b"{}", Content_Length="-1")[0] in (400, 411)
    head = (
        f"POST /api/token HTTP/1.1\r\nHost: {served.host}\r\nOrigin: {served.base}\r\nAuthorization: Bearer "
    )
    chunked = f"{served.bearer}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert served.raw((head + chunked + "5\r\nabcde\r\n").encode()).startswith(b"HTTP/1.1 411")
    for body in (b"[]", b"nonsense", b"", b"[" * 60000, b'{"token": ' + b"[" * 50000):
        assert served.ask("POST", "/api/session", body)[0] == 400


def test_headers_of_every_answer(served: Served) -> None:
    for path in ("/", "/main.js", "/none", "/api/tasks"):
        headers = served.ask("GET", path)[1]
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self' 'sha256-")
        assert "unsafe" not in policy
        for part in (
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
            "form-action 'none'",
        ):
            assert part in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-opener-policy"] == "same-origin"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert headers["cache-control"] == "no-store"
        assert "server" not in headers


def test_no_path_reaches_the_disk(served: Served) -> None:
    pages = [served.ask("GET", path)[2] for path in ("/", "/task/it")]
    for path in (
        "/../server.py",
        "/..%2fserver.py",
        "/%2e%2e/server.py",
        "/vendor/../../app.py",
        "//etc/passwd",
        "/static/",
        "/vendor",
        "/vendor/VENDORED.toml",
        "/index.html/..",
        "/task/../../x",
    ):
        status, _, body = served.ask("GET", path)
        assert status in (400, 404) or body in pages, path


def test_files_of_a_packet_are_those_of_the_list(served: Served) -> None:
    task = Task.shell("echo out; echo secret >&2", "--id", "it")
    task.wait_for("completed")
    served.enter()
    os.makedirs(task.path("outputs"), exist_ok=True)
    outside = os.path.join(os.path.dirname(task.packet), "..", "..", "outside")
    with open(outside, "w", encoding="utf-8") as file:
        file.write("private")
    os.symlink(outside, task.path("outputs", "link.md"))
    os.link(outside, task.path("outputs", "plain.md"))
    os.symlink("/", task.path("inputs", "attachments")) if not os.path.exists(
        task.path("inputs", "attachments")
    ) else None
    os.mkfifo(task.path("outputs", "pipe.md"))
    (attempt,) = [os.path.basename(each) for each in task.attempts()]
    for path in (
        "outputs/link.md", "outputs/pipe.md", "outputs/../env.json", "env.json", "state/env.json",
        "/etc/passwd", "../../../outside", f"attempts/{attempt}/stdout.log", f"attempts/{attempt}/stderr.log",
        "events.jsonl", "manifest.json", "output.log", "inputs/attachments/etc/passwd", "",
        "outputs/plain.md%00",
    ):  # fmt: skip
        status, _, body = served.ask("GET", f"/api/tasks/it/file?path={path}")
        assert status == 404, (path, body)
        assert b"private" not in body
    status, headers, body = served.ask("GET", "/api/tasks/it/file?path=outputs/plain.md")
    assert (status, headers["content-type"], body) == (200, "text/plain; charset=utf-8", b"private")
    for task_id in ("..", "%2e%2e", "it%2f..%2fit", "i", "it%00", ".", "*"):
        assert served.ask("GET", f"/api/tasks/{task_id}/log")[0] in (400, 404), task_id


def test_no_command_and_no_full_permissions(home: str) -> None:
    folder = os.path.join(os.path.dirname(home), "bin")
    os.mkdir(folder)
    with open(os.path.join(folder, "claude"), "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\nexit 0\n")
    os.chmod(os.path.join(folder, "claude"), 0o755)
    with serving(env={"PATH": f"{folder}:{os.environ['PATH']}"}) as served:
        served.enter()
        _choose_what_is_refused(served, home)


def _choose_what_is_refused(served: Served, home: str) -> None:
    project = {"project": workspace(), "prompt": "do it", "agent": "claude"}
    status, told = served.post("/api/tasks", {"check": True, "fields": project})
    assert status == 200, told
    # Each for this field, and for no other reason.
    for name, value in (
        ("permissions", "full"),
        ("permissions", ["full"]),
        ("yolo", True),
        ("agent", "command"),
        ("agent", "nobody"),
        ("agent", ["claude"]),
        ("agent", ""),
        ("command", ["id"]),
        ("accept", ["id"]),
        ("env", ["PATH"]),
        ("env_file", "/etc/passwd"),
        ("file", "/etc/passwd"),
        ("packet", "/tmp"),
        ("option", ["x=y"]),
        ("trust_project", True),
        ("project", "relative"),
        ("labels", "x"),
        ("budget_usd", "1e999"),
        ("budget_usd", "nan"),
        ("max_turns", True),
        ("prompt", "x\0"),
    ):
        status, told = served.post("/api/tasks", {"fields": {**project, name: value}})
        assert status == 400, (name, told)
        assert list(told["problems"]) == [name], told
    for verb in ("exec", "rm", "run", "apply", "amend", "__class__", "file"):
        assert served.ask("POST", f"/api/tasks/x/{verb}", {})[0] == 404
    assert not os.listdir(os.path.join(home, "tasks")) if os.path.isdir(os.path.join(home, "tasks")) else True


def test_streams_are_limited(served: Served) -> None:
    served.enter()
    head = f"GET /api/stream HTTP/1.1\r\nHost: {served.host}\r\nAuthorization: Bearer {served.bearer}\r\n\r\n"
    open_ones: list[socket.socket] = []
    try:
        for _ in range(32):
            connection = socket.create_connection(("127.0.0.1", served.port), 10)
            open_ones.append(connection)
            connection.sendall(head.encode())
            assert connection.recv(4096).startswith(b"HTTP/1.1 200")
        refused = 0
        for _ in range((int(os.environ.get("HOLDFAST_HOSTILE_FULL") or 0) and 10_000) or 300):
            refused += served.raw(head.encode()).startswith(b"HTTP/1.1 429")
        assert refused in (300, 10_000)
        assert served.get("/api/status")["schema"] == "holdfast.status/1"
        open_ones.pop().close()

        def again() -> bool:
            connection = socket.create_connection(("127.0.0.1", served.port), 10)
            open_ones.append(connection)
            connection.sendall(head.encode())
            return connection.recv(4096).startswith(b"HTTP/1.1 200")

        web.eventually(again, 20, "the place of a closed stream is free")
    finally:
        for connection in open_ones:
            connection.close()


def test_connections_are_limited_and_a_silent_one_is_closed(served: Served) -> None:
    served.enter()
    connections = [socket.create_connection(("127.0.0.1", served.port), 10) for _ in range(400)]
    try:
        # Whoever asks is answered, while the silent ones have all the places.
        assert served.get("/api/status")["schema"] == "holdfast.status/1"
        web.wait_until_closed(connections[0])
        web.wait_until_closed(connections[-1])
    finally:
        for connection in connections:
            connection.close()
    assert web.eventually(lambda: served.get("/api/status"), 20)["schema"] == "holdfast.status/1"


def test_more_connections_than_descriptors_wait_and_are_told_in_a_line(served: Served) -> None:
    pid = served.process.pid
    opened = len(os.listdir(f"/proc/{pid}/fd"))
    _, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (opened + 4, hard))
    connections = [socket.create_connection(("127.0.0.1", served.port), 10) for _ in range(30)]
    try:
        assert served.process.stderr is not None
        # A line, not the traceback of the event loop.
        told = next(line for line in served.process.stderr if not line.startswith("open this address"))
        assert told == "warning: too many open files: connections have to wait\n"
    finally:
        for connection in connections:
            connection.close()
    assert web.eventually(lambda: served.ask("GET", "/")[0], 20) == 200
    assert served.stop() == ""


def _asks(served: Served) -> bytes:
    return f"GET / HTTP/1.1\r\nHost: {served.host}\r\n\r\n".encode()


@pytest.mark.parametrize("then", ["nothing", "half a request", "no reading", "no body"])
def test_connections_without_a_bearer_keep_no_page_out(served: Served, then: str) -> None:
    """Anybody may ask for the page, and stay connected: a page of ours takes the place."""
    served.enter()
    first = _asks(served) * (200 if then == "no reading" else 1)
    if then == "no body":
        head = f"POST /api/session HTTP/1.1\r\nHost: {served.host}\r\nOrigin: {served.base}\r\n"
        first = f"{head}Content-Type: application/json\r\nContent-Length: 5000\r\n\r\n".encode()
    connections: list[socket.socket] = []
    try:
        for _ in range(300):
            connection = socket.create_connection(("127.0.0.1", served.port), 10)
            connections.append(connection)
            connection.sendall(first)
            if then in ("nothing", "half a request"):
                assert connection.recv(100).startswith(b"HTTP/1.1 200")
            if then == "half a request":
                connection.sendall(b"GET / HTTP/1.1\r\nHo")
        assert served.get("/api/status")["schema"] == "holdfast.status/1"
    finally:
        for connection in connections:
            connection.close()


def test_connections_without_a_bearer_end_no_stream(served: Served) -> None:
    served.enter()
    head = f"GET /api/stream HTTP/1.1\r\nHost: {served.host}\r\nAuthorization: Bearer {served.bearer}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", served.port), 10) as stream:
        stream.sendall(head.encode())
        assert stream.recv(4096).startswith(b"HTTP/1.1 200")
        connections: list[socket.socket] = []
        try:
            for _ in range(300):
                connections.append(socket.create_connection(("127.0.0.1", served.port), 10))
                connections[-1].sendall(_asks(served))
                assert connections[-1].recv(100).startswith(b"HTTP/1.1 200")
            Task.shell("true", "--id", "it")
            seen = b""
            while b"event: board" not in seen:
                part = stream.recv(65536)
                assert part, "the stream ended"
                seen += part
        finally:
            for connection in connections:
                connection.close()


def test_garbage_ends_a_connection_and_not_the_server(served: Served) -> None:
    for data in (
        b"\0" * 1000,
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET " + b"/" * 70000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 20000,
        b"\x16\x03\x01\x02\x00\x01",
    ):
        try:
            served.raw(data, within_s=15)
        except ConnectionError:
            pass
    assert served.ask("GET", "/")[0] == 200


def test_an_answer_is_at_most_a_megabyte_and_a_line_64_kb(served: Served) -> None:
    task = Task.shell(
        "head -c 5000000 /dev/zero | tr '\\0' x; echo; yes 'a line with a needle' | head -30000",
        "--id",
        "it",
    )
    task.wait_for("completed", within_s=60)
    served.enter()
    for path in (
        "log?begin=0&limit=99999999",
        "log?limit=99999999",
        "search?text=needle",
        "search?text=x",
        "events",
        "",
        "log?begin=-5",
        "log?end=x",
    ):
        status, _, body = served.ask("GET", f"/api/tasks/it/{path}".rstrip("/"))
        assert status == 200, body
        assert len(body) <= 1024 * 1024
        for value in _texts(json.loads(body)):
            assert all(len(line) <= 65536 + 20 for line in value.split("\n"))


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for each in value.values() for text in _texts(each)]
    return [text for each in value for text in _texts(each)] if isinstance(value, list) else []


def test_read_only(home: str) -> None:
    task = Task.shell("exit 0", "--id", "it")
    task.wait_for("completed")
    with serving("--read-only") as served:
        served.enter()
        assert served.get("/api/tasks")["rows"][0]["task_id"] == "it"
        assert served.post("/api/tasks/it/stop", {})[0] == 403
        assert served.post("/api/tasks", {"fields": {}})[0] == 403
        assert served.post("/api/token", {})[0] == 200


def test_another_address_is_read_only_and_warned_of(home: str) -> None:
    with serving("--address", "127.0.0.2") as served:
        connection = socket.create_connection(("127.0.0.2", served.port), 10)
        connection.sendall(f"GET / HTTP/1.1\r\nHost: {served.host}\r\n\r\n".encode())
        assert connection.recv(100).startswith(b"HTTP/1.1 200")
        connection.close()
        errors = served.stop()
    assert "warning: everybody who reaches 127.0.0.2 can connect" in errors
    assert "read-only" in errors


def test_without_the_extra_it_says_what_to_install(home: str) -> None:
    script = "import sys; sys.modules['starlette'] = None; from holdfast.__main__ import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", script, "serve"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 3, done
    assert f"{sys.executable} -P -m pip install 'starlette<2,>=1' 'uvicorn>=0.30'" in done.stderr


def test_many_readers_at_once(served: Served) -> None:
    task = Task.shell("echo hi", "--id", "it")
    task.wait_for("completed")
    served.enter()
    failures: list[object] = []

    def read() -> None:
        for path in ("", "/log", "/events", "/usage", "/search?text=h"):
            status, _, body = served.ask("GET", f"/api/tasks/it{path}")
            if status != 200:
                failures.append((path, status, body))

    threads = [threading.Thread(target=read) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not failures
