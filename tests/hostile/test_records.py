"""What vouches for a task is beside the user's settings: what an agent writes below the home vouches for
nothing. Copied homes have no records, renamed ones keep theirs."""

from __future__ import annotations

import concurrent.futures
import hashlib
import json
import os
import shutil
import stat
import subprocess
import sys

import pytest

from holdfast.sandbox.builder import SandboxBuilder
from holdfast.store import lock as locks
from holdfast.store import seals
from holdfast.store.digest import running
from holdfast.store.layout import Home, Packet
from tests.hostile.test_forged_queued import append, genuine_end, queued
from tests.hostile.test_planted_packets import plant, settle
from tests.integration.cli.test_read_only import without_power
from tests.support import fanouts, kin
from tests.support.loops import up
from tests.support.repos import Repo
from tests.support.tasks import Task, holdfast, workspace
from tests.support.terminal import Terminal
from tests.support.waiting import eventually

EAGER = ("--base-interval", "0.2s", "--stale", "none")


def forge_records(task: Task, folder: str | None = None) -> None:
    """The record and the seals of a journal as it is now, where an agent can write them: below the home."""
    below = folder or os.path.dirname(os.path.dirname(task.packet))
    data = task.read("events.jsonl")
    for name in ("admitted", "seals"):
        os.makedirs(os.path.join(below, name), exist_ok=True)
    with open(os.path.join(below, "admitted", task.id), "a", encoding="ascii") as file:
        file.write(hashlib.sha256(data.partition(b"\n")[0] + b"\n").hexdigest() + "\n")
    path = os.path.join(below, "seals", task.id)
    if os.path.exists(path):
        os.unlink(path)
    own, digest = seals.Seals(path), running()
    digest.update(data)
    own.finish(len(data), digest.digest())
    own.close()


def left(task: Task) -> Task:
    eventually(lambda: not locks.is_held(task.path("runner.lock")), 20, "its runner has left")
    return task


