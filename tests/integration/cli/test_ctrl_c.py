"""Ctrl-C while holdfast is loading: it exits with 130 and prints nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

#: Sends Ctrl-C when a module begins to load, then runs the console script.
_SCRIPT = """
import os, signal, sys
when = sys.argv.pop(1)

class Press:
    def find_spec(self, name, path=None, target=None):
        if name == when:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Press())
if sys.argv[1] == "-m":
    del sys.argv[1]
    import runpy
    runpy.run_module("holdfast", run_name="__main__", alter_sys=True)
from holdfast.__main__ import main
main()
"""


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("how", ["script", "module"])
@pytest.mark.parametrize(
    "when",
    [
        "holdfast.views",
        "holdfast.views.cli.entry",
        "holdfast.errors",
        "holdfast.views.cli.show.out",
        "holdfast.quick_json",
        "holdfast.views.cli.verbs",
        "holdfast.views.cli.commands.ls",
        "_sqlite3",
    ],
)
def test_ctrl_c_while_it_loads_is_130_and_silent(when: str, how: str) -> None:
    words = ["ls"] if how == "script" else ["-m", "ls"]
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, when, *words], capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    "when", ["not name.startswith('holdfast')", "name == 'holdfast'", "'__main__' in name"]
)
def test_the_script_that_is_installed_is_quiet_from_its_first_line_on(when: str) -> None:
    script = """
import os, signal, sys
class Press:
    def find_spec(self, name, path=None, target=None):
        if eval(sys.orig_argv[-1]):
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Press())
sys.argv = ["holdfast", "ls"]
exec(open(sys.orig_argv[-2]).read())
"""
    with open(os.path.join(ROOT, "pyproject.toml"), "rb") as file:
        (path,) = tomllib.load(file)["tool"]["hatch"]["build"]["targets"]["wheel"]["shared-scripts"]
    done = subprocess.run(
        [sys.executable, "-c", script, os.path.join(ROOT, path), when],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_ctrl_c_where_python_would_swallow_it_counts_all_the_same() -> None:
    """Importing has garbage collector callbacks, and an exception in one is printed and dropped."""
    script = """
import os, signal, sys, weakref

class Thing: pass

class Press:
    def find_spec(self, name, path=None, target=None):
        if name == "holdfast.quick_json":
            thing = Thing()
            self.reference = weakref.ref(thing, lambda _: os.kill(os.getpid(), signal.SIGINT))
            del thing

sys.meta_path.insert(0, Press())
sys.argv = ["holdfast", "ls"]
from holdfast.views.cli.entry import main
main()
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.usefixtures("home")
def test_an_ignored_ctrl_c_stays_ignored() -> None:
    """A shell ignores SIGINT in background jobs."""
    words = [sys.executable, "-c", _SCRIPT, "json", "ls"]
    done = subprocess.run(
        ["sh", "-c", 'trap "" INT; exec "$@"', "sh", *words],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_entry_itself_loads_nothing() -> None:
    """Before `main` is called, nothing of ours can catch Ctrl-C."""
    script = (
        "import os, sys; before = set(sys.modules); import holdfast.__main__; "
        "print(sorted(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=True
    )
    names = ["holdfast", "holdfast.__main__"]
    assert done.stdout.strip() == str(names)
