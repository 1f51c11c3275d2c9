"""The loop: the keeper works the queue, within its slots and limits."""

from __future__ import annotations

import json
import os
import time

import pytest

from holdfast.store.layout import Home
from holdfast.testing import Scenario
from tests.support import keepers, loops
from tests.support.loops import fill, item, order, submit, task, up, working
from tests.support.tasks import Task, holdfast, trust, workspace
from tests.support.waiting import eventually

pytestmark = pytest.mark.usefixtures("with_keeper")


def all_of(tasks: list[Task], status: str = "completed", within_s: float = 25.0) -> None:
    for each in tasks:
        each.wait_for(status, within_s=within_s)


# ── which task, and how many ──


@pytest.mark.req("QUE-2")
def test_never_more_agents_than_slots(home: str) -> None:
    tasks = fill(**{f"t{n}": working(0.4) for n in range(6)})
    up("--slots", "2")
    all_of(tasks)
    assert loops.most_at_once() == 2
    eventually(lambda: loops.queue() == {}, what="what has ended leaves the queue")


@pytest.mark.req("QUE-1", "QUE-2")
def test_priority_first_then_the_older(home: str) -> None:
    tasks = fill(
        low=item(working(), priority="low"),
        one=working(),
        high=item(working(), priority="high"),
        two=working(),
        urgent=item(working(), priority=99),
    )
    up()
    all_of(tasks)
    assert order() == ["urgent", "high", "one", "two", "low"]
    started = [event["iteration"] for event in task("low").events("task.moved") if event["iteration"]]
    assert started == [5]


def test_a_task_waits_for_those_before_it_and_is_held_where_one_failed(home: str) -> None:
    tasks = fill(
        last=item(working(), after=["first"], priority="high"),
        first=working(0.3),
        broken=working(0.1, "exit 1"),
        held=item(working(), after=["broken"]),
    )
    up("--slots", "3")
    all_of(tasks[:2])
    assert order().index("first") < order().index("last")
    task("broken").wait_for("failed")
    eventually(lambda: loops.queue()["held"]["state"] == "held")
    assert any("held is held" in line for line in keepers.status(home)["attention"])
    assert holdfast("queue", "retry", "held").returncode == 0
    task("held").wait_for("completed", within_s=25)


def test_a_task_is_not_started_before_its_time(home: str) -> None:
    late = submit("--not-before", "+5s", "--id", "late", "--", "sh", "-c", working())
    due = eventually(lambda: loops.queue()["late"]["not_before"])
    soon = submit("--id", "soon", "--", "sh", "-c", working())
    up()
    soon.wait_for("completed")
    late.wait_for("completed", within_s=30)
    from holdfast import clock

    began = next(at for what, name, at in loops.stamps() if (what, name) == ("begin", "late"))
    # How late it may be is not measured: on a busy machine, even `up` takes longer than it waits.
    assert began >= clock.parse_iso(due)


def test_agents_and_pools_have_limits_of_their_own(home: str) -> None:
    loops.settings('agent_limits = ["command=3"]\npool_limits = ["nightly=1"]\n')
    night = {f"n{n}": item(working(0.4), pool="nightly", priority="high") for n in range(3)}
    day = {f"d{n}": working(0.4) for n in range(5)}
    tasks = fill(**night, **day)
    up("--slots", "6")
    all_of(tasks)
    assert loops.most_at_once() == 3
    assert loops.most_at_once(tuple(night)) == 1


def test_a_task_that_waits_for_a_limit_or_a_slot_says_so(home: str) -> None:
    loops.settings('slots = 2\npool_limits = ["heavy=1"]\n')
    blocked = "while [ ! -e go ]; do sleep 0.05; done"
    tasks = fill(
        h1=item(blocked, pool="heavy"), h2=item(working(), pool="heavy"), n1=item(blocked), n2=item(working())
    )
    up()
    limit, slots = "heavy: 1 of 1 running (pool_limits)", "2 of 2 slots used"
    eventually(lambda: limit in holdfast("queue", "ls").stdout, what="the queue says why")
    for view in (("show", "h2"), ("queue", "show", "h2"), ("ls",), ("status",), ("report",)):
        assert limit in holdfast(*view).stdout, view
    for view in (("show", "n2"), ("queue", "show", "n2")):
        assert slots in holdfast(*view).stdout, view
    assert limit not in "".join(keepers.log(home))
    with open(os.path.join(workspace(), "go"), "w", encoding="utf-8"):
        pass
    all_of(tasks)


