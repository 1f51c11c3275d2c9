"""Trust itself: hostile files and records, and what `holdfast trust` shows."""

from __future__ import annotations

import json
import os
import time

import pytest

from holdfast.testing import Scenario
from tests.hostile.trusting import audit, project, proof, records, trust
from tests.support.packets import Written
from tests.support.repos import Repo
from tests.support.tasks import Task, holdfast, workspace
from tests.support.terminal import Terminal

pytestmark = pytest.mark.usefixtures("home")


# ── hostile files ──


def test_a_linked_folder_is_refused() -> None:
    repo = project()
    elsewhere = os.path.join(workspace(), "elsewhere")
    os.makedirs(elsewhere)
    with open(os.path.join(elsewhere, "config.toml"), "w", encoding="utf-8") as file:
        file.write("deadline = '1h'\n")
    os.symlink(elsewhere, os.path.join(repo.path, ".holdfast"))
    done = holdfast("run", "--", "true", cwd=repo.path)
    assert done.returncode == 2
    assert "it is a link" in done.stderr


def test_a_secret_cannot_be_linked_into_a_prompt() -> None:
    secret = os.path.join(workspace(), "id_rsa")
    with open(secret, "w", encoding="utf-8") as file:
        file.write("the user's own words\n")
    packet = Written({"scripted_review": None}, intent="review_only", group="review")
    os.makedirs(os.path.join(packet.project.path, ".holdfast", "prompts"))
    os.symlink(secret, os.path.join(packet.project.path, ".holdfast", "prompts", "review.md"))
    done = holdfast("run", "-d", "--trust-project", "--packet", packet.path, cwd=packet.project.path)
    assert done.returncode == 2
    assert "it is a link" in done.stderr


@pytest.mark.parametrize("kind", ["fifo", "large", "device", "directory", "deep"])
def test_a_file_that_cannot_be_settings_neither_blocks_nor_crashes(kind: str) -> None:
    repo = project()
    folder = os.path.join(repo.path, ".holdfast")
    os.makedirs(folder)
    path = os.path.join(folder, "config.toml")
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "large":
        with open(path, "wb") as file:
            file.truncate(3 * 1024**3)
    elif kind == "device":
        os.symlink("/dev/zero", path)
    elif kind == "directory":
        os.makedirs(path)
    else:
        with open(path, "w", encoding="utf-8") as file:
            file.write("deadline = " + "[" * 100_000)
    began = time.monotonic()
    for words in (("run", "--", "true"), ("trust", "--yes"), ("config", "show")):
        done = holdfast(*words, cwd=repo.path)
        assert done.returncode == 2, (words, done.stderr)
        assert "config.toml" in done.stderr
    assert time.monotonic() - began < 30


# ── hostile records ──


