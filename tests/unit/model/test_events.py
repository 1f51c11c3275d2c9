"""The event union: every type goes to a line and back."""

from __future__ import annotations

import json

import pytest

from holdfast.ids import is_ulid
from holdfast.model import events as ev
from holdfast.store.journal import encode_line

AT = "2026-01-31T12:00:00.000Z"
BOOT = {"boot_id": "b", "start_time": 9}
WHERE = {"attempt": 2, "offset": 17}

#: One of every type, with every field set.
TABLE: list[ev.Event] = [
    ev.TaskCreated(task_id="t", status="spawning", spec={"a": [1, {"b": None}]}, manifest_sha256="00"),
    ev.TaskMoved(
        old="running", new="waiting", reason="r", wake_at=AT, interrupt="i", request="R", answer="a",
        approval="s", marked=True, iteration=7,
    ),
    ev.RunOpened(run=2, request="R", from_stage="s", deadline_s=1.5, sets_deadline=True, answer="a"),
    ev.WorkApplied(how="merge", branch="main", commit="c0", files=2, applied_at=AT, by="ada", request="r"),
    ev.TakeoverStarted(
        attempt=4, attempt_id="a", stage="s", agent="claude", session_id="i", by="ada", request="R"
    ),
    ev.TakeoverEnded(
        attempt=4, how="kept", exit_code=1, exit_signal="KILL", files=2, diff="+a", killed=({"pid": 1},),
        by="ada", request="R",
    ),
    ev.StageDone(stage="s", attempt=3),
    ev.HandoffMade(stage="s", script="make test\n"),
    ev.WorkspacePrepared(
        stage="s", path="/w", kind="worktree", tree="t", base_tree="b", commit="c", branch="h", dirty=("a b",)
    ),
    ev.GateJudged(stage="s", attempt=3, passed=False, failed="scope", reasons=("r",)),
    ev.CandidateEliminated(stage="s-2", candidate=2, attempt=3, reasons=("r",)),
    ev.CandidateChosen(stage="j", chosen="s-1", candidate=1, by="judge", tree="t"),
    ev.RepairPlanned(stage="s", after=2, failed_stage="t", number=1, reasons=("r",), evidence="$ make"),
    ev.PreWorkChecked(stage="s", passed=False, reasons=("r",)),
    ev.FailureTriaged(
        stage="s", attempt=3, role="impl", agent="a", outcome="failed", detail="d", exit_code=1,
        gate_failed="scope", gate_reasons=("r",), failure_class="tooling", signature="0", excerpt="e",
    ),
    ev.ChoreFailed(stage="s", attempt=3, kind="gate", reason="r", counts=False),
    ev.CiLooked(
        stage="s", attempt=3, state="failed", pull_request="https://forge.example/1", commit="c",
        pending=("test",), reasons=("r",), evidence="e",
    ),
    ev.ApprovalGiven(stage="s", by="me", request="R"),
    ev.AgentSwitched(stage="s", old="a", new="b", reason="r"),
    ev.JournalRepaired(dropped_bytes=3, fragment='{"i'),
    ev.JournalForged(reason="12 bytes that no runner wrote; kept in events.jsonl.forged-1", dropped_bytes=12),
    ev.RunnerStarted(pid=1, version="0", **BOOT),
    ev.RunnerLeft(pid=1, reason="completed"),
    ev.RequestApplied(request="R", verb="stop", by="me"),
    ev.RequestRefused(request="R", verb="stop", by="me", reason="no"),
    ev.AttemptOpened(
        attempt=1, attempt_id="ses_0", stage="s", agent="a", mode="resume", session_id="S", resume_count=4,
        kind="gate", head="c" * 40,
    ),
    ev.AttemptStarted(attempt=1, pid=5, mono_s=0.25, started_at=AT, **BOOT),
    ev.AttemptVoid(attempt=1, reason="r"),
    ev.AttemptEnded(
        attempt=1, outcome="crashed", detail="d", exit_code=137, exit_signal=9, exec_errno=2, by="runner",
        lived_s=1.5, noticed_at=AT, was_healthy=True, resets_at=AT, resumable=False,
    ),
    ev.AttemptSwept(attempt=1, killed=[{"pid": 3, "command": "x"}], spared=[], proof="none left"),
    ev.StopIntended(attempt=1, intent="hang", reason="r", request="R"),
    ev.RetryPlanned(stage="s", consecutive=1, total=2, delay_s=3.0, burned=False, fresh_session=True),
    ev.LeftoversFound(attempt=1, processes=[{"pid": 3, "command": "x"}], policy="report"),
    ev.WatchVerdict(attempt=1, verdict="quiet", because="b", evidence={"silent_s": 3.5}),
    ev.AgentSession(session_id="S", model="m", **WHERE),
    ev.AgentText(text="héllo\nthere \ud83d", **WHERE),
    ev.AgentToolStarted(tool_id="i", name="Bash", summary="ls", **WHERE),
    ev.AgentToolFinished(tool_id="i", is_error=True, denied=True, **WHERE),
    ev.AgentUsage(input_tokens=1, output_tokens=2, cost_usd=0.5, cumulative=True, **WHERE),
    ev.AgentRetry(delay_s=2.5, reason="r", **WHERE),
    ev.AgentRateLimit(resets_at=AT, reason="r", **WHERE),
    ev.AgentProgress(steps_completed=2, steps_total=5, current_step="writing tests", **WHERE),
    ev.AgentError(kind="network", message="m", **WHERE),
    ev.AgentResult(is_error=True, subtype="s", text="t", turns=3, is_new=True, **WHERE),
]  # fmt: skip