@pytest.mark.parametrize("status", ["queued", "spawning", "interrupted"])
def test_a_packet_planted_with_its_records_is_not_run(
    home: str, status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    proof = plant(home, status, request="resume" if status == "interrupted" else "")
    forge_records(Task(os.path.join(home, "tasks", "evil")))
    settle(monkeypatch)
    holdfast("queue", "ls")
    assert "evil was not created by a command" in " ".join(holdfast("status").stdout.split())
    assert not os.path.exists(proof)


def test_a_queued_task_is_not_completed_with_forged_seals(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = genuine_end()
    task = queued(home, "false")
    append(task, lines)
    forge_records(task)
    monkeypatch.delenv("HOLDFAST_KEEPER", raising=False)
    assert holdfast("queue", "resume").returncode == 0
    assert holdfast("up").returncode == 0
    done = holdfast("wait", task.id, "--timeout", "40s")
    assert done.returncode == 4, done.stdout + done.stderr
    assert "journal" in task.wait_for("interrupted")["interrupt"]["reason"]


def test_an_interrupted_task_gets_no_forged_answer(home: str) -> None:
    """The lines move it to `spawning`."""
    root = os.path.dirname(home)
    proof = os.path.join(root, "ran")
    script = (
        f"test -e {root}/asked && touch {proof}; touch {root}/asked; echo why > $INTERRUPT_FILE; sleep 60"
    )
    task = Task.shell(script)
    task.wait_for("interrupted", within_s=30)
    left(task)
    head = {"id": "01K00000000000000000000000", "at": task.events()[-1]["at"], "type": "task.moved"}
    moved = {**head, "old": "interrupted", "new": "spawning", "reason": "go on"}
    append(task, json.dumps(moved, separators=(",", ":")).encode() + b"\n")
    os.unlink(task.path("manifest.json"))
    os.unlink(task.path("state", "interrupt-request.txt"))
    forge_records(task)
    kin.run_runner(task)
    assert task.wait_for("interrupted")["status"] == "interrupted"
    assert not os.path.exists(proof)


@pytest.mark.parametrize("way", ["forged", "removed"])
def test_the_end_of_an_ended_task_is_that_of_its_runner(home: str, way: str) -> None:
    task = Task.start("--id", "it", "--", "false")
    task.wait_for("failed")
    left(task)
    text = task.read("events.jsonl").decode()
    with open(task.path("events.jsonl"), "w", encoding="utf-8") as file:
        file.write(text.replace('"new":"failed"', '"new":"completed"'))
    for name in ("manifest.json", os.path.join("done", "_task.done")):
        shown = task.read(name).decode()
        with open(task.path(name), "w", encoding="utf-8") as file:
            file.write(shown.replace('"failed"', '"completed"'))
    if way == "forged":
        forge_records(task)
    else:
        shutil.rmtree(os.path.join(home, "seals"), ignore_errors=True)
    os.unlink(os.path.join(home, "index.db")) if os.path.exists(os.path.join(home, "index.db")) else None
    assert holdfast("wait", "it", "--timeout", "2s").returncode != 0
    shown = holdfast("show", "it", "--json")
    assert '"completed"' not in shown.stdout, shown.stdout
    assert "completed" not in holdfast("ls", "--all").stdout.split()


def test_an_ended_task_does_not_run_again_from_an_old_copy_of_its_journal(home: str) -> None:
    """Its agent has kept both files."""
    runs = os.path.join(workspace(), "runs")
    task = Task.shell(
        f'echo >> {runs}; cp "$HOLDFAST_PACKET/env.json" env; cp "$HOLDFAST_PACKET/events.jsonl" old', *EAGER
    )
    task.wait_for("completed")
    left(task)
    os.rename(os.path.join(workspace(), "env"), task.path("env.json"))
    shutil.copyfile(os.path.join(workspace(), "old"), task.path("events.jsonl"))
    os.unlink(task.path("done", "_task.done"))
    os.unlink(task.path("manifest.json"))
    forge_records(task)
    kin.run_runner(task)
    with open(runs, encoding="utf-8") as file:
        assert file.read() == "\n"
    assert "another process" in task.wait_for("interrupted")["interrupt"]["reason"]


def test_a_packet_that_is_moved_to_other_records_does_not_continue(home: str) -> None:
    """While its runner lives: it notices the move, and starts over there."""
    proof = os.path.join(workspace(), "ran")
    task = Task.shell(kin.WAIT + f"touch {proof}")
    agent = task.agent_pid()
    other = os.path.join(workspace(), "other")
    os.makedirs(os.path.join(other, "tasks"))
    forge_records(task, other)
    for name in ("admitted", "seals"):
        if os.path.isdir(os.path.join(home, name)):  # as genuine as they can be
            os.unlink(os.path.join(other, name, task.id))
            os.link(os.path.join(home, name, task.id), os.path.join(other, name, task.id))
    os.rename(task.packet, os.path.join(other, "tasks", task.id))
    moved = Task(os.path.join(other, "tasks", task.id))
    try:
        moved.wait_for("interrupted", within_s=40)
        eventually(lambda: not os.path.exists(f"/proc/{agent}"), what="the agent is ended")
        assert not os.path.exists(proof)
    finally:
        holdfast("stop", "--now", task.id, env={"HOLDFAST_HOME": other})


def test_without_its_environment_a_task_asks(home: str) -> None:
    """Its agent has removed env.json: the next attempt would run without a PATH, and without its secrets."""
    root = os.path.dirname(home)
    proof = os.path.join(root, "ran")
    script = f'test -e {root}/asked && touch {proof}; touch {root}/asked; rm "$HOLDFAST_PACKET/env.json"; '
    task = Task.shell(script + "echo why > $INTERRUPT_FILE; sleep 60")
    task.wait_for("interrupted", within_s=30)
    left(task)
    assert holdfast("resume", task.id).returncode == 0
    manifest = eventually(
        lambda: (
            (found := task.manifest())["status"] == "interrupted"
            and "env.json" in found["interrupt"]["reason"]
            and found
        ),
        what="it asks",
    )
    assert "env.json is missing" in manifest["interrupt"]["reason"]
    assert not os.path.exists(proof)
    # A retry captures it again.
    assert holdfast("stop", task.id).returncode == 0
    task.wait_for("killed")
    assert holdfast("retry", task.id).returncode == 0
    eventually(lambda: os.path.exists(proof), what="it runs")
    holdfast("stop", "--now", task.id)


# ── copied and renamed homes ──


def copy_of(home: str) -> dict[str, str]:
    subprocess.run(["cp", "-a", home, home + "-copy"], check=True, timeout=30)
    return {"HOLDFAST_HOME": home + "-copy"}


def test_a_copy_runs_nothing_and_reaches_no_record_of_the_original(
    home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Queued and ended tasks; whatever is done in the copy."""
    proof = os.path.join(os.path.dirname(home), "ran")
    ended = Task.start("--id", "ended", "--", "true")
    ended.wait_for("completed")
    queued(home, "sh", "-c", f"echo >> {proof}")
    away = copy_of(home)
    monkeypatch.delenv("HOLDFAST_KEEPER", raising=False)
    for words in (("up",), ("queue", "resume"), ("submit", "--id", "own", "--", "true")):
        assert holdfast(*words, env=away).returncode == 0
    assert holdfast("wait", "own", "--timeout", "40s", env=away).returncode == 0
    assert "'holdfast resume --adopt it'" in " ".join(holdfast("status", env=away).stdout.split())
    assert not os.path.exists(proof)
    assert json.loads(holdfast("show", "ended", "--json", env=away).stdout)["status"] == "completed"
    assert holdfast("archive", "ended", env=away).returncode == 0
    assert holdfast("rm", "ended", env=away).returncode == 0
    assert holdfast("rm", "--force", "it", env=away).returncode == 0
    holdfast("down", "--now", env=away)
    assert holdfast("queue", "resume").returncode == 0
    assert holdfast("up").returncode == 0
    assert holdfast("wait", "it", "ended", "--timeout", "40s").returncode == 0
    assert os.path.getsize(proof) == 1
    for name in ("it", "ended"):
        assert os.path.exists(Home(home).seals_of(name))
        assert not Task(os.path.join(home, "tasks", name)).events("journal.forged")


def test_a_renamed_home_keeps_its_records(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if many commands look at once; a copy at its old path has none."""
    proof = os.path.join(os.path.dirname(home), "ran")
    queued(home, "sh", "-c", f"echo >> {proof}")
    moved = home + "-moved"
    os.rename(home, moved)
    subprocess.run(["cp", "-a", moved, home], check=True, timeout=30)
    there = {"HOLDFAST_HOME": moved}
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        looks = list(pool.map(lambda _: holdfast("status", env=there), range(6)))
    assert not any("not created" in look.stdout for look in looks)
    assert "not created" in holdfast("status").stdout
    monkeypatch.delenv("HOLDFAST_KEEPER", raising=False)
    assert holdfast("queue", "resume", env=there).returncode == 0
    assert holdfast("up", env=there).returncode == 0
    assert holdfast("wait", "it", "--timeout", "40s", env=there).returncode == 0
    assert os.path.getsize(proof) == 1


def test_records_that_others_can_write_count_as_missing(home: str) -> None:
    task = queued(home, "true")
    place = os.path.dirname(Home(home).seals)
    assert stat.S_IMODE(os.stat(place).st_mode) == 0o700
    os.chmod(place, 0o777)
    assert "not created" in holdfast("status").stdout
    done = holdfast("run", "--", "true")
    assert done.returncode != 0
    assert "other users can write" in done.stderr
    os.chmod(place, 0o700)
    assert "not created" not in holdfast("status").stdout
    assert holdfast("run", "--", "true").returncode == 0
    assert task.status() == "queued"


# ── settings ──


def test_without_a_place_for_settings_the_records_are_in_the_home(
    home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody can make a directory in /sys, not even root."""
    monkeypatch.setenv("XDG_CONFIG_HOME", "/sys")
    monkeypatch.delenv("HOLDFAST_KEEPER", raising=False)
    assert holdfast("ls").returncode == 0  # looks before there is a record
    for name in ("one", "two"):
        assert holdfast("submit", "--id", name, "--", "true").returncode == 0
        done = holdfast("wait", name, "--timeout", "40s")
        assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(os.listdir(os.path.join(home, "admitted"))) == ["one", "two"]
    assert "records in the home" in " ".join(holdfast("doctor").stdout.split())
    assert holdfast("rm", "one").returncode == 0
    assert os.listdir(os.path.join(home, "admitted")) == ["two"]


def test_planting_records_in_the_home_does_not_move_them_there(home: str) -> None:
    os.makedirs(os.path.join(home, "admitted"))
    os.makedirs(os.path.join(home, "seals"))
    Task.start("--id", "it", "--", "true").wait_for("completed")
    assert os.listdir(os.path.join(home, "admitted")) == []
    assert not Home(home).seals.startswith(home + "/")


def test_a_keeper_with_other_settings_says_so(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = {"XDG_CONFIG_HOME": os.path.join(os.path.dirname(home), "elsewhere")}
    queued(home, "true")
    monkeypatch.delenv("HOLDFAST_KEEPER", raising=False)
    assert holdfast("queue", "resume", env=elsewhere).returncode == 0
    assert holdfast("up", env=elsewhere).returncode == 0
    shown = " ".join(holdfast("status", env=elsewhere).stdout.split())
    assert "XDG_CONFIG_HOME" in shown
    refused = holdfast("resume", "it", env=elsewhere)
    assert refused.returncode == 3
    assert "XDG_CONFIG_HOME" in refused.stderr
    assert holdfast("down", "--now").returncode == 0
    assert holdfast("up").returncode == 0
    assert holdfast("wait", "it", "--timeout", "40s").returncode == 0


def test_a_command_with_other_settings_than_the_keeper_is_warned(
    home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It cannot run what they create; and what it wrote about that is only text."""
    elsewhere = {"XDG_CONFIG_HOME": os.path.join(os.path.dirname(home), "elsewhere")}
    monkeypatch.delenv("HOLDFAST_KEEPER", raising=False)
    assert holdfast("up").returncode == 0
    own = holdfast("submit", "--id", "own", "--", "true")
    assert "settings" not in own.stderr
    assert holdfast("wait", "own", "--timeout", "40s").returncode == 0
    submitted = holdfast("submit", "--id", "other", "--", "true", env=elsewhere)
    run = holdfast("run", "--", "true", env=elsewhere)
    assert run.returncode == 0
    for shown in (submitted.stderr, run.stderr, holdfast("doctor", env=elsewhere).stdout):
        assert f"{elsewhere['XDG_CONFIG_HOME']}/holdfast/trust" in "".join(shown.split())
        assert "'holdfast service install'" in " ".join(shown.split())
    for words in (("ls",), ("queue", "ls"), ("show", "other")):
        done = holdfast(*words, env=elsewhere)
        assert "other settings" in " ".join((done.stdout + done.stderr).split()), words
    # For the keeper, it is a task from elsewhere: nothing offers to remove it.
    assert "holdfast resume --adopt other" in " ".join(holdfast("show", "other").stdout.split())
    eventually(
        lambda: "--adopt other" in " ".join(holdfast("ls").stderr.split()), what="the queue leaves it out"
    )
    assert "rm --force" not in holdfast("status").stdout


def test_after_the_settings_were_lost_a_person_adopts_all(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with a container that is made again, whose home is on a volume."""
    proof = os.path.join(os.path.dirname(home), "ran")
    queued(home, "sh", "-c", f"echo >> {proof}")
    Task.start("--id", "ended", "--", "true").wait_for("completed")
    monkeypatch.setenv("XDG_CONFIG_HOME", os.path.join(os.path.dirname(home), "elsewhere"))
    checked = " ".join(holdfast("doctor").stdout.split())
    assert "no record of 1 unfinished task" in checked
    assert "'holdfast resume --adopt --all'" in checked
    monkeypatch.delenv("HOLDFAST_KEEPER", raising=False)
    unasked = holdfast("resume", "--adopt", "--all")
    assert unasked.returncode == 3
    assert "it would run the command sh -c" in unasked.stderr
    assert "holdfast resume --adopt it" in unasked.stderr
    for answer in ("n", "y"):
        person = Terminal("resume", "--adopt", "--all")
        person.read_until("Adopt 1 task?")
        person.press(f"{answer}\n")
        assert person.finish() == 0
        assert ("no record of" in " ".join(holdfast("doctor").stdout.split())) is (answer == "n")
    assert holdfast("queue", "resume").returncode == 0
    assert holdfast("wait", "it", "--timeout", "40s").returncode == 0
    assert os.path.getsize(proof) == 1


def test_records_that_can_only_be_read_are_read(home: str) -> None:
    """As under a keeper with ProtectHome=read-only."""
    queued(home, "true")
    place = os.path.dirname(Home(home).seals)
    for name in ("admitted", "seals", "."):
        os.chmod(os.path.join(place, name), 0o500)
    assert "not created" not in without_power("status").stdout
    assert "not written" in " ".join(without_power("doctor").stdout.split())
    refused = without_power("run", "--", "true")
    assert refused.returncode != 0
    assert "can be read here, but not written" in " ".join(refused.stderr.split())
    assert not os.path.exists(os.path.join(home, "admitted"))


def variables(home: str) -> tuple[str, str]:
    """An environment file with other settings, and where these are."""
    root = os.path.dirname(home)
    elsewhere = os.path.join(root, "elsewhere")
    path = os.path.join(root, "variables")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"XDG_CONFIG_HOME={elsewhere}\nHOME={elsewhere}\n")
    return path, elsewhere


def test_the_environment_of_a_task_does_not_move_its_records(home: str) -> None:
    """Chores run in it, and a command of the agent."""
    path, elsewhere = variables(home)
    repo = Repo(os.path.join(workspace(), "repo"))
    repo.commit("a")
    script = 'echo b > b; git add b; git -c user.name=x -c user.email=x commit -qm b; "$0" -m holdfast ls'
    words = ("--worktree", "--accept", "true", "--env-file", path)
    done = holdfast("run", "--id", "it", *words, "--", "sh", "-c", script, sys.executable, cwd=repo.path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not os.path.exists(os.path.join(elsewhere, "holdfast"))
    assert not os.path.exists(os.path.join(elsewhere, ".config"))
    assert os.path.exists(Packet(os.path.join(home, "tasks", "it")).index_notes)


def test_the_environment_of_a_fan_out_does_not_move_its_records(
    home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its conductor creates tasks, which the keeper must know."""
    path, elsewhere = variables(home)
    monkeypatch.delenv("HOLDFAST_KEEPER", raising=False)
    up("--slots", "2")
    scenario = fanouts.agent(("a", "echo a > a"))
    task = fanouts.start(fanouts.project(), scenario, fanouts.plan(fanouts.item("a")), "--env-file", path)
    task.wait_for("completed", within_s=60)
    assert not os.path.exists(os.path.join(elsewhere, "holdfast"))


def test_a_sandbox_hides_the_records_also_from_a_task_with_another_home_directory(home: str) -> None:
    Task.start("--", "true").wait_for("completed")
    elsewhere = os.path.join(os.path.dirname(home), "elsewhere")
    os.mkdir(elsewhere)
    builder = SandboxBuilder(env={"HOME": elsewhere, "PATH": os.environ["PATH"]})
    place = os.path.dirname(Home(home).seals)
    assert any(place.startswith(mount.path + "/") and "hide" in mount.kind for mount in builder.mounts)
