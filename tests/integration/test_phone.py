"""Notices on a phone: published to a server of ours that speaks ntfy's protocol, and answered by its buttons.

The keeper, its deliveries and its listener are real processes.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from holdfast import clock, ids
from holdfast.config import settings as user_settings
from holdfast.notify import replies, reply_key
from holdfast.notify.reply_requests import Requests
from holdfast.packet import inbox
from holdfast.store.layout import Home
from tests.support import keepers, loops, processes
from tests.support.ntfy import Ntfy, press, send, serving
from tests.support.packets import Written
from tests.support.tasks import Task, holdfast
from tests.support.tools import need
from tests.support.waiting import eventually

TOKEN = "tk_0123456789abcdefghijklmnopqrs"


pytestmark = pytest.mark.usefixtures("with_keeper")


@pytest.fixture
def server() -> Iterator[Ntfy]:
    with serving() as found:
        yield found


def rule(server: Ntfy, /, **options: Any) -> None:
    """The user's only rule: everything to the phone."""
    values = {"on": ["all"], "to": "ntfy", "server": server.url, "topic": "alerts", **options}
    loops.settings(
        "[[notify]]\n" + "".join(f"{name} = {json.dumps(each)}\n" for name, each in values.items())
    )


def packet(task_id: str = "it", *stages: str) -> Written:
    """A packet whose stages all need approval."""
    names = stages or ("scripted_verify",)
    return Written(
        dict.fromkeys(names),
        task_id=task_id,
        intent="review_only",
        group="review",
        approval=list(names),
        acceptance={"commands": ["true"]},
    )


def waiting(task: Task) -> Task:
    task.wait_for("interrupted")
    return task


def notice(server: Ntfy, count: int = 1, topic: str = "alerts") -> dict[str, Any]:
    """The newest notice with buttons, when there are so many of them."""
    found = eventually(
        lambda: (asked := [each for each in server.of(topic) if each.get("actions")])[count - 1 :] and asked,
        20,
        "the notice is published",
    )
    return found[-1]


def body(message: dict[str, Any], label: str) -> dict[str, Any]:
    (action,) = [each for each in message["actions"] if each["label"] == label]
    return json.loads(action["body"])


def reply_url(message: dict[str, Any]) -> str:
    return message["actions"][0]["url"]


def listeners(home: str) -> list[processes.Process]:
    return [p for p in processes.marked(f"HOLDFAST_HOME={home}") if "--replies" in p.command]


def ignored() -> dict[str, int]:
    """How many messages were ignored, by reason, from the audit."""
    lines = holdfast("audit", "--json").stdout
    counts: dict[str, int] = {}
    for line in lines.splitlines():
        if "reply.ignored" in line:
            for part in json.loads(line)["reason"].split(", "):
                count, _, why = part.partition(" ")
                counts[why] = counts.get(why, 0) + int(count)
    return counts


def settled(home: str) -> bool:
    return replies.names(Home(home)) == []


# ── what arrives ──


def test_approve_from_the_phone(home: str, server: Ntfy) -> None:
    rule(server, allow=["approve", "reject"], name="my phone", open_url="https://holdfast.example.org:8733")
    task = waiting(packet().start())
    message = notice(server)
    assert message["title"] == "holdfast: it"
    assert "scripted_verify waits for approval" in message["message"]
    assert (message["priority"], message["tags"]) == (4, ["raising_hand"])
    assert [action["label"] for action in message["actions"]] == ["Approve", "Reject", "Open"]
    assert message["actions"][2]["url"] == "https://holdfast.example.org:8733/task/it"
    assert message["click"] == "https://holdfast.example.org:8733/task/it"
    assert reply_url(message).rpartition("/")[2].startswith("holdfast-")
    assert set(body(message, "Approve")) == {"notice", "verb", "expires", "mac"}
    assert press(message, "Approve") == 200
    task.wait_for("completed", within_s=30)
    (given,) = task.events("approval.given")
    assert given["by"] == "a reply via my phone"
    (entry,) = [
        json.loads(line)
        for line in holdfast("audit", "--json").stdout.splitlines()
        if "request.approve" in line
    ]
    assert (entry["asker"], entry["task_id"]) == ("reply", "it")
    eventually(lambda: settled(home), what="nothing is awaited")
    eventually(lambda: not listeners(home), what="the listener ends")


