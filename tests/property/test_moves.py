"""The transition table, walked at random: legal moves only, and a replay that gives the same task."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from holdfast import clock
from holdfast.errors import InvalidMove
from holdfast.model import events as ev
from holdfast.model import manifest
from holdfast.model.fold import apply
from holdfast.model.manifest import Observed
from holdfast.model.spec import Limits, StageSpec, TaskSpec
from holdfast.model.status import ENDS, MOVES, Status, check_move
from holdfast.model.task import Task

_SPEC = TaskSpec(
    task_id="task", task_name="task", goal="", agent="command", command=["true"], project_dir="/",
    stages=(StageSpec(name="command_run", agent="command"),), limits=Limits(),
)  # fmt: skip


class MovesMachine(RuleBasedStateMachine):
    """The model is the status alone; the machine also feeds events that must not change it."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[tuple[str, ev.Event]] = []
        self.task = Task()
        self.model = Status.QUEUED
        self._at = 1_700_000_000.0
        self._apply(ev.TaskCreated(task_id="task", status=Status.QUEUED, spec=_SPEC.to_json()))

    def _apply(self, event: ev.Event) -> None:
        self._at += 1.5
        self.events.append((clock.iso(self._at), event))
        apply(self.task, event, clock.iso(self._at))

    @precondition(lambda self: bool(MOVES[self.model]))
    @rule(data=st.data())
    def legal(self, data: st.DataObject) -> None:
        new = data.draw(st.sampled_from(sorted(MOVES[self.model])))
        check_move(self.model, new)
        self._apply(ev.TaskMoved(old=self.model, new=new, reason="x"))
        self.model = new

    @rule(new=st.sampled_from(sorted(Status)))
    def illegal(self, new: Status) -> None:
        if new in MOVES[self.model]:
            return
        with pytest.raises(InvalidMove) as caught:
            check_move(self.model, new)
        assert self.model in str(caught.value)
        assert new in str(caught.value)

    @precondition(lambda self: self.model in ENDS)
    @rule()
    def retry(self) -> None:
        self._apply(ev.RunOpened(run=self.task.run + 1, request="r"))
        self.model = Status.SPAWNING

    @rule(number=st.integers(1, 3), outcome=st.sampled_from(["success", "crashed", "lost"]))
    def attempt(self, number: int, outcome: str) -> None:
        """Facts about attempts, also about one that is not the current one, move nothing by themselves."""
        self._apply(
            ev.AttemptOpened(
                attempt=self.task.last_number + 1,
                attempt_id="ses_1",
                stage="command_run",
                agent="command",
                mode="fresh",
            )
        )
        self._apply(
            ev.AttemptStarted(
                attempt=number, pid=1, boot_id="b", start_time=1, mono_s=1.0, started_at=clock.iso(self._at)
            )
        )
        self._apply(ev.AgentText(attempt=number, offset=number, text="x"))
        self._apply(ev.AttemptEnded(attempt=number, outcome=outcome, lived_s=1.0))

    @rule()
    def unknown(self) -> None:
        self._apply(ev.Unknown(data={"type": "of.a.later.version"}))

    @invariant()
    def the_fold_is_the_model(self) -> None:
        assert self.task.status is self.model
        assert self.task.has_ended == (self.model in ENDS)
        assert (self.task.finished_at is not None) == (self.model in ENDS), "an end carries its time"

    @invariant()
    def a_replay_gives_the_same(self) -> None:
        replayed = Task()
        for at, event in self.events:
            apply(
                replayed, ev.decode(ev.encode(event, at)) if not isinstance(event, ev.Unknown) else event, at
            )
        assert manifest.render(replayed, "/p", Observed()) == manifest.render(self.task, "/p", Observed())


MovesMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)


@pytest.mark.req("PKT-13")
class TestMoves(MovesMachine.TestCase):
    """A task moves only along the table."""


@pytest.mark.req("PKT-13")
def test_every_state_can_be_reached_and_every_state_leads_to_an_end() -> None:
    reached, todo = set(), [Status.QUEUED]
    while todo:
        state = todo.pop()
        if state not in reached:
            reached.add(state)
            todo += MOVES[state]
    assert reached == set(Status)
    for state in Status:
        below, todo = set(), [state]
        while todo:
            found = todo.pop()
            if found not in below:
                below.add(found)
                todo += MOVES[found]
        assert below & ENDS, f"from {state} no end can be reached"


@pytest.mark.req("PKT-13")
@pytest.mark.parametrize("old", sorted(Status))
def test_a_move_is_in_the_table_or_an_error_that_names_both_ends(old: Status) -> None:
    for new in MOVES[old]:
        check_move(old, new)
    for new in set(Status) - MOVES[old]:
        with pytest.raises(InvalidMove, match=f"from {old} to {new}") as caught:
            check_move(old, new)
        assert caught.value.hint
