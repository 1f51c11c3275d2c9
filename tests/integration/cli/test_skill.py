"""holdfast skill: it is valid, its commands work, and no file of somebody else is touched."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from typing import Any

import jsonschema
import pytest

from contracts import schema
from holdfast.testing import Scenario
from tests.support import kin, repos
from tests.support.tasks import Task, holdfast, workspace
from tests.support.tools import give_up

PLACES = (".agents/skills/holdfast/SKILL.md", ".claude/skills/holdfast/SKILL.md")


@pytest.fixture(autouse=True)
def in_a_home(home: str) -> None:
    workspace()


def installed() -> list[str]:
    return [os.path.join(os.environ["HOME"], place) for place in PLACES]


def read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def write(path: str, text: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def states() -> list[str]:
    shown = json.loads(holdfast("skill", "show", "--json").stdout)
    jsonschema.validate(shown, schema.schemas()["skill"])
    return [copy["state"] for copy in shown["copies"]]


def test_install_and_remove_leave_nothing() -> None:
    assert states() == ["missing", "missing"]
    done = holdfast("skill", "install")
    assert done.returncode == 0, done.stderr
    for path in installed():
        assert f"installed {path}" in done.stderr
        assert read(path).startswith(holdfast("skill", "show").stdout)
    assert states() == ["current", "current"]
    assert holdfast("skill", "install").stderr.count("is up to date") == 2
    done = holdfast("skill", "remove", "--json")
    assert [copy["did"] for copy in json.loads(done.stdout)["copies"]] == ["removed", "removed"]
    for path in installed():
        assert not os.path.exists(os.path.dirname(path))
    assert holdfast("skill", "remove").stderr == "the skill is not installed\n"


def test_it_is_a_valid_skill_of_at_most_200_lines() -> None:
    program = os.path.join(os.path.dirname(sys.executable), "agentskills")
    if not os.path.exists(program):
        give_up("needs agentskills, which is not installed (make setup)")
    holdfast("skill", "install")
    for path in installed():
        done = subprocess.run(
            [program, "validate", os.path.dirname(path)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        properties = subprocess.run(
            [program, "read-properties", os.path.dirname(path)], capture_output=True, timeout=60, check=True
        )
        found = json.loads(properties.stdout)
        assert found["name"] == os.path.basename(os.path.dirname(path))
        assert len(found["description"]) <= 1024
        assert len(read(path).splitlines()) <= 200


@pytest.mark.parametrize("changed", ["foreign", "changed", "continued", "link", "folder"])
def test_a_file_of_somebody_else_is_never_replaced_or_removed(changed: str) -> None:
    path, other = installed()
    own = os.path.join(os.environ["HOME"], "own.md")
    write(own, "mine\n")
    if changed == "foreign":
        write(path, "mine\n")
    elif changed == "link":
        os.makedirs(os.path.dirname(path))
        os.symlink(own, path)
    elif changed == "folder":
        os.makedirs(path)
    else:
        holdfast("skill", "install")
        text = read(path)
        write(path, text + "mine\n" if changed == "continued" else text.replace("## Stop", "## Never stop"))
    before = read(path) if os.path.isfile(path) else None
    for _ in range(2):
        done = holdfast("skill", "install")
        assert done.returncode == 3
        assert path in done.stderr
        assert os.path.exists(other), "the other place is installed all the same"
    if changed == "folder":
        assert os.path.isdir(path)
    else:
        assert read(path) == before
    done = holdfast("skill", "remove")
    assert done.returncode == (3 if changed in ("changed", "continued") else 0)
    assert os.path.lexists(path)
    assert read(own) == "mine\n"
    assert not os.path.exists(other)


def test_a_linked_folder_is_somebody_elses() -> None:
    own = os.path.join(os.environ["HOME"], "own")
    os.makedirs(own)
    link = os.path.dirname(installed()[0])
    os.makedirs(os.path.dirname(link))
    os.symlink(own, link)
    assert holdfast("skill", "install").returncode == 3
    assert os.listdir(own) == []


def test_other_files_beside_it_are_kept() -> None:
    holdfast("skill", "install")
    note = os.path.join(os.path.dirname(installed()[0]), "note.md")
    write(note, "mine\n")
    assert holdfast("skill", "remove").returncode == 0
    assert read(note) == "mine\n"
    assert states() == ["missing", "missing"]


def test_a_copy_of_another_version_is_brought_up_to_date_and_removed() -> None:
    from holdfast.store.digest import sha256

    body = "---\nname: holdfast\ndescription: old\n---\n"
    for path in installed():
        write(path, f"{body}<!-- Installed by holdfast 0.0.9; digest {sha256(body.encode())} -->\n")
    assert states() == ["old", "old"]
    assert holdfast("skill", "install").stderr.count("updated ") == 2
    assert states() == ["current", "current"]


def test_a_kill_between_the_two_places_leaves_whole_files() -> None:
    done = holdfast("skill", "install", env={"HOLDFAST_FAILPOINT": "atomic.before_rename=kill@2"})
    assert done.returncode == -signal.SIGKILL
    assert states() == ["current", "missing"]
    assert holdfast("skill", "install").returncode == 0
    assert states() == ["current", "current"]


def test_the_commands_of_the_skill_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """In their order, with the scripted agent in the place of a real one."""
    monkeypatch.delenv("HOLDFAST_KEEPER")
    repo = repos.Repo(os.path.join(workspace(), "repo"))
    repo.write("Makefile", "bench test:\n\t@true\n")
    repo.commit()
    go = os.path.join(workspace(), "go")
    scenario = Scenario().say("working").wait_file(go, limit_s=60).say("done").result("done")
    script = scenario.write_to(os.path.join(workspace(), "scenario.json"))
    text = holdfast("skill", "show").stdout
    blocks = re.findall(r"^```sh\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    commands = [line for block in blocks for line in block.splitlines()]
    assert len(commands) >= 12
    facts: dict[str, Any] = {"CURSOR": "", "TASK": ""}
    for command in commands:
        words = [facts.get(word, word) for word in shlex.split(command)]
        assert words[0] == "holdfast"
        if "claude" in words:
            at = words.index("claude")
            words[at : at + 1] = ["scripted", "-o", f"scenario={script}"]
        if words[1] == "resume":
            asked = Task(os.path.join(os.environ["HOLDFAST_HOME"], "tasks", facts["TASK"]))
            asked.wait_for("running")
            assert asked.ask("interrupt", "-m", "which database?").returncode == 0
        if words[1:2] == ["show"]:
            kin.go()
            assert holdfast("wait", facts["TASK"], "--timeout", "30s").returncode == 0
        if words[1] == "wait":
            words[words.index("50s")] = "1s"
        done = holdfast(*words[1:], cwd=repo.path)
        expected = 6 if words[1] == "wait" else 0
        assert done.returncode == expected, (command, done.stdout, done.stderr)
        if words[1] == "run" and not facts["TASK"]:
            facts["TASK"] = done.stdout.strip()
        if words[1] == "digest":
            facts["CURSOR"] = json.loads(done.stdout)["cursor"]
    named = set(re.findall(r"`holdfast (\w+)", text))
    for verb in named:
        assert holdfast(verb, "--help").returncode == 0, verb
