"""The loop through failures, stops and the keeper's own death."""

from __future__ import annotations

import json
import os
import signal
import time

import pytest

from holdfast.store.layout import Home
from tests.support import keepers, kin, loops
from tests.support.loops import fill, order, task, up, working
from tests.support.tasks import holdfast, workspace
from tests.support.waiting import eventually

pytestmark = pytest.mark.usefixtures("with_keeper")


def state(home: str) -> dict:
    with open(Home(home).loop, encoding="utf-8") as file:
        return json.load(file)


# ── failures ──


@pytest.mark.req("BUD-6", "W-C8", "TST-5")
def test_failures_in_a_row_back_off_and_then_ask_a_person(home: str) -> None:
    told = os.path.join(workspace(), "told")
    loops.settings(
        "max_failures = 2\n[[notify]]\non = ['home_interrupt']\nto = 'command'\n"
        f"argv = ['sh', '-c', 'echo \"$HOLDFAST_REASON\" >> {told}']\n"
    )
    fill(a=working(0, "exit 1"), b=working(0, "exit 1"), c=working())
    up()
    task("b").wait_for("failed", within_s=25)
    mark = Home(home).interrupt_request
    eventually(lambda: os.path.exists(mark), what="a person is asked")
    ends = [at for _, _, at in loops.stamps("end")]
    begins = [at for _, _, at in loops.stamps("begin")]
    assert begins[1] - ends[0] >= 1.9  # 2^1, less the moment in which the end was noticed
    with open(mark, encoding="utf-8") as file:
        text = file.read()
    # Not their number: tasks that run at that moment may fail, too.
    assert text.startswith("the limit of 2 failed tasks in a row is reached")
    eventually(lambda: os.path.exists(told), what="and is told")
    with open(told, encoding="utf-8") as file:
        notice = file.read()
    # Both name the command and the file.
    assert ("'holdfast queue resume'" in text, mark in text) == (True, True)
    assert ("'holdfast queue resume'" in notice, mark in notice) == (True, True)
    assert any("the queue waits for a person" in line for line in keepers.status(home)["attention"])
    # Only a person continues it: no timeout does.
    keepers.stays(lambda: os.path.exists(mark) and task("c").status() == "queued", 1.0)
    os.remove(mark)
    loops.ring(home)
    # A person looked at it: nothing waits for the backoff, and the failures are forgotten.
    eventually(lambda: state(home)["failures"] == 0, what="failures are forgotten")
    task("c").wait_for("completed", within_s=25)
    assert not os.path.exists(mark)


@pytest.mark.req("BUD-6")
@pytest.mark.parametrize("command", [["queue", "resume"], ["up"]], ids=["resume", "up"])
def test_after_failures_in_a_row_one_command_goes_on_at_once_and_counts_from_zero(
    home: str, command: list[str]
) -> None:
    loops.settings("max_failures = 2\n")
    fill(a=working(0, "exit 1"), b=working(0, "exit 1"), c=working(0, "exit 1"), d=working())
    up()
    task("b").wait_for("failed", within_s=25)
    mark = Home(home).interrupt_request
    eventually(lambda: os.path.exists(mark), what="a person is asked")
    done = holdfast(*command)
    assert (done.returncode, "2 failures in a row are forgotten" in done.stderr) == (0, True), done.stderr
    task("c").wait_for("failed", within_s=25)
    # Its failure is the first one again: nobody is asked, and the next task follows.
    assert state(home)["failures"] <= 1
    task("d").wait_for("completed", within_s=25)
    assert not os.path.exists(mark)


@pytest.mark.req("BUD-6")
def test_a_resume_ends_a_backoff_before_a_person_is_asked(home: str) -> None:
    fill(**{name: working(0, "exit 1") for name in "abcd"}, e=working())
    up()
    task("d").wait_for("failed", within_s=40)
    eventually(lambda: state(home)["failures"] == 4)
    asked_mono = time.monotonic()
    assert holdfast("queue", "resume").returncode == 0
    loops.wait_for_begin("e")
    assert time.monotonic() - asked_mono < 10  # the backoff is 16 s
    task("e").wait_for("completed", within_s=25)


@pytest.mark.req("BUD-6")
def test_only_completed_work_forgets_failures(home: str) -> None:
    fill(bad=working(0, "exit 1"), killed=working(60))
    up()
    task("bad").wait_for("failed")
    loops.wait_for_begin("killed")
    # It was started, and a person stopped it: that is not completed work.
    assert state(home)["failures"] == 1
    task("killed").stop()
    loops.ring(home)
    eventually(lambda: state(home)["ended"].get("killed") == 1)
    assert state(home)["failures"] == 1


def test_the_count_of_failures_survives_the_keeper(home: str) -> None:
    loops.settings("max_failures = 2\n")
    fill(a=working(0, "exit 1"), b=working(0, "exit 1"))
    up()
    task("a").wait_for("failed")
    eventually(lambda: state(home)["failures"] == 1)
    keepers.kill(home)  # the seed starts another one; 'up' would forget the failures
    task("b").wait_for("failed", within_s=25)
    eventually(lambda: os.path.exists(Home(home).interrupt_request), 20)


# ── stops ──


