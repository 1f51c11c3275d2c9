"""holdfast config, and the effect of settings on a task."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys

import pytest

from holdfast.errors import HoldfastError
from tests.support.tasks import Task, holdfast, trust, workspace


def write(path: str, text: str) -> str:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def user_file(text: str) -> str:
    return write(os.path.join(os.environ["HOME"], ".config", "holdfast", "config.toml"), text)


def project_file(text: str) -> str:
    path = write(os.path.join(workspace(), ".holdfast", "config.toml"), text)
    with contextlib.suppress(HoldfastError):  # some tests are about invalid files
        trust(workspace())
    return path


def show() -> dict[str, dict[str, object]]:
    done = holdfast("config", "show", "--json", cwd=workspace())
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert data["schema"] == "holdfast.config/1"
    return data["settings"]


@pytest.mark.usefixtures("home")
class TestShow:
    def test_without_files_everything_is_a_default(self) -> None:
        settings = show()
        assert {setting["from"] for setting in settings.values()} == {"default"}
        assert settings["base_interval"]["value"] == "30s"
        assert settings["deadline"]["value"] == "5h"
        assert settings["tmux"]["value"] == "auto"

    def test_environment_beats_project_beats_user_beats_default(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        user = user_file('grace = "1s"\nmax_interval = "2s"\nbase_interval = "3s"\n')
        project = project_file('max_interval = "4s"\nbase_interval = "5s"\n')
        monkeypatch.setenv("MONITOR_BASE_INTERVAL", "6s")
        settings = show()
        assert settings["grace"] == {"value": "1s", "from": "user", "where": user}
        assert settings["max_interval"] == {"value": "4s", "from": "project", "where": project}
        assert settings["base_interval"] == {
            "value": "6s",
            "from": "environment",
            "where": "MONITOR_BASE_INTERVAL",
        }
        assert settings["max_retries"]["from"] == "default"

    def test_plain_output_names_value_and_place(self) -> None:
        user = user_file("max_retries = 3\n")
        done = holdfast("config", "show", cwd=workspace())
        line = next(line for line in done.stdout.splitlines() if line.startswith("max_retries"))
        assert line.split() == ["max_retries", "3", "user"]
        assert done.stdout.splitlines()[-1].split() == ["user", user]

    def test_a_long_path_does_not_break_the_table(self) -> None:
        user_file("max_retries = 3\n")
        lines = holdfast("config", "show", cwd=workspace(), env={"COLUMNS": "80"}).stdout.splitlines()
        assert lines[0].split() == ["SETTING", "VALUE", "FROM"]
        assert [line for line in lines if line.startswith(" ")] == []

    def test_path_names_both_files_and_whether_they_are_there(self) -> None:
        user = user_file("")
        done = holdfast("config", "path", cwd=workspace())
        assert f"user     {user}\n" in done.stdout
        assert "project" in done.stdout
        assert "(not found)" in done.stdout
        rows = json.loads(holdfast("config", "path", "--json", cwd=workspace()).stdout)
        assert rows["schema"] == "holdfast.config-path/1"
        assert [(row["of"], row["exists"]) for row in rows["files"]] == [("project", False), ("user", True)]


@pytest.mark.usefixtures("home")
class TestErrors:
    @pytest.mark.parametrize(
        ("text", "message", "hint"),
        [
            ('dedline = "1h"\n', "unknown setting 'dedline'", "did you mean 'deadline'?"),
            (
                "deadline = [1]\n",
                "or a number of seconds, not a list",
                "deadline =",
            ),
            ('grace = "soon"\n', "grace: not a duration: 'soon'", "grace ="),
            ('grace = "none"\n', "grace: not a duration: 'none'", "grace ="),
            ("grace = true\n", "not a boolean", "grace ="),
            ("max_retries = 2.5\n", "max_retries: must be an integer of 0 or more", "max_retries = 10"),
            ("max_retries = -1\n", "max_retries: must be an integer of 0 or more", "max_retries = 10"),
            ("slots = 0\n", "slots: must be an integer of 1 or more, not 0", "slots = 10"),
            ("zzz = 0\n", "unknown setting 'zzz'", "hint: 'holdfast config --help' lists all settings"),
            ("agnet = 0\n", "unknown setting 'agnet'", "hint: did you mean 'agent'?"),
            ("workers = 3\n", "unknown setting 'workers'", "hint: did you mean 'slots'?"),
            ('output_limit = "big"\n', "output_limit: not a size: 'big'", "output_limit ="),
            ('tmux = "sometimes"\n', "tmux: must be one of always, never, auto", "tmux ="),
            ('env = "HOME"\n', "env: must be a list of strings", "env ="),
            ("agent = 3\n", "agent: must be a string", "agent ="),
            ("deadline = \n", "is not valid TOML", "one setting per line"),
            (
                "[deadline]\nx = 1\n",
                "or a number of seconds, not a table",
                "=",
            ),
        ],
    )
    def test_a_wrong_file_is_named_with_what_is_allowed(self, text: str, message: str, hint: str) -> None:
        path = user_file(text)
        for words in (("config", "show"), ("run", "-d", "--", "true")):
            done = holdfast(*words, cwd=workspace())
            assert done.returncode == 2
            assert path in done.stderr
            assert message in done.stderr
            assert hint in done.stderr
        assert holdfast("ls", "-q").stdout == ""  # nothing was created

    def test_an_unreadable_file_is_an_error(self) -> None:
        path = user_file("")
        os.unlink(path)
        os.mkdir(path)
        done = holdfast("config", "show")
        assert done.returncode == 2
        assert f"cannot read the settings {path}" in done.stderr

    def test_a_value_that_run_refuses_names_the_file(self) -> None:
        path = user_file("base_interval = 0\n")
        done = holdfast("run", "-d", "--", "true", cwd=workspace())
        assert done.returncode == 2
        assert f"{path}: base_interval must be more than zero" in done.stderr

    def test_an_action_is_needed_and_must_be_known(self) -> None:
        assert holdfast("config").returncode == 2
        done = holdfast("config", "sow")
        assert done.returncode == 2
        assert "show" in done.stderr

    def test_help_has_examples(self) -> None:
        done = holdfast("config", "--help")
        assert done.returncode == 0
        assert "holdfast config show" in done.stdout


@pytest.mark.usefixtures("home")
class TestTasks:
    def test_limits_of_a_task_come_from_flag_environment_project_user_in_this_order(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        user_file(
            'grace = 1\nmax_interval = "2s"\nbase_interval = "3s"\ndeadline = "none"\nmax_retries = 0\n'
        )
        project_file('max_interval = "4s"\nbase_interval = "5s"\noutput_limit = "1MiB"\nleftovers = "keep"\n')
        monkeypatch.setenv("MONITOR_MAX_INTERVAL", "7s")
        task = Task.start("--base-interval", "8s", "--", "true")
        spec = task.events("task.created")[0]["spec"]
        limits = spec["limits"]
        assert limits["grace_s"] == 1
        assert limits["max_interval_s"] == 7
        assert limits["base_interval_s"] == 8
        assert limits["deadline_s"] is None
        assert limits["max_retries"] == 0
        assert limits["output_bytes"] == 1024**2
        assert spec["leftovers"] == "keep"
        task.wait_for("completed")

    def test_the_project_is_the_one_that_run_names(self) -> None:
        project_file("max_retries = 7\n")
        task = Task.start("--project", workspace(), "--", "true", project=os.environ["HOME"])
        assert task.events("task.created")[0]["spec"]["limits"]["max_retries"] == 7
        task.wait_for("completed")

    def test_a_default_agent_needs_no_flag(self) -> None:
        user_file('agent = "nobody-has-this"\n')
        done = holdfast("run", "-d", "do it", cwd=workspace())
        assert done.returncode == 2
        assert "no agent named 'nobody-has-this'" in done.stderr
        Task.start("--", "true").wait_for("completed")  # the setting `agent` does not apply to a command

    def test_env_names_and_env_file_reach_the_task(self, monkeypatch: pytest.MonkeyPatch) -> None:
        path = user_file('env = ["FROM_USER"]\nenv_file = "secrets"\n')
        write(os.path.join(os.path.dirname(path), "secrets"), "FROM_FILE='c d'\n")
        project_file('env = ["FROM_PROJECT"]\n')
        monkeypatch.setenv("FROM_USER", "a")
        monkeypatch.setenv("FROM_PROJECT", "b")
        monkeypatch.setenv("FROM_NOBODY", "x")
        task = Task.shell('echo "<$FROM_USER|$FROM_PROJECT|$FROM_FILE|$FROM_NOBODY>" > got')
        task.wait_for("completed")
        with open(os.path.join(workspace(), "got"), encoding="utf-8") as file:
            assert file.read() == "<a|b|c d|>\n"

    def test_a_toml_reader_is_loaded_only_when_there_is_a_file(self) -> None:
        script = (
            "import sys; from holdfast.views.cli.entry import run; run(['run', '-d', '--', 'true']);"
            "print('tomllib' in sys.modules, 'holdfast.config.settings' in sys.modules, file=sys.stderr)"
        )

        def loaded() -> str:
            done = subprocess.run(
                [sys.executable, "-c", script],
                cwd=workspace(),
                capture_output=True,
                text=True,
                timeout=30,
                check=True,
            )
            return done.stderr.strip()

        assert loaded() == "False False"
        user_file("")
        assert loaded() == "True True"


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("variable", "text"),
    [("MONITOR_DEADLINE", "abc"), ("MONITOR_MAX_RETRIES", "many"), ("MONITOR_DISPATCH_WAIT", "-1s")],
)
def test_a_variable_that_does_not_read_is_named(variable: str, text: str) -> None:
    done = holdfast("config", "show", env={variable: text})
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {variable}")
    assert text in done.stderr
