"""A model that never answers: its agent prints a retry from time to time, which is no progress."""

from __future__ import annotations

import json

import pytest

from holdfast.testing import Scenario
from tests.support.tasks import Task, holdfast
from tests.support.waiting import eventually

#: Silence counts after 3 s, so that each retry comes in time; retries have 1.5 s and a grace period of 0.3 s.
QUICK = {
    "MONITOR_BASE_INTERVAL": "0.1",
    "MONITOR_GRACE_PERIOD": "0.3",
    "STALL_THRESHOLD": "3",
    "MONITOR_RETRY_CEILING": "1.5",
}


def retrying(scenario: Scenario, count: int = 100) -> Scenario:
    for number in range(1, count + 1):
        scenario = scenario.announce_retry(
            0, wait_s=0.2, attempt=number, error_status=0, error="no answer", once=True
        )
    return scenario


@pytest.mark.req("SUP-2", "SUP-3")
def test_a_model_that_never_answers_is_shown_and_then_a_hang(home: str) -> None:
    # Time enough for three commands on a busy machine.
    env = {**QUICK, "MONITOR_RETRY_CEILING": "6"}
    task = Task.play(retrying(Scenario().say("asking")).say("back again"), env=env)
    shown = "for the model, which has not answered since "
    wide = {"COLUMNS": "200"}

    eventually(lambda: shown in holdfast("show", task.id, env=wide).stdout, what="it is shown")
    assert shown in holdfast("ls", env=wide).stdout
    row = json.loads(holdfast("ls", "--json").stdout.splitlines()[0])
    assert "the model, which has not answered since " in json.dumps(row)
    task.wait_for("completed", within_s=30)

    verdicts = [(event["verdict"], event["because"]) for event in task.events("watch.verdict")]
    assert [kind for kind, _ in verdicts] == ["excused", "quiet", "hung"]
    assert all("the model has not answered since" in because for _, because in verdicts)
    (intended,) = task.events("stop.intended")
    assert (intended["intent"], "the model has not answered since" in intended["reason"]) == ("hang", True)
    assert [event["outcome"] for event in task.events("attempt.ended")] == ["hung", "success"]
    assert shown not in holdfast("show", task.id, env=wide).stdout


def test_a_model_that_answers_between_its_retries_is_not_late(home: str) -> None:
    """All retries together take longer than the ceiling; those before an answer do not, even if the machine
    is busy and each step takes a while."""
    scenario = Scenario()
    for number in range(8):
        scenario = retrying(scenario, 3).say(f"answer {number}")
    task = Task.play(scenario, env={**QUICK, "STALL_THRESHOLD": "6", "MONITOR_RETRY_CEILING": "4"})
    task.wait_for("completed", within_s=30)
    assert not [event for event in task.events("watch.verdict") if event["verdict"] in ("quiet", "hung")]
    assert task.manifest()["attempt"] == 1
