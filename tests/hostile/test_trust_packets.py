"""Packets and work items inside a repository: none runs a command before the user trusts it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import pytest

from holdfast.testing import Scenario
from tests.hostile.trusting import project, proof, records
from tests.support.repos import Repo
from tests.support.tasks import Task, holdfast, workspace

pytestmark = pytest.mark.usefixtures("home")


# ── packets inside a repository ──


def packet_in(repo: Repo, command: str) -> str:
    folder = os.path.join(repo.path, "tasks", "fix")
    done = holdfast(
        "new", folder, "--id", "fix", "--intent", "review_only", "--goal", "look", "--accept", command,
        cwd=repo.path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


def with_program(name: str) -> dict[str, str]:
    """A PATH that has a program which does nothing."""
    programs = os.path.join(workspace(), "programs")
    os.makedirs(programs, exist_ok=True)
    with open(os.path.join(programs, name), "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\n")
    os.chmod(os.path.join(programs, name), 0o755)
    return {"PATH": f"{programs}:{os.environ['PATH']}"}


def submit(folder: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Into the queue, which no keeper runs here."""
    words = ("--packet", folder, "--id", f"task-{time.monotonic_ns()}", *words)
    return holdfast("submit", *words, cwd=folder, env=with_program("gemini"))


def test_a_packet_in_a_repository_needs_trust_when_it_is_not_the_users() -> None:
    repo = project()
    folder = packet_in(repo, "true")
    own = submit(folder)
    assert own.returncode == 0, own.stderr  # `new` wrote only what the user typed
    path = os.path.join(folder, "manifest.yaml")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    assert '"true"' in text or "- true" in text, text
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace("- true", f"- touch {proof()}").replace('"true"', f'"touch {proof()}"'))
    done = submit(folder)
    assert done.returncode == 2
    assert "changed since you trusted it or wrote it with 'new'; it has acceptance.commands" in done.stderr
    assert f"{repo.path} is a project: it has .git" in done.stderr
    assert f"holdfast trust {folder}" in done.stderr
    # Naming another project does not help.
    other = Repo(os.path.join(workspace(), "other"))
    done = submit(folder, "--project", other.path)
    assert done.returncode == 2
    assert "acceptance.commands" in done.stderr
    shown = holdfast("trust", folder, "--yes")
    assert shown.returncode == 0
    assert "manifest.yaml: acceptance.commands" in shown.stdout
    done = submit(folder)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("change", ["clean_room: false", "links: [.venv, tools]"])
def test_where_the_commands_of_a_packet_run_needs_trust(change: str) -> None:
    """A trusted `git diff` that runs where the agent worked runs what its git settings name."""
    repo = project()
    folder = packet_in(repo, "true")
    path = os.path.join(folder, "manifest.yaml")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace("\nacceptance:\n", f"\nacceptance:\n  {change}\n"))
    done = submit(folder)
    assert done.returncode == 2, done.stderr
    assert f"acceptance.{change.partition(':')[0]}" in done.stderr


@pytest.mark.parametrize("what", ["packet", "item"])
def test_an_agent_that_removes_the_marks_of_its_project_is_not_trusted(what: str) -> None:
    """Without `.git`, and with another project in it, a packet would look like the user's own."""
    repo = project()
    folder = packet_in(repo, "true")
    Task.shell("mv .git .gone", project=repo.path).wait_for("completed", within_s=30)
    other = Repo(os.path.join(workspace(), "other"))
    if what == "packet":
        path = os.path.join(folder, "manifest.yaml")
        with open(path, "a", encoding="utf-8") as file:
            file.write(f"\nproject: {other.path}\nenv: [HOME]\n")
        done = submit(folder)
    else:
        items = repo.write("items.jsonl", json.dumps({"id": "it", "command": f"touch {proof()}"}) + "\n")
        done = holdfast("queue", "import", items, "--project", other.path)
    assert done.returncode == 2, done.stdout
    assert "holdfast trust" in done.stderr


