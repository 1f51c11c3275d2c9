"""The files of a stage in `outputs/`: their names, and what is in them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable

import pytest

from holdfast.model import events as ev
from holdfast.model.spec import StageSpec
from holdfast.model.status import Status
from holdfast.runner.stage import outputs
from holdfast.store.digest import sha256
from tests.support.bench import SECRET, Bench, put, text_of

IMPL = StageSpec(name="codex_impl", agent="codex", role="impl", model="m", writes=True)
COMMAND = StageSpec(name="command_run", agent="command")

Make = Callable[..., Bench]


def written(task: Bench, kind: str, number: int = 1) -> str | None:
    outputs.write(task.ledger, task.attempt(number))
    return text_of(task.packet.output(task.stage.name, task.stage.agent, kind))


@pytest.mark.parametrize(
    ("outcome", "report", "failed"),
    [("success", "done\n", None), ("crashed", None, "done\n"), ("failed", None, "done\n")],
)
def test_only_the_report_of_a_success_is_a_result(
    bench: Make, outcome: str, report: str | None, failed: str | None
) -> None:
    task = bench(COMMAND).ran(1, outcome)
    put(task.directory().stdout, "done\n")
    assert (written(task, "out"), written(task, "failed")) == (report, failed)


@pytest.mark.parametrize(
    ("modes", "report"),
    [
        (("fresh", "resume"), "the first report"),
        (("fresh", "resume", "resume"), "the first report"),
        # Another session said nothing about the work of this one.
        (("fresh", "briefing", "resume"), ""),
        (("fresh", "fresh", "resume", "resume"), ""),
        (("fresh", "briefing"), ""),
        # A command that runs again begins anew.
        (("fresh", "again"), ""),
    ],
)
def test_an_attempt_without_a_report_takes_that_of_its_session_only(
    bench: Make, modes: tuple[str, ...], report: str
) -> None:
    """Only the first attempt printed one."""
    task = bench(COMMAND)
    for number, mode in enumerate(modes, start=1):
        task.ran(number, "crashed", mode=mode)
        put(task.directory(number).stdout, "the first report\n" if number == 1 else "\n")
    assert (written(task, "failed", len(modes)) or "").strip() == report


def test_no_file_has_a_secret(bench: Make) -> None:
    task = bench(COMMAND).ran(1, "failed", detail=f"said {SECRET}")
    put(task.directory().stdout, f"key {SECRET}\n")
    put(task.directory().stderr, f"bad key {SECRET}\n")
    assert written(task, "failed") == "key ***\n"
    assert written(task, "err") == "bad key ***\n"
    assert "said ***" in (written(task, "wrapper.log") or "")


def test_of_a_long_log_only_the_end_is_kept_and_the_rest_is_counted(bench: Make) -> None:
    task = bench(COMMAND).ran()
    kept = "x" * (4 * 1024 * 1024 - 4) + "end\n"
    put(task.directory().stdout, "beginning" + kept)
    put(task.directory().stderr, kept)
    assert written(task, "out") == "[9 bytes left out]\n" + kept
    assert written(task, "err") == kept


def test_an_attempt_that_has_not_ended_has_no_files(bench: Make) -> None:
    task = bench(COMMAND).open().start().move(Status.RUNNING)
    outputs.write(task.ledger, task.attempt())
    assert os.listdir(task.packet.outputs) == []


def test_an_attempt_without_logs_has_an_empty_report(bench: Make) -> None:
    task = bench(COMMAND).ran()
    assert (written(task, "out"), written(task, "err")) == ("", "")


def line(kind: str, **item: str) -> str:
    return json.dumps({"type": kind, "item": {"id": "1", **item}} if item else {"type": kind}) + "\n"


def said(text: str) -> str:
    return line("item.completed", type="agent_message", text=text)


@pytest.mark.parametrize(
    ("stdout", "report"),
    [
        (said("working") + said("## Summary\n\nall done"), "## Summary\n\nall done"),
        # No line can be read: the journal has its last text.
        ("garbage\n", "from the journal"),
        (None, ""),
    ],
)
def test_the_report_of_an_agent_with_events_is_its_last_text_in_full(
    bench: Make, stdout: str | None, report: str
) -> None:
    task = bench(IMPL).open().start().move(Status.RUNNING)
    task.tell(ev.AgentText(attempt=1, offset=1, text="from the journal")).end()
    if stdout is not None:
        put(task.directory().stdout, stdout)
    assert outputs.report(task.attempt(), task.directory().stdout) == report


def test_the_report_of_an_agent_is_the_longer_of_its_result_and_its_last_text(bench: Make) -> None:
    task = bench(StageSpec(name="claude_run", agent="claude")).ran()

    def result(text: str) -> str:
        return json.dumps({"type": "result", "subtype": "success", "is_error": False, "result": text}) + "\n"

    message = {"role": "assistant", "content": [{"type": "text", "text": "the whole report"}]}
    text = json.dumps({"type": "assistant", "message": {"id": "1", **message}}) + "\n"
    for stdout, report in ((text + result("short"), "the whole report"), (result("short"), "short")):
        put(task.directory().stdout, stdout)
        assert outputs.report(task.attempt(), task.directory().stdout) == report


def test_the_metadata_describe_the_call(bench: Make) -> None:
    task = bench(IMPL).open(3).start(3, at=1_800_000_000.0).end(3, "failed", exit_code=7, lived_s=2.5)
    put(task.directory(3).prompt, "the prompt")
    meta = json.loads(written(task, "meta.json", 3) or "")
    assert (meta["attempt"], meta["outcome"], meta["exit_code"]) == (3, "failed", 7)
    assert (meta["role"], meta["model"], meta["tool"]) == ("impl", "m", "codex")
    assert meta["duration_sec"] == 2.5
    assert meta["prompt_sha256"] == sha256(b"the prompt")


def test_the_log_tells_how_the_attempt_was_started_stopped_and_ended(bench: Make) -> None:
    task = bench(COMMAND).open().start()
    put(task.directory().argv, '{"argv": ["make", "test"]}')
    task.tell(ev.StopIntended(attempt=1, intent="hang", reason="silent for 10 min"))
    task.end(1, "hung", exit_signal=15, exit_code=143)
    log = written(task, "wrapper.log") or ""
    assert "argv: ['make', 'test']" in log
    assert "stopped: hang: silent for 10 min" in log
    assert "ended: hung\nexit code 143, signal 15, 10.0 s\n" in log
