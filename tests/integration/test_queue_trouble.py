"""Failures in a queue: they affect nothing else, are reported, and a person can end them."""

from __future__ import annotations

import json
import os
import time

import pytest

from holdfast import clock
from holdfast.store.layout import Home
from tests.support import keepers, kin, loops
from tests.support.loops import fill, task, up, working
from tests.support.repos import Repo
from tests.support.tasks import holdfast, workspace
from tests.support.waiting import eventually

pytestmark = pytest.mark.usefixtures("with_keeper")


# ── packets that cannot be read ──


def spoil(home: str, task_id: str) -> None:
    """The manifest reads, the journal does not."""
    with open(Home(home).packet(task_id).journal, "wb") as file:
        file.write(b"\x93\x00\xffjunk\n\x01more\n")


def test_a_damaged_packet_takes_no_slot_and_can_be_removed(home: str) -> None:
    fill(t1=working(), t2=working(), t3=working(), t4=working())
    spoil(home, "t2")
    os.remove(Home(home).packet("t3").journal)
    up("--slots", "1")
    task("t4").wait_for("completed", within_s=20)
    assert loops.order() == ["t1", "t4"]
    poison = eventually(lambda: {name: row["reason"] for name, row in loops.queue().items()})
    assert sorted(poison) == ["t2", "t3"]
    assert all("cannot be read" in reason for reason in poison.values())
    assert any("t2 is poison" in line for line in keepers.status(home)["attention"])
    refused = holdfast("stop", "t2")
    assert refused.returncode == 3, refused.stderr
    assert "'holdfast rm --force t2'" in refused.stderr
    assert holdfast("rm", "--force", "t2").returncode == 0
    assert holdfast("queue", "clear", "--yes").returncode == 0
    assert loops.queue() == {}
    assert holdfast("rm", "--force", "t3").returncode == 0
    assert sorted(os.listdir(Home(home).tasks)) == ["t1", "t4"]


def test_a_damaged_packet_leaves_the_queue_by_name_and_is_not_taken_in_again(home: str) -> None:
    fill(t1=working(), t2=working())
    spoil(home, "t1")
    done = holdfast("queue", "rm", "t1", env={"HOLDFAST_KEEPER": "off"})
    assert done.returncode == 0, done.stderr
    assert "'holdfast rm --force t1' removes it" in done.stderr
    assert list(loops.queue()) == ["t2"]


# ── a queue.db that was deleted ──


def forget_queue(home: str) -> None:
    for suffix in ("", "-wal", "-shm"):
        if os.path.exists(Home(home).queue + suffix):
            os.remove(Home(home).queue + suffix)


def test_a_pause_a_claim_and_a_priority_outlive_the_database(home: str) -> None:
    fill(o1=working(), o2=working(), o3=working(), night={"command": working(), "pool": "night"})
    off = {"HOLDFAST_KEEPER": "off"}
    for words in ("claim o1 --by bob", "pause night", "priority o3 high"):
        done = holdfast("queue", *words.split(), env=off)
        assert done.returncode == 0, done.stderr
    forget_queue(home)
    rows = loops.queue()
    assert rows["o1"]["claimed_by"] == "outside:bob"
    assert rows["o3"]["priority"] == 10
    up()
    task("o2").wait_for("completed")
    assert loops.order() == ["o3", "o2"]
    forget_queue(home)
    loops.ring(home)
    keepers.stays(lambda: {"o1", "night"}.isdisjoint(loops.order()), 1.0, "bob's and the paused one")
    assert holdfast("queue", "release", "o1").returncode == 0
    assert holdfast("queue", "resume", "night").returncode == 0
    task("o1").wait_for("completed")
    task("night").wait_for("completed")
    eventually(lambda: loops.queue() == {})
    with open(Home(home).queue_kept, encoding="utf-8") as file:
        kept = json.load(file)
    assert (kept["paused"], kept["claims"], kept["priorities"]) == ([], {}, {})


# ── slots, and workers outside ──


def test_a_retry_takes_its_turn_in_the_queue(home: str) -> None:
    names = ("r1", "r2", "r3")
    tasks = fill(**{name: working(0.1, "test -e again && sleep 3") for name in names})
    loops.settings("max_failures = 0\n")
    up("--slots", "3")
    for each in tasks:
        each.wait_for("failed", within_s=25)
    eventually(lambda: loops.queue() == {})
    up("--slots", "1")
    os.remove(os.path.join(workspace(), "stamps"))
    with open(os.path.join(workspace(), "again"), "w", encoding="utf-8"):
        pass
    for name in names:
        done = holdfast("retry", name)
        assert done.returncode == 0, done.stderr
    for each in tasks:
        each.wait_for("completed", within_s=40)
    opened = [each.events("attempt.opened")[-1]["at"] for each in tasks]
    ended = [each.events("attempt.ended")[-1]["at"] for each in tasks]
    assert all(end <= begin for end, begin in zip(sorted(ended), sorted(opened)[1:], strict=False))


def test_a_retry_is_not_held_for_what_was_done_before_its_first_turn(home: str) -> None:
    fill(first=working(), then=loops.item(working(then="test -e again"), after=["first"]))
    up()
    task("then").wait_for("failed", within_s=20)
    eventually(lambda: loops.queue() == {})
    assert holdfast("rm", "first").returncode == 0
    with open(os.path.join(workspace(), "again"), "w", encoding="utf-8"):
        pass
    done = holdfast("retry", "then")
    assert done.returncode == 0, done.stderr
    task("then").wait_for("completed", within_s=20)