def test_a_trusted_environment_file_that_is_missing_is_named_with_the_file_that_names_it() -> None:
    repo = project(config="env_file = 'none.env'\n")
    done = holdfast("trust", repo.path, "--yes")
    assert done.returncode == 2
    settings = os.path.join(repo.path, ".holdfast", "config.toml")
    said = " ".join(done.stderr.split())
    assert f"none.env, which {settings} names" in said
    assert f"hint: create it, or remove env_file from {settings}" in said


def test_a_packet_that_an_agent_wrote_with_new_is_not_trusted() -> None:
    """The user has not typed what is in it."""
    repo = project()
    words = f"new packet --id it --agent claude --goal x --allow . --accept 'touch {proof()}'"
    done = holdfast(
        "run",
        "--",
        "sh",
        "-c",
        f"{sys.executable} -m holdfast {words}",
        cwd=repo.path,
        env=with_program("claude"),
    )
    assert done.returncode == 0, done.stderr
    assert os.path.exists(os.path.join(repo.path, "packet", "manifest.yaml"))
    assert [name for name in os.listdir(records()) if name.endswith(".json")] == []
    done = holdfast("run", "--packet", "packet", cwd=repo.path, env=with_program("claude"))
    assert done.returncode == 2
    assert "was not trusted yet: acceptance.commands" in done.stderr


# ── work items ──


def items_in(repo: Repo, kind: str, field: str) -> str:
    """A source in a repository: one item asks for something, the other for nothing."""
    if kind == "folder":
        repo.write("work/good.md", "---\nagent: claude\n---\nread it\n")
        repo.write("work/bad.md", f"---\n{field}\n---\nread it\n")
        return os.path.join(repo.path, "work")
    name, value = field.split(": ", 1)
    value = {"settings_path": "x.json"} if name == "options" else value.strip("'")
    bad: dict[str, object] = {"id": "bad", "title": "read it", name: value}
    good: dict[str, object] = {"id": "good", "title": "read it"}
    repo.write("work.jsonl", json.dumps(good) + "\n" + json.dumps(bad) + "\n")
    return os.path.join(repo.path, "work.jsonl")


def import_from(source: str, repo: Repo, *flags: str) -> subprocess.CompletedProcess[str]:
    """Into the queue, which no keeper runs here."""
    return holdfast("queue", "import", source, *flags, cwd=repo.path, env=with_program("claude"))


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_a_work_item_in_a_repository_runs_no_command_without_trust(kind: str) -> None:
    repo = project()
    source = items_in(repo, kind, f"command: 'touch {proof()}'")
    done = import_from(source, repo)
    assert done.returncode != 0
    assert "bad: it was not trusted yet: command" in done.stderr
    assert f"holdfast trust {source}" in done.stderr
    assert "bad" not in os.listdir(os.path.join(os.environ["HOLDFAST_HOME"], "tasks"))

    shown = holdfast("trust", source, "--yes")
    assert shown.returncode == 0, shown.stderr
    assert "runs commands" in shown.stdout
    assert f"touch {proof()}" in shown.stdout
    done = import_from(source, repo)
    assert "bad\n" in done.stdout, done.stderr
    bad = Task(os.path.join(os.environ["HOLDFAST_HOME"], "tasks", "bad"))
    assert bad.events("task.created")[0]["spec"]["trust"]["items"]["by"] == "holdfast trust"


def test_a_work_item_that_an_agent_changed_needs_trust_again() -> None:
    repo = project()
    source = items_in(repo, "folder", "command: 'true'")
    assert holdfast("trust", source, "--yes").returncode == 0
    items_in(repo, "folder", f"command: 'touch {proof()}'")
    done = import_from(source, repo)
    assert "changed since you trusted it; it has command" in done.stderr
    assert "bad\n" not in done.stdout


