"""One task, and a stand-in for the keeper that restarts its runner whenever it needs one."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from typing import Any

from holdfast import own_python
from holdfast.model.spec import (
    FanOutSpec,
    Limits,
    PipelineSpec,
    QualitySpec,
    SandboxSpec,
    StageSpec,
    TaskSpec,
)
from holdfast.model.status import Status
from holdfast.packet import environment, inbox, load
from holdfast.packet.create import create
from holdfast.store import lock as locks
from holdfast.store.layout import Home, Packet
from tests.crash import points
from tests.support.preloaded import Forked, Preloaded
from tests.support.waiting import journal_tail

#: Short enough for quick tests, long enough that a busy machine is not taken for a hang.
LIMITS = Limits(base_interval_s=0.2, max_interval_s=0.5, stale_s=None, stop_pause_s=0.5, deadline_s=600.0)

#: Where runners are forked from; without it, they are executed.
preloaded: Preloaded | None = None

CHORE_POINTS = (
    "HOLDFAST_FAILPOINT",
    "HOLDFAST_FAILPOINT_ONCE",
    "HOLDFAST_FAILPOINT_NOTES",
    "HOLDFAST_FAILPOINT_FOLDER",
)
#: Failpoints that chores pass: the starts of their names.
IN_CHORES = ("clean_room.", "worktree.", "quality.", "candidates.", "fanout.", "committed.", "ci.")


class Case:
    """A home with one task, the environment of its processes, and the file that a failpoint creates."""

    def __init__(self, root: str, name: str, failpoint: str | None = None) -> None:
        self.root = os.path.join(root, name)
        self.home = Home(os.path.join(self.root, "home"))
        self.project = os.path.join(self.root, "project")
        self.state = os.path.join(self.root, "sessions")
        for path in (self.root, self.home.path, self.home.tasks, self.project, self.state):
            os.mkdir(path, 0o700)
        # We are the keeper here: with this file, runners start no other.
        with open(self.home.down, "ab"):
            pass
        self.packet: Packet = self.home.packet("task")
        self.once = os.path.join(self.root, "fired")
        self.log = os.path.join(self.root, "runners.log")
        self.env = {**os.environ, "HOLDFAST_HOME": self.home.path, "HOLDFAST_SCRIPTED_STATE": self.state}
        # The keeper of a fan-out starts several tasks: without the usual pause of five seconds.
        self.env["ITERATION_DELAY"] = "0"
        self.failpoint = failpoint
        if failpoint is not None:
            self.env["HOLDFAST_FAILPOINT"] = failpoint
            self.env["HOLDFAST_FAILPOINT_ONCE"] = self.once
        self.executes_runners = False
        self.runner: subprocess.Popen[bytes] | Forked | None = None
        self.runners_started = 0
        self.requests: list[str] = []
        #: Processes of the scenario other than runners; they are ended with it.
        self.others: list[subprocess.Popen[bytes]] = []

    # ── the task ──

    def create(
        self,
        *,
        command: list[str] | None = None,
        scenario: str | None = None,
        limits: Limits = LIMITS,
        leftovers: str = "report",
        workspace: str = "in_place",
        sandbox: SandboxSpec | None = None,
        quality: QualitySpec | None = None,
    ) -> None:
        """Make the packet: a plain command, or the scripted agent with the scenario file at `scenario`."""
        agent = "command" if command is not None else "scripted"
        self._make(
            agent=agent,
            command=command,
            options={"scenario": scenario} if scenario else {},
            stages=(StageSpec(name=f"{agent}_run", agent=agent),),
            limits=limits,
            leftovers=leftovers,
            workspace=workspace,
            sandbox=sandbox,
            quality=quality,
        )

    def create_fan_out(self, fan_out: FanOutSpec) -> None:
        """Make the packet of a fan-out's parent."""
        self._make(
            agent="command",
            command=own_python.command("holdfast.fanout"),
            stages=(StageSpec(name="fan_out", agent="command"),),
            limits=LIMITS,
            workspace="worktree",
            fan_out=fan_out,
        )

    def create_for(self, agent: str) -> None:
        """Make the packet for another agent's program, found in the case's PATH."""
        self._make(agent=agent, stages=(StageSpec(name=f"{agent}_run", agent=agent),), limits=LIMITS)

    def create_written(self, *stages: StageSpec, workspace: str = "in_place", **asked: object) -> None:
        """Make a written packet of these stages; `asked` are fields of PipelineSpec."""
        pipeline = PipelineSpec.from_json(
            {"intent": "safe_impl", "group": "impl", "profile": "safe_impl", **asked}
        )
        self._make(
            agent=stages[0].agent, stages=stages, limits=LIMITS, pipeline=pipeline, workspace=workspace
        )

    def _make(self, **fields: Any) -> None:
        spec = TaskSpec(task_id="task", task_name="task", goal="crash", project_dir=self.project, **fields)
        prompt = None if spec.command is not None else b"work\n"
        create(self.home, spec, prompt=prompt, env=self.captured(), status=Status.SPAWNING)

    def captured(self) -> dict[str, object]:
        """env.json, as a command started here would capture it.

        A chore is killed only at points of its own: elsewhere it would die in place of a runner.
        """
        env, failpoint = self.env, self.failpoint or ""
        if failpoint == "*=note":
            chores = [f"{name}=note" for name in points.names() if name.startswith(IN_CHORES)]
            env = {**env, "HOLDFAST_FAILPOINT": ",".join(chores)}
        own = CHORE_POINTS if failpoint.startswith(("*", *IN_CHORES)) else ()
        return environment.capture(env, ("HOLDFAST_SCRIPTED_STATE", *own))

    def ask(self, verb: str, **args: object) -> None:
        """Drop a request and ring the bell, like a view; `tend` starts a runner."""
        self.requests.append(inbox.drop(self.packet, verb, args, by="test").id)
        inbox.ring(self.packet)

    def holdfast(self, *argv: str) -> int:
        """Run the command line tool to its end; returns its exit status, -9 when it was killed."""
        command = [sys.executable, "-m", "holdfast", *argv]
        with open(self.log, "ab") as log:
            done = subprocess.run(
                command,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                timeout=20,
                check=False,
            )
        return done.returncode

    @property
    def manifest(self) -> dict[str, object]:
        return load.read_manifest(self.packet)

    @property
    def status(self) -> Status:
        return Status(str(self.manifest["status"]))

    def shows(self, line: str) -> bool:
        """Whether output.log has the line."""
        try:
            with open(self.packet.output_log, encoding="utf-8") as file:
                return line in file.read().splitlines()
        except FileNotFoundError:
            return False

    @property
    def fired(self) -> bool:
        return os.path.exists(self.once)

    # ── its runners ──

    def start_runner(self) -> None:
        if preloaded is not None and not self.executes_runners:
            self.runner = preloaded.start_runner(self.packet.path, env=self.env, cwd=self.root, log=self.log)
        else:
            self.runner = self._execute_runner()
        self.runners_started += 1

    def _execute_runner(self) -> subprocess.Popen[bytes]:
        with open(self.log, "ab") as log:
            return subprocess.Popen(
                [sys.executable, "-P", "-m", "holdfast.runner", self.packet.path],
                env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.root,
            )  # fmt: skip

    def tend(self) -> None:
        """Start a runner if the task is live and has none."""
        if self.runner is not None and self.runner.poll() is not None:
            self.runner = None
        if self.runner is None and self.is_live and not locks.is_held(self.packet.runner_lock):
            self.start_runner()

    @property
    def is_live(self) -> bool:
        return os.path.isdir(self.packet.path) and load.is_live(self.packet, self.status)

    @property
    def has_ended(self) -> bool:
        """Whether nothing is left to do."""
        return (
            os.path.exists(self.packet.task_done)
            and not inbox.names(self.packet)
            and (self.runner is None or self.runner.poll() is not None)
            and not locks.is_held(self.packet.runner_lock)
        )

    def pause(self) -> None:
        """Wait a moment, or until the runner ends."""
        if self.runner is None or self.runner.poll() is not None:
            select.select([], [], [], 0.005)
            return
        try:
            pidfd = os.pidfd_open(self.runner.pid)
        except ProcessLookupError:
            return
        try:
            select.select([pidfd], [], [], 0.01)
        finally:
            os.close(pidfd)

    def fail(self, message: str) -> None:
        """An AssertionError with the failpoint, the journal, and the output of the runners."""
        raise AssertionError(f"{message}\n{self.story()}")

    def story(self) -> str:
        texts = [f"case: {self.root}, failpoint: {self.failpoint}, fired: {self.fired}"]
        texts += ["journal:", journal_tail(self.packet.journal, 60), "runners wrote:"]
        for path in (self.log, self.packet.runner_log):
            try:
                with open(path, encoding="utf-8", errors="replace") as file:
                    texts.append(file.read()[-4000:])
            except FileNotFoundError:
                continue
        return "\n".join(texts)

    def close(self) -> None:
        for process in (self.runner, *self.others):
            if process is not None:
                process.kill()
                process.wait(10)


def deadline(within_s: float):
    """A function that returns whether the deadline has passed."""
    give_up_mono = time.monotonic() + within_s
    return lambda: time.monotonic() >= give_up_mono
