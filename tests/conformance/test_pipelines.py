"""Packets with the shipped profiles, run by the programs that they name; and one program that takes over from
another."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from holdfast.testing.models import (
    last_user_text,
    shell,
    text,
    tool_results,
    usage_limit,
    user_texts,
    write,
)
from tests.conformance.rig import STEP_S, attempts
from tests.conformance.test_deaths import BRIEFING
from tests.support.manifests import STAGES
from tests.support.packets import PACK, REPORTS, WORK, Written, brief, calls, gate, role_of, summary

if TYPE_CHECKING:
    from tests.conformance.crew import Crew
    from tests.support.tasks import Task

#: A packet with all its stages.
WHOLE_S = 200.0
BUDGETS = {"max_wallclock_sec": 180, "retry_budget": 1}
REVIEW = REPORTS["review"]
PATCH = """```diff
--- /dev/null
+++ b/tests/test_b.sh
@@ -0,0 +1 @@
+grep -q hello b.txt
```
"""


def run(crew: Crew, packet: Written, stages: list[str]) -> Task:
    """Run a packet to its end. Each stage was called once and left all its files."""
    task = packet.start(*crew.flags, "--base-interval", "1s", env=crew.env)
    task.wait_for("completed", within_s=WHOLE_S)
    assert [(call["stage"], call["mode"]) for call in calls(task)] == [(stage, "fresh") for stage in stages]
    assert [error for server in crew.servers.values() for error in server.errors] == []
    for stage in stages:
        _check(crew, task, stage)
    stats = task.json("state", "stats.json")
    assert (stats["paid_calls"], stats["completed_stages"]) == (len(stages), stages)
    summary(task)
    return task


def _check(crew: Crew, task: Task, stage: str) -> None:
    """The model was sent the composed prompt, and what it answered is the stage's report, which passed."""
    agent, _, role = stage.partition("_")
    prompt = task.read("inputs", "prompt", f"{agent}.{role}.md").decode()
    assert any(prompt.strip() in said for said in user_texts(crew.asked(stage)[0])), (
        "the whole prompt, in one piece"
    )
    meta = json.loads(task.read("outputs", f"{stage}.{agent}.meta.json"))
    assert (meta["exit_code"], meta["outcome"], meta["role"]) == (0, "success", role)
    verdict = gate(task, stage)
    assert verdict["passed"], verdict
    assert task.json("done", f"{stage}.done")["attempt"] == verdict["attempt"] == meta["attempt"]


def report_of(task: Task, stage: str) -> str:
    return task.read("outputs", f"{stage}.{stage.partition('_')[0]}.out").decode()


def test_safe_impl(crew: Crew) -> None:
    stages = STAGES["safe_impl"]
    told = brief(f"grep -q hello {WORK}", pack=PACK.replace("said by the brief", "PACK OF THE BRIEF"))
    crew.serve_stages(
        {
            "gemini_brief": [text(told)],
            "codex_impl": [
                write(os.path.join(crew.project.path, WORK), "hello\n", text="Writing."),
                text(REPORTS["impl"]),
            ],
            "codex_verify": [shell(f"cat {WORK}"), text(REPORTS["verify"])],
            "gemini_review": [text(REVIEW)],
        }
    )
    packet = Written(project=crew.project, request="Please write b.txt, word 4711.\n", budgets=BUDGETS)
    task = run(crew, packet, stages)
    assert crew.project.read(WORK) == "hello\n"
    assert report_of(task, "gemini_brief").strip() == told.strip()
    # The tools were the program's own, and their results went back to the model.
    for stage in ("codex_impl", "codex_verify"):
        assert len(tool_results(crew.asked(stage)[-1])) == 1
    assert "hello" in tool_results(crew.asked("codex_verify")[-1])[0].text
    # What the brief said reached the others, and its command decided.
    for stage in stages[1:]:
        assert "PACK OF THE BRIEF" in last_user_text(crew.asked(stage)[0])
    assert f"$ grep -q hello {WORK}" in task.read("outputs", "codex_verify.artifact.md").decode()
    for stage in stages:
        assert "word 4711" in last_user_text(crew.asked(stage)[0])
    assert REPORTS["impl"].strip() in last_user_text(crew.asked("gemini_review")[0])


