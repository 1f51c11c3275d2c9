"""Every fixture of docs/contracts is what the code reads and writes, and what its schema allows."""

from __future__ import annotations

import copy
import json
import os
from typing import Any

import jsonschema
import pytest

from contracts import schema
from contracts.parts import CONTRACTS
from holdfast.model import events as ev
from holdfast.model import manifest
from holdfast.model.fold import apply
from holdfast.model.process import Exit, ProcessIdentity
from holdfast.model.record import Record
from holdfast.model.request import REQUESTS, Request
from holdfast.model.status import MOVES, Status
from holdfast.model.task import Task
from holdfast.store import journal

FIXTURES = os.path.join(CONTRACTS, "fixtures")
FILES = sorted(name for name in os.listdir(FIXTURES) if name.endswith(".json"))
JOURNALS = sorted(name for name in os.listdir(FIXTURES) if name.endswith(".jsonl"))
SCHEMAS = schema.schemas()


def load(name: str) -> dict[str, Any]:
    with open(os.path.join(FIXTURES, name), encoding="utf-8") as file:
        return json.load(file)


def lines(name: str) -> list[dict[str, Any]]:
    with open(os.path.join(FIXTURES, name), encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def schema_of(data: dict[str, Any]) -> dict[str, Any]:
    """The schema that a file names; the text in a lock names none."""
    return SCHEMAS[
        data["schema"].removeprefix("holdfast.").removesuffix("/1") if "schema" in data else "lock"
    ]


def fold(name: str) -> Task:
    task = Task()
    for at, event in journal.read(os.path.join(FIXTURES, name)):
        apply(task, event, at)
    return task


# ── schemas ──


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_a_schema_is_a_schema(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMAS[name])


@pytest.mark.parametrize("name", FILES)
def test_a_fixture_fits_its_schema(name: str) -> None:
    data = load(name)
    jsonschema.validate(data, schema_of(data))


@pytest.mark.parametrize("name", JOURNALS)
def test_every_line_of_a_journal_fits_the_schema_of_events(name: str) -> None:
    validator = jsonschema.Draft202012Validator(SCHEMAS["events"])
    for line in lines(name):
        validator.validate(line)


def test_every_schema_has_a_fixture() -> None:
    shown = {schema_of(load(name))["title"] for name in FILES}
    missing = {entry["title"] for entry in SCHEMAS.values()} - shown
    # The spec of a task is in the first line of every journal.
    assert missing == {"holdfast.task/1", "holdfast.events/1"}
    for name in JOURNALS:
        jsonschema.validate(lines(name)[0]["spec"], SCHEMAS["task"])


@pytest.mark.parametrize(
    ("name", "field", "wrong"),
    [
        ("manifest.running.json", "pid", "18960"),
        ("manifest.running.json", "status", "sleeping"),
        ("manifest.running.json", "started_at", "2026-01-31 12:00"),
        ("manifest.running.json", "usage", None),
        ("manifest.completed.json", "exit_code", "0"),
        ("request.stop.json", "args", []),
        ("request.stop.json", "id", "../../etc"),
        ("request.stop.json", "verb", "explode"),
        ("exit.signal.json", "wait_status", 9.5),
        ("exit.signal.json", "schema", "holdfast.exit/2"),
        ("identity.json", "start_time", None),
        ("env.json", "env", {"PATH": 1}),
        ("env.json", "umask", -1),
        ("current-session.json", "heartbeat", 3),
        ("attempt.json", "attempt_id", "ses_"),
        ("argv.json", "argv", "make test"),
        ("lock.runner.json", "pid", "1"),
    ],
)
def test_a_wrong_type_is_refused(name: str, field: str, wrong: object) -> None:
    data = load(name)
    assert field in data
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**data, field: wrong}, schema_of(data))


@pytest.mark.parametrize("name", sorted(ev.EVENTS))
def test_an_event_without_a_required_field_or_with_a_wrong_type_is_refused(name: str) -> None:
    line = next(line for line in lines("events.jsonl") if line["type"] == name)
    validator = jsonschema.Draft202012Validator(SCHEMAS["events"])
    cls = ev.EVENTS[name]
    required = [field for field in cls.fields if field in cls.must_have]
    for field in ("id", "at", *required):
        assert not validator.is_valid({key: value for key, value in line.items() if key != field}), field
        assert not validator.is_valid(
            {**line, field: ["?"] if field not in ("killed", "spared", "processes") else 0}
        )


@pytest.mark.parametrize("name", FILES)
def test_a_field_of_a_later_version_is_allowed(name: str) -> None:
    data = load(name)
    jsonschema.validate({**data, "of_a_later_version": {"a": 1}}, schema_of(data))


def test_an_event_of_a_later_version_is_allowed() -> None:
    line = {"id": "01M7F9RPPST286TF62BTYGQT40", "at": "2026-01-31T12:00:00.000Z", "type": "task.painted"}
    jsonschema.validate({**line, "colour": "red"}, SCHEMAS["events"])


# ── round trips ──


def assert_survives(before: dict[str, Any], after: dict[str, Any], cls: type[Record]) -> None:
    """Nothing is lost; what a newer version added has its default."""
    assert {name: after[name] for name in before} == before
    for name in after.keys() - before.keys():
        default = cls.all_fields[name]
        # JSON has lists only.
        assert after[name] == (list(default) if isinstance(default, tuple) else default)


@pytest.mark.parametrize("name", JOURNALS)
def test_a_journal_line_survives_decoding_and_encoding(name: str) -> None:
    for line in lines(name):
        again = ev.encode(ev.decode(copy.deepcopy(line)), line["at"])
        again["id"] = line["id"]
        assert_survives(line, again, ev.EVENTS[line["type"]])