def test_a_pool_outside_its_window_waits_and_says_until_when(home: str) -> None:
    now = time.localtime()
    # A window that begins in two hours, and ends an hour later.
    window = f"{(now.tm_hour + 2) % 24:02}:00-{(now.tm_hour + 3) % 24:02}:00"
    loops.settings(f'pool_windows = ["nightly={window}"]\n')
    fill(late=item(working(), pool="nightly", priority="high"), other=working())
    up()
    task("other").wait_for("completed")
    assert task("late").status() == "queued"
    why = f"the pool nightly starts at {window[:5]} (pool_windows)"
    eventually(lambda: why in holdfast("queue", "ls").stderr, what="the queue says why")
    loops.settings("")
    task("late").wait_for("completed")


def test_each_task_says_what_holds_it(home: str) -> None:
    now = time.localtime()
    window = f"{(now.tm_hour + 2) % 24:02}:00-{(now.tm_hour + 3) % 24:02}:00"
    loops.settings(f'pool_windows = ["nightly={window}"]\nslots = 3\n')
    limited = Scenario().rate_limit("come back later", resets_in_s=7200, tries=1).result("ok")
    path = limited.write_to(os.path.join(workspace(), "limited.json"))
    agent = ("--agent", "scripted", "-o", f"scenario={path}")
    submit(*agent, "--id", "first", "--priority", "high", "do it")
    up()
    task("first").wait_for("waiting")
    submit(*agent, "--id", "second", "do it")
    submit("--pool", "nightly", "--id", "late", "--", "sh", "-c", working())
    up()
    at_limit = "scripted is at its limit until "
    closed = f"the pool nightly starts at {window[:5]} (pool_windows)"

    def says(*words: str) -> str:
        done = holdfast(*words)
        return " ".join((done.stdout + done.stderr).split())

    eventually(lambda: at_limit in says("status") and closed in says("status"), what="status has both")
    for words in (("queue", "ls"), ("ls",)):
        assert at_limit in says(*words)
        assert closed in says(*words)
    for words in (("show", "second"), ("queue", "show", "second")):
        found = says(*words)
        assert at_limit in found
        assert "(first); 'holdfast resume first' tries now" in found
        assert closed not in found
    assert closed in says("show", "late")
    assert at_limit not in says("show", "late")
    waits = {
        each["task_id"]: each["reason"] for each in json.loads(holdfast("report", "--json").stdout)["queue"]
    }
    assert (waits["late"], waits["second"].startswith(at_limit)) == (closed, True)
    loops.settings("slots = 3\n")
    task("late").wait_for("completed")
    assert "first continues" in says("resume", "first")
    task("second").wait_for("waiting")
    assert "second continues" in says("resume", "second")
    task("second").wait_for("completed")


def test_a_budget_per_day_holds_the_queue(home: str) -> None:
    loops.settings("budget_per_day = 1.50\n")
    costly = Scenario().usage(input_tokens=10, output_tokens=5, cost_usd=2.0).result("ok")
    path = costly.write_to(os.path.join(workspace(), "costly.json"))
    first = loops.submit("--agent", "scripted", "-o", f"scenario={path}", "do it")
    second = loops.submit("--", "sh", "-c", working())
    up()
    first.wait_for("completed")
    why = "$2.00 of $1.50 spent today (budget_per_day in your settings)"
    eventually(lambda: why in " ".join(holdfast("queue", "ls").stderr.split()), what="the queue says why")
    assert second.status() == "queued"
    assert "budget   $2.00 of $1.50 spent today" in holdfast("status").stdout
    resumed = " ".join(holdfast("queue", "resume").stderr.split())
    assert "no task is started before midnight: $2.00 of $1.50 spent today" in resumed
    waited = holdfast("wait", second.id, "--timeout", "0.1s")
    assert "it stays queued; 'holdfast show" in " ".join(waited.stderr.split())
    loops.settings("budget_per_day = 5\n")
    second.wait_for("completed")
    # What it cost before a retry was counted at its first end; the session itself cost nothing more.
    assert holdfast("retry", first.id, "--from", "scripted_run").returncode == 0
    ends = ("audit", first.id, "--operation", "loop.ended", "--json")
    eventually(lambda: holdfast(*ends).stdout.count("\n") == 2, 20)
    assert "budget   $2.00 of $5.00 spent today" in holdfast("status").stdout


