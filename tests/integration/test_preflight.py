"""Before the first paid call, a task checks that everything it needs exists; otherwise it stops and says what
is missing."""

from __future__ import annotations

import os
import shutil
import sys

import pytest

from holdfast.agents import probe, registry
from holdfast.testing import Scenario
from tests.support import loops
from tests.support.packets import Written, calls, played, summary
from tests.support.tasks import Task, holdfast, workspace

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def with_keeper(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """These tests need a keeper."""
    monkeypatch.delenv("HOLDFAST_KEEPER")


def put(folder: str, name: str, text: str = "#!/bin/sh\nexit 42\n") -> str:
    """An executable file."""
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, 0o755)
    return path


def bare(*names: str) -> str:
    """A folder for PATH with these programs of the machine, and no others."""
    folder = os.path.join(workspace(), "bin")
    os.makedirs(folder, exist_ok=True)
    for name in names:
        found = sys.executable if name == "python3" else shutil.which(name)
        assert found is not None
        os.symlink(found, os.path.join(folder, name))
    return folder


# ── a task that starts long after it was made ──


@pytest.mark.usefixtures("with_keeper")
@pytest.mark.req("LCH-14", "LCH-15", "BUD-9")
def test_a_queued_task_whose_agent_is_gone_asks_a_person_before_any_call() -> None:
    folder = os.path.join(workspace(), "bin")
    program = put(folder, "gemini")
    env = {"PATH": f"{folder}:{os.environ['PATH']}"}
    task = loops.submit("--agent", "gemini", "hello", env=env)
    os.remove(program)
    loops.up()
    manifest = task.wait_for("interrupted", within_s=30)
    reason = manifest["interrupt"]["reason"]
    assert "gemini is not installed: no gemini in PATH" in reason
    assert f"holdfast resume {task.id}" in reason
    assert calls(task) == []
    assert "- next_action: **install_tool**" in summary(task)
    assert task.json("state", "preflight.json")["agents"][0]["found"] is None
    # Back in its place, a resume is enough.
    put(folder, "gemini")
    assert task.ask("resume").returncode == 0
    task.wait_for("failed", within_s=30)
    assert len(calls(task)) == 1


@pytest.mark.usefixtures("with_keeper")
@pytest.mark.req("LCH-14")
def test_a_missing_directory_is_reported_before_the_start() -> None:
    project = os.path.join(workspace(), "project")
    os.mkdir(project)
    task = loops.submit("--project", project, "--", "true")
    os.rmdir(project)
    loops.up()
    manifest = task.wait_for("interrupted", within_s=30)
    assert f"the directory {project} does not exist" in manifest["interrupt"]["reason"]
    assert task.attempts() == []


@pytest.mark.usefixtures("with_keeper")
@pytest.mark.req("LCH-14", "BUD-9")
def test_a_bootstrap_that_is_gone_aborts() -> None:
    scenario = Scenario().say("hello").write_to(os.path.join(workspace(), "scenario.json"))
    bootstrap = os.path.join(workspace(), "bootstrap.md")
    with open(bootstrap, "w", encoding="utf-8") as file:
        file.write("You are at work.\n")
    words = ("--agent", "scripted", "-o", f"scenario={scenario}", "--bootstrap", bootstrap, "hello")
    task = loops.submit(*words)
    os.remove(bootstrap)
    loops.up()
    manifest = task.wait_for("interrupted", within_s=30)
    assert f"the bootstrap {bootstrap} cannot be read" in manifest["interrupt"]["reason"]
    assert task.attempts() == []


# ── a run ──


@pytest.mark.req("LCH-14", "LCH-15", "BUD-9")
def test_a_retry_whose_agent_is_gone_fails_before_any_call() -> None:
    folder = os.path.join(workspace(), "bin")
    program = put(folder, "gemini")
    task = Task.start(
        "--agent", "gemini", "--max-retries", "0", "hello", env={"PATH": f"{folder}:{os.environ['PATH']}"}
    )
    eventual = task.wait_for("failed", "interrupted", "abandoned")
    assert eventual["status"] == "failed"
    before = len(calls(task))
    os.remove(program)
    assert task.ask("retry").returncode == 0
    task.wait_for_event("run.opened")
    manifest = task.wait_for("failed")
    assert "gemini is not installed" in manifest["status_reason"]
    assert len(calls(task)) == before
    (triaged,) = task.events("failure.triaged")
    assert (triaged["outcome"], triaged["failure_class"]) == ("preflight_failed", "tooling")


@pytest.mark.req("LCH-15")
def test_a_stage_that_writes_needs_git() -> None:
    """It existed when the task was created, and is missing when it continues."""
    astray = played("impl", before=Scenario().write("elsewhere.txt", content="x\n"))
    task = Written({"scripted_impl": astray}).run(end="failed")
    before = len(calls(task))
    done = holdfast("retry", task.id, env={"PATH": bare("sh", "python3")})
    assert done.returncode == 0, done.stderr
    task.wait_for_event("run.opened")
    manifest = task.wait_for("failed")
    assert "no git in PATH" in manifest["status_reason"]
    assert len(calls(task)) == before


@pytest.mark.req("LCH-15")
def test_a_template_that_was_spoiled_stops_the_pipeline_before_its_first_stage() -> None:
    astray = played("impl", before=Scenario().write("elsewhere.txt", content="x\n"))
    packet = Written({"scripted_impl": astray, "scripted_verify": None})
    task = packet.run(end="failed")
    before = len(calls(task))
    packet.project.write(".holdfast/prompts/verify.md", "\n")  # it is no longer read
    os.makedirs(task.path("inputs", "templates"))
    with open(task.path("inputs", "templates", "verify.md"), "w", encoding="utf-8") as file:
        file.write("\n")
    assert task.ask("retry").returncode == 0
    task.wait_for_event("run.opened")
    manifest = task.wait_for("failed")
    assert "verify.md is empty" in manifest["status_reason"]
    assert len(calls(task)) == before


@pytest.mark.req("LCH-14", "LCH-15")
def test_what_was_found_is_noted_with_versions_and_signs_of_a_login() -> None:
    folder = os.path.join(workspace(), "node_modules", "gemini")
    put(folder, "gemini")
    with open(os.path.join(folder, "package.json"), "w", encoding="utf-8") as file:
        file.write('{"name": "@google/gemini-cli", "version": "0.19.1"}')
    env = {"PATH": f"{folder}:{os.environ['PATH']}", "GEMINI_API_KEY": "not-a-real-key"}
    task = Task.start("--agent", "gemini", "--max-retries", "0", "hello", env=env)
    task.wait_for("failed")
    note = task.json("state", "preflight.json")
    assert [(each["agent"], each["version"], each["login_seen"]) for each in note["agents"]] == [
        ("gemini", "0.19.1", ["GEMINI_API_KEY"])
    ]
    assert note["problems"] == note["no_login_seen"] == []
    assert b"not-a-real-key" not in task.read("state", "preflight.json")


# ── the probe ──


@pytest.mark.req("LCH-15")
def test_a_program_of_a_version_manager_is_named_though_path_does_not_lead_to_it(tmp_path: str) -> None:
    home = str(tmp_path)
    put(os.path.join(home, ".nvm", "versions", "node", "v9.1.0", "bin"), "codex")
    newest = put(os.path.join(home, ".nvm", "versions", "node", "v22.3.0", "bin"), "codex")
    found = probe.probe(registry.adapter("codex"), {"PATH": "/nowhere", "HOME": home})
    assert found.problems == (f"codex is installed at {newest}, which is not in PATH",)
