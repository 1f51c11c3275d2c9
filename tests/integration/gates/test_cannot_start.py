"""Whose fault it is that a command cannot start: what it names decides, not what it prints."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from holdfast.gates import cannot_start
from holdfast.gates.room_commands import Setting

LINKS = (".venv", "node_modules")


@pytest.fixture
def room(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / ".gitignore").write_text("build/\n")
    (tmp_path / "plain.sh").write_text("#!/bin/sh\n")
    (tmp_path / "run.sh").write_text("#!/bin/sh\nexit 127\n")
    (tmp_path / "run.sh").chmod(0o755)
    return tmp_path


def misses(room: Path, command: str) -> bool:
    probe = cannot_start.probe_in(Setting(cwd=str(room), env=dict(os.environ)))
    return cannot_start.misses_work(command, probe, links=LINKS, project_dir=str(room))


@pytest.mark.parametrize(
    "command",
    [
        "hf-none",
        "hf-none tests/new.py -k a.b",
        "cd . && hf-none",
        "CI=1 timeout 10 hf-none -q",
        "/opt/hf-none/bin/x",
        ".venv/bin/pytest tests",
        "node_modules/.bin/jest",
        "build/tool",
        "./run.sh",
        "bash run.sh",
        "sh -c 'exit 127'",
        "npm test",
        "bash run.sh > out/log.txt",
    ],
)
def test_what_is_no_part_of_the_tree_is_not_the_agents_work(room: Path, command: str) -> None:
    assert not misses(room, command)


@pytest.mark.parametrize(
    "command",
    [
        "./new.sh",
        "tools/new --all",
        "./plain.sh",
        "hf-none; ./new.sh",
        "bash new.sh",
        "bash new",
        "env A=b ./new.sh",
        '"$PWD/new.sh"',
        "git run x ./new.sh",
        "sh -c './new.sh'",
        "an 'unfinished quote",
    ],
)
def test_a_file_that_the_agent_could_write_is(room: Path, command: str) -> None:
    assert misses(room, command)


def test_an_absolute_path_in_the_project_is_a_path_of_the_project(room: Path) -> None:
    assert misses(room, f"{room}/new.sh")
    assert not misses(room, f"{room}/run.sh")


def misses_program(room: Path, command: str) -> bool:
    probe = cannot_start.probe_in(Setting(cwd=str(room), env=dict(os.environ)))
    return cannot_start.misses_program(command, probe, directory=str(room))


@pytest.mark.parametrize(
    "command",
    [
        "hf-none",
        "hf-none tests/new.py",
        "cd . && hf-none",
        "/opt/hf-none/bin/x",
        "sh -c 'hf-none a'",
        "./run.sh && hf-none",
    ],
)
def test_where_the_agent_worked_a_program_of_the_machine_is_not_its_work(room: Path, command: str) -> None:
    assert misses_program(room, command)


@pytest.mark.parametrize(
    "command",
    [
        "./new.sh",
        "./plain.sh",
        ".venv/bin/pytest tests",
        "node_modules/.bin/jest",
        "build/tool",
        "hf-none; ./new.sh",
        "./run.sh",
        "sh -c 'exit 127'",
        "git test",
        "bash new.sh",
        "an 'unfinished quote",
    ],
)
def test_where_the_agent_worked_everything_else_is(room: Path, command: str) -> None:
    assert not misses_program(room, command)


def test_an_absolute_path_where_the_agent_worked_is_its_work(room: Path) -> None:
    assert not misses_program(room, f"{room}/.venv/bin/pytest")
