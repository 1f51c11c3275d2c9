"""A sandbox whose network is a list of hosts: real processes, and servers on the loopback of this machine."""

from __future__ import annotations

import http.server
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator

import pytest

from tests.support import kin, processes
from tests.support.tasks import Task, holdfast, workspace
from tests.support.tools import need, need_sandbox
from tests.support.waiting import eventually

pytestmark = pytest.mark.req("SBX-3")

#: Ask for a page through the proxy, as a program that knows the variables.
_GET = """
import sys, urllib.request
try:
    print("got", urllib.request.urlopen(sys.argv[1], timeout=20).read().decode())
except Exception as error:
    print("not", error)
"""
#: The same by CONNECT, as for TLS.
_CONNECT = """
import os, socket, sys
place = os.environ["HTTPS_PROXY"].removeprefix("http://").split(":")
link = socket.create_connection((place[0], int(place[1])), 20)
link.sendall(f"CONNECT {sys.argv[1]} HTTP/1.1\\r\\nHost: {sys.argv[1]}\\r\\n\\r\\n".encode())
answer = link.recv(4096).decode()
print("connect", answer.split()[1])
if answer.split()[1] == "200":
    link.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n")
    data = b""
    while piece := link.recv(4096):
        data += piece
    print("got", data.rpartition(b"\\r\\n")[2].decode())
"""


@pytest.fixture(autouse=True)
def possible() -> None:
    need_sandbox()


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = f"hello from {self.headers['Host']}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def port() -> Iterator[int]:
    """A server outside, on this machine's loopback."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    thread.join()
    server.server_close()


def boxed(hosts: str, script: str, *flags: str) -> Task:
    for name, text in (("get.py", _GET), ("connect.py", _CONNECT)):
        with open(os.path.join(workspace(), name), "w", encoding="utf-8") as file:
            file.write(text)
    python = f"{sys.executable} -S"
    return Task.shell(script.replace("PYTHON", python), "--sandbox", "--network", hosts, *flags)


def proxies(task: Task) -> list[int]:
    """The proxies of this task."""
    found = processes.descendants(task.agent_pid())
    return [each.pid for each in found if _is_proxy(each.pid)]


def _is_proxy(pid: int) -> bool:
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        return b"proxy.py" in file.read()


def test_a_listed_host_is_reached_and_no_other(home: str, port: int) -> None:
    other = socket.create_server(("127.0.0.1", 0))
    elsewhere = other.getsockname()[1]
    task = boxed(
        f"localhost:{port},api.example.com",
        f"PYTHON get.py http://localhost:{port}/; PYTHON connect.py localhost:{port}; "
        f"PYTHON get.py http://localhost:{elsewhere}/; PYTHON connect.py localhost:{elsewhere}; "
        f"PYTHON connect.py 127.0.0.1:{port}; PYTHON connect.py evil.example.com:443; exit 5",
        "--max-retries", "0",
    )  # fmt: skip
    task.wait_for("failed", "abandoned", within_s=40.0)
    said = [line for line in task.log().splitlines() if not line.startswith("holdfast:")]
    assert said == [
        f"got hello from localhost:{port}", "connect 200", "got hello from None",
        "not HTTP Error 403: Forbidden", "connect 403", "connect 403", "connect 403",
    ]  # fmt: skip
    # The person is told what was refused, once for each place.
    assert task.log().count(f"no connection to localhost:{elsewhere}: it is not in the list") == 1
    assert "no connection to evil.example.com:443" in task.log()
    record = task.json("attempts", os.path.basename(task.attempts()[0]), "exit.json")
    assert (record["exit_code"], record["exit_signal"]) == (5, None)
    assert "sandbox with network to localhost" in " ".join(holdfast("show", task.id).stdout.split())
    other.close()


def test_without_the_proxy_there_is_no_way(home: str, port: int) -> None:
    direct = (
        "import socket, sys\n"
        f"for place in (('127.0.0.1', {port}), ('93.184.216.34', 443), ('169.254.169.254', 80)):\n"
        "    try:\n"
        "        socket.create_connection(place, 3)\n"
        "        print('reached', place)\n"
        "    except OSError:\n"
        "        print('no way')\n"
    )
    with open(os.path.join(workspace(), "direct.py"), "w", encoding="utf-8") as file:
        file.write(direct)
    task = boxed(f"localhost:{port}", "unset HTTP_PROXY http_proxy; PYTHON direct.py; ls /sys/class/net")
    task.wait_for("completed", within_s=40.0)
    assert "reached" not in task.log()
    assert task.log().count("no way") == 3


def test_a_name_that_leads_to_this_machine_is_refused(home: str, port: int) -> None:
    """Whoever answers for a listed name cannot lead to the user's own servers."""
    name = next(
        (
            name
            for name in (socket.gethostname(), "ip6-localhost", "ip6-loopback")
            if name != "localhost" and _is_loopback(name)
        ),
        None,
    )
    if name is None:
        pytest.skip("no name here but localhost leads to the loopback")
    task = boxed(f"{name}:{port}", f"PYTHON connect.py {name}:{port}")
    task.wait_for("completed", within_s=40.0)
    assert "connect 403" in task.log()
    assert "is not public" in task.log()


