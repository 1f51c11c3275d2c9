"""Interrupts: what interrupts a task and why, what is saved for the person, and how it continues."""

from __future__ import annotations

import json
import os

import pytest

from holdfast.store import lock as locks
from holdfast.testing import Scenario
from tests.support import keepers, kin, loops, processes
from tests.support.tasks import Task, holdfast, workspace
from tests.support.waiting import eventually

#: Interrupt files are read at each check.
EAGER = ("--base-interval", "0.2s", "--stale", "none")


@pytest.fixture(autouse=True)
def in_a_home(home: str) -> None:
    workspace()


@pytest.fixture
def with_keeper(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOLDFAST_KEEPER")
    loops.up()


def context(task: Task, number: int = 1) -> dict:
    return task.json("state", "interrupts", str(number), "context.json")


def has_left(task: Task) -> None:
    eventually(lambda: not locks.is_held(task.path("runner.lock")), what="its runner has left")


def mark(task: Task) -> str:
    return task.path("state", "interrupt-request.txt")


# ── who asks ──


@pytest.mark.req("INT-1", "INT-2", "INT-3")
def test_an_agent_asks_and_the_answer_reaches_the_same_session() -> None:
    scenario = (
        Scenario()
        .say("looking around")
        .interrupt_request("which database?", once=True)
        .hang(once=True)
        .say("thanks")
        .result("ok")
    )
    task = Task.play(scenario, *EAGER)
    manifest = task.wait_for("interrupted")
    assert manifest["interrupt"]["reason"] == "which database?"
    assert manifest["session_id"] == context(task)["agent_session_id"]
    assert "looking around" in task.read("state", "interrupts", "1", "logs.txt").decode()
    assert "which database?" in task.read("state", "interrupts", "1", "summary.md").decode()
    has_left(task)
    assert task.ask("resume", "-m", "the test database").returncode == 0
    task.wait_for("completed")
    first, second = task.memory().starts()
    assert (first.is_resume, second.is_resume) == (False, True)
    assert "the test database" in second.prompt
    assert task.memory().overlaps() == []
    assert not os.path.exists(mark(task))
    assert "interrupted" in task.moves()


@pytest.mark.req("INT-1", "INT-3", "INT-4")
def test_a_person_asks_and_the_agent_is_stopped_cleanly() -> None:
    task = Task.shell('trap "echo bye; exit 3" TERM; ' + kin.WAIT, "--stop-pause", "20s")
    agent = task.agent_pid()
    assert task.ask("interrupt", "-m", "hold on: which branch?").returncode == 0
    manifest = task.wait_for("interrupted")
    assert manifest["interrupt"]["reason"] == "hold on: which branch?"
    assert not processes.is_alive(agent)
    # It got a signal it can handle; what it printed while exiting does not overwrite the state.
    assert "bye" in task.log()
    assert task.moves()[-1] == "interrupted"
    assert task.read("state", "interrupt-request.txt") == b"hold on: which branch?\n"
    assert sorted(os.listdir(task.path("state", "interrupts", "1"))) == [
        "context.json",
        "logs.txt",
        "summary.md",
    ]
    task.stop()


@pytest.mark.req("INT-1", "INT-2")
@pytest.mark.parametrize(
    "ask",
    [
        'echo "which database?" > "$INTERRUPT_FILE"',
        'echo "which database?" > q; mv q "$INTERRUPT_FILE"',
        ': > "$INTERRUPT_FILE"; sleep 0.05; echo "which database?" >> "$INTERRUPT_FILE"',
        'echo "which database?" > "$HOLDFAST_PACKET/state/error"',
        'echo \'{"status": "blocked"}\' > "$HOLDFAST_PACKET/state/work.json"',
    ],
    ids=["written", "renamed", "slowly", "error", "blocked"],
)
def test_a_question_is_noticed_at_once_and_the_agent_does_not_answer_itself(ask: str) -> None:
    """With the default interval of 30 s, and while the agent prints nothing."""
    task = Task.shell(f"sleep 1; {ask}; sleep 5; touch answered; {kin.WAIT}")
    task.agent_pid()
    manifest = task.wait_for("interrupted", within_s=20.0)
    assert manifest["interrupt"]["reason"] in ("which database?", "the work is blocked")
    assert not os.path.exists(os.path.join(workspace(), "answered"))
    task.stop()


@pytest.mark.req("INT-1", "INT-3", "AUD-1")
def test_an_answer_is_in_every_report_without_its_secrets_and_the_agent_learns_what_happened() -> None:
    scenario = (
        Scenario().interrupt_request("which database?", once=True).hang(once=True).say("thanks").result("ok")
    )
    task = Task.play(scenario, "--id", "it")
    task.wait_for("interrupted")
    has_left(task)
    secret = "ghp_" + "a1B2" * 9
    assert task.ask("resume", "-m", f"the test one, with {secret}").returncode == 0
    task.wait_for("completed")
    prompt = task.memory().starts()[-1].prompt
    assert "You asked a person, and were stopped until the answer came. You asked:" in prompt
    assert prompt.index("which database?") < prompt.index(f"the test one, with {secret}")
    (answer,) = task.manifest()["answers"]
    assert (answer["question"], answer["asked_by"]) == ("which database?", "agent")
    reports = {
        "manifest": json.dumps(task.manifest()),
        "show": task.ask("show").stdout,
        "events": task.ask("events").stdout,
        "audit": task.ask("audit").stdout,
        "report": holdfast("report").stdout,
        "summary": task.read("outputs", "_summary.md").decode(),
    }
    for name, text in reports.items():
        assert "the test one, with" in text, name
        assert secret not in text, name


@pytest.mark.req("INT-2", "SUP-13")
def test_an_error_that_an_agent_reports_asks_for_a_person() -> None:
    task = Task.shell(f'echo "the compiler is broken" > "$HOLDFAST_PACKET/state/error"; {kin.WAIT}', *EAGER)
    assert task.wait_for("interrupted")["interrupt"]["reason"] == "the compiler is broken"
    assert context(task)["interrupt_reason"] == "the compiler is broken"
    task.stop()


@pytest.mark.req("INT-2")
def test_blocked_work_asks_for_a_person() -> None:
    blocked = '{"status": "blocked", "progress": {"current_step": "waiting for the schema"}}'
    write = f"echo '{blocked}' > \"$HOLDFAST_PACKET/state/work.json\""
    task = Task.shell(f"test $HOLDFAST_RESUME_COUNT = 1 || {{ {write}; {kin.WAIT}}}", *EAGER)
    reason = task.wait_for("interrupted")["interrupt"]["reason"]
    assert reason == "the work is blocked: waiting for the schema"
    has_left(task)
    assert task.ask("resume").returncode == 0
    task.wait_for("completed")


@pytest.mark.req("INT-2", "SUP-13", "BUD-9")
def test_a_time_limit_asks_and_the_next_attempt_has_its_own_time() -> None:
    task = Task.shell("test $HOLDFAST_RESUME_COUNT = 1 || sleep 60", "--timeout", "1s")
    manifest = task.wait_for("interrupted")
    assert manifest["interrupt"]["reason"] == "the attempt exceeded its 1.0s limit"
    assert context(task)["attempt"] == 1
    assert task.events("attempt.ended")[0]["outcome"] == "timeout"
    has_left(task)
    assert task.ask("resume").returncode == 0
    task.wait_for("completed")


@pytest.mark.req("INT-5")
def test_a_time_limit_ends_the_task_if_so_configured() -> None:
    task = Task.shell("sleep 60", "--timeout", "1s", "--on-limit", "end")
    manifest = task.wait_for("abandoned")
    assert task.moves()[-2:] == ["timeout", "abandoned"]
    assert "its 1.0s limit" in manifest["abandon_reason"]
    assert not os.path.exists(mark(task))


@pytest.mark.req("INT-5")
def test_disabled_conditions_do_not_interrupt() -> None:
    loops.settings('interrupt_off = ["request", "timeout", "error", "blocked"]\n')
    # It asks, reports an error and is blocked, and continues anyway; the files stay.
    script = 'echo help > "$INTERRUPT_FILE"; echo bad > "$HOLDFAST_PACKET/state/error"; sleep 1'
    task = Task.shell(script, *EAGER)
    task.wait_for("completed")
    assert os.path.exists(mark(task))
    task = Task.shell("sleep 60", "--timeout", "1s")
    assert "interrupt_off has timeout" in task.wait_for("abandoned")["abandon_reason"]
    # A person still can.
    task = Task.shell("sleep 60", *EAGER)
    task.agent_pid()
    assert task.ask("interrupt", "-m", "wait").returncode == 0
    task.wait_for("interrupted")
    task.stop()


@pytest.mark.req("INT-5")
def test_the_poll_interval_of_a_harness_is_how_often_marks_are_looked_for() -> None:
    script = 'sleep 0.5; echo "which branch?" > "$INTERRUPT_FILE"; exec sleep 60'
    task = Task.shell(script, "--stale", "none", env={"INTERRUPT_CHECK_INTERVAL": "0.2"})
    assert task.wait_for("interrupted")["interrupt"]["reason"] == "which branch?"
    task.stop()


@pytest.mark.req("INT-5")
def test_an_unknown_condition_is_reported() -> None:
    loops.settings('interrupt_off = ["everything"]\n')
    done = holdfast("run", "-d", "--", "true")
    assert done.returncode == 2
    assert "interrupt_off: must be one of request, error" in done.stderr


def test_the_variable_of_a_harness_is_the_time_limit() -> None:
    task = Task.shell("sleep 60", env={"SESSION_TIMEOUT": "1"})
    assert "its 1.0s limit" in task.wait_for("interrupted")["interrupt"]["reason"]
    task.stop()


@pytest.mark.req("INT-2")
def test_a_budget_asks_and_who_resumes_grants_it_once_more() -> None:
    scenario = Scenario().say("one").say("two").say("three").hang(once=True).say("four").result("ok")
    task = Task.play(scenario, "--max-turns", "2", *EAGER)
    assert "more than 2 turns" in task.wait_for("interrupted")["interrupt"]["reason"]
    has_left(task)
    assert task.ask("resume", "-m", "go on").returncode == 0
    manifest = task.wait_for("completed", "interrupted")
    assert manifest["status"] == "completed", manifest["interrupt"]
    assert len(task.memory().starts()) == 2


# ── how it continues ──


@pytest.mark.req("INT-1")
@pytest.mark.usefixtures("with_keeper")
def test_taking_the_mark_away_resumes_and_nothing_else_does(home: str) -> None:
    task = Task.shell("test $HOLDFAST_RESUME_COUNT = 1 || sleep 60", *EAGER)
    task.agent_pid()
    assert task.ask("interrupt", "-m", "look at it").returncode == 0
    task.wait_for("interrupted")
    has_left(task)

    def parked() -> bool:
        loops.ring(home)
        return task.status() == "interrupted" and os.path.exists(mark(task))

    # Only a person resumes it: no timeout, no other keeper and no other `up` does.
    keepers.stays(parked, 0.5)
    keepers.kill(home)
    loops.up()
    keepers.stays(parked, 0.5)
    os.remove(mark(task))
    loops.ring(home)
    task.wait_for("completed")
    assert [event["by"] for event in task.events("request.applied")][-1] == "file"


@pytest.mark.req("INT-1")
@pytest.mark.usefixtures("with_keeper")
def test_a_mark_taken_away_while_no_keeper_lived_is_noticed_by_the_next(home: str) -> None:
    task = Task.shell("test $HOLDFAST_RESUME_COUNT = 1 || sleep 60", *EAGER)
    task.agent_pid()
    task.ask("interrupt")
    task.wait_for("interrupted")
    has_left(task)
    holdfast("down")
    os.remove(mark(task))
    loops.up()
    task.wait_for("completed")


@pytest.mark.req("INT-1")
def test_both_marks_have_to_go() -> None:
    marking = 'cd "$HOLDFAST_PACKET/state"; echo b > interrupt-request.txt; echo a > error; cd -'
    task = Task.shell(f"test $HOLDFAST_RESUME_COUNT = 1 || {{ {marking}; }}; {kin.WAIT}", *EAGER)
    # The question comes first: it can be answered.
    assert task.wait_for("interrupted")["interrupt"]["reason"] == "b"
    has_left(task)
    assert task.ask("resume").returncode == 0
    assert not os.path.exists(mark(task))
    assert not os.path.exists(task.path("state", "error"))
    task.stop()


@pytest.mark.req("INT-4", "PKT-16")
def test_the_work_item_is_kept_beside_the_question() -> None:
    progress = '{"progress":{"steps_completed":3,"steps_total":10,"current_step":"auth"}}'
    script = f"echo '{progress}' > \"$HOLDFAST_PACKET/state/work.json\"; {kin.WAIT}"
    task = Task.shell(script)
    eventually(lambda: os.path.exists(task.path("state", "work.json")))
    task.ask("interrupt")
    task.wait_for("interrupted")
    assert task.json("state", "interrupts", "1", "work.json")["progress"]["steps_completed"] == 3
    assert "3/10 auth" in task.read("state", "interrupts", "1", "summary.md").decode()
    task.stop()


@pytest.mark.req("INT-3")
@pytest.mark.usefixtures("with_keeper")
def test_people_are_notified_and_a_failing_notifier_stops_nothing(home: str) -> None:
    told = os.path.join(workspace(), "told.json")
    loops.settings(
        "[[notify]]\non = ['interrupted']\nto = 'command'\n"
        f"argv = ['sh', '-c', 'cat > {told}.new; mv {told}.new {told}']\n"
        "[[notify]]\non = ['interrupted']\nto = 'command'\nargv = ['false']\n"
    )
    task = Task.shell(kin.WAIT, *EAGER)
    task.agent_pid()
    task.ask("interrupt", "-m", "which one?")
    task.wait_for("interrupted")
    eventually(lambda: os.path.exists(told), what="the notice is delivered")
    with open(told, encoding="utf-8") as file:
        notice = json.load(file)
    assert (notice["event"], notice["task_id"], notice["reason"]) == ("interrupted", task.id, "which one?")
    task.stop()


@pytest.mark.req("SUP-15", "W-C5", "TST-5")
def test_a_stall_is_measured_by_progress_and_stops_the_agent() -> None:
    """The runner writes its heartbeat all the time; only the agent's own signs count."""
    task = Task.shell(
        "test $HOLDFAST_RESUME_COUNT = 1 || sleep 60",
        *("--base-interval", "0.1s", "--grace", "0.3s"),
        env={"STALL_THRESHOLD": "1"},
    )
    task.wait_for("completed")
    first = task.events("attempt.ended")[0]
    assert (first["outcome"], first["lived_s"] >= 1.3) == ("hung", True)
    assert task.manifest()["heartbeat"]["last_check"]
