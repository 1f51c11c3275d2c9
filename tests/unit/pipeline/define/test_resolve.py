"""Resolving a manifest to stages."""

from __future__ import annotations

import os

import pytest

from holdfast.model.roles import ROLES, purpose
from holdfast.pipeline.define import load_catalog
from holdfast.pipeline.define.catalog import Catalog
from holdfast.pipeline.define.intents import INTENTS
from holdfast.pipeline.define.problem import Problem
from tests.support.manifests import STAGES, package, put, resolved, stages, valid


def with_project(folder: os.PathLike[str], **files: str) -> Catalog:
    """The catalog of the package, with files of a project."""
    for name, text in files.items():
        kind, _, rest = name.partition("_")
        os.makedirs(os.path.join(folder, kind), exist_ok=True)
        with open(os.path.join(folder, kind, f"{rest}.yaml"), "w", encoding="utf-8") as file:
            file.write(text)
    problems: list[Problem] = []
    found = load_catalog.read(
        {"package": load_catalog.folders(None)["package"], "user": str(folder)}, problems
    )
    assert problems == []
    return found


@pytest.mark.req("W-B1", "PIP-2", "PIP-3", "PIP-4")
@pytest.mark.parametrize("intent", INTENTS)
def test_every_intent_resolves_to_its_own_stages(intent: str) -> None:
    assert stages(valid(intent)) == STAGES[intent]


@pytest.mark.req("W-B1")
def test_every_shipped_profile_can_be_reached() -> None:
    found = package()
    for group in found.groups.values():
        for name in group.profiles:
            reached = False
            for intent, kind in INTENTS.items():
                if group.name in (kind.group, *kind.also):
                    result, problems = resolved(put(valid(intent), "routing.pipeline.profile", name), found)
                    reached |= (
                        not problems
                        and result is not None
                        and (result.group, result.profile) == (group.name, name)
                    )
            assert reached, f"{group.name}/{name}"


@pytest.mark.req("PIP-4")
def test_the_two_further_profiles_resolve() -> None:
    codex = put(valid("safe_impl"), "routing.pipeline.profile", "codex_only")
    assert stages(codex) == ["codex_brief", "codex_impl", "codex_verify", "codex_review"]
    strict = put(valid("review_cross"), "routing.pipeline.profile", "strict_review")
    assert stages(strict)[:3] == ["gemini_review", "codex_review", "copilot_review"]


@pytest.mark.req("PIP-13")
def test_reviews_and_fixes_are_for_an_intent_that_changes_something() -> None:
    result, problems = resolved(put(valid("safe_impl"), "routing.pipeline.profile", "review_fix"))
    assert problems == {}
    assert result is not None
    assert [(stage.name, stage.group, stage.writes) for stage in result.stages] == [
        ("gemini_review", "parallel-1", False),
        ("codex_review", "parallel-1", False),
        ("copilot_review_consolidate", None, False),
        ("codex_fix", None, True),
        ("codex_verify", None, False),
    ]
    assert result.join_timeout_s == 1800
    _, problems = resolved(put(valid("design_only"), "routing.pipeline.profile", "review_fix"))
    assert "writes in codex_fix" in problems["routing.pipeline.profile"]


@pytest.mark.req("PIP-1")
def test_any_agent_can_play_any_role(tmp_path) -> None:
    found = with_project(
        tmp_path,
        pipelines_ours=(
            "version: 1\npipeline: impl\nprofiles:\n  ours:\n    stages: [opencode_brief, "
            "claude_impl, pi_review]\n"
        ),
    )
    result, problems = resolved(put(valid(), "routing.pipeline.profile", "ours"), found)
    assert problems == {}
    assert result is not None
    assert [(stage.agent, stage.role, stage.writes) for stage in result.stages] == [
        ("opencode", "brief", False),
        ("claude", "impl", True),
        ("pi", "review", False),
    ]


