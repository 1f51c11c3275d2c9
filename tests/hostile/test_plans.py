"""Commands of a plan inside a project: none runs before a person has seen and trusted it."""

from __future__ import annotations

import os

import pytest

from holdfast.testing import Scenario
from tests.support.repos import Repo
from tests.support.tasks import holdfast, workspace
from tests.support.terminal import Terminal

PLAN = "# Plan: fix it\n\n## Verify Commands\n\n```sh\nmake test\n```\n"
NEEDED = "has commands of a plan inside a project and was not trusted yet: acceptance.commands"


@pytest.fixture
def clone(home: str) -> Repo:
    """A clone with a plan, and settings of the user in which all agents are played."""
    user = Repo(os.environ["HOME"], with_git=False)
    Scenario().write("a", "b\n").say("## Summary\n\ndone.").write_to(user.write("steps.json", ""))
    user.write(
        ".config/holdfast/agents/scripted.yaml",
        f"version: 1\nagent: scripted\noptions: {{scenario: {user.path}/steps.json}}\n",
    )
    user.write(
        ".config/holdfast/pipelines/impl.yaml",
        "version: 1\npipeline: impl\nprofiles:\n  safe_impl:\n    stages: [scripted_impl, scripted_verify]\n",
    )
    clone = Repo(os.path.join(workspace(), "clone"))
    clone.write("plan.md", PLAN)
    clone.write("Makefile", f"test:\n\ttouch {os.path.dirname(home)}/ran\n")
    clone.commit("a")
    return clone


def test_a_packet_made_of_a_plan_needs_trust_wherever_it_is(home: str, clone: Repo) -> None:
    done = holdfast("new", "../fix", "--from-plan", "plan.md", "--id", "fix", cwd=clone.path)
    assert done.returncode == 0, done.stderr
    assert 'commands of the plan, which is inside a project: "make test"' in " ".join(done.stderr.split())
    assert f"holdfast trust {workspace()}/fix" in done.stderr
    os.rename(f"{workspace()}/fix", f"{workspace()}/moved")
    done = holdfast("run", "--packet", "../moved", cwd=clone.path)
    assert not os.path.exists(os.path.join(os.path.dirname(home), "ran"))
    assert done.returncode == 2, done.stderr
    assert NEEDED in " ".join(done.stderr.split())
    shown = holdfast("trust", "../moved", "--yes", cwd=clone.path)
    assert "make test" in shown.stdout
    done = holdfast("submit", "--packet", "../moved", cwd=clone.path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("answer", ["y", "n"])
def test_on_a_terminal_it_asks_once(clone: Repo, answer: str) -> None:
    terminal = Terminal("new", "../fix", "--from-plan", "plan.md", "--id", "fix", cwd=clone.path, columns=200)
    terminal.read_until("Trust these commands? [y/N]", within_s=60)
    assert '  "make test"' in terminal.text
    terminal.press(f"{answer}\r")
    assert terminal.finish() == 0
    done = holdfast("submit", "--packet", "../fix", cwd=clone.path)
    assert done.returncode == (0 if answer == "y" else 2), done.stderr


def test_a_script_says_that_it_trusts_them(clone: Repo) -> None:
    words = ("new", "../fix", "--from-plan", "plan.md", "--id", "fix", "--trust-project")
    assert holdfast(*words, cwd=clone.path).returncode == 0
    assert holdfast("submit", "--packet", "../fix", cwd=clone.path).returncode == 0


@pytest.mark.parametrize("folder", ["../fix", "fix"])
def test_a_plan_of_the_users_own_needs_nothing(clone: Repo, folder: str) -> None:
    with open(f"{workspace()}/own.md", "w", encoding="utf-8") as file:
        file.write(PLAN)
    done = holdfast("new", folder, "--from-plan", "../own.md", "--id", "fix", cwd=clone.path)
    assert done.returncode == 0, done.stderr
    assert "holdfast trust" not in done.stderr
    done = holdfast("submit", "--packet", folder, cwd=clone.path)
    assert done.returncode == 0, done.stderr
