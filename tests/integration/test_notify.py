"""Notices on their way: delivered by real programs and a real server, retried, given up, never in the
way."""

from __future__ import annotations

import hashlib
import hmac
import http.server
import json
import os
import signal
import threading
import time
from collections.abc import Iterator

import pytest

from holdfast import paths
from holdfast.keeper import delivery as delivery
from holdfast.keeper.delivery import Deliveries
from holdfast.notify import outbox
from holdfast.packet import load
from holdfast.redact import Redactor
from holdfast.runner.ledger import Ledger
from holdfast.runner.user_files import notices
from holdfast.store.layout import Home, Packet
from holdfast.testing import Scenario
from tests.support import keepers, kin, processes
from tests.support.journals import opened
from tests.support.packets import WORK, Written, played
from tests.support.tasks import Task, holdfast, workspace
from tests.support.waiting import eventually

EVENT = {
    "event": "interrupted",
    "task_id": "fix",
    "status": "interrupted",
    "reason": "which branch?",
    "project_dir": "/p",
}


@pytest.fixture(autouse=True)
def in_a_home(home: str) -> None:
    workspace()
    os.makedirs(Home(home).tasks, exist_ok=True)


def script(place, name: str, text: str) -> str:
    path = os.path.join(place.root, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\n" + text + "\n")
    os.chmod(path, 0o700)
    return path


def post(home: str, rule: dict, event: dict = EVENT, after: str | None = None) -> None:
    """Post a notice for a rule of the user: another one is not delivered."""
    path = paths.user_settings()
    os.makedirs(os.path.dirname(path), exist_ok=True)
    options = "".join(f"{name} = {json.dumps(value)}\n" for name, value in rule.items())
    with open(path, "a", encoding="utf-8") as file:
        file.write(f'[[notify]]\non = ["all"]\n{options}')
    assert outbox.post(Home(home), [{"on": ["all"], **rule}], event, str, after=after) == 1


def deliver(box: Deliveries, within_s: float = 15.0) -> None:
    """Step until nothing is left to do."""

    def done() -> bool:
        box.step()
        reap()
        return box.is_idle

    eventually(done, within_s, "every notice is settled")


def reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return


def read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


# ── programs ──


@pytest.mark.req("NOT-2", "NOT-4")
def test_a_command_gets_the_notice_on_stdin_and_in_its_environment(home: str, place) -> None:
    got = os.path.join(place.root, "got")
    argv = [
        "sh",
        "-c",
        f'cat > {got}.json; echo "$HOLDFAST_EVENT|$HOLDFAST_TASK|$HOLDFAST_REASON|$1|$HOLDFAST_ROLE" > {got}',
        "sh",
        "a b",
    ]
    post(home, {"to": "command", "argv": argv})
    deliver(Deliveries(Home(home)))
    assert read(got) == "interrupted|fix|which branch?|a b|\n"
    notice = json.loads(read(got + ".json"))
    assert notice["text"] == "holdfast: fix needs a person: which branch?"
    assert "rule" not in notice
    assert outbox.status(Home(home)) == {"pending": 0, "given_up": 0, "failing": {}}


@pytest.mark.req("NOT-1", "NOT-3")
def test_openclaw_and_gt_are_called_as_their_users_know_them(home: str, place) -> None:
    got = os.path.join(place.root, "got")
    program = script(place, "program", f'for word in "$@"; do echo "$word"; done >> {got}')
    post(home, {"to": "openclaw", "program": program}, {**EVENT, "event": "abandoned", "reason": "deadline"})
    deliver(Deliveries(Home(home)))
    assert read(got).splitlines() == [
        "system", "event", "--text", "holdfast: fix was abandoned: deadline", "--mode", "now",
    ]  # fmt: skip
    os.unlink(got)
    post(home, {"to": "gt", "program": program})
    deliver(Deliveries(Home(home)))
    assert read(got).splitlines() == [
        "mail", "send", "overseer", "-s", "HARNESS INTERRUPT", "-m",
        "holdfast: fix needs a person: which branch?", "Reason: which branch?",
    ]  # fmt: skip


def test_a_desktop_bubble(home: str, place, monkeypatch: pytest.MonkeyPatch) -> None:
    got = os.path.join(place.root, "got")
    os.mkdir(os.path.join(place.root, "bin"))
    script(place, "bin/notify-send", f'for word in "$@"; do echo "$word"; done > {got}')
    monkeypatch.setenv("PATH", os.path.join(place.root, "bin") + ":" + os.environ["PATH"])
    post(home, {"to": "desktop"})
    deliver(Deliveries(Home(home)))
    assert read(got).splitlines()[0] == "--urgency=critical"
    assert read(got).splitlines()[-1] == "holdfast: fix needs a person: which branch?"


def test_apprise_says_how_to_install_it(home: str) -> None:
    post(home, {"to": "apprise", "urls": ["json://localhost"]})
    box = Deliveries(Home(home), first_pause_s=60.0)
    eventually(lambda: (box.step(), reap(), outbox.status(Home(home))["failing"])[2], what="it has failed")
    try:
        import apprise  # noqa: F401
    except ImportError:
        assert "pip install apprise" in outbox.status(Home(home))["failing"]["apprise"]["error"]


# ── failing ──


@pytest.mark.req("NOT-1")
def test_a_notifier_that_fails_is_tried_again_and_seen(home: str, place) -> None:
    count = os.path.join(place.root, "count")
    argv = [
        script(
            place,
            "flaky",
            f"echo x >> {count}; test $(wc -l < {count}) -ge 3 || {{ echo no line >&2; exit 7; }}",
        )
    ]
    post(home, {"to": "command", "argv": argv, "name": "flaky"})
    box = Deliveries(Home(home), first_pause_s=0.02)
    eventually(lambda: (box.step(), reap(), outbox.status(Home(home))["failing"])[2], what="it has failed")
    failing = outbox.status(Home(home))["failing"]["flaky"]
    assert failing["error"].endswith("exited with 7: no line")
    facts = json.loads(holdfast("status", "--json").stdout)
    assert facts["outbox"]["pending"] == 1
    assert any("notifications by flaky fail" in line for line in facts["attention"])
    assert "notifications by flaky fail" in holdfast("status").stdout
    deliver(box)
    assert len(read(count).splitlines()) == 3
    assert outbox.status(Home(home)) == {"pending": 0, "given_up": 0, "failing": {}}


def test_after_eight_tries_it_is_put_aside(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "GROWTH", 1.0)
    post(home, {"to": "command", "argv": ["/nonexistent/program"]})
    deliver(Deliveries(Home(home), first_pause_s=0.01), within_s=60)
    (name,) = os.listdir(Home(home).outbox_failed)
    with open(os.path.join(Home(home).outbox_failed, name), encoding="utf-8") as file:
        notice = json.load(file)
    assert notice["tries"] == delivery.TRIES
    assert "cannot run /nonexistent/program" in notice["error"]
    facts = json.loads(holdfast("status", "--json").stdout)["outbox"]
    assert (facts["pending"], facts["given_up"]) == (0, 1)


@pytest.mark.parametrize("text", ['{"half', "{}", '{"rule": 3, "tries": 0}', '{"rule": {}, "tries": "many"}'])
def test_an_unreadable_notice_is_put_aside(home: str, text: str) -> None:
    post(home, {"to": "gt"})
    (name,) = outbox.names(Home(home))
    with open(os.path.join(Home(home).outbox, name), "w", encoding="utf-8") as file:
        file.write(text)
    deliver(Deliveries(Home(home)))
    assert os.listdir(Home(home).outbox_failed) == [name]


def test_a_notifier_that_hangs_delays_no_other(home: str, place) -> None:
    """Neither the keeper's loop nor the notices of others behind it; two of a rule run at once, and time ends
    each."""
    got = os.path.join(place.root, "got")
    for _ in range(6):
        post(home, {"to": "command", "argv": ["sleep", "60"]})
    post(home, {"to": "command", "argv": ["touch", got]})
    box = Deliveries(Home(home))
    began = time.monotonic()
    for _ in range(5):
        box.step()
    assert time.monotonic() - began < 5.0

    def delivering() -> list[processes.Process]:
        return [p for p in processes.marked(place.root) if "holdfast.notify" in p.command]

    eventually(lambda: os.path.exists(got), what="that of another rule is delivered")
    eventually(lambda: (box.step(), reap(), len(delivering()) == delivery.AT_ONCE)[2], what="two hang")
    for running in list(box._running.values()):
        running.limit_mono = 0.0
    box.step()
    eventually(lambda: not delivering(), what="they were killed")
    eventually(lambda: not [p for p in processes.marked(place.root) if p.command.startswith("sleep")])
    box.step()
    failing = outbox.status(Home(home))["failing"]
    assert "command sleep" in failing
    for name in outbox.names(Home(home)):
        os.unlink(os.path.join(Home(home).outbox, name))
    for running in list(box._running.values()):
        running.kill()
    eventually(lambda: (reap(), not delivering())[1])


# ── kills ──


def test_a_keeper_that_dies_meanwhile_loses_nothing(home: str, place) -> None:
    got = os.path.join(place.root, "got")
    go = os.path.join(place.root, "go")
    argv = ["sh", "-c", f"while [ ! -e {go} ]; do sleep 0.02; done; echo x >> {got}"]
    post(home, {"to": "command", "argv": argv})
    first = Deliveries(Home(home))
    first.step()
    # The next keeper waits for the process of the last one: it may deliver yet.
    second = Deliveries(Home(home))
    assert second.step() > 20
    assert not second.is_idle
    with open(go, "w", encoding="utf-8"):
        pass
    eventually(lambda: outbox.names(Home(home)) == [] and read(got) == "x\n")
    second.step()
    assert second.is_idle


def test_a_delivery_that_is_killed_is_repeated(home: str, place) -> None:
    got = os.path.join(place.root, "got")
    argv = ["sh", "-c", f"echo x >> {got}; test $(wc -l < {got}) -ge 2 || kill -9 $PPID"]
    post(home, {"to": "command", "argv": argv})
    deliver(Deliveries(Home(home), first_pause_s=0.02))
    assert read(got) == "x\nx\n"


def test_an_end_is_announced_after_it_is_marked(home: str, place) -> None:
    got = os.path.join(place.root, "got")
    marker = os.path.join(place.root, "_task.done")
    post(home, {"to": "command", "argv": ["touch", got]}, after=marker)
    box = Deliveries(Home(home))
    for _ in range(3):
        assert box.step() <= 1.0
        assert box._running == {}
    assert not box.is_idle
    assert not os.path.exists(got)
    with open(marker, "w", encoding="utf-8"):
        pass
    deliver(box)
    assert os.path.exists(got)


# ── a server ──


class Receiver(http.server.ThreadingHTTPServer):
    """Keeps its requests and gives the configured answers."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.got: list[tuple[str, dict[str, str], bytes]] = []
        self.answers: list[int] = []


class Handler(http.server.BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((self.path, dict(self.headers), body))
        self.send_response(self.server.answers.pop(0) if self.server.answers else 204)
        self.end_headers()

    def log_message(self, *args: object) -> None:
        return


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    server = Receiver()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_webhook_is_signed_and_repeated_until_it_is_taken(
    home: str, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOK_SECRET", "s3cret")
    receiver.answers = [503, 302]
    url = f"http://127.0.0.1:{receiver.server_address[1]}/hook?a=b"
    post(home, {"to": "webhook", "url": url, "secret_env": "HOOK_SECRET"})
    deliver(Deliveries(Home(home), first_pause_s=0.02))
    assert len(receiver.got) == 3
    assert len({headers["X-Holdfast-Id"] for _, headers, _ in receiver.got}) == 1
    path, headers, body = receiver.got[-1]
    assert path == "/hook?a=b"
    assert json.loads(body)["reason"] == "which branch?"
    assert headers["X-Holdfast-Event"] == "interrupted"
    stamp = headers["X-Holdfast-Timestamp"]
    assert abs(int(stamp) - time.time()) < 60
    wanted = hmac.new(b"s3cret", stamp.encode() + b"." + body, hashlib.sha256).hexdigest()
    assert headers["X-Holdfast-Signature"] == f"sha256={wanted}"


def test_a_webhook_without_secret_or_host_reports_it(home: str, place, receiver: Receiver) -> None:
    port = receiver.server_address[1]
    post(home, {"to": "webhook", "url": f"http://127.0.0.1:{port}/", "secret_env": "NOT_SET", "name": "a"})
    post(home, {"to": "webhook", "url": "http://127.0.0.1:1/", "name": "b"})
    secret = os.path.join(place.root, "secret")
    post(home, {"to": "webhook", "url": f"http://127.0.0.1:{port}/", "secret_file": secret, "name": "c"})
    box = Deliveries(Home(home), first_pause_s=60.0)
    eventually(
        lambda: (box.step(), reap(), len(outbox.status(Home(home))["failing"]) == 3)[2],
        what="all have failed",
    )
    failing = outbox.status(Home(home))["failing"]
    assert failing["a"]["error"] == "the keeper's environment has no NOT_SET"
    assert "127.0.0.1 cannot be reached" in failing["b"]["error"]
    assert f"cannot read the secret {secret}" in failing["c"]["error"]
    assert receiver.got == []


# ── the keeper ──


def test_the_keeper_delivers_at_once_and_stays_while_something_is_left(
    home: str, place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOLDFAST_KEEPER")
    got = os.path.join(place.root, "got")
    assert holdfast("up").returncode == 0
    keepers.wait_for(home)
    post(home, {"to": "command", "argv": ["touch", got]})
    eventually(lambda: os.path.exists(got), what="the keeper was woken and delivered")
    eventually(lambda: outbox.names(Home(home)) == [])


def test_a_keeper_with_a_notice_left_is_not_idle(home: str, place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOLDFAST_KEEPER")
    monkeypatch.setenv("HOLDFAST_KEEPER_IDLE", "0.3")
    from holdfast.spawn import ensure_keeper

    held = os.path.join(place.root, "marker")
    got = os.path.join(place.root, "got")
    post(home, {"to": "command", "argv": ["touch", got]}, after=held)
    ensure_keeper(Home(home), by_person=True)
    pid = keepers.wait_for(home)
    keepers.stays(lambda: keepers.pid(home) == pid, 1.5, "the keeper lives")
    with open(held, "w", encoding="utf-8"):
        pass
    eventually(lambda: os.path.exists(got))
    eventually(lambda: (reap(), keepers.pid(home) == 0)[1], what="then it leaves")


def test_a_killed_keeper_is_followed_by_one_that_delivers(
    home: str, place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOLDFAST_KEEPER")
    held = os.path.join(place.root, "marker")
    got = os.path.join(place.root, "got")
    holdfast("up")
    pid = keepers.wait_for(home)
    post(home, {"to": "command", "argv": ["touch", got]}, after=held)
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: not processes.is_alive(pid))
    with open(held, "w", encoding="utf-8"):
        pass
    holdfast("up")
    eventually(lambda: os.path.exists(got))


# ── a task ──


def rules(text: str) -> None:
    path = os.path.join(os.environ["HOME"], ".config", "holdfast", "config.toml")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def ledger_of(task: Task) -> Ledger:
    packet = Packet(task.packet)
    return Ledger(packet, load.fold(packet), opened(packet), Redactor({}))


@pytest.mark.req("NOT-1", "NOT-2", "NOT-4")
def test_a_task_is_announced_by_the_current_rules(home: str, place) -> None:
    task = Task.shell("exit 3", "--id", "it")
    task.wait_for("failed")
    assert notices.post(ledger_of(task), "failed") == 0  # no rule matches
    got = os.path.join(place.root, "got")
    say = f'to = "command"\nargv = ["sh", "-c", "echo $HOLDFAST_EVENT $HOLDFAST_STATUS >> {got}"]\n'
    rules(f'[[notify]]\non = ["failed", "quality_gate"]\n{say}')
    for name in outbox.names(Home(home)):
        os.unlink(os.path.join(Home(home).outbox, name))
    assert notices.post(ledger_of(task), "completed") == 0
    assert notices.post(ledger_of(task), "quality_gate", "tests fail") == 1
    assert notices.post(ledger_of(task), "failed") == 1
    deliver(Deliveries(Home(home)))
    assert sorted(read(got).splitlines()) == ["failed failed", "quality_gate failed"]


@pytest.mark.req("NOT-1")
def test_settings_that_became_wrong_hold_nothing_up(home: str, capfd: pytest.CaptureFixture[str]) -> None:
    task = Task.shell("true", "--id", "it")
    task.wait_for("completed")
    rules("[[notify]]\n")
    assert notices.post(ledger_of(task), "completed") == 1, "the keeper determines the recipients"
    assert "the notice of completed" in capfd.readouterr().err


@pytest.mark.req("NOT-3")
def test_an_interrupt_reaches_the_overseer_with_its_reason(
    home: str, place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOLDFAST_KEEPER")
    got = os.path.join(place.root, "got")
    program = script(place, "gt", f'for word in "$@"; do echo "$word"; done > {got}')
    rules(f'[[notify]]\non = ["interrupted"]\nto = "gt"\nprogram = "{program}"\n')
    task = Task.shell(kin.WAIT, "--id", "it")
    task.agent_pid()
    task.ask("interrupt", "-m", "which branch?")
    task.wait_for("interrupted")
    eventually(lambda: "Reason: which branch?" in read(got), what="the overseer was told")
    assert "holdfast: it was interrupted by a person: which branch?\n" in read(got)
    task.stop()


@pytest.mark.req("NOT-1", "NOT-2")
@pytest.mark.parametrize(
    ("end", "flags", "command"),
    [("completed", (), "true"), ("abandoned", ("--deadline", "0.5s", "--stop-pause", "0.2s"), kin.WAIT)],
)
def test_when_an_end_is_announced_it_is_marked(
    home: str, place, monkeypatch: pytest.MonkeyPatch, end: str, flags: tuple[str, ...], command: str
) -> None:
    monkeypatch.delenv("HOLDFAST_KEEPER")
    got = os.path.join(place.root, "got")
    marker = os.path.join(home, "tasks", "it", "done", "_task.done")
    say = f"test -e {marker} && echo $HOLDFAST_TEXT >> {got}"
    rules(f'[[notify]]\non = ["{end}"]\nto = "command"\nargv = ["sh", "-c", "{say}"]\n')
    task = Task.shell(command, "--id", "it", *flags)
    task.wait_for(end)
    eventually(lambda: read(got).startswith("holdfast: it "), what="somebody was told")
    assert outbox.status(Home(home))["failing"] == {}


def test_another_package_can_bring_a_notifier(home: str, place, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, got = os.path.join(place.root, "site-packages"), os.path.join(place.root, "got")
    os.makedirs(os.path.join(folder, "pigeon-1.0.dist-info"))
    for name, text in (
        (
            "pigeon.py",
            f"def notify(notice, rule):\n    open({got!r}, 'w').write(rule['loft'] + notice['text'])\n",
        ),
        ("pigeon-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: pigeon\nVersion: 1.0\n"),
        ("pigeon-1.0.dist-info/entry_points.txt", "[holdfast.notifiers]\npigeon = pigeon:notify\n"),
    ):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)
    rules('[[notify]]\non = ["all"]\nto = "pigeon"\nloft = "north: "\n')
    assert "unknown notifier 'pigeon'" in holdfast("config", "show").stderr
    monkeypatch.setenv("PYTHONPATH", folder)
    assert holdfast("config", "show").returncode == 0
    post(home, {"to": "pigeon", "loft": "north: "})
    deliver(Deliveries(Home(home)))
    assert read(got) == "north: holdfast: fix needs a person: which branch?"
    assert "unknown notifier" in holdfast("config", "show", env={"HOLDFAST_PLUGINS": ""}).stderr


@pytest.mark.req("NOT-4")
def test_each_event_goes_to_its_own_target_and_a_gate_is_one_of_them(home: str) -> None:
    events = ("interrupted", "completed", "failed", "quality_gate")
    rules("\n".join(f'[[notify]]\non = ["{name}"]\nto = "command"\nargv = ["{name}"]\n' for name in events))

    def told() -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = []
        for name in outbox.names(Home(home)):
            notice = json.loads(read(os.path.join(Home(home).outbox, name)))
            found.append((notice["event"], notice["rule"]["argv"][0]))
            os.unlink(os.path.join(Home(home).outbox, name))
        return sorted(found)

    Task.shell("true").wait_for("completed")
    assert told() == [("completed", "completed")]
    Task.shell("exit 3").wait_for("failed")
    assert told() == [("failed", "failed")]
    task = Task.shell(kin.WAIT)
    task.agent_pid()
    task.ask("interrupt", "-m", "which branch?")
    task.wait_for("interrupted")
    assert told() == [("interrupted", "interrupted")]
    outside = Scenario().write(WORK, content="x\n").write("elsewhere.txt", content="x\n")
    Written({"scripted_impl": played("impl", before=outside)}).run(end="failed")
    assert told() == [("failed", "failed"), ("quality_gate", "quality_gate")]
