"""A task as users see it: started and controlled by the command line, and read from its files."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from typing import Any

from holdfast.errors import Unanswered
from holdfast.store import admitted, seals
from holdfast.store.digest import running
from holdfast.store.layout import Packet
from holdfast.testing import Scenario, SessionMemory
from tests.support import processes
from tests.support.waiting import eventually

ENDS = ("completed", "failed", "abandoned", "killed")


def holdfast(
    *args: str, env: dict[str, str] | None = None, cwd: str | None = None, stdin: bytes = b""
) -> subprocess.CompletedProcess[str]:
    """Run `holdfast ARGS…` to its end, with `env` added to the test's environment."""
    done = subprocess.run(
        [sys.executable, "-m", "holdfast", *args],
        env={**os.environ, **(env or {})},
        cwd=cwd,
        input=stdin,
        capture_output=True,
        timeout=60,
        check=False,
    )
    return subprocess.CompletedProcess(
        done.args, done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
    )


def trust(project: str, *, is_new: bool = False) -> None:
    """`holdfast trust --yes` without a process: the user trusts what the project brings now. With `is_new`,
    it is a packet, as if `holdfast new` had made it."""
    from holdfast.store import trust as store
    from holdfast.views.cli.commands.trust import parts_of

    parts = [] if is_new else parts_of(project)
    store.accept(project, parts, by="a test", is_new=is_new)


