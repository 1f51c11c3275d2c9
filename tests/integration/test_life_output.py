"""Output: kept raw and whole, shown clean, whatever an agent prints."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import threading

import pytest

from holdfast import clock
from holdfast.packet import inbox
from holdfast.runner.output import ingest
from holdfast.store.layout import Packet
from holdfast.testing import Scenario
from tests.support import kin, processes
from tests.support.tasks import Task, workspace
from tests.support.waiting import eventually

#: Memory limit of a runner, however much its agent prints.
RUNNER_KB = 100 * 1024
RUN = ("attempts", "001-command_run")


def python(script: str, *flags: str) -> Task:
    """A task that is a Python program."""
    path = os.path.join(workspace(), "program.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(script)
    return Task.start(*flags, "--", sys.executable, path)


@pytest.mark.req("OUT-2", "OUT-3")
def test_the_readable_log_is_clean_and_the_raw_ones_are_as_printed(home: str) -> None:
    raw = (
        b"\x1b[1;31mred\x1b[0m \x1b]0;title\x07ok \x1b(Bplain\r\n50%\r100%\n"
        b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\n"
    )
    task = python(
        f"import os\nos.write(1, {raw!r})\n"
        "os.write(2, b'\\x1b[33mwarned\\x1b[m\\n')\nos.write(1, b'last\\n')\n"
    )
    task.wait_for("completed")
    lines = task.log().splitlines()
    assert [line for line in lines if line != "warned"] == ["red ok plain", "100%", "link", "last"]
    assert "warned" in lines
    assert "\x1b" not in task.log()
    assert "\r" not in task.log()
    assert task.read(*RUN, "stdout.log") == raw + b"last\n"
    assert task.read(*RUN, "stderr.log") == b"\x1b[33mwarned\x1b[m\n"


@pytest.mark.req("OUT-2")
def test_no_control_character_gets_into_the_readable_log_as_a_line_or_as_an_event(home: str) -> None:
    nasty = "a\x00b\x1bc\x1b7\x1b[2Jc\x9b31md\te\x7f\x1bPq#\x1b\\\x0e\x1b"
    task = python(f"import os\nos.write(1, {(nasty + chr(10)).encode()!r})\n")
    task.wait_for("completed")
    assert task.log() == "abc31md\te\n"
    spoken = Task.play(Scenario().say(nasty))
    spoken.wait_for("completed")
    assert "abc31md\te" in spoken.log().splitlines()
    assert [char for char in spoken.log() if not char.isprintable() and char not in "\n\t"] == []


@pytest.mark.req("OUT-2")
def test_of_a_line_that_is_drawn_over_itself_the_last_state_is_shown(home: str) -> None:
    """Three states of a progress bar, joined in one line, would be a state that never existed."""
    task = Task.shell(r"printf '10%%\r20%%\r30%%\nends as on Windows\r\n\r\n'; printf '1/2\r2/2 \r' >&2")
    task.wait_for("completed")
    lines = task.log().split("\n")
    assert sorted(lines) == ["", "", "2/2", "30%", "ends as on Windows"]


def test_a_key_that_begins_where_it_is_drawn_over_is_masked(home: str) -> None:
    body = "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo" * 2
    script = rf"printf -- '-----BEGIN RSA PRIVATE KEY-----\r{body}\n{body}\n-----END RSA PRIVATE KEY-----\n'"
    task = Task.shell(script)
    task.wait_for("completed")
    assert body not in task.log()


@pytest.mark.req("OUT-1", "OUT-6", "OUT-7")
def test_output_is_there_from_the_first_byte_and_outlives_every_process(home: str) -> None:
    task = Task.shell("echo first; echo err >&2; sleep 60")
    task.wait_for_log("first")  # while it runs, and although nothing is printed after it
    pid, runner = task.agent_pid(), task.runner_pid()
    recorder = processes.look(pid).parent_pid
    task.stop()
    eventually(lambda: not any(map(processes.is_alive, (pid, runner, recorder))), what="all are gone")
    assert task.read(*RUN, "stdout.log") == b"first\n"
    assert task.read(*RUN, "stderr.log") == b"err\n"
    assert sorted(task.log().splitlines()) == ["err", "first"]
    assert sorted(task.manifest()["output_tail"].split("\n")) == ["err", "first"]


@pytest.mark.req("OUT-1")
def test_the_log_says_why_each_attempt_ended_though_none_printed_anything(home: str) -> None:
    task = Task.shell("[ $HOLDFAST_RESUME_COUNT = 2 ] || kill -9 $$", "--base-interval", "0.1s")
    task.wait_for("completed")
    ended = "--- attempt {} ended: crashed: killed by signal 9 ---"
    marks = [ended.format(1), "--- attempt 2 (again) ---", ended.format(2), "--- attempt 3 (again) ---"]
    assert task.log().splitlines() == marks


@pytest.mark.req("OUT-1")
def test_later_attempts_append_to_the_log(home: str) -> None:
    task = Task.shell(
        "echo run $HOLDFAST_RESUME_COUNT; [ $HOLDFAST_RESUME_COUNT = 2 ] || kill -9 $$",
        "--base-interval",
        "0.1s",
    )
    task.wait_for("completed")
    ended = "--- attempt {} ended: crashed: killed by signal 9 ---"
    marks = [ended.format(1), "--- attempt 2 (again) ---"], [ended.format(2), "--- attempt 3 (again) ---"]
    assert task.log().splitlines() == ["run 0", *marks[0], "run 1", *marks[1], "run 2"]
    texts = [task.read(path, "stdout.log") for path in task.attempts()]
    assert texts == [b"run 0\n", b"run 1\n", b"run 2\n"]


@pytest.mark.req("OUT-3")
@pytest.mark.parametrize("raw", [True, False], ids=["raw", "event"])
def test_a_line_of_5_mb_is_kept_and_what_follows_is_read(home: str, raw: bool) -> None:
    task = Task.play(Scenario().long_line(5_000_000, raw=raw).say("after it"))
    task.wait_for("completed")
    assert "after it" in task.log().splitlines()
    stdout = task.read("attempts", "001-scripted_run", "stdout.log")
    assert max(map(len, stdout.split(b"\n"))) >= 5_000_000
    assert max(map(len, task.log().splitlines())) < 10_000


@pytest.mark.req("OUT-3", "OUT-6")
def test_a_long_line_at_the_very_end_without_newline_is_not_lost(home: str) -> None:
    task = python("import sys; sys.stdout.write('first\\n' + 'x' * 5_000_000)")
    task.wait_for("completed")
    first, last = task.log().splitlines()
    assert first == "first"
    assert last.startswith("xxx")
    assert "5000000 bytes" in last
    assert os.path.getsize(task.path(*RUN, "stdout.log")) == 5_000_006


@pytest.mark.req("OUT-1")
def test_half_a_line_is_one_line_when_it_is_whole(home: str) -> None:
    task = Task.shell("printf 'half'; sleep 0.3; printf ' and half\\nend without newline'")
    task.wait_for("completed")
    assert task.log() == "half and half\nend without newline\n"


@pytest.mark.req("OUT-1")
def test_half_an_event_is_no_event_until_it_is_whole(home: str) -> None:
    task = Task.play(Scenario().half_line("slowly said", finish_after_s=0.3).say("next"))
    task.wait_for("completed")
    assert [event["text"] for event in task.events("agent.text")][-1] == "next"
    offsets = [event["offset"] for event in task.events("agent.")]
    assert offsets == sorted(offsets)


@pytest.mark.req("OUT-2")
def test_bytes_that_are_no_text_do_no_harm(home: str) -> None:
    task = python(
        r"import os; os.write(1, b'\xff\xfe caf\xc3\xa9 \xf0\x9f\n' + bytes(range(256)) + b'\nfine\n')"
    )
    task.wait_for("completed")
    lines = task.log().split("\n")
    assert "café" in lines[0]
    assert lines[-2] == "fine"
    assert task.manifest()["output_tail"].endswith("fine")


@pytest.mark.req("OUT-1", "OUT-3", "SUP-12")
@pytest.mark.parametrize("speaks_json", [False, True], ids=["text", "events"])
def test_a_flood_of_100_mb_is_survived_in_bounded_time_and_memory(home: str, speaks_json: bool) -> None:
    size = 100_000_000
    if speaks_json:
        gate = os.path.join(workspace(), "go")
        task = Task.play(
            Scenario().flood(size, line_bytes=100_000, raw=True).wait_file(gate).say("dry again")
        )
        stdout = task.path("attempts", "001-scripted_run", "stdout.log")
    else:
        gate = os.path.join(workspace(), "go")
        script = (
            f"yes 0123456789abcdef | head -c {size}; until [ -e {gate} ]; do sleep 0.05; done; echo dry again"
        )
        task = Task.shell(script)
        stdout = task.path(*RUN, "stdout.log")
    eventually(lambda: os.path.getsize(stdout) >= size, within_s=30, what="100 MB are printed")
    with open(gate, "w", encoding="utf-8"):
        pass
    runner = task.runner_pid()
    peak_kb = 0

    def is_over() -> bool:
        nonlocal peak_kb
        peak_kb = max(peak_kb, _peak_kb(runner))
        return task.status() == "completed"

    eventually(is_over, within_s=20, what="the flood is digested", journal=task.packet)
    task.wait_for("completed")
    assert 0 < peak_kb < RUNNER_KB
    assert "dry again" in task.log()[-1000:]
    assert os.path.getsize(stdout) >= size
    if not speaks_json:
        assert os.path.getsize(task.path("output.log")) < 50_000_000
        assert "bytes left out" in task.log()


@pytest.mark.req("SUP-12")
def test_a_request_is_answered_during_a_flood(home: str) -> None:
    """An agent that prints faster than we read must not keep a person waiting."""
    task = Task.shell("yes 0123456789abcdef | head -c 2000000000")
    eventually(lambda: os.path.getsize(task.path(*RUN, "stdout.log")) > 1_000_000, what="it floods")
    task.stop()


@pytest.mark.req("SUP-12")
def test_a_request_is_answered_while_the_log_of_an_agent_that_ended_is_read(
    home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last bytes of a large log are read in batches, and the inbox is read between them."""
    gate = os.path.join(workspace(), "go")
    task = Task.play(Scenario().wait_file(gate).flood(2_000_000, line_bytes=20).say("last words"))
    task.wait_for("running")
    task.kill_runner()
    with open(gate, "w", encoding="utf-8"):
        pass
    exited = os.path.join(task.attempts()[0], "exit.json")
    eventually(lambda: os.path.exists(exited), within_s=30, what="the agent has ended")
    # The runner stops after its first chunk, and continues when the request is there and the time of the
    # batch is over. However fast it reads, the rest of the log is left for later batches.
    monkeypatch.setenv("HOLDFAST_FAILPOINT", "ingest.read=stop")
    monkeypatch.setenv("HOLDFAST_FAILPOINT_ONCE", os.path.join(workspace(), "once"))
    task.start_runner()
    monkeypatch.delenv("HOLDFAST_FAILPOINT")
    runner = task.runner_pid()
    eventually(lambda: _stands_still(runner), what="the runner is stopped")
    stopped_mono = clock.mono()
    asking = threading.Thread(target=task.ask, args=("stop",))
    asking.start()
    eventually(lambda: inbox.names(Packet(task.packet)), what="the request is there")
    eventually(lambda: clock.mono() - stopped_mono > ingest.BATCH_S, what="the batch is over")
    os.kill(runner, signal.SIGCONT)
    asking.join(timeout=60)
    task.wait_for("killed", within_s=60)
    types = [event["type"] for event in task.events()]
    last_word = len(types) - types[::-1].index("agent.text") - 1
    assert types.index("request.applied") < last_word
    texts = [event["text"] for event in task.events("agent.text")]
    numbers = [int(text.split()[1]) for text in texts[:-1]]
    assert numbers == list(range(1, len(numbers) + 1))
    assert texts[-1] == "last words"
    # The request stops the task, not the attempt: that agent had ended before.
    (ended,) = task.events("attempt.ended")
    assert ended["outcome"] == "success"
    assert task.manifest()["status_reason"].startswith("stopped by")


