"""An agent that crashes is resumed."""

from __future__ import annotations

import os
import signal
import time

import pytest

from holdfast.agents import endings
from holdfast.testing import Scenario
from tests.support.tasks import Task
from tests.support.waiting import eventually


@pytest.mark.req("W-A1", "TST-3", "TST-7", "RES-4", "RES-5", "SUP-13", "SUP-16", "W-A4", "W-A6")
def test_a_sigkilled_agent_is_resumed_in_the_same_session(home: str) -> None:
    scenario = Scenario().fail_if_running().write("one.txt", "1").hang(once=True).write("two.txt", "2")
    task = Task.play(scenario, prompt="write two files")
    eventually(
        lambda: "steps[2]" in task.memory().begun_steps(), what="the agent is busy", journal=task.packet
    )
    os.kill(task.agent_pid(), signal.SIGKILL)
    manifest = task.wait_for("completed")

    first, second = task.memory().starts()
    assert (first.is_resume, second.is_resume) == (False, True)
    assert first.cwd == second.cwd
    assert first.prompt == "write two files"
    assert "killed by signal 9" in second.prompt
    # It continued after the step at which it died: the first file was written once.
    assert [effect["path"] for effect in task.memory().effects()] == ["one.txt", "two.txt"]
    assert task.memory().overlaps() == []
    assert (manifest["attempt"], manifest["total_retries"], manifest["exit_code"]) == (2, 1, 0)
    ended = task.events("attempt.ended")
    assert [(e["outcome"], e["exit_signal"], e["exit_code"]) for e in ended] == [
        ("crashed", signal.SIGKILL, 137),
        ("success", None, 0),
    ]
    assert task.moves()[:4] == ["running", "crashed", "spawning", "running"]
    # Both attempts left the same kinds of record.
    records = [sorted(os.listdir(path)) for path in task.attempts()]
    assert records[0] == records[1]


@pytest.mark.req("RES-4", "RES-5")
def test_a_killed_command_is_run_again_and_knows_it(home: str) -> None:
    script = 'echo "count $HOLDFAST_RESUME_COUNT"; [ "$HOLDFAST_RESUME_COUNT" = 1 ] || kill -KILL $$'
    task = Task.shell(script)
    manifest = task.wait_for("completed")
    marks = ["--- attempt 1 ended: crashed: killed by signal 9 ---", "--- attempt 2 (again) ---"]
    assert task.log().splitlines() == ["count 0", *marks, "count 1"]
    assert [event["mode"] for event in task.events("attempt.opened")] == ["fresh", "again"]
    argv = [task.json(path, "argv.json")["argv"] for path in task.attempts()]
    assert argv == [["sh", "-c", script]] * 2
    assert manifest["total_retries"] == 1


@pytest.mark.req("SUP-16")
def test_an_early_death_is_early_also_if_it_is_noticed_late(
    home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lifetime ends with its exit, not when a runner notices."""
    monkeypatch.setenv("HOLDFAST_FAILPOINT", "step.open_attempts=kill")
    task = Task.shell("echo 'no key' >&2; exit 3")
    monkeypatch.delenv("HOLDFAST_FAILPOINT")
    exited = os.path.join(eventually(task.attempts, what="there is an attempt")[0], "exit.json")
    eventually(lambda: os.path.exists(exited), what="the agent has ended")
    eventually(lambda: time.time() - os.stat(exited).st_mtime > endings.EARLY_S, what="that is long ago")
    task.start_runner()
    detail = task.wait_for_event("attempt.ended")["detail"]
    assert "after its start: no key" in detail
    task.wait_for("failed")


@pytest.mark.req("SUP-16", "W-A6")
def test_exit_0_without_a_result_is_no_success(home: str) -> None:
    """Several CLIs exit 0 when they failed, or when they were told to end."""
    task = Task.play(Scenario().say("hm").exit(0, once=True).result("now really"))
    manifest = task.wait_for("completed")
    first, second = task.events("attempt.ended")
    assert (first["outcome"], first["exit_code"]) == ("crashed", 0)
    assert "without a result" in first["detail"]
    assert second["outcome"] == "success"
    assert manifest["total_retries"] == 1
    assert [start.is_resume for start in task.memory().starts()] == [False, True]


@pytest.mark.req("SUP-13", "SUP-16", "TST-3")
def test_a_command_that_exits_with_an_error_has_failed(home: str) -> None:
    task = Task.shell("echo trouble >&2; exit 7")
    manifest = task.wait_for("failed")
    assert (manifest["exit_code"], manifest["total_retries"], manifest["attempt"]) == (7, 0, 1)
    assert task.read("attempts", "001-command_run", "exit_code") == b"7\n"
    assert task.ask("wait").returncode == 1
    assert not os.path.exists(task.path("done", "command_run.done"))


@pytest.mark.req("SUP-10")
def test_an_end_is_noticed_at_once(home: str) -> None:
    """Noticed through the kernel, not at the next check, which would be half a minute later."""
    task = Task.shell("sleep 60")
    pid = task.agent_pid()
    os.kill(pid, signal.SIGKILL)
    ended = task.wait_for_event("attempt.ended", within_s=3)
    assert (ended["outcome"], ended["by"]) == ("crashed", "recorder")
    task.stop()


@pytest.mark.req("LCH-7", "SUP-13")
def test_an_agent_that_kills_its_whole_process_group_does_not_reach_its_recorder(home: str) -> None:
    task = Task.shell("[ $HOLDFAST_RESUME_COUNT = 1 ] || kill -KILL 0")
    task.wait_for("completed")
    assert [(event["exit_code"], event["by"]) for event in task.events("attempt.ended")] == [
        (137, "recorder"),
        (0, "recorder"),
    ]


@pytest.mark.req("W-A4", "LCH-7", "W-C2")
def test_the_recorded_pid_is_the_agents_own(home: str) -> None:
    task = Task.start("--", "sleep", "60")
    pid = task.agent_pid()
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        assert file.read() == b"sleep\x0060\x00"
    assert task.read("attempts", "001-command_run", "pid") == b"%d\n" % pid
    assert task.json("attempts", "001-command_run", "identity.json")["pid"] == pid
    task.stop()
    ended = task.events("attempt.ended")[0]
    assert (ended["exit_signal"], ended["by"]) == (signal.SIGTERM, "recorder")


@pytest.mark.parametrize(
    ("retries", "said"), [(0, "no retries are allowed"), (1, "its one retry is used up")]
)
def test_the_reason_of_an_end_counts_retries_as_people_do(home: str, retries: int, said: str) -> None:
    task = Task.shell("kill -9 $$", "--max-retries", str(retries), "--base-interval", "0.05s")
    assert task.wait_for("abandoned")["status_reason"].startswith(f"{said}; the last failure: ")
