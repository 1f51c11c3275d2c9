"""Find an external program, run it to its end and capture its output."""

from __future__ import annotations

import functools
import os
import subprocess

from holdfast import paths, program_search
from holdfast.errors import HoldfastError
from holdfast.store import index
from holdfast.store.layout import Home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


#: Ended tasks whose projects count as directories in which agents wrote.
_ENDED = 500


def find(name: str) -> str | None:
    """The path of a program, outside the home and the projects of its tasks; None if it is not there."""
    _distrust_projects()
    return program_search.find(name)


@functools.cache
def _distrust_projects() -> None:
    try:
        home = Home(paths.home())
        program_search.distrust(home.path)
        if not os.path.isdir(home.tasks):
            return  # no task yet
        tasks = index.Index(home)
        try:
            rows = [*tasks.live(), *tasks.ended(_ENDED)]
        finally:
            tasks.close()
    except (HoldfastError, OSError, ValueError, index.sqlite3.Error):
        return  # a home that cannot be read
    for row in rows:
        if isinstance(row.get("project_dir"), str):
            program_search.distrust(row["project_dir"])


def run(
    argv: list[str], *, timeout_s: float, env: Mapping[str, str] | None = None, cwd: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run it without input; any exit status is returned. Raises OSError, subprocess.TimeoutExpired."""
    return subprocess.run(
        argv,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="replace",
        timeout=timeout_s,
        env=env,
        cwd=cwd,
        check=False,
    )


def failure(done: subprocess.CompletedProcess[str]) -> str:
    """Why a program failed, in one line: the first line of its stderr, or its exit status."""
    lines = done.stderr.strip().splitlines()
    return lines[0] if lines else f"status {done.returncode}"
