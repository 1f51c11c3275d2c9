"""Row 7: an agent's lines into events and state, compared with json.loads of the same lines in the same run.

Four questions: what a reader costs per line, what a line costs from the file to the journal and the state,
how long a new runner takes for an unread backlog, and how soon a printed result is known.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

from benchmarks.place import Holdfast, Place, events
from benchmarks.stats import median, percentile
from benchmarks.table import Baseline, Line
from holdfast import clock
from holdfast.agents import registry
from holdfast.model import events as ev
from holdfast.model.spec import Limits, StageSpec, TaskSpec
from holdfast.model.status import Status
from holdfast.packet import load
from holdfast.packet.create import create
from holdfast.paths import ensure_home
from holdfast.redact import Redactor
from holdfast.runner.ledger import Ledger
from holdfast.runner.output.ingest import Ingest
from holdfast.runner.output.position import IngestPosition
from holdfast.store.journal import Journal
from holdfast.store.layout import Home
from tests.support import processes
from tests.support.waiting import eventually

CAPTURES = os.path.join(
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "tests", "captures"
)
AGENTS = tuple(sorted(set(registry.BUILT_IN) - {"command", "scripted"}))
#: A recording with a line of megabytes tells nothing about lines.
_LINE_BYTES = 20_000
#: Text in lines of streaming deltas: Claude, Gemini, Copilot, Pi. Codex and OpenCode print only complete
#: texts.
_PIECES = (b'"content_block_delta"', b'"delta":true', b'"assistant.message_delta"', b'"text_delta"')
_DELTAS_PER_LINE = 20
_TARGET_PER_S = 300_000
#: The backlog: a streaming model, with a complete message and a tool call now and then.
_DELTAS_PER_MESSAGE = 60
_BACKLOG_BYTES = 1_000_000_000


def ingest(place: Place) -> list[Line]:
    """All four."""
    return [*_readers(place), *_whole(place), *_backlog(place), _result(place)]


# ── cost of a reader ────────────────────────────────────────────────────────


def _readers(place: Place) -> list[Line]:
    count, repeats = place.pick(100_000, 10_000), place.pick(7, 3)
    lines: list[Line] = []
    for agent in AGENTS:
        dense = recorded(agent, count)
        ours: list[float] = []
        theirs: list[float] = []
        for _ in range(repeats):
            ours.append(_per_line_us(registry.adapter(agent).reader().read, dense))
            theirs.append(_per_line_us(json.loads, dense))
        value, loads = median(ours), median(theirs)
        size = sum(map(len, dense)) + len(dense)
        lines.append(
            _speed(
                f"{agent}: one line of a dense stream, read into events (CPU)",
                value,
                note=f"{agent}: {1e3 / value:.0f}k lines/s, {size / len(dense) / value:.0f} MB/s, "
                f"{size / len(dense):.0f} bytes a line",
                baseline=Baseline(name="json.loads", value=loads),
            )
        )
    return lines


def _speed(what: str, us_per_line: float, *, note: str, baseline: Baseline | None = None) -> Line:
    return Line(
        row=7,
        what=what,
        value=us_per_line,
        unit="µs",
        baseline=baseline,
        target=f"≥ {_TARGET_PER_S // 1000}k lines/s",
        met=1e6 / us_per_line >= _TARGET_PER_S,
        notes=(note,),
    )


def recorded(agent: str, count: int) -> list[bytes]:
    """`count` lines, as dense as those of a streaming model: lines of an agent's recorded runs, with
    _DELTAS_PER_LINE deltas per other line if the program prints deltas."""
    with open(os.path.join(CAPTURES, agent, "labels.json"), "rb") as file:
        labels: dict[str, dict] = json.load(file)
    pieces: list[bytes] = []
    others: list[bytes] = []
    # A run fails once, at its end: the cost of an error tells nothing about a stream.
    for name in sorted(name for name, label in labels.items() if label["outcome"] == "success"):
        with open(os.path.join(CAPTURES, f"{name}.stdout.jsonl"), "rb") as file:
            lines = [line for line in file.read().split(b"\n")[:-1] if line.startswith(b"{")]
        for line in lines:
            if len(line) < _LINE_BYTES:
                (pieces if any(mark in line for mark in _PIECES) else others).append(line)
    if pieces:
        spread = len(others) * _DELTAS_PER_LINE
        pieces = (pieces * (spread // len(pieces) + 1))[:spread]
    step = _DELTAS_PER_LINE if pieces else 0
    found: list[bytes] = []
    for number, line in enumerate(others):
        found += [*pieces[number * step : (number + 1) * step], line]
    return (found * (count // len(found) + 1))[:count]


def _per_line_us(read, lines: list[bytes]) -> float:
    # CPU, not wall time, because the machine may be busy.
    began = time.process_time_ns()
    for line in lines:
        read(line)
    return (time.process_time_ns() - began) / len(lines) / 1e3


# ── from the file to the journal, the state and output.log ──────────────────


def _whole(place: Place) -> list[Line]:
    count, repeats = place.pick(100_000, 20_000), place.pick(5, 2)
    lines: list[Line] = []
    for agent in AGENTS:
        dense = recorded(agent, count)
        found = [_ingested(place, agent, dense) for _ in range(repeats)]
        value, events_per_line = median([us for us, _ in found]), found[0][1] / len(dense)
        lines.append(
            _speed(
                f"{agent}: one line of the same stream, from the file into journal, state and output.log "
                f"(CPU)",
                value,
                note=f"{agent}: {1e3 / value:.0f}k lines/s from the file, {events_per_line:.2f} events a "
                f"line, "
                f"{1e3 * events_per_line / value:.0f}k events/s",
            )
        )
    return lines


def _ingested(place: Place, agent: str, lines: list[bytes]) -> tuple[float, int]:
    """CPU per line, and the number of events per line."""
    home = place.new("home")
    spec = TaskSpec(
        task_id="t", task_name="t", goal="", agent=agent, project_dir=home,
        stages=(StageSpec(name="main", agent=agent),), limits=Limits(),
    )  # fmt: skip
    packet = create(Home(ensure_home(home)), spec, prompt=None, env={"env": {}}, status=Status.SPAWNING)
    ledger = Ledger(packet, load.fold(packet), Journal(packet.journal), Redactor({"A_TOKEN": "x" * 20}))
    ledger.record(ev.AttemptOpened(attempt=1, attempt_id="ses_1", stage="main", agent=agent, mode="fresh"))
    (attempt,) = ledger.task.current
    directory = packet.attempt(attempt.dirname)
    os.makedirs(directory.path, exist_ok=True)
    with open(directory.stdout, "wb") as file:
        file.write(b"\n".join(lines) + b"\n")
    position = IngestPosition(packet)
    ours = Ingest(ledger, registry.adapter(agent), attempt, directory, position=position)
    began = time.process_time_ns()
    while ours.take(final=True):
        pass
    took_ns = time.process_time_ns() - began
    for opened in (ours, position, ledger):
        opened.close()
    return took_ns / len(lines) / 1e3, len(events(packet.path)) - 2


# ── unread backlog ──────────────────────────────────────────────────────────


def _backlog(place: Place) -> list[Line]:
    wanted = place.pick(_BACKLOG_BYTES, 50_000_000)
    block = _streamed()
    times = wanted // len(block) + 1
    script = place.path("backlog")
    with open(script, "wb") as file:
        file.write(block)
    size, count = len(block) * times, block.count(b"\n") * times
    holdfast = Holdfast(place)
    _agent(
        place,
        f"while test ! -e go; do sleep 0.01; done\ni=0\nwhile test $i -lt {times}; do cat {script}; "
        f"i=$((i+1)); done\n"
        f"cat {_ending(place)}\n",
    )
    project = place.new("project")
    packet = holdfast.run("--agent", "claude", "--output-limit", "0", "go", cwd=project)
    pid = eventually(lambda: _runner(packet), what="its runner lives")
    eventually(lambda: _manifest(packet)["pid"], what="the agent runs")
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: not processes.is_alive(pid), what="the runner is gone")
    with open(os.path.join(project, "go"), "w", encoding="utf-8"):
        pass
    directory = os.path.join(packet, "attempts", sorted(os.listdir(os.path.join(packet, "attempts")))[0])
    eventually(
        lambda: os.path.exists(os.path.join(directory, "exit.json")), within_s=120, what="the agent has ended"
    )
    loads_s = _per_line_us(json.loads, block.split(b"\n")[:-1]) * count / 1e6
    began = time.monotonic_ns()
    _start_runner(holdfast, packet)
    eventually(lambda: _manifest(packet)["status"] == "completed", within_s=300, what="the task is completed")
    took_s = (time.monotonic_ns() - began) / 1e9
    scaled_s = took_s * _BACKLOG_BYTES / size
    return [
        Line(
            row=7,
            what="1 GB of backlog: new runner → all of it read, task completed",
            value=scaled_s,
            unit="s",
            baseline=Baseline(name="json.loads", value=loads_s * _BACKLOG_BYTES / size),
            target="≤ 5 s",
            met=scaled_s <= 5.0,
            notes=(
                f"{size / 1e6:.0f} MB, {count} lines, of which {_DELTAS_PER_MESSAGE} in "
                f"{_DELTAS_PER_MESSAGE + 3} are deltas: {count / took_s / 1e3:.0f}k lines/s with the "
                f"runner's start and the task's end",
            ),
        )
    ]


def _streamed() -> bytes:
    """A block of a long run: deltas of a text, the text, a call and its result; each with its own id."""
    parts: list[bytes] = []
    for number in range(200):
        for delta in range(_DELTAS_PER_MESSAGE):
            event = {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "text_delta", "text": f"word {delta} of {number} "},
            }
            parts.append(_line("stream_event", event=event, parent_tool_use_id=None))
        content = [{"type": "text", "text": f"message {number} " * 40}]
        parts.append(
            _line("assistant", message={"id": f"msg_{number}", "role": "assistant", "content": content})
        )
        call = {
            "type": "tool_use",
            "id": f"toolu_{number}",
            "name": "Bash",
            "input": {"command": "make test"},
        }
        parts.append(
            _line("assistant", message={"id": f"msg_{number}", "role": "assistant", "content": [call]})
        )
        result = {
            "type": "tool_result",
            "tool_use_id": f"toolu_{number}",
            "content": "ok " * 300,
            "is_error": False,
        }
        parts.append(_line("user", message={"role": "user", "content": [result]}))
    return b"".join(parts)


def _line(kind: str, **fields: object) -> bytes:
    data = {"type": kind, **fields, "session_id": "6f1c9d2e-0000-4000-8000-000000000001", "uuid": "0" * 36}
    return json.dumps(data, separators=(",", ":")).encode() + b"\n"


def _ending(place: Place) -> str:
    path = place.path("ending")
    with open(path, "wb") as file:
        file.write(_line("result", subtype="success", is_error=False, result="done", num_turns=1, usage={}))
    return path


def _agent(place: Place, script: str, *, interpreter: str = "/bin/sh") -> None:
    """A fake `claude`, first in PATH."""
    path = place.path("bin", "claude")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"#!{interpreter}\n{script}")
    os.chmod(path, 0o755)


def _manifest(packet: str) -> dict:
    with open(os.path.join(packet, "manifest.json"), "rb") as file:
        return json.load(file)


def _runner(packet: str) -> int | None:
    runner = _manifest(packet)["runner"]
    return runner["pid"] if runner else None


def _start_runner(holdfast: Holdfast, packet: str) -> None:
    script = (
        "import sys; from holdfast.runner_process import start_runner; "
        "from holdfast.store.layout import Packet; start_runner(Packet(sys.argv[1]))"
    )
    subprocess.run([sys.executable, "-P", "-c", script, packet], env=holdfast.env, timeout=30, check=True)


# ── latency of a result ─────────────────────────────────────────────────────


def _result(place: Place) -> Line:
    """From the moment before the agent prints its result to the event in the journal."""
    repeats = place.pick(30, 5)
    notes = place.path("printed")
    holdfast = Holdfast(place)
    _agent(
        place,
        "import os, sys, time\n"
        f"block = open({place.path('backlog')!r}, 'rb').read(200_000)\n"
        "os.write(1, block[: block.rindex(b'\\n') + 1])\ntime.sleep(0.3)\n"
        f"ending = open({_ending(place)!r}, 'rb').read()\n"
        f"notes = os.open({notes!r}, os.O_WRONLY | os.O_CREAT | os.O_APPEND)\n"
        "at = time.time()\nos.write(1, ending)\nos.write(notes, b'%.6f\\n' % at)\n",
        interpreter=f"{sys.executable} -IS",
    )
    took_ms: list[float] = []
    for turn in range(repeats):
        packet = holdfast.run("--agent", "claude", "go", cwd=place.root)
        eventually(
            lambda packet=packet: events(packet, "agent.result"), within_s=30, what="its result is known"
        )
        (result,) = events(packet, "agent.result")
        with open(notes, encoding="utf-8") as file:
            printed_at = float(file.read().split()[turn])
        took_ms.append((clock.parse_iso(result["at"]) - printed_at) * 1e3)
        eventually(
            lambda packet=packet: _manifest(packet)["status"] == "completed", what="the task is completed"
        )
    value = median(took_ms)
    return Line(
        row=7,
        what=f"result printed → result in the journal, p50 of {repeats}",
        value=max(value, 0.0),
        unit="ms",
        target="≤ 5 ms",
        met=value <= 5.0,
        notes=(f"p99 is {percentile(took_ms, 99):.1f} ms; the journal's times have milliseconds",),
    )