class Task:
    """One task, by its packet."""

    def __init__(self, packet: str) -> None:
        self.packet = packet
        self.id = os.path.basename(packet)

    @classmethod
    def start(
        cls,
        *args: str,
        project: str | None = None,
        env: dict[str, str] | None = None,
        stdin: bytes = b"",
    ) -> Task:
        """`holdfast run -d ARGS…`, in `project` (default: the directory `work` beside the home)."""
        done = holdfast("run", "-d", *args, env=env, cwd=project or workspace(), stdin=stdin)
        assert done.returncode == 0, done.stderr
        return cls(os.path.join(os.environ["HOLDFAST_HOME"], "tasks", done.stdout.strip()))

    @classmethod
    def shell(cls, script: str, *flags: str, **given: Any) -> Task:
        """A task that is a shell script."""
        return cls.start(*flags, "--", "sh", "-c", script, **given)

    @classmethod
    def play(cls, scenario: Scenario, *flags: str, prompt: str = "do it", **given: Any) -> Task:
        """A task of the scripted agent."""
        root = os.path.dirname(os.environ["HOLDFAST_HOME"])
        count = sum(name.startswith("scenario") for name in os.listdir(root))
        path = scenario.write_to(os.path.join(root, f"scenario-{count}.json"))
        return cls.start("--agent", "scripted", "-o", f"scenario={path}", *flags, prompt, **given)

    # ── its files ──

    def path(self, *names: str) -> str:
        """A path in the packet."""
        return os.path.join(self.packet, *names)

    def read(self, *names: str) -> bytes:
        """A file of the packet."""
        with open(self.path(*names), "rb") as file:
            return file.read()

    def json(self, *names: str) -> dict[str, Any]:
        """A JSON file of the packet."""
        return json.loads(self.read(*names))

    def manifest(self) -> dict[str, Any]:
        return self.json("manifest.json")

    def status(self) -> str:
        return self.manifest()["status"]

    def events(self, kind: str = "") -> list[dict[str, Any]]:
        """The journal's events, of one type or (`agent.`) of one family; a torn last line is left out."""
        lines = self.read("events.jsonl").split(b"\n")[:-1]
        return [event for event in map(json.loads, lines) if event["type"].startswith(kind)]

    def moves(self) -> list[str]:
        """Its states, in order."""
        return [event["new"] for event in self.events("task.moved")]

    def attempts(self) -> list[str]:
        """The attempts' directories, in order."""
        folder = self.path("attempts")
        return [os.path.join(folder, name) for name in sorted(os.listdir(folder))]

    def log(self) -> str:
        """output.log."""
        return self.read("output.log").decode()

    def memory(self) -> SessionMemory:
        """The scripted agent's records of the task's session."""
        folder = os.path.join(os.environ["HOLDFAST_HOME"], "scripted-agent")
        return SessionMemory(os.path.join(folder, self.manifest()["session_id"]))

    # ── waiting ──

    def wait_for(self, *statuses: str, within_s: float = 15.0) -> dict[str, Any]:
        """Wait until it is in one of these states (an end must be marked). Returns the manifest."""

        def there() -> dict[str, Any] | None:
            manifest = self.manifest()
            status = manifest["status"]
            if status in ENDS and not os.path.exists(self.path("done", "_task.done")):
                return None
            assert status in statuses or status not in ENDS, f"it ended: {status}"
            return manifest if status in statuses else None

        return eventually(there, within_s, f"{self.id} is {' or '.join(statuses)}", journal=self.packet)

    def wait_for_event(self, kind: str, count: int = 1, within_s: float = 15.0) -> dict[str, Any]:
        """Wait until the journal has `count` events of a type. Returns the last of them."""
        return eventually(
            lambda: len(found := self.events(kind)) >= count and found[count - 1],
            within_s,
            f"{self.id} has {count} × {kind}",
            journal=self.packet,
        )

    def wait_for_log(self, text: str, within_s: float = 15.0) -> None:
        """Wait until output.log contains `text`."""
        eventually(lambda: text in self.log(), within_s, f"{text!r} in output.log", journal=self.packet)

    def reseal(self) -> None:
        """Vouch for the journal that a test has written, as if a runner had."""
        admitted.adopt(Packet(self.packet))
        path = Packet(self.packet).seals
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        data, own = self.read("events.jsonl"), seals.Seals(path)
        digest = running()
        digest.update(data)
        own.add(len(data), digest.digest())
        own.close()

    # ── its processes ──

    def agent_pid(self) -> int:
        """The pid of the running agent."""
        return eventually(
            lambda: self.manifest()["status"] == "running" and self.manifest()["pid"],
            what="the agent runs",
            journal=self.packet,
        )

    def runner_pid(self) -> int:
        """The pid of the living runner."""

        def living() -> int | None:
            runner = self.manifest()["runner"]
            return runner["pid"] if runner and processes.is_alive(runner["pid"]) else None

        return eventually(living, what="a runner lives", journal=self.packet) or 0

    def kill_runner(self) -> None:
        """Kill the runner and wait until it is gone."""
        pid = self.runner_pid()
        os.kill(pid, signal.SIGKILL)
        eventually(lambda: not processes.is_alive(pid), what="the runner is gone")

    def start_runner(self) -> None:
        """Start a runner as a keeper does, detached; it outlives this call."""
        argv = [sys.executable, "-c", _STARTER, self.packet]
        done = subprocess.run(argv, capture_output=True, timeout=30, check=False)
        assert done.returncode == 0, done.stderr

    # ── asking ──

    def ask(self, verb: str, *args: str) -> subprocess.CompletedProcess[str]:
        """`holdfast VERB TASK ARGS…`."""
        return holdfast(verb, self.id, *args)

    def ask_patiently(self, verb: str, *args: str) -> None:
        """The same for a request that is applied, however long it takes.

        The command waits two seconds for the answer of the runner, which is not enough on a busy machine.
        Then the request stays pending.
        """
        done = self.ask(verb, *args)
        assert done.returncode in (0, Unanswered.exit_status), done.stderr
        if done.returncode:
            eventually(
                lambda: not [name for name in os.listdir(self.path("inbox")) if name[0] != "."],
                within_s=60,
                what=f"{verb} is answered",
                journal=self.packet,
            )
            assert self.events("request.applied")[-1]["verb"] == verb

    def stop(self) -> None:
        """`holdfast stop`, and wait for the end; for the last line of a test."""
        self.ask_patiently("stop")
        self.wait_for("killed")


_STARTER = """
import sys
from holdfast.runner_process import start_runner
from holdfast.store.layout import Packet
start_runner(Packet(sys.argv[1]))
"""


def workspace() -> str:
    """The directory `work` beside the home; created on the first call."""
    path = os.path.join(os.path.dirname(os.environ["HOLDFAST_HOME"]), "work")
    os.makedirs(path, exist_ok=True)
    return path
