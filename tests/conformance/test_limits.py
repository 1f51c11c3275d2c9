"""External causes: silence, limits, logins, and a stop by a person."""

from __future__ import annotations

import itertools
import os
import signal
from datetime import UTC, datetime
from threading import Event

from holdfast.agents import registry
from holdfast.store import lock as locks
from holdfast.store.digest import sha256
from holdfast.store.layout import Home
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
        assert summary(task) == [("fresh", "hung"), ("briefing", "success")]
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
            "Codex obeys the header itself, in silence: what was said before it went silent tells holdfast "
            "that it is a limit, once the silence is past its threshold. Then the task waits."
        )
        _waits_and_wakes(rig, rate_limit(RESET_S), "--stale", "4s", "--grace", "2s")
    elif rig.agent == "opencode":
        rig.note(
            "OpenCode obeys the header itself, in silence: its log tells holdfast of the limit, and once the "
            "silence is past its threshold the task waits."
        )
        _waits_and_wakes(rig, rate_limit(RESET_S), "--stale", "4s", "--grace", "2s")
    else:
        _waits_and_wakes(rig, rate_limit(RESET_S))


def _waits_and_wakes(rig: Rig, limit: Turn, *flags: str) -> None:
    server, is_over = _limited(rig, limit)
    task = rig.start(server, ASKED, *flags)
    manifest = task.wait_for("waiting", within_s=2 * STEP_S)
    assert manifest["total_retries"] == 0
    left_s = (datetime.fromisoformat(manifest["wake_at"]) - datetime.now(UTC)).total_seconds()
    assert left_s > 30
    if left_s < RESET_S / 2:
        rig.note(
            "The CLI does not tell when the limit is lifted: "
            "holdfast waits one minute, then two, four, up to an hour."
        )
    is_over.set()
    assert task.ask("resume").returncode == 0
    task.wait_for("completed", within_s=STEP_S)
    if rig.agent == "gemini":
        rig.note(
            "Gemini CLI cannot resume a session whose first turn failed: "
            "a new one gets the recovery briefing."
        )
        assert summary(task)[1:] == [("briefing", "success")]
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


def test_budget(rig: Rig) -> None:
    """A model whose turns never end."""
    turns = itertools.count(1)

    def next_turn(_: object) -> Turn:
        # Never the same: Gemini ends by itself, with success, when it sees a loop.
        return shell(f"echo turn {(number := next(turns))}", text=f"Again, {number}.")

    server = rig.serve(next_turn)
    task = rig.start(server, ASKED, "--max-turns", "3")
    manifest = task.wait_for("interrupted", within_s=STEP_S)
    assert "turns" in manifest["interrupt"]["reason"]
    asked = len(server.conversations())
    if "turns" in registry.adapter(rig.agent).capabilities.own_limits:
        rig.note("Claude Code has a limit of its own, which holdfast hands to it: it ends by itself.")
        assert attempts(task)[-1]["outcome"] == "max_turns"
    else:
        assert task.events("stop.intended")[-1]["intent"] == "budget"
        if rig.agent == "opencode":
            rig.note(
                "OpenCode tells of a call when it is over, "
                "so it may be some turns further when it is stopped."
            )
    assert len(attempts(task)) == 1
    assert not rig.left_of(task)
    assert len(server.conversations()) == asked, "no further requests to the model"
    assert task.ask("stop").returncode == 0
    task.wait_for("killed", within_s=STEP_S)


def test_second_writer(rig: Rig) -> None:
    """Another process (the test, which holds the lock) uses the session that is to be resumed."""
    server = rig.serve([shell(HOLD, text="About to hold."), text("All done.")])
    task = rig.start(server, ASKED)
    rig.wait_for_tool(task, "began", ASKED)
    if rig.agent == "opencode":
        task.wait_for_event("agent.session", within_s=STEP_S)
    session_id, agent = task.manifest()["session_id"], task.agent_pid()
    home = Home(os.environ["HOLDFAST_HOME"])
    os.makedirs(home.sessions, mode=0o700, exist_ok=True)
    path = os.path.join(home.sessions, f"{sha256(f'{rig.agent} {session_id}'.encode())[:32]}.lock")
    if registry.adapter(rig.agent).capabilities.chooses_session_id:
        assert locks.is_held(path), "a live attempt holds it"
    task.kill_runner()
    os.kill(agent, signal.SIGKILL)
    rig.touch("go")  # the recorder holds the lock until the tool has exited as well
    lock = locks.acquire(path, role="conformance", within_s=STEP_S)
    try:
        task.start_runner()
        reason = task.wait_for("interrupted", within_s=STEP_S)["interrupt"]["reason"]
        assert session_id in reason
        assert len(attempts(task)) == 1, "no second process was started"
        assert len(server.conversations()) == 1
    finally:
        lock.release()
    assert task.ask("resume").returncode == 0
    task.wait_for("completed", within_s=STEP_S)
    assert summary(task) == [("fresh", "killed"), ("resume", "success")]
