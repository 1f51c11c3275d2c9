"""holdfast doctor: it finds what is wrong, says what to do, and changes nothing."""

from __future__ import annotations

import json
import os
import time

import pytest

from tests.support.tasks import Task, holdfast

CHECKS = [
    "python", "kernel", "clock", "inotify", "tmux", "git", "agents", "home", "disk", "filesystem", "config",
    "keeper", "service", "staging", "tasks",
]  # fmt: skip


def findings(expected_status: int = 0) -> dict[str, dict[str, str]]:
    done = holdfast("doctor", "--json")
    assert done.returncode == expected_status, done.stdout + done.stderr
    data = json.loads(done.stdout)
    assert data["schema"] == "holdfast.doctor/1"
    assert data["is_well"] is (expected_status == 0)
    for found in data["findings"]:
        assert found["level"] in ("ok", "warn", "fail")
        assert bool(found["fix"]) == (found["level"] != "ok"), "every trouble has a fix"
    return {found["check"]: found for found in data["findings"]}


@pytest.mark.usefixtures("home")
class TestWell:
    def test_every_check_answers(self) -> None:
        found = findings()
        assert list(found) == CHECKS
        assert "fail" not in {finding["level"] for finding in found.values()}

    def test_words_for_people(self) -> None:
        done = holdfast("doctor")
        assert done.returncode == 0
        assert done.stdout.count("\nok    ") >= 8
        assert "15 checks, 0 failed" in done.stdout

    def test_a_missing_home_is_no_fault_and_is_not_made(self, home: str) -> None:
        os.rmdir(home)
        assert findings()["home"]["level"] == "ok"
        assert not os.path.exists(home)

    def test_a_living_keeper_and_seed_are_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("HOLDFAST_KEEPER")
        assert holdfast("up").returncode == 0
        keeper = findings()["keeper"]
        assert keeper["level"] == "ok"
        assert keeper["said"].startswith("process ")

    def test_nothing_is_left_in_the_home(self, home: str) -> None:
        findings()
        assert os.listdir(home) == []


@pytest.mark.usefixtures("home")
class TestTrouble:
    def test_a_home_that_others_can_write(self, home: str) -> None:
        os.chmod(home, 0o777)
        found = findings(1)["home"]
        assert found["level"] == "fail"
        assert found["fix"] == f"chmod 700 {home}"

    def test_a_home_that_others_can_read(self, home: str) -> None:
        os.chmod(home, 0o755)
        assert findings()["home"]["level"] == "warn"

    def test_a_home_that_is_a_file(self, home: str) -> None:
        os.rmdir(home)
        with open(home, "w", encoding="utf-8"):
            pass
        assert findings(1)["home"]["level"] == "fail"

    def test_a_journal_that_does_not_read(self) -> None:
        task = Task.shell("true")
        task.wait_for("completed")
        with open(task.path("events.jsonl"), "r+b") as file:
            file.write(b"garbage")
        found = findings(1)["tasks"]
        assert found["level"] == "fail"
        assert task.id in found["said"]
        assert "holdfast rm" in found["fix"]
        assert "fail  tasks" in holdfast("doctor").stdout

    def test_a_staging_directory_that_was_left(self, home: str) -> None:
        path = os.path.join(home, "tasks", ".new-01ABC")
        os.makedirs(path)
        assert findings()["staging"]["level"] == "ok"  # somebody may be at it
        long_ago = time.time() - 7200
        os.utime(path, (long_ago, long_ago))
        assert findings()["staging"]["level"] == "warn"

    def test_a_wrong_setting(self) -> None:
        folder = os.path.join(os.environ["HOME"], ".config", "holdfast")
        os.makedirs(folder)
        with open(os.path.join(folder, "config.toml"), "w", encoding="utf-8") as file:
            file.write("dedline = 3\n")
        found = findings(1)["config"]
        assert found["level"] == "fail"
        assert "deadline" in found["fix"]

    def test_live_tasks_without_a_keeper(self) -> None:
        task = Task.shell("while [ ! -e go ]; do sleep 0.05; done")
        task.agent_pid()
        assert "1 tasks are live" in findings()["keeper"]["said"]
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

    def test_missing_programs_are_warnings(self, monkeypatch: pytest.MonkeyPatch) -> None:
        empty = os.path.join(os.environ["HOME"], "empty")
        os.mkdir(empty)
        monkeypatch.setenv("PATH", empty)
        found = findings()
        assert {name for name in found if found[name]["level"] == "warn"} == {"tmux", "git", "agents"}

    def test_agents_and_an_old_tmux_are_found_in_path(self, monkeypatch: pytest.MonkeyPatch) -> None:
        folder = os.path.join(os.environ["HOME"], "bin")
        os.mkdir(folder)
        for name, script in (("tmux", "echo tmux 2.1"), ("codex", "true"), ("claude", "true")):
            path = os.path.join(folder, name)
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"#!/bin/sh\n{script}\n")
            os.chmod(path, 0o755)
        monkeypatch.setenv("PATH", folder, prepend=":")
        found = findings()
        assert found["tmux"]["level"] == "warn"
        assert "2.1" in found["tmux"]["said"]
        assert f"claude at {folder}/claude; codex at {folder}/codex" in found["agents"]["said"]

    def test_help_has_examples_and_no_arguments_are_taken(self) -> None:
        done = holdfast("doctor", "--help")
        assert done.returncode == 0
        assert "holdfast doctor --json" in done.stdout
        assert holdfast("doctor", "now").returncode == 2
