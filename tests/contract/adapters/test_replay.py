"""`holdfast agent`: list, probe, and the reading of a recorded run."""

from __future__ import annotations

import json
import os

import pytest

from holdfast.agents import registry
from holdfast.agents.replay import exit_of
from holdfast.views.cli import entry
from tests.contract.adapters import recorded

TEXT = os.path.join(recorded.FOLDER, "codex", "badtool")


def test_replay_prints_the_fields_of_a_label(capsys: pytest.CaptureFixture[str]) -> None:
    status = entry.run(
        ["agent", "replay", "codex", f"{TEXT}.stdout.jsonl", "--stderr", f"{TEXT}.stderr.txt", "--exit", "0", "--json"]
    )  # fmt: skip
    printed = json.loads(capsys.readouterr().out)
    assert status == 0
    assert tuple(printed) == recorded.FIELDS
    assert printed["outcome"] == "tool_failed_but_finished"


@pytest.mark.parametrize("flag", [["--exit", "-9"], ["--exit=-9"]])
def test_a_negative_exit_is_a_signal(flag: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.run(["agent", "replay", "codex", f"{TEXT}.stdout.jsonl", *flag, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["outcome"] == "killed"


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["replay", "codex"], "STDOUT_FILE"),
        (["replay", "codex", "/no/such/file"], "No such file"),
        (["replay", "codex", f"{TEXT}.stdout.jsonl", "--exit", "x"], "not a number"),
        (["replay", "codx", "x"], "codex"),
        (["probe"], "agent list"),
    ],
)
def test_a_mistake_is_explained(argv: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.run(["agent", *argv]) == 2
    assert words in capsys.readouterr().err


def test_list_knows_every_agent(capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.run(["agent", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["agents"]
    assert [row["agent"] for row in listed] == sorted(registry.BUILT_IN)
    assert entry.run(["agent", "list"]) == 0
    assert "claude" in capsys.readouterr().out


def test_probe_finds_the_program_and_asks_its_version(
    tmp_path: os.PathLike[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert entry.run(["agent", "probe", "claude"]) == 3
    path = os.path.join(tmp_path, "claude")
    with open(path, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\necho '9.9.9 (Claude Code)'\n")
    os.chmod(path, 0o755)
    capsys.readouterr()
    assert entry.run(["agent", "probe", "claude", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["path"], printed["version"]) == (path, "9.9.9 (Claude Code)")


def test_an_exit_is_as_the_recorder_writes_it() -> None:
    assert (exit_of(-9).exit_signal, exit_of(-9).exit_code, exit_of(-9).wait_status) == (9, 137, 9)
    assert (exit_of(3).exit_signal, exit_of(3).exit_code, exit_of(3).wait_status) == (None, 3, 768)
    assert exit_of(None).exit_code == 0
