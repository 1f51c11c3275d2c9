"""holdfast new --agent, --run and --template: from a failing test to a reviewed branch with two commands."""

from __future__ import annotations

import json
import os

import pytest

from holdfast import paths
from tests.support.packets import calls, played, scripted_claude, summary
from tests.support.repos import Repo
from tests.support.tasks import Task, holdfast, trust, workspace

ACCEPT = "test -e b.txt"
#: The roles of safe_impl.
ROLES = ("brief", "impl", "verify", "review")

pytestmark = pytest.mark.usefixtures("home")


def task_of(task_id: str) -> Task:
    return Task(os.path.join(os.environ["HOLDFAST_HOME"], "tasks", task_id))


@pytest.fixture
def project() -> Repo:
    repo = Repo(os.path.join(workspace(), "project"))
    repo.write("a.txt", "a\n")
    repo.commit()
    return repo


@pytest.mark.req("TEA-1", "TEA-3")
class TestOneAgent:
    def test_two_commands_lead_to_a_reviewed_merge(self, project: Repo) -> None:
        env = scripted_claude(**{role: played(role) for role in ROLES})
        done = holdfast(
            "new", "--agent", "claude", "--goal", "write b.txt", "--accept", ACCEPT, "--run", "--id", "it",
            cwd=project.path, env=env,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert done.stdout == "it\n"
        assert "note: claude reviews its own work: claude_review" in done.stderr
        steps = [line.split("   ")[0].strip() for line in done.stderr.splitlines() if "  holdfast " in line]
        assert steps[:3] == ["holdfast diff it", "holdfast apply it", "holdfast pr it"]
        task = task_of("it")
        assert [event["stage"] for event in calls(task)] == [f"claude_{role}" for role in ROLES]
        # Neither a folder nor the work is in the project: the work is on the task's branch.
        assert sorted(os.listdir(project.path)) == [".git", "a.txt"]
        assert "next_action: **apply**" in summary(task)
        applied = holdfast("apply", "it", cwd=project.path)
        assert applied.returncode == 0, applied.stderr
        assert project.read("b.txt") == "hello\n"

    def test_a_named_folder_is_kept(self, project: Repo) -> None:
        env = scripted_claude(review=played("review"))
        done = holdfast(
            "new", "../p", "--agent", "claude", "--intent", "review_only", "--goal", "look", "--run",
            "--json",
            cwd=project.path, env=env,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["status"] == "completed"
        assert os.path.isfile(os.path.join(workspace(), "p", "manifest.yaml"))

    def test_it_may_be_left_alone(self, project: Repo) -> None:
        env = scripted_claude(review=played("review"))
        done = holdfast(
            "new", "--agent", "claude", "--intent", "review_only", "--goal", "look", "--run", "-d",
            "--id", "it",
            cwd=project.path, env=env,
        )  # fmt: skip
        assert (done.returncode, done.stdout) == (0, "it\n"), done.stderr
        task_of("it").wait_for("completed", within_s=40)

    def test_files_that_are_not_committed_would_be_missing(self, project: Repo) -> None:
        project.write("test_it.py", "assert False\n")
        words = ("new", "--agent", "claude", "--goal", "x", "--run", "--id", "it")
        done = holdfast(*words, cwd=project.path, env=scripted_claude())
        assert done.returncode == 2
        assert "would lack what is not committed: test_it.py" in " ".join(done.stderr.split())
        assert "--in-place" in done.stderr
        assert not os.path.exists(task_of("it").path())

    def test_without_a_repository_it_works_in_place(self) -> None:
        env = scripted_claude(**{role: played(role) for role in ROLES})
        folder = os.path.join(workspace(), "plain")
        os.mkdir(folder)
        done = holdfast(
            "new",
            "--agent",
            "claude",
            "--goal",
            "write b.txt",
            "--accept",
            ACCEPT,
            "--run",
            cwd=folder,
            env=env,
        )
        assert done.returncode == 0, done.stderr
        assert os.listdir(folder) == ["b.txt"]
        assert "is not a git repository with a commit, so the agents work on your files" in " ".join(
            done.stderr.split()
        )

    def test_pipeline_check_says_what_the_agent_cannot_do(self, project: Repo) -> None:
        done = holdfast(
            "new", "../p", "--agent", "codex", "--intent", "review_cross", "--goal", "x", cwd=project.path
        )
        assert done.returncode == 0, done.stderr
        checked = holdfast("pipeline", "check", "../p", cwd=project.path)
        text = " ".join(checked.stderr.split())
        assert "note: gemini_review and codex_review become one stage, codex_review" in text
        assert "note: codex does not report its cost" in text

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (("--goal", "x", "--agent", "cluade"), "did you mean 'claude'?"),
            (("--goal", "x", "-d"), "--detach needs --run"),
            (("--goal", "x", "--var", "a=b"), "--var needs --template"),
            (("--goal", "x", "--worktree", "--in-place"), "exclude each other"),
            (("--goal", "x", "--from-plan", "p.md", "--run"), "--run and --from-plan exclude each other"),
        ],
    )
    def test_what_does_not_fit_is_refused(self, project: Repo, words: tuple[str, ...], message: str) -> None:
        done = holdfast("new", *words, cwd=project.path)
        assert done.returncode == 2
        assert message in " ".join(done.stderr.split())
        assert sorted(os.listdir(project.path)) == [".git", "a.txt"]


