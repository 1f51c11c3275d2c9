"""The loop over the queue: what holds, and what follows from the end of a task."""

from __future__ import annotations

import json
import os

import pytest

from holdfast import clock
from holdfast.keeper import loop_state
from holdfast.keeper.loop_state import LONGEST_BACKOFF_S, LoopSpec, LoopState, after_end
from holdfast.store.layout import Home

NOW = 1_800_000_000.0


@pytest.fixture
def at(home: str, tmp_path: os.PathLike[str], monkeypatch: pytest.MonkeyPatch) -> Home:
    """A home with its own settings."""
    monkeypatch.setenv("XDG_CONFIG_HOME", os.fspath(tmp_path))
    for name in ("MAX_ITERATIONS", "ITERATION_DELAY", "MAX_CONSECUTIVE_FAILURES"):
        monkeypatch.delenv(name, raising=False)
    return Home(home)


def settings(tmp_path: os.PathLike[str], text: str) -> None:
    folder = os.path.join(tmp_path, "holdfast")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "config.toml"), "w", encoding="utf-8") as file:
        file.write(text)


def up(home: Home, text: str) -> None:
    with open(home.up, "w", encoding="utf-8") as file:
        file.write(text)


def asked(**flags: object) -> str:
    return json.dumps({"schema": "holdfast.up/1", "at": clock.iso(NOW), "loop": flags})


# ── after the end of a task ──


def failed(times: int) -> LoopState:
    state = LoopState()
    for _ in range(times):
        state = after_end(state, "failed", now=NOW)
    return state


@pytest.mark.req("BUD-6")
@pytest.mark.parametrize(
    ("times", "pause_s"), [(1, 2.0), (2, 4.0), (5, 32.0), (8, 256.0), (9, 300.0), (500, 300.0)]
)
def test_failures_in_a_row_back_off_up_to_five_minutes(times: int, pause_s: float) -> None:
    state = failed(times)
    assert state.failures == times
    assert state.not_before == clock.iso(NOW + pause_s)
    assert pause_s <= LONGEST_BACKOFF_S


@pytest.mark.req("BUD-6", "QUE-3")
def test_completed_work_forgets_them() -> None:
    state = after_end(failed(4), "completed", now=NOW)
    assert (state.failures, state.not_before) == (0, None)


def test_what_a_person_stopped_is_neither_a_failure_nor_a_success() -> None:
    before = failed(3)
    after = after_end(before, "killed", now=NOW + 100)
    assert (after.failures, after.not_before) == (before.failures, before.not_before)


@pytest.mark.parametrize("status", ["failed", "abandoned"])
def test_every_other_end_is_a_failure(status: str) -> None:
    assert after_end(LoopState(), status, now=NOW).failures == 1


def test_ends_are_counted_by_their_state_and_the_old_count_is_left_alone() -> None:
    first = after_end(LoopState(iteration=9), "completed", now=NOW)
    second = after_end(after_end(first, "completed", now=NOW), "killed", now=NOW)
    assert first.ended == {"completed": 1}
    assert second.ended == {"completed": 2, "killed": 1}
    assert second.iteration == 9


# ── what holds ──


@pytest.mark.req("QUE-3")
def test_without_settings_the_defaults_hold(at: Home) -> None:
    spec = loop_state.read_spec(at)
    assert (spec.slots, spec.max_iterations, spec.iteration_delay_s, spec.max_failures) == (1, 0, 5.0, 5)
    assert spec == LoopSpec()


