"""What is no fault of the task: silence, limits, logins, and a person who says stop."""

from __future__ import annotations

from datetime import UTC, datetime
from threading import Event

from holdfast.agents import registry
from holdfast.testing.models import rate_limit, shell, stall, text, unauthorized, usage_limit, user_texts
from tests.conformance.rig import STEP_S, Rig, attempts
from tests.conformance.test_deaths import ASKED, HOLD

RESET_S = 3600.0


def test_stall(rig: Rig) -> None:
    server = rig.serve([stall(2, text="one two three four five six seven eight"), text("All done.")])
    task = rig.start(server, ASKED, "--stale", "4s", "--grace", "2s")
    task.wait_for("completed", within_s=2 * STEP_S)
    outcomes = [one["outcome"] for one in attempts(task)]
    assert outcomes[0] == "hung"
    assert outcomes[-1] == "success"
    assert "hung" in [event["verdict"] for event in task.events("watch.verdict")]
    assert task.events("stop.intended")[0]["intent"] == "hang"
    modes = [one["mode"] for one in attempts(task)]
    if rig.agent == "pi" and modes[-1] == "briefing":
        rig.note(
            "Pi keeps no session before its first answer is complete: `unknown session`, and a new one gets the recovery briefing."
        )
    else:
        assert modes == ["fresh", "resume"]
    assert any(ASKED in one for one in user_texts(server.conversations()[-1]))


def test_rate_limit(rig: Rig) -> None:
    limit = rate_limit(RESET_S) if rig.agent == "copilot" else usage_limit(RESET_S)
    is_over = Event()
    # For as long as it lasts, however often the CLI asks.
    server = rig.serve(lambda request: text("All done.") if is_over.is_set() else limit)
    task = rig.start(server, ASKED)
    manifest = task.wait_for("waiting", within_s=2 * STEP_S)
    assert manifest["total_retries"] == 0
    left_s = (datetime.fromisoformat(manifest["wake_at"]) - datetime.now(UTC)).total_seconds()
    assert left_s > 30
    if left_s < RESET_S / 2:
        rig.note(
            "The CLI does not tell when the limit is lifted: holdfast waits one minute, then two, four, up to an hour."
        )
    is_over.set()
    assert task.ask("resume").returncode == 0
    task.wait_for("completed", within_s=STEP_S)
    assert any(ASKED in one for one in user_texts(server.conversations()[-1]))


def test_unauthorized(rig: Rig) -> None:
    server = rig.serve([unauthorized().forever()])
    task = rig.start(server, ASKED)
    manifest = task.wait_for("interrupted", within_s=2 * STEP_S)
    assert registry.adapter(rig.agent).capabilities.login in manifest["interrupt"]["reason"]
    assert attempts(task)[-1]["outcome"] == "auth"
    assert task.ask("stop").returncode == 0
    task.wait_for("killed", within_s=STEP_S)


def test_stop(rig: Rig) -> None:
    server = rig.serve([shell(HOLD, text="About to hold."), text("All done.")])
    task = rig.start(server, ASKED)
    rig.wait_for_file("began")
    assert rig.left_of(task), "the agent and its tool run"
    assert task.ask("stop").returncode == 0
    task.wait_for("killed", within_s=STEP_S)
    assert not rig.left_of(task)
    assert len(server.conversations()) == 1