@pytest.mark.req("PIP-7")
def test_a_model_comes_from_manifest_stage_purpose_default_in_this_order(tmp_path) -> None:
    def model(found: Catalog, data: dict) -> tuple[str | None, str]:
        result, problems = resolved(data, found)
        assert problems == {}
        assert result is not None
        return result.stages[1].model, result.sources["stages.codex_impl.model"]

    agents = "version: 1\nagent: codex\ndefault_model: gpt-5-codex\n"
    found = package()
    assert model(found, valid()) == ("gpt-5.3-codex", "package agents/codex.yaml: purpose_models.impl")
    found = with_project(
        tmp_path,
        agents_codex=agents,
        pipelines_impl=(
            "version: 1\npipeline: impl\nprofiles:\n  safe_impl:\n    stage_models: {codex_impl: "
            "gpt-5.2-codex}\n"
        ),
    )
    path = os.path.join(tmp_path, "pipelines", "impl.yaml")
    assert model(found, valid()) == ("gpt-5.2-codex", f"{path}: profiles.safe_impl.stage_models.codex_impl")
    data = put(valid(), "routing.model.codex", "gpt-5.3-codex-spark")
    assert model(found, data) == ("gpt-5.3-codex-spark", "manifest.yaml: routing.model.codex")


@pytest.mark.req("PIP-7")
def test_without_a_purpose_the_default_model_is_used(tmp_path) -> None:
    found = with_project(
        tmp_path,
        agents_pi="version: 1\nagent: pi\ndefault_model: anthropic/opus\n",
        pipelines_ours="version: 1\npipeline: review\nprofiles:\n  ours: {stages: [pi_review]}\n",
    )
    result, _ = resolved(put(valid("review_only"), "routing.pipeline.profile", "ours"), found)
    assert result is not None
    assert result.stages[0].model == "anthropic/opus"
    assert result.sources["stages.pi_review.effort"] == "the agent's default"


@pytest.mark.req("PIP-7")
def test_an_effort_comes_from_stage_purpose_default_in_this_order(tmp_path) -> None:
    result, _ = resolved(valid("post_impl_review"))
    assert result is not None
    by_name = {stage.name: stage for stage in result.stages}
    assert (by_name["codex_review"].effort, by_name["codex_verify"].effort) == ("medium", "high")
    assert by_name["gemini_review"].effort is None
    strict, _ = resolved(put(valid("review_cross"), "routing.pipeline.profile", "strict_review"))
    assert strict is not None
    assert strict.stages[1].effort == "high"  # stage_efforts of the profile


@pytest.mark.req("PIP-7")
def test_purposes_are_those_of_the_roles() -> None:
    assert {role: purpose(role) for role in ROLES if not role.startswith("plan_")} == {
        "impl": "impl",
        "judge": "review",
        "test_impl": "impl",
        "verify": "verify",
        "static_verify": "verify",
        "review": "review",
        "review_consolidate": "review",
        "security_review": "review",
        "fix": "impl",
        "runbook": "one_shot",
        "brief": "plan",
        "test_design": "plan",
    }
    assert purpose("brief", "one_shot") == "one_shot"
    result, _ = resolved(valid("one_shot_impl"))
    assert result is not None
    assert (
        result.stages[0].model == "flash"
    )  # gemini's model for one_shot, though a brief is a plan elsewhere


class TestOptions:
    @pytest.mark.req("W-B1")
    def test_an_option_of_a_profile_never_replaces_the_profile(self, tmp_path) -> None:
        found = with_project(
            tmp_path,
            pipelines_review=(
                "version: 1\npipeline: review\nprofiles:\n  review_only:\n    options: {review_mode: cross}\n"
            ),
        )
        assert stages(valid("review_only"), found) == ["gemini_review"]

    @pytest.mark.parametrize(
        ("intent", "option", "value", "said"),
        [
            (
                "safe_impl",
                "impl_mode",
                "one_shot",
                "the intent safe_impl, which has impl_mode: safe (remove it, or use one_shot_impl)",
            ),
            ("one_shot_impl", "impl_mode", "safe", "the intent one_shot_impl, which has impl_mode: one_shot"),
            ("design_only", "impl_mode", "safe", "the intent design_only, which has no impl_mode"),
            (
                "review_cross",
                "review_mode",
                "codex_only",
                "the intent review_cross, which has review_mode: cross",
            ),
            ("review_only", "review_mode", "cross", "the intent review_only, which has no review_mode"),
            ("post_impl_review", "review_mode", "cross", "has no review_mode"),
        ],
    )
    def test_one_that_contradicts_the_intent_is_an_error(
        self, intent: str, option: str, value: str, said: str
    ) -> None:
        path = f"routing.pipeline.options.{option}"
        _, problems = resolved(put(valid(intent), path, value))
        assert said in problems[path]

    @pytest.mark.parametrize(
        ("intent", "option", "value"),
        [
            ("safe_impl", "impl_mode", "safe"),
            ("one_shot_impl", "impl_mode", "one_shot"),
            ("review_cross", "review_mode", "cross"),
        ],
    )
    def test_one_that_says_what_the_intent_says_changes_nothing(
        self, intent: str, option: str, value: str
    ) -> None:
        assert stages(put(valid(intent), f"routing.pipeline.options.{option}", value)) == STAGES[intent]

    def test_review_only_by_codex_only(self) -> None:
        assert stages(put(valid("review_only"), "routing.pipeline.options.review_mode", "codex_only")) == [
            "codex_review"
        ]

    def test_an_option_of_another_group_is_unknown(self) -> None:
        _, problems = resolved(put(valid("safe_impl"), "routing.pipeline.options.review_mode", "cross"))
        assert (
            "unknown option 'review_mode' in the group impl"
            in problems["routing.pipeline.options.review_mode"]
        )

    def test_a_wrong_value_is_reported_with_the_allowed_ones(self) -> None:
        _, problems = resolved(put(valid(), "routing.pipeline.options.timeout_mode", "enforced"))
        assert (
            "did you mean 'enforce'? allowed: enforce, wait_done"
            in problems["routing.pipeline.options.timeout_mode"]
        )


