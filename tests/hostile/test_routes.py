"""No file that an agent can write, in its packet or in the home, makes holdfast run a command."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys

import pytest

from holdfast import clock, ids, paths, spawn
from holdfast.keeper import loop_state
from holdfast.keeper import settings as kept
from holdfast.store import up_options
from holdfast.store.layout import Home
from tests.support import kin
from tests.support.tasks import Task, holdfast

EAGER = ("--base-interval", "0.2s", "--stale", "none")


class Trap:
    """A program of the agent that leaves a file when it runs."""

    def __init__(self, root: str) -> None:
        self.sprung_at = os.path.join(root, "sprung")
        self.path = os.path.join(root, "trap", "systemctl")
        os.makedirs(os.path.dirname(self.path))
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\ntouch {self.sprung_at}\n")
        os.chmod(self.path, stat.S_IRWXU)

    @property
    def is_sprung(self) -> bool:
        return os.path.exists(self.sprung_at)


@pytest.fixture
def trap(home: str) -> Trap:
    return Trap(os.path.dirname(home))


def put(path: str, data: object) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(data, file)


@pytest.mark.parametrize("field", ["start", "unit"])
def test_the_record_of_a_service_names_no_program(
    home: str, trap: Trap, field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOLDFAST_KEEPER", raising=False)
    forged = {"schema": "holdfast.service/1", "home": home, "kind": "systemd", "unit": "holdfast.service"}
    forged |= {"start": [trap.path, "--user", "start", "--no-block", "holdfast.service"]}
    if field == "unit":
        forged["unit"] = "--help; ../../../x.service"
    put(os.path.join(home, "service.json"), forged)
    spawn.ensure_keeper(Home(home), by_person=True)
    assert not trap.is_sprung
    holdfast("down", "--now")
    assert not trap.is_sprung


def test_the_record_of_a_service_chooses_no_file_to_remove(home: str, trap: Trap) -> None:
    forged = {"home": home, "kind": "systemd", "unit": "holdfast-0123abcd.service", "path": trap.path}
    put(os.path.join(home, "service.json"), forged)
    holdfast("service", "remove")
    assert os.path.exists(trap.path)


def configure(text: str) -> None:
    os.makedirs(os.path.dirname(paths.user_settings()), exist_ok=True)
    with open(paths.user_settings(), "w", encoding="utf-8") as file:
        file.write(text)


def leave_notice(home: str, argv: list[str]) -> str:
    """Write a notice as an agent can. Returns its path."""
    name = ids.new_ulid()
    rule = {"on": ["all"], "to": "command", "argv": argv}
    notice = {"schema": "holdfast.notice/1", "id": name, "at": clock.iso_now(), "event": "completed"}
    notice |= {"task_id": "x", "rule": rule, "tries": 0, "next_at": None, "after": None, "error": None}
    path = os.path.join(home, "outbox", f"{name}.json")
    put(path, notice)
    return path


def deliver(path: str, **env: str) -> str:
    """Deliver a notice as the keeper does. Returns the error; empty if it was delivered."""
    argv = [sys.executable, "-m", "holdfast.notify", path]
    done = subprocess.run(argv, capture_output=True, timeout=60, check=False, env={**os.environ, **env})
    if done.returncode == 0:
        assert not os.path.exists(path)
        return ""
    with open(path, encoding="utf-8") as file:
        return json.load(file)["error"]


def test_a_notice_with_a_rule_of_its_own_runs_nothing(home: str, trap: Trap) -> None:
    assert "your settings have no such rule" in deliver(leave_notice(home, [trap.path]))
    assert not trap.is_sprung


def test_while_the_settings_are_unreadable_only_the_previous_rules_of_the_user_count(
    home: str, trap: Trap
) -> None:
    """The home has a copy of them, but an agent can write there, so it is not trusted."""
    got = os.path.join(os.path.dirname(home), "got")
    configure(f'[[notify]]\non = ["all"]\nto = "command"\nargv = ["touch", "{got}"]\n')
    assert kept.read(Home(home)).notify
    configure("[[notify]\n")
    forged = {"on": ["all"], "to": "command", "argv": [trap.path]}
    put(Home(home).settings, {"schema": "holdfast.settings/1", "loop": {}, "notify": [forged]})
    assert kept.read(Home(home)).notify == [forged]
    assert "not valid TOML" in deliver(leave_notice(home, [trap.path]))
    assert not trap.is_sprung
    assert deliver(leave_notice(home, ["touch", got])) == ""
    assert os.path.exists(got)
    # A rule that the user removed does not come back with the next mistake.
    configure("slots = 1\n")
    kept.read(Home(home))
    configure("[[notify]\n")
    assert "not valid TOML" in deliver(leave_notice(home, ["touch", got]))


def test_a_notice_does_not_choose_the_home_of_the_users_program(home: str) -> None:
    """The program may run holdfast."""
    got = os.path.join(os.path.dirname(home), "got")
    argv = ["/bin/sh", "-c", f'echo "$HOLDFAST_HOME" > {got}']
    configure(f'[[notify]]\non = ["all"]\nto = "command"\nargv = {json.dumps(argv)}\n')
    path = leave_notice(home, argv)
    with open(path, encoding="utf-8") as file:
        put(path, {**json.load(file), "home": "/another"})
    assert deliver(path) == ""
    with open(got, encoding="utf-8") as file:
        assert file.read() == f"{home}\n"


def test_an_invalid_variable_of_the_keeper_delays_no_notice(home: str) -> None:
    configure('[[notify]]\non = ["all"]\nto = "command"\nargv = ["true"]\n')
    assert deliver(leave_notice(home, ["true"]), ITERATION_DELAY="foo") == ""


def test_a_changed_environment_is_not_used(home: str, trap: Trap) -> None:
    """PATH of the next attempt: its `sh` would be the agent's."""
    os.symlink(trap.path, os.path.join(os.path.dirname(trap.path), "sh"))
    lock = kin.alone(home)
    task = Task.shell(kin.WAIT + "exit 3", *EAGER, "--max-retries", "3")
    agent = task.agent_pid()
    task.kill_runner()
    kin.kill(agent)  # the next runner would start another one
    env = task.json("env.json")
    env["env"]["PATH"] = os.path.dirname(trap.path) + ":" + env["env"]["PATH"]
    put(task.path("env.json"), env)
    task.start_runner()
    manifest = task.wait_for("interrupted", within_s=40)
    assert "env.json was changed" in manifest["interrupt"]["reason"]
    assert not trap.is_sprung
    # A new environment comes with `retry`, and counts.
    assert task.ask("stop").returncode == 0
    task.wait_for("killed")
    kin.go()
    assert task.ask("retry").returncode == 0
    assert task.wait_for("failed", within_s=40)["exit_code"] == 3
    assert not trap.is_sprung
    os.close(lock)


@pytest.mark.parametrize("where", ["up", "settings"])
def test_sources_of_the_queue_come_from_the_user(home: str, trap: Trap, where: str) -> None:
    loop = {"sources": [f"cmd:{trap.path}"], "project": os.path.dirname(home), "slots": 2}
    assert not loop_state.read_spec(Home(home)).sources
    if where == "up":
        put(os.path.join(home, "up"), {"schema": "holdfast.up/1", "at": clock.iso_now(), "loop": loop})
    else:
        put(os.path.join(home, "settings.json"), {"schema": "holdfast.settings/1", "loop": loop})
        configure("half a line")
    assert loop_state.read_spec(Home(home)).sources == ()
    up_options.note(home, b"another")
    assert tuple(loop_state.read_spec(Home(home)).sources) == ()
