"""pipeline show --estimate, and the figures of stages in show."""

from __future__ import annotations

import json
import os

import pytest

from holdfast.testing import Scenario
from tests.support.packets import Written, played
from tests.support.repos import Repo
from tests.support.tasks import holdfast, workspace

pytestmark = pytest.mark.usefixtures("home")


def packet(task_id: str, *, tokens: int = 0, cost: float = 0.0, project: Repo | None = None) -> Written:
    reports = {"scripted_impl": None, "scripted_review": None}
    scenarios: dict[str, Scenario | str | None] = dict(reports)
    if tokens:
        before = (
            Scenario()
            .usage(input_tokens=tokens, output_tokens=0, cost_usd=cost)
            .write("b.txt", content="x\n")
        )
        scenarios["scripted_impl"] = played("impl", before=before)
    return Written(scenarios, task_id=task_id, project=project)


@pytest.mark.req("TEA-4")
def test_without_history_it_says_so() -> None:
    written = packet("one")
    done = holdfast("pipeline", "show", written.path, "--estimate")
    assert done.returncode == 0, done.stderr
    assert "no history: no task of this home has done one of these stages" in done.stdout
    assert json.loads(holdfast("pipeline", "show", written.path, "--estimate", "--json").stdout)[
        "estimate"
    ] == {
        "stages": [
            {"stage": name, "tasks": 0, "is_other_model": False, "spread": {}}
            for name in ("scripted_impl", "scripted_review")
        ],
        "total": {},
        "unknown": ["scripted_impl", "scripted_review"],
        "tasks": 0,
    }


@pytest.mark.req("TEA-4", "TEA-5")
def test_what_earlier_tasks_took() -> None:
    written = packet("one", tokens=1000, cost=0.5)
    task = written.run()
    project = written.project
    os.remove(os.path.join(project.path, "b.txt"))
    packet("two", tokens=3000, cost=1.5, project=project).run()
    data = json.loads(holdfast("pipeline", "show", written.path, "--estimate", "--json").stdout)["estimate"]
    assert (data["tasks"], data["unknown"]) == (2, [])
    assert data["total"]["tokens"]["p50"] == 2000
    assert data["total"]["cost_usd"] == {"p10": 0.6, "p50": 1.0, "p90": 1.4}
    assert data["total"]["calls"]["p50"] == 2
    text = holdfast("pipeline", "show", written.path, "--estimate").stdout
    assert "based on 2 tasks of this home" in " ".join(text.split())
    assert "$1.00 ($0.60–$1.40)" in text
    shown = holdfast("show", task.id).stdout
    lines = [line for line in shown.splitlines() if " call  " in line]
    assert [line[10:25] for line in lines] == ["scripted_impl  ", "scripted_review"], shown
    assert all("  done  " in line for line in lines)
    assert lines[0].endswith("1 call  1.0k tokens  $0.50")
    assert "  1 call  - tokens" in lines[1], shown


@pytest.mark.req("TEA-5")
def test_a_stage_that_has_not_begun_took_nothing() -> None:
    task = Written({"scripted_impl": Scenario().hang(), "scripted_review": None}, task_id="waits").start()
    task.wait_for("running")
    shown = holdfast("show", task.id).stdout
    assert "scripted_impl    active" in shown
    assert "1 call" in shown
    assert any(line.rstrip().endswith("scripted_review  pending") for line in shown.splitlines())
    task.stop()


@pytest.mark.req("TEA-4")
def test_an_estimate_is_of_a_packet() -> None:
    done = holdfast("pipeline", "list", "--estimate", cwd=workspace())
    assert done.returncode == 2
    assert "--estimate needs 'pipeline show'" in done.stderr
