"""External programs: if one is missing, tests are skipped locally and fail in CI."""

from __future__ import annotations

import os
import shutil
from typing import NoReturn

import pytest


def need(*programs: str) -> None:
    """Skip the running test when a program is missing; with CI=true, fail it."""
    __tracebackhide__ = True
    missing = [program for program in programs if shutil.which(program) is None]
    if not missing:
        return
    give_up(f"needs {', '.join(missing)}, which is not installed (make setup)")


def give_up(sentence: str) -> NoReturn:
    """Skip the running test; with CI=true, fail it."""
    __tracebackhide__ = True
    if os.environ.get("CI") == "true":
        pytest.fail(sentence)
    pytest.skip(sentence)


def need_sandbox() -> None:
    """Skip the running test where bubblewrap is missing or cannot work; with CI=true, fail it."""
    from holdfast.sandbox import machine

    __tracebackhide__ = True
    need("bwrap")
    problem = machine.find_problem(network=False)
    if problem is not None:
        give_up(problem.message)


def broken_bwrap(folder: str) -> list[str]:
    """Words before a command that runs as on a machine where bubblewrap has no permission to work."""
    from holdfast.sandbox import machine

    bwrap = machine.program()
    if bwrap is None:
        return []
    need("unshare")
    broken = os.path.join(folder, "broken-bwrap")
    with open(broken, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2; exit 1\n")
    os.chmod(broken, 0o755)
    mount = 'mount --bind "$0" "$1" && shift && exec "$@"'
    return ["unshare", "-rm", "sh", "-c", mount, broken, bwrap]
