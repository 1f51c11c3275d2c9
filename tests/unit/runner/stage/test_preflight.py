"""The preflight: what is certainly missing is found before the first call."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable

import pytest

from holdfast.agents import probe
from holdfast.model import events as ev
from holdfast.model.spec import SandboxSpec, StageSpec
from holdfast.runner.plan.facts import PreflightProblem
from holdfast.runner.stage import preflight
from holdfast.sandbox import machine
from tests.support.bench import PIPELINE, SECRET, Bench, put, text_of

IMPL = StageSpec(name="codex_impl", agent="codex", role="impl", writes=True)
REVIEW = StageSpec(name="claude_review", agent="claude", role="review")
COMMAND = StageSpec(name="command_run", agent="command")

Make = Callable[..., Bench]


@pytest.fixture
def env(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A machine on which codex, claude, pi and git are installed, whatever this one has."""
    monkeypatch.setattr(probe, "_OF_ALL", (f"{tmp_path}/local",))
    for name in ("codex", "claude", "pi", "git"):
        os.chmod(put(f"{tmp_path}/bin/{name}", "#!/bin/sh\n"), 0o700)
    return {"PATH": f"{tmp_path}/bin", "HOME": f"{tmp_path}/home"}


def problems(task: Bench, env: dict[str, str]) -> list[str]:
    return [problem.text for problem in preflight.find_problems(task.ledger, env)]


def uninstall(env: dict[str, str], program: str) -> None:
    os.unlink(f"{env['PATH']}/{program}")


def test_nothing_is_missing(bench: Make, env: dict[str, str]) -> None:
    task = bench(IMPL, REVIEW, pipeline=PIPELINE)
    assert problems(task, env) == []
    note = json.loads(text_of(task.packet.preflight) or "")
    assert [each["agent"] for each in note["agents"]] == ["codex", "claude"]
    assert (note["run"], note["problems"]) == (1, [])


@pytest.mark.parametrize(
    ("stage", "workspace", "is_needed"),
    [(IMPL, "in_place", True), (COMMAND, "worktree", True), (REVIEW, "in_place", False)],
)
def test_git_is_needed_by_stages_that_write(
    bench: Make, env: dict[str, str], stage: StageSpec, workspace: str, is_needed: bool
) -> None:
    uninstall(env, "git")
    found = problems(bench(stage, workspace=workspace), env)
    assert found == (["there is no git in PATH; it is needed to track changes"] if is_needed else [])


def test_a_program_outside_path_is_named_with_its_place(bench: Make, env: dict[str, str]) -> None:
    uninstall(env, "claude")
    place = put(f"{env['HOME']}/.local/bin/claude", "#!/bin/sh\n")
    os.chmod(place, 0o700)
    found = preflight.find_problems(bench(REVIEW).ledger, env)
    assert found == (PreflightProblem(text=f"claude is installed at {place}, which is not in PATH"),)


def test_a_program_that_is_not_installed_is_named_for_the_remedy(bench: Make, env: dict[str, str]) -> None:
    task = bench(StageSpec(name="copilot_run", agent="copilot"))
    found = preflight.find_problems(task.ledger, env)
    assert found == (
        PreflightProblem(text="copilot is not installed: no copilot in PATH", missing_program="copilot"),
    )
    place = put(f"{os.path.dirname(env['PATH'])}/local/copilot", "#!/bin/sh\n")
    os.chmod(place, 0o700)
    found = preflight.find_problems(task.ledger, env)
    assert found == (PreflightProblem(text=f"copilot is installed at {place}, which is not in PATH"),)


def done(task: Bench) -> None:
    task.finish(IMPL.name)


def switched(task: Bench) -> None:
    task.tell(ev.AgentSwitched(stage=IMPL.name, old="codex", new="pi", reason="quota"))


@pytest.mark.parametrize(
    ("past", "agents"), [(None, ["codex", "claude"]), (done, ["claude"]), (switched, ["pi", "claude"])]
)
def test_the_agents_of_the_stages_that_are_left_are_checked(
    bench: Make, env: dict[str, str], past: Callable[[Bench], None] | None, agents: list[str]
) -> None:
    task = bench(IMPL, REVIEW)
    if past is not None:
        past(task)
    problems(task, env)
    note = json.loads(text_of(task.packet.preflight) or "")
    assert [each["agent"] for each in note["agents"]] == agents


