"""audit.jsonl: whole lines from many writers, private, put aside when large; errors block nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from holdfast import clock
from holdfast.store import audit
from holdfast.store.layout import Home


def entries(home: str, **filters) -> list[dict]:
    return list(audit.read(Home(home), **filters))


@pytest.mark.req("AUD-1")
def test_an_entry_has_time_level_and_what_it_was_given(home: str) -> None:
    audit.append(Home(home), {"operation": "task.moved", "task_id": "it", "old": "a", "new": "b", "by": "me"})
    audit.append(Home(home), {"operation": "loop", "level": "warn", "iteration": 3})
    first, second = entries(home)
    assert first["level"] == "info"
    assert abs(clock.parse_iso(first["at"]) - clock.now()) < 60
    assert (first["old"], first["new"], first["by"]) == ("a", "b", "me")
    assert (second["level"], second["iteration"]) == ("warn", 3)
    assert os.stat(Home(home).audit).st_mode & 0o777 == 0o600


def test_entries_are_found_by_task_operation_and_time(home: str) -> None:
    for task_id, operation in (("a", "request.stop"), ("ab", "request.retry"), ("a", "task.moved")):
        audit.append(Home(home), {"operation": operation, "task_id": task_id})
    assert [entry["operation"] for entry in entries(home, task_id="a")] == ["request.stop", "task.moved"]
    assert len(entries(home, operation="request.")) == 2
    assert entries(home, operation="request") == []
    assert entries(home, since=clock.now() + 60) == []
    assert len(entries(home, since=clock.now() - 60)) == 3


def test_what_cannot_be_written_is_left_out(home: str) -> None:
    audit.append(Home(os.path.join(home, "nowhere")), {"operation": "x"})
    audit.append(Home(home), {"operation": object()})
    assert entries(home) == []


def test_what_is_no_file_is_put_aside(home: str) -> None:
    os.mkfifo(Home(home).audit)
    audit.append(Home(home), {"operation": "x"})
    assert [entry["operation"] for entry in entries(home)] == ["x"]
    assert sorted(os.listdir(home)) == ["audit.jsonl", "audit.jsonl.aside-1"]


def test_a_name_without_a_number_is_no_audit_file(home: str) -> None:
    for name in ("2", "²", "01", "9" * 200, "x"):
        with open(os.path.join(home, f"audit.{name}.jsonl"), "wb"):
            pass
    assert [os.path.basename(path) for path in audit.files(Home(home))] == ["audit.2.jsonl", "audit.jsonl"]


def test_half_a_line_is_passed_over(home: str) -> None:
    audit.append(Home(home), {"operation": "one"})
    with open(Home(home).audit, "a", encoding="utf-8") as file:
        file.write('{"operation": "ha\n7\n')
    audit.append(Home(home), {"operation": "two"})
    assert [entry["operation"] for entry in entries(home)] == ["one", "two"]


_WRITER = """
import sys
from holdfast.store import audit
from holdfast.store.layout import Home
audit.ROTATE_BYTES = 20000
for number in range(300):
    line = {"operation": "x", "by": sys.argv[2], "number": number, "reason": "r" * 100}
    audit.append(Home(sys.argv[1]), line)
"""


@pytest.mark.starts_processes
def test_many_writers_and_a_file_that_is_put_aside_lose_nothing(home: str) -> None:
    writers = [subprocess.Popen([sys.executable, "-c", _WRITER, home, str(number)]) for number in range(4)]
    for writer in writers:
        assert writer.wait(60) == 0
    assert len(audit.files(Home(home))) > 3
    seen = {(entry["by"], entry["number"]) for entry in entries(home)}
    assert seen == {(str(writer), number) for writer in range(4) for number in range(300)}
    for path in audit.files(Home(home)):
        assert os.stat(path).st_mode & 0o777 == 0o600
        with open(path, encoding="utf-8") as file:
            assert all(json.loads(line) for line in file)
