"""Ingest: in batches to the last byte; across a restart nothing is lost and nothing is repeated."""

from __future__ import annotations

import json
import os

import pytest

from holdfast.agents import registry
from holdfast.model import events as ev
from holdfast.model.spec import Limits, StageSpec, TaskSpec
from holdfast.model.status import Status
from holdfast.packet import load
from holdfast.packet.create import create
from holdfast.paths import ensure_home
from holdfast.redact import Redactor, WithholdingRedactor
from holdfast.runner.ledger import Ledger
from holdfast.runner.output import ingest, raw_log
from holdfast.runner.output.ingest import Ingest
from holdfast.runner.output.position import IngestPosition
from holdfast.store import journal
from holdfast.store.layout import Home, Packet
from tests.support.journals import opened

SECRET = "correct-horse-battery"


@pytest.fixture
def packet(home: str) -> Packet:
    ensure_home(home)
    spec = TaskSpec(
        task_id="it", task_name="it", goal="", agent="claude", project_dir=home,
        stages=(StageSpec(name="main", agent="claude"),), limits=Limits(),
    )  # fmt: skip
    made = create(Home(home), spec, prompt=None, env={"env": {}}, status=Status.SPAWNING)
    first = Ledger(made, load.fold(made), opened(made), Redactor({}))
    first.record(ev.AttemptOpened(attempt=1, attempt_id="ses_1", stage="main", agent="claude", mode="fresh"))
    first.close()
    os.makedirs(made.attempt("001-main").path, exist_ok=True)
    return made


class Runner:
    """As much of one as reads logs."""

    def __init__(self, packet: Packet, redact: Redactor | None = None) -> None:
        redact = redact or Redactor({"A_TOKEN": SECRET})
        self.ledger = Ledger(packet, load.fold(packet), opened(packet), redact)
        self.position = IngestPosition(packet)
        (attempt,) = self.ledger.task.open_executions
        self.ingest = Ingest(
            self.ledger,
            registry.adapter("claude"),
            attempt,
            packet.attempt(attempt.dirname),
            position=self.position,
        )

    def close(self) -> None:
        self.ingest.close()
        self.position.close()
        self.ledger.close()


def say(text: str) -> bytes:
    block = {"type": "text", "text": text}
    return json.dumps({"type": "assistant", "message": {"content": [block]}}, separators=(",", ":")).encode()


def delta(text: str) -> bytes:
    event = {"type": "content_block_delta", "delta": {"type": "text_delta", "text": text}}
    return json.dumps({"type": "stream_event", "event": event}, separators=(",", ":")).encode()


def printed(packet: Packet, lines: list[bytes], *, end: bytes = b"\n") -> None:
    with open(packet.attempt("001-main").stdout, "ab") as file:
        file.write(b"\n".join(lines) + end)


def texts(packet: Packet) -> list[str]:
    return [event.text for _, event in journal.read(packet.journal) if isinstance(event, ev.AgentText)]


def shown(packet: Packet) -> list[str]:
    with open(packet.output_log, encoding="utf-8") as file:
        return file.read().splitlines()


@pytest.mark.req("CTX-3")
@pytest.mark.parametrize(
    ("redact", "lines"),
    [
        (Redactor({}), ["552417", "a 552417"]),
        (Redactor({}, patterns=[r"\d{6}"]), ["***", "a ***"]),
        (WithholdingRedactor("a pattern cannot be applied"), ["***", "***"]),
    ],
    ids=["no pattern", "a pattern", "a refused pattern"],
)
def test_a_short_line_is_masked_if_the_task_has_patterns(
    packet: Packet, redact: Redactor, lines: list[str]
) -> None:
    printed(packet, [b"552417", b"a 552417"])
    runner = Runner(packet, redact)
    runner.ingest.take(final=True)
    runner.close()
    assert shown(packet) == lines


def test_the_end_of_a_long_log_is_taken_in_batches(packet: Packet, monkeypatch) -> None:
    monkeypatch.setattr(ingest, "BATCH_S", 0.0)
    words = [f"message {number}" for number in range(6000)]
    printed(packet, [*map(say, words), delta("cut o"), delta("ff")], end=b"")
    runner = Runner(packet)
    batches = 1
    while runner.ingest.take(final=True):
        batches += 1
    runner.close()
    assert batches > 3
    assert texts(packet) == [*words, "cut off"]
    assert shown(packet) == [*words, "cut off"]


def test_what_is_printed_behind_the_end_is_not_waited_for(packet: Packet, monkeypatch) -> None:
    monkeypatch.setattr(ingest, "BATCH_S", 0.0)
    printed(packet, [say("last words")] * 4000)
    runner = Runner(packet)
    batches = 0
    while runner.ingest.take(final=True):
        batches += 1
        printed(packet, [b"of a child"] * 100_000)
        assert batches < 50
    runner.close()
    assert len(texts(packet)) == 4000


@pytest.mark.parametrize("is_final", [True, False])
def test_a_runner_that_was_killed_between_two_batches_is_followed_without_a_gap(
    packet: Packet, monkeypatch, is_final: bool
) -> None:
    monkeypatch.setattr(ingest, "BATCH_S", 0.0)
    words = [f"message {number} {SECRET}" for number in range(9000)]
    lines = [line for word in words for line in (delta(word[:9]), say(word))]
    printed(packet, [*lines, delta("and"), delta(" so on")])
    has_more, number = True, 0
    while has_more:
        number += 1
        runner = Runner(packet)
        # It reminds its reader in batches too, so each successor needs more of them to get further.
        for _ in range(4 * number):
            has_more = has_more and runner.ingest.take(final=is_final)
        runner.close()
    assert number > 3
    clean = [word.replace(SECRET, "***") for word in words]
    assert texts(packet) == ([*clean, "and so on"] if is_final else clean)
    assert shown(packet) == texts(packet)


def test_a_flood_of_deltas_changes_no_event(packet: Packet, monkeypatch) -> None:
    for name in ("_FLOOD_BYTES", "_FLOOD_LEAST_BYTES"):
        monkeypatch.setattr(raw_log, name, 2000)
    monkeypatch.setattr(raw_log, "_FLOOD_CHUNK_BYTES", 4096)
    words = [f"message {number}" for number in range(300)]
    lines = [line for word in words for line in (*[delta("x")] * 40, say(word))]
    printed(packet, [*lines, delta("and"), delta(" so on")])
    runner = Runner(packet)
    asked: list[bytes] = []
    read = runner.ingest._reader.read
    monkeypatch.setattr(runner.ingest._reader, "read", lambda line: asked.append(line) or read(line))
    while runner.ingest.take(final=True):
        pass
    runner.close()
    assert texts(packet) == [*words, "and so on"]
    assert shown(packet) == texts(packet)
    assert len(asked) < 3 * len(words)


def test_half_a_character_among_many_events_is_journalled(packet: Packet) -> None:
    words = [f"message {number}" for number in range(500)]
    printed(
        packet, [*map(say, words), say("half \ud83d of one"), b'{"type":"assistant","\xff', say("after it")]
    )
    runner = Runner(packet)
    while runner.ingest.take(final=True):
        pass
    runner.close()
    found = texts(packet)
    assert found[:500] == words
    assert found[500].startswith("half ")
    assert found[501] == "after it"