def test_the_money_of_an_interrupted_and_of_a_stopped_task_counts_once(home: str) -> None:
    loops.settings("budget_per_day = 9\n")
    scenario = Scenario().on_resume("restart").usage(cost_usd=2.0)
    scenario = scenario.unauthorized("Invalid API key", times=2).result("ok")
    path = scenario.write_to(os.path.join(workspace(), "costly.json"))

    def spends(text: str) -> None:
        row = f"budget   {text} of $9.00 spent today"
        eventually(lambda: row in holdfast("status").stdout, 20, row)

    first = loops.submit("--agent", "scripted", "-o", f"scenario={path}", "do it")
    up()
    first.wait_for("interrupted")
    spends("$2.00")
    first.ask_patiently("resume")
    eventually(lambda: len(first.events("attempt.ended")) == 2 and first.status() == "interrupted", 20)
    spends("$4.00")
    first.ask_patiently("stop")
    first.wait_for("killed")
    first.ask_patiently("retry")
    first.wait_for("completed")
    spends("$6.00")
    other = loops.submit("--", "sh", "-c", working())
    other.wait_for("completed")
    spends("$6.00")


def test_money_that_is_not_known_makes_what_is_spent_a_least(home: str) -> None:
    loops.settings("budget_per_day = 1.50\n")
    scenario = Scenario().crash("KILL", once=True).usage(cost_usd=2.0).result("ok")
    path = scenario.write_to(os.path.join(workspace(), "costly.json"))
    first = loops.submit("--agent", "scripted", "-o", f"scenario={path}", "do it")
    loops.submit("--", "sh", "-c", working())
    up()
    first.wait_for("completed")
    why = "at least $2.00 of $1.50 spent today"
    eventually(lambda: why in " ".join(holdfast("queue", "ls").stderr.split()), what="the queue says why")
    assert "budget   at least $2.00 of $1.50 spent today" in holdfast("status").stdout


def test_a_paused_queue_starts_nothing_and_goes_on_when_resumed(home: str) -> None:
    loops.settings('pool_limits = ["nightly=1"]\n')
    assert holdfast("queue", "pause", "nightly").returncode == 0
    fill(paused=item(working(), pool="nightly"), other=working())
    up()
    task("other").wait_for("completed")
    keepers.stays(lambda: task("paused").status() == "queued", 0.5, "a paused pool rests")
    assert holdfast("queue", "resume", "nightly").returncode == 0
    task("paused").wait_for("completed")


@pytest.mark.req("QUE-4", "TST-1", "BUD-9")
def test_an_empty_queue_is_waited_on(home: str) -> None:
    up()
    keeper = keepers.wait_for(home)
    assert (holdfast("queue", "next").returncode, holdfast("queue", "check").stdout) == (3, "0\n")
    done = holdfast("submit", "--id", "it", "--", "sh", "-c", working(), cwd=workspace())
    assert done.returncode == 0
    task("it").wait_for("completed")
    assert keepers.pid(home) == keeper


def test_a_waiting_task_holds_no_slot(home: str) -> None:
    slow = ("--base-interval", "1h", "--max-interval", "1h")
    waiting = submit("--priority", "high", *slow, "--", "sh", "-c", "kill -KILL $$")
    fill(other=working())
    up()
    waiting.wait_for("waiting")
    task("other").wait_for("completed")
    assert waiting.status() == "waiting"
    waiting.stop()


def test_a_task_that_waits_less_than_a_minute_keeps_its_slot(home: str) -> None:
    """Else it would go on beside the task that took its slot."""
    soon = ("--base-interval", "3s", "--max-interval", "3s")
    script = "echo x >> times; [ $(wc -l < times) -gt 2 ] && exit 0; kill -KILL $$"
    first = submit("--priority", "high", *soon, "--", "sh", "-c", script)
    fill(other=working())
    up()
    first.wait_for("waiting")
    assert json.loads(holdfast("status", "--json").stdout)["slots"]["used"] == 1
    assert f"waiting  {first.id}  waiting, command, " in holdfast("status").stdout
    first.wait_for("completed", within_s=60)
    task("other").wait_for("completed")
    begun = task("other").events("attempt.opened")[0]["at"]
    assert begun > first.events("attempt.ended")[-1]["at"]


# ── iterations ──