class TestTimeouts:
    def test_wait_done_relaxes_the_softer_limit_only(self) -> None:
        result, _ = resolved(valid())
        assert result is not None
        assert [stage.timeout_s for stage in result.stages] == [None] * 4

    def test_enforce_in_the_manifest_makes_it_bite(self) -> None:
        result, _ = resolved(put(valid(), "routing.pipeline.options.timeout_mode", "enforce"))
        assert result is not None
        assert [stage.timeout_s for stage in result.stages] == [600.0] * 4
        assert (
            result.sources["stages.codex_impl.timeout_s"] == "package agents/codex.yaml: defaults.timeout_sec"
        )

    def test_the_profile_beats_the_agent_and_zero_means_no_limit(self, tmp_path) -> None:
        found = with_project(
            tmp_path,
            agents_gemini="version: 1\nagent: gemini\ndefaults: {timeout_sec: 0}\n",
            pipelines_impl=(
                "version: 1\npipeline: impl\nprofiles:\n  safe_impl:\n    options: {timeout_mode: enforce}\n"
            ),
        )
        result, _ = resolved(valid(), found)
        assert result is not None
        assert [stage.timeout_s for stage in result.stages] == [None, 600.0, 600.0, None]


class TestFlags:
    @pytest.mark.req("PIP-5")
    @pytest.mark.parametrize(
        ("intent", "flag", "left"),
        [
            ("safe_impl", "enable_brief", ["codex_impl", "codex_verify", "gemini_review"]),
            ("safe_impl", "enable_verify", ["gemini_brief", "codex_impl", "gemini_review"]),
            ("safe_impl", "enable_review", ["gemini_brief", "codex_impl", "codex_verify"]),
            (
                "post_impl_review",
                "enable_verify",
                ["gemini_review", "gemini_test_design", "codex_review", "codex_test_impl"],
            ),
        ],
    )
    def test_one_that_is_false_takes_stages_away(self, intent: str, flag: str, left: list[str]) -> None:
        assert stages(put(valid(intent), f"routing.pipeline.flags.{flag}", False)) == left

    @pytest.mark.req("PIP-5")
    def test_a_plan_without_stages_is_an_error(self) -> None:
        _, problems = resolved(put(valid("review_only"), "routing.pipeline.flags.enable_review", False))
        assert "all stages are turned off" in problems["routing.pipeline.flags"]

    def test_one_that_can_turn_nothing_on_is_an_error(self) -> None:
        _, problems = resolved(put(valid("review_only"), "routing.pipeline.flags.enable_verify", True))
        assert "has no stage that this flag turns on" in problems["routing.pipeline.flags.enable_verify"]

    def test_an_unknown_one_is_reported(self) -> None:
        _, problems = resolved(put(valid(), "routing.pipeline.flags.enable_breif", True))
        assert "did you mean 'enable_brief'?" in problems["routing.pipeline.flags.enable_breif"]


