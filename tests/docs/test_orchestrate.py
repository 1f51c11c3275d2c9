"""docs/guides/orchestrate.md: the script starts 20 tasks, is killed, comes back, and reads little."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from typing import Any

import pytest

import holdfast
from holdfast.testing import Scenario
from tests.support import loops, pages
from tests.support.tasks import Task, workspace
from tests.support.waiting import eventually

GUIDE = "docs/guides/orchestrate.md"
TASKS, ASKING, MOST_BYTES, MOST_LINES = 20, 7, 20_000, 40
LIMIT_S = 100.0


def script() -> str:
    found = re.findall(r"^```python\n(.*?)^```$", pages.read(GUIDE), re.DOTALL | re.MULTILINE)
    assert len(found[0].splitlines()) <= MOST_LINES
    return found[0]


@pytest.mark.timeout(240)
def test_twenty_tasks_a_kill_a_question_and_less_than_20_kb(
    home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOLDFAST_KEEPER")
    monkeypatch.chdir(workspace())
    go = os.path.join(workspace(), "go")
    steps = Scenario().say("looking").wait_file(go, limit_s=200).say("It is fine.").result("done")
    plain = steps.write_to(os.path.join(workspace(), "plain.json"))
    asking = Scenario().interrupt_request("which branch?", once=True).sleep(60, once=True)
    other = asking.say("It is fine.").result("done").write_to(os.path.join(workspace(), "asking.json"))
    program = script().replace(
        'agent="claude"',
        f'agent="scripted", options={{"scenario": {str(other)!r} if number == {ASKING} else {str(plain)!r}}}',
    )
    with open("orchestrate.py", "w", encoding="utf-8") as file:
        file.write(program)
    with open("work.txt", "w", encoding="utf-8") as file:
        file.writelines(f"Review part {number}.\n" for number in range(1, TASKS + 1))
    loops.settings('slots = 4\niteration_delay = "0s"\n')
    argv = [sys.executable, "orchestrate.py", "nightly", "work.txt"]
    printed: list[bytes] = []

    def killed_when(condition: Any) -> None:
        with open("printed", "wb") as out, open("errors", "wb") as err:
            life = subprocess.Popen(argv, stdout=out, stderr=err)
        try:
            eventually(condition, LIMIT_S, "the script got this far")
        finally:
            life.send_signal(signal.SIGKILL)
            life.wait(10)
        with open("printed", "rb") as out:
            printed.append(out.read())

    # Killed while it starts them, then while they work.
    killed_when(lambda: len(holdfast.tasks(labels={"batch": "nightly"})) >= 5)
    killed_when(lambda: len(holdfast.tasks(labels={"batch": "nightly"})) == TASKS)
    with open(go, "wb"):
        pass
    last = subprocess.run(argv, capture_output=True, timeout=LIMIT_S, check=False)
    assert last.returncode == 0, last.stderr
    printed.append(last.stdout)
    infos = holdfast.tasks(labels={"batch": "nightly"})
    assert {info.id for info in infos} == {f"nightly-{number}" for number in range(1, TASKS + 1)}
    assert {info.status for info in infos} == {"completed"}
    assert len(holdfast.tasks()) == TASKS, "nothing was started twice"
    read = sum(map(len, printed))
    for info in infos:
        with open(os.path.join("nightly", f"{info.id}.md"), "rb") as file:
            summary = file.read()
        assert b"The task is completed" in summary
        read += len(summary)
    assert b"nightly-7 asks: which branch?" in b"".join(printed)
    answers = Task(os.path.join(home, "tasks", "nightly-7")).manifest()["answers"]
    assert answers[0]["answer"].startswith("Decide it yourself")
    for line in b"".join(printed).splitlines():
        if line.startswith(b"{") and line.endswith(b"}"):
            assert len(line) <= 4096
            json.loads(line)
    assert read < MOST_BYTES, read
    print(f"read {read} bytes")