@pytest.mark.req("OUT-1")
def test_a_plain_command_is_read_at_intervals_unless_it_is_followed(home: str) -> None:
    task = Task.shell("i=0; while :; do i=$((i+1)); echo line $i; sleep 0.05; done")

    def is_behind() -> bool:
        return _lines(task.read(*RUN, "stdout.log")) - _lines(task.read("output.log")) >= 10

    eventually(is_behind, what="it is read at intervals of half a second", journal=task.packet)
    command = [sys.executable, "-m", "holdfast", "logs", "-f", task.id]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as following:
        assert following.stdout is not None
        fresh = 0
        for line in itertools.islice(following.stdout, 600):
            fresh = fresh + 1 if _lines(task.read(*RUN, "stdout.log")) - int(line.split()[1]) <= 5 else 0
            if fresh >= 30:  # for more than a second, and over two rings of the bell
                break
        following.terminate()
    assert fresh >= 30
    eventually(is_behind, what="and again when nobody follows", journal=task.packet)

    def is_fresh() -> bool:
        printed = _lines(task.read(*RUN, "stdout.log"))
        return _lines(task.ask("logs").stdout.encode()) >= printed

    # A single read is up to date as well, and not by chance.
    eventually(lambda: all(is_fresh() for _ in range(3)), what="a look once is fresh", journal=task.packet)
    task.stop()
    assert task.log().splitlines() == [
        f"line {number}" for number in range(1, _lines(task.log().encode()) + 1)
    ]


