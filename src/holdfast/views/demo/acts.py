"""The acts of the demo. All times come from the journal, a lock file, or the moment of the kill."""

from __future__ import annotations

import json
import os

from holdfast import clock
from holdfast.model.process import ProcessIdentity
from holdfast.packet import load
from holdfast.store import process
from holdfast.store.layout import Packet
from holdfast.views.demo import scenario
from holdfast.views.demo.world import DemoFailed, DemoWorld

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

#: A keeper is not restarted within two seconds of its start; the demo waits that long before killing it.
_KEEPER_AGE_S = 2.1


class Demo:
    """One run of the demo."""

    def __init__(self, world: DemoWorld, say: Callable[[str], None]) -> None:
        self.world = world
        self.say = say
        self.agents: list[ProcessIdentity] = []
        self.facts: dict[str, Any] = {"schema": "holdfast.demo/1", "folder": world.folder, "kills": []}

    def run(self) -> dict[str, Any]:
        """Run all acts and return the measurements. Raises DemoFailed."""
        began_mono = clock.mono()
        self._start()
        self._kill_agent()
        self._kill_runner()
        self._kill_keeper()
        self.world.until(lambda: os.path.exists(self._packet.task_done), "the task ends")
        self._prove()
        self.facts["seconds"] = round(clock.mono() - began_mono, 2)
        return self.facts

    @property
    def _packet(self) -> Packet:
        assert self.world.packet is not None
        return self.world.packet

    # ── acts ──

    def _start(self) -> None:
        world = self.world
        path = scenario.write(world.folder)
        self.say("$ holdfast run -d --agent scripted -o scenario=scenario.json 'write four parts'")
        words = ("--agent", "scripted", "-o", f"scenario={path}", "--name", "demo", "write four parts")
        task_id = world.holdfast("run", "-d", *words).strip()
        world.packet = world.home.packet(task_id)
        self.facts["task_id"] = task_id
        self.say(task_id)
        self._await_attempt(1)
        self._await_tool_calls(1, "the agent uses a tool")
        keeper = world.until(lambda: world.owner(world.home.keeper_lock), "a keeper is running")
        self.keeper_mono = clock.mono()
        seed = world.until(lambda: world.owner(world.home.seed_lock), "a seed is running")
        runner, recorder = self._runner(), self._recorder()
        self.say("")
        self.say(f"The home has keeper {keeper.pid} and seed {seed.pid}.")
        self.say(
            f"The task has runner {runner.pid}, recorder {recorder.pid} and agent {self.agents[-1].pid}."
        )

    def _kill_agent(self) -> None:
        world, old = self.world, self.agents[-1]
        self._say_title(1, "agent", old)
        at = world.kill(old)
        ended = world.until(lambda: world.event("attempt.ended", 1), "the journal records the agent's death")
        self._await_attempt(2)
        new = self.agents[-1]
        opened = world.events("attempt.opened")[-1]
        self._say_noticed(
            "agent", at, ended["noticed_at"], f"its recorder reported signal {ended['exit_signal']}"
        )
        if opened["mode"] != "resume":
            raise DemoFailed("the agent started a new session instead of resuming its own")
        started_at = world.events("attempt.started")[-1]["started_at"]
        self._say_recovered(at, started_at, f"agent {new.pid} resumed session {opened['session_id'][:8]}")
        self._release_part(1)

    def _kill_runner(self) -> None:
        world, old, agent = self.world, self._runner(), self.agents[-1]
        self._say_title(2, "runner", old)
        count = len(world.events("runner.started"))
        at = world.kill(old)
        started = world.until(lambda: world.event("runner.started", count + 1), "a new runner starts")
        if not process.is_alive(agent):
            raise DemoFailed(f"agent {agent.pid} died with its runner")
        self._say_noticed(
            "runner", at, _locked_at(self._packet.runner_lock), "the keeper had the seed fork a new one"
        )
        self._say_recovered(
            at, started["at"], f"runner {started['pid']} adopted agent {agent.pid}, still working"
        )
        self._release_part(2)

    def _kill_keeper(self) -> None:
        world = self.world
        old = world.until(lambda: world.owner(world.home.keeper_lock), "a keeper is running")
        world.until(
            lambda: clock.mono() - self.keeper_mono > _KEEPER_AGE_S,
            "the keeper is old enough to be restarted",
        )
        self._say_title(3, "keeper", old)
        at = world.kill(old)

        def new_keeper() -> ProcessIdentity | None:
            owner = world.owner(world.home.keeper_lock)
            return owner if owner != old else None

        new = world.until(new_keeper, "a new keeper starts")
        locked_at = _locked_at(world.home.keeper_lock)
        start_at = _last_start(world.home.keeper_starts)
        self._say_noticed("keeper", at, clock.iso(start_at), "the runner started a new one")
        self._say_recovered(at, locked_at, f"keeper {new.pid} took over; nothing else stopped")
        self._release_part(3)

    # ── proof ──

    def _prove(self) -> None:
        world = self.world
        self._say_summary()
        manifest = load.read_manifest(self._packet)
        with open(os.path.join(world.project, scenario.RESULT), encoding="utf-8") as file:
            written = file.read()
        self.say("")
        sessions = {event["session_id"] for event in world.events("agent.session")}
        self._check(manifest["status"] == "completed", f"the task is {manifest['status']}")
        self._check(
            written == scenario.expected(),
            f"{scenario.RESULT} has {scenario.PARTS} parts, each written once",
        )
        self._check(len(sessions) == 1, "the agent kept one session from start to end")
        attempts = len(world.events("attempt.started"))
        self._check(attempts == 2, f"{attempts} attempts: the first was killed, the second resumed it")
        self._check(manifest["total_retries"] == 1, "killing runner and keeper cost no retry")

    def _say_summary(self) -> None:
        """Print the beginning of the summary that every task gets."""
        with open(self._packet.summary, encoding="utf-8") as file:
            head = file.read().partition("## Last output")[0]
        self.say("\nThe summary of the task:\n")
        for line in head.strip().splitlines():
            self.say(f"  {line}".rstrip().replace("—", "-"))  # ASCII for any terminal

    def _check(self, holds: bool, claim: str) -> None:  # noqa: FBT001 - reads like an assertion
        if not holds:
            raise DemoFailed(f"not true: {claim}", hint=f"see the files in {self.world.folder}")
        self.say(f"  ok  {claim}")

    # ── waiting ──

    def _runner(self) -> ProcessIdentity:
        return self.world.until(lambda: self.world.owner(self._packet.runner_lock), "a runner is running")

    def _recorder(self) -> ProcessIdentity:
        packet = self._packet
        folder = os.path.join(packet.attempts, sorted(os.listdir(packet.attempts))[-1])
        return self.world.until(
            lambda: self.world.owner(packet.attempt(folder).lock), "a recorder is running"
        )

    def _await_attempt(self, count: int) -> None:
        """Wait until this number of attempts have started, and note the agent of the last one."""
        started = self.world.until(
            lambda: self.world.event("attempt.started", count), f"attempt {count} starts"
        )
        self.agents.append(
            ProcessIdentity(boot_id=started["boot_id"], pid=started["pid"], start_time=started["start_time"])
        )

    def _await_tool_calls(self, count: int, what: str) -> None:
        self.world.until(lambda: len(self.world.events("agent.tool_started")) >= count, what)

    def _release_part(self, part: int) -> None:
        """Let the agent's tool call end, and wait until the agent is in the next one, if any."""
        with open(os.path.join(self.world.project, scenario.release_file(part)), "w", encoding="utf-8"):
            pass
        if part + 1 < scenario.PARTS:
            # The resumed agent repeats the call that was cut off, so there is one more call than parts.
            self._await_tool_calls(part + 2, f"the agent reaches part {part + 1}")

    # ── output ──

    def _say_title(self, number: int, role: str, identity: ProcessIdentity) -> None:
        self.say("")
        self.say(f"  {number}. kill -9 {identity.pid}, the {role}")

    def _say_noticed(self, role: str, killed_at: float, noticed_at: str, how: str) -> None:
        noticed_ms = _elapsed_ms(killed_at, noticed_at)
        self.facts["kills"].append({"what": role, "noticed_ms": noticed_ms})
        self.say(f"     noticed   after {noticed_ms:5d} ms: {how}")

    def _say_recovered(self, killed_at: float, recovered_at: str, how: str) -> None:
        recovered_ms = _elapsed_ms(killed_at, recovered_at)
        self.facts["kills"][-1]["healed_ms"] = recovered_ms
        self.say(f"     recovered after {recovered_ms:5d} ms: {how}")


def _elapsed_ms(start: float, end: str) -> int:
    return round(max(0.0, clock.parse_iso(end) - start) * 1000)


def _locked_at(lock: str) -> str:
    with open(lock, encoding="utf-8") as file:
        return json.load(file)["at"]


def _last_start(path: str) -> float:
    with open(path, encoding="utf-8") as file:
        return json.load(file)["starts"][-1]
