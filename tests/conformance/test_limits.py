"""What is no fault of the task: silence, limits, logins, and a person who says stop."""

from __future__ import annotations

from datetime import UTC, datetime
from threading import Event

from holdfast.agents import registry
from holdfast.testing.models import (
    ModelRequest,
    ModelServer,
    Turn,
    rate_limit,
    shell,
    stall,
    text,
    unauthorized,
    usage_limit,
    user_texts,
)
from tests.conformance.rig import PI_FORGETS, STEP_S, Rig, attempts, summary
from tests.conformance.test_deaths import ASKED, HOLD

RESET_S = 3600.0


def test_stall(rig: Rig) -> None:
    server = rig.serve([stall(2, text="one two three four five six seven eight"), text("All done.")])
    task = rig.start(server, ASKED, "--stale", "4s", "--grace", "2s")
    task.wait_for("completed", within_s=2 * STEP_S)
    assert "hung" in [event["verdict"] for event in task.events("watch.verdict")]
    assert task.events("stop.intended")[0]["intent"] == "hang"
    if rig.agent == "pi":
        rig.cannot(PI_FORGETS)
        assert summary(task) == [("fresh", "hung"), ("resume", "unknown_session"), ("briefing", "success")]
    else:
        assert summary(task) == [("fresh", "hung"), ("resume", "success")]
    assert any(ASKED in one for one in user_texts(server.conversations()[-1]))


def test_rate_limit(rig: Rig) -> None:
    """The allowance of the plan is used up until a known time."""
    _waits_and_wakes(rig, usage_limit(RESET_S))


def test_retry_after(rig: Rig) -> None:
    """The header that says how long to wait."""
    if rig.agent == "codex":
        rig.note(
            "Codex obeys the header itself, in silence: what was said before it went silent tells holdfast that it is a limit, "
            "once the silence is past its threshold. Then the task waits."
        )
        _waits_and_wakes(rig, rate_limit(RESET_S), "--stale", "4s", "--grace", "2s")
    elif rig.agent == "opencode":
        rig.cannot(
            "OpenCode obeys the header itself and prints nothing at all: the task stays `running`, and silence past its "
            "threshold is a hang, stopped and begun again, which burns a retry each time."
        )
        _hangs_and_goes_on(rig, rate_limit(RESET_S))
    else:
        _waits_and_wakes(rig, rate_limit(RESET_S))


def _hangs_and_goes_on(rig: Rig, limit: Turn) -> None:
    server, is_over = _limited(rig, limit)
    task = rig.start(server, ASKED, "--stale", "4s", "--grace", "2s")
    task.wait_for_event("stop.intended", within_s=STEP_S)
    is_over.set()
    task.wait_for("completed", within_s=STEP_S)
    assert summary(task)[0] == ("fresh", "hung")
    assert summary(task)[-1][1] == "success"
    assert any(ASKED in one for one in user_texts(server.conversations()[-1]))


def _waits_and_wakes(rig: Rig, limit: Turn, *flags: str) -> None:
    server, is_over = _limited(rig, limit)
    task = rig.start(server, ASKED, *flags)
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
    if rig.agent == "gemini":
        rig.note(
            "Gemini CLI cannot resume a session whose first turn failed: a new one gets the recovery briefing."
        )
        assert summary(task)[1:] == [("resume", "unknown_session"), ("briefing", "success")]
    else:
        assert summary(task)[1:] == [("resume", "success")]
    assert summary(task)[0][1] in ("rate_limit", "quota")
    assert any(ASKED in one for one in user_texts(server.conversations()[-1]))


def _limited(rig: Rig, limit: Turn) -> tuple[ModelServer, Event]:
    """A server that refuses until the event is set, however often the CLI asks."""
    is_over = Event()

    def answer(_: ModelRequest) -> Turn:
        return text("All done.") if is_over.is_set() else limit

    return rig.serve(answer), is_over


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