def test_options_of_a_work_item_in_a_repository_need_trust() -> None:
    repo = project()
    source = items_in(repo, "file", "options: x")
    done = import_from(source, repo, "--agent", "claude")
    assert "bad: it was not trusted yet: options" in done.stderr, done.stderr
    assert done.stdout == "good\n"


def test_nothing_that_a_work_item_names_is_read_before_it_is_trusted() -> None:
    """A huge file would fill the memory, and an error about a file tells what is in it."""
    repo = project()
    huge = repo.write("huge.json", "")
    os.truncate(huge, 1 << 40)
    item = {"id": "bad", "title": "x", "agent": "scripted", "options": {"scenario": huge}}
    repo.write("work.jsonl", json.dumps(item) + "\n")
    done = import_from(os.path.join(repo.path, "work.jsonl"), repo)
    assert done.returncode == 2
    assert "bad: it was not trusted yet: options" in done.stderr, done.stderr


def test_a_file_of_a_work_item_that_is_too_large_to_compare_is_never_trusted() -> None:
    repo = project()
    item = {"id": "bad", "title": "x", "agent": "scripted", "options": {"scenario": "big.json"}}
    repo.write("work.jsonl", json.dumps(item) + "\n")
    source, padding = os.path.join(repo.path, "work.jsonl"), " " * (1 << 20)
    Scenario().result("done").write_to(os.path.join(repo.path, "small.json"))
    with open(os.path.join(repo.path, "small.json"), encoding="utf-8") as file:
        repo.write("big.json", file.read() + padding)
    shown = holdfast("trust", source, "--yes", cwd=repo.path)
    assert "big.json: it has more than 1048576 bytes" in " ".join(shown.stdout.split())
    Scenario().tool(command=f"touch {proof()}").result("done").write_to(os.path.join(repo.path, "small.json"))
    with open(os.path.join(repo.path, "small.json"), encoding="utf-8") as file:
        repo.write("big.json", file.read() + padding)
    done = import_from(source, repo)
    assert "changed since you trusted it; it has options" in done.stderr, done
    assert "bad\n" not in done.stdout


def test_which_file_of_a_work_item_has_which_content_is_trusted() -> None:
    """Files whose contents together are the same are not the same files."""
    repo = project()
    options = {"settings_path": "a.json", "system_prompt_path": "b.md"}
    item = {"id": "bad", "title": "x", "agent": "claude", "options": options}
    repo.write("work.jsonl", json.dumps(item) + "\n")
    source = os.path.join(repo.path, "work.jsonl")
    repo.write("a.json", "{}")
    repo.write("b.md", "x\0y")
    assert holdfast("trust", source, "--yes", cwd=repo.path).returncode == 0
    repo.write("a.json", "{}\0x")
    repo.write("b.md", "y")
    assert "changed since you trusted it; it has options" in import_from(source, repo).stderr


def test_a_script_can_trust_the_items_of_one_import_and_the_settings_of_its_project() -> None:
    repo = project(config=f"pre_work = ['touch {proof('checked')}']\n")
    source = items_in(repo, "folder", "command: 'true'")
    done = import_from(source, repo, "--trust-project")
    assert "bad\n" in done.stdout, done.stderr
    bad = Task(os.path.join(os.environ["HOLDFAST_HOME"], "tasks", "bad"))
    spec = bad.events("task.created")[0]["spec"]
    assert (spec["trust"]["by"], spec["trust"]["items"]["by"]) == ("--trust-project", "--trust-project")
    assert spec["quality"]["pre_work"] == [f"touch {proof('checked')}"]
    typed = json.dumps({"id": "typed", "command": ["true"]})
    done = holdfast("queue", "add", typed, "--trust-project", cwd=repo.path)
    assert done.returncode == 0, done.stderr
    # Options that a person types need no trust; the project is not trusted for the next import.
    done = holdfast("queue", "add", typed.replace("typed", "again"), cwd=repo.path)
    assert done.returncode == 0, done.stderr
    assert "ignored" in done.stderr
