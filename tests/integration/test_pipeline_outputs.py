"""What a stage leaves in outputs/: a report under its own name, what failed under another, and the raw log
beside both."""

from __future__ import annotations

import os

import pytest

from holdfast.testing import Scenario
from tests.support.packets import REPORTS, Written, calls

pytestmark = pytest.mark.usefixtures("home")


@pytest.mark.req("OUT-8")
def test_a_failed_report_is_kept_as_such_and_the_next_one_is_the_result() -> None:
    # The session continues after the step at which it died.
    scenario = Scenario().say("a half report").crash("KILL", once=True).say(REPORTS["review"]).result("ok")
    packet = Written({"scripted_review": scenario}, intent="review_only", group="review")
    task = packet.run()
    names = sorted(os.listdir(task.path("outputs")))
    assert "scripted_review.scripted.out" in names
    assert "scripted_review.scripted.failed" in names
    assert not [name for name in names if ".partial" in name or name.endswith(".tmp")], "no half-written file"
    assert "a half report" in task.read("outputs", "scripted_review.scripted.failed").decode()
    report = task.read("outputs", "scripted_review.scripted.out").decode()
    assert report.strip() == REPORTS["review"].strip(), "its last text, and nothing else"
    # The raw streams, one for each process.
    first, second = (f"{call['attempt']:03d}-scripted_review" for call in calls(task, "scripted_review"))
    assert b"a half report" in task.read("attempts", first, "stdout.log")
    assert b'"type"' in task.read("attempts", second, "stdout.log")


@pytest.mark.req("OUT-8")
def test_a_stage_that_never_succeeds_leaves_no_report() -> None:
    scenario = Scenario(on_resume="restart").say("a half report").crash("KILL")
    packet = Written(
        {"scripted_review": scenario}, intent="review_only", group="review", budgets={"retry_budget": 0}
    )
    task = packet.start()
    task.wait_for("failed", "abandoned", within_s=40)
    assert not os.path.exists(task.path("outputs", "scripted_review.scripted.out"))
    assert "a half report" in task.read("outputs", "scripted_review.scripted.failed").decode()
