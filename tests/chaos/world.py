"""A home with a full queue, and the commands that a user would type."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

from holdfast.packet import load
from holdfast.store.layout import Home
from tests.support import processes

#: A task of about a second that records in its own file when it began, that it is alive, and when it ended.
SCRIPT = """
stamp() { echo "$1 $$ $(date +%s.%N)" >> "stamps/$HOLDFAST_TASK"; }
stamp begin
for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.1; stamp alive; done
stamp end
"""
#: As many as one import takes.
IMPORT = 100
ENDS = frozenset({"completed", "failed", "abandoned", "killed"})


class World:
    """One home below a temporary directory."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.project = os.path.join(root, "work")
        self.home = Home(os.path.join(root, "home"))
        os.makedirs(os.path.join(self.project, "stamps"))
        os.makedirs(os.path.join(root, "config", "holdfast"))
        with open(os.path.join(root, "config", "holdfast", "config.toml"), "w", encoding="utf-8") as file:
            # The task is not at fault for the kills: retries are not limited.
            file.write(
                'max_retries = 100000\nbase_interval = "0.2s"\nmax_interval = "1s"\nmax_failures = 0\n'
            )
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": root,
            "TMPDIR": root,
            "XDG_CONFIG_HOME": os.path.join(root, "config"),
            "HOLDFAST_HOME": self.home.path,
            "LANG": "C.UTF-8",
        }

    def holdfast(self, *args: str, timeout_s: float = 120.0) -> subprocess.CompletedProcess[str]:
        """One command of a user."""
        return subprocess.run(
            [sys.executable, "-P", "-m", "holdfast", *args],
            env=self.env,
            cwd=self.project,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    def fill(self, count: int) -> None:
        """Queue the tasks before a keeper starts."""
        self.holdfast("down")
        for first in range(0, count, IMPORT):
            path = os.path.join(self.root, f"items-{first}.jsonl")
            with open(path, "w", encoding="utf-8") as file:
                for number in range(first, min(first + IMPORT, count)):
                    item = {
                        "id": f"t{number:04d}",
                        "title": f"task {number}",
                        "command": ["sh", "-c", SCRIPT],
                    }
                    file.write(json.dumps(item) + "\n")
            done = self.holdfast("queue", "import", path, "--trust-project", timeout_s=600.0)
            assert done.returncode == 0, done.stderr
        assert len(load.task_ids(self.home)) == count, done.stderr

    def up(self, slots: int) -> None:
        """Let the keeper work the queue."""
        done = self.holdfast("up", "--slots", str(slots), "--iteration-delay", "0")
        assert done.returncode == 0, done.stderr

    def down(self) -> None:
        """Stop the keeper."""
        self.holdfast("down")

    def status_of(self, task_id: str) -> str:
        """What a task is doing."""
        return str(load.read_manifest(self.home.packet(task_id))["status"])

    def open_tasks(self) -> list[str]:
        """Tasks that have not ended."""
        return [
            task_id
            for task_id in load.task_ids(self.home)
            if not os.path.exists(self.home.packet(task_id).task_done)
        ]

    def close(self) -> None:
        """Leave nothing running, whatever happened."""
        self.holdfast("down")
        ends = time.monotonic() + 10.0
        while time.monotonic() < ends and processes.marked(self.root):
            processes.kill(processes.marked(self.root))
