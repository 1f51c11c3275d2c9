"""Run an external program to its end and capture its output."""

from __future__ import annotations

import subprocess

from holdfast import program_search

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def run(
    argv: list[str], *, timeout_s: float, env: Mapping[str, str] | None = None, cwd: str = "/"
) -> subprocess.CompletedProcess[str]:
    """Run it without input, not in a project unless `cwd` says so; any exit status is returned.

    Raises OSError, subprocess.TimeoutExpired.
    """
    return subprocess.run(
        argv,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="replace",
        timeout=timeout_s,
        env=program_search.environment() if env is None else env,
        cwd=cwd,
        check=False,
    )


def failure(done: subprocess.CompletedProcess[str]) -> str:
    """Why a program failed, in one line: the first line of its stderr, or its exit status."""
    lines = done.stderr.strip().splitlines()
    return lines[0] if lines else f"status {done.returncode}"
