"""Sixteen processes claim from one queue: everything once, and nothing twice. HOLDFAST_QUEUE_FULL=1: ten
thousand items."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from holdfast.queue.engine import Item
from holdfast.queue.local import LocalQueue
from holdfast.store.layout import Home

PROCESSES = 16
ITEMS = 10_000 if os.environ.get("HOLDFAST_QUEUE_FULL") == "1" else 1_000

_CLAIMER = """
import sys
from holdfast.queue import claim_owner
from holdfast.queue.engine import Capacity
from holdfast.queue.local import LocalQueue
from holdfast.store.layout import Home

me = claim_owner.this_process()
with LocalQueue(Home(sys.argv[1])) as queue:
    sys.stdin.readline()
    while (item := queue.claim(me)) is not None:
        print(item.task_id)
        if item.attempts == 1 and item.task_id.endswith("7"):
            queue.release(item.task_id, owner=me)
        else:
            assert queue.ack(item.task_id, owner=me)
"""


@pytest.mark.req("W-C6")
@pytest.mark.timeout(600)
def test_sixteen_processes_claim_each_item_once(home: str) -> None:
    with LocalQueue(Home(home)) as queue:
        queue.add_many([Item(task_id=f"t{number:05d}", priority=number % 7) for number in range(ITEMS)])
    claimers = [
        subprocess.Popen(
            [sys.executable, "-c", _CLAIMER, home], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(PROCESSES)
    ]
    for claimer in claimers:
        assert claimer.stdin is not None
        claimer.stdin.write("go\n")
        claimer.stdin.flush()
    taken: list[str] = []
    for claimer in claimers:
        said, _ = claimer.communicate(timeout=500)
        assert claimer.returncode == 0
        taken += said.split()
    # What ends with 7 was given back once, and so was delivered twice, one after the other.
    once = [f"t{number:05d}" for number in range(ITEMS)]
    assert sorted(taken) == sorted(once + [task_id for task_id in once if task_id.endswith("7")])
    with LocalQueue(Home(home)) as queue:
        assert queue.items() == []
