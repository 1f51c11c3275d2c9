"""holdfast doctor: finds problems, prints fixes, and changes nothing."""

from __future__ import annotations

import json
import os
import time

import pytest

from holdfast import __version__
from holdfast.store.layout import Home
from holdfast.views.doctor.home import directory, filesystem
from tests.conftest import Place
from tests.support import kin, loops
from tests.support.tasks import Task, holdfast

CHECKS = [
    "python", "kernel", "clock", "inotify", "sleep", "tmux", "git", "sandbox", "agents", "home",
    "records", "disk", "filesystem", "config", "keeper", "service", "staging", "tasks",
]  # fmt: skip


def findings(expected_status: int = 0) -> dict[str, dict[str, str]]:
    done = holdfast("doctor", "--json")
    assert done.returncode == expected_status, done.stdout + done.stderr
    data = json.loads(done.stdout)
    assert data["schema"] == "holdfast.doctor/1"
    assert data["is_well"] is (expected_status == 0)
    for finding in data["findings"]:
        assert finding["level"] in ("ok", "warn", "fail")
        assert bool(finding["fix"]) == (finding["level"] != "ok"), "every trouble has a fix"
    return {finding["check"]: finding for finding in data["findings"]}


@pytest.mark.usefixtures("home")
class TestWell:
    def test_every_check_answers(self) -> None:
        by_check = findings()
        assert list(by_check) == CHECKS
        assert "fail" not in {finding["level"] for finding in by_check.values()}

    def test_words_for_people(self) -> None:
        done = holdfast("doctor")
        assert done.returncode == 0
        assert done.stdout.count("\nok    ") >= 8
        assert "18 checks, 0 failed" in done.stdout

    def test_a_missing_home_is_no_fault_and_is_not_made(self, home: str) -> None:
        os.rmdir(home)
        assert findings()["home"]["level"] == "ok"
        assert not os.path.exists(home)

    def test_tasks_that_have_no_keeper_are_counted(self) -> None:
        work = Task.shell(kin.WAIT)
        work.agent_pid()
        loops.submit("--", "true")
        keeper = findings()["keeper"]
        assert keeper["said"] == "not running, but 1 task is live and 1 task is queued"
        work.stop()

    def test_a_living_keeper_and_seed_are_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("HOLDFAST_KEEPER")
        assert holdfast("up").returncode == 0
        keeper = findings()["keeper"]
        assert keeper["level"] == "ok"
        assert keeper["said"].startswith("process ")

    def test_sleep_that_cannot_be_inhibited_is_a_warning(
        self, place: Place, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder = os.path.join(place.root, "bin")
        os.makedirs(folder)
        program = os.path.join(folder, "systemd-inhibit")
        with open(program, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\necho 'Failed to connect to bus' >&2\nexit 1\n")
        os.chmod(program, 0o755)
        monkeypatch.setenv("PATH", folder, prepend=":")
        sleep = findings()["sleep"]
        assert (sleep["level"], "Failed to connect to bus" in sleep["said"]) == ("warn", True)
        assert sleep["fix"].startswith("if this machine sleeps when idle, turn that off")

    def test_nothing_is_left_in_the_home(self, home: str) -> None:
        findings()
        assert os.listdir(home) == []


def asked_as_nobody(place: Place, home: str) -> dict[str, list[str]]:
    """Level and fix of the home checks, run as an unprivileged user: root can write everywhere."""
    reads, writes = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.chdir(place.root)  # parent directories may be closed to others
            if os.geteuid() == 0:
                os.chmod(".", 0o711)
                for folder in (home, os.path.join(home, "tasks")):
                    if os.path.exists(folder):
                        os.chown(folder, 65534, 65534)
                os.setgroups([])
                os.setresgid(65534, 65534, 65534)
                os.setresuid(65534, 65534, 65534)
            at = Home(os.path.basename(home))
            checks = (directory(at), filesystem(at))
            os.write(writes, json.dumps({each.check: [each.level, each.fix] for each in checks}).encode())
        finally:
            os._exit(0)
    os.close(writes)
    with open(reads, "rb") as file:
        answer = file.read()
    os.waitpid(pid, 0)
    return json.loads(answer)


@pytest.mark.usefixtures("home")
class TestTrouble:
    def test_a_home_that_others_can_write(self, home: str) -> None:
        os.chmod(home, 0o777)
        finding = findings(1)["home"]
        assert finding["level"] == "fail"
        assert finding["fix"] == f"chmod 700 {home}"

    def test_a_home_that_others_can_read(self, home: str) -> None:
        os.chmod(home, 0o755)
        assert findings()["home"]["level"] == "warn"

    @pytest.mark.parametrize("mode", [0o500, 0o000])
    def test_a_home_that_we_cannot_write_ourselves(self, place: Place, home: str, mode: int) -> None:
        os.chmod(home, mode)
        by_check = asked_as_nobody(place, home)
        assert by_check["home"] == ["fail", "chmod 700 home"]
        assert by_check["filesystem"] == ["warn", "see 'home' above"]

    @pytest.mark.parametrize("mode", [0o500, 0o000])
    def test_tasks_that_we_cannot_write_ourselves(self, place: Place, home: str, mode: int) -> None:
        os.mkdir(os.path.join(home, "tasks"), mode)
        by_check = asked_as_nobody(place, home)
        assert by_check["home"] == ["fail", "chmod 700 home/tasks"]
        assert by_check["filesystem"][0] == "ok"

    def test_a_home_that_is_a_file(self, home: str) -> None:
        os.rmdir(home)
        with open(home, "w", encoding="utf-8"):
            pass
        assert findings(1)["home"]["level"] == "fail"

    def test_tasks_that_are_a_link_to_nowhere(self, home: str) -> None:
        os.symlink("nowhere", os.path.join(home, "tasks"))
        finding = findings(1)["home"]
        assert finding["level"] == "fail"
        assert os.path.join(home, "tasks") in finding["said"]
        assert "link" in finding["fix"]

    def test_a_journal_that_does_not_read(self) -> None:
        task = Task.shell("true")
        task.wait_for("completed")
        with open(task.path("events.jsonl"), "r+b") as file:
            file.write(b"garbage")
        finding = findings(1)["tasks"]
        assert finding["level"] == "fail"
        assert task.id in finding["said"]
        assert "holdfast rm" in finding["fix"]
        assert "fail  tasks" in holdfast("doctor").stdout

    def test_every_journal_that_does_not_read_is_named_up_to_a_number(self, home: str) -> None:
        for number in range(12):
            task = kin.make("--", "true", task_id=f"bad{number:02d}")
            with open(task.path("events.jsonl"), "w", encoding="utf-8") as file:
                file.write("{}\n")
        found = findings(1)["tasks"]
        assert found["level"] == "fail"
        named = [number for number in range(12) if f"bad{number:02d}: " in found["said"]]
        assert named == list(range(10))
        assert found["said"].endswith(" and 2 more")

    def test_a_file_among_the_tasks(self, home: str) -> None:
        path = os.path.join(home, "tasks", "notes.txt")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8"):
            pass
        finding = findings()["tasks"]
        assert finding["level"] == "warn"
        assert path in finding["said"]

    def test_a_staging_directory_that_was_left(self, home: str) -> None:
        path = os.path.join(home, "tasks", ".new-01ABC")
        os.makedirs(path)
        assert findings()["staging"]["level"] == "ok"  # a command may still be using it
        long_ago = time.time() - 7200
        os.utime(path, (long_ago, long_ago))
        assert findings()["staging"]["level"] == "warn"

    def test_a_wrong_setting(self) -> None:
        folder = os.path.join(os.environ["HOME"], ".config", "holdfast")
        os.makedirs(folder)
        with open(os.path.join(folder, "config.toml"), "w", encoding="utf-8") as file:
            file.write("dedline = 3\n")
        finding = findings(1)["config"]
        assert finding["level"] == "fail"
        assert "deadline" in finding["fix"]

    def test_live_tasks_without_a_keeper(self) -> None:
        task = Task.shell("while [ ! -e go ]; do sleep 0.05; done")
        task.agent_pid()
        assert "1 task is live" in findings()["keeper"]["said"]
        task.stop()

    def test_a_home_that_is_down(self) -> None:
        assert holdfast("down").returncode == 0
        assert findings()["keeper"]["said"] == "this home is down"

    def test_a_keeper_that_cannot_live(self, home: str) -> None:
        with open(os.path.join(home, "keeper-starts.json"), "w", encoding="utf-8") as file:
            json.dump({"schema": "holdfast.keeper-starts/1", "starts": [time.time()] * 5}, file)
        assert findings(1)["keeper"]["level"] == "fail"

    def test_a_unit_whose_file_is_gone(self, home: str) -> None:
        with open(os.path.join(home, "service.json"), "w", encoding="utf-8") as file:
            json.dump(
                {"kind": "systemd", "unit": "holdfast.service", "path": "/nonexistent", "start": []}, file
            )
        assert findings()["service"]["level"] == "warn"

    def test_a_home_that_cannot_be_is_not_mended_by_a_unit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOLDFAST_HOME", "/dev/null/holdfast")
        finding = findings(1)["service"]
        assert (finding["level"], finding["fix"]) == ("warn", "see 'home' above")

    def test_missing_programs_are_warnings(self, monkeypatch: pytest.MonkeyPatch) -> None:
        empty = os.path.join(os.environ["HOME"], "empty")
        os.mkdir(empty)
        monkeypatch.setenv("PATH", empty)
        by_check = findings()
        missing = {name for name in by_check if by_check[name]["level"] == "warn"}
        assert missing == {"tmux", "git", "agents", "sleep"}

    def test_agents_and_an_old_tmux_are_found_in_path(self, monkeypatch: pytest.MonkeyPatch) -> None:
        folder = os.path.join(os.environ["HOME"], "bin")
        os.mkdir(folder)
        for name, script in (("tmux", "echo tmux 2.1"), ("codex", "true"), ("claude", "true")):
            path = os.path.join(folder, name)
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"#!/bin/sh\n{script}\n")
            os.chmod(path, 0o755)
        monkeypatch.setenv("PATH", folder, prepend=":")
        by_check = findings()
        assert by_check["tmux"]["level"] == "warn"
        assert "2.1" in by_check["tmux"]["said"]
        assert by_check["agents"]["said"].startswith("claude, codex; not in PATH: ")
        assert [name for name in by_check if name not in CHECKS] == ["claude", "codex"]

    def test_one_warning_is_one_warning(self, home: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """With a logged-in agent, the mode is the only problem."""
        folder = os.path.join(os.environ["HOME"], "bin")
        os.mkdir(folder)
        path = os.path.join(folder, "codex")
        with open(path, "w", encoding="utf-8"):
            pass
        os.chmod(path, 0o755)
        monkeypatch.setenv("PATH", folder, prepend=":")
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        before = holdfast("doctor").stdout.count("\nwarn  ")
        os.chmod(home, 0o755)
        printed = holdfast("doctor").stdout
        assert printed.count("\nwarn  ") == before + 1
        assert printed.endswith(f" 0 failed, {before + 1} warning{'s' if before else ''}\n")

    def test_a_keeper_of_another_version(self, home: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("HOLDFAST_KEEPER")
        assert holdfast("up").returncode == 0
        assert findings()["keeper"]["level"] == "ok"
        with open(os.path.join(home, "keeper.lock"), "r+", encoding="utf-8") as file:
            data = {**json.load(file), "version": "0.0.9"}
            file.seek(0)
            file.truncate()
            json.dump(data, file)
        keeper = findings()["keeper"]
        assert keeper["level"] == "warn"
        assert f"runs holdfast 0.0.9, but {__version__} is installed" in keeper["said"]
        assert "holdfast up" in keeper["fix"]
        status = holdfast("status")
        assert "runs holdfast 0.0.9" in status.stdout
        assert json.loads(holdfast("status", "--json").stdout)["keeper"]["version"] == "0.0.9"

    def test_help_has_examples_and_no_arguments_are_taken(self) -> None:
        done = holdfast("doctor", "--help")
        assert done.returncode == 0
        assert "holdfast doctor --json" in done.stdout
        assert holdfast("doctor", "now").returncode == 2


@pytest.mark.usefixtures("home")
class TestAgents:
    """Agents as npm installs them; each program leaves a file if it is run."""

    @pytest.fixture
    def folder(self, monkeypatch: pytest.MonkeyPatch) -> str:
        path = os.path.join(os.environ["HOME"], "bin")
        os.mkdir(path)
        monkeypatch.setenv("PATH", path)
        for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "CODEX_API_KEY"):
            monkeypatch.delenv(name, raising=False)
        return path

    def install(self, folder: str, name: str, package: str, version: str) -> str:
        """`folder/name` → lib/PACKAGE/bin/name, beside a package.json."""
        lib = os.path.join(os.environ["HOME"], "lib", package)
        os.makedirs(os.path.join(lib, "bin"))
        with open(os.path.join(lib, "package.json"), "w", encoding="utf-8") as file:
            json.dump({"name": package, "version": version}, file)
        program = os.path.join(lib, "bin", name)
        with open(program, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\necho run >> {folder}/was-run\n")
        os.chmod(program, 0o755)
        os.symlink(program, os.path.join(folder, name))
        return program

    def test_where_it_is_its_version_and_what_can_be_done_with_it(
        self, folder: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.install(folder, "claude", "@anthropic-ai/claude-code", "9.8.7")
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
        by_check = findings()
        claude = by_check["claude"]
        assert claude["level"] == "ok"
        assert f"9.8.7 at {folder}/claude" in claude["said"]
        assert "login by ANTHROPIC_API_KEY" in claude["said"]
        assert "resumes sessions" in claude["said"]
        assert "reports cost" in claude["said"]
        assert "sk-secret" not in str(by_check)
        assert not os.path.exists(f"{folder}/was-run"), "no agent is ever run"

    def test_without_a_login_it_says_how(self, folder: str) -> None:
        self.install(folder, "codex", "@openai/codex", "1.2.3")
        codex = findings()["codex"]
        assert codex["level"] == "warn"
        assert "no sign of a login" in codex["said"]
        assert "codex login" in codex["fix"]

    def test_a_login_is_known_by_the_name_of_its_file(self, folder: str) -> None:
        self.install(folder, "codex", "@openai/codex", "1.2.3")
        path = os.path.join(os.environ["HOME"], ".codex")
        os.mkdir(path)
        with open(os.path.join(path, "auth.json"), "w", encoding="utf-8") as file:
            file.write("sk-secret")
        os.chmod(os.path.join(path, "auth.json"), 0)  # and the file is not opened
        codex = findings()["codex"]
        assert codex["level"] == "ok"
        assert "login by ~/.codex/auth.json" in codex["said"]

    def test_the_native_binary_behind_a_wrapper_is_named(self, folder: str) -> None:
        from holdfast.agents import registry

        program = self.install(folder, "codex", "@openai/codex", "1.2.3")
        relative = registry.adapter("codex").capabilities.native[0]
        native = os.path.normpath(os.path.join(os.path.dirname(program), relative))
        os.makedirs(os.path.dirname(native))
        with open(native, "w", encoding="utf-8"):
            pass
        os.chmod(native, 0o755)
        assert f"runs {native}" in findings()["codex"]["said"]