def test_reject_ends_the_task_and_is_what_a_rule_allows_by_default(home: str, server: Ntfy) -> None:
    rule(server)
    task = waiting(packet().start())
    message = notice(server)
    assert [action["label"] for action in message["actions"]] == ["Reject"]
    press(message, "Reject")
    manifest = task.wait_for("killed", within_s=20)
    assert manifest["status_reason"].startswith("scripted_verify rejected by a reply via ntfy 127.0.0.1")


def test_a_rule_that_allows_nothing_has_no_buttons_and_no_listener(home: str, server: Ntfy) -> None:
    rule(server, allow=[])
    waiting(packet().start())
    (message,) = eventually(lambda: server.of("alerts"), 20, "the notice is published")
    assert "actions" not in message
    assert not os.path.exists(Home(home).replies)
    assert listeners(home) == []
    assert server.streams == 0
    holdfast("stop", "it")


def test_a_task_that_only_asks_has_no_buttons_but_open(home: str, server: Ntfy) -> None:
    rule(server, allow=["approve", "reject"], open_url="https://holdfast.example.org")
    task = Task.shell("echo which one > $INTERRUPT_FILE; sleep 300")
    task.wait_for("interrupted")
    (message,) = eventually(lambda: server.of("alerts"), 20, "the notice is published")
    assert [action["label"] for action in message["actions"]] == ["Open"]
    assert not os.path.exists(Home(home).replies)
    holdfast("stop", task.id)


def test_notify_test_publishes_and_shows_no_secret(server: Ntfy, monkeypatch: pytest.MonkeyPatch) -> None:
    server.token = TOKEN
    rule(server, token_env="NTFY_TOKEN", topic="secret-topic")
    refused = holdfast("notify", "test")
    assert (refused.returncode, "has no NTFY_TOKEN" in refused.stdout) == (1, True)
    for wrong in (TOKEN + "x", f"{TOKEN}\nX-Evil: 1", "€" + TOKEN):
        monkeypatch.setenv("NTFY_TOKEN", wrong)
        refused = holdfast("notify", "test")
        assert refused.returncode == 1
        assert TOKEN not in refused.stdout + refused.stderr
        assert "secret-topic" not in refused.stdout
    monkeypatch.setenv("NTFY_TOKEN", TOKEN)
    done = holdfast("notify", "test")
    assert (done.returncode, done.stdout.split()[0]) == (0, "ok"), done.stdout
    (message,) = server.of("secret-topic")
    assert message["message"] == "holdfast: this is a test: it works"
    for words in (("config", "show"), ("config", "show", "--json"), ("status", "--json")):
        assert TOKEN not in holdfast(*words).stdout


