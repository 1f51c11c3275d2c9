"""A packet and its inbox: requests dropped, doubled, unreadable, a runner that dies anywhere between effect
and answer."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections import Counter

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from holdfast import clock, ids
from holdfast.model import events as ev
from holdfast.model import manifest
from holdfast.model.manifest import Observed
from holdfast.model.request import REQUESTS, Request
from holdfast.model.spec import Limits, StageSpec, TaskSpec
from holdfast.model.status import ENDS, Status
from holdfast.packet import inbox, load
from holdfast.packet.create import create
from holdfast.redact import Redactor
from holdfast.runner.ledger import Ledger
from holdfast.runner.perform.context import Context
from holdfast.runner.perform.performer import perform
from holdfast.runner.plan.facts import Facts, Now, PendingRequest
from holdfast.runner.plan.planner import plan
from holdfast.runner.plan.step import EndTask
from holdfast.runner.stage import markers
from holdfast.store import journal
from holdfast.store.layout import Home
from tests.support.journals import opened

#: Between the effect of a request, its answer, and the end of its file.
_DEATHS = (
    "journal.after_append",
    "ledger.before_manifest",
    "requests.run_opened",
    "step.answer_request",
    "step.forget_request",
)


class InboxMachine(RuleBasedStateMachine):
    """The model is the set of ids that were dropped; each must be answered once, across kills."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp(prefix="hf-")
        home = Home(os.path.join(self.folder, "home"))
        os.makedirs(home.tasks, mode=0o700)
        spec = TaskSpec(
            task_id="task",
            task_name="task",
            goal="",
            agent="command",
            command=["true"],
            project_dir=self.folder,
            stages=(StageSpec(name="command_run", agent="command"),),
            limits=Limits(),
        )
        self.packet = create(
            home, spec, prompt=None, env={"schema": "holdfast.env/1"}, status=Status.SPAWNING
        )
        self.dropped: dict[str, bytes] = {}
        self.ledger = self._open()

    def _open(self) -> Ledger:
        task = load.fold(self.packet)
        ledger = Ledger(self.packet, task, opened(self.packet), Redactor({}))
        self.context = Context(ledger, None)  # nothing waits here
        return ledger

    @rule(
        verb=st.sampled_from([*REQUESTS, "dance"]),
        reason=st.one_of(st.none(), st.text(max_size=10), st.integers()),
    )
    def drop(self, verb: str, reason: object) -> None:
        args = {} if reason is None else {"reason": reason, "message": reason}
        request = inbox.drop(self.packet, verb, args, by="test")
        with open(self.packet.request(request.id), "rb") as file:
            self.dropped[request.id] = file.read()

    @rule(data=st.binary(max_size=60))
    def plant_rubbish(self, data: bytes) -> None:
        name = ids.new_ulid()
        with open(self.packet.request(name), "wb") as file:
            file.write(data)
        self.dropped[name] = data

    @rule()
    def plant_under_a_wrong_name(self) -> None:
        request = Request(id=ids.new_ulid(), verb="stop", by="test", at="2000-01-01T00:00:00.000Z")
        name = ids.new_ulid()
        self.dropped[name] = json.dumps(request.to_json()).encode()
        with open(self.packet.request(name), "wb") as file:
            file.write(self.dropped[name])

    @precondition(lambda self: self.dropped)
    @rule(data=st.data())
    def drop_the_same_again(self, data: st.DataObject) -> None:
        """The unlink did not reach the disk, or the file was copied back."""
        name = data.draw(st.sampled_from(sorted(self.dropped)))
        with open(self.packet.request(name), "wb") as file:
            file.write(self.dropped[name])

    @rule()
    def serve(self) -> None:
        self._answer_all()
        if self.ledger.task.has_ended and not os.path.exists(self.packet.task_done):
            perform(self.context, EndTask())

    def _answer_all(self) -> None:
        """As the loop does: the planner decides about the oldest request, the performer answers it."""
        while names := inbox.names(self.packet):
            pending = PendingRequest(name=names[0], request=inbox.read(self.packet, names[0]))
            facts = Facts(remembered=self.context.remembered, request=pending)
            perform(self.context, plan(self.ledger.task, facts, Now(wall=clock.now(), mono=clock.mono())))

    @rule(point=st.sampled_from(_DEATHS))
    def serve_and_die(self, point: str) -> None:
        """The runner is gone at `point`; the next one starts from the packet alone."""
        os.environ["HOLDFAST_FAILPOINT"] = f"{point}=enospc"
        try:
            self._answer_all()
        except OSError:
            pass
        finally:
            del os.environ["HOLDFAST_FAILPOINT"]
        self.ledger.close()
        self.ledger = self._open()
        if not self.ledger.task.has_ended and os.path.exists(self.packet.task_done):
            markers.reopen(self.ledger)

    @invariant()
    def nobody_is_answered_twice(self) -> None:
        answers, effects = self._answers_and_effects()
        assert all(count == 1 for count in answers.values()), answers
        assert all(count == 1 for count in effects.values()), effects
        assert set(answers) <= set(self.dropped)

    @invariant()
    def what_the_runner_thinks_is_what_the_journal_says(self) -> None:
        replayed = manifest.render(load.fold(self.packet), self.packet.path, Observed())
        assert manifest.render(self.ledger.task, self.packet.path, Observed()) == replayed

    def teardown(self) -> None:
        try:
            self.serve()
            answers, _ = self._answers_and_effects()
            assert set(answers) == set(self.dropped), "every request is answered in the end"
            assert inbox.names(self.packet) == []
            assert os.path.exists(self.packet.task_done) == (self.ledger.task.status in ENDS)
        finally:
            self.ledger.close()
            shutil.rmtree(self.folder)

    def _answers_and_effects(self) -> tuple[Counter[str], Counter[str]]:
        answers: Counter[str] = Counter()
        effects: Counter[str] = Counter()
        for _, event in journal.read(self.packet.journal):
            if isinstance(event, (ev.RequestApplied, ev.RequestRefused)):
                answers[event.request] += 1
            elif isinstance(event, (ev.TaskMoved, ev.RunOpened)) and event.request is not None:
                effects[event.request] += 1
        return answers, effects


InboxMachine.TestCase.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)


@pytest.mark.req("PKT-17", "PKT-21")
class TestInbox(InboxMachine.TestCase):
    """Each id is answered once: not twice after a crash, not never."""