TEMPLATE = """\
version: 1
about: Make a failing test pass.
variables:
  test: The test to make pass.
  where:
    about: What may be changed.
    default: src/
goal: make {{test}} pass
request: |
  {{ test }} fails. Change only {{where}}.
agent: claude
allow: ["{{where}}"]
accept: ["pytest -x {{test}}"]
criteria: [the test is not weakened]
paid_call_budget: 7
"""


@pytest.mark.req("TEA-2")
class TestTemplates:
    def mine(self, text: str = TEMPLATE, name: str = "failing-test") -> None:
        folder = os.path.join(paths.config_dir(), "templates")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, f"{name}.yaml"), "w", encoding="utf-8") as file:
            file.write(text)

    def new(self, *words: str, project: Repo) -> tuple[int, str]:
        done = holdfast("new", "../p", "--template", "failing-test", *words, cwd=project.path)
        return done.returncode, " ".join(done.stderr.split())

    def shown(self, project: Repo) -> dict[str, object]:
        done = holdfast("pipeline", "show", "../p", "--json", cwd=project.path)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def test_its_options_with_the_values_of_variables(self, project: Repo) -> None:
        self.mine()
        status, said = self.new("--var", "test=tests/test a.py; rm -rf x", project=project)
        assert status == 0, said
        shown = self.shown(project)
        # A value is one word of a command, whatever it contains.
        assert shown["acceptance_commands"] == ["pytest -x 'tests/test a.py; rm -rf x'"]
        assert (shown["scope_allow"], shown["paid_call_budget"]) == (["src/"], 7)
        assert shown["acceptance_criteria"] == ["the test is not weakened"]
        assert {stage["agent"] for stage in shown["stages"]} == {"claude"}  # pyright: ignore
        with open(os.path.join(workspace(), "p", "inputs", "user_request.md"), encoding="utf-8") as file:
            assert file.read() == "tests/test a.py; rm -rf x fails. Change only src/.\n"

    def test_options_of_the_command_line_replace_its_own(self, project: Repo) -> None:
        self.mine()
        status, said = self.new("--var", "test=t", "--agent", "codex", "--allow", "lib/", project=project)
        assert status == 0, said
        shown = self.shown(project)
        assert shown["scope_allow"] == ["lib/"]
        assert {stage["agent"] for stage in shown["stages"]} == {"codex"}  # pyright: ignore

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            ((), "the template failing-test needs test test: The test to make pass. --var test=VALUE"),
            (("--var", "tset=x"), "has no variable tset did you mean 'test'? its variables: test, where"),
            (("--var", "test"), "--var test: not KEY=VALUE"),
        ],
    )
    def test_variables_are_checked(self, project: Repo, words: tuple[str, ...], message: str) -> None:
        self.mine()
        status, said = self.new(*words, project=project)
        assert status == 2
        assert message in said.replace("hint: ", "").replace("error: ", "")
        assert not os.path.exists(os.path.join(workspace(), "p"))

    def test_all_mistakes_of_a_template_are_reported(self, project: Repo) -> None:
        self.mine("goal: make {{tset}} pass\nvariables: {test: x}\nintnet: safe_impl\nallow: src\n")
        status, said = self.new("--var", "test=t", project=project)
        assert status == 2
        for part in (
            "version: missing", "intnet: unknown key", "did you mean 'intent'?", "allow: must be a list",
            "{{tset}} is not one of its variables",
        ):  # fmt: skip
            assert part in said

    def test_an_unknown_template_and_those_that_exist(self, project: Repo) -> None:
        status, said = self.new(project=project)
        assert status == 2
        assert "there is no template failing-test" in said
        self.mine(name="failing-tests")
        assert "did you mean 'failing-tests'?" in self.new(project=project)[1]

    def test_a_name_is_not_a_path(self, project: Repo) -> None:
        done = holdfast("new", "--template", "../x", cwd=project.path)
        assert done.returncode == 2
        assert "is not the name of a template" in done.stderr

    def test_that_of_a_project_needs_trust(self, project: Repo) -> None:
        project.write(".holdfast/templates/failing-test.yaml", TEMPLATE)
        status, said = self.new("--var", "test=t", project=project)
        assert status == 2
        assert "you do not trust" in said
        assert "holdfast trust" in said
        asked = holdfast("trust", project.path, "--yes")
        assert "templates/failing-test.yaml: accept = [\"pytest -x '{{test}}'\"]" in " ".join(
            asked.stdout.split()
        )
        status, said = self.new("--var", "test=t", project=project)
        assert status == 0, said
        project.write(".holdfast/templates/failing-test.yaml", TEMPLATE.replace("pytest -x", "sh -c id"))
        done = holdfast("new", "../q", "--template", "failing-test", "--var", "test=t", cwd=project.path)
        assert done.returncode == 2

    def test_without_trust_that_of_the_user_is_used(self, project: Repo) -> None:
        project.write(".holdfast/templates/failing-test.yaml", TEMPLATE.replace("src/", "evil/"))
        self.mine()
        status, said = self.new("--var", "test=t", project=project)
        assert status == 0, said
        assert self.shown(project)["scope_allow"] == ["src/"]
        assert "is not trusted" in said
        trust(project.path)
        done = holdfast("new", "../q", "--template", "failing-test", "--var", "test=t", cwd=project.path)
        assert done.returncode == 0, done.stderr
        shown = json.loads(holdfast("pipeline", "show", "../q", "--json", cwd=project.path).stdout)
        assert shown["scope_allow"] == ["evil/"]