def test_work_that_was_done_outside_is_completed_and_lets_others_go_on(home: str) -> None:
    fill(o1=working(), next={"command": working(), "after": ["o1"]})
    off = {"HOLDFAST_KEEPER": "off"}
    refused = holdfast("queue", "done", "o1", env=off)
    assert refused.returncode == 3
    assert "'holdfast queue claim o1'" in refused.stderr
    assert holdfast("queue", "claim", "o1", "--by", "bob", env=off).returncode == 0
    done = holdfast("queue", "done", "o1", env=off)
    assert done.returncode == 0, done.stderr
    o1 = task("o1")
    o1.wait_for("completed")
    assert o1.manifest()["status_reason"] == "done by bob, an external worker"
    assert holdfast("wait", "o1").returncode == 0
    up()
    task("next").wait_for("completed")
    assert loops.order() == ["next"]


def test_what_is_paused_or_not_due_cannot_be_claimed_by_name(home: str) -> None:
    fill(late={"command": "true", "not_before": "+1h"}, rests={"command": "true", "pool": "night"})
    off = {"HOLDFAST_KEEPER": "off"}
    assert holdfast("queue", "pause", "night", env=off).returncode == 0
    for name, why in (("late", "not before"), ("rests", "paused")):
        refused = holdfast("queue", "claim", name, env=off)
        assert refused.returncode == 3
        assert why in refused.stderr
    assert "'holdfast queue resume night' continues" in holdfast("queue").stderr


# ── why nothing happens ──


def test_a_held_task_says_why_and_wait_does_not_block_for_ever(home: str) -> None:
    fill(broken="exit 1", held={"command": "true", "after": ["broken"]})
    up()
    done = holdfast("wait", "held", "--timeout", "20s")
    assert (done.returncode, done.stdout) == (4, "held held\n"), done.stderr
    assert "held is held: broken failed; 'holdfast retry broken' to try broken again" in done.stderr
    shown = holdfast("show", "held").stdout
    assert "queue     held: broken failed" in shown
    assert "holdfast queue retry held" in shown
    assert "logs -f" not in shown


def test_enough_iterations_and_the_pause_after_failures_are_said(home: str) -> None:
    fill(a="true", b="true")
    up("--max-iterations", "1")
    task("a").wait_for("completed")
    said = "--max-iterations (1) reached; 'holdfast up' resets the count"
    eventually(lambda: said in keepers.status(home)["attention"])
    assert said in holdfast("queue").stderr
    assert said in holdfast("show", "b").stdout
    fill(c={"command": "exit 1", "priority": "high"}, d={"command": "exit 1", "priority": "high"})
    up()
    task("d").wait_for("failed")
    eventually(lambda: any(" failed in a row" in line for line in keepers.status(home)["attention"]))


def test_status_counts_what_the_packets_say(home: str) -> None:
    (parked,) = fill(i1="sleep 600")
    up()
    parked.wait_for("running")
    assert holdfast("interrupt", "i1").returncode == 0
    parked.wait_for("interrupted")
    eventually(lambda: loops.queue() == {})
    assert holdfast("down").returncode == 0
    assert holdfast("resume", "i1").returncode == 0
    shown = keepers.status(home)
    assert (shown["counts"], shown["queue"]["states"]) == ({"queued": 1}, {"queued": 1})


def test_a_claim_of_a_dead_keeper_on_an_ended_task_is_not_counted(
    home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (it,) = fill(it=kin.WAIT)
    up()
    it.wait_for("running")
    monkeypatch.setenv("HOLDFAST_KEEPER", "off")
    kin.kill(keepers.status(home)["seed"]["pid"], keepers.wait_for(home))
    with open(Home(home).keeper_starts, "w", encoding="utf-8") as file:
        json.dump({"schema": "holdfast.keeper-starts/1", "starts": [time.time()] * 5}, file)
    kin.go()
    it.wait_for("completed")
    assert keepers.status(home)["queue"]["states"] == {}


def test_the_wait_for_a_turn_is_not_counted_as_work(home: str) -> None:
    (it,) = fill(it={"command": "true", "not_before": "+6s"})
    assert holdfast("ls").stdout.splitlines()[1].split()[4] == "-"
    up()
    it.wait_for("completed", within_s=30)
    manifest = it.manifest()
    assert clock.parse_iso(manifest["begun_at"]) - clock.parse_iso(manifest["started_at"]) >= 5
    took_s = clock.parse_iso(manifest["finished_at"]) - clock.parse_iso(manifest["begun_at"])
    found = json.loads(holdfast("metrics", "--json").stdout)
    assert found["home"]["average_duration_s"] == pytest.approx(took_s, abs=0.01)
    assert f"took {clock.duration_text(took_s)}" in holdfast("show", "it").stdout


def test_a_worktree_that_cannot_be_made_is_a_failure_to_fix_and_no_question(home: str) -> None:
    repo = Repo(os.path.join(workspace(), "repo"))
    repo.write("a.txt", "a\n")
    repo.commit("a.txt")
    repo.git("worktree", "add", "-b", "holdfast/it", os.path.join(workspace(), "elsewhere"))
    it = loops.submit("--id", "it", "--worktree", "--project", repo.path, "--", "true")
    up()
    reason = it.wait_for("interrupted")["interrupt"]["reason"]
    begin = "command_run cannot start: the branch holdfast/it is checked out in another worktree of "
    assert reason.startswith(begin)
    assert "error:" not in reason
    assert "hint:" not in reason
    shown = holdfast("show", "it").stdout
    assert "\nfailure   command_run cannot start: " in shown
    assert "\nnext      holdfast resume it   go on, once that is done\n" in shown
