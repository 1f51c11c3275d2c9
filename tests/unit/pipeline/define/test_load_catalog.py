"""The catalog: layers, merging, and problems with file and path."""

from __future__ import annotations

import os

import pytest

from holdfast.agents import registry
from holdfast.errors import InvalidConfig
from holdfast.model.roles import ROLES
from holdfast.pipeline.define import load_catalog
from holdfast.pipeline.define.catalog import Catalog
from holdfast.pipeline.define.problem import Problem
from tests.support.manifests import package

PACKAGE = load_catalog.folders(None)["package"]


def write(folder: os.PathLike[str] | str, path: str, text: str) -> str:
    target = os.path.join(folder, path)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(target, "w", encoding="utf-8") as file:
        file.write(text)
    return target


def read(*folders: os.PathLike[str] | str) -> tuple[Catalog, list[str]]:
    problems: list[Problem] = []
    places = {
        "package": PACKAGE,
        **{name: str(at) for name, at in zip(("user", "project"), folders, strict=False)},
    }
    found = load_catalog.read(places, problems)
    return found, [str(each) for each in problems]


@pytest.mark.req("PIP-6")
def test_the_shipped_files_hold_the_values_of_each_agent() -> None:
    agents = package().agents
    assert set(agents) == set(registry.BUILT_IN) - {"command"}
    codex = agents["codex"]
    assert codex.get("default_model") == "gpt-5.3-codex"
    assert codex.allowed_models == ("gpt-5.3-codex", "gpt-5.2-codex", "gpt-5-codex", "gpt-5.3-codex-spark")
    assert (codex.get("defaults.effort"), codex.get("defaults.timeout_sec")) == ("high", 600)
    assert {key: leaf.value for key, leaf in codex.below("purpose_efforts").items()} == {
        "impl": "high", "review": "medium", "verify": "high", "plan": "medium", "one_shot": "medium",
    }  # fmt: skip
    assert [leaf.value for leaf in agents["gemini"].below("purpose_models").values()] == [
        "pro", "pro", "flash", "pro", "flash",
    ]  # fmt: skip
    assert agents["gemini"].get("options") == {"approval_mode": "default", "sandbox": False}
    assert agents["copilot"].get("purpose_models.review") == "claude-opus-4.6"
    assert agents["pi"].allowed_models is None


@pytest.mark.req("PIP-5")
def test_the_shipped_groups_have_their_profiles_flags_and_options() -> None:
    groups = package().groups
    assert set(groups) == {"impl", "review", "plan"}
    assert list(groups["impl"].flags) == ["enable_brief", "enable_verify", "enable_review"]
    assert list(groups["review"].flags) == ["enable_verify", "enable_review"]
    assert list(groups["plan"].flags) == [
        "enable_codex_enrich",
        "enable_gemini_enrich",
        "enable_cross_review",
    ]
    assert groups["impl"].get("default_profile") == "safe_impl"


def test_every_role_has_a_template_in_the_package() -> None:
    for role in ROLES:
        assert os.path.isfile(os.path.join(PACKAGE, "prompts", f"{role}.md")), role


@pytest.mark.req("PKT-5")
def test_the_project_beats_the_user_beats_the_package(tmp_path) -> None:
    user, project = tmp_path / "user", tmp_path / "project" / ".holdfast"
    write(
        user,
        "agents/codex.yaml",
        "version: 1\nagent: codex\ndefault_model: gpt-5-codex\npurpose_models: {impl: "
        "gpt-5-codex, plan: gpt-5-codex}\n",
    )
    path = write(
        project, "agents/any-name.yml", "version: 1\nagent: codex\npurpose_models: {impl: gpt-5.2-codex}\n"
    )
    found, problems = read(user, project)
    assert problems == []
    codex = found.agents["codex"]
    assert codex.get("default_model") == "gpt-5-codex"
    assert codex.leaves["purpose_models.impl"].source == f"{path}: purpose_models.impl"
    assert codex.get("purpose_models.plan") == "gpt-5-codex"
    assert codex.get("purpose_models.verify") == "gpt-5.3-codex"


