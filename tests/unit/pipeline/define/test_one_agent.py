"""One agent for all roles."""

from __future__ import annotations

import pytest

from holdfast.agents import registry
from holdfast.agents.base import Capabilities
from holdfast.model.roles import ROLES
from holdfast.pipeline.define import one_agent
from holdfast.pipeline.define.catalog_file import Batch
from holdfast.pipeline.define.intents import INTENTS
from tests.contract.adapters.recorded import AGENTS
from tests.support.manifests import package, put, resolved, stages, valid

pytestmark = pytest.mark.req("TEA-1")


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("intent", INTENTS)
def test_every_intent_can_be_played_by_one_agent(agent: str, intent: str) -> None:
    names = stages(put(valid(intent), "routing.agent", agent))
    assert names
    assert all(name.startswith(f"{agent}_") for name in names)
    assert len(set(names)) == len(names)


def test_every_shipped_profile_can_be_played_by_one_agent() -> None:
    for group in package().groups.values():
        for name in group.profiles:
            intent = next(key for key, kind in INTENTS.items() if group.name in (kind.group, *kind.also))
            if name == "design_only" or group.name == "plan":
                intent = "design_only"
            manifest = put(valid(intent), "routing.pipeline.profile", name)
            result, problems = resolved(put(manifest, "routing.agent", "claude"))
            assert not problems, problems
            assert result is not None
            assert {stage.agent for stage in result.stages} == {"claude"}


def test_what_writes_still_writes() -> None:
    result, problems = resolved(put(valid("one_shot_impl"), "routing.agent", "claude"))
    assert result is not None, problems
    assert [stage.name for stage in result.stages if stage.writes] == ["claude_runbook"]


def test_equal_stages_become_one_and_nothing_is_merged_from_one_review() -> None:
    result, problems = resolved(put(valid("review_cross"), "routing.agent", "claude"))
    assert result is not None, problems
    assert [stage.name for stage in result.stages] == ["claude_review"]
    assert result.merged == (
        "gemini_review and codex_review become one stage, claude_review",
        "copilot_review_consolidate is left out: there is only one review",
    )
    assert result.sources["agent"] == "manifest.yaml: routing.agent"


def test_two_kinds_of_review_are_still_merged() -> None:
    batches = (
        Batch(stages=("gemini_review", "codex_security_review"), is_parallel=True),
        Batch(stages=("codex_review_consolidate",)),
    )
    played, _ = one_agent.played_by("pi", batches, ("gemini", "codex", "pi"))
    assert [batch.stages for batch in played] == [
        ("pi_review", "pi_security_review"),
        ("pi_review_consolidate",),
    ]
    assert played[0].is_parallel


def test_a_group_of_one_is_not_parallel() -> None:
    batches = (Batch(stages=("gemini_review", "codex_review"), is_parallel=True),)
    played, origins = one_agent.played_by("pi", batches, ("gemini", "codex", "pi"))
    assert played == (Batch(stages=("pi_review",)),)
    assert origins == {"pi_review": ("gemini_review", "codex_review")}


def test_a_flag_of_the_profile_turns_its_stage_off() -> None:
    manifest = put(
        put(valid("safe_impl"), "routing.agent", "claude"), "routing.pipeline.flags.enable_brief", False
    )
    assert stages(manifest) == ["claude_impl", "claude_verify", "claude_review"]


def test_an_unknown_agent_is_named() -> None:
    _, problems = resolved(put(valid("safe_impl"), "routing.agent", "cluade"))
    assert list(problems) == ["routing.agent"]
    assert problems["routing.agent"].startswith("unknown agent 'cluade' (did you mean 'claude'?")


class TestShortcomings:
    def of(self, agent: str, capabilities: Capabilities | None = None) -> list[str]:
        result, problems = resolved(put(valid("safe_impl"), "routing.agent", agent))
        assert result is not None, problems
        return one_agent.shortcomings(
            agent, capabilities or registry.adapter(agent).capabilities, result.stages
        )

    def test_it_reviews_its_own_work(self) -> None:
        assert self.of("claude") == ["claude reviews its own work: claude_review"]

    def test_a_cost_that_nobody_reports(self) -> None:
        assert "codex does not report its cost: budgets.budget_usd cannot stop it" in self.of("codex")

    def test_an_option_that_it_needs(self) -> None:
        lines = self.of("scripted")
        assert any(line.startswith("scripted needs the option scenario: scripted_brief, ") for line in lines)

    def test_an_agent_that_can_do_little(self) -> None:
        text = "\n".join(self.of("claude", Capabilities()))
        assert "claude cannot be kept from writing: claude_brief, claude_verify, claude_review" in text
        assert "claude cannot continue a session: a repair by claude_impl starts a new one" in text


def test_roles_that_merge_findings_have_findings() -> None:
    assert all(role.has_findings for role in ROLES.values() if role.joins_findings)
