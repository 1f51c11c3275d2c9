"""Chores: their command lines, which of their results count, and what becomes of a result."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

import pytest

from holdfast.model.spec import QualitySpec, StageSpec
from holdfast.runner.stage import chore_results, chores
from tests.support.bench import PIPELINE, SECRET, Bench, put, text_of

IMPL = StageSpec(name="codex_impl", agent="codex", role="impl", writes=True)
QUALITY = QualitySpec(pre_work=("make test",), post_work=("make test",))

Make = Callable[..., Bench]


@pytest.mark.parametrize(
    ("spec", "kind", "program"),
    [
        ({"pipeline": PIPELINE}, "prepare", ["holdfast.workspace", "prepare"]),
        ({"quality": QUALITY}, "prepare", ["holdfast.workspace", "prepare"]),
        ({"pipeline": PIPELINE}, "gate", ["holdfast.gates"]),
        ({"quality": QUALITY}, "pre_work", ["holdfast.gates.quality", "before"]),
        ({"quality": QUALITY}, "gate", ["holdfast.gates.quality", "after"]),
    ],
)
def test_the_program_of_each_chore(bench: Make, spec: dict[str, Any], kind: str, program: list[str]) -> None:
    task = bench(IMPL, **spec)
    argv = chores.command_line(task.ledger, task.packet.attempt("d"), kind, stage=IMPL.name, judged=3)
    assert argv[1:4] == ["-P", "-E", "-m"], "neither a json.py of the workspace nor PYTHONPATH counts"
    assert argv[4 : argv.index("--packet")] == program
    words = argv[argv.index("--packet") :]
    options = dict(zip(words[::2], words[1::2], strict=True))
    assert options["--packet"] == task.packet.path
    assert options["--journal"] == task.ledger.journal_pin
    assert options.get("--attempt") == (None if kind == "prepare" else "3")


def ended(task: Bench, kind: str, code: int | None, result: object = None, stderr: str = "") -> Bench:
    """A chore that ended with an exit status and left a result."""
    task.open(1, kind=kind, agent="command").start().end(1, "success", exit_code=code)
    if result is not None:
        put(task.directory().result, result if isinstance(result, str) else json.dumps(result))
    put(task.directory().stderr, stderr)
    return task


@pytest.mark.parametrize(
    ("kind", "code", "result", "is_usable"),
    [
        ("prepare", 0, {"path": "/p"}, True),
        ("prepare", 1, {"path": "/p"}, False),
        ("prepare", None, {"path": "/p"}, False),
        # Not where the task works.
        ("prepare", 0, {"path": "/q"}, False),
        ("prepare", 0, {"path": ["/p"]}, False),
        ("prepare", 0, {}, False),
        ("prepare", 0, {"path": "/p", "tree": "--output=/x"}, False),
        ("prepare", 0, {"path": "/p", "base_tree": "--output=/x"}, False),
        ("gate", 0, {"passed": True, "tree": "--output=/x"}, False),
        ("prepare", 0, None, False),
        ("prepare", 0, "{", False),
        ("prepare", 0, "[]", False),
        ("gate", 0, {"passed": True}, True),
        ("gate", 1, {"passed": False}, True),
        # The exit status is the word of our process; the file can be that of another one.
        ("gate", 1, {"passed": True}, False),
        ("gate", 0, {"passed": False}, False),
        ("gate", None, {"passed": True}, False),
        ("gate", 0, {"passed": 1}, False),
        ("gate", 0, {}, False),
        ("pre_work", 0, {"passed": True}, True),
        ("pre_work", 1, {"passed": True}, False),
        # Only the list of uncommitted files was asked for.
        ("pre_work", 0, {"dirty": []}, True),
        ("pre_work", 2, {"dirty": []}, False),
    ],
)
def test_a_result_counts_if_it_agrees_with_the_exit_status(
    bench: Make, kind: str, code: int | None, result: object, is_usable: bool
) -> None:
    task = ended(bench(IMPL, pipeline=PIPELINE, project_dir="/p"), kind, code, result)
    assert chore_results.read_result(task.ledger, task.chore).is_usable is is_usable


def test_a_result_that_was_replaced_since_it_was_looked_at_is_not_recorded(bench: Make) -> None:
    task = ended(bench(IMPL, pipeline=PIPELINE), "gate", 1, {"passed": True, "attempt": 1})
    chore_results.take_result(task.ledger, task.chore)
    assert task.recorded().stage_state(IMPL.name).gate_result is None


@pytest.mark.parametrize(
    ("below", "is_usable"),
    [("", True), ("/sub", True), ("/other", False), ("-2", False), ("/..", False), ("/sub/..", False)],
)
def test_a_worktree_is_that_of_the_task(bench: Make, below: str, is_usable: bool) -> None:
    task = bench(IMPL, pipeline=PIPELINE, workspace="worktree", project_dir="/repository/sub")
    root = os.path.join(os.path.realpath(task.packet.home.path), "worktrees", task.packet.task_id)
    task = ended(task, "prepare", 0, {"path": root + below})
    assert chore_results.read_result(task.ledger, task.chore).is_usable is is_usable


@pytest.mark.parametrize(
    ("stderr", "complaint"),
    [
        (f"no key {SECRET}\n", "no key ***"),
        ("x" * 2000, "x" * 1000),
        ("x" * 9000, "x" * 1000),
        # Half a secret would not be recognized.
        ("y" * 980 + SECRET + "z" * 9000, "y" * 980 + "***" + "z" * 5),
        ("", ""),
    ],
)
def test_a_chore_without_a_result_complains_with_the_start_of_its_stderr(
    bench: Make, stderr: str, complaint: str
) -> None:
    task = ended(bench(IMPL, pipeline=PIPELINE), "gate", 70, stderr=stderr)
    assert chore_results.read_result(task.ledger, task.chore).complaint == complaint


def test_a_prepared_workspace_is_recorded_for_its_stage(bench: Make) -> None:
    result = {"stage": "another", "path": "/p", "kind": "git", "tree": "t", "base_tree": "b"}
    task = ended(bench(IMPL, pipeline=PIPELINE, project_dir="/p"), "prepare", 0, result)
    chore_results.take_result(task.ledger, task.chore)
    workspace = task.recorded().stage_state(IMPL.name).workspace
    assert workspace is not None
    assert (workspace.stage, workspace.path, workspace.dirty) == (IMPL.name, "/p", ())


def test_checks_before_the_work_are_kept_in_a_file_and_recorded(bench: Make) -> None:
    result = {"passed": False, "reasons": [f"make test: {SECRET}"], "dirty": ["a"]}
    task = ended(bench(IMPL, quality=QUALITY), "pre_work", 1, result)
    chore_results.take_result(task.ledger, task.chore)
    checked = task.recorded().stage_state(IMPL.name).pre_work
    assert checked is not None
    assert (checked.passed, checked.reasons) == (False, ("make test: ***",))
    assert json.loads(text_of(task.packet.pre_work(IMPL.name)) or "")["dirty"] == ["a"]


def test_checks_before_the_work_that_say_nothing_have_not_passed(bench: Make) -> None:
    task = ended(bench(IMPL, quality=QUALITY), "pre_work", 0, {"dirty": []})
    chore_results.take_result(task.ledger, task.chore)
    checked = task.recorded().stage_state(IMPL.name).pre_work
    assert checked is not None
    assert checked.passed is False


def judged(bench: Make, **result: Any) -> Bench:
    """A gate whose result is taken."""
    task = bench(IMPL, pipeline=PIPELINE).ran(1)
    result = {"attempt": 1, "passed": True, **result}
    task.open(2, kind="gate", agent="command").start(2).end(2, exit_code=0 if result["passed"] else 1)
    put(task.directory(2).result, json.dumps(result))
    for path in (task.directory(2).artifact, task.directory(2).reverted_patch, task.directory(2).changes):
        put(path, b"\xff with " + SECRET.encode())
    chore_results.take_result(task.ledger, task.chore)
    return task


def test_the_evidence_of_a_gate_is_copied_without_secrets(bench: Make) -> None:
    packet = judged(bench).packet
    for path in (packet.artifact(IMPL.name), packet.reverted_patch(IMPL.name), packet.changes):
        with open(path, "rb") as file:
            assert file.read() == b"\xff with ***", path
    assert json.loads(text_of(packet.gate_result(IMPL.name)) or "")["passed"] is True


@pytest.mark.parametrize(
    ("result", "recorded"),
    [
        ({}, {"attempt": 1, "passed": True, "failed": "", "confirm": (), "findings": {}, "changed": None}),
        ({"passed": False, "failed": "scope"}, {"passed": False, "failed": "scope"}),
        ({"reasons": [SECRET, 7], "warnings": [SECRET]}, {"reasons": ("***", "7"), "warnings": ("***",)}),
        ({"decision": "go", "confirm": [f"drop {SECRET}"]}, {"decision": "go", "confirm": ("drop ***",)}),
        # Work that is refused needs no approval.
        ({"passed": False, "confirm": ["drop"]}, {"confirm": ()}),
        ({"evidence": "x" * 9000}, {"evidence": "x" * 8000}),
        # The file may have been replaced: numbers count only as numbers.
        ({"findings": {"major": 2, "minor": -1, "x": True, "y": "3"}}, {"findings": {"major": 2}}),
        ({"findings": ["major"]}, {"findings": {}}),
        ({"changed": 3}, {"changed": 3}),
        ({"changed": True}, {"changed": None}),
        ({"changed": -1}, {"changed": None}),
    ],
)
def test_what_is_recorded_of_a_gates_result(
    bench: Make, result: dict[str, Any], recorded: dict[str, Any]
) -> None:
    gate = judged(bench, **result).recorded().stage_state(IMPL.name).gate
    assert gate is not None
    assert {name: getattr(gate, name) for name in recorded} == recorded
