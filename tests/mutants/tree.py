"""A copy of the tree with an interpreter of its own, in which a bug is planted and a test is run."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from tests.mutants.bug import ROOT, Bug
from tests.support import processes
from tests.support.waiting import eventually

#: Whatever tests read.
_COPIED = (
    *("bin", "src", "tests", "docs", "contracts", "benchmarks", ".ci"),
    *("pyproject.toml", "Makefile", "README.md", "CONTRIBUTING.md", "CHANGELOG.md"),
)
#: A test that takes longer does not come to an end because of its bug.
_WITHIN_S = 300.0
#: What pytest's exit statuses mean here; others say that no test was run.
_PASSED, _FAILED = 0, 1


class Run(NamedTuple):
    """How the tests of a bug went."""

    #: True: all passed; False: one failed; None: they could not be run.
    passed: bool | None
    #: The first line that says why.
    because: str
    took_s: float


class Tree:
    """The copy. Its interpreter imports `holdfast` from the copy, in every process that a test starts."""

    def __init__(self, path: str) -> None:
        self.path = path
        for name in _COPIED:
            source, target = os.path.join(ROOT, name), os.path.join(path, name)
            if os.path.isdir(source):
                shutil.copytree(source, target, symlinks=True)
            else:
                shutil.copy2(source, target)
        self.python = _make_interpreter(os.path.join(path, ".venv"), os.path.join(path, "src"))

    @contextmanager
    def planted(self, bug: Bug | None) -> Iterator[None]:
        """While inside, the bug is there."""
        if bug is None:
            yield
            return
        path = os.path.join(self.path, bug.file)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        _write(path, bug.planted_in(text))
        try:
            yield
        finally:
            _write(path, text)

    def run(self, tests: tuple[str, ...]) -> Run:
        """Run these tests, until the first one fails."""
        argv = [
            self.python,
            "-m",
            "pytest",
            "-x",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:xdist",
            "--no-header",
            *tests,
        ]
        # Tests have temporary directories of their own; what pytest itself makes stays below the copy.
        env = {**os.environ, "PYTEST_DEBUG_TEMPROOT": self.path}
        began_mono = time.monotonic()
        with subprocess.Popen(
            argv, cwd=self.path, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", start_new_session=True,
        ) as process:  # fmt: skip
            try:
                printed, _ = process.communicate(timeout=_WITHIN_S)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
                self._kill_all()
                return Run(False, f"not at its end within {_WITHIN_S:g} s", _WITHIN_S)
        took_s = time.monotonic() - began_mono
        passed = {_PASSED: True, _FAILED: False}.get(process.returncode)
        return Run(passed, _first_reason(printed), took_s)

    def remove(self) -> None:
        """Delete the copy."""
        shutil.rmtree(self.path, ignore_errors=True)

    def _kill_all(self) -> None:
        """What a test left that was killed itself: all of it runs the copy's interpreter."""

        def are_gone() -> bool:
            found = processes.marked(self.path)
            processes.kill(found)
            return not found

        eventually(are_gone, what=f"no process of {self.path} is left")


def _make_interpreter(path: str, source: str) -> str:
    """A virtual environment with our packages and, before them, the copied source.

    The path of the development install stands in a .pth file among our packages, and those are read only in a directory
    of the environment's own: so the original source is not there at all.
    """
    venv.EnvBuilder(symlinks=True).create(path)
    python = os.path.join(path, "bin", "python")
    packages = sysconfig.get_path("purelib", "venv", {"base": path, "platbase": path})
    with open(os.path.join(packages, "mutants.pth"), "w", encoding="utf-8") as file:
        file.write(f"{source}\n{sysconfig.get_path('purelib')}\n")
    script = os.path.join(path, "bin", "holdfast")
    with open(os.path.join(ROOT, "bin", "holdfast"), encoding="utf-8") as file:
        _, _, body = file.read().partition("\n")
    _write(script, f"#!{python}\n{body}")
    os.chmod(script, 0o755)
    found = subprocess.run(
        [python, "-c", "import holdfast; print(holdfast.__file__)"],
        capture_output=True,
        text=True,
        check=True,
        cwd="/",
    ).stdout.strip()
    if not found.startswith(source):
        raise RuntimeError(f"the copy's interpreter imports {found}, not from {source}")
    return python


def _write(path: str, text: str) -> None:
    """Replace a file's text, and drop what was compiled from the old one: both may be of one second and one size."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    folder, name = os.path.split(path)
    stem, _ = os.path.splitext(name)
    compiled = os.path.join(folder, "__pycache__", f"{stem}.{sys.implementation.cache_tag}.pyc")
    if os.path.exists(compiled):
        os.unlink(compiled)


def _first_reason(printed: str) -> str:
    lines = [line.strip() for line in printed.splitlines()]
    said = [
        line.removeprefix("E ").strip() for line in lines if line.startswith(("E ", "ERROR", "INTERNALERROR"))
    ]
    return next((line for line in said if line), lines[-1] if lines else "nothing was printed")[:150]