def test_review_cross(crew: Crew) -> None:
    stages = STAGES["review_cross"]
    wide = REVIEW.replace("nothing to say", "the wide view: café, 漢字", 1)
    close = REVIEW.replace("nothing to say", "the close view: $(true) `x`", 1)
    both = REVIEW.replace("nothing to say", "both views", 1)
    crew.serve_stages(
        {
            "gemini_review": [text(wide)],
            "codex_review": [text(close)],
            "copilot_review_consolidate": [text(both)],
        }
    )
    task = run(
        crew,
        Written(
            intent="review_cross",
            project=crew.project,
            scope={"allow": ["."]},
            budgets=BUDGETS,
            acceptance={"commands": ["test -e README.md"]},
        ),
        stages,
    )
    (request,) = crew.asked("copilot_review_consolidate")
    for stage, review in (("gemini_review", wide), ("codex_review", close)):
        assert review.strip() in last_user_text(request), "the review is attached whole"
        assert f"attachment {stage}.{stage.partition('_')[0]}.out" in last_user_text(request)
        assert report_of(task, stage).strip() == review.strip()
    # The reviewers did not see each other's work.
    assert "the wide view" not in "".join(user_texts(crew.asked("codex_review")[0]))
    assert "both views" in report_of(task, "copilot_review_consolidate")


def test_post_impl_review(crew: Crew) -> None:
    stages = STAGES["post_impl_review"]
    turns = {stage: [text(REPORTS[role_of(stage)])] for stage in stages}
    turns["codex_test_impl"] = [text(REPORTS["test_impl"].replace("No changes required.\n", PATCH))]
    turns["codex_verify"].insert(0, shell(f"cat {WORK}"))
    crew.serve_stages(turns)
    crew.project.write(WORK, "hello\n")
    crew.project.commit(message="what is reviewed")
    packet = Written(
        intent="post_impl_review",
        project=crew.project,
        budgets=BUDGETS,
        scope={"allow": ["."]},
        acceptance={"commands": [f"grep -q hello {WORK}"]},
    )
    packet.put("inputs/context_pack.md", PACK.replace("said by the brief", "PACK OF THE PERSON"))
    packet.put("inputs/attachments/impl_report.md", "REPORT OF THE IMPLEMENTER\n")
    task = run(crew, packet, stages)
    for stage in stages:
        told = last_user_text(crew.asked(stage)[0])
        assert "PACK OF THE PERSON" in told
        assert "REPORT OF THE IMPLEMENTER" in told
    assert "test_b.sh" in report_of(task, "codex_test_impl")
    assert f"$ grep -q hello {WORK}" in task.read("outputs", "codex_verify.artifact.md").decode()
    assert crew.project.git("status", "--porcelain") == "", "nothing was changed"


def test_failover(crew: Crew) -> None:
    half = os.path.join(crew.project.path, "half.txt")
    crew.serve(
        "claude",
        [write(half, "one half\n", text="I begin with half.txt."), usage_limit(3600).forever()],
    )
    codex = crew.serve("codex", [shell("cat half.txt", text="I look first."), text("All done.")])
    asked = "Please write both halves, word 5150."
    task = crew.start("claude", asked, "--failover", "codex")
    task.wait_for("completed", within_s=2 * STEP_S)
    (switched,) = task.events("agent.switched")
    assert (switched["old"], switched["new"]) == ("claude", "codex")
    assert task.manifest()["total_retries"] == 0
    (first, second) = attempts(task)
    assert (first["agent"], first["outcome"]) in [("claude", "rate_limit"), ("claude", "quota")]
    assert (second["agent"], second["mode"], second["outcome"]) == ("codex", "briefing", "success")
    opening, last = codex.conversations()
    told = last_user_text(opening)
    for words in (BRIEFING, asked, "I begin with half.txt.", "half.txt"):
        assert words in told
    assert "one half" in tool_results(last)[0].text, "it continues where the other stopped"