@pytest.mark.req("QUE-7", "INT-4")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_loop_and_parks_its_tasks(home: str, number: signal.Signals) -> None:
    script = loops.STAMP + "stamp begin; test $HOLDFAST_RESUME_COUNT = 1 || sleep 60"
    fill(it=script, next=working())
    with loops.foreground() as loop:
        loops.wait_for_begin("it")
        loop.send_signal(number)
        assert loop.wait(timeout=30) == 0
    assert task("it").status() == "interrupted"
    assert number.name in task("it").manifest()["interrupt"]["reason"]
    with open(task("it").path("state", "interrupts", "1", "context.json"), encoding="utf-8") as file:
        assert json.load(file)["attempt"] == 1
    assert os.path.exists(Home(home).down)
    assert task("next").status() == "queued"
    assert task("it").ask("resume").returncode == 0
    up()
    task("it").wait_for("completed")
    task("next").wait_for("completed")
    assert order() == ["it", "it", "next"]


def test_a_loop_in_the_foreground_takes_over_from_the_keeper_that_submit_started(home: str) -> None:
    done = holdfast("submit", "--id", "it", "--not-before", "+1h", "--", "true", cwd=workspace())
    assert done.returncode == 0, done.stderr
    first = keepers.wait_for(home)
    with loops.foreground() as loop:
        keepers.wait_for(home, other_than=first)
        assert keepers.pid(home) == loop.pid
        # Another foreground loop belongs to a person: it is left alone.
        with loops.foreground() as second:
            assert second.wait(timeout=30) == 3
        assert keepers.pid(home) == loop.pid
        loop.send_signal(signal.SIGTERM)
        assert loop.wait(timeout=30) == 0


def test_down_leaves_running_tasks(home: str) -> None:
    fill(it=loops.STAMP + "stamp begin; " + kin.WAIT, next=working())
    up()
    loops.wait_for_begin("it")
    assert holdfast("down").returncode == 0
    assert task("it").status() == "running"
    kin.go()
    task("it").wait_for("completed")
    keepers.stays(lambda: task("next").status() == "queued", 0.5, "nothing new starts")
    up()
    task("next").wait_for("completed")


@pytest.mark.req("W-C8")
def test_an_interrupted_task_holds_no_slot_and_goes_first_when_it_is_resumed(home: str) -> None:
    once = loops.STAMP + "stamp begin; test $HOLDFAST_RESUME_COUNT = 1 || sleep 60"
    fill(it=once, second=loops.STAMP + "stamp begin; " + kin.WAIT, third=working())
    up()
    loops.wait_for_begin("it")
    assert task("it").ask("interrupt", "-m", "which one?").returncode == 0
    task("it").wait_for("interrupted")
    loops.wait_for_begin("second")
    assert task("it").ask("resume").returncode == 0
    assert task("it").status() == "queued"
    kin.go()
    task("it").wait_for("completed", within_s=10)
    task("third").wait_for("completed")
    assert order() == ["it", "second", "it", "third"]


# ── the keeper's death ──


@pytest.mark.req("W-C8")
@pytest.mark.parametrize("point", ["dispatch.claimed", "dispatch.asked"])
def test_a_keeper_that_dies_between_claim_and_start_loses_nothing(home: str, point: str) -> None:
    fill(it=working(), other=working())
    once = {"HOLDFAST_FAILPOINT": f"{point}=kill", "HOLDFAST_FAILPOINT_ONCE": os.path.join(home, "once")}
    holdfast("up", "--iteration-delay", "0", env=once)
    eventually(lambda: os.path.exists(os.path.join(home, "once")), what="the keeper was killed there")
    up()
    for each in ("it", "other"):
        task(each).wait_for("completed", within_s=25)
    assert order() == ["it", "other"]
    assert task("it").manifest()["attempt"] == 1


def test_a_keeper_that_dies_behind_an_end_counts_it_once(home: str) -> None:
    fill(bad=working(0, "exit 1"))
    once = {
        "HOLDFAST_FAILPOINT": "dispatch.counted=kill",
        "HOLDFAST_FAILPOINT_ONCE": os.path.join(home, "once"),
    }
    up(env=once)
    eventually(lambda: os.path.exists(os.path.join(home, "once")), what="the keeper was killed there")
    # The seed starts another one; 'up' would forget the failures. A command that looks at the queue could
    # take the task out before it.
    eventually(lambda: any("bad ended: failed" in line for line in keepers.log(home)), what="it is taken out")
    assert (state(home)["failures"], state(home)["ended"]) == (1, {"failed": 1})


def test_a_claim_that_is_lost_again_and_again_is_poison(home: str) -> None:
    fill(it=working())
    kills = {"HOLDFAST_FAILPOINT": "dispatch.claimed=kill"}
    seedless = kin.alone(home, "seed.lock")
    for lost in range(1, 6):
        holdfast("up", env=kills)
        eventually(
            lambda n=lost: (found := loops.queue()["it"])["lost"] == n - 1 and found["state"] == "claimed",
            what=f"claim {lost}",
        )
        eventually(lambda: keepers.pid(home) == 0)
    up()
    eventually(lambda: loops.queue()["it"]["state"] == "poison")
    assert any("it is poison" in line for line in keepers.status(home)["attention"])
    assert holdfast("queue", "retry", "it").returncode == 0
    task("it").wait_for("completed")
    os.close(seedless)


def test_runners_that_die_on_a_queued_task_park_it_and_free_its_slot(home: str) -> None:
    fill(it=working(), other=working())
    up(env={"HOLDFAST_FAILPOINT": "attempt.made=kill"})
    task("it").wait_for("interrupted", within_s=40)
    assert "died on this task" in task("it").manifest()["interrupt"]["reason"]
    holdfast("down")
    up()
    task("other").wait_for("completed", within_s=40)
    assert task("it").status() == "interrupted"
