"""The keeper runs only packets that a command of this home created, or that a person has named."""

from __future__ import annotations

import json
import os
import shutil
import sys

import pytest

from holdfast.keeper import loop_state
from holdfast.model import events as ev
from holdfast.store import lock as locks
from holdfast.store.journal import encode_line
from holdfast.store.layout import Home
from tests.support.tasks import Task, holdfast
from tests.support.waiting import eventually


def plant(home: str, status: str, *, request: str = "", name: str = "evil") -> str:
    """Write a packet as an agent can, with another task as a model. Returns the file that its command
    makes."""
    done = holdfast("submit", "--id", "model", "--", "true")
    assert done.returncode == 0, done.stderr
    model = os.path.join(home, "tasks", "model")
    packet = os.path.join(home, "tasks", name)
    left_out = shutil.ignore_patterns("bell", "manifest.json", "runner.lock")
    shutil.copytree(model, packet, ignore=left_out)
    proof = os.path.join(os.path.dirname(home), f"ran-{name}")
    with open(os.path.join(model, "events.jsonl"), encoding="utf-8") as file:
        first = json.loads(file.readline().replace('"model"', f'"{name}"'))
    first["status"] = status
    first["spec"]["command"] = ["touch", proof]
    text = json.dumps(first) + "\n"
    if status == "interrupted":
        first["status"] = "queued"
        moved = ev.TaskMoved(old="queued", new="interrupted", reason="a question", interrupt="a question")
        text = json.dumps(first) + "\n" + encode_line(moved, first["at"]).decode()
    with open(os.path.join(packet, "events.jsonl"), "w", encoding="utf-8") as file:
        file.write(text)
    if request:
        wish = {"schema": "holdfast.request/1", "id": "01K00000000000000000000000", "verb": request}
        wish |= {"args": {}, "at": first["at"], "by": "you"}
        path = os.path.join(packet, "inbox", "01K00000000000000000000000.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(wish, file)
    return proof


def settle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a keeper look at everything: a task that was created later has ended."""
    monkeypatch.delenv("HOLDFAST_KEEPER", raising=False)
    assert holdfast("up").returncode == 0
    later = holdfast("submit", "--id", "later", "--", "true")
    assert later.returncode == 0, later.stderr
    done = holdfast("wait", "later", "model", "--timeout", "40s")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("status", "request_verb"),
    [("queued", ""), ("queued", "start"), ("spawning", ""), ("interrupted", "resume"), ("running", "retry")],
)
def test_a_planted_packet_is_not_run(
    home: str, status: str, request_verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    proof = plant(home, status, request=request_verb)
    settle(monkeypatch)
    shown = holdfast("status").stdout
    assert "evil was not created by a command" in shown
    # Also after the queue is asked, and by a keeper that starts with it.
    holdfast("queue", "ls")
    holdfast("down", "--now")
    holdfast("up")
    holdfast("run", "--id", "last", "--", "true")
    assert not os.path.exists(proof)
    assert not Task(os.path.join(home, "tasks", "evil")).events("attempt.opened")
    assert holdfast("rm", "--force", "evil").returncode == 0
    assert not os.path.exists(proof)


@pytest.mark.parametrize("verb", ["stop", "interrupt", "down", "rm"])
def test_a_command_about_a_planted_packet_does_not_run_it(home: str, verb: str) -> None:
    """It starts a runner, which finds more requests than it answers at once."""
    proof = plant(home, "spawning")
    packet = os.path.join(home, "tasks", "evil")
    for number in range(12):
        name = f"01K000000000000000000000{number:02}"
        wish = {"schema": "holdfast.request/1", "id": name, "verb": "resume", "args": {}}
        with open(os.path.join(packet, "inbox", f"{name}.json"), "w", encoding="utf-8") as file:
            json.dump({**wish, "at": "2026-01-01T00:00:00.000Z", "by": "you"}, file)
    words = {"down": ("down", "--now"), "rm": ("rm", "--force", "evil")}
    holdfast(*words.get(verb, (verb, "evil")))
    holdfast("rm", "--force", "evil")
    assert not os.path.exists(proof)
    assert not os.path.exists(packet)


def test_a_planted_schedule_does_not_run(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    proof = os.path.join(os.path.dirname(home), "ran")
    done = holdfast("submit", "--every", "1h", "--id", "model", "--", "true")
    assert done.returncode == 0, done.stderr
    with open(os.path.join(home, "schedules", "model.json"), encoding="utf-8") as file:
        planted = json.loads(file.read().replace('"model"', '"evil"'))
    planted |= {"created_at": "2026-01-01T00:00:00.000Z", "every": "60s"}
    planted["spec"]["command"] = ["touch", proof]
    with open(os.path.join(home, "schedules", "evil.json"), "w", encoding="utf-8") as file:
        json.dump(planted, file)
    # One of a command, changed.
    with open(os.path.join(home, "schedules", "model.json"), "w", encoding="utf-8") as file:
        json.dump({**planted, "name": "model"}, file)
    monkeypatch.delenv("HOLDFAST_KEEPER", raising=False)
    assert holdfast("up").returncode == 0
    assert holdfast("submit", "--id", "later", "--", "true").returncode == 0
    assert holdfast("wait", "later", "--timeout", "40s").returncode == 0
    assert os.listdir(os.path.join(home, "tasks")) == ["later"]
    assert not os.path.exists(proof)


@pytest.mark.parametrize("status", ["queued", "spawning", "interrupted"])
def test_a_person_may_adopt_a_packet(home: str, status: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A packet from a backup, for example."""
    proof = plant(home, status)
    settle(monkeypatch)
    for words in (("--all",), ("evil",)):
        done = holdfast("resume", *words)
        assert not os.path.exists(proof), done.stderr
    assert done.returncode == 3
    assert proof in done.stderr, "it does not say what it would run"
    done = holdfast("resume", "--adopt", "evil")
    assert done.returncode == 0, done.stderr
    eventually(lambda: os.path.exists(proof), within_s=30, what="it has run")
    Task(os.path.join(home, "tasks", "evil")).wait_for("completed", within_s=30)
    assert "not created" not in holdfast("status").stdout


@pytest.mark.parametrize("status", ["queued", "spawning"])
def test_removing_the_records_admits_no_planted_packet(
    home: str, status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither while the directory is missing, nor when the next command makes it again."""
    proof = plant(home, status)
    shutil.rmtree(Home(home).admitted)
    monkeypatch.delenv("HOLDFAST_KEEPER", raising=False)
    assert holdfast("up").returncode == 0
    assert holdfast("queue", "ls").returncode == 0
    assert "evil was not created by a command" in holdfast("status").stdout
    assert holdfast("run", "--id", "later", "--", "true").returncode == 0
    assert holdfast("submit", "--id", "last", "--", "true").returncode == 0
    done = holdfast("wait", "last", "--timeout", "40s")
    assert done.returncode == 0, done.stderr
    assert not os.path.exists(proof)
    # A genuine task is in doubt, too, until a person names it: one command takes several.
    done = holdfast("resume", "--adopt", "model", "evil")
    assert done.returncode == 0, done.stderr
    eventually(lambda: os.path.exists(proof), within_s=30, what="it has run")
    done = holdfast("wait", "model", "evil", "--timeout", "40s")
    assert done.returncode == 0, done.stderr


def test_removing_the_records_admits_no_planted_schedule(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    proof = os.path.join(os.path.dirname(home), "ran")
    done = holdfast("submit", "--every", "1h", "--id", "model", "--", "touch", proof)
    assert done.returncode == 0, done.stderr
    with open(os.path.join(home, "schedules", "model.json"), encoding="utf-8") as file:
        planted = {**json.load(file), "created_at": "2026-01-01T00:00:00.000Z", "every": "60s"}
    with open(os.path.join(home, "schedules", "model.json"), "w", encoding="utf-8") as file:
        json.dump(planted, file)
    shutil.rmtree(Home(home).admitted)
    monkeypatch.delenv("HOLDFAST_KEEPER", raising=False)
    assert holdfast("up").returncode == 0
    for name in ("later", "last"):
        assert holdfast("submit", "--id", name, "--", "true").returncode == 0
        assert holdfast("wait", name, "--timeout", "40s").returncode == 0
    assert not os.path.exists(proof)


def test_a_task_whose_record_was_removed_while_it_runs_completes(home: str) -> None:
    """Its runner knows it."""
    begun, going = os.path.join(home, "begun"), os.path.join(home, "going")
    script = f"touch {begun}; until test -e {going}; do sleep 0.1; done"
    task = Task.start("--id", "it", "--", "sh", "-c", script)
    eventually(lambda: os.path.exists(begun), within_s=30, what="the agent runs")
    shutil.rmtree(Home(home).admitted)
    with open(going, "w", encoding="utf-8"):
        pass
    task.wait_for("completed")


def test_an_id_can_be_used_again(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOLDFAST_KEEPER", raising=False)
    for _ in range(2):
        assert holdfast("submit", "--id", "it", "--", "true").returncode == 0
        assert holdfast("wait", "it", "--timeout", "40s").returncode == 0
        assert holdfast("rm", "it").returncode == 0
        assert os.listdir(Home(home).admitted) == []


def test_a_retry_that_no_command_sent_brings_no_environment(home: str) -> None:
    """Its PATH would choose the programs of the next run."""
    root = os.path.dirname(home)
    programs, proof = os.path.join(root, "programs"), os.path.join(root, "ran")
    os.mkdir(programs)
    with open(os.path.join(programs, "date"), "w", encoding="utf-8") as file:
        file.write(f"#!/bin/sh\ntouch {proof}\n")
    os.chmod(os.path.join(programs, "date"), 0o755)
    task = Task.start("--id", "it", "--", "date")
    task.wait_for("completed")
    env = {"PATH": f"{programs}:{os.environ['PATH']}", "HOLDFAST_HOME": home}
    wish = {
        "schema": "holdfast.request/1", "id": "01K00000000000000000000000", "verb": "retry", "by": "you",
        "asker": "person", "at": task.events("task.created")[0]["at"],
        "args": {"env": {"schema": "holdfast.env/1", "env": env}, "from": "command_run"},
    }  # fmt: skip
    with open(task.path("inbox", "01K00000000000000000000000.json"), "w", encoding="utf-8") as file:
        json.dump(wish, file)
    stopped = task.ask("stop")  # a person's command starts a runner, which sees the request
    assert stopped.returncode == 0, stopped.stderr
    refused = task.wait_for_event("request.refused")
    assert "no command of holdfast has sent this request" in refused["reason"]
    assert not os.path.exists(proof)
    assert task.ask("retry", "--from", "command_run").returncode == 0, "a person's is accepted"
    task.wait_for("completed")
    assert not os.path.exists(proof)


@pytest.mark.parametrize("records", ["", "seals", "seals admitted"])
@pytest.mark.parametrize("verb", ["resume", "retry", "approve"])
def test_a_task_that_was_changed_without_a_runner_is_not_run_as_another_one(
    home: str, verb: str, records: str
) -> None:
    """A person answers the question of a task: what it runs was changed since. (No agent can remove records;
    a backup may not have them.)"""
    proof = os.path.join(os.path.dirname(home), "ran")
    script = "echo why > $INTERRUPT_FILE; sleep 60" if verb != "retry" else "exit 1"
    task = Task.start("--id", "it", "--", "sh", "-c", script)
    task.wait_for("interrupted", "failed", within_s=30)
    eventually(lambda: not locks.is_held(task.path("runner.lock")), 20, "its runner has left")
    lines = task.read("events.jsonl").decode().splitlines()
    first = json.loads(lines[0])
    first["spec"]["command"] = ["touch", proof]
    with open(task.path("events.jsonl"), "w", encoding="utf-8") as file:
        file.write("\n".join((json.dumps(first), *lines[1:], "")))
    for name in records.split():
        os.unlink(os.path.join(os.path.dirname(Home(home).seals), name, "it"))
    done = holdfast(verb, "it")
    assert done.returncode == 3
    if "admitted" in records:
        assert f"it would run the command touch {proof}" in done.stderr
        assert "resume --adopt it" in done.stderr
    else:
        assert "was changed" in done.stderr or "in doubt" in done.stderr
    assert not task.events("attempt.opened")[1:]
    assert not os.path.exists(proof)


_MCP = r"""
import json, subprocess, sys
server = subprocess.Popen([sys.executable, "-m", "holdfast", "mcp"], stdin=-1, stdout=-1)
def ask(number, method, params):
    line = json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
    server.stdin.write(line.encode() + b"\n")
    server.stdin.flush()
    return json.loads(server.stdout.readline())
about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
ask(0, "initialize", about)
for number, verb in enumerate(("resume", "approve", "answer"), 1):
    call = {"name": "say", "arguments": {"task": "evil", "verb": verb, "message": "go on"}}
    said = ask(number, "tools/call", call)["result"]
    assert said.get("isError") and "an agent may not" in said["content"][0]["text"], said
server.stdin.close()
server.wait()
"""


@pytest.mark.parametrize("status", ["queued", "spawning", "interrupted"])
def test_an_agent_adopts_no_packet(home: str, status: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that writes files and may call a tool must not get a command, or `full` permissions, by both. (The
    request was refused, but the packet was a task of the home from then on.)"""
    proof = plant(home, status)
    script = os.path.join(os.path.dirname(home), "mcp.py")
    with open(script, "w", encoding="utf-8") as file:
        file.write(_MCP)
    verbs = ("resume evil", "approve evil", "retry evil", "resume evil model")
    calls = "".join(f"{sys.executable} -m holdfast {verb} || echo refused; " for verb in verbs)
    agent = Task.shell(f"{calls} {sys.executable} {script}")
    agent.wait_for("completed", within_s=60)
    assert agent.log().count("refused") == len(verbs)
    assert agent.log().count("an agent may not") == len(verbs)
    settle(monkeypatch)
    assert "evil was not created by a command" in holdfast("status").stdout
    assert not os.path.exists(proof)
    assert not os.path.exists(Home(home).admission_of("evil"))


@pytest.mark.parametrize(
    "fields",
    [{"spec": []}, {"spec": {"agent": {}}}, {"env": 5}, {"every": 5}, {"last_at": 5}, {"prompt": {}}],
    ids=str,
)
def test_a_schedule_of_wrong_types_breaks_nothing(home: str, fields: dict[str, object]) -> None:
    assert holdfast("submit", "--every", "1h", "--id", "model", "--", "true").returncode == 0
    with open(os.path.join(home, "schedules", "model.json"), encoding="utf-8") as file:
        planted = json.load(file) | {"name": "odd"} | fields
    with open(os.path.join(home, "schedules", "odd.json"), "w", encoding="utf-8") as file:
        json.dump(planted, file)
    for words in (("queue", "ls"), ("queue", "ls", "--json"), ("status",)):
        done = holdfast(*words)
        assert done.returncode == 0, done.stderr
    assert "model" in holdfast("queue", "ls").stdout


def test_options_of_up_are_those_that_it_has(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file in its place lifts no budget, and archives no task."""
    monkeypatch.delenv("HOLDFAST_KEEPER", raising=False)
    assert holdfast("up", "--slots", "3").returncode == 0
    with open(os.path.join(home, "up"), encoding="utf-8") as file:
        options = json.load(file)
    options["loop"] |= {"archive_after_s": 0, "budget_usd": 1000.0, "max_failures": 1000}
    with open(os.path.join(home, "up"), "w", encoding="utf-8") as file:
        json.dump(options, file)
    for name in ("one", "two"):
        assert holdfast("run", "-q", "--id", name, "--", "true").returncode == 0
    spec = loop_state.read_spec(Home(home))
    assert (spec.slots, spec.archive_after_s, spec.budget_usd, spec.max_failures) == (3, None, None, 5)
    assert holdfast("down", "--now").returncode == 0
    assert sorted(os.listdir(os.path.join(home, "tasks"))) == ["one", "two"]


def test_a_retry_is_not_repeated_by_a_copy_of_it(home: str) -> None:
    """An agent knows its environment, and so the arguments of the retry that started it."""
    root = os.path.dirname(home)
    script = f"date >> {root}/ran; cp $HOLDFAST_PACKET/env.json {root}/seen; exit 1"
    task = Task.shell(script, "--id", "it")
    task.wait_for("failed")
    assert task.ask("retry").returncode == 0
    task.wait_for_event("run.opened")
    assert holdfast("wait", "it", "--timeout", "40s").returncode == 1
    with open(os.path.join(root, "seen"), encoding="utf-8") as file:
        args = {"env": json.load(file)}
    name = "7ZZZZZZZZZZZZZZZZZZZZZZZZZ"
    copy = {
        "schema": "holdfast.request/1", "id": name, "verb": "retry", "args": args, "by": "you",
        "asker": "person", "at": "2026-01-01T00:00:00.000Z",
    }  # fmt: skip
    with open(task.path("inbox", f"{name}.json"), "w", encoding="utf-8") as file:
        json.dump(copy, file)
    task.start_runner()
    eventually(lambda: os.listdir(task.path("inbox")) == [], 20, "a runner has answered it")
    assert len(task.events("run.opened")) == 1
    with open(os.path.join(root, "ran"), encoding="utf-8") as file:
        assert len(file.readlines()) == 2