@pytest.mark.parametrize("damage", ["torn", "empty", "list", "link", "fifo", "writable", "other", "folder"])
def test_a_record_in_doubt_is_no_trust(damage: str) -> None:
    repo = project(config=f"pre_work = ['touch {proof()}']\n")
    trust(repo)
    (name,) = os.listdir(records())
    path = os.path.join(records(), name)
    with open(path, "rb") as file:
        data = file.read()
    if damage in ("link", "fifo"):
        os.unlink(path)
    if damage == "torn":
        data = data[: len(data) // 2]
    elif damage == "empty":
        data = b""
    elif damage == "list":
        data = b"[" * 100_000
    elif damage == "other":
        data = data.replace(b"/clone", b"/other")
    elif damage == "link":
        os.symlink(os.path.join(repo.path, "own.json"), path)
        path = os.path.join(repo.path, "own.json")
    elif damage == "fifo":
        os.mkfifo(path)
    elif damage == "writable":
        os.chmod(path, 0o666)
    else:
        os.chmod(records(), 0o777)
    if damage != "fifo":
        with open(path, "wb") as file:
            file.write(data)
    done = holdfast("run", "--", "true", cwd=repo.path)
    assert not os.path.exists(proof())
    assert "ignored" in done.stderr
    if damage == "folder":  # the records of tasks are there, too
        assert done.returncode == 3
        assert "other users can write to it" in done.stderr
    else:
        assert done.returncode == 0, done.stderr


def test_a_project_that_contains_the_records_is_never_trusted() -> None:
    repo = Repo(os.environ["HOME"])
    repo.write(".holdfast/config.toml", f"pre_work = ['touch {proof()}']\n")
    done = holdfast("trust", repo.path, "--yes")
    assert done.returncode == 3
    assert "its agents could trust it themselves" in done.stderr
    holdfast("run", "--", "true", cwd=repo.path)
    assert not os.path.exists(proof())


# ── the verb ──


def test_it_asks_on_a_terminal_and_takes_no_for_an_answer() -> None:
    repo = project(config="pre_work = ['make lint']\nenv = ['TOKEN']\n")
    shown = Terminal("trust", repo.path)
    shown.read_until("[y/N]")
    shown.press("n\r")
    assert shown.finish() == 3
    assert "was not trusted" in shown.text
    shown = Terminal("trust", repo.path)
    text = shown.read_until("[y/N]")
    assert text.index("runs commands") < text.index("pre_work") < text.index("changes the environment")
    shown.press("y\r")
    assert shown.finish() == 0
    assert "already trusted" in holdfast("trust", repo.path).stderr
    listed = holdfast("trust", "--list", "--json")
    (row,) = json.loads(listed.stdout)["projects"]
    assert row["project"] == repo.path
    assert list(row["parts"]) == ["config.toml"]
    assert holdfast("trust", "--revoke", repo.path).returncode == 0
    assert holdfast("trust", "--revoke", repo.path).returncode == 3
    assert [line["operation"] for line in audit()] == ["project.trusted", "project.revoked"]


def test_no_character_hides_a_line() -> None:
    repo = project(config='pre_work = ["true \\u202e; \\u001b[2J touch x"]\n')
    shown = trust(repo)
    assert "\u202e" not in shown
    assert "\x1b" not in shown
    assert "\\u202e" in shown


def test_a_pipeline_is_shown_as_it_is_written() -> None:
    repo = project()
    stages = "[codex_impl, {parallel: [gemini_review, codex_review], timeout_sec: 900}]"
    profile = "version: 1\npipeline: impl\nprofiles:\n  quick:\n    stages: "
    repo.write(".holdfast/pipelines/impl.yaml", f"{profile}{stages}\n")
    assert stages in " ".join(trust(repo).replace('"', "").split())


def test_nested_projects_are_trusted_one_by_one() -> None:
    repo = project(config=f"pre_work = ['touch {proof()}']\n")
    trust(repo)
    inner = Repo(os.path.join(repo.path, "vendor", "evil"), with_git=False)
    inner.write(".holdfast/config.toml", f"pre_work = ['touch {proof('inner')}']\n")
    done = holdfast("run", "--project", inner.path, "--", "true", cwd=repo.path)
    assert "ignored" in done.stderr
    assert not os.path.exists(proof("inner"))
    link = os.path.join(workspace(), "link")
    os.symlink(repo.path, link)
    done = holdfast("run", "--project", link, "--", "true")
    assert "ignored" not in done.stderr
    assert os.path.exists(proof())


def test_in_a_worktree_the_settings_are_those_of_the_project_when_the_task_was_created() -> None:
    repo = project(config="post_work = ['true']\n")
    repo.commit(".holdfast/config.toml")
    trust(repo)
    evil = f"post_work = ['touch {proof()}']\n"
    scenario = Scenario().write(".holdfast/config.toml", content=evil).say("ok")
    task = Task.play(scenario, "--worktree", project=repo.path)
    task.wait_for("completed")
    assert not os.path.exists(proof())


def test_the_commands_of_a_template_are_shown_with_the_defaults_of_their_variables(home: str) -> None:
    """Else a default would hide what is run."""
    project = Repo(os.path.join(workspace(), "project"))
    variables = {
        "a": {"default": "sh"},
        "b": {"default": "-c"},
        "c": {"default": "touch evil"},
        "d": "a file",
    }
    template = {"version": 1, "goal": "x", "variables": variables, "accept": ["{{a}} {{b}} {{c}} {{d}}"]}
    project.write(".holdfast/templates/t.yaml", json.dumps(template))
    done = holdfast("trust", "--yes", project.path)
    assert done.returncode == 0, done.stderr
    assert "sh -c 'touch evil' '{{d}}'" in " ".join(done.stdout.split())
