"""A written packet as a TaskSpec."""

from __future__ import annotations

import os

import pytest

from holdfast.errors import InvalidManifest, NoSuchDirectory, UnreadableFile
from holdfast.model.spec import TaskSpec
from holdfast.pipeline.define import written_packet
from tests.support import manifests
from tests.support.manifests import put, valid


def made(folder: os.PathLike[str], data: dict) -> TaskSpec:
    written = written_packet.read(manifests.write(os.path.join(folder, "p"), data), project=str(folder))
    return written_packet.spec(written, limits=written_packet.resolve_limits(written, {}))


def test_everything_that_was_asked_is_in_the_spec(tmp_path) -> None:
    data = valid()
    for path, value in (
        ("workspace", "worktree"),
        ("scope.revert", True),
        ("approval", ["codex_impl"]),
        ("security", {"redaction_patterns": ["tok_[a-z]+"], "forbidden_paths": [".env"]}),
        ("budgets.budget_usd", 2.5),
        ("budgets.budget_tokens", 1000),
        ("budgets.max_turns", 50),
        ("budgets.deadline_sec", 7200),
        ("budgets.on_limit", "end"),
        ("acceptance.timeout_sec", 60),
        ("routing.failover", ["claude"]),
        ("env", ["X"]),
    ):
        data = put(data, path, value)
    spec = made(tmp_path, data)
    assert TaskSpec.from_json(spec.to_json()) == spec
    pipeline = spec.pipeline
    assert pipeline is not None
    assert (pipeline.intent, pipeline.group, pipeline.profile) == ("safe_impl", "impl", "safe_impl")
    assert (pipeline.scope_allow, pipeline.scope_deny) == (("src/",), ("src/secret/",))
    assert (pipeline.acceptance_commands, pipeline.acceptance_timeout_s) == (("make test",), 60.0)
    assert pipeline.revert_out_of_scope
    assert pipeline.redaction_patterns == ("tok_[a-z]+",)
    assert pipeline.max_wallclock_s == 900.0
    limits = spec.limits
    assert (limits.budget_usd, limits.budget_tokens, limits.max_turns) == (2.5, 1000, 50)
    assert (limits.deadline_s, limits.on_limit) == (7200.0, "end")
    assert (spec.workspace, spec.failover, spec.env) == ("worktree", ("claude",), ("X",))
    assert [stage.approval for stage in spec.stages] == [False, True, False, False]
    assert spec.project_dir == str(tmp_path)


def test_the_wallclock_holds_whatever_the_timeout_mode(tmp_path) -> None:
    for mode in ("enforce", "wait_done"):
        spec = made(
            tmp_path / mode, put(put(valid(), "routing.pipeline.options.timeout_mode", mode), "project", "..")
        )
        assert spec.pipeline is not None
        assert spec.pipeline.max_wallclock_s == 900.0
        assert spec.stages[0].timeout_s == (600.0 if mode == "enforce" else None)


def test_a_check_that_no_package_has_is_refused(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    about = tmp_path / "site" / "theirs-1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[holdfast.gates]\npoem = their_gate:check\n")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    pipeline = made(tmp_path, put(valid(), "gate", {"checks": ["poem"]})).pipeline
    assert pipeline is not None
    assert pipeline.checks == ("poem",)
    with pytest.raises(InvalidManifest) as caught:
        made(tmp_path / "enforce", put(put(valid(), "gate", {"checks": ["peom"]}), "project", ".."))
    assert "no package has a check 'peom' (installed: poem" in str(caught.value.details)
    monkeypatch.setenv("HOLDFAST_PLUGINS", "")
    with pytest.raises(InvalidManifest, match="problem"):
        made(tmp_path / "wait_done", put(put(valid(), "gate", {"checks": ["poem"]}), "project", ".."))


@pytest.fixture(autouse=True)
def _folders(tmp_path) -> None:
    for name in ("enforce", "wait_done"):
        (tmp_path / name).mkdir()