def test_a_file_with_stages_replaces_a_profile_and_one_without_changes_it(tmp_path) -> None:
    write(
        tmp_path,
        "pipelines/a.yaml",
        "version: 1\npipeline: review\nprofiles:\n  strict_review: {stages: [codex_review]}\n"
        "  review_cross: {flags: {enable_verify: false}}\n",
    )
    found, problems = read(tmp_path)
    assert problems == []
    profiles = found.groups["review"].profiles
    assert profiles["strict_review"].stages == ("codex_review",)
    assert profiles["strict_review"].below("options") == {}
    assert profiles["review_cross"].get("flags.enable_verify") is False
    assert profiles["review_cross"].get("options.review_mode") == "cross"


def test_a_user_may_add_a_flag(tmp_path) -> None:
    write(
        tmp_path,
        "pipelines/a.yaml",
        "version: 1\npipeline: impl\nflags: {enable_tests: [test_impl, codex_test_design]}\n",
    )
    found, problems = read(tmp_path)
    assert problems == []
    assert found.groups["impl"].flags["enable_tests"] == ("test_impl", "codex_test_design")


@pytest.mark.req("PKT-5")
@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("agents/a.yaml", "agent: codex\n", "a.yaml:1: version: missing"),
        ("agents/a.yaml", "version: 2\nagent: codex\n", "version: must be an integer from 1 to 1, not 2"),
        ("agents/a.yaml", "version: 1\nagent: codx\n", "agent: unknown agent 'codx' (did you mean 'codex'?"),
        ("agents/a.yaml", "version: 1\nagent: command\n", "unknown agent 'command'"),
        ("agents/a.yaml", "version: 1\nagent: codex\nmodels: []\n", "a.yaml:3: models: unknown key"),
        (
            "agents/a.yaml",
            "version: 1\nagent: codex\ndefault_model: gpt-9\n",
            "a.yaml:3: default_model: the model 'gpt-9' is not allowed for codex",
        ),
        (
            "agents/a.yaml",
            "version: 1\nagent: codex\npurpose_models: {imp: x}\n",
            "purpose_models.imp: unknown key (did you mean 'impl'?",
        ),
        (
            "agents/a.yaml",
            "version: 1\nagent: codex\npurpose_efforts: {impl: huge}\n",
            "codex has no effort 'huge'",
        ),
        (
            "agents/a.yaml",
            "version: 1\nagent: codex\ndefaults: {timeout_sec: -1}\n",
            "defaults.timeout_sec: must be an integer",
        ),
        (
            "agents/a.yaml",
            "version: 1\nagent: codex\ndefaults: {timeout_mode: never}\n",
            "allowed: enforce, wait_done",
        ),
        (
            "agents/a.yaml",
            "version: 1\nagent: codex\noptions: {yolo: true}\n",
            "options.yolo: cannot be set in a configuration file",
        ),
        (
            "agents/a.yaml",
            "version: 1\nagent: codex\noptions: {sandbox: danger-full-access}\n",
            "options.sandbox: cannot be set in a configuration file",
        ),
        (
            "agents/a.yaml",
            "version: 1\nagent: gemini\noptions: {approval_mode: yolo}\n",
            "options.approval_mode: cannot be set in a configuration file",
        ),
        (
            "agents/a.yaml",
            "version: 1\nagent: claude\noptions: {permission_mode: bypassPermissions}\n",
            "options.permission_mode: cannot be set in a configuration file",
        ),
        ("agents/a.yaml", "- 1\n", "must be a map, not a list"),
        ("agents/a.yaml", "version: 1\nversion: 1\nagent: codex\n", "a.yaml:2: duplicate key 'version'"),
        (
            "pipelines/a.yaml",
            "version: 1\npipeline: implement\n",
            "unknown group 'implement' (did you mean 'impl'?",
        ),
        ("pipelines/a.yaml", "version: 1\npipeline: impl\ndefault_profile: none\n", "unknown profile 'none'"),
        (
            "pipelines/a.yaml",
            "version: 1\npipeline: impl\nprofiles: {x: {stages: [pi_review]}}\nflags: {f: [nobody]}\n",
            "unknown role or stage 'nobody'",
        ),
        (
            "pipelines/a.yaml",
            "version: 1\npipeline: impl\nprofiles: {x: {about: y}}\n",
            "the profile x has no stages",
        ),
        (
            "pipelines/a.yaml",
            "version: 1\npipeline: impl\nprofiles: {x: {}}\n",
            "the profile x has no stages",
        ),
        (
            "pipelines/a.yaml",
            "version: 1\npipeline: impl\nprofiles: {X Y: {stages: []}}\n",
            "a name has at most 40 lower-case letters",
        ),
        (
            "pipelines/a.yaml",
            "version: 1\npipeline: impl\nprofiles: {x: {stages: [codex_imp]}}\n",
            "unknown stage 'codex_imp' (did you mean 'codex_impl'?",
        ),
        (
            "pipelines/a.yaml",
            "version: 1\npipeline: impl\nprofiles: {x: {stages: [codex_impl, codex_impl]}}\n",
            "duplicate stage codex_impl",
        ),
        (
            "pipelines/a.yaml",
            "version: 1\npipeline: impl\nprofiles: {x: {stages: [3]}}\n",
            "stages[0]: must be a stage or a parallel group, not 3",
        ),
        (
            "pipelines/a.yaml",
            "version: 1\npipeline: impl\nprofiles: {x: {stages: [{paralel: []}]}}\n",
            "did you mean 'parallel'?",
        ),
        (
            "pipelines/a.yaml",
            "version: 1\npipeline: impl\nprofiles: {x: {stages: [{parallel: []}]}}\n",
            "must not be empty",
        ),
        (
            "pipelines/a.yaml",
            "version: 1\npipeline: impl\nprofiles: {x: {stages: [{parallel: [codex_impl, pi_review]}]}}\n",
            "codex_impl writes, so it cannot be in a parallel group",
        ),
        (
            "pipelines/a.yaml",
            "version: 1\npipeline: impl\nprofiles: {x: {stages: [{parallel: [pi_review, "
            "codex_review], timeout_sec: 1}, {parallel: [pi_brief]}]}}\n",
            "must have the same timeout_sec",
        ),
        (
            "pipelines/a.yaml",
            "version: 1\npipeline: impl\nprofiles: {x: {stages: [pi_review], writes: [pi_review]}}\n",
            "the role review cannot write",
        ),
        (
            "pipelines/a.yaml",
            "version: 1\npipeline: impl\nprofiles: {x: {stages: [pi_review], approval: [pi_impl]}}\n",
            "unknown stage 'pi_impl' in the profile x",
        ),
        (
            "pipelines/a.yaml",
            "version: 1\npipeline: impl\nprofiles: {x: {stages: [pi_review], stage_models: "
            "{codex_review: y}}}\n",
            "unknown stage 'codex_review' in the profile x",
        ),
        (
            "pipelines/a.yaml",
            "version: 1\npipeline: impl\nprofiles: {x: {stages: [codex_review], "
            "stage_models: {codex_review: y}}}\n",
            "the model 'y' is not allowed for codex",
        ),
        (
            "pipelines/a.yaml",
            "version: 1\npipeline: impl\nprofiles: {x: {stages: [codex_review], flags: "
            "{enable_tests: true}}}\n",
            "unknown flag 'enable_tests'",
        ),
        (
            "pipelines/a.yaml",
            "version: 1\npipeline: impl\nprofiles: {x: {stages: [codex_review], options: "
            "{review_mode: cross}}}\n",
            "the group impl has no option review_mode",
        ),
        (
            "pipelines/a.yaml",
            "version: 1\npipeline: impl\nprofiles: {x: {stages: [codex_review], options: "
            "{timeout_mode: x}}}\n",
            "profiles.x.options.timeout_mode",
        ),
        ("pipelines/a.yaml", "a: [\n", "not YAML"),
    ],
)
def test_a_mistake_is_reported_with_file_and_path(tmp_path, file: str, text: str, said: str) -> None:
    path = write(tmp_path, file, text)
    _, problems = read(tmp_path)
    assert any(path in each and said in each for each in problems), problems


def test_all_mistakes_of_all_files_are_one_error(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "user"))
    write(tmp_path, "user/holdfast/agents/codex.yaml", "version: 1\nagent: codex\nx: 1\ny: 2\n")
    write(tmp_path, "work/.holdfast/pipelines/impl.yaml", "version: 1\npipeline: impl\nz: 3\n")
    with pytest.raises(InvalidConfig, match="has 3 problems") as caught:
        load_catalog.load(str(tmp_path / "work"))
    assert [detail.split(": ")[1] for detail in caught.value.details] == ["x", "y", "z"]


def test_without_files_of_ones_own_nothing_is_missing(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert set(load_catalog.load(str(tmp_path)).groups) == {"impl", "review", "plan"}