def test_a_token_is_in_no_command_line_log_file_or_notice(
    home: str, server: Ntfy, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.token, server.write_token = TOKEN, "tk_only_for_replies"
    monkeypatch.setenv("NTFY_TOKEN", TOKEN)
    monkeypatch.setenv("NTFY_REPLIES", server.write_token)
    rule(server, allow=["approve"], token_env="NTFY_TOKEN", reply_token_env="NTFY_REPLIES")
    task = waiting(packet().start())
    message = notice(server)
    assert TOKEN not in json.dumps(message)
    assert message["actions"][0]["headers"] == {"Authorization": "Bearer tk_only_for_replies"}
    (listener,) = eventually(lambda: listeners(home), what="the listener runs")
    assert TOKEN not in listener.command
    eventually(lambda: server.streams == 1, what="it listens")
    press(message, "Approve")
    task.wait_for("completed", within_s=30)
    for folder, _, names in os.walk(home):
        for name in names:
            if os.path.isfile(path := os.path.join(folder, name)):
                with open(path, "rb") as file:
                    assert TOKEN.encode() not in file.read(), path


def test_a_server_that_is_down_delays_the_notice(home: str) -> None:
    with serving() as gone:
        port = gone.server_address[1]
        rule(gone, allow=["approve"])
    task = waiting(packet().start())
    eventually(lambda: "ntfy 127" in holdfast("status").stdout, 20, "the failure is shown")
    with serving(port=port) as server:
        press(notice(server), "Approve")  # 5 s after the first try
        task.wait_for("completed", within_s=30)


def test_status_says_why_replies_cannot_be_read(home: str) -> None:
    with serving() as server:
        rule(server, allow=["approve"])
        task = waiting(packet().start())
        message = notice(server)
        eventually(lambda: listeners(home), 20, "somebody listens")
    said = f"replies on {server.url} cannot be read: "
    eventually(lambda: said in holdfast("status").stdout, 30, "the failure is shown")
    with serving(port=server.server_address[1]):
        eventually(lambda: said not in holdfast("status").stdout, 90, "it is gone")
        press(message, "Approve")
        task.wait_for("completed", within_s=30)


def test_a_long_hostile_text_fits(home: str, server: Ntfy) -> None:
    rule(server, allow=["approve", "reject"])
    text = "\x1b[31m\u202e" + 'é"\\' * 3000
    task = Task.shell(f"printf '%s' '{text}' > $INTERRUPT_FILE; sleep 300")
    task.wait_for("interrupted")
    (message,) = eventually(lambda: server.of("alerts"), 20, "the notice is published")
    assert "\x1b" not in message["message"]
    assert "\u202e" not in message["message"]
    assert len(message["message"].encode()) <= 2000
    holdfast("stop", task.id)


# ── who may answer ──


def test_nothing_but_a_valid_reply_is_obeyed(home: str, server: Ntfy) -> None:
    rule(server, allow=["reject"])
    task = waiting(packet().start())
    message = notice(server)
    url, good = reply_url(message), body(message, "Reject")
    key, awaited = replies.key(Home(home)), replies.read(Home(home), good["notice"])
    assert key is not None
    assert awaited is not None
    late = int(clock.now()) - 1
    soon = good["expires"]
    wrong: list[Any] = [
        {**good, "verb": "approve"},
        {**good, "expires": soon + 1},
        {**good, "mac": "0" * 64},
        {**good, "mac": "é" * 64},
        {**good, "mac": None},
        {**good, "notice": "../../../etc/passwd"},
        {**good, "notice": ids.new_ulid()},
        {**good, "expires": "soon"},
        {**good, "expires": True},
        {**good, "verb": ["reject"]},
        json.loads(replies.button(b"another home" * 3, awaited, "reject", soon)),
        json.loads(replies.button(key, awaited.evolve(task_id="other"), "reject", soon)),
        json.loads(replies.button(key, awaited.evolve(interrupt=2), "reject", soon)),
        json.loads(replies.button(key, awaited, "reject", late)),
        # Signed by the right key, but the rule does not allow it.
        json.loads(replies.button(key, awaited, "approve", soon)),
        [], "reject", 7, None, {"notice": {"a": 1}},
    ]  # fmt: skip
    for each in wrong:
        assert send(url, json.dumps(each).encode()) == 200
    for junk in (b"", b"reject", b"[" * 2000, b"\xff\xfe", b"9" * 3000):
        send(url, junk)
    eventually(lambda: server.streams == 1, what="the listener listens")
    topic = url.rpartition("/")[2]
    for line in (b"{\n", b"[]\n", b"\n", b"\x00\n", b"a" * 200_000 + b"\n", b'{"event":"message"}\n'):
        server.inject(topic, line)
    eventually(ignored, 20, "what was ignored is in the audit")
    keepers.stays(lambda: task.status() == "interrupted", 1.5, "nothing was obeyed")
    assert task.events("request.") == []
    assert press(message, "Reject") == 200
    task.wait_for("killed", within_s=20)
    eventually(lambda: not listeners(home), what="the listener ends")
    assert ignored() == {
        "are not replies": 22,
        "are for no notice that waits for a reply": 1,
        "have a wrong signature": 6,
        "came too late": 1,
        "are not allowed by a rule": 1,
    }
    log = [line for line in keepers.log(home) if "ignored messages" in line]
    assert len(log) <= 2
    assert not [line for line in keepers.log(home) if "Traceback" in line]


def test_a_reply_is_used_once(home: str, server: Ntfy) -> None:
    """Pressed again, by a second phone or by somebody who recorded it: also for the next approval."""
    rule(server, allow=["approve", "reject"])
    task = waiting(packet("it", "scripted_test_design", "scripted_verify").start())
    first = notice(server)
    for _ in range(3):
        press(first, "Approve")
    press(first, "Reject")
    second = notice(server, 2)
    for _ in range(3):
        press(first, "Approve")
    eventually(lambda: sum(ignored().values()) >= 3, 20, "the others were ignored")
    assert len(task.events("approval.given")) == 1
    keepers.stays(lambda: task.status() == "interrupted", 1.0, "the second approval is open")
    press(second, "Approve")
    task.wait_for("completed", within_s=30)
    assert [given["stage"] for given in task.events("approval.given")] == [
        "scripted_test_design",
        "scripted_verify",
    ]


def test_a_reply_for_an_earlier_question_is_refused_by_the_runner(home: str, server: Ntfy) -> None:
    """Answered at the desk between the check and the request."""
    rule(server)
    task = waiting(packet("it", "scripted_test_design", "scripted_verify").start())
    holdfast("approve", "it")
    eventually(lambda: len(task.events("approval.given")) == 1)
    eventually(lambda: len([move for move in task.moves() if move == "interrupted"]) == 2, 20)
    place = Home(home).packet("it")
    late = {"interrupt": 1, "stage": "scripted_test_design"}
    inbox.drop(place, "approve", late, by="a reply", asker="reply")
    inbox.drop(
        place, "approve", {"interrupt": 2, "stage": "scripted_test_design"}, by="a reply", asker="reply"
    )
    inbox.ring_keeper(Home(home))
    eventually(lambda: len(task.events("request.refused")) == 2, 20, "both are refused")
    assert task.events("request.refused")[0]["reason"].startswith("the answer is for an earlier question")
    assert len(task.events("approval.given")) == 1
    holdfast("stop", "it")


def test_a_rule_that_was_changed_takes_its_buttons_back(home: str, server: Ntfy) -> None:
    rule(server, allow=["approve"])
    task = waiting(packet().start())
    message = notice(server)
    eventually(lambda: server.streams == 1, what="the listener listens")  # none would start afterwards
    rule(server, allow=["reject"])
    press(message, "Approve")
    eventually(lambda: ignored().get("are not allowed by a rule") == 1, 20, "it is ignored")
    assert task.status() == "interrupted"
    holdfast("stop", "it")


def test_a_record_that_an_agent_changed_makes_the_reply_void(home: str, server: Ntfy) -> None:
    """The signature covers what the button answers: it cannot approve another task."""
    rule(server, allow=["approve"])
    one = waiting(packet("one").start())
    message = notice(server)
    rule_of = user_settings.notify_rules()[0]
    two = waiting(packet("other").start())
    second = notice(server, 2)
    name = body(message, "Approve")["notice"]
    path = Home(home).reply(name)
    with open(path, encoding="utf-8") as file:
        record = json.load(file)
    assert record["rule"] == rule_of
    with open(path, "w", encoding="utf-8") as file:
        json.dump({**record, "task_id": "other"}, file)
    press(message, "Approve")
    eventually(lambda: ignored().get("have a wrong signature") == 1, 20, "it is ignored")
    assert (one.status(), two.status()) == ("interrupted", "interrupted")
    press(second, "Approve")
    two.wait_for("completed", within_s=30)
    assert one.status() == "interrupted"
    holdfast("stop", "one")


@pytest.mark.parametrize("mode", [0o640, 0o604])
def test_a_key_that_others_can_read_is_refused(home: str, server: Ntfy, mode: int) -> None:
    assert reply_key.read(home, create=True) == reply_key.read(home, create=True)
    folder = os.path.expanduser("~/.config/holdfast/trust")
    (name,) = [name for name in os.listdir(folder) if name.endswith(".reply-key")]
    path = os.path.join(folder, name)
    assert os.stat(path).st_mode & 0o777 == 0o600
    os.chmod(path, mode)
    rule(server, allow=["approve"])
    waiting(packet().start())
    eventually(lambda: "only you can read" in holdfast("status", "--json").stdout, 20, "the failure is shown")
    assert server.of("alerts") == []
    holdfast("stop", "it")


# ── kills, lost connections, floods ──


def test_a_reply_while_nobody_listened_is_found_in_the_cache(home: str, server: Ntfy) -> None:
    rule(server, allow=["approve"])
    task = waiting(packet().start())
    message = notice(server)
    eventually(lambda: server.streams == 1, what="it listens")
    assert holdfast("down").returncode == 0
    eventually(lambda: not keepers.pid(home) and not listeners(home), what="keeper and listener are gone")
    press(message, "Approve")
    assert task.status() == "interrupted"
    assert holdfast("up").returncode == 0
    task.wait_for("completed", within_s=30)


@pytest.mark.parametrize("victim", ["keeper", "listener"])
def test_a_killed_process_is_replaced_and_loses_no_reply(home: str, server: Ntfy, victim: str) -> None:
    rule(server, allow=["approve"])
    holdfast("up")
    task = waiting(packet().start())
    message = notice(server)
    (listener,) = eventually(lambda: listeners(home), what="the listener runs")
    pid = keepers.pid(home) if victim == "keeper" else listener.pid
    os.kill(pid, signal.SIGKILL)
    press(message, "Approve")
    task.wait_for("completed", within_s=30)
    assert len(task.events("approval.given")) == 1
    eventually(lambda: not listeners(home), what="no listener is left")


def test_after_a_kill_the_same_request_is_sent_again(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a keeper, the request stays in the inbox: whatever is repeated, there is one."""
    monkeypatch.setenv("HOLDFAST_KEEPER", "off")
    task = waiting(packet().start())
    notice = {"id": ids.new_ulid(), "task_id": "it", "interrupt": 1, "approval": "scripted_verify"}
    awaited = replies.expect(Home(home), notice, {"to": "ntfy"}, int(clock.now()) + 600)
    assert awaited is not None
    taken = replies.take(Home(home), awaited.notice, "approve")
    assert taken is not None
    for _ in range(3):
        assert Requests(Home(home)).settle(awaited)
        # As if it had been killed before it noted that.
        with open(Home(home).reply_taken(awaited.notice), "w", encoding="utf-8") as file:
            json.dump(taken.to_json(), file)
    assert inbox.names(Home(home).packet("it")) == [f"{taken.request}.json"]
    holdfast("resume", "it")  # refused, but it brings a runner
    task.wait_for("completed", within_s=30)
    assert not Requests(Home(home)).settle(awaited)
    assert inbox.names(Home(home).packet("it")) == []
    assert replies.names(Home(home)) == []
    assert len(task.events("approval.given")) == 1


def test_a_full_disk_delays_a_reply(home: str, server: Ntfy, monkeypatch: pytest.MonkeyPatch, place) -> None:
    monkeypatch.setenv("HOLDFAST_FAILPOINT", "replies.taking=enospc")
    monkeypatch.setenv("HOLDFAST_FAILPOINT_ONCE", os.path.join(place.root, "once"))
    rule(server, allow=["approve"])
    task = waiting(packet().start())
    press(notice(server), "Approve")
    task.wait_for("completed", within_s=30)
    assert any("is left for later" in line for line in keepers.log(home))


def test_a_certificate_is_verified(place, monkeypatch: pytest.MonkeyPatch) -> None:
    need("openssl")
    cert, key = os.path.join(place.root, "cert.pem"), os.path.join(place.root, "key.pem")
    words = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=localhost",
    ]
    more = ["-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", cert]
    subprocess.run([*words, *more], check=True, capture_output=True)
    with serving(certificate=(cert, key)) as server:
        rule(server, server=f"https://localhost:{server.server_address[1]}")
        refused = holdfast("notify", "test")
        assert (refused.returncode, "certificate" in refused.stdout.lower()) == (1, True), refused.stdout
        monkeypatch.setenv("SSL_CERT_FILE", cert)
        done = holdfast("notify", "test")
        assert done.returncode == 0, done.stdout
        assert len(server.of("alerts")) == 1


def test_a_connection_that_is_lost_is_made_again(home: str, server: Ntfy) -> None:
    rule(server, allow=["approve"])
    task = waiting(packet().start())
    message = notice(server)
    eventually(lambda: server.streams == 1, what="it listens")
    server.failures = [503, 429]
    server.drop_streams()
    eventually(lambda: server.failures == [], 20, "it tried again")
    press(message, "Approve")
    task.wait_for("completed", within_s=30)
    assert [path for _, path, _ in server.requests if "since=all" in path]


def test_a_flood_costs_little_and_loses_no_reply(home: str, server: Ntfy) -> None:
    rule(server, allow=["approve"])
    task = waiting(packet().start())
    message = notice(server)
    topic = reply_url(message).rpartition("/")[2]
    for number in range(3000):
        server.add(topic, {"message": json.dumps({"notice": ids.new_ulid(), "number": number})})
    press(message, "Approve")
    task.wait_for("completed", within_s=40)
    eventually(lambda: not listeners(home), 20, "the listener ends")
    assert ignored() == {"are not replies": 3000}
    lines = [line for line in keepers.log(home) if "ignored messages" in line]
    assert 1 <= len(lines) <= 3, lines


def test_a_line_without_an_end_is_given_up(home: str, server: Ntfy) -> None:
    rule(server, allow=["approve"])
    task = waiting(packet().start())
    message = notice(server)
    topic = reply_url(message).rpartition("/")[2]
    eventually(lambda: server.streams == 1, what="it listens")
    for _ in range(20):
        server.inject(topic, b"a" * 1_000_000)
    eventually(lambda: len([1 for _, path, _ in server.requests if "/json" in path]) >= 2, 20, "it left")
    press(message, "Approve")
    task.wait_for("completed", within_s=30)


def test_a_reply_that_comes_before_the_interrupt_is_recorded_waits(
    home: str, server: Ntfy, monkeypatch: pytest.MonkeyPatch, place
) -> None:
    """The notice is posted before the move is journalled: a runner may be killed in between."""
    monkeypatch.setenv("HOLDFAST_FAILPOINT", "step.write_interrupt_file=stop")
    monkeypatch.setenv("HOLDFAST_FAILPOINT_ONCE", os.path.join(place.root, "once"))
    rule(server, allow=["approve"])
    task = packet().start()
    message = notice(server)
    press(message, "Approve")
    taken = eventually(
        lambda: replies.taken(Home(home), body(message, "Approve")["notice"]), 20, "it is taken"
    )
    assert not taken.is_sent
    assert task.status() != "interrupted"
    runner = eventually(lambda: [
        p for p in processes.marked(f"HOLDFAST_HOME={home}") if "holdfast" in p.command and _is_stopped(p.pid)
    ])  # fmt: skip
    for each in runner:
        os.kill(each.pid, signal.SIGKILL)
    task.wait_for("completed", within_s=40)
    assert len(task.events("approval.given")) == 1


def _is_stopped(pid: int) -> bool:
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        return file.read().rpartition(")")[2].split()[0] == "T"
