"""A runner may drive its task more than once in one process: it keeps no descriptor of the last time."""

from __future__ import annotations

import subprocess
import sys

from holdfast.model.spec import Limits, StageSpec, TaskSpec
from holdfast.model.status import Status
from holdfast.packet.create import create
from holdfast.paths import ensure_home
from holdfast.store.layout import Home

_RUN = """
import os, sys
from holdfast.runner import main
main.run(sys.argv[1])
links = [f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd")]
opened = [os.readlink(link) for link in links if os.path.lexists(link)]
print([path for path in opened if path.startswith(sys.argv[1])])
"""


def test_a_runner_that_has_left_its_task_has_no_file_of_it_open(home: str) -> None:
    ensure_home(home)
    spec = TaskSpec(
        task_id="it", task_name="it", goal="", agent="command", command=["sleep", "0.3"], project_dir=home,
        stages=(StageSpec(name="command_run", agent="command"),), limits=Limits(),
    )  # fmt: skip
    packet = create(Home(home), spec, prompt=None, env={"env": {}}, status=Status.SPAWNING)
    argv = [sys.executable, "-c", _RUN, packet.path]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done
