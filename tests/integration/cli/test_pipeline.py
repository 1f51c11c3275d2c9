"""holdfast pipeline, and what `run --packet` refuses before it creates anything."""

from __future__ import annotations

import json
import os

import pytest

from tests.support import manifests
from tests.support.manifests import put, valid
from tests.support.tasks import holdfast, trust, workspace


def packet(data: dict | bytes, name: str = "p") -> str:
    return manifests.write(os.path.join(workspace(), name), data)


@pytest.fixture
def agents(monkeypatch: pytest.MonkeyPatch, place) -> str:
    """Programs in PATH with the agents' names that do nothing."""
    folder = os.path.join(place.root, "bin")
    os.mkdir(folder)
    for name in ("codex", "gemini", "copilot"):
        path = os.path.join(folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\nexit 1\n")
        os.chmod(path, 0o755)
    monkeypatch.setenv("PATH", folder + os.pathsep + os.environ["PATH"])
    return folder


@pytest.mark.usefixtures("home")
class TestList:
    @pytest.mark.req("PKT-6")
    def test_json_has_every_allowed_value(self) -> None:
        data = json.loads(holdfast("pipeline", "list", "--json", cwd=workspace()).stdout)
        assert data["schema"] == "holdfast.pipelines/1"
        assert data["intents"]["review_cross"]["stages"] == [
            "gemini_review",
            "codex_review",
            "copilot_review_consolidate",
        ]
        assert "gpt-5-codex" in data["agents"]["codex"]["allowed_models"]
        assert data["agents"]["pi"]["allowed_models"] is None
        assert data["groups"]["impl"]["options"]["timeout_mode"] == ["enforce", "wait_done"]
        assert "enable_brief" in data["groups"]["impl"]["flags"]
        assert data["digest_policies"] == ["off", "auto", "aggressive"]

    def test_ones_own_profiles_are_listed_with_their_file(self) -> None:
        folder = os.path.join(workspace(), ".holdfast", "pipelines")
        os.makedirs(folder)
        path = os.path.join(folder, "ours.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write("version: 1\npipeline: impl\nprofiles: {ours: {stages: [claude_impl]}}\n")
        assert "ours" not in holdfast("pipeline", "list", "--json", cwd=workspace()).stdout
        trust(workspace())
        data = json.loads(holdfast("pipeline", "list", "--json", cwd=workspace()).stdout)
        assert data["groups"]["impl"]["profiles"]["ours"] == {
            "stages": ["claude_impl"],
            "options": {},
            "from": path,
        }
        assert "ours" in holdfast("pipeline", "list", cwd=workspace()).stdout

    def test_plain_output_has_intents_profiles_agents_and_options(self) -> None:
        printed = holdfast("pipeline", "list", cwd=workspace()).stdout
        for word in ("INTENT", "safe_impl", "strict_review", "gpt-5.3-codex", "timeout_mode", "enable_brief"):
            assert word in printed

    def test_a_wrong_file_is_reported(self) -> None:
        folder = os.path.join(workspace(), ".holdfast", "agents")
        os.makedirs(folder)
        with open(os.path.join(folder, "codex.yaml"), "w", encoding="utf-8") as file:
            file.write("version: 1\nagent: codex\nmodel: x\ndefaults: {timeout_sec: soon}\n")
        done = holdfast("pipeline", "list", cwd=workspace())
        assert done.returncode == 2
        assert "has 2 problems" in done.stderr
        assert "codex.yaml:3: model: unknown key" in done.stderr


@pytest.mark.usefixtures("home")
class TestShow:
    def test_it_prints_stages_and_where_each_value_came_from(self) -> None:
        packet(put(valid(), "routing.model.codex", "gpt-5.2-codex"))
        done = holdfast("pipeline", "show", "p", cwd=workspace())
        assert done.returncode == 0, done.stderr
        (line,) = [line for line in done.stdout.splitlines() if line.startswith("codex_impl")]
        assert line.split() == ["codex_impl", "codex", "gpt-5.2-codex", "high", "900s", "writes"]
        assert "manifest.yaml: routing.model.codex" in done.stdout
        assert "package agents/gemini.yaml: purpose_models.plan" in done.stdout
        # The packet's own limit is shorter, so it applies.
        (line,) = [
            line for line in done.stdout.splitlines() if line.startswith("stages.codex_impl.timeout_s")
        ]
        assert line.split()[1:] == ["manifest.yaml:", "budgets.max_wallclock_sec"]

    def test_json_has_the_same_by_stage(self) -> None:
        packet(valid("review_cross"))
        data = json.loads(holdfast("pipeline", "show", "p", "--json", cwd=workspace()).stdout)
        assert data["schema"] == "holdfast.pipeline/1"
        assert [stage["name"] for stage in data["stages"]] == [
            "gemini_review",
            "codex_review",
            "copilot_review_consolidate",
        ]
        assert data["stages"][1]["sources"]["model"] == "package agents/codex.yaml: purpose_models.review"
        assert data["stages"][1]["max_wallclock_s"] == 900.0

    def test_the_file_itself_will_do_for_the_packet(self) -> None:
        path = os.path.join(packet(valid()), "manifest.yaml")
        assert holdfast("pipeline", "show", path, cwd=workspace()).returncode == 0


@pytest.mark.usefixtures("home")
class TestCheck:
    @pytest.mark.req("PKT-6")
    def test_every_problem_is_told_at_once(self) -> None:
        packet(
            put(put(put(valid(), "routing.intent", "safe_imp"), "budgets.retry_budget", "two"), "extra", 1)
        )
        done = holdfast("pipeline", "check", "p", cwd=workspace())
        assert done.returncode == 2
        assert "p/manifest.yaml has 3 problems" in done.stderr
        assert "routing.intent: 'safe_imp' is not allowed (did you mean 'safe_impl'?" in done.stderr
        assert "budgets.retry_budget: must be an integer from 0 to 100, not 'two'" in done.stderr
        data = json.loads(holdfast("pipeline", "check", "p", "--json", cwd=workspace()).stdout)
        assert data["valid"] is False
        assert {problem["path"] for problem in data["problems"]} == {
            "routing.intent",
            "budgets.retry_budget",
            "extra",
        }

    def test_what_run_would_refuse_is_reported(self, agents: str) -> None:
        """A packet that is valid, in a place where it cannot run: its worktree needs git."""
        packet(put(valid("safe_impl"), "workspace", "worktree"))
        refused = holdfast("run", "-d", "--packet", "p", "--trust-project", cwd=workspace())
        assert refused.returncode == 2
        done = holdfast("pipeline", "check", "p", cwd=workspace())
        assert (done.returncode, done.stderr) == (2, refused.stderr)
        data = json.loads(holdfast("pipeline", "check", "p", "--json", cwd=workspace()).stdout)
        assert (data["valid"], data["problems"]) == (True, [])
        assert data["refusal"]["message"] in refused.stderr

    def test_a_sound_one_is_told_with_its_stages(self, agents: str) -> None:
        packet(valid("review_only"))
        done = holdfast("pipeline", "check", "p", cwd=workspace())
        assert done.returncode == 0
        assert "note: 'run' refuses it for now: the packet" in done.stderr
        done = holdfast("pipeline", "check", "p", "--trust-project", cwd=workspace())
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == (
            "p/manifest.yaml is valid: gemini_review\nacceptance commands: 1, in the gate of gemini_review\n"
        )
        data = json.loads(holdfast("pipeline", "check", "p", "--json", cwd=workspace()).stdout)
        assert (data["schema"], data["valid"], data["problems"]) == ("holdfast.pipeline-check/1", True, [])
        assert data["accepted_by"] == ["gemini_review"]

    def test_stages_that_run_in_parallel_are_told_apart(self, agents: str) -> None:
        packet(put(valid("safe_impl"), "routing.pipeline", {"profile": "review_fix"}))
        done = holdfast("pipeline", "check", "p", "--trust-project", cwd=workspace())
        assert "is valid: gemini_review + codex_review → copilot_" in " ".join(done.stdout.split())

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (("check",), "'pipeline check' needs a packet"),
            (("show",), "needs a packet"),
            (("list", "p"), "takes no packet"),
            (("check", "none"), "there is no packet none"),
            (("chek",), "check"),
        ],
    )
    def test_wrong_words_are_reported(self, words: tuple[str, ...], message: str) -> None:
        done = holdfast("pipeline", *words, cwd=workspace())
        assert done.returncode == 2
        assert message in done.stderr


