"""What is certain to fail is refused before a task is created."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from holdfast.errors import UsageError
from tests.support.packets import Written
from tests.support.repos import Repo
from tests.support.tasks import holdfast, workspace


@pytest.fixture(autouse=True)
def in_a_home(home: str) -> None:
    workspace()


def refused(home: str, *args: str, cwd: str, env: dict[str, str] | None = None) -> str:
    """The message of a refusal; no task was created."""
    done = holdfast("run", *args, cwd=cwd, env=env)
    assert done.returncode == 2, done.stderr
    assert "\nhint: " in done.stderr
    assert os.listdir(os.path.join(home, "tasks")) == []
    return done.stderr


def without_git(tmp_path: str) -> dict[str, str]:
    """A PATH with `true` and nothing else."""
    folder = os.path.join(tmp_path, "bin")
    os.mkdir(folder)
    os.symlink("/bin/true", os.path.join(folder, "true"))
    return {"PATH": folder}


@pytest.mark.parametrize("first_of_path", ["", "tools"])
def test_a_program_is_looked_for_from_the_project(home: str, first_of_path: str) -> None:
    """As the kernel resolves it: PATH and `#!` lines may be relative to the project."""
    project = workspace()
    elsewhere = os.path.join(os.path.dirname(home), "elsewhere")
    os.makedirs(os.path.join(project, "tools"))
    os.mkdir(elsewhere)
    os.symlink("/bin/sh", os.path.join(project, "tools", "shell"))
    script = os.path.join(project, first_of_path, "greet")
    with open(script, "w", encoding="utf-8") as file:
        file.write("#!tools/shell\necho hello\n")
    os.chmod(script, 0o700)
    path = {"PATH": f"{first_of_path}:{os.environ['PATH']}"}
    done = holdfast("run", "--id", "it", "--project", project, "--", "greet", cwd=elsewhere, env=path)
    assert done.returncode == 0, done.stderr
    assert "completed" in done.stderr


def test_a_program_that_is_there_for_the_caller_alone(home: str) -> None:
    elsewhere = os.path.join(os.path.dirname(home), "elsewhere")
    os.mkdir(elsewhere)
    os.symlink("/bin/true", os.path.join(elsewhere, "greet"))
    path = {"PATH": f":{os.environ['PATH']}"}
    message = refused(home, "--project", workspace(), "--", "greet", cwd=elsewhere, env=path)
    assert "greet: command not found" in message


def test_an_option_that_names_no_file(home: str) -> None:
    message = refused(home, "--agent", "scripted", "-o", "scenario=no.json", "hi", cwd=workspace())
    assert "no.json" in message


def test_an_option_that_the_agent_does_not_know(home: str) -> None:
    message = refused(home, "--agent", "scripted", "-o", "scenari=x.json", "hi", cwd=workspace())
    assert "-o scenari: scripted has no such option" in message
    assert "did you mean 'scenario'?" in message
    message = refused(home, "--agent", "scripted", "-o", "zzz=1", "hi", cwd=workspace())
    assert "hint: its options: scenario, allowed_tools, settings_path, system_prompt_path" in message
    message = refused(home, "--agent", "scripted", "-o", "yolo=true", "hi", cwd=workspace())
    assert "hint: --permissions full" in message


def test_a_packet_with_an_option_that_the_agent_does_not_know(home: str) -> None:
    written = Written({"scripted_impl": None})
    options = written.manifest["routing"]["options"]["scripted_impl"]
    options["alowed_tools"] = ["Read"]
    written.put("manifest.yaml", json.dumps(written.manifest))
    message = refused(home, "--packet", written.path, cwd=written.project.path)
    assert "scripted_impl: scripted has no option alowed_tools (did you mean 'allowed_tools'?)" in message


def test_a_switch_is_true_or_false(home: str) -> None:
    from holdfast.agents import registry
    from holdfast.views.create import agent_options

    codex = registry.adapter("codex")
    assert agent_options.read(["skip_git_repo_check=true"], [codex], project="/") == {
        "skip_git_repo_check": True
    }
    with pytest.raises(UsageError, match="must be true or false"):
        agent_options.read(["skip_git_repo_check=1"], [codex], project="/")
    # A failover agent may have other options.
    gemini = registry.adapter("gemini")
    assert agent_options.read(["approval_mode=plan"], [codex, gemini], project="/") == {
        "approval_mode": "plan"
    }


@pytest.mark.parametrize(
    "flags",
    [
        ["-o", "scenario=x"],
        ["--model", "large"],
        ["--yolo"],
        ["--permissions", "edit"],
        ["--bootstrap", "default"],
        ["--var", "a=b"],
        ["--budget-usd", "1"],
        ["--budget-tokens", "1000"],
        ["--max-turns", "3"],
    ],
    ids=" ".join,
)
def test_options_that_only_agents_understand_are_refused_for_a_command(home: str, flags: list[str]) -> None:
    message = refused(home, *flags, "--", "true", cwd=workspace())
    assert f"error: {flags[0]} applies to agents, and this is a plain command" in message


def test_a_packet_whose_option_names_no_file(home: str) -> None:
    written = Written({"scripted_impl": None})
    os.unlink(os.path.join(written.path, "scripted_impl.json"))
    assert "scripted_impl.json" in refused(home, "--packet", written.path, cwd=written.project.path)


def test_a_worktree_outside_git(home: str) -> None:
    message = refused(home, "--worktree", "--", "true", cwd=workspace())
    assert "is not in a git repository" in message


def test_a_worktree_of_a_repository_without_a_commit(home: str) -> None:
    repo = Repo(os.path.join(workspace(), "repo"))
    assert "has no commit yet" in refused(home, "--worktree", "--", "true", cwd=repo.path)


def test_a_worktree_without_git(home: str, tmp_path: str) -> None:
    message = refused(home, "--worktree", "--", "true", cwd=workspace(), env=without_git(str(tmp_path)))
    assert "git is not in PATH" in message


def test_a_packet_that_writes_without_git(home: str, tmp_path: str) -> None:
    written = Written({"scripted_impl": None})
    env = without_git(str(tmp_path))
    message = refused(home, "--packet", written.path, cwd=written.project.path, env=env)
    assert "git is not in PATH" in message


def test_a_packet_for_a_worktree_outside_git(home: str) -> None:
    project = Repo(os.path.join(workspace(), "plain"), with_git=False)
    written = Written({"scripted_impl": None}, project=project)
    message = refused(home, "--worktree", "--packet", written.path, cwd=project.path)
    assert "is not in a git repository" in message


def test_a_project_that_is_a_file(home: str) -> None:
    message = refused(home, "--project", "/etc/passwd", "--", "true", cwd=workspace())
    assert "/etc/passwd is not a directory" in message


def test_an_empty_command(home: str) -> None:
    assert "no command was given" in refused(home, "--", "", cwd=workspace())


def test_a_packet_whose_id_is_taken_names_the_file_with_the_id(home: str) -> None:
    written = Written({"scripted_impl": None})
    written.start()
    done = holdfast("run", "--packet", written.path, cwd=written.project.path)
    assert done.returncode == 2
    assert "hint: change task_id in manifest.yaml, or give another with --id" in done.stderr


def test_the_home_is_absolute_for_the_agent(home: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "holdfast", "run", "--id", "it", "--project", workspace(), "--", "env"],
        env={**os.environ, "HOLDFAST_HOME": os.path.basename(home)},
        cwd=os.path.dirname(home),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    with open(os.path.join(home, "tasks", "it", "output.log"), encoding="utf-8") as file:
        assert f"HOLDFAST_HOME={os.path.realpath(home)}\n" in file.read()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("echo hi\n", "is a text file without a #! line"),
        ("#!/no/such/interpreter -x\n", "needs /no/such/interpreter, which does not exist"),
        ("#!/bin/sh\r\necho hi\r\n", "has Windows line ends (CR LF)"),
    ],
    ids=["no-first-line", "no-interpreter", "of-windows"],
)
def test_an_unreadable_script(home: str, text: str, message: str) -> None:
    path = os.path.join(workspace(), "script")
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(text)
    os.chmod(path, 0o755)
    assert message in refused(home, "--", "./script", cwd=workspace())


def test_an_agent_and_a_command(home: str) -> None:
    message = refused(home, "--agent", "scripted", "-f", "p.txt", "--", "true", cwd=_with_prompt())
    assert "an agent (scripted) and a command were given" in message


def _with_prompt() -> str:
    with open(os.path.join(workspace(), "p.txt"), "w", encoding="utf-8") as file:
        file.write("do it")
    return workspace()


def test_a_prompt_without_end(home: str) -> None:
    scenario = os.path.join(workspace(), "scenario.json")
    with open(scenario, "w", encoding="utf-8") as file:
        file.write("[]")
    with subprocess.Popen(["yes"], stdout=subprocess.PIPE) as endless:
        asked = ["run", "--agent", "scripted", "-o", f"scenario={scenario}", "-f", "-"]
        done = subprocess.run(
            [sys.executable, "-m", "holdfast", *asked],
            stdin=endless.stdout, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        endless.kill()
    assert done.returncode == 2
    assert "the prompt in stdin is larger than 16 MB" in done.stderr
    assert os.listdir(os.path.join(home, "tasks")) == []
