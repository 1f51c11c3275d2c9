"""Facts: which request is next."""

from __future__ import annotations

import pytest

from holdfast.model.request import Request
from holdfast.model.spec import Limits, StageSpec, TaskSpec
from holdfast.model.status import Status
from holdfast.packet import inbox, load
from holdfast.packet.create import create
from holdfast.paths import ensure_home
from holdfast.redact import Redactor
from holdfast.runner.gather import Gatherer
from holdfast.runner.ledger import Ledger
from holdfast.runner.pending_requests import NEWEST
from holdfast.store.layout import Home
from tests.support.journals import opened
from tests.support.performing import context_of


@pytest.mark.parametrize(("later", "first"), [(NEWEST - 1, "stop"), (NEWEST, "interrupt")])
def test_a_stop_among_the_newest_requests_goes_first(home: str, later: int, first: str) -> None:
    """`later` requests came after the stop."""
    ensure_home(home)
    spec = TaskSpec(
        task_id="it", task_name="it", goal="", agent="command", command=["true"], project_dir=home,
        stages=(StageSpec(name="command_run", agent="command"),), limits=Limits(),
    )  # fmt: skip
    packet = create(Home(home), spec, prompt=None, env={"env": {}}, status=Status.SPAWNING)
    for verb in ("interrupt", "stop", *["interrupt"] * later):
        inbox.drop(packet, verb, {}, by="a test")
    ledger = Ledger(packet, load.fold(packet), opened(packet), Redactor({}))
    try:
        with context_of(ledger) as context:
            facts = Gatherer(context).gather({"bell"})
    finally:
        ledger.close()
    assert facts.request is not None
    assert isinstance(facts.request.request, Request)
    assert facts.request.request.verb == first
