"""Row 13: the first answer of `holdfast mcp`, compared with bare Python and a server on the official SDK."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from benchmarks.place import Place, program
from benchmarks.stats import median
from benchmarks.table import Baseline, Line

#: Targets: CPU as a multiple of bare Python, and memory.
_CPU_RATIO, _MB = 3.0, 12.0
_SDK = "2.3.0"
_FIRST = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "bench", "version": "1"},
    },
}
_BARE = "import sys; sys.stdin.readline(); print(flush=True); sys.stdin.read()"


def first_answer(place: Place) -> list[Line]:
    """Interleaved: each server is started, asked to initialize, and ended by the end of its stdin."""
    repeats = place.pick(15, 3)
    env = place.env(HOLDFAST_HOME=place.new("home"))
    sdk = _sdk_python()
    here = os.path.dirname(__file__)
    commands = {
        "holdfast": [program(), "mcp"],
        "bare": [sys.executable, "-c", _BARE],
        **({"sdk": [sdk, os.path.join(here, "../programs/sdk_server.py")]} if sdk else {}),
    }
    found: dict[str, list[tuple[float, float]]] = {key: [] for key in commands}
    for _ in range(repeats + 1):
        for key, argv in commands.items():
            found[key].append(_measure(argv, env))
    cpu_ms = {key: median([cpu for cpu, _ in values[1:]]) for key, values in found.items()}
    mb = {key: median([size for _, size in values[1:]]) for key, values in found.items()}
    note = (
        (f"bare Python that answers one line: {mb['bare']:.1f} MB",)
        if sdk
        else (f"the official SDK {_SDK} is not installed: make mcp-setup",)
    )
    name = f"a server on the official SDK {_SDK}"
    return [
        Line(
            row=13,
            what="`holdfast mcp`: CPU until its first answer",
            value=cpu_ms["holdfast"],
            unit="ms",
            baseline=Baseline(name="bare python", value=cpu_ms["bare"]),
            target=f"≤ {_CPU_RATIO:g}× bare Python",
            met=cpu_ms["holdfast"] <= _CPU_RATIO * cpu_ms["bare"],
        ),
        Line(
            row=13,
            what="`holdfast mcp`: CPU until its first answer",
            value=cpu_ms["holdfast"],
            unit="ms",
            baseline=Baseline(name=name, value=cpu_ms.get("sdk")),
        ),
        Line(
            row=13,
            what="`holdfast mcp`: memory after its first answer",
            value=mb["holdfast"],
            unit="MB",
            baseline=Baseline(name=name, value=mb.get("sdk")),
            target=f"≤ {_MB:g} MB",
            met=mb["holdfast"] <= _MB,
            notes=note,
        ),
    ]


def _sdk_python() -> str | None:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    path = os.path.join(base, "holdfast", "mcp", f"sdk-{_SDK}", "bin", "python")
    return path if os.path.exists(path) else None


def _measure(argv: list[str], env: dict[str, str]) -> tuple[float, float]:
    """CPU in ms and resident memory in MB at the first answer; PSS would depend on what else runs."""
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(_FIRST).encode() + b"\n")
    process.stdin.flush()
    process.stdout.readline()
    cpu_ms, size = _cpu_ms(process.pid), _resident_mb(process.pid)
    process.stdin.close()
    process.stdout.close()
    process.wait(60)
    return cpu_ms, size


def _cpu_ms(pid: int) -> float:
    with open(f"/proc/{pid}/schedstat", encoding="utf-8") as file:
        return int(file.read().split()[0]) / 1e6


def _resident_mb(pid: int) -> float:
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        (line,) = [line for line in file if line.startswith("VmRSS:")]
    return int(line.split()[1]) / 1024