@pytest.mark.req("QUE-3", "LCH-13")
def test_a_loop_of_two_iterations_ends_by_itself(home: str) -> None:
    tell = working(0.0, 'echo "$ITERATION $HARNESS_SESSION $BD_ACTOR $SESSION_ID" > "$HOLDFAST_TASK.env"')
    fill(a=tell, b=tell, c=tell)
    with loops.foreground("--max-iterations", "2") as loop:
        assert loop.wait(timeout=30) == 0
    assert order() == ["a", "b"]
    assert task("c").status() == "queued"
    for name, number in (("a", "1"), ("b", "2")):
        with open(os.path.join(workspace(), f"{name}.env"), encoding="utf-8") as file:
            said = file.read().split()
        assert said[:3] == [number, "true", "harness-agent"]
        assert said[3].startswith("ses_")
    assert keepers.pid(home) == 0


@pytest.mark.req("QUE-3")
def test_the_variables_of_a_harness_set_the_loop(home: str) -> None:
    tasks = fill(a=working(), b=working(), c=working())
    variables = {"MAX_ITERATIONS": "2", "ITERATION_DELAY": "1"}
    done = holdfast("up", env=variables)
    assert done.returncode == 0, done.stderr
    all_of(tasks[:2])
    ends = [at for _, _, at in loops.stamps("end")]
    begins = [at for _, _, at in loops.stamps("begin")]
    assert begins[1] - ends[0] >= 1.0
    keepers.stays(lambda: tasks[2].status() == "queued", 0.5, "two iterations are enough")


# ── room ──


@pytest.mark.parametrize(("setting", "word"), [("min_free_memory", "memory"), ("min_free_disk", "disk")])
def test_nothing_is_started_where_there_is_no_room_and_status_says_why(
    home: str, setting: str, word: str
) -> None:
    loops.settings(f'{setting} = "900TiB"\n')
    fill(it=working())
    up()
    eventually(lambda: any(word in line for line in keepers.log(home)), what="keeper.log says why")
    eventually(lambda: any(word in line for line in keepers.status(home)["attention"]))
    assert (task("it").status(), loops.queue()["it"]["state"]) == ("queued", "queued")
    loops.settings("")
    loops.ring(home)
    task("it").wait_for("completed")
    eventually(lambda: keepers.status(home)["attention"] == [], what="and nothing when there is")


# ── the archive ──


@pytest.mark.req("QUE-2", "AUD-2", "TST-2")
def test_ended_tasks_are_archived_if_so_configured(home: str) -> None:
    loops.settings('archive_after = "0s"\n')
    fill(a=working(), b=item(working(), after=["a"]))
    up()
    archived = [Task(os.path.join(home, "archive", name)) for name in "ab"]
    eventually(lambda: [each.status() for each in archived] == ["completed"] * 2, 25, "both are archived")
    assert order() == ["a", "b"]
    assert os.listdir(Home(home).tasks) == []


# ── sources ──


@pytest.mark.req("QUE-5")
def test_sources_are_asked_again_and_again(home: str) -> None:
    def offer(*names: str) -> None:
        with open(os.path.join(workspace(), "items.json"), "w", encoding="utf-8") as file:
            json.dump([{"id": name, "command": working()} for name in names], file)

    offer("a")
    loops.settings('sources = ["cmd:cat items.json"]\nrefresh = "0.3s"\n')
    up()
    eventually(lambda: task("a").status() == "completed", 20, "the first item")
    offer("a", "b")
    eventually(lambda: task("b").status() == "completed", 20, "the second item")
    assert order() == ["a", "b"]


@pytest.mark.req("QUE-5")
def test_a_relative_file_is_relative_to_the_directory_of_up_and_failures_are_reported(home: str) -> None:
    def offer(*items: dict) -> None:
        with open(os.path.join(workspace(), "items.json"), "w", encoding="utf-8") as file:
            json.dump([{"command": working(), **each} for each in items], file)
        trust(os.path.join(workspace(), "items.json"))

    def told(text: str) -> bool:
        return any(text in line for line in keepers.status(home)["attention"])

    loops.settings('sources = ["items.json", "cmd:echo no luck >&2; exit 4"]\nrefresh = "0.3s"\n')
    up()
    eventually(lambda: told("source items.json fails: items.json: no such file"), 20)
    eventually(
        lambda: told(
            "exit 4 fails: '/bin/sh -c echo no luck >&2; exit 4' failed with exit status 4: no luck"
        ),
        20,
    )
    offer({"id": "a"}, {"id": "b", "project": "/no/such"}, {"id": "c"})
    all_of([task("a"), task("c")])
    eventually(lambda: told("b: the project directory /no/such does not exist"), 20)
    offer({"id": "a"}, {"id": "c"})
    eventually(lambda: not told("items.json"), 20)
    with open(Home(home).keeper_log, encoding="utf-8") as file:
        assert file.read().count("items.json: no such file") == 1, "each error is reported once"
