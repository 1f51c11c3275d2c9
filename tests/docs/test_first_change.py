"""docs/guides/first-change.md: its template and its commands are valid."""

from __future__ import annotations

import json
import os
import re
import shlex

import pytest

from holdfast import paths
from holdfast.testing import Scenario
from tests.support import pages
from tests.support.packets import played, scripted_claude
from tests.support.repos import Repo
from tests.support.tasks import holdfast, workspace

pytestmark = [pytest.mark.usefixtures("home"), pytest.mark.req("TEA-2", "TEA-3")]
ROLES = ("brief", "impl", "verify", "review")


def commands(page: str) -> list[list[str]]:
    """The commands of ours in its blocks for a shell."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    lines = [line for block in blocks for line in block.splitlines() if line.startswith("holdfast ")]
    return [shlex.split(line, comments=True)[1:] for line in lines]


@pytest.fixture
def page() -> str:
    return pages.read("docs/guides/first-change.md")


@pytest.fixture
def project() -> Repo:
    repo = Repo(os.path.join(workspace(), "project"))
    repo.commit("tests/test_slug.py", "src/slug.py")
    return repo


def test_its_two_commands(page: str, project: Repo) -> None:
    first, second = commands(page)[:2]
    assert (first[0], second) == ("new", ["apply", "TASK"])
    # The acceptance command of the guide needs a project with tests.
    first[first.index("--accept") + 1] = "test -e b.txt"
    env = scripted_claude(**{role: played(role) for role in ROLES})
    done = holdfast(*first, "--json", cwd=project.path, env=env)
    assert done.returncode == 0, done.stderr
    applied = holdfast("apply", json.loads(done.stdout)["task_id"], cwd=project.path)
    assert applied.returncode == 0, applied.stderr
    assert project.read("b.txt") == "hello\n"


def test_its_denied_tests_may_be_run_by_the_agent_but_not_changed(page: str, project: Repo) -> None:
    """Running tests leaves caches beside them, which git ignores."""
    (flags,) = re.findall(r"^- `(--allow .*?)`:", page, re.MULTILINE)
    project.write(".gitignore", "__pycache__/\n")
    project.commit(".gitignore")
    first = [*commands(page)[0], *shlex.split(flags), "--json"]
    first[first.index("--accept") + 1] = "test -e src/b.txt"
    script = "mkdir -p tests/__pycache__ && echo > tests/__pycache__/test_slug.cpython-311.pyc"
    for more, status in (("true", 0), ("echo >> tests/test_slug.py", 1)):
        impl = Scenario().write("src/b.txt", content="x\n").tool("sh", command=f"{script} && {more}")
        env = scripted_claude(
            **{role: played(role) for role in ROLES} | {"impl": played("impl", before=impl)}
        )
        done = holdfast(*first, cwd=project.path, env=env)
        assert done.returncode == status, done.stderr


def test_its_template(page: str, project: Repo) -> None:
    (template,) = re.findall(r"^```yaml\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    folder = os.path.join(paths.config_dir(), "templates")
    os.makedirs(folder)
    with open(os.path.join(folder, "failing-test.yaml"), "w", encoding="utf-8") as file:
        file.write(template)
    words = next(words for words in commands(page) if "--template" in words)
    words.remove("--run")
    done = holdfast(*words, "--json", cwd=project.path)
    assert done.returncode == 0, done.stderr
    packet = json.loads(done.stdout)["path"]
    shown = json.loads(holdfast("pipeline", "show", packet, "--json", cwd=project.path).stdout)
    assert shown["acceptance_commands"] == ["python -m pytest -x tests/test_slug.py"]
    assert shown["scope_allow"] == ["src/"]
