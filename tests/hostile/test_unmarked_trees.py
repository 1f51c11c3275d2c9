"""An unpacked archive has no `.git`: what it brings is another's all the same."""

from __future__ import annotations

import json
import os

import pytest

from holdfast.testing import Scenario
from tests.support.repos import Repo
from tests.support.tasks import holdfast, workspace

MANIFEST = """\
task_id: fix
goal: fix it
project: ../other
routing:
  intent: safe_impl
  agent: scripted
  options: {scripted: {scenario: steps.json}}
  pipeline: {flags: {enable_brief: false, enable_review: false}}
scope: {allow: ["**"], deny: []}
acceptance: {commands: ["touch {ran}"], criteria: [x]}
budgets: {retry_budget: 1, paid_call_budget: 6, max_wallclock_sec: 60}
context: {digest_policy: "off"}
"""


@pytest.fixture
def archive(home: str) -> Repo:
    """The unpacked archive, with a directory in it."""
    tree = Repo(os.path.join(workspace(), "archive"), with_git=False)
    tree.write("sub/a", "a\n")
    return tree


@pytest.fixture
def ran(home: str) -> str:
    """The file that a command of the archive leaves."""
    return os.path.join(os.path.dirname(home), "ran")


@pytest.mark.parametrize("here", ["", "sub"])
def test_work_items_of_an_archive_run_no_command(archive: Repo, ran: str, here: str) -> None:
    archive.write("items.jsonl", json.dumps({"id": "a", "title": "t", "command": f"touch {ran}"}) + "\n")
    name = os.path.relpath("items.jsonl", here or ".")
    done = holdfast("queue", "import", name, cwd=os.path.join(archive.path, here))
    assert done.returncode == 2, done.stdout
    assert "a: it was not trusted yet: command" in " ".join(done.stderr.split())
    assert not os.path.exists(os.path.join(os.environ["HOLDFAST_HOME"], "tasks", "a"))


def test_a_packet_of_an_archive_does_not_choose_what_it_is_judged_against(archive: Repo, ran: str) -> None:
    archive.write("other/a", "a\n")
    archive.write("task/manifest.yaml", MANIFEST.replace("{ran}", ran))
    Scenario().write("f", "b\n").say("## Summary\n\ndone.").write_to(f"{archive.path}/task/steps.json")
    done = holdfast("run", "--packet", "task", cwd=archive.path)
    assert not os.path.exists(ran)
    assert done.returncode == 2, done.stderr
    assert "was not trusted yet: project, " in done.stderr
    # Trust is by content, wherever it is given.
    assert holdfast("trust", f"{archive.path}/task", "--yes").returncode == 0
    done = holdfast("submit", "--packet", "task", cwd=archive.path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("where", [".", "good"])
def test_a_packet_is_not_judged_by_the_project_that_it_names(home: str, ran: str, where: str) -> None:
    """In the home directory there is no tree around the user; from another project, it is elsewhere."""
    user = os.environ["HOME"]
    evil, _ = Repo(os.path.join(user, "evil"), with_git=False), Repo(os.path.join(user, "good"))
    evil.write("pk/manifest.yaml", MANIFEST.replace("{ran}", ran).replace("../other", "../../good"))
    Scenario().write("f", "b\n").say("## Summary\n\ndone.").write_to(f"{evil.path}/pk/steps.json")
    here = os.path.join(user, where)
    for words in ((), ("--project", os.path.join(user, "good"))):
        done = holdfast("run", "--packet", f"{evil.path}/pk", *words, cwd=here)
        assert not os.path.exists(ran)
        assert done.returncode == 2, done.stderr
        assert "was not trusted yet: project, " in done.stderr


def test_work_items_are_not_judged_by_the_named_project_alone(home: str, ran: str) -> None:
    user = os.environ["HOME"]
    evil, good = Repo(os.path.join(user, "evil"), with_git=False), Repo(os.path.join(user, "good"))
    evil.write("items.jsonl", json.dumps({"id": "a", "title": "t", "command": f"touch {ran}"}) + "\n")
    done = holdfast("queue", "import", "evil/items.jsonl", "--project", good.path, cwd=user)
    assert done.returncode == 2, done.stdout
    assert "a: it was not trusted yet: command" in " ".join(done.stderr.split())


def test_an_archive_in_the_place_of_a_packet_of_the_users_is_not_the_users(home: str, ran: str) -> None:
    """What `new` made outside a project may be edited; another directory of its name is another packet."""
    user, good = os.environ["HOME"], Repo(os.path.join(os.environ["HOME"], "good"))
    packet = os.path.join(user, "fix")
    made = holdfast("new", packet, "--agent", "scripted", "--goal", "x", "--allow", ".", cwd=good.path)
    assert made.returncode == 0, made.stderr
    text = MANIFEST.replace("{ran}", ran).replace("../other", "../good").replace("touch", "true")

    def submitted() -> int:
        with open(os.path.join(packet, "manifest.yaml"), "w", encoding="utf-8") as file:
            file.write(text)
        Scenario().say("## Summary\n\ndone.").write_to(os.path.join(packet, "steps.json"))
        return holdfast("submit", "--packet", packet, cwd=good.path).returncode

    assert submitted() == 0
    os.rename(packet, f"{packet}.old")
    os.mkdir(packet)
    assert submitted() == 2


@pytest.mark.parametrize("here", ["", "sub"])
def test_a_page_is_not_written_where_a_link_of_an_archive_leads(archive: Repo, here: str) -> None:
    victim = os.path.join(workspace(), "victim")
    with open(victim, "w", encoding="utf-8") as file:
        file.write("precious\n")
    os.symlink("../victim", os.path.join(archive.path, "page.html"))
    name = os.path.relpath("page.html", here or ".")
    done = holdfast("report", "--html", name, cwd=os.path.join(archive.path, here))
    with open(victim, encoding="utf-8") as file:
        assert file.read() == "precious\n"
    assert done.returncode == 3, done.stderr
    assert f"leads out of {archive.path}, through a link: to {victim}" in " ".join(done.stderr.split())