def _is_loopback(name: str) -> bool:
    try:
        return all(str(each[4][0]).startswith(("127.", "::1")) for each in socket.getaddrinfo(name, 80))
    except OSError:
        return False


def test_a_proxy_that_is_killed_is_started_again(home: str, port: int) -> None:
    task = boxed(
        f"localhost:{port}", f"while [ ! -e go ]; do sleep 0.05; done; PYTHON get.py http://localhost:{port}/"
    )
    (first,) = eventually(lambda: proxies(task))
    os.kill(first, signal.SIGKILL)
    (second,) = eventually(lambda: [pid for pid in proxies(task) if pid != first])
    with open(os.path.join(workspace(), "go"), "w", encoding="utf-8"):
        pass
    task.wait_for("completed", within_s=40.0)
    assert "got hello" in task.log()
    eventually(lambda: not processes.is_alive(second))


def test_the_agent_keeps_its_proxy_when_the_runner_is_killed(home: str, port: int) -> None:
    task = boxed(
        f"localhost:{port}", f"while [ ! -e go ]; do sleep 0.05; done; PYTHON get.py http://localhost:{port}/"
    )
    (proxy,) = eventually(lambda: proxies(task))
    task.kill_runner()
    task.start_runner()
    with open(os.path.join(workspace(), "go"), "w", encoding="utf-8"):
        pass
    task.wait_for("completed", within_s=40.0)
    assert "got hello" in task.log()
    assert len(task.attempts()) == 1
    eventually(lambda: not processes.is_alive(proxy))


@pytest.mark.parametrize("how", ["stop", "kill the sandbox", "kill the recorder"])
def test_no_proxy_is_left(home: str, port: int, how: str) -> None:
    task = boxed(f"localhost:{port}", "sleep 600", "--max-retries", "0")
    (proxy,) = eventually(lambda: proxies(task))
    agent = task.agent_pid()
    if how == "kill the sandbox":
        os.kill(agent, signal.SIGKILL)
    elif how == "kill the recorder":
        os.kill(kin.recorder_pid(task), signal.SIGKILL)
        assert processes.is_alive(proxy)
        task.stop()
    else:
        task.stop()
    eventually(lambda: not processes.is_alive(proxy) and not processes.is_alive(agent), within_s=20.0)


@pytest.mark.parametrize("hosts", ["http://x", "a,*", ",", "x:99999"])
def test_what_is_no_list_is_refused(home: str, hosts: str) -> None:
    done = holdfast("run", "-d", "--sandbox", "--network", hosts, "--", "true", cwd=workspace())
    assert done.returncode == 2
    assert "--network" in done.stderr


def test_a_list_of_the_settings_and_one_of_the_packet(home: str) -> None:
    """What both have counts."""
    from holdfast.views.create import check_sandbox

    def read(
        setting: str | None, packet: str | None, flag: str | None = None
    ) -> tuple[bool, tuple[str, ...]]:
        found = check_sandbox.read(
            {"sandbox": True, "network": flag},
            {"network": setting},
            project=workspace(),
            packet=(None, packet),
        )
        assert found is not None
        return found.network, found.hosts

    assert read("a.x,b.x", "b.x,c.x") == (False, ("b.x",))
    assert read("a.x", "c.x") == (False, ())
    assert read("off", "c.x") == (False, ())
    assert read("on", "c.x") == (False, ("c.x",))
    assert read("off", None, "c.x") == (False, ("c.x",))


def test_curl_knows_it(home: str, port: int) -> None:
    need("curl")
    task = boxed(f"localhost:{port}", f"curl -sS http://localhost:{port}/; curl -s http://evil.example/")
    task.wait_for("completed", "failed", within_s=30.0)
    assert "hello from" in task.log()
    assert "no connection to evil.example:80" in task.log()
