"""holdfast top, driven by keys: what it shows of real tasks, and what it asks them to do."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable

import pytest
from textual.events import Key
from textual.pilot import Pilot
from textual.widgets import Input

from holdfast.store.layout import Home
from holdfast.testing import Scenario
from holdfast.views.tui import actions
from holdfast.views.tui.app import TopApp
from tests.support import kin
from tests.support.packets import Written
from tests.support.tasks import Task, holdfast, workspace
from tests.support.terminal import Terminal

Steps = Callable[["Screen"], Awaitable[None]]


class Screen:
    """The application under test, as a grid of characters."""

    def __init__(self, app: TopApp, pilot: Pilot[None]) -> None:
        self.app, self._pilot = app, pilot

    @property
    def lines(self) -> list[str]:
        strips = self.app.screen._compositor.render_strips()  # pyright: ignore[reportPrivateUsage]
        return ["".join(segment.text for segment in strip).rstrip() for strip in strips]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    async def press(self, *keys: str) -> None:
        await self._pilot.press(*keys)
        await self._pilot.pause()

    async def type(self, text: str) -> None:
        await self.press(*("space" if char == " " else char for char in text))

    async def click(self, column: int, line: int, *, times: int = 1) -> None:
        await self._pilot.click(offset=(column, line), times=times)
        await self._pilot.pause()

    async def until(self, text: str, within_s: float = 20.0) -> str:
        """Wait until the text is on the screen."""
        return await self.when(lambda: text in self.text, text, within_s)

    async def when(self, holds: Callable[[], bool], what: str, within_s: float = 20.0) -> str:
        ends_mono = time.monotonic() + within_s
        while not holds():
            assert time.monotonic() < ends_mono, f"not within {within_s:g} s: {what}\n{self.text}"
            await self._pilot.pause(0.02)
        return self.text


def drive(steps: Steps, *, columns: int = 100, lines: int = 24) -> None:
    """Run the application on a screen of this size, and the steps in it."""

    async def run() -> None:
        app = TopApp(Home(os.environ["HOLDFAST_HOME"]))
        async with app.run_test(size=(columns, lines), notifications=True) as pilot:
            screen = Screen(app, pilot)
            await screen.until("holdfast  ")
            await steps(screen)

    asyncio.run(run())


@pytest.fixture(autouse=True)
def in_a_home(home: str) -> None:
    workspace()


# ── the list ──


@pytest.mark.parametrize("columns", [80, 100, 160])
def test_it_shows_the_groups_of_ls(columns: int) -> None:
    done = Task.shell("echo all is well", "--id", "done")
    done.wait_for("completed")
    Task.shell("echo half way; " + kin.WAIT, "--id", "busy").wait_for("running")

    async def steps(screen: Screen) -> None:
        await screen.until("half way")
        lines = screen.lines
        working = lines.index("working (1)")
        assert lines[working + 1].startswith("busy")
        assert "running" in lines[working + 1]
        ended = lines.index("ended (1)")
        assert lines[ended + 1].startswith("done")
        assert lines[ended + 1].endswith("all is well")
        assert lines[1].startswith("TASK")
        assert all(len(line) <= columns for line in lines)

    drive(steps, columns=columns)
    kin.go()


def test_a_task_that_starts_and_ends_meanwhile_is_shown_in_its_group() -> None:
    async def steps(screen: Screen) -> None:
        await screen.until("working 0")
        task = await asyncio.to_thread(Task.shell, kin.WAIT, "--id", "new")
        await screen.until("working (1)")
        kin.go()
        await asyncio.to_thread(task.wait_for, "completed")
        await screen.until("ended (1)")
        assert "working (" not in screen.text

    drive(steps)


def test_headings_count_the_tasks_that_are_not_shown_as_ls_does(home: str) -> None:
    done = Task.shell("sleep 0.6", "--id", "done")
    done.wait_for("completed")
    for number in range(22):
        # Its runner removes the bell before it leaves.
        no_bell = shutil.ignore_patterns("bell")
        shutil.copytree(done.packet, os.path.join(home, "tasks", f"copy-{number}"), ignore=no_bell)
    Task.shell(kin.WAIT, "--id", "busy").wait_for("running")

    listed = holdfast("ls").stdout.splitlines()
    assert "ended (23, the last 20 shown)" in listed
    took = next(line for line in listed if line.startswith("done ")).split()[4]

    async def steps(screen: Screen) -> None:
        await screen.until("ended (23, the last 20 shown; A shows all)")
        assert "ended 23" in screen.lines[0]
        # A duration is the same in both.
        assert next(line for line in screen.lines if line.startswith("done ")).split()[3] == took
        # One that was not shown is gone: it counts no more.
        shutil.rmtree(os.path.join(home, "tasks", "copy-0"))
        await screen.until("ended (22, the last 20 shown; A shows all)")
        await screen.press("A")
        await screen.until("ended (22)")

    drive(steps, lines=40)
    kin.go()


def test_a_paused_queue_and_held_tasks_are_shown_in_their_order() -> None:
    Task.shell("exit 1", "--id", "bad", "--max-retries", "0").wait_for("failed")
    assert holdfast("queue", "pause").returncode == 0
    assert holdfast("submit", "--id", "second", "--", "true").returncode == 0
    assert holdfast("submit", "--id", "first", "--priority", "high", "--", "true").returncode == 0
    assert holdfast("submit", "--id", "stuck", "--after", "bad", "--", "true").returncode == 0

    async def steps(screen: Screen) -> None:
        await screen.until("needs you (2)")
        lines = screen.lines
        assert lines[1] == "the queue is paused; 'holdfast queue resume' continues"
        needs = lines.index("needs you (2)")
        assert lines[needs + 1].split()[:2] == ["stuck", "held"]
        assert lines[needs + 2].split()[:2] == ["bad", "failed"]
        queued = lines.index("queued (2)")
        assert [line.split()[0] for line in lines[queued + 1 : queued + 3]] == ["first", "second"]
        done = await asyncio.to_thread(holdfast, "queue", "resume")
        assert done.returncode == 0
        await screen.when(lambda: "the queue is paused" not in screen.text, "no pause")

    drive(steps)


def test_the_cursor_skips_headings_and_stays_on_its_task() -> None:
    for name in ("one", "two"):
        Task.shell("true", "--id", name).wait_for("completed")
    task = Task.shell(kin.WAIT, "--id", "busy")
    task.wait_for("running")

    async def steps(screen: Screen) -> None:
        tasks = screen.app.top.tasks
        await screen.when(lambda: tasks.selected == "busy", "the first task is selected")
        await screen.press("down")
        assert tasks.selected == "two"
        await screen.press("down", "down")
        assert tasks.selected == "one"
        await screen.press("home")
        assert tasks.selected == "busy"
        kin.go()
        await asyncio.to_thread(task.wait_for, "completed")
        await screen.until("ended (3)")
        assert tasks.selected == "busy"

    drive(steps)


def test_the_mouse_selects_and_opens_a_task_and_its_pages() -> None:
    for name in ("one", "two"):
        Task.shell("echo hi", "--id", name).wait_for("completed")

    async def steps(screen: Screen) -> None:
        await screen.until("ended (2)")
        at = next(at for at, line in enumerate(screen.lines) if line.startswith("one"))
        await screen.click(3, at)
        assert screen.app.top.tasks.selected == "one"
        await screen.click(3, at, times=2)
        await screen.until("1 log")
        tabs = next(at for at, line in enumerate(screen.lines) if "1 log" in line)
        await screen.click(screen.lines[tabs].index("events"), tabs)
        await screen.until("task.created")

    drive(steps)


def test_words_filter_the_list_and_escape_shows_all() -> None:
    for name in ("fix-login", "fix-logout", "docs"):
        Task.shell("true", "--id", name).wait_for("completed")

    async def steps(screen: Screen) -> None:
        await screen.until("ended (3)")
        await screen.press("slash")
        await screen.type("logi")
        await screen.until("ended (1)")
        assert "only: logi" in screen.text
        await screen.press("escape")
        await screen.until("ended (3)")

    drive(steps)


def test_a_filter_that_arrives_at_once_is_no_command() -> None:
    """As over a slow line, or pasted: each letter was a key of the list until the filter had the focus."""
    task = Task.shell("echo hi; sleep 120", "--id", "stairs")
    task.wait_for("running")

    async def steps(screen: Screen) -> None:
        await screen.until("stairs")
        for char in "/stairs":
            screen.app.post_message(Key("slash" if char == "/" else char, char))
        await screen.when(lambda: isinstance(screen.app.focused, Input), "the filter has the focus")
        assert "Stop stairs?" not in screen.text
        await screen.type("stairs")
        await screen.until("stairs")
        assert isinstance(screen.app.focused, Input)

    drive(steps)
    assert not task.events("stop.intended")
    task.stop()


def test_help_lists_the_keys_and_can_be_searched() -> None:
    async def steps(screen: Screen) -> None:
        await screen.press("question_mark")
        await screen.until("Interrupt")
        await screen.type("retr")
        await screen.when(lambda: "Answer" not in "\n".join(screen.lines[3:20]), "only one key is left")
        assert "Retry" in screen.text
        await screen.press("escape")

    drive(steps)


# ── one task ──


def test_it_opens_a_task_and_follows_its_log() -> None:
    task = Task.shell("echo first; " + kin.WAIT + "echo last", "--id", "it")
    task.wait_for("running")

    async def steps(screen: Screen) -> None:
        await screen.until("first")
        await screen.press("enter")
        await screen.until("1 log")
        await screen.until("first")
        kin.go()
        await screen.until("last")
        await screen.until("completed")
        await screen.press("2")
        await screen.until("attempt 1 of command_run")
        await screen.press("3")
        await screen.until("attempt.ended")
        await screen.press("4")
        await screen.when(lambda: "reading" not in screen.text, "the diff is read")
        await screen.press("5")
        await screen.until("no gate")
        await screen.press("escape")
        await screen.until("ended (1)")

    drive(steps)


def test_a_long_log_opens_at_its_end_and_loads_what_is_before() -> None:
    task = Task.shell("seq 1 60000", "--id", "it")
    task.wait_for("completed")

    async def steps(screen: Screen) -> None:
        await screen.press("enter")
        await screen.until("60000")
        ends_mono = time.monotonic() + 20
        while ["1"] not in [line.split()[:1] for line in screen.lines]:
            assert time.monotonic() < ends_mono, screen.text
            await screen.press("home")
        await screen.press("end")
        await screen.until("60000")
        await screen.press("slash")
        await screen.type("31415")
        await screen.press("enter")
        await screen.when(lambda: ["31415"] in [line.split()[:1] for line in screen.lines], "the match")

    drive(steps)


# ── asking ──


def test_a_task_is_stopped_after_a_question() -> None:
    task = Task.shell(kin.WAIT, "--id", "it")
    task.wait_for("running")

    async def steps(screen: Screen) -> None:
        await screen.until("working (1)")
        await screen.press("s")
        await screen.until("Stop it?")
        await screen.press("enter")  # not named there: it neither stops the task nor closes the question
        assert "Stop it?" in screen.text
        await screen.press("n")
        assert task.status() == "running"
        await screen.press("s")
        await screen.until("Stop it?")
        await screen.press("y")
        await asyncio.to_thread(task.wait_for, "killed")
        await screen.until("ended (1)")

    drive(steps)


def test_a_question_is_answered() -> None:
    task = Task.shell(kin.WAIT + "echo $HOLDFAST_ANSWER", "--id", "it")
    task.wait_for("running")
    assert holdfast("interrupt", "it", "-m", "which database?").returncode == 0

    async def steps(screen: Screen) -> None:
        await screen.until("needs you (1)")
        assert "which database?" in screen.text
        await screen.press("a")
        await screen.until("Answer it:")
        await screen.type("the test one")
        await screen.press("enter")
        await screen.until("working (1)")
        kin.go()
        await asyncio.to_thread(task.wait_for, "completed")
        assert "the test one" in task.log()

    drive(steps)


def test_a_limit_is_no_question_that_is_answered() -> None:
    task = Task.shell(kin.WAIT, "--id", "it", "--timeout", "0.2s", "--stop-pause", "1s")
    task.wait_for("interrupted")

    async def steps(screen: Screen) -> None:
        await screen.until("needs you (1)")
        await screen.press("a")
        await screen.until("Resume it?")

    drive(steps)


def test_an_answered_task_of_the_queue_says_what_it_waits_for(
    home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOLDFAST_KEEPER")
    done = holdfast("submit", "--id", "it", "--", "sh", "-c", kin.WAIT, cwd=workspace())
    assert done.returncode == 0, done.stderr
    task = Task(os.path.join(home, "tasks", "it"))
    task.wait_for("running")
    task.ask_patiently("interrupt", "-m", "which database?")
    task.wait_for("interrupted")
    assert holdfast("queue", "pause").returncode == 0
    told = actions.answer(Home(home), "it", "the test one")
    assert told == "it is queued: paused"
    assert holdfast("down", "--now").returncode == 0


def test_a_long_question_leaves_room_for_the_answer() -> None:
    task = Task.shell(kin.WAIT, "--id", "it")
    task.wait_for("running")
    question = "\n".join(f"line {number} of the question " + "x" * 60 for number in range(40))
    assert holdfast("interrupt", "it", "-m", question).returncode == 0

    async def steps(screen: Screen) -> None:
        await screen.until("needs you (1)")
        await screen.press("a")
        await screen.until("enter: send")
        assert "│ line 0 of the question" in screen.text
        assert "│ line 1 of the question" in screen.text, "a line of its own"
        assert "the agent gets this text" in screen.text
        await screen.press("escape")
        kin.go()

    drive(steps, columns=80)
    task.stop()


@pytest.mark.parametrize(
    ("key", "sign", "ends"), [("a", "Approve it?", "completed"), ("x", "Reject", "killed")]
)
def test_a_stage_is_approved_or_rejected(key: str, sign: str, ends: str) -> None:
    packet = Written({"scripted_brief": None, "scripted_impl": None}, approval=["scripted_impl"])
    assert holdfast("run", "--packet", packet.path, cwd=packet.project.path).returncode == 4
    task = Task(os.path.join(os.environ["HOLDFAST_HOME"], "tasks", packet.task_id))

    async def steps(screen: Screen) -> None:
        await screen.until("needs you (1)")
        await screen.press(key)
        await screen.until(sign)
        assert "the agent gets this text" not in screen.text, "no agent gets it when the task ends"
        await screen.press("enter")
        await asyncio.to_thread(task.wait_for, ends, within_s=60)

    drive(steps)
    assert len(task.events("approval.given")) == (key == "a")


def test_an_ended_task_is_retried_and_a_refusal_is_shown() -> None:
    task = Task.shell("test -e go", "--id", "it", "--max-retries", "0")
    task.wait_for("failed")
    kin.go()

    async def steps(screen: Screen) -> None:
        await screen.until("needs you (1)")
        await screen.press("r")
        await screen.until("Run it again?")
        await screen.press("enter")
        await asyncio.to_thread(task.wait_for, "completed")
        await screen.until("completed")
        await screen.press("r")
        await screen.until("Run it again?")
        await screen.press("enter")
        await screen.until("cannot retry it")

    drive(steps)


# ── damage ──


def test_what_an_agent_prints_cannot_reach_the_terminal() -> None:
    hostile = r"\033[2J\033]0;owned\007<b>html</b> \302\233 [red]markup[/red] \342\200\256rtl\n"
    task = Task.shell(
        f"printf '{hostile}'; head -c 3000000 /dev/zero | tr '\\0' x; " + kin.WAIT, "--id", "it"
    )
    task.wait_for("running")

    async def steps(screen: Screen) -> None:
        for key in ("enter", "2", "3", "5", "1"):
            await screen.press(key)
        await screen.until("[red]markup[/red]")
        assert screen.text.replace("\n", "").isprintable()
        await screen.press("escape")
        assert screen.text.replace("\n", "").isprintable()

    drive(steps)
    kin.go()


def test_a_damaged_packet_is_one_bad_row_and_a_lost_home_no_traceback() -> None:
    good = Task.shell("true", "--id", "good")
    good.wait_for("completed")
    bad = Task.shell("true", "--id", "bad")
    bad.wait_for("completed")

    async def steps(screen: Screen) -> None:
        await screen.until("ended (2)")
        for name in ("manifest.json", "events.jsonl"):
            with open(bad.path(name), "w", encoding="utf-8") as file:
                file.write('{"status": 3}')
        shutil.rmtree(bad.path("done"))
        await screen.until("needs you (1)", within_s=60)
        await screen.press("home", "enter", "2", "3", "4", "5", "1", "escape")
        shutil.rmtree(os.path.join(os.environ["HOLDFAST_HOME"], "tasks"))
        await screen.until("ended 0", within_s=60)

    drive(steps)


# ── the command ──


def test_q_quits_and_the_terminal_is_as_before() -> None:
    Task.shell("true", "--id", "it").wait_for("completed")
    terminal = Terminal("top", columns=100, env={"TERM": "xterm-256color"})
    terminal.read_until("ended (1)")
    terminal.press("q")
    assert terminal.finish() == 0
    assert "\x1b[?1049l" in terminal.output.decode(errors="replace")  # the other screen is left


STUCK = """
import time
from textual.drivers.linux_driver import LinuxDriver
LinuxDriver.disable_input = lambda self: time.sleep(600)
from holdfast.__main__ import main
main()
"""


def test_q_quits_even_if_the_thread_of_the_keyboard_never_ends() -> None:
    """Textual waits for it, and it for a terminal."""
    Task.shell("true", "--id", "it").wait_for("completed")
    terminal = Terminal("top", columns=100, env={"TERM": "xterm-256color"}, python=("-c", STUCK))
    try:
        terminal.read_until("ended (1)")
        terminal.press("q")
        assert terminal.finish(within_s=20) == 0
    finally:
        terminal.kill()
    assert "\x1b[?1049l" in terminal.output.decode(errors="replace")


def test_t_takes_over_in_the_whole_terminal_and_comes_back() -> None:
    scenario = Scenario().say("at work").hang(once=True).say("thanks").result("ok")
    task = Task.play(scenario, "--id", "it", "--base-interval", "0.2s", "--stale", "none")
    task.wait_for_log("at work")
    terminal = Terminal("top", columns=100, env={"TERM": "xterm-256color"})
    try:
        terminal.read_until("working (1)")
        terminal.press("T")
        terminal.read_until("after 1 processes")
        terminal.press("exit\n")
        terminal.read_until("Message for the agent")
        terminal.press("go on\n")
        task.wait_for("completed")
        terminal.read_until("ended (1)")
        terminal.press("q")
        assert terminal.finish() == 0
    finally:
        terminal.kill()
    assert "go on" in task.memory().starts()[1].prompt


def test_without_a_terminal_it_names_ls() -> None:
    done = holdfast("top")
    assert done.returncode == 2
    assert "'holdfast ls'" in done.stderr


def test_without_textual_it_says_what_to_install(tmp_path: str) -> None:
    code = (
        "import sys; sys.modules['textual'] = None; sys.stdin = sys.stdout = sys.stderr; "
        "from holdfast.errors import NotPossible\n"
        "from holdfast.views.cli.commands import top\n"
        "sys.stderr.isatty = lambda: True\n"
        "try: top.run({})\n"
        "except NotPossible as error: print(error, error.hint, file=sys.__stdout__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "TERM": "xterm"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert f"{sys.executable} -P -m pip install 'textual<9,>=8'" in done.stdout, done.stderr
