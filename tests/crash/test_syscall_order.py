"""The order of system calls, as seen by the kernel: files are on disk in the promised order."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import NamedTuple

import pytest

from tests.conftest import Place
from tests.crash.drive import Case
from tests.crash.scenarios import BY_NAME
from tests.support.tools import need

_TRACED = (
    "openat,write,pwrite64,fsync,fdatasync,rename,renameat,renameat2,ftruncate,close,fork,clone,clone3,vfork"
)
_LINE = re.compile(r"(\w+)\((.*)\) += (-?\d+)")
_DESCRIPTOR = re.compile(r"\d+<([^>]*)>")
#: A path, and the open directory to which it may be relative.
_PATH = re.compile(r'(?:<([^>]*)>, )?"([^"]*)"')


class Call(NamedTuple):
    """One system call: its name, the file of its descriptor or its last path, and its arguments."""

    name: str
    path: str
    arguments: str


@pytest.fixture
def traced(place: Place, clean_env: dict[str, str]) -> tuple[Case, list[list[Call]]]:
    """A plain task, run to its end under strace; the calls of each process."""
    need("strace")
    case = Case(place.root, "traced")
    BY_NAME["plain"].begin(case)
    prefix = os.path.join(case.root, "calls")
    command = ["strace", "-ff", "-y", "-s", "8", "-e", f"trace={_TRACED}", "-e", "signal=none", "-o", prefix]
    command += [sys.executable, "-P", "-m", "holdfast.runner", case.packet.path]
    done = subprocess.run(command, env=case.env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert os.path.exists(case.packet.task_done)
    files = sorted(name for name in os.listdir(case.root) if name.startswith("calls."))
    return case, [_calls(os.path.join(case.root, name)) for name in files]


def _calls(path: str) -> list[Call]:
    found: list[Call] = []
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            match = _LINE.match(line)
            if match is None or match[3].startswith("-"):
                continue
            name, arguments = match[1], match[2]
            paths = _paths(arguments) if name == "openat" or name.startswith("rename") else []
            descriptor = _DESCRIPTOR.match(arguments)
            found.append(Call(name, paths[-1] if paths else descriptor[1] if descriptor else "", arguments))
    return found


def _paths(arguments: str) -> list[str]:
    return [os.path.join(folder, path) for folder, path in _PATH.findall(arguments)]


def _index(calls: list[Call], name: str, path: str, *, after: int = -1) -> int:
    """Index of the first such call after `after`."""
    for index, call in enumerate(calls):
        if index > after and call.name.startswith(name) and call.path == path:
            return index
    raise AssertionError(f"no {name} of {path} behind call {after}")


def _writer_of(processes: list[list[Call]], path: str) -> list[Call]:
    writers = [
        calls for calls in processes if any(c.name.startswith("rename") and c.path == path for c in calls)
    ]
    assert len(writers) == 1, f"{path} has {len(writers)} writers"
    return writers[0]


@pytest.mark.req("PKT-10")
@pytest.mark.parametrize(
    "name",
    [
        "attempts/001-command_run/identity.json",
        "attempts/001-command_run/exit.json",
        "outputs/command_run.gate_result.json",
        "done/command_run.done",
        "done/_task.done",
    ],
)
def test_a_durable_file_is_synced_before_it_gets_its_name_and_its_directory_after(
    traced: tuple[Case, list[list[Call]]], name: str
) -> None:
    case, processes = traced
    path = os.path.join(case.packet.path, name)
    calls = _writer_of(processes, path)
    renamed = _index(calls, "rename", path)
    temporary = _paths(calls[renamed].arguments)[0]
    assert os.path.dirname(temporary) == os.path.dirname(path)
    assert os.path.basename(temporary).startswith(".")
    opened = _index(calls, "openat", temporary)
    written = _index(calls, "write", temporary, after=opened)
    synced = _index(calls, "fsync", temporary, after=written)
    folder = _index(calls, "fsync", os.path.dirname(path), after=renamed)
    assert opened < written < synced < renamed < folder
    later = [c for c in calls[synced:renamed] if c.name == "write" and c.path == temporary]
    assert later == [], "nothing is written after the sync"


@pytest.mark.req("PKT-10", "PKT-17")
def test_an_event_is_synced_before_the_manifest_shows_it(traced: tuple[Case, list[list[Call]]]) -> None:
    case, processes = traced
    calls = _writer_of(processes, case.packet.manifest)
    appends = [i for i, c in enumerate(calls) if c.name == "write" and c.path == case.packet.journal]
    shows = [i for i, c in enumerate(calls) if c.name.startswith("rename") and c.path == case.packet.manifest]
    assert len(appends) >= 5
    for appended in appends:
        synced = _index(calls, "fdatasync", case.packet.journal, after=appended)
        between = [calls[i] for i in range(appended + 1, synced)]
        assert between == [], "the sync follows the append at once"
        shown = next(index for index in shows if index > appended)
        assert synced < shown
    changes = ("write", "pwrite64", "ftruncate")
    writers = [
        calls
        for calls in processes
        if any(c.path == case.packet.journal and c.name in changes for c in calls)
    ]
    assert len(writers) == 1, "the journal has one writer"


@pytest.mark.req("PKT-11")
def test_the_end_is_recorded_in_order_and_the_done_marker_last(traced: tuple[Case, list[list[Call]]]) -> None:
    case, processes = traced
    packet = case.packet
    calls = _writer_of(processes, packet.task_done)
    evidence = _index(calls, "rename", packet.gate_result("command_run"))
    marker = _index(calls, "rename", packet.stage_done("command_run"))
    summary = _index(calls, "rename", packet.summary)
    task_done = _index(calls, "rename", packet.task_done)
    last_append = max(i for i, c in enumerate(calls) if c.name == "write" and c.path == packet.journal)
    last_manifest = max(
        i for i, c in enumerate(calls) if c.name.startswith("rename") and c.path == packet.manifest
    )
    assert evidence < marker < last_append < last_manifest < summary < task_done


@pytest.mark.req("PKT-11", "LCH-7")
def test_the_exit_record_is_durable_before_the_lock_of_the_attempt_is_free(
    traced: tuple[Case, list[list[Call]]],
) -> None:
    case, processes = traced
    directory = case.packet.attempt("001-command_run")
    calls = _writer_of(processes, directory.exit)
    durable = _index(calls, "fsync", directory.path, after=_index(calls, "rename", directory.exit))
    early = [c for c in calls[:durable] if c.name == "close" and c.path == directory.lock]
    assert early == [], "the recorder holds the lock until it has written; only its exit releases it"
    signed = _index(calls, "pwrite64", directory.lock)
    assert signed < durable


@pytest.mark.req("LCH-7")
def test_the_identity_is_durable_before_the_recorder_could_see_the_agent_run(
    traced: tuple[Case, list[list[Call]]],
) -> None:
    case, processes = traced
    directory = case.packet.attempt("001-command_run")
    calls = _writer_of(processes, directory.identity)
    durable = _index(calls, "fsync", directory.path, after=_index(calls, "rename", directory.identity))
    output = [i for i, c in enumerate(calls) if c.name == "write" and c.path == directory.stdout]
    assert output, "this process became the agent"
    assert durable < output[0]