def test_silence_is_that_of_the_most_patient_agent(tmp_path) -> None:
    assert made(tmp_path, valid()).limits.stale_s == max(330.0, _stale("codex"))


def _stale(agent: str) -> float:
    from holdfast.agents import registry

    return registry.adapter(agent).capabilities.stale_s or 0.0


def test_the_project_is_the_flag_then_the_manifest_then_here(
    tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = manifests.write(str(tmp_path / "p"), put(valid(), "project", "../enforce"))
    assert written_packet.read(folder).project_dir == str(tmp_path / "enforce")
    assert written_packet.read(folder, project=str(tmp_path)).project_dir == str(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert written_packet.read(manifests.write(str(tmp_path / "q"), valid())).project_dir == str(tmp_path)


def test_problems_of_manifest_configuration_and_project_come_together(tmp_path) -> None:
    path = tmp_path / ".holdfast" / "agents"
    path.mkdir(parents=True)
    (path / "codex.yaml").write_text("version: 1\nagent: codex\nx: 1\n", encoding="utf-8")
    folder = manifests.write(str(tmp_path / "p"), put(put(valid(), "goal", ""), "scope.revert", True))
    with pytest.raises(InvalidManifest, match="has 3 problems") as caught:
        written_packet.read(folder, project=str(tmp_path))
    assert ["codex.yaml:3: x" in detail for detail in caught.value.details].count(True) == 1
    assert any("needs workspace: worktree" in detail for detail in caught.value.details)


@pytest.mark.req("PKT-6")
def test_a_role_without_template_and_a_forbidden_attachment_are_reported_before_any_call(tmp_path) -> None:
    prompts = tmp_path / ".holdfast" / "prompts"
    prompts.mkdir(parents=True)
    (prompts / "impl.md").write_text("", encoding="utf-8")
    folder = manifests.write(str(tmp_path / "p"), put(valid(), "security.forbidden_paths", [".env"]))
    with open(os.path.join(folder, "inputs", "attachments", ".env"), "w", encoding="utf-8") as file:
        file.write("TOKEN=1")
    with pytest.raises(InvalidManifest) as caught:
        written_packet.read(folder, project=str(tmp_path), trust_project=True)
    said = "\n".join(caught.value.details)
    assert "impl.md is empty" in said
    assert "the attachment .env is a forbidden path" in said


def test_a_file_of_the_packet_is_meant_from_its_folder(tmp_path) -> None:
    folder = tmp_path / "p"
    folder.mkdir()
    (folder / "play.json").write_text("{}", encoding="utf-8")
    spec = made(tmp_path, put(valid(), "routing.options", {"codex": {"scenario": "play.json", "mode": "x"}}))
    assert spec.stages[1].options == {"scenario": str(folder / "play.json"), "mode": "x"}


def test_an_invalid_packet_is_reported(tmp_path) -> None:
    with pytest.raises(NoSuchDirectory, match="there is no packet"):
        written_packet.read(str(tmp_path / "none"))
    with pytest.raises(UnreadableFile, match=r"cannot read .*manifest.yaml"):
        written_packet.read(str(tmp_path))


def test_a_fifo_is_no_manifest_and_is_not_waited_for(tmp_path) -> None:
    os.mkdir(tmp_path / "p")
    os.mkfifo(tmp_path / "p" / "manifest.yaml")
    with pytest.raises(UnreadableFile, match="not a regular file"):
        written_packet.read(str(tmp_path / "p"))


@pytest.mark.parametrize("name", ["codex.yaml"])
def test_a_fifo_in_the_configuration_is_reported(tmp_path, name: str) -> None:
    os.makedirs(tmp_path / ".holdfast" / "agents")
    os.mkfifo(tmp_path / ".holdfast" / "agents" / name)
    folder = manifests.write(str(tmp_path / "p"), valid())
    with pytest.raises(UnreadableFile, match="not a regular file"):
        written_packet.read(folder, project=str(tmp_path))
