"""The last output distinguishes a question from a hang: a question is for a person, a hang is retried."""

from __future__ import annotations

import pytest

from tests.support.tasks import Task, workspace

#: Silence counts after 0.3 s, and is a hang after 0.3 s more.
QUICK = {"MONITOR_BASE_INTERVAL": "0.1", "MONITOR_GRACE_PERIOD": "0.3"}


@pytest.fixture(autouse=True)
def in_a_home(home: str) -> None:
    workspace()


def shown(text: str) -> Task:
    """A command that shows something and falls silent; when it is run again it succeeds."""
    return Task.shell(f"test $HOLDFAST_RESUME_COUNT = 0 || exit 0; printf '{text}'; exec sleep 60", env=QUICK)


def looks(task: Task) -> list[tuple[str, str]]:
    return [
        (event["verdict"], event["evidence"].get("pane_state", "")) for event in task.events("watch.verdict")
    ]


@pytest.mark.req("SUP-11")
def test_who_waits_for_input_is_interrupted_after_two_looks_and_not_resumed_as_hung() -> None:
    task = shown("a.txt exists.\\nOverwrite? [y/N] ")
    manifest = task.wait_for("interrupted")
    assert manifest["interrupt"]["reason"] == "it waits for input: Overwrite? [y/N]"
    assert looks(task)[-2:] == [("quiet", "waiting_for_input"), ("hung", "waiting_for_input")]
    assert [event["intent"] for event in task.events("stop.intended")] == ["input"]
    assert (manifest["attempt"], manifest["total_retries"]) == (1, 0)
    assert "hung" not in task.moves()
    assert task.ask("resume").returncode == 0
    task.wait_for("completed")


@pytest.mark.req("SUP-11")
@pytest.mark.parametrize(
    ("text", "pane_state"),
    [
        ('Traceback (most recent call last):\\n  File "x.py", line 1\\nKeyError: 1\\n', "crash_text"),
        ("A new version of agent is available! Run npm install -g agent\\n", "upgrade_nag"),
        ("working on it\\n", "unknown"),
    ],
)
def test_what_asks_nothing_is_hung_and_tried_again(text: str, pane_state: str) -> None:
    task = shown(text)
    task.wait_for("completed")
    assert ("hung", pane_state) in looks(task)
    assert [event["intent"] for event in task.events("stop.intended")] == ["hang"]
    assert task.moves()[:4] == ["running", "hung", "spawning", "running"]
