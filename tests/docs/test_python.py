"""docs/guides/python.md: its examples run, and its tree of errors is the real one."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from holdfast import errors
from holdfast.model.status import EXIT_STATUS
from holdfast.testing import Scenario
from tests.support import pages, repos
from tests.support.tasks import workspace

GUIDE = "docs/guides/python.md"


def as_tests_run_it(program: str, scenario: str) -> str:
    """The scripted agent in the place of a real one."""
    return program.replace('agent="claude"', f'agent="scripted", options={{"scenario": {scenario!r}}}')


@pytest.mark.usefixtures("home")
def test_its_examples_run_one_after_the_other() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", pages.read(GUIDE), re.DOTALL | re.MULTILINE)
    repo = repos.Repo(os.path.join(workspace(), "repo"))
    repo.write("Makefile", "test:\n\t@true\n")
    repo.commit()
    steps = Scenario().say("it works").interrupt_request("which database?", once=True).sleep(5, once=True)
    script = (
        steps.write("new.txt", "new\n").result("done").write_to(os.path.join(workspace(), "scenario.json"))
    )
    plain = Scenario().write("new.txt", "new\n").say("it works").result("done")
    other = plain.write_to(os.path.join(workspace(), "plain.json"))
    parts = [as_tests_run_it(block, str(script if "Migrate" in block else other)) for block in blocks]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", "\n".join(parts)],
        cwd=repo.path, capture_output=True, text=True, timeout=110, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    printed = done.stdout
    for expected in ("completed done", "added new.txt 1 0", "running", "['completed', 'completed']"):
        assert expected in printed, printed
    assert "interrupted" not in printed.splitlines()[-1]


def test_the_tree_of_errors_is_the_real_one() -> None:
    tree = pages.fenced(pages.read(GUIDE), "text").rstrip("\n")
    assert tree in (errors.__doc__ or ""), "the guide and errors.py show the same tree"
    shown: dict[str, tuple[str, int]] = {}
    above: list[tuple[int, str, int]] = []
    for line in tree.splitlines():
        found = re.fullmatch(r"([│├└─ ]*)(\w+)(?: +(\d+) .*)?", line)
        assert found is not None, line
        depth = len(found[1])
        above = [each for each in above if each[0] < depth]
        status = int(found[3]) if found[3] else above[-1][2] if above else 1
        shown[found[2]] = (above[-1][1] if above else "Exception", status)
        above.append((depth, found[2], status))
    real = {
        name: (kind.__bases__[0].__name__, kind.exit_status)
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, errors.HoldfastError)
    }
    assert shown == real


def test_every_exit_status_of_a_task_has_its_error() -> None:
    of_errors = {
        kind.exit_status
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.HoldfastError)
    }
    assert set(EXIT_STATUS.values()) - {0} <= of_errors
