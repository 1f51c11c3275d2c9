"""Packets that released versions wrote load with this one, and nothing in them is lost."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from typing import Any

import jsonschema
import pytest

from contracts import schema
from holdfast.agents import registry
from holdfast.model import events as ev
from holdfast.model import manifest
from holdfast.model.attempt_table import Reading
from holdfast.model.request import Request
from holdfast.model.spec import TaskSpec
from holdfast.packet import inbox, load, sealed
from holdfast.redact import Redactor
from holdfast.runner.attempt import reading
from holdfast.runner.ledger import Ledger
from holdfast.store import atomic
from holdfast.store.layout import PACKET_DIRECTORIES, Home, Packet
from tests.support.journals import opened

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
PACKETS = sorted(
    os.path.join(version, task)
    for version in os.listdir(DATA)
    if os.path.isdir(os.path.join(DATA, version))
    for task in os.listdir(os.path.join(DATA, version))
)
CRASH_AND_RESUME = [path for path in PACKETS if path.endswith("crash-and-resume")]


@pytest.fixture
def packet(request: pytest.FixtureRequest, home: str) -> Packet:
    """A copy of a recorded packet in a new home, with the files that git cannot store."""
    source = os.path.join(DATA, request.param)
    made = Home(home).packet(os.path.basename(source))
    shutil.copytree(source, made.path)
    for name in PACKET_DIRECTORIES:
        os.makedirs(os.path.join(made.path, name), exist_ok=True)
    os.mkfifo(made.bell, 0o600)
    return made


def test_there_is_a_packet_of_every_version_that_is_written_about() -> None:
    assert CRASH_AND_RESUME, "python -m tests.compat.record makes one"


@pytest.mark.parametrize("packet", PACKETS, indirect=True)
def test_it_is_found_and_folds_to_its_end(packet: Packet) -> None:
    assert load.find(packet.home, packet.task_id).path == packet.path
    task = load.fold(packet)
    assert task.spec.task_id == packet.task_id
    assert task.has_ended
    assert not load.is_live(packet, task.status)
    assert registry.adapter(task.spec.agent).name == task.spec.agent


@pytest.mark.parametrize("packet", PACKETS, indirect=True)
def test_every_line_of_its_journal_is_known(packet: Packet) -> None:
    with open(packet.journal, encoding="utf-8") as file:
        for line in file:
            assert not isinstance(ev.decode(json.loads(line)), ev.Unknown)


@pytest.mark.parametrize("packet", PACKETS, indirect=True)
def test_replaying_its_journal_gives_its_manifest(packet: Packet) -> None:
    shown = load.read_manifest(packet)
    made = json.loads(json.dumps(manifest.render(load.fold(packet), shown["tmpdir"], manifest.Observed())))
    # Observations of a runner are not in the journal.
    seen = {"last_checked_at", "last_progress_at", "deadline_at", "heartbeat", "verdict", "output_tail"}
    # 0.1.0 did not count calls, and wrote 0.
    for field in made.keys() & shown.keys() - seen - {"paid_calls"}:
        assert _without_news(made[field], shown[field]) == shown[field], field


@pytest.mark.parametrize("packet", PACKETS, indirect=True)
def test_its_manifest_is_made_again_where_it_is_torn_or_gone(packet: Packet) -> None:
    status = load.read_manifest(packet)["status"]
    with open(packet.manifest, "w", encoding="utf-8") as file:
        file.write('{"schema": "holdfast.man')
    assert load.read_manifest(packet)["status"] == status
    os.unlink(packet.manifest)
    assert load.read_manifest(packet)["status"] == status


@pytest.mark.parametrize("packet", PACKETS, indirect=True)
def test_every_json_file_of_it_names_its_schema_and_fits_it(packet: Packet) -> None:
    known = schema.schemas()
    count = 0
    for folder, _, files in os.walk(packet.path):
        for name in files:
            if not name.endswith((".json", ".done")):
                continue
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                data = json.load(file)
            jsonschema.validate(data, known[data["schema"].removeprefix("holdfast.").removesuffix("/1")])
            count += 1
    assert count >= 9


@pytest.mark.parametrize("packet", PACKETS, indirect=True)
def test_the_hash_of_what_was_asked_is_in_the_journal(packet: Packet) -> None:
    with open(packet.journal, encoding="utf-8") as file:
        created = json.loads(file.readline())
    with open(packet.manifest_yaml, "rb") as file:
        assert hashlib.sha256(file.read()).hexdigest() == created["manifest_sha256"]


def _without_news(made: Any, shown: Any) -> Any:
    """A later version may only add fields."""
    if isinstance(made, list) and isinstance(shown, list):
        return [_without_news(one, other) for one, other in zip(made, shown, strict=True)]
    if isinstance(made, dict) and isinstance(shown, dict):
        return {name: made.get(name) for name in shown}
    return made


@pytest.mark.parametrize("packet", PACKETS, indirect=True)
def test_what_was_asked_is_yaml(packet: Packet) -> None:
    from ruamel.yaml import YAML

    with open(packet.manifest_yaml, encoding="utf-8") as file:
        asked = YAML(typ="safe", pure=True).load(file)
    assert TaskSpec.from_json(asked) == load.fold(packet).spec


@pytest.mark.parametrize("packet", CRASH_AND_RESUME, indirect=True)
def test_its_attempts_are_read_as_exited(packet: Packet) -> None:
    names = sorted(os.listdir(packet.attempts))
    assert names == ["001-scripted_run", "002-scripted_run"]
    found = [reading.read_records(packet.attempt(name), None) for name in names]
    assert [one.reading for one in found] == [Reading.EXITED, Reading.EXITED]
    assert [one.exit.exit_code for one in found if one.exit is not None] == [137, 0]
    assert [one.exit.exit_signal for one in found if one.exit is not None] == [9, None]


@pytest.mark.parametrize("packet", CRASH_AND_RESUME, indirect=True)
def test_offsets_in_the_journal_are_line_ends_of_the_raw_log(packet: Packet) -> None:
    with open(packet.journal, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    for line in lines:
        if "offset" in line:
            raw = packet.attempt(f"{line['attempt']:03d}-scripted_run").stdout
            with open(raw, "rb") as file:
                assert file.read()[line["offset"] - 1 : line["offset"]] == b"\n"


def _ledger(packet: Packet) -> Ledger:
    return Ledger(packet, load.fold(packet), opened(packet), Redactor({}))


@pytest.mark.parametrize("packet", PACKETS, indirect=True)
def test_unknown_fields_of_the_manifest_survive_a_rewrite(packet: Packet) -> None:
    later: dict[str, Any] = {**load.read_manifest(packet), "of_a_later_version": {"a": [1, None]}}
    atomic.write_json(packet.manifest, later, durable=False)
    # Nothing changes after the marker is written; without it, the manifest is written again.
    os.unlink(packet.task_done)
    before = os.stat(packet.manifest).st_ino
    ledger = _ledger(packet)
    try:
        ledger.show()
        assert os.stat(packet.manifest).st_ino != before
        ledger.show()
    finally:
        ledger.close()
    shown = load.read_manifest(packet)
    assert shown["of_a_later_version"] == {"a": [1, None]}
    assert shown["status"] == later["status"]


@pytest.mark.parametrize("packet", PACKETS, indirect=True)
def test_events_and_fields_of_a_later_version_are_passed_over_and_kept(packet: Packet) -> None:
    before = load.fold(packet)
    with open(packet.journal, "rb") as file:
        first, *rest = file.read().splitlines(keepends=True)
    painted = (
        b'{"id":"01M7F9QQ3TSFT3EPM333Q0714K","at":"2026-01-31T12:00:00.000Z",'
        b'"type":"task.painted","colour":"red"}\n'
    )
    rest = [line.replace(b'"type":', b'"of_a_later_version":{"a":1},"type":', 1) for line in rest]
    with open(packet.journal, "wb") as file:
        file.write(b"".join([first, painted, *rest, painted]))
    after = load.fold(packet)
    assert after.status is before.status
    assert (after.last_number, after.active_s) == (before.last_number, before.active_s)
    ledger = _ledger(packet)
    try:
        ledger.record(ev.RunnerLeft(pid=1, reason="test"))
    finally:
        ledger.close()
    with open(packet.journal, "rb") as file:
        assert file.read().count(painted) == 2


@pytest.mark.parametrize("packet", PACKETS, indirect=True)
def test_a_torn_end_of_its_journal_is_passed_over_by_readers_and_cut_off_by_a_writer(packet: Packet) -> None:
    status = load.fold(packet).status
    size = os.path.getsize(packet.journal)
    with open(packet.journal, "ab") as file:
        file.write(b'{"id":"01M7F9QQ3T')
    assert load.fold(packet).status == status
    _, journal, found = sealed.open_for_runner(packet)
    journal.close()
    assert [event.dropped_bytes for event in found if isinstance(event, ev.JournalRepaired)] == [17]
    assert os.path.getsize(packet.journal) == size


@pytest.mark.parametrize("packet", PACKETS, indirect=True)
def test_a_request_can_be_dropped_into_it(packet: Packet) -> None:
    request = inbox.drop(packet, "retry", {}, by="test")
    assert load.is_live(packet, "completed")
    found = inbox.read(packet, f"{request.id}.json")
    assert isinstance(found, Request)
    assert found == request
