"""Import from the loop's sources now and then, in the directory where `up` was run.

Each import runs in a process. The error of the last one is in loop.json, where `status` finds it.
"""

from __future__ import annotations

import os
import subprocess
import tempfile

from holdfast import clock, own_python
from holdfast.keeper import loop_state
from holdfast.keeper.log import log
from holdfast.spawn import restore_limits
from holdfast.store.layout import Home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO

#: Pause if there are no sources, and while an import is running.
_REST_S, _LOOK_S = 15.0, 0.5
#: How much of its stderr is read.
_TALK_BYTES = 8192


class _Import:
    """A running import and its stderr."""

    def __init__(self, source: str, project: str) -> None:
        self._talk: IO[bytes] = tempfile.TemporaryFile()
        words = ["queue", "import", "--from", source, "--project", project, "--json"]
        self._process = subprocess.Popen(
            own_python.command("holdfast", *words),
            # Relative paths of a source refer to the directory where `up` was run.
            cwd=project,
            # Without COLUMNS, every message is one line, which the code below expects.
            env={name: value for name, value in os.environ.items() if name != "COLUMNS"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._talk,
            start_new_session=True,
        )
        restore_limits(self._process.pid)  # before it has loaded: tasks that it creates keep its limits

    def is_over(self) -> bool:
        """Whether it has ended. Exit status unknown: the keeper's waitpid(-1) may have taken it."""
        return self._process.poll() is not None

    def error(self) -> str:
        """Its error message; empty if it succeeded."""
        self._talk.seek(0)
        lines = self._talk.read(_TALK_BYTES).decode("utf-8", "replace").splitlines()
        self._talk.close()
        errors = [line for line in lines if line.startswith(("error: ", "  "))]
        return "; ".join(line.removeprefix("error: ").strip() for line in errors)


class Sources:
    """Imports from the sources of a home."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self._asked_mono = float("-inf")
        self._imports: dict[str, _Import] = {}
        #: The sources of the last step: errors of other sources are dropped.
        self._sources: tuple[str, ...] | None = None

    def step(self, spec: loop_state.LoopSpec) -> float:
        """Check running imports, start due ones. Returns the seconds until the next step."""
        # Without `up`, there is no directory to work in.
        sources = spec.sources if spec.project else ()
        errors = {source: each.error() for source, each in list(self._imports.items()) if each.is_over()}
        for source in errors:
            del self._imports[source]
        wait_s = _REST_S
        if sources:
            now_mono = clock.mono()
            if self._asked_mono + spec.refresh_s <= now_mono:
                self._asked_mono = now_mono
                errors |= self._start_imports(sources, spec.project)
            wait_s = max(0.01, self._asked_mono + spec.refresh_s - now_mono)
        self._report(errors, sources)
        return min(wait_s, _LOOK_S) if self._imports else wait_s

    def _start_imports(self, sources: tuple[str, ...], project: str) -> dict[str, str]:
        """Start an import of each source. Returns those that could not be started, and why."""
        real = os.path.realpath(project)
        if real != project:  # it was the real path when `up` was typed: an agent may have put a link there
            text = f"is not imported: {project} leads to {real} now; 'holdfast up' in the right directory"
            return dict.fromkeys(sources, text)
        failed: dict[str, str] = {}
        for source in sources:
            if source in self._imports:
                continue  # the last one is still running
            try:
                self._imports[source] = _Import(source, project)
            except OSError as error:
                failed[source] = f"cannot be imported in {project}: {error.strerror}"
        return failed

    def _report(self, errors: dict[str, str], sources: tuple[str, ...]) -> None:
        """Write errors to keeper.log and loop.json, once per change."""
        if not errors and sources == self._sources:
            return
        self._sources = sources
        state = loop_state.read_state(self.home)
        failing = {
            name: text for name, text in {**state.failing, **errors}.items() if text and name in sources
        }
        if failing == state.failing:
            return
        for source in sorted(failing.keys() | state.failing.keys()):
            if failing.get(source) != state.failing.get(source):
                log(f"source {source}: {failing.get(source) or 'works again'}")
        loop_state.write_state(self.home, state.evolve(failing=failing))