class TestProfiles:
    @pytest.mark.parametrize("intent", ["design_only"])
    def test_an_intent_that_changes_nothing_refuses_one_that_writes(self, intent: str) -> None:
        _, problems = resolved(put(valid(intent), "routing.pipeline.profile", "safe_impl"))
        assert (
            "must not change code, but the profile safe_impl writes in codex_impl"
            in problems["routing.pipeline.profile"]
        )

    def test_an_intent_that_implements_refuses_one_that_does_not(self) -> None:
        _, problems = resolved(put(valid("safe_impl"), "routing.pipeline.profile", "design_only"))
        assert "must change code" in problems["routing.pipeline.profile"]

    def test_one_of_another_group_is_unknown(self) -> None:
        _, problems = resolved(put(valid("safe_impl"), "routing.pipeline.profile", "review_cross"))
        assert "unknown profile 'review_cross' for safe_impl" in problems["routing.pipeline.profile"]

    @pytest.mark.req("PIP-11")
    def test_the_plan_pipeline_drafts_enriches_twice_reviews_and_consolidates(self) -> None:
        result, problems = resolved(put(valid("design_only"), "routing.pipeline.profile", "plan"))
        assert problems == {}
        assert result is not None
        assert [stage.role for stage in result.stages] == [
            "plan_draft", "plan_enrich", "plan_enrich", "plan_review", "plan_consolidate",
        ]  # fmt: skip
        assert not any(stage.writes for stage in result.stages)

    def test_stages_of_a_parallel_group_share_it_and_its_time(self, tmp_path) -> None:
        found = with_project(
            tmp_path,
            pipelines_ours=(
                "version: 1\npipeline: review\nprofiles:\n  ours:\n    stages: [gemini_brief, "
                "{parallel: [gemini_review, codex_review], timeout_sec: 900}, "
                "copilot_review_consolidate]\n"
            ),
        )
        result, problems = resolved(put(valid("review_cross"), "routing.pipeline.profile", "ours"), found)
        assert problems == {}
        assert result is not None
        assert [stage.group for stage in result.stages] == [None, "parallel-1", "parallel-1", None]
        assert result.join_timeout_s == 900

    def test_a_runbook_writes_only_if_its_profile_allows_it(self, tmp_path) -> None:
        result, _ = resolved(valid("one_shot_impl"))
        assert result is not None
        assert [stage.writes for stage in result.stages] == [False, True, False]
        found = with_project(
            tmp_path,
            pipelines_ours="version: 1\npipeline: impl\nprofiles:\n  dry: {stages: [copilot_runbook]}\n",
        )
        assert stages(put(valid("design_only"), "routing.pipeline.profile", "dry"), found) == [
            "copilot_runbook"
        ]


class TestRest:
    def test_a_model_that_is_not_allowed_is_an_error_with_the_list(self) -> None:
        _, problems = resolved(put(valid(), "routing.model.codex", "gpt-4"))
        assert "the model 'gpt-4' is not allowed for codex" in problems["routing.model.codex"]
        assert "gpt-5.3-codex-spark" in problems["routing.model.codex"]

    def test_any_means_any(self) -> None:
        assert stages(put(valid(), "routing.model.claude", "claude-whatever-9")) == STAGES["safe_impl"]

    def test_approval_names_stages_that_run(self) -> None:
        result, _ = resolved(put(valid(), "approval", ["codex_impl"]))
        assert result is not None
        assert [stage.name for stage in result.stages if stage.approval] == ["codex_impl"]
        _, problems = resolved(put(valid(), "approval", ["codex_imp"]))
        assert "did you mean 'codex_impl'?" in problems["approval[0]"]

    def test_options_of_agents_go_from_file_to_stage_to_manifest(self, tmp_path) -> None:
        found = with_project(
            tmp_path,
            agents_codex="version: 1\nagent: codex\noptions: {sandbox: read-only, a: 1}\n",
            pipelines_impl=(
                "version: 1\npipeline: impl\nprofiles:\n  safe_impl:\n    stage_options: "
                "{codex_impl: {a: 2, b: 2}}\n"
            ),
        )
        data = put(valid(), "routing.options", {"codex": {"b": 3}, "codex_verify": {"c": 4}})
        result, problems = resolved(data, found)
        assert problems == {}
        assert result is not None
        by_name = {stage.name: stage.options for stage in result.stages}
        assert by_name["codex_impl"] == {"sandbox": "read-only", "a": 2, "b": 3}
        assert by_name["codex_verify"] == {"sandbox": "read-only", "a": 1, "b": 3, "c": 4}

    def test_failover_names_agents(self) -> None:
        _, problems = resolved(put(valid(), "routing.failover", ["claude", "cluade"]))
        assert "did you mean 'claude'?" in problems["routing.failover[1]"]

    def test_every_resolved_value_says_where_it_came_from(self) -> None:
        result, _ = resolved(valid())
        assert result is not None
        for stage in result.stages:
            for key in ("model", "effort", "timeout_s"):
                assert f"stages.{stage.name}.{key}" in result.sources
