"""holdfast attach and the tmux window: they show a task and cannot harm it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from holdfast import paths
from holdfast.store.layout import Home
from holdfast.views.tmux import Server, TmuxError
from tests.support import processes
from tests.support.tasks import Task, holdfast
from tests.support.terminal import Terminal
from tests.support.tools import need
from tests.support.waiting import eventually

#: Prints words that are not in its command line, which the view shows too; then waits for a file.
SCRIPT = "printf 'first %s\\n' words; while [ ! -e go ]; do sleep 0.05; done; printf 'last %s\\n' words"


def let_go(task: Task) -> None:
    with open(os.path.join(task.manifest()["project_dir"], "go"), "w", encoding="utf-8"):
        pass


@pytest.fixture
def tmux(home: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """The home's tmux server, with a private TMUX_TMPDIR."""
    need("tmux")
    folder = os.path.join(os.path.dirname(home), "tmux")
    os.mkdir(folder, 0o700)
    monkeypatch.setenv("TMUX_TMPDIR", folder)
    server = Server(Home(home))
    yield server
    kill_server(server)


def kill_server(server: Server) -> None:
    subprocess.run(["tmux", "-S", server.socket, "kill-server"], capture_output=True, timeout=10, check=False)


def titles(server: Server) -> list[str]:
    """The name of each window, whether it sets the title of the terminal, and to what."""
    words = ["list-windows", "-a", "-F", "#{window_name} #{set-titles} #{set-titles-string}"]
    done = subprocess.run(["tmux", "-S", server.socket, *words], capture_output=True, timeout=10, check=True)
    return [line.replace(" 1 ", " on ") for line in done.stdout.decode().splitlines()]


