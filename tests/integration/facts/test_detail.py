"""Everything about one task, as data."""

from __future__ import annotations

import json
import os

import jsonschema
import pytest

from contracts import schema
from holdfast import paths
from holdfast.errors import CorruptFile, NotFound
from holdfast.store.layout import Home, Packet
from holdfast.testing import Scenario
from holdfast.views.facts import changes, log, packet_files, timeline, usage
from holdfast.views.facts.detail import Detail, detail
from tests.support.tasks import Task, holdfast, workspace
from tests.support.waiting import eventually

SCHEMAS = schema.schemas()


@pytest.fixture(autouse=True)
def in_a_home(home: str) -> None:
    workspace()


def test_a_crash_and_a_resume_are_two_attempts_with_their_figures() -> None:
    scenario = Scenario().say("hello").crash("KILL", times=1).usage(input_tokens=10, output_tokens=5)
    task = Task.play(scenario.result("done"), "--base-interval", "0.1s", "--budget-usd", "2")
    task.wait_for("completed", within_s=30)
    found = detail(Home(paths.home()), task.id)
    first, second = found.attempts
    assert (first.outcome, first.exit_signal, first.mode) == ("crashed", 9, "fresh")
    assert (second.outcome, second.exit_code, second.mode) == ("success", 0, "resume")
    assert (first.messages, first.input_tokens) == (1, None)
    assert (second.input_tokens, second.output_tokens) == (10, 5)
    assert first.started_at is not None
    assert first.ended_at is not None
    assert first.name == "001-scripted_run"
    (stage,) = found.stages
    assert (stage.name, stage.state, stage.role, stage.calls) == ("scripted_run", "done", "run", 2)
    budgets = {each.name: each for each in found.budgets}
    assert (budgets["cost_usd"].used, budgets["cost_usd"].limit) == (0.0, 2.0)
    assert budgets["retries"].limit == 10
    assert found.next.steps[0].command == f"holdfast logs {task.id}"
    assert found.journal_bytes == os.path.getsize(task.path("events.jsonl"))
    jsonschema.validate(found.to_json(), SCHEMAS["detail"])


def test_active_time_counts_while_the_agent_works() -> None:
    task = Task.shell("echo on; sleep 60", "--id", "it")
    task.wait_for_log("on")
    home = Home(os.environ["HOLDFAST_HOME"])

    def active_s() -> float:
        return {each.name: each.used or 0.0 for each in detail(home, "it").budgets}["active_s"]

    before_s = eventually(active_s, 10, "it counts")
    assert eventually(lambda: active_s() > before_s, 10, "it goes on")
    task.stop()


def test_questions_and_answers() -> None:
    asks = '[ -e once ] || { touch once; echo "which database?" > "$INTERRUPT_FILE"; }; sleep 60'
    task = Task.shell(asks, "--id", "it")
    task.wait_for("interrupted")
    asked = Detail(Packet(task.packet))
    assert asked.question is not None
    assert (asked.question.question, asked.question.answered_at) == ("which database?", None)
    assert asked.next.steps[0].command == "holdfast resume it -m 'ANSWER'"
    jsonschema.validate(asked.to_json(), SCHEMAS["detail"])
    assert holdfast("resume", "it", "-m", "the test database").returncode == 0
    task.wait_for("running")
    answered = Detail(Packet(task.packet))
    assert answered.question is None
    (interrupt,) = answered.interrupts
    assert interrupt.answer == "the test database"
    assert interrupt.how.startswith("resumed by ")
    task.stop()


def test_show_prints_it() -> None:
    Task.shell("echo hi", "--id", "it").wait_for("completed")
    done = holdfast("show", "it", "--detail", "--json")
    found = json.loads(done.stdout)
    jsonschema.validate(found, SCHEMAS["detail"])
    assert found["manifest"] == json.loads(holdfast("show", "it", "--json").stdout)
    assert "outputs/_summary.md" in [each["path"] for each in found["files"]]
    refused = holdfast("show", "it", "--detail")
    assert (refused.returncode, "--detail is for --json" in refused.stderr) == (2, True)


def test_of_a_damaged_packet_the_rest_is_shown() -> None:
    task = Task.shell("echo hi", "--id", "it")
    task.wait_for("completed")
    with open(task.path("events.jsonl"), "r+b") as file:
        file.write(b"{{{{")
    # Nothing confirms its end.
    with pytest.raises(CorruptFile, match=r"events\.jsonl line 1"):
        Detail(Packet(task.packet))
    manifest = {**task.manifest(), "status": "interrupted"}
    with open(task.path("manifest.json"), "w", encoding="utf-8") as file:
        json.dump(manifest, file)
    found = Detail(Packet(task.packet))
    assert found.manifest["status"] == "interrupted"
    assert (found.budgets, found.stages[0].name, found.stages[0].role) == ((), "command_run", None)
    jsonschema.validate(found.to_json(), SCHEMAS["detail"])


def test_secrets_raw_logs_and_links_are_not_shown(home: str) -> None:
    task = Task.shell("echo hi", "--id", "it")
    task.wait_for("completed")
    packet = Packet(task.packet)
    outside = os.path.join(os.path.dirname(home), "outside")
    os.makedirs(outside)
    with open(os.path.join(outside, "secret"), "w", encoding="ascii") as file:
        file.write("secret")
    os.symlink(os.path.join(outside, "secret"), task.path("outputs", "link.md"))
    os.rename(task.path("inputs"), task.path("inputs.old"))
    os.symlink(outside, task.path("inputs"))
    listed = [each.path for each in packet_files.listing(packet)[0]]
    assert listed
    assert not [path for path in listed if "link" in path or "secret" in path or path.endswith(".log")]
    for path in (
        "env.json",
        "outputs/link.md",
        "inputs/secret",
        "../x",
        "attempts/001-command_run/stdout.log",
    ):
        with pytest.raises(NotFound):
            packet_files.read(packet, path)


def test_other_facts_fit_their_schemas() -> None:
    task = Task.play(Scenario().say("hello").usage(input_tokens=1, output_tokens=2).result("done"))
    task.wait_for("completed")
    packet = Packet(task.packet)
    for value in (
        timeline.gather(packet),
        log.window(packet),
        log.search(packet, "hello"),
        usage.gather(packet),
        changes.as_json({"b", "a"}),
    ):
        name = value["schema"].removeprefix("holdfast.").removesuffix("/1")
        jsonschema.validate(value, SCHEMAS[name])