def test_progress_is_when_it_was_written_not_when_it_was_read(home: str) -> None:
    """The last line is written while the runner reads by a timer, and is read two seconds later."""
    script = "i=0; while [ ! -e go ]; do i=$((i+1)); echo line $i; sleep 0.05; done; sleep 60"
    task = Task.shell(script, "--base-interval", "0.2s", "--stale", "none")
    log = task.path(*RUN, "stdout.log")
    eventually(
        lambda: _lines(task.read(log)) - _lines(task.read("output.log")) >= 10,
        what="the log is read by a timer",
        journal=task.packet,
    )
    runner = task.runner_pid()
    os.kill(runner, signal.SIGSTOP)
    eventually(lambda: _stands_still(runner), what="the runner is stopped")
    before = task.manifest()["last_progress_at"]
    kin.go()
    # It prints twenty times a second, so that after two seconds of silence its last line is written.
    eventually(lambda: clock.now() - os.stat(log).st_mtime > 2.0, what="two seconds have passed")
    written_at = os.stat(log).st_mtime
    os.kill(runner, signal.SIGCONT)
    eventually(lambda: task.manifest()["last_progress_at"] != before, what="progress", journal=task.packet)
    task.stop()
    shown_at = clock.parse_iso(task.manifest()["last_progress_at"])
    assert abs(shown_at - written_at) < 1.0


def test_a_task_that_prints_too_much_is_interrupted(home: str) -> None:
    task = Task.shell("while :; do echo 0123456789abcdef; done", "--output-limit", "1000000")
    manifest = task.wait_for("interrupted")
    assert "1000000" in manifest["interrupt"]["reason"]
    assert manifest["interrupt"]["requested"] is True
    assert manifest["pid"] is None
    assert task.ask("wait").returncode == 4
    task.stop()


def _lines(data: bytes) -> int:
    return data.count(b"\n")


def _stands_still(pid: int) -> bool:
    found = processes.look(pid)
    return found is not None and found.state == "T"


def _peak_kb(pid: int) -> int:
    """The peak memory of a process; 0 if it has exited."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
            return next((int(line.split()[1]) for line in file if line.startswith("VmHWM")), 0)
    except OSError:
        return 0
