"""Secrets of a plain run: on its command line, in its goal, in what it asks, and at the edges of what is
kept."""

from __future__ import annotations

import os
import stat

import pytest

from holdfast.store.layout import Home
from holdfast.testing import Scenario
from tests.support import kin
from tests.support.loops import submit
from tests.support.packets import Written, played
from tests.support.repos import Repo
from tests.support.tasks import Task, holdfast, trust, workspace

pytestmark = pytest.mark.usefixtures("home")

TOKEN = "ghp_" + "Q" * 36


def project() -> Repo:
    repo = Repo(os.path.join(workspace(), "project"))
    repo.commit("README.md")
    return repo


def holders(home: str) -> set[str]:
    """Files of the home that have a part of the token, by their path."""
    found: set[str] = set()
    for here, _, files in os.walk(home):
        for name in files:
            path = os.path.join(here, name)
            if stat.S_ISREG(os.lstat(path).st_mode):
                with open(path, "rb") as file:
                    if b"QQQQ" in file.read():
                        found.add(os.path.relpath(path, home))
    return found


#: What was handed in is theirs; what was printed is kept as it came, private to the user.
def is_raw(path: str) -> bool:
    return (
        path.endswith(("events.jsonl", "manifest.yaml", "stdout.log", "stderr.log", "prompt", "env.json"))
        or ("/inputs/" in path)
        or path.startswith("scripted-agent/")
    )  # sessions are the agent's own


@pytest.mark.req("CTX-4")
def test_a_secret_on_a_command_line_is_shown_nowhere(home: str) -> None:
    repo = project()
    script = f"echo {TOKEN}; echo work > new.txt"
    task = Task.shell(script, "--worktree", "--id", "it", "--name", "mend it", project=repo.path)
    task.wait_for("completed")
    for words in (("ls", "--json"), ("show", "it"), ("show", "it", "--json")):
        assert "QQQQ" not in holdfast(*words).stdout
    assert os.path.exists(Home(home).index)
    assert [path for path in sorted(holders(home)) if not is_raw(path)] == []
    assert holdfast("apply", "it").returncode == 0
    log = repo.git("log", "--format=%B", "main", "holdfast/it")
    assert "mend it" in log
    assert ("QQQQ" in log, "echo" in log) == (False, False)


@pytest.mark.req("CTX-4")
def test_a_secret_in_a_goal_is_shown_nowhere(home: str) -> None:
    repo = project()
    scenario = Scenario().write("new.txt", content="work\n").result("done")
    # It is where a title is cut.
    goal = f"mend the thing that is broken, by the word {TOKEN}, and well"
    task = Task.play(scenario, "--worktree", "--id", "it", prompt=goal, project=repo.path)
    task.wait_for("completed")
    assert "QQQQ" not in holdfast("ls", "--json").stdout
    assert [path for path in sorted(holders(home)) if not is_raw(path)] == []
    assert holdfast("apply", "it").returncode == 0
    log = repo.git("log", "--format=%B", "main", "holdfast/it")
    assert "mend the thing" in log
    assert "QQQ" not in log


@pytest.mark.req("CTX-4")
def test_a_secret_of_a_task_that_waits_for_its_turn_is_shown_nowhere(home: str) -> None:
    task = submit("--id", "it", "--", "sh", "-c", f"echo {TOKEN}")
    assert "QQQQ" not in holdfast("ls", "--json").stdout
    assert "QQQQ" not in holdfast("queue", "ls", "--json").stdout
    assert [path for path in sorted(holders(home)) if not is_raw(path)] == []
    task.stop()


# ── what is cut ──


@pytest.mark.req("CTX-4", "INT-1")
def test_a_question_is_redacted_before_it_is_cut(home: str) -> None:
    """Half a secret looks like none."""
    script = (
        "import os; path = os.environ['HOLDFAST_PACKET'] + '/state/interrupt-request.txt'; "
        f"open(path, 'w').write('x' * 4085 + ' {TOKEN} ' + 'y' * 9000)"
    )
    ask = os.path.join(workspace(), "ask.py")
    with open(ask, "w", encoding="utf-8") as file:
        file.write(script)
    task = Task.shell(f"python3 {ask}; {kin.WAIT}", "--base-interval", "0.2s")
    reason = task.wait_for("interrupted")["interrupt"]["reason"]
    assert reason.startswith("xxx")
    left = {path for path in holders(home) if not is_raw(path)}
    assert left <= {os.path.relpath(task.path("state", "interrupt-request.txt"), home)}
    assert "QQQ" not in task.read("events.jsonl").decode()
    task.stop()


@pytest.mark.req("CTX-4", "GAT-9")
def test_the_ends_of_a_log_are_redacted_before_they_are_cut(home: str) -> None:
    noise = "a line of some words that mean nothing at all to anybody\n"
    begin = noise * (8000 // len(noise)) + "z" * (8180 - len(noise) * (8000 // len(noise)) - 1)
    end = " " + "z" * 8170
    text = f"{begin} {TOKEN} \n{noise * 400}{TOKEN}{end}"
    scenario = Scenario().print(text, stream="stderr").crash(exit=1)
    packet = Written(
        {"scripted_review": played("review", before=scenario)},
        intent="review_only",
        group="review",
        budgets={"retry_budget": 0},
    )
    task = packet.run(end="failed")
    assert task.events("failure.triaged")[0]["excerpt"]
    assert [path for path in sorted(holders(home)) if not path.endswith(("stderr.log", ".json.new"))] == []


@pytest.mark.req("CTX-4", "GAT-11")
def test_what_the_checks_of_a_repository_print_is_kept_private_and_redacted(home: str) -> None:
    repo = project()
    word = "the-value-of-a-variable-7421"
    repo.write(".holdfast/config.toml", "post_work = ['echo $DEPLOY_WORD $MY_TOKEN']\n")
    repo.commit(".holdfast/config.toml")
    trust(repo.path)
    old = os.umask(0o022)
    try:
        flags = ("--env", "DEPLOY_WORD")
        task = Task.play(
            Scenario().say("done"), *flags, project=repo.path, env={"DEPLOY_WORD": word, "MY_TOKEN": TOKEN}
        )
    finally:
        os.umask(old)
    task.wait_for("completed")
    path = task.path("outputs", "scripted_run.artifact.md")
    text = task.read("outputs", "scripted_run.artifact.md").decode()
    assert (word in text, "QQQ" in text, "***" in text) == (False, False, True)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