def test_the_table_has_every_type_once() -> None:
    assert sorted(event.type for event in TABLE) == sorted(ev.EVENTS)


@pytest.mark.parametrize("event", TABLE, ids=lambda event: event.type)
def test_an_event_survives_its_line(event: ev.Event) -> None:
    line = ev.encode(event, AT)
    assert list(line)[:3] == ["id", "at", "type"]
    assert is_ulid(line["id"])
    assert ev.decode(json.loads(json.dumps(line))) == event


@pytest.mark.parametrize("event", TABLE, ids=lambda event: event.type)
def test_a_line_is_one_line_of_valid_utf8(event: ev.Event) -> None:
    raw = encode_line(event, AT)
    assert raw.endswith(b"\n")
    assert raw.count(b"\n") == 1
    assert json.loads(raw.decode("utf-8"))["type"] == event.type


@pytest.mark.parametrize("event", TABLE, ids=lambda event: event.type)
def test_no_field_is_called_as_the_fields_of_every_line(event: ev.Event) -> None:
    assert not {"id", "at", "type"} & set(event.fields)


@pytest.mark.parametrize("name", sorted(name for name, cls in ev.EVENTS.items() if cls.must_have))
def test_a_known_type_without_a_required_field_is_an_error(name: str) -> None:
    with pytest.raises(ValueError, match=ev.EVENTS[name].__name__):
        ev.decode({"id": "I", "at": AT, "type": name})


@pytest.mark.parametrize("line", [{"type": "task.painted", "colour": "red"}, {"type": ""}, {}])
def test_an_unknown_type_decodes_to_unknown_with_its_data(line: dict[str, str]) -> None:
    event = ev.decode(line)
    assert isinstance(event, ev.Unknown)
    assert event.data == line


def test_fields_of_a_later_version_are_passed_over() -> None:
    line = {**ev.encode(TABLE[3], AT), "colour": "red"}
    assert ev.decode(line) == TABLE[3]


@pytest.mark.parametrize(
    "event",
    [
        ev.AgentText(text="a"),
        ev.AgentSession(session_id="s", model=None),
        ev.AgentUsage(input_tokens=1, output_tokens=None, cost_usd=0),
        ev.AgentUsage(cost_usd=0.25),
        ev.AgentRetry(delay_s=None),
        ev.AgentRetry(delay_s=1e12),
        ev.AgentToolFinished(tool_id="t", is_error=True),
        ev.AgentResult(is_error=False, turns=3),
    ],
)
def test_an_event_whose_fields_are_of_their_kind_is_sound(event: ev.AgentEvent) -> None:
    assert event.is_sound()
    assert event.place(1, 2).is_sound()


@pytest.mark.parametrize(
    "event",
    [
        ev.AgentText(text=["a"]),
        ev.AgentText(text=None),
        ev.AgentSession(session_id=5),
        ev.AgentSession(session_id="s", model=5),
        ev.AgentUsage(input_tokens="x"),
        ev.AgentUsage(input_tokens=1.5),
        ev.AgentUsage(cost_usd=10**400),
        ev.AgentRetry(delay_s=float("nan")),
        ev.AgentRetry(delay_s=float("inf")),
        ev.AgentRetry(delay_s=1e300),
        ev.AgentToolStarted(tool_id=["t"], name="Bash"),
        ev.AgentToolFinished(tool_id="t", is_error="yes"),
        ev.AgentRateLimit(resets_at=5),
        ev.AgentError(kind="x", message={}),
    ],
)
def test_an_event_with_a_field_of_another_kind_is_not(event: ev.AgentEvent) -> None:
    assert not event.is_sound()
