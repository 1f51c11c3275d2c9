"""Session, prompt files and command line of a stage's next attempt."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.agents import registry
from holdfast.errors import UnreadableFile
from holdfast.model import events as ev
from holdfast.model.spec import Limits, StageSpec
from holdfast.model.status import Status
from holdfast.runner.stage import launch
from holdfast.store.digest import sha256
from tests.support.bench import Bench, put, text_of

#: A session that did not exist before.
NEW = "a new one"
CLAUDE = StageSpec(name="claude_run", agent="claude")
CODEX = StageSpec(name="codex_run", agent="codex")
COMMAND = StageSpec(name="command_run", agent="command")

Make = Callable[..., Bench]


def nothing(task: Bench) -> None:
    """No attempt yet."""


def never_ran(task: Bench) -> None:
    task.ran(1, "spawn_failed", session_id="S", exec_errno=2)


def crashed(task: Bench) -> None:
    task.ran(1, "crashed", session_id="S")


def crashed_without_session(task: Bench) -> None:
    task.ran(1, "crashed")


def lost_its_session(task: Bench) -> None:
    task.ran(1, "unknown_session", session_id="S", resumable=False)


def planned_afresh(task: Bench) -> None:
    crashed(task)
    task.tell(ev.RetryPlanned(stage=task.stage.name, consecutive=1, total=1, delay_s=0.0, fresh_session=True))


def briefed_in_vain(task: Bench) -> None:
    planned_afresh(task)
    task.ran(2, "spawn_failed", mode="briefing", session_id="N", exec_errno=2)


def switched_to_claude(task: Bench) -> None:
    crashed(task)
    task.tell(ev.AgentSwitched(stage=task.stage.name, old=task.stage.agent, new="claude", reason="quota"))


def switched_to_command(task: Bench) -> None:
    crashed(task)
    task.tell(ev.AgentSwitched(stage=task.stage.name, old=task.stage.agent, new="command", reason="quota"))


def switched_in_vain(task: Bench) -> None:
    switched_to_claude(task)
    task.ran(2, "spawn_failed", mode="briefing", session_id="N", exec_errno=2)


def switched_and_ran(task: Bench) -> None:
    switched_to_claude(task)
    task.ran(2, "crashed", mode="briefing", session_id="N")


@pytest.mark.parametrize(
    ("stage", "past", "mode", "session"),
    [
        (CLAUDE, nothing, "fresh", NEW),
        (CODEX, nothing, "fresh", None),
        (COMMAND, nothing, "fresh", None),
        # An attempt that never ran used no session, so its id is still free.
        (CLAUDE, never_ran, "fresh", "S"),
        (CLAUDE, crashed, "resume", "S"),
        (CODEX, crashed, "resume", "S"),
        (COMMAND, crashed, "again", None),
        (CODEX, crashed_without_session, "briefing", None),
        (CLAUDE, lost_its_session, "briefing", NEW),
        (CLAUDE, planned_afresh, "briefing", NEW),
        (CLAUDE, briefed_in_vain, "briefing", "N"),
        (CODEX, switched_to_claude, "briefing", NEW),
        # It has no sessions, but it did not run before either.
        (CODEX, switched_to_command, "briefing", None),
        (CODEX, switched_in_vain, "briefing", "N"),
        (CODEX, switched_and_ran, "resume", "N"),
    ],
    ids=lambda value: getattr(value, "__name__", None) or getattr(value, "agent", None) or str(value),
)
def test_the_session_of_the_next_attempt(
    bench: Make, stage: StageSpec, past: Callable[[Bench], None], mode: str, session: str | None
) -> None:
    task = bench(stage)
    past(task)
    adapter = registry.adapter(task.state.agent)
    chosen, session_id = launch.choose_session(adapter, task.task, task.state)
    assert chosen == mode
    if session is NEW:
        assert session_id not in (None, "S", "N")
    else:
        assert session_id == session


@pytest.mark.parametrize(
    ("agent", "mode", "session"), [("claude", "resume", "mine"), ("codex", "fresh", None)]
)
def test_the_users_own_session_is_continued_only_by_the_agent_it_belongs_to(
    bench: Make, agent: str, mode: str, session: str | None
) -> None:
    task = bench(CLAUDE, session="mine")
    assert launch.choose_session(registry.adapter(agent), task.task, task.state) == (mode, session)


def prepared(
    task: Bench, agent: str = "claude", *, mode: str = "fresh", prompt: str | None = "the prompt", **env: str
) -> list[str]:
    """The command line of the attempt that is opened now."""
    number = task.task.last_number + 1
    opened = ev.AttemptOpened(
        attempt=number, attempt_id=f"ses_{number}", stage=task.stage.name, agent=agent, mode=mode,
        session_id="S",
    )  # fmt: skip
    directory = task.packet.attempt("next")
    os.makedirs(directory.path, exist_ok=True)
    return launch.prepare(
        task.ledger,
        registry.adapter(agent),
        directory,
        opened,
        stage=task.stage,
        prompt=None if prompt is None else prompt.encode(),
        env={"env": {"PATH": "/nowhere", **env}},
    ).argv


def value_of(flag: str, argv: list[str]) -> str | None:
    return argv[argv.index(flag) + 1] if flag in argv else None


@pytest.mark.parametrize(
    ("agent", "prompt", "system"),
    [
        ("claude", "the prompt", "be brief"),
        # It cannot append to its system prompt: the text comes before the prompt of each new session.
        ("codex", "be brief\n\nthe prompt", None),
    ],
)
def test_the_system_prompt_is_appended_by_the_program_or_put_before_the_prompt(
    bench: Make, tmp_path: object, agent: str, prompt: str, system: str | None
) -> None:
    path = put(f"{tmp_path}/system.md", "be brief")
    task = bench(CLAUDE, options={"system_prompt_path": path})
    prepared(task, agent)
    directory = task.packet.attempt("next")
    assert (text_of(directory.prompt), text_of(directory.system_prompt)) == (prompt, system)


def test_a_resumed_session_does_not_get_the_system_prompt_in_its_message(
    bench: Make, tmp_path: object
) -> None:
    path = put(f"{tmp_path}/system.md", "be brief")
    task = bench(CODEX, options={"system_prompt_path": path}).ran(1, "crashed", session_id="S")
    argv = prepared(task, "codex", mode="resume")
    message = text_of(task.packet.attempt("next").prompt) or ""
    assert "Your process ended" in message
    assert "be brief" not in message
    assert "resume" in argv


def test_without_a_prompt_no_file_is_written(bench: Make) -> None:
    task = bench(COMMAND, command=["make", "test"])
    assert prepared(task, "command", prompt=None) == ["make", "test"]
    assert os.listdir(task.packet.attempt("next").path) == []


@pytest.mark.parametrize(
    ("stage", "agent", "model"),
    [
        (CLAUDE, "claude", "of-task"),
        (CLAUDE.evolve(model="of-stage"), "claude", "of-stage"),
        # It is a model of the configured agent.
        (CODEX.evolve(model="of-stage"), "claude", None),
    ],
)
def test_the_model_is_that_of_the_configured_agent(
    bench: Make, stage: StageSpec, agent: str, model: str | None
) -> None:
    assert value_of("--model", prepared(bench(stage, model="of-task"), agent)) == model


@pytest.mark.parametrize(
    ("limits", "turns", "usd"),
    [
        (Limits(), None, None),
        (Limits(max_turns=10, budget_usd=2.0), "7", "1.5"),
        # At least something: the program refuses 0, and the runner itself stops the task.
        (Limits(max_turns=3, budget_usd=0.5), "1", "0.01"),
    ],
)
def test_the_program_gets_what_is_left_of_its_limits(
    bench: Make, limits: Limits, turns: str | None, usd: str | None
) -> None:
    task = bench(CLAUDE, limits=limits).open(1, session_id="S").start(1).move(Status.RUNNING)
    task.tell(
        *(ev.AgentText(attempt=1, offset=number, text="x") for number in range(3)),
        ev.AgentResult(attempt=1, offset=9, is_error=True, turns=3),
        ev.AgentUsage(attempt=1, offset=9, cost_usd=0.5),
    ).end(1, "crashed")
    argv = prepared(task)
    assert (value_of("--max-turns", argv), value_of("--max-budget-usd", argv)) == (turns, usd)


@pytest.mark.parametrize("listed", ["Read, Grep,,", ["Read", " Grep "]])
def test_allowed_tools_are_a_list_or_a_text_with_commas(bench: Make, listed: Any) -> None:
    argv = prepared(bench(CLAUDE, options={"allowed_tools": listed}))
    assert argv[argv.index("--allowedTools") + 1 :] == ["Read", "Grep"]


def test_options_of_the_stage_override_those_of_the_task(bench: Make) -> None:
    stage = CLAUDE.evolve(options={"settings_path": "/of-stage"})
    argv = prepared(bench(stage, options={"settings_path": "/of-task", "permission_mode": "plan"}))
    assert value_of("--settings", argv) == "/of-stage"
    assert value_of("--permission-mode", argv) == "plan"


def test_the_program_is_looked_up_in_the_path_of_the_task(bench: Make, tmp_path: object) -> None:
    path = put(f"{tmp_path}/bin/claude", "#!/bin/sh\n")
    os.chmod(path, 0o700)
    task = bench(CLAUDE)
    assert prepared(task, PATH=os.path.dirname(path))[0] == path
    # Not installed: exec fails, and its errno is recorded.
    assert prepared(task)[0] == "claude"


def test_a_file_that_the_user_trusted_is_used_as_long_as_it_is_the_same(bench: Make, tmp_path: Path) -> None:
    """Settings of a program can name commands, and an agent can write in the packet."""
    folder = tmp_path / "inputs" / "frozen"
    folder.mkdir(parents=True)
    path = put(f"{folder}/{sha256(b'{}')[:16]}-settings.json", "{}")
    task = bench(CLAUDE, options={"settings_path": path})
    assert value_of("--settings", prepared(task)) == path
    put(path, '{"hooks": 1}')
    with pytest.raises(UnreadableFile, match="not the file with which the task was created"):
        prepared(task)
    os.unlink(path)
    with pytest.raises(UnreadableFile):
        prepared(task)
