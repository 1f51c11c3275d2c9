"""The acts of the demo. Every time that is shown comes from the journal, a lock file, or the moment of the kill."""

from __future__ import annotations

import json
import os

from holdfast import clock
from holdfast.model.process import ProcessIdentity
from holdfast.packet import load
from holdfast.store import process
from holdfast.views.demo import scenario
from holdfast.views.demo.world import DemoFailed, World

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

#: A keeper is not started again within two seconds of its start: the demo waits for that, not for luck.
_KEEPER_AGE_S = 2.1


class Demo:
    """One performance."""

    def __init__(self, world: World, say: Callable[[str], None]) -> None:
        self.world = world
        self.say = say
        self.agents: list[ProcessIdentity] = []
        self.facts: dict[str, Any] = {"schema": "holdfast.demo/1", "folder": world.folder, "kills": []}

    def run(self) -> dict[str, Any]:
        """All acts; returns what was measured. Raises DemoFailed."""
        began_mono = clock.mono()
        self._start()
        self._kill_agent()
        self._kill_runner()
        self._kill_keeper()
        self._finish()
        self._prove()
        self.facts["seconds"] = round(clock.mono() - began_mono, 2)
        return self.facts

    # ── the acts ──

    def _start(self) -> None:
        world = self.world
        path = scenario.write(world.folder)
        self.say("$ holdfast run -d --agent scripted -o scenario=scenario.json 'write four parts'")
        task_id = world.holdfast(
            *(
                "run",
                "-d",
                "--agent",
                "scripted",
                "-o",
                f"scenario={path}",
                "--name",
                "demo",
                "write four parts",
            )
        ).strip()
        world.packet = world.home.packet(task_id)
        self.facts["task_id"] = task_id
        self.say(task_id)
        self._until_tool(1)
        keeper = world.until(lambda: world.owner(world.home.keeper_lock), "a keeper lives")
        self.keeper_mono = clock.mono()
        seed = world.until(lambda: world.owner(world.home.seed_lock), "a seed lives")
        runner = self._runner()
        recorder = self._recorder()
        self.say("")
        self.say(f"The home has keeper {keeper.pid} and seed {seed.pid}.")
        self.say(f"The task has runner {runner.pid}, recorder {recorder} and agent {self.agents[-1].pid}.")

    def _kill_agent(self) -> None:
        world, old = self.world, self.agents[-1]
        self._title(1, "agent", old)
        at = world.kill(old)
        ended = world.until(lambda: world.event("attempt.ended", 1), "the agent's death is in the journal")
        self._until_started(2)
        new = self.agents[-1]
        opened = world.events("attempt.opened")[-1]
        self._told(
            "agent", at, ended["noticed_at"], f"the recorder wrote down: signal {ended['exit_signal']}"
        )
        if opened["mode"] != "resume":
            raise DemoFailed("the agent began a new session instead of resuming its own")
        started = world.events("attempt.started")[-1]["started_at"]
        self._healed(at, started, f"agent {new.pid} resumed session {opened['session_id'][:8]}")
        self._go_on(1)

    def _kill_runner(self) -> None:
        world, old, agent = self.world, self._runner(), self.agents[-1]
        self._title(2, "runner", old)
        starts = len(world.events("runner.started"))
        at = world.kill(old)
        started = world.until(lambda: world.event("runner.started", starts + 1), "a new runner")
        if not process.is_alive(agent):
            raise DemoFailed(f"agent {agent.pid} died with its runner")
        packet = world.packet
        assert packet is not None
        self._told(
            "runner", at, _signed_at(packet.runner_lock), "the keeper saw it, its seed forked a new one"
        )
        self._healed(at, started["at"], f"runner {started['pid']} adopted agent {agent.pid}, still at work")
        self._go_on(2)

    def _kill_keeper(self) -> None:
        world = self.world
        old = world.until(lambda: world.owner(world.home.keeper_lock), "a keeper lives")
        world.until(
            lambda: clock.mono() - self.keeper_mono > _KEEPER_AGE_S,
            "the keeper is old enough to be restarted",
        )
        self._title(3, "keeper", old)
        at = world.kill(old)

        def another() -> ProcessIdentity | None:
            found = world.owner(world.home.keeper_lock)
            return found if found is not None and found != old else None

        new = world.until(another, "a new keeper")
        since = _signed_at(world.home.keeper_lock)
        starts = _last_start(world.home.keeper_starts)
        self._told("keeper", at, clock.iso(starts), "the runner saw it and started a new one")
        self._healed(at, since, f"keeper {new.pid} guards on; nothing else stopped")
        self._go_on(3)

    def _finish(self) -> None:
        packet = self.world.packet
        assert packet is not None
        self.world.until(lambda: os.path.exists(packet.task_done), "the task's end")

    # ── the proof ──

    def _prove(self) -> None:
        world = self.world
        assert world.packet is not None
        self._summary()
        manifest = load.read_manifest(world.packet)
        with open(os.path.join(world.project, scenario.RESULT), encoding="utf-8") as file:
            written = file.read()
        self.say("")
        sessions = {event["session_id"] for event in world.events("agent.session")}
        self._check(manifest["status"] == "completed", f"the task is {manifest['status']}")
        self._check(
            written == scenario.expected(),
            f"{scenario.RESULT} has {scenario.PARTS} parts, each written once",
        )
        self._check(len(sessions) == 1, "one session of the agent, from start to end")
        attempts = len(world.events("attempt.started"))
        self._check(attempts == 2, f"{attempts} attempts: the first was killed, the second resumed it")
        self._check(manifest["total_retries"] == 1, "killing runner and keeper cost no retry")

    def _summary(self) -> None:
        """The head of the summary that every task gets."""
        packet = self.world.packet
        assert packet is not None
        with open(packet.summary, encoding="utf-8") as file:
            head = file.read().partition("## Last output")[0]
        self.say("\nThe summary of the task:\n")
        for line in head.strip().splitlines():
            self.say(f"  {line}".rstrip().replace("—", "-"))  # plain characters, wherever it is shown

    def _check(self, holds: bool, claim: str) -> None:  # noqa: FBT001 - it reads as a sentence
        if not holds:
            raise DemoFailed(f"this does not hold: {claim}", hint=f"look into {self.world.folder}")
        self.say(f"  ok  {claim}")

    # ── watching ──

    def _runner(self) -> ProcessIdentity:
        packet = self.world.packet
        assert packet is not None
        return self.world.until(lambda: self.world.owner(packet.runner_lock), "a runner lives")

    def _recorder(self) -> int:
        packet = self.world.packet
        assert packet is not None
        folder = os.path.join(packet.attempts, sorted(os.listdir(packet.attempts))[-1])
        owner = self.world.until(lambda: self.world.owner(packet.attempt(folder).lock), "a recorder lives")
        return owner.pid

    def _until_started(self, count: int) -> None:
        started = self.world.until(
            lambda: self.world.event("attempt.started", count), f"attempt {count} has started"
        )
        identity = ProcessIdentity(
            boot_id=started["boot_id"], pid=started["pid"], start_time=started["start_time"]
        )
        self.agents.append(identity)

    def _until_tool(self, count: int) -> None:
        """Until the agent is in the middle of a tool call, seen through the runner that lives now."""
        self._until_started(1)
        self.world.until(
            lambda: len(self.world.events("agent.tool_started")) >= count, "the agent uses a tool"
        )

    def _go_on(self, part: int) -> None:
        """Let the agent's tool call end, and wait until it is in the next one, or done."""
        with open(os.path.join(self.world.project, scenario.gate(part)), "w", encoding="utf-8"):
            pass
        packet = self.world.packet
        assert packet is not None
        # The call that was cut off is made again by the resumed agent: one more than there are parts.
        calls = part + 2
        if part + 1 < scenario.PARTS:
            self.world.until(
                lambda: len(self.world.events("agent.tool_started")) >= calls,
                f"the agent is at part {part + 1}",
            )

    # ── telling ──

    def _title(self, number: int, what: str, identity: ProcessIdentity) -> None:
        self.say("")
        self.say(f"  {number}. kill -9 {identity.pid}, the {what}")

    def _told(self, what: str, killed_at: float, noticed_at: str, how: str) -> None:
        noticed_s = max(0.0, clock.parse_iso(noticed_at) - killed_at)
        self.facts["kills"].append({"what": what, "noticed_ms": _ms(noticed_s)})
        self.say(f"     noticed after {_ms(noticed_s):5d} ms: {how}")

    def _healed(self, killed_at: float, healed_at: str, how: str) -> None:
        healed_s = max(0.0, clock.parse_iso(healed_at) - killed_at)
        self.facts["kills"][-1]["healed_ms"] = _ms(healed_s)
        self.say(f"     healed  after {_ms(healed_s):5d} ms: {how}")


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


def _signed_at(lock: str) -> str:
    with open(lock, encoding="utf-8") as file:
        return json.load(file)["at"]


def _last_start(path: str) -> float:
    with open(path, encoding="utf-8") as file:
        return json.load(file)["starts"][-1]
