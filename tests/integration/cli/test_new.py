"""holdfast new: the packet is valid as written."""

from __future__ import annotations

import json
import os

import pytest

from tests.support.tasks import holdfast, workspace

PLAN = "# Make the client retry\n\n## Verify Commands\n\n```\nmake test\n```\n"


@pytest.mark.req("PKT-18")
@pytest.mark.usefixtures("home")
class TestNew:
    def test_it_writes_a_packet_that_passes_its_check(self) -> None:
        done = holdfast(
            "new", "p", "--intent", "safe_impl", "--goal", "fix it", "--allow", "src/", "--deny", "src/x",
            "--accept", "make test", "--id", "t1", cwd=workspace(),
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        folder = done.stdout.strip()
        assert folder == os.path.join(workspace(), "p")
        assert "holdfast run --packet" in done.stderr
        checked = holdfast("pipeline", "check", "p", cwd=workspace())
        assert checked.returncode == 0, checked.stderr
        shown = json.loads(holdfast("pipeline", "show", "p", "--json", cwd=workspace()).stdout)
        assert shown["task_id"] == "t1"
        assert (shown["scope_allow"], shown["scope_deny"]) == (["src/"], ["src/x"])
        assert shown["acceptance_commands"] == ["make test"]

    def test_the_folder_is_named_like_the_task(self) -> None:
        done = holdfast("new", "--intent", "review_only", "--goal", "look at it", "--json", cwd=workspace())
        data = json.loads(done.stdout)
        assert data["schema"] == "holdfast.new/1"
        assert data["path"] == os.path.join(workspace(), data["task_id"])
        assert data["task_id"] in os.listdir(workspace())

    def test_from_a_plan(self) -> None:
        with open(os.path.join(workspace(), "plan.md"), "w", encoding="utf-8") as file:
            file.write(PLAN)
        done = holdfast("new", "p", "--intent", "safe_impl", "--from-plan", "plan.md", cwd=workspace())
        assert done.returncode == 0, done.stderr
        shown = json.loads(holdfast("pipeline", "show", "p", "--json", cwd=workspace()).stdout)
        assert shown["acceptance_commands"] == ["make test"]
        with open(os.path.join(workspace(), "p", "inputs", "user_request.md"), encoding="utf-8") as file:
            assert "Carry out this approved plan." in file.read()

    def test_a_plan_names_its_scope_and_its_dangerous_commands_are_left_out(self) -> None:
        plan = (
            "# Do it\n\n## Scope\n\n- `src/`\n- docs/*.md\n\n"
            "## Verify Commands\n\n```sh\nsudo rm -rf /\nmake test\n```\n"
        )
        with open(os.path.join(workspace(), "plan.md"), "w", encoding="utf-8") as file:
            file.write(plan)
        done = holdfast("new", "p", "--intent", "safe_impl", "--from-plan", "plan.md", cwd=workspace())
        assert done.returncode == 0, done.stderr
        assert "command of the plan left out: `sudo rm -rf /`: " in " ".join(done.stderr.split())
        shown = json.loads(holdfast("pipeline", "show", "p", "--json", cwd=workspace()).stdout)
        assert shown["acceptance_commands"] == ["make test"]
        assert shown["scope_allow"] == ["src/", "docs/*.md"]

    def test_the_project_is_written_so_that_both_can_move(self) -> None:
        done = holdfast("new", "p", "--intent", "safe_impl", "--goal", "x", "--project", ".", cwd=workspace())
        assert done.returncode == 0, done.stderr
        with open(os.path.join(workspace(), "p", "manifest.yaml"), encoding="utf-8") as file:
            assert 'project: ".."\n' in file.read()
        shown = holdfast("pipeline", "show", os.path.join(workspace(), "p"), "--json", cwd="/")
        assert json.loads(shown.stdout)["project_dir"] == workspace()

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            ((), "missing --goal"),
            (("--intent", "safe_imp", "--goal", "x"), "safe_impl"),
            (("--intent", "safe_impl"), "missing --goal"),
            (("--intent", "safe_impl", "--goal", "x", "--id", "a/b"), "not a task id"),
            (
                ("--intent", "safe_impl", "--goal", "x", "--allow", "/etc"),
                "scope.allow[0]: '/etc' is absolute",
            ),
            (("--intent", "safe_impl", "--goal", "x", "--allow", ""), "scope.allow[0]: must not be empty"),
            (
                ("--intent", "safe_impl", "--goal", "x", "--profile", "codex_onyl"),
                "did you mean 'codex_only'?",
            ),
            (("--intent", "design_only", "--goal", "x", "--profile", "safe_impl"), "must not change code"),
            (("--intent", "safe_impl", "--from-plan", "none.md"), "cannot read the plan none.md"),
            (("--intent", "safe_impl", "--goal", "x", "--project", "none"), "does not exist"),
        ],
    )
    def test_what_is_wrong_is_told_and_nothing_is_written(self, words: tuple[str, ...], message: str) -> None:
        done = holdfast("new", "p", *words, cwd=workspace())
        assert done.returncode == 2
        assert message in done.stderr
        assert "Traceback" not in done.stderr
        assert os.listdir(workspace()) == []

    def test_it_never_overwrites(self) -> None:
        os.mkdir(os.path.join(workspace(), "p"))
        done = holdfast("new", "p", "--intent", "safe_impl", "--goal", "x", cwd=workspace())
        assert done.returncode == 2
        assert "exists already" in done.stderr
        assert os.listdir(os.path.join(workspace(), "p")) == []