@pytest.mark.req("RES-8")
@pytest.mark.usefixtures("home")
class TestWithoutTmux:
    def test_shows_the_past_follows_and_ends_with_the_tasks_exit_status(self) -> None:
        task = Task.shell(f"{SCRIPT}; exit 3", "--max-retries", "0")
        task.wait_for_log("first words")
        view = attach(task)
        assert read_line(view) == "first words"
        let_go(task)
        output, talk = view.communicate(timeout=20)
        assert output == "last words\n"
        assert task.id in talk
        assert "running" in talk
        assert "failed" in talk
        assert view.returncode == 1

    def test_a_queued_one_says_until_when(self) -> None:
        assert holdfast("submit", "--id", "it", "--not-before", "+2h", "--", "true").returncode == 0
        view = Terminal("attach", "--no-tmux", "it", columns=100)
        view.read_until("not before ")
        view.press("\x03")
        assert view.finish() == 130
        view = subprocess.Popen(
            [sys.executable, "-m", "holdfast", "attach", "it"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert view.stderr is not None
            view.stderr.readline()
            assert "it: queued (command_run): not before " in view.stderr.readline()
        finally:
            view.kill()
            view.communicate(timeout=10)

    def test_a_held_one_says_so_and_ends_it_with_4(self) -> None:
        Task.shell("exit 1", "--id", "first", "--max-retries", "0").wait_for("failed")
        assert holdfast("submit", "--id", "second", "--after", "first", "--", "true").returncode == 0
        done = holdfast("attach", "second")
        assert done.returncode == 4
        talk = " ".join(done.stderr.split())
        assert "second is held: first failed; 'holdfast retry first'" in talk
        assert "'holdfast queue retry second'" in talk

    def test_an_ended_task_is_shown_and_left(self) -> None:
        task = Task.shell("seq 100")
        task.wait_for("completed")
        done = holdfast("attach", "-n", "3", task.id[:-1])
        assert done.returncode == 0
        assert done.stdout == "98\n99\n100\n"
        assert "completed" in done.stderr
        assert len(holdfast("attach", task.id).stdout.splitlines()) == 40

    def test_the_end_of_a_failed_one_is_shown_once(self) -> None:
        task = Task.shell("seq 3; exit 3", "--max-retries", "0")
        task.wait_for("failed")
        done = holdfast("attach", task.id)
        assert (done.returncode, done.stdout) == (1, "1\n2\n3\n")
        assert "failed, exit code 3" in done.stderr
        assert "| 3" not in done.stderr

    def test_an_interrupted_task_ends_it_with_4(self) -> None:
        task = Task.shell(SCRIPT, "--stop-pause", "1s")
        task.agent_pid()
        view = attach(task)
        assert task.ask("interrupt", "-m", "which one?").returncode == 0
        _, talk = view.communicate(timeout=20)
        assert view.returncode == 4
        assert "was interrupted: which one?" in talk
        task.stop()

    def test_ctrl_c_leaves_the_task_alone(self) -> None:
        task = Task.shell(SCRIPT)
        task.wait_for_log("first words")
        view = attach(task)
        assert read_line(view) == "first words"
        view.send_signal(signal.SIGINT)
        _, talk = view.communicate(timeout=20)
        assert view.returncode == 130
        assert f"holdfast attach {task.id}" in talk
        assert task.status() == "running"
        let_go(task)
        task.wait_for("completed")

    def test_half_a_line_is_shown_at_the_end(self) -> None:
        task = Task.shell("printf 'no newline'")
        task.wait_for("completed")
        assert holdfast("attach", task.id).stdout == "no newline\n"

    def test_wrong_words_are_2_and_an_unknown_task_is_3(self) -> None:
        done = holdfast("attach", "nobody")
        assert done.returncode == 3
        assert "hint: " in done.stderr
        assert holdfast("attach").returncode == 2
        task = Task.shell("true")
        task.wait_for("completed")
        done = holdfast("attach", task.id, "-n", "many")
        assert done.returncode == 2
        assert "--lines: not a whole number: 'many'" in done.stderr

    def test_help_has_examples(self) -> None:
        done = holdfast("attach", "--help")
        assert done.returncode == 0
        assert "holdfast attach 20260131-fix" in done.stdout


def attach(task: Task) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "holdfast", "attach", "--no-tmux", task.id],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def read_line(view: subprocess.Popen[str]) -> str:
    assert view.stdout is not None
    return view.stdout.readline().rstrip("\n")


@pytest.mark.req("RES-8", "OUT-11")
class TestTmux:
    def test_run_opens_the_window_and_the_pane_can_be_captured(self, tmux: Server) -> None:
        task = Task.shell(SCRIPT, "--tmux")
        assert tmux.sessions() == [f"holdfast-{task.id}"] == [task.manifest()["session_name"]]
        eventually(lambda: "first words" in tmux.capture(task.id), what="the pane shows the log")
        eventually(lambda: "running" in tmux.capture(task.id), what="the pane shows the state")
        assert titles(tmux) == [f"{task.id} on holdfast: #W"]
        let_go(task)
        task.wait_for("completed")
        eventually(lambda: not tmux.has(task.id), what="the window closes with the task")

    def test_killing_the_tmux_server_changes_nothing_for_the_task(self, tmux: Server) -> None:
        task = Task.shell(SCRIPT, "--tmux")
        agent, runner = task.agent_pid(), task.runner_pid()
        assert tmux.has(task.id)
        kill_server(tmux)
        eventually(lambda: not tmux.sessions(), what="tmux is gone")
        assert not tmux.has(task.id)
        assert processes.is_alive(agent)
        assert processes.is_alive(runner)
        let_go(task)
        task.wait_for("completed")
        assert task.manifest()["attempt"] == 1

    def test_closing_the_window_changes_nothing_for_the_task(self, tmux: Server) -> None:
        task = Task.shell(SCRIPT, "--tmux")
        agent = task.agent_pid()
        tmux.close(task.id)
        assert not tmux.has(task.id)
        tmux.close(task.id)  # closing twice is fine
        assert processes.is_alive(agent)
        let_go(task)
        task.wait_for("completed")

    def test_a_server_without_windows_has_no_window(self, tmux: Server) -> None:
        """A server that has lost its last window answers for a moment longer, with another message."""
        argv = [
            "tmux",
            "-S",
            tmux.socket,
            "-f",
            os.devnull,
            "start-server",
            ";",
            "set",
            "-g",
            "exit-empty",
            "off",
        ]
        subprocess.run(argv, timeout=10, check=True)
        assert not tmux.has("it")
        tmux.close("it")

    def test_the_setting_opens_it_without_the_flag(self, tmux: Server) -> None:
        folder = os.path.join(os.environ["HOME"], ".config", "holdfast")
        os.makedirs(folder)
        with open(os.path.join(folder, "config.toml"), "w", encoding="utf-8") as file:
            file.write('tmux = "always"\n')
        task = Task.shell(SCRIPT)
        assert tmux.has(task.id)
        let_go(task)
        task.wait_for("completed")

    def test_down_now_leaves_neither_window_nor_socket(self, tmux: Server) -> None:
        task = Task.shell(SCRIPT, "--tmux", "--stop-pause", "1s")
        task.wait_for_log("first words")
        eventually(lambda: tmux.has(task.id), what="the window")
        assert holdfast("down", "--now").returncode == 0
        task.wait_for("interrupted")
        assert not os.path.lexists(tmux.socket)
        assert tmux.sessions() == []

    def test_a_window_stays_while_the_task_waits_for_a_person(self, tmux: Server) -> None:
        task = Task.shell(SCRIPT, "--tmux", "--stop-pause", "1s")
        task.agent_pid()
        assert task.ask("interrupt", "-m", "which one?").returncode == 0
        task.wait_for("interrupted")
        eventually(lambda: "interrupted" in tmux.capture(task.id), what="the pane says so")
        task.stop()
        eventually(lambda: not tmux.has(task.id), what="the window closes with the task")

    def test_ids_with_dots_have_names_of_their_own(self, tmux: Server) -> None:
        tasks = [Task.shell(SCRIPT, "--tmux", "--id", name) for name in ("a.b", "a_b")]
        assert len(tmux.sessions()) == 2
        assert all(tmux.has(task.id) for task in tasks)
        let_go(tasks[0])
        for task in tasks:
            task.wait_for("completed")

    def test_two_homes_have_two_servers(self, tmux: Server) -> None:
        assert Server(Home("/somewhere/else")).socket != tmux.socket

    def test_the_socket_is_beside_the_settings_and_nothing_is_left_elsewhere(self, tmux: Server) -> None:
        task = Task.shell(SCRIPT, "--tmux")
        assert os.path.dirname(tmux.socket) == paths.trust_dir()
        assert os.stat(tmux.socket).st_mode & 0o077 == 0
        let_go(task)
        task.wait_for("completed")
        eventually(lambda: not tmux.sessions(), what="the window closes with the task")
        assert os.listdir(os.environ["TMUX_TMPDIR"]) == []
        # A stale socket does no harm.
        again = Task.shell(SCRIPT, "--tmux")
        assert tmux.sessions() == [f"holdfast-{again.id}"]
        again.wait_for("completed")

    def test_settings_with_a_long_path_have_the_socket_beside_them_too(
        self, tmux: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        home = os.path.join(os.path.dirname(tmux.home.path), "h" * 100)
        monkeypatch.setenv("HOLDFAST_HOME", home)
        monkeypatch.setenv("XDG_CONFIG_HOME", os.path.join(os.environ["HOME"], "c" * 100))
        runtime = os.path.join(os.environ["HOME"], "run")
        os.mkdir(runtime, 0o700)
        monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
        task = Task.shell(SCRIPT, "--tmux", "--stop-pause", "1s")
        server = Server(Home(home))
        try:
            assert server.has(task.id)
            task.wait_for_log("first words")
            eventually(lambda: "first words" in server.capture(task.id), what="the pane shows its log")
            assert os.stat(server.home.tmux_socket).st_mode & 0o077 == 0
            view = Terminal("attach", task.id)
            view.read_until("first words")
            assert view.detach() == 0
            assert holdfast("down", "--now").returncode == 0
            assert not os.path.lexists(server.home.tmux_socket)
            assert server.sessions() == []
        finally:
            server.shut()
        for folder in (runtime, os.environ["TMPDIR"], os.environ["TMUX_TMPDIR"]):
            assert os.listdir(folder) == []

    def test_a_tmux_that_fails_is_an_error_with_its_command_never_an_empty_list(
        self, tmux: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder = os.path.join(os.environ["HOME"], "bin")
        os.mkdir(folder)
        path = os.path.join(folder, "tmux")
        with open(path, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\necho 'lost the plot' >&2\nexit 1\n")
        os.chmod(path, 0o755)
        monkeypatch.setenv("PATH", folder, prepend=":")
        for ask, command in (
            (tmux.sessions, "list-sessions"),
            (lambda: tmux.has("x"), "has-session"),
            (lambda: tmux.open("x", ["true"]), "new-session"),
            (lambda: tmux.capture("x"), "capture-pane"),
            (lambda: tmux.close("x"), "kill-session"),
        ):
            with pytest.raises(TmuxError, match=f"tmux {command} failed: lost the plot"):
                ask()
        # The task runs anyway, with a warning.
        done = holdfast("run", "-d", "--tmux", "--", "true")
        assert done.returncode == 0
        assert "warning: cannot open a window: tmux new-session failed: lost the plot" in done.stderr
        Task(os.path.join(tmux.home.tasks, done.stdout.strip())).wait_for("completed")

    def test_attach_in_a_terminal_is_the_window_and_detaching_leaves_it(self, tmux: Server) -> None:
        task = Task.shell(SCRIPT)
        task.wait_for_log("first words")
        terminal = Terminal("attach", task.id)
        terminal.read_until("first words")
        assert tmux.has(task.id)
        assert terminal.detach() == 0
        assert f"holdfast attach {task.id}" in terminal.text
        assert tmux.has(task.id)
        assert task.status() == "running"
        terminal = Terminal("attach", task.id)
        terminal.read_until("first words")
        let_go(task)
        assert terminal.finish() == 0  # the task's own
        task.wait_for("completed")

    @pytest.mark.parametrize("env", [{"TERM": "dumb"}, {"TMUX": "/somewhere,1,0"}])
    def test_on_a_dumb_terminal_and_inside_tmux_the_view_is_in_place(
        self, tmux: Server, env: dict[str, str]
    ) -> None:
        task = Task.shell(SCRIPT)
        task.wait_for_log("first words")
        terminal = Terminal("attach", task.id, env=env)
        terminal.read_until("first words\r\n")
        if "TMUX" in env:
            terminal.read_until("\x1b[7mrunning")  # the line below the log
        terminal.press("\x03")
        assert terminal.finish() == 130
        assert ("\x1b[7m" in terminal.text) == ("TMUX" in env)  # nothing is drawn on a dumb terminal
        assert tmux.sessions() == []
        let_go(task)
        task.wait_for("completed")