def test_the_hand_written_journal_has_every_type_of_event() -> None:
    assert {line["type"] for line in lines("events.jsonl")} == set(ev.EVENTS)


@pytest.mark.parametrize("name", [name for name in FILES if name.startswith("request.")])
def test_a_request_survives(name: str) -> None:
    data = load(name)
    assert_survives(data, Request.from_json(data).to_json(), Request)


def test_every_verb_has_a_fixture() -> None:
    names = {name for name in FILES if name.startswith("request.")}
    assert names == {f"request.{verb}.json" for verb in REQUESTS}
    assert {load(name)["verb"] for name in names} == set(REQUESTS)


@pytest.mark.parametrize("name", [name for name in FILES if name.startswith("exit.")])
def test_an_exit_record_survives(name: str) -> None:
    data = load(name)
    assert_survives(data, Exit.from_json(data).to_json(), Exit)


@pytest.mark.parametrize("name", ["identity.json", "lock.runner.json", "lock.recorder.json"])
def test_an_identity_is_found_in_its_record(name: str) -> None:
    data = load(name)
    identity = ProcessIdentity.from_json(data)
    assert identity.to_json().items() <= data.items()


# ── what the journals tell ──


@pytest.mark.parametrize(
    ("name", "status", "attempts", "total_retries", "run"),
    [
        ("journal.crash-and-resume.jsonl", "completed", 2, 1, 1),
        ("journal.interrupt-resume-stop.jsonl", "killed", 2, 0, 1),
        ("journal.spawn-failed.jsonl", "failed", 1, 0, 1),
        ("journal.void-and-retry.jsonl", "completed", 3, 0, 2),
        ("journal.pipeline.jsonl", "completed", 8, 1, 1),
        ("events.jsonl", "completed", 7, 0, 2),
    ],
)
def test_a_journal_folds_to_its_end(
    name: str, status: str, attempts: int, total_retries: int, run: int
) -> None:
    task = fold(name)
    found = (task.status, task.last_number, task.total_retries, task.run)
    assert found == (status, attempts, total_retries, run)
    assert task.has_ended
    assert task.finished_at


@pytest.mark.parametrize("name", JOURNALS)
def test_every_recorded_move_is_in_the_table(name: str) -> None:
    here: str | None = None
    for line in lines(name):
        match line["type"]:
            case "task.created":
                here = line["status"]
            case "run.opened":
                here = "spawning"
            case "task.moved":
                assert line["old"] == here
                assert Status(line["new"]) in MOVES[Status(line["old"])]
                here = line["new"]


#: What a runner saw and the journal does not hold.
_SEEN = ("last_checked_at", "last_progress_at", "deadline_at", "heartbeat", "verdict", "output_tail")


def assert_same_but_seen(made: dict[str, Any], wanted: dict[str, Any]) -> None:
    """A newer version may have added fields to what it makes."""
    names = [name for name in wanted if name not in _SEEN]
    assert {name: made[name] for name in names} == {name: wanted[name] for name in names}


@pytest.mark.parametrize(
    ("journal_name", "manifest_name"),
    [
        ("journal.crash-and-resume.jsonl", "manifest.completed.json"),
        ("journal.spawn-failed.jsonl", "manifest.failed.json"),
        ("journal.pipeline.jsonl", "manifest.pipeline.json"),
    ],
)
def test_replaying_the_journal_gives_the_manifest(journal_name: str, manifest_name: str) -> None:
    wanted = load(manifest_name)
    made = json.loads(json.dumps(manifest.render(fold(journal_name), wanted["tmpdir"], manifest.Observed())))
    assert_same_but_seen(made, wanted)


def test_replaying_a_part_of_the_journal_gives_the_manifest_of_that_moment() -> None:
    wanted = load("manifest.running.json")
    task = Task()
    for at, event in journal.read(os.path.join(FIXTURES, "journal.crash-and-resume.jsonl")):
        apply(task, event, at)
        if task.status == "running" and task.last_number == 2:
            break
    made = json.loads(json.dumps(manifest.render(task, wanted["tmpdir"], manifest.Observed())))
    assert_same_but_seen(made, wanted)


def test_the_schema_of_the_manifest_names_every_field_that_is_written() -> None:
    assert set(SCHEMAS["manifest"]["properties"]) == manifest.FIELDS | {"runner_gone"}


def test_the_current_session_follows_from_the_journal() -> None:
    task, wanted = fold("journal.crash-and-resume.jsonl"), load("current-session.json")
    shown = manifest.render(task, "/placeholder/hf/home/tasks/crash-and-resume", manifest.Observed())
    made = json.loads(json.dumps(manifest.current_session(task, shown)))
    assert_same_but_seen(made, wanted)
    jsonschema.validate(
        json.loads(json.dumps(manifest.current_session(_new_task(), {}))), SCHEMAS["current-session"]
    )


def _new_task() -> Task:
    """A task before its first attempt."""
    task = Task()
    at, event = next(iter(journal.read(os.path.join(FIXTURES, "journal.crash-and-resume.jsonl"))))
    apply(task, event, at)
    return task


def test_no_fixture_names_a_machine() -> None:
    for name in [*FILES, *JOURNALS]:
        with open(os.path.join(FIXTURES, name), encoding="utf-8") as file:
            text = file.read()
        for mark in ("/tmp/", "/root", '"/home/', "/Users/"):
            assert mark not in text, f"{name} holds {mark}"
