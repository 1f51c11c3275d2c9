"""Frequent commands import only what they use, to start fast."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

from tests.support import kin
from tests.support.tasks import Task, workspace
from tests.support.waiting import eventually

#: Slow to import, and needed by none of these commands.
DEAR = frozenset([
    "argparse", "ast", "asyncio", "bz2", "click", "concurrent", "contextlib", "dataclasses", "difflib",
    "dis", "email", "gettext", "hashlib", "http", "importlib.metadata", "importlib.util", "inspect",
    "locale", "logging", "lzma", "mcp", "msgspec", "multiprocessing", "pathlib", "pathspec", "platform",
    "psutil", "pydantic", "random", "ruamel", "select", "selectors", "shutil", "socket", "ssl",
    "starlette", "string", "subprocess", "tempfile", "textual", "textwrap", "threading", "tokenize",
    "tomllib", "traceback", "typing", "unicodedata", "urllib", "uuid", "yaml", "zipfile",
])  # fmt: skip
#: SQLite imports datetime: only commands that list tasks need it.
OF_LISTS = frozenset({"sqlite3", "datetime", "decimal"})

_SCRIPT = """
import sys
before = set(sys.modules)
from holdfast.views.cli import entry
status = entry.run(sys.argv[1:])
found = sorted(set(sys.modules) - before)
import json, os
with open(os.environ["LOADED"], "w") as out:
    json.dump([status, found], out)
"""


@pytest.fixture(autouse=True)
def in_a_home(home: str) -> None:
    workspace()


def loaded(*args: str) -> set[str]:
    """The modules that a command imports, without those of a bare interpreter."""
    path = os.path.join(workspace(), "loaded")
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, *args],
        env={**os.environ, "LOADED": path},
        cwd=workspace(),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    with open(path, encoding="utf-8") as file:
        status, modules = json.load(file)
    assert status in (0, 1, 3), done.stderr
    return set(modules)


def tops(modules: set[str]) -> set[str]:
    return modules | {name.partition(".")[0] for name in modules}


@pytest.mark.parametrize(
    "args",
    [
        ["show", "it"],
        ["show", "it", "--json"],
        ["wait", "it"],
        ["logs", "it"],
        ["stop", "it"],
        ["interrupt", "it"],
        ["resume", "it"],
        ["run", "-d", "--", "true"],
        ["run", "--", "true"],
        ["completion", "bash"],
    ],
)
def test_a_command_on_one_task_loads_little(args: list[str]) -> None:
    Task.shell("exit 1", "--id", "it").wait_for("failed")
    modules = tops(loaded(*args))
    assert modules & (DEAR | OF_LISTS) == set()


@pytest.mark.parametrize(
    "args",
    [
        ["ls"],
        ["ls", "--json"],
        ["status"],
        ["_complete", "show", ""],
        ["retry", "it"],
        ["submit", "--id", "next", "--", "true"],
        ["queue", "ls"],
    ],
)
def test_a_list_adds_sqlite_only(args: list[str]) -> None:
    task = Task.shell("exit 1", "--id", "it")
    task.wait_for("failed")
    modules = tops(loaded(*args))
    assert modules & DEAR == set()
    task.wait_for("failed")


def test_a_list_of_tasks_that_did_not_change_loads_almost_nothing() -> None:
    Task.shell("exit 1", "--id", "it").wait_for("failed")
    live = Task.shell("sleep 60")
    live.wait_for("running")

    def is_light() -> bool:
        dear = {"json", "re", "sqlite3", "datetime", "enum", "functools", "collections"}
        return loaded("ls") & dear == set()

    # The first list notes what it read; a manifest that has just changed is read again.
    eventually(is_light, what="a list that reads no manifest")
    live.stop()


def test_reading_a_manifest_does_not_load_the_journal() -> None:
    Task.shell("exit 1", "--id", "it").wait_for("failed")
    for args in (["show", "it"], ["wait", "it"], ["logs", "it"], ["ls"]):
        assert "holdfast.model.events" not in loaded(*args), args


@pytest.mark.parametrize("args", [["ls"], ["show", "it"], ["wait", "it"], ["status"]])
def test_what_the_interpreter_has_in_c_is_not_loaded_in_python_again(args: list[str]) -> None:
    Task.shell("exit 1", "--id", "it").wait_for("failed")
    assert loaded(*args) & {"importlib", "signal", "warnings"} == set()


def test_a_command_that_does_not_stay_does_not_load_what_draws() -> None:
    Task.shell("exit 1", "--id", "it").wait_for("failed")
    drawing = {
        f"holdfast.views.{name}"
        for name in (
            "cli.follow.progress",
            "cli.follow.log_view",
            "cli.show.table",
            "text.log_tail",
            "text.describe",
            "text.amounts",
        )
    }
    assert all(find_spec(name) for name in drawing)
    for args in (["wait", "it"], ["run", "-d", "--", "true"]):
        assert loaded(*args) & drawing == set(), args


def test_a_command_line_with_a_mistake_is_left_to_click() -> None:
    kin.make("--", "true", task_id="it")
    script = (
        "import sys; from holdfast.views.cli import entry; "
        "print(entry.run(sys.argv[1:]), 'click' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "ls", "--jsn"], capture_output=True, text=True, timeout=30, check=False
    )
    assert done.stdout == "2 True\n"
    assert "did you mean --json?" in done.stderr
