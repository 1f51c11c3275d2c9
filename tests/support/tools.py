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
