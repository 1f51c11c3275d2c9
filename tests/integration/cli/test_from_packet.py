"""A written packet becomes a task: text unchanged, inputs copied, the environment of all its agents."""

from __future__ import annotations

import json
import os

import pytest

from holdfast.errors import SandboxMissing, UsageError
from holdfast.model.status import Status
from holdfast.packet import load
from holdfast.packet.create import create
from holdfast.sandbox import machine
from holdfast.store.digest import sha256
from holdfast.store.layout import Home
from holdfast.views.cli.commands import run
from holdfast.views.cli.parse import command_spec
from holdfast.views.create import from_packet
from holdfast.views.create.new_task import NewTask
from tests.support import manifests
from tests.support.manifests import put, valid
from tests.support.repos import Repo
from tests.support.tasks import trust

PROFILE = "version: 1\npipeline: impl\nprofiles: {ours: {stages: [scripted_brief, scripted_impl]}}\n"


@pytest.fixture
def project(home: str, tmp_path, monkeypatch: pytest.MonkeyPatch) -> str:
    folder = tmp_path / "work" / ".holdfast" / "pipelines"
    folder.mkdir(parents=True)
    (folder / "ours.yaml").write_text(PROFILE, encoding="utf-8")
    os.makedirs(os.path.join(home, "tasks"), exist_ok=True)
    monkeypatch.chdir(tmp_path / "work")
    trust(str(tmp_path / "work"))
    return str(tmp_path / "work")


def written(tmp_path, **changes: object) -> str:
    data = put(valid(), "routing.pipeline.profile", "ours")
    data = put(data, "routing.options", {"scripted": {"scenario": "play.json"}})
    for path, value in changes.items():
        data = put(data, path.replace("__", "."), value)
    folder = manifests.write(str(tmp_path / "p"), data, request="please")
    with open(os.path.join(folder, "play.json"), "w", encoding="utf-8") as file:
        file.write("{}")
    with open(os.path.join(folder, "inputs", "attachments", "notes.md"), "w", encoding="utf-8") as file:
        file.write("a note")
    trust(folder, is_new=True)
    return folder


def ask(folder: str, **values: object) -> NewTask:
    return from_packet.read(
        folder, values={**command_spec.defaults(run.COMMAND), "packet": folder, **values}, talk=print
    )


def make(asked: NewTask, home: str):
    return create(
        Home(home), asked.spec, prompt=asked.prompt, env=asked.env, status=Status.QUEUED,
        inputs=asked.inputs, manifest_yaml=asked.manifest_yaml,
    )  # fmt: skip


@pytest.mark.req("PKT-3")
def test_the_packet_in_the_home_is_the_written_one(home: str, project: str, tmp_path) -> None:
    folder = written(tmp_path)
    packet = make(ask(folder), home)
    with (
        open(os.path.join(folder, "manifest.yaml"), "rb") as source,
        open(packet.manifest_yaml, "rb") as copy,
    ):
        text = source.read()
        assert copy.read() == text
    task = load.fold(packet)
    assert task.spec.stages[1].options == {"scenario": os.path.join(folder, "play.json")}
    with open(packet.journal, encoding="utf-8") as file:
        created = json.loads(file.readline())
    assert created["manifest_sha256"] == sha256(text)
    assert created["spec"]["pipeline"]["profile"] == "ours"
    with open(packet.user_request, encoding="utf-8") as file:
        assert file.read() == "please"
    with open(os.path.join(packet.attachments, "notes.md"), encoding="utf-8") as file:
        assert file.read() == "a note"


def test_an_input_that_cannot_be_copied_leaves_nothing_behind(home: str, project: str, tmp_path) -> None:
    folder = written(tmp_path)
    asked = ask(folder)
    os.mkfifo(os.path.join(folder, "inputs", "pipe"))
    with pytest.raises(UsageError, match="neither a file nor a directory"):
        make(asked, home)
    assert os.listdir(os.path.join(home, "tasks")) == []


def test_the_command_line_beats_the_packet_where_it_may(home: str, project: str, tmp_path) -> None:
    Repo(project).git("commit", "-q", "--allow-empty", "-m", "first")
    folder = written(tmp_path, budgets__budget_usd=2.5)
    asked = ask(
        folder, id="other", name="named", budget_usd="1", deadline_s="1h", worktree=True, permissions="full"
    )
    assert (asked.spec.task_id, asked.spec.task_name) == ("other", "named")
    assert (asked.spec.limits.budget_usd, asked.spec.limits.deadline_s) == (1.0, 3600.0)
    assert asked.spec.workspace == "worktree"
    assert {stage.permissions for stage in asked.spec.stages if stage.writes} == {"full"}
    assert {stage.permissions for stage in asked.spec.stages if not stage.writes} == {"read"}


def test_commands_that_only_the_brief_can_name_need_a_sandbox(
    home: str, project: str, tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "_SYSTEM", "/nonexistent")
    ask(written(tmp_path))
    with pytest.raises(SandboxMissing, match=r"brief .* bubblewrap is not installed"):
        ask(written(tmp_path, acceptance__commands=[]))


def test_failover_is_checked_as_in_a_plain_run(home: str, project: str, tmp_path) -> None:
    with pytest.raises(UsageError, match="does not apply to a command"):
        ask(written(tmp_path), failover=["command"])


def test_without_a_request_the_goal_is_the_request(home: str, project: str, tmp_path) -> None:
    folder = written(tmp_path)
    os.unlink(os.path.join(folder, "inputs", "user_request.md"))
    assert ask(folder).prompt == b"add retries to the client\n"


def test_variables_of_all_agents_and_of_the_manifest_are_captured(
    home: str, project: str, tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_SCRIPTED_STATE", "s")
    monkeypatch.setenv("MINE", "m")
    monkeypatch.setenv("NOT_MINE", "n")
    captured = ask(written(tmp_path, env=["MINE"])).env["env"]
    assert (captured["HOLDFAST_SCRIPTED_STATE"], captured["MINE"]) == ("s", "m")
    assert "NOT_MINE" not in captured


def test_a_variable_that_is_not_set_is_reported(home: str, project: str, tmp_path) -> None:
    with pytest.raises(UsageError, match="not set: NOBODY_SET_THIS"):
        ask(written(tmp_path, env=["NOBODY_SET_THIS"]))


def test_settings_of_the_project_hold(home: str, project: str, tmp_path) -> None:
    with open(os.path.join(project, ".holdfast", "config.toml"), "w", encoding="utf-8") as file:
        file.write('grace = "7s"\nleftovers = "kill"\n')
    assert ask(written(tmp_path)).spec.leftovers == "report"
    trust(project)
    asked = ask(written(tmp_path))
    assert asked.spec.limits.grace_s == 7
    assert asked.spec.leftovers == "kill"