def test_directory_and_bootstrap_must_be_there(bench: Make, env: dict[str, str], tmp_path: object) -> None:
    task = bench(COMMAND, project_dir=f"{tmp_path}/gone", bootstrap=f"{tmp_path}/gone.md")
    assert problems(task, env) == [
        f"the directory {tmp_path}/gone does not exist",
        f"the bootstrap {tmp_path}/gone.md cannot be read",
    ]


def test_the_bootstrap_that_comes_with_holdfast_is_there(bench: Make, env: dict[str, str]) -> None:
    assert problems(bench(COMMAND, bootstrap="default"), env) == []


def test_templates_are_needed_for_the_stages_that_are_left(bench: Make, env: dict[str, str]) -> None:
    unknown = StageSpec(name="claude_poet", agent="claude", role="poet")
    task = bench(unknown, REVIEW, pipeline=PIPELINE)
    (problem,) = problems(task, env)
    assert "poet" in problem
    task.finish(unknown.name)
    assert problems(task, env) == []


@pytest.mark.parametrize(
    ("own_commands", "sandbox", "is_brief_over", "is_refused"),
    [
        ((), None, False, True),
        (("make test",), None, False, False),
        ((), SandboxSpec(), False, False),
        ((), None, True, False),
    ],
)
def test_a_brief_that_alone_names_acceptance_commands_needs_a_sandbox(
    bench: Make,
    env: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    own_commands: tuple[str, ...],
    sandbox: SandboxSpec | None,
    is_brief_over: bool,
    is_refused: bool,
) -> None:
    """Otherwise all stages would be paid for, and the last gate could judge nothing."""
    monkeypatch.setattr(machine, "_SYSTEM", "/nonexistent")
    brief = StageSpec(name="claude_brief", agent="claude", role="brief")
    pipeline = PIPELINE.evolve(acceptance_commands=own_commands)
    task = bench(brief, IMPL, pipeline=pipeline, sandbox=sandbox)
    if is_brief_over:
        task.finish(brief.name)
    found = [text for text in problems(task, env) if "brief" in text]
    assert bool(found) == is_refused
    assert all("bubblewrap is not installed" in text and "acceptance.commands" in text for text in found)


def test_a_brief_for_which_no_stage_writes_needs_none(
    bench: Make, env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "_SYSTEM", "/nonexistent")
    task = bench(StageSpec(name="claude_brief", agent="claude", role="brief"), REVIEW, pipeline=PIPELINE)
    assert [text for text in problems(task, env) if "brief" in text] == []


def test_problems_are_noted_without_secrets(bench: Make, env: dict[str, str], tmp_path: object) -> None:
    task = bench(COMMAND, project_dir=f"{tmp_path}/{SECRET}")
    (problem,) = problems(task, env)
    assert problem == f"the directory {tmp_path}/*** does not exist"
    assert json.loads(text_of(task.packet.preflight) or "")["problems"] == [problem]


def test_a_plain_command_without_problems_leaves_no_note(bench: Make, env: dict[str, str]) -> None:
    task = bench(COMMAND)
    assert problems(task, env) == []
    assert text_of(task.packet.preflight) is None


@pytest.mark.parametrize(
    ("variables", "listed"), [({}, ["claude"]), ({"ANTHROPIC_API_KEY": "x"}, list[str]())]
)
def test_a_login_that_is_not_visible_is_noted_but_no_problem(
    bench: Make,
    env: dict[str, str],
    capsys: pytest.CaptureFixture[str],
    variables: dict[str, str],
    listed: list[str],
) -> None:
    task = bench(REVIEW)
    assert problems(task, {**env, **variables}) == []
    assert json.loads(text_of(task.packet.preflight) or "")["no_login_seen"] == listed
    assert ("claude: no sign of a login; 'claude auth login' logs in" in capsys.readouterr().err) == bool(
        listed
    )


def test_a_note_that_cannot_be_written_stops_nothing(bench: Make, env: dict[str, str]) -> None:
    task = bench(REVIEW)
    shutil.rmtree(task.packet.path)
    assert problems(task, env) == []