@pytest.mark.usefixtures("home")
class TestRun:
    """Nothing is created and no agent is called unless everything is valid."""

    @pytest.mark.req("PKT-6")
    @pytest.mark.parametrize(
        "data",
        [b"\xff", b"a: &a [*a]", put(valid(), "goal", ""), put(valid(), "routing.model.codex", "gpt-1")],
    )
    def test_an_invalid_packet_makes_no_task(self, data: dict | bytes, agents: str) -> None:
        packet(data)
        done = holdfast("run", "-d", "--packet", "p", cwd=workspace())
        assert done.returncode == 2
        assert "manifest.yaml" in done.stderr
        assert "Traceback" not in done.stderr
        assert holdfast("ls", "-q", "--all").stdout == ""

    def test_all_agents_that_are_not_installed_are_reported(self, monkeypatch: pytest.MonkeyPatch) -> None:
        packet(valid("review_cross"))
        monkeypatch.setenv("PATH", "/nowhere")
        done = holdfast("run", "-d", "--packet", "p", cwd=workspace())
        assert done.returncode == 2
        for name in ("gemini", "codex", "copilot"):
            assert f"{name}: no {name} in PATH" in done.stderr

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (("do it",), "a prompt and --packet exclude each other"),
            (("--agent", "codex"), "--agent and --packet exclude each other"),
            (("--model", "x"), "--model and --packet exclude each other"),
            (("--", "true"), "a command and --packet exclude each other"),
        ],
    )
    def test_what_the_packet_says_cannot_be_said_beside_it(
        self, words: tuple[str, ...], message: str
    ) -> None:
        packet(valid())
        done = holdfast("run", "-d", "--packet", "p", *words, cwd=workspace())
        assert done.returncode == 2
        assert message in done.stderr

    def test_an_option_that_an_agent_needs_is_demanded(self) -> None:
        folder = os.path.join(workspace(), ".holdfast", "pipelines")
        os.makedirs(folder)
        with open(os.path.join(folder, "ours.yaml"), "w", encoding="utf-8") as file:
            file.write("version: 1\npipeline: review\nprofiles: {ours: {stages: [scripted_review]}}\n")
        trust(workspace())
        packet(put(valid("review_only"), "routing.pipeline.profile", "ours"))
        done = holdfast("run", "-d", "--packet", "p", cwd=workspace())
        assert done.returncode == 2
        assert "scripted_review: scripted needs the option scenario" in done.stderr