@pytest.mark.req("QUE-3")
def test_flags_of_up_beat_the_environment_and_that_beats_the_settings(
    at: Home, tmp_path: os.PathLike[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings(
        tmp_path,
        'slots = 3\niteration_delay = "9s"\nmax_iterations = 4\nagent_limits = ["claude=2", "pi=1"]\n',
    )
    spec = loop_state.read_spec(at)
    assert (spec.slots, spec.iteration_delay_s, spec.max_iterations) == (3, 9.0, 4)
    assert spec.agents == {"claude": 2, "pi": 1}
    monkeypatch.setenv("MAX_ITERATIONS", "8")
    monkeypatch.setenv("ITERATION_DELAY", "1m")
    up(at, asked(max_iterations=0, slots=2))
    spec = loop_state.read_spec(at)
    assert (spec.slots, spec.iteration_delay_s, spec.max_iterations) == (2, 60.0, 0)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"schema": "holdfast.up/1"}',
        '{"loop": null}',
        '{"loop": "4"}',
        '{"loop": [1]}',
        asked(),
    ],
)
def test_an_up_file_that_asks_for_nothing_leaves_the_settings(
    at: Home, tmp_path: os.PathLike[str], text: str
) -> None:
    settings(tmp_path, "slots = 3\n")
    up(at, text)
    assert loop_state.read_spec(at).slots == 3


@pytest.mark.parametrize(
    "text", ["slots = 'x'\n", "slots = [\n", "no_such_setting = 1\n", "agent_limits = ['claude']\n"]
)
def test_a_mistake_in_the_settings_leaves_the_defaults_and_is_reported(
    at: Home, tmp_path: os.PathLike[str], text: str, capfd: pytest.CaptureFixture[str]
) -> None:
    settings(tmp_path, text)
    up(at, asked(slots=2))
    assert loop_state.read_spec(at) == LoopSpec(slots=2)
    assert "invalid settings ignored" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("name", "value"),
    [("MAX_ITERATIONS", "many"), ("ITERATION_DELAY", "soon"), ("MAX_CONSECUTIVE_FAILURES", "1.5")],
)
def test_a_mistake_in_the_environment_does_not_end_the_keeper(
    at: Home, name: str, value: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(name, value)
    assert loop_state.read_spec(at) == LoopSpec()
    assert "invalid settings ignored" in capfd.readouterr().err


# ── how far it is ──


def test_the_state_survives_the_keeper(at: Home) -> None:
    assert loop_state.read_state(at) == LoopState()
    state = after_end(LoopState(iteration=3, since_up=2), "failed", now=NOW)
    loop_state.write_state(at, state)
    assert loop_state.read_state(at) == state


@pytest.mark.parametrize("text", ["", "{", "[1]", "null"])
def test_a_torn_state_is_replaced_by_an_empty_one(at: Home, text: str) -> None:
    with open(at.loop, "w", encoding="utf-8") as file:
        file.write(text)
    assert loop_state.read_state(at) == LoopState()


def test_a_state_with_values_of_another_kind_is_read_as_far_as_it_goes(at: Home) -> None:
    wrong = {
        "iteration": 7,
        "failures": None,
        "since_up": "3",
        "not_before": 12,
        "ended": {"failed": "x"},
        "counted": [],
    }
    with open(at.loop, "w", encoding="utf-8") as file:
        json.dump({"schema": "holdfast.loop/1", **wrong, "of_tomorrow": 1}, file)
    assert loop_state.read_state(at) == LoopState(iteration=7)


@pytest.mark.parametrize(
    "wrong",
    [
        {"slots": "x"}, {"slots": -1}, {"slots": True}, {"agents": 5}, {"pools": ["a"]},
        {"pools": {"a": "b"}}, {"max_iterations": "x"}, {"archive_after_s": "x"}, {"refresh_s": []},
        {"min_free_memory_bytes": 1e400}, {"iteration_delay_s": float("nan")}, {"max_failures": {}},
        {"windows": {"a": 1}}, {"sources": "cmd:x"}, {"project": 1}, {"pool_budgets": {"a": "b"}},
    ],
)  # fmt: skip
def test_a_field_of_the_wrong_type_is_ignored(at: Home, wrong: dict[str, object]) -> None:
    up(at, asked(**wrong))
    assert loop_state.read_spec(at) == LoopSpec()
