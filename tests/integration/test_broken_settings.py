"""Unreadable settings, as after half an edit: the previous ones apply, no notice is lost, it is reported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import jsonschema
import pytest

from contracts import schema
from holdfast.notify import outbox
from holdfast.packet import load
from holdfast.store import lock as locks
from holdfast.store.layout import Home
from tests.support import keepers, loops
from tests.support.loops import fill, item, ring, settings, task, up, working
from tests.support.tasks import holdfast, workspace
from tests.support.waiting import eventually

HALF = "slots = 3\n[[notify]\n"


pytestmark = pytest.mark.usefixtures("with_keeper")


def good(more: str = "") -> str:
    """Settings with a rule that appends each notice to a file; `told()` reads it."""
    argv = ["sh", "-c", f"cat >> {told_path()}; echo >> {told_path()}"]
    return f'{more}\n[[notify]]\non = ["all"]\nto = "command"\nargv = {json.dumps(argv)}\n'


def told_path() -> str:
    return os.path.join(workspace(), "told")


def told() -> list[tuple[str, str]]:
    """(event, task) of the notices that were delivered."""
    try:
        with open(told_path(), encoding="utf-8") as file:
            lines = [json.loads(line) for line in file if line.strip()]
    except FileNotFoundError:
        return []
    return [(line["event"], line["task_id"]) for line in lines]


@pytest.mark.req("QUE-3")
def test_the_previous_slots_and_limits_apply_and_status_reports_it(home: str) -> None:
    settings(good('slots = 3\niteration_delay = "0s"\npool_limits = ["small=1"]'))
    up()
    keepers.wait_for(home)
    assert holdfast("queue", "pause").returncode == 0
    names = ("s1", "s2", "t1", "t2", "t3")
    fill(**{name: item(working(0.5), pool="small" if name[0] == "s" else "big") for name in names})
    ring(home)
    eventually(lambda: os.path.exists(Home(home).settings), what="the settings are kept")
    settings(HALF)
    assert holdfast("queue", "resume").returncode == 0
    ring(home)
    for name in names:
        task(name).wait_for("completed", within_s=25)
    assert loops.most_at_once(("s1", "s2")) == 1
    assert 1 < loops.most_at_once() <= 3
    assert any("config.toml is not valid TOML" in line for line in keepers.status(home)["attention"])
    settings("slots = 1\n")
    assert not any("TOML" in line for line in keepers.status(home)["attention"])


@pytest.mark.req("NOT-1")
def test_a_notice_follows_the_previous_rules(home: str) -> None:
    settings(good())
    done = holdfast(
        "run", "-d", "--id", "n1", "--", "sh", "-c", "while [ ! -e go ]; do sleep 0.05; done", cwd=workspace()
    )
    assert done.returncode == 0, done.stderr
    keepers.wait_for(home)
    eventually(lambda: os.path.exists(Home(home).settings), what="the settings are kept")
    settings(HALF)
    with open(os.path.join(workspace(), "go"), "w", encoding="utf-8"):
        pass
    task("n1").wait_for("completed")
    eventually(lambda: ("completed", "n1") in told(), 20, "it is told all the same")


def test_a_notice_without_an_address_waits_for_the_settings(
    home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_KEEPER", "off")
    settings(good())
    done = holdfast(
        "run", "-d", "--id", "n2", "--", "sh", "-c", "while [ ! -e go ]; do sleep 0.05; done", cwd=workspace()
    )
    assert done.returncode == 0, done.stderr
    settings(HALF)
    with open(os.path.join(workspace(), "go"), "w", encoding="utf-8"):
        pass
    task("n2").wait_for("completed")
    eventually(lambda: len(outbox.names(Home(home))) == 1, what="the notice is kept")
    monkeypatch.delenv("HOLDFAST_KEEPER")
    settings(good())
    up()
    eventually(lambda: ("completed", "n2") in told(), 20, "it is told when the settings are mended")
    eventually(lambda: outbox.names(Home(home)) == [], what="and it is gone then")
    assert told().count(("completed", "n2")) == 1


BAD = [
    ("ITERATION_DELAY", "foo"),
    ("MAX_ITERATIONS", "-3"),
    ("MAX_CONSECUTIVE_FAILURES", "1.5"),
    ("HOLDFAST_KEEPER_IDLE", "soon"),
]


@pytest.mark.parametrize(("name", "value"), BAD)
def test_a_variable_that_cannot_be_is_refused_before_anything_is_started(
    home: str, name: str, value: str
) -> None:
    env = {name: value}
    for words in (("up",), ("up", "--foreground"), ("run", "-d", "--", "true"), ("submit", "--", "true")):
        done = holdfast(*words, cwd=workspace(), env=env)
        assert (done.returncode, done.stdout) == (2, ""), (words, done.stderr)
        assert f"error: {name}: " in done.stderr
        assert f"hint: for example {name}=" in done.stderr
    assert keepers.pid(home) == 0
    assert not os.path.exists(Home(home).up)
    assert load.task_ids(Home(home)) == []
    told = json.loads(holdfast("status", "--json", env=env).stdout)["attention"]
    assert any(f"{name}: " in line for line in told)
    assert f"{name}: " in holdfast("doctor", cwd=workspace(), env=env).stdout


@pytest.mark.parametrize(("name", "value"), BAD[:3])
def test_config_show_refuses_a_variable_that_cannot_be(home: str, name: str, value: str) -> None:
    done = holdfast("config", "show", cwd=workspace(), env={name: value})
    assert (done.returncode, done.stdout) == (2, "")
    assert f"error: {name}: " in done.stderr


def test_up_refuses_a_broken_file_and_the_keeper_at_work_goes_on(home: str) -> None:
    settings("slots = 2\n")
    up()
    keeper = keepers.wait_for(home)
    eventually(lambda: os.path.exists(Home(home).settings), what="the settings are kept")
    settings("slots = -1\n")
    done = holdfast("up", "--slots", "7", cwd=workspace())
    assert done.returncode == 2
    assert "config.toml: slots: must be an integer of 1 or more, not -1" in done.stderr
    assert keepers.pid(home) == keeper
    with open(Home(home).up, encoding="utf-8") as file:
        assert "slots" not in json.load(file)["loop"]


def test_status_reports_errors_in_the_keepers_environment(home: str) -> None:
    """As a service unit passes it on: no command could refuse it."""
    with keeping(home, ITERATION_DELAY="foo"):
        keepers.wait_for(home)
        eventually(
            lambda: any(
                "ITERATION_DELAY: not a duration" in line for line in keepers.status(home)["attention"]
            ),
            what="status tells",
        )
    assert not any("ITERATION_DELAY" in line for line in keepers.status(home)["attention"])


@pytest.mark.parametrize(
    ("text", "env", "where"), [(HALF, {}, "file"), ("", {"MAX_ITERATIONS": "x"}, "environment")]
)
def test_the_kept_settings_say_where_the_mistake_is(
    home: str, text: str, env: dict[str, str], where: str
) -> None:
    """`status` checks the files itself, but only the keeper knows its environment."""
    settings(text)
    with keeping(home, **env):
        kept = Home(home).settings
        eventually(lambda: os.path.exists(kept), what="the settings are kept")
        with open(kept, encoding="utf-8") as file:
            facts = json.load(file)
    jsonschema.validate(facts, schema.schemas()["settings"])
    assert (facts["wrong"] != "", facts["wrong_in"]) == (True, where)


@pytest.mark.parametrize(("where", "is_reported"), [("environment", True), ("file", False)])
def test_status_reports_what_is_wrong_in_the_environment_of_the_keeper_only(
    home: str, where: str, is_reported: bool
) -> None:
    """Whatever the text is: a file may have been corrected since the keeper read it."""
    facts = {
        "schema": "holdfast.settings/1",
        "loop": {},
        "notify": None,
        "wrong": "mistaken",
        "wrong_in": where,
    }
    with open(Home(home).settings, "w", encoding="utf-8") as file:
        json.dump(facts, file)
    lock = locks.acquire(Home(home).keeper_lock, role="keeper")
    try:
        told = json.loads(holdfast("status", "--json").stdout)["attention"]
    finally:
        lock.release()
    assert any("mistaken" in line for line in told) == is_reported, told


@contextmanager
def keeping(home: str, **env: str) -> Iterator[None]:
    """A keeper as a unit starts it."""
    argv = [sys.executable, "-P", "-m", "holdfast.keeper"]
    with open(keepers.log_of(home), "ab") as log:
        keeper = subprocess.Popen(argv, env={**os.environ, **env}, stderr=log)
    try:
        yield
    finally:
        keeper.terminate()
        keeper.wait(20)
