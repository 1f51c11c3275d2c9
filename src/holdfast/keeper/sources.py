"""The loop's sources: an import of each runs beside the keeper now and then, where `up` was typed. What went wrong with
the last one of each is in loop.json, where `status` finds it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

from holdfast import clock
from holdfast.keeper import loop
from holdfast.keeper.log import log
from holdfast.store.layout import Home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO

#: Before the next look when there is nothing to ask, and at an import that runs.
_REST_S, _LOOK_S = 15.0, 0.5
#: As much of its talk as is read.
_TALK_BYTES = 8192


class _Import:
    """An import that runs, and where its stderr goes."""

    def __init__(self, source: str, project: str) -> None:
        self._talk: IO[bytes] = tempfile.TemporaryFile()
        words = ["queue", "import", "--from", source, "--project", project, "--json"]
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "holdfast", *words],
            # A relative file of a source is meant from where `up` was typed.
            cwd=project,
            # Without a width its sentences are lines, as they are read below.
            env={name: value for name, value in os.environ.items() if name != "COLUMNS"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._talk,
            start_new_session=True,
        )

    def is_over(self) -> bool:
        """Whether it has ended; how, the keeper cannot say, who reaps whatever ends."""
        return self._process.poll() is not None

    def error(self) -> str:
        """What it complained of; empty where all is well."""
        self._talk.seek(0)
        lines = self._talk.read(_TALK_BYTES).decode("utf-8", "replace").splitlines()
        self._talk.close()
        told = [line for line in lines if line.startswith(("error: ", "  "))]
        return "; ".join(line.removeprefix("error: ").strip() for line in told)


class Sources:
    """Asks the sources of a home."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self._asked_mono = float("-inf")
        self._imports: dict[str, _Import] = {}
        #: Those of the last look: what is said of others is forgotten.
        self._sources: tuple[str, ...] | None = None

    def step(self, spec: loop.LoopSpec) -> float:
        """Look at what runs, ask what is due. Returns the seconds until the next look."""
        # Without an `up` nobody said where the work is to be done.
        sources = spec.sources if spec.project else ()
        found = {source: each.error() for source, each in list(self._imports.items()) if each.is_over()}
        for source in found:
            del self._imports[source]
        wait_s = _REST_S
        if sources:
            now_mono = clock.mono()
            if self._asked_mono + spec.refresh_s <= now_mono:
                self._asked_mono = now_mono
                found |= self._ask(sources, spec.project)
            wait_s = max(0.01, self._asked_mono + spec.refresh_s - now_mono)
        self._tell(found, sources)
        return min(wait_s, _LOOK_S) if self._imports else wait_s

    def _ask(self, sources: tuple[str, ...], project: str) -> dict[str, str]:
        """Start an import of each. Returns those that could not be started, and why."""
        failed: dict[str, str] = {}
        for source in sources:
            if source in self._imports:
                continue  # it takes its time: two of them would only get in each other's way
            try:
                self._imports[source] = _Import(source, project)
            except OSError as error:
                failed[source] = f"cannot be asked in {project}: {error.strerror}"
        return failed

    def _tell(self, found: dict[str, str], sources: tuple[str, ...]) -> None:
        """In keeper.log and in loop.json, each error once."""
        if not found and sources == self._sources:
            return
        self._sources = sources
        state = loop.read_state(self.home)
        failing = {
            name: text for name, text in {**state.failing, **found}.items() if text and name in sources
        }
        if failing == state.failing:
            return
        for source in sorted(failing.keys() | state.failing.keys()):
            if failing.get(source) != state.failing.get(source):
                log(f"the source {source}: {failing.get(source) or 'can be read again'}")
        loop.write_state(self.home, state.evolve(failing=failing))
