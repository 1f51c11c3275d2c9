"""Facts: which request is next."""

from __future__ import annotations

import os

import pytest

from holdfast.model.execution import dirname
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
from holdfast.runner.plan.facts import PendingRequest
from holdfast.store import lock as locks
from holdfast.store.layout import AttemptDir, Home, Packet
from tests.support.journals import opened
from tests.support.performing import context_of


def make(home: str) -> Packet:
    ensure_home(home)
    spec = TaskSpec(
        task_id="it", task_name="it", goal="", agent="command", command=["true"], project_dir=home,
        stages=(StageSpec(name="command_run", agent="command"),), limits=Limits(),
    )  # fmt: skip
    return create(Home(home), spec, prompt=None, env={"env": {}}, status=Status.SPAWNING)


def next_request(packet: Packet) -> PendingRequest:
    ledger = Ledger(packet, load.fold(packet), opened(packet), Redactor({}))
    try:
        with context_of(ledger) as context:
            facts = Gatherer(context).gather({"bell"})
    finally:
        ledger.close()
    assert facts.request is not None
    return facts.request


@pytest.mark.parametrize(("later", "first"), [(NEWEST - 1, "stop"), (NEWEST, "interrupt")])
def test_a_stop_among_the_newest_requests_goes_first(home: str, later: int, first: str) -> None:
    """`later` requests came after the stop."""
    packet = make(home)
    for verb in ("interrupt", "stop", *["interrupt"] * later):
        inbox.drop(packet, verb, {}, by="a test")
    request = next_request(packet).request
    assert isinstance(request, Request)
    assert request.verb == first


@pytest.mark.parametrize("planted", ["", "directory", "all"])
def test_a_takeover_is_not_that_of_a_living_attempt(home: str, planted: str) -> None:
    """`planted`: the link of an agent to a directory whose lock is held."""
    packet = make(home)
    name = dirname(1, "command_run", "takeover")
    real = packet.attempt(name)
    if planted == "directory":
        real = packet.attempt("002-command_run")
        os.symlink(real.path, packet.attempt(name).path)
    elif planted == "all":
        elsewhere = os.path.join(packet.path, "elsewhere")
        os.rename(packet.attempts, elsewhere)
        os.symlink(elsewhere, packet.attempts)
        real = AttemptDir(os.path.join(elsewhere, name))
    os.mkdir(real.path)
    lock = locks.acquire(real.lock, role="a test")
    try:
        inbox.drop(packet, "takeover", {"attempt": 1, "stage": "command_run"}, by="a test")
        assert next_request(packet).is_claimed is (planted == "")
    finally:
        lock.release()
