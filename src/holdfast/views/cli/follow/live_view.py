"""The live view of one task: its log runs on stdout, and on a terminal a line below it says how it is doing."""

from __future__ import annotations

import sys

from holdfast import clock
from holdfast.model.status import ENDS
from holdfast.packet import load
from holdfast.store.layout import Packet
from holdfast.views.cli.follow import follower, stages
from holdfast.views.cli.show import amounts, describe, fit_text, home_down, out, tail, terminal
from holdfast.views.cli.show.sanitize import Sanitizer
from holdfast.views.output_refresh import OutputRefresher
from holdfast.views.recovery import KeeperStarter, LostRunnerWatch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_PAUSE_S = 0.1
_READ_BYTES = 65536
#: Characters of a goal that are told at the start.
_GOAL = 200


class Live:
    """Follows a task. The log goes to stdout; what we say ourselves goes to stderr."""

    def __init__(self, packet: Packet, *, lines: int, stays: bool) -> None:
        self.packet = packet
        #: Whether to stay while the task waits for a person.
        self.stays = stays
        self._line = _Line() if terminal.is_terminal(sys.stderr) and not terminal.is_dumb() else None
        self._plain = follower.PlainLines(None)
        self._harmless = Sanitizer(has_colour=terminal.has_colour()) if terminal.is_terminal() else None
        self._pending, self._offset = tail.read_last_lines(packet.output_log, lines)

    def run(self) -> int:
        """Until the task has ended or needs a person; returns the exit status that says how."""
        manifest = load.read_manifest(self.packet)
        goal = manifest["goal"] or manifest["task_name"]
        out.talk(f"{self.packet.task_id}: {fit_text.shorten(goal, _GOAL)}")
        starter, refresher, watch = KeeperStarter(), OutputRefresher(), LostRunnerWatch()
        is_told = False
        while True:
            # The manifest first: what was logged before the end is then printed below.
            manifest = load.read_manifest(self.packet)
            is_over = load.is_settled(self.packet, manifest) and not (
                self.stays and manifest["status"] not in ENDS
            )
            if watch.poll(self.packet, manifest["status"]) and self.stays:
                self._say(home_down.runner_lost(self.packet, manifest["status"]))
            is_over = is_over or (watch.is_lost and not self.stays)
            if not is_told and home_down.holds_back(self.packet, manifest):
                is_told = True
                self._say(home_down.QUEUE_WAITS)
            has_more = self._print_log(is_last=is_over)
            if is_over and not has_more:
                self.clear()
                if self._line is None:
                    self._plain.settle(self.packet, manifest)
                return follower.report(self.packet, manifest, has_log=True)
            self._tell(manifest)
            starter.poll(self.packet, manifest["status"])
            refresher.poll(self.packet, manifest["status"])
            if not has_more:
                clock.sleep(_PAUSE_S)

    def clear(self) -> None:
        """Leave the terminal as it was."""
        if self._line is not None:
            self._line.clear()

    def _say(self, text: str) -> None:
        self.clear()
        out.talk(text)

    def _print_log(self, *, is_last: bool) -> bool:
        """Print what is new; returns whether there may be more. A line is held back until it is whole."""
        data = self._read()
        self._pending += data
        cut = len(self._pending) if is_last and not data else self._pending.rfind(b"\n") + 1
        text, self._pending = self._pending[:cut].decode("utf-8", "replace"), self._pending[cut:]
        if text:
            self.clear()
            if self._harmless is not None:
                # Of whole lines: nothing is held back from one to the next.
                text = self._harmless.show(text) + self._harmless.end()
            sys.stdout.write(text if text.endswith("\n") else text + "\n")
            sys.stdout.flush()
        return bool(data)

    def _read(self) -> bytes:
        try:
            with open(self.packet.output_log, "rb") as file:
                file.seek(self._offset)
                data = file.read(_READ_BYTES)
        except FileNotFoundError:
            return b""
        self._offset += len(data)
        return data

    def _tell(self, manifest: dict[str, Any]) -> None:
        if self._line is not None:
            self._line.draw(manifest)
        else:
            self._plain.show(self.packet, manifest)


class _Line:
    """The last line of the terminal, reversed, redrawn in place."""

    def __init__(self) -> None:
        self._drawn = ""

    def draw(self, manifest: dict[str, Any]) -> None:
        elapsed = clock.words(int(describe.elapsed_s(manifest, clock.now()))).replace(".0s", "s")
        parts = [
            manifest["status"],
            stages.now(manifest) if stages.are_many(manifest) else "",
            f"{manifest['agent']} {elapsed}",
            amounts.plural(manifest["attempt"], "attempt") if manifest["attempt"] > 1 else "",
            describe.agent_step(manifest),
            describe.waiting_for(manifest) or manifest["status_reason"] or "",
        ]
        text = " | ".join(part for part in parts if part)
        text = fit_text.cut(
            fit_text.as_displayed(text, sys.stderr),
            (terminal.width(sys.stderr) or terminal.DEFAULT_WIDTH) - 1,
        )
        if text != self._drawn:
            self._drawn = text
            out.draw(f"\r\x1b[7m{text}\x1b[0m\x1b[K")

    def clear(self) -> None:
        if self._drawn:
            self._drawn = ""
            out.draw("\r\x1b[K")
