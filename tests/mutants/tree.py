"""A copy of the tree with its own interpreter, in which bugs are planted and tests are run."""

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

#: Everything that a test may read.
_COPIED = (
    *("bin", "src", "tests", "docs", "contracts", "benchmarks", ".ci"),
    *("pyproject.toml", "Makefile", "README.md", "CONTRIBUTING.md", "CHANGELOG.md"),
)
#: Time limit for the tests of one bug. A bug may keep a test from ending.
_LIMIT_S = 300.0
#: Exit statuses of pytest. With any other one, no test was run.
_PASSED, _FAILED = 0, 1


class Run(NamedTuple):
    """The result of running tests."""

    #: True: all passed. False: one failed. None: they could not be run.
    passed: bool | None
    #: The first line of pytest's output that gives a reason.
    reason: str
    took_s: float


class Tree:
    """A copy of the tree. Every process that its tests start imports `holdfast` from the copy."""

    def __init__(self, path: str) -> None:
        self.path = path
        for name in _COPIED:
            source, target = os.path.join(ROOT, name), os.path.join(path, name)
            if os.path.isdir(source):
                shutil.copytree(source, target, symlinks=True)
            else:
                shutil.copy2(source, target)
        self.python = _create_interpreter(os.path.join(path, ".venv"), os.path.join(path, "src"))

    @contextmanager
    def planted(self, bug: Bug | None) -> Iterator[None]:
        """Plant a bug for the duration of the block."""
        if bug is None:
            yield
            return
        path = os.path.join(self.path, bug.file)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        _write_module(path, bug.planted_in(text))
        try:
            yield
        finally:
            _write_module(path, text)

    def run(self, tests: tuple[str, ...]) -> Run:
        """Run the tests until one fails."""
        options = ("-x", "-q", "--no-header", "-p", "no:cacheprovider", "-p", "no:xdist")
        began_mono = time.monotonic()
        with subprocess.Popen(
            [self.python, "-m", "pytest", *options, *tests],
            cwd=self.path,
            # The temporary directories that pytest makes stay in the copy.
            env={**os.environ, "PYTEST_DEBUG_TEMPROOT": self.path},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        ) as process:
            try:
                output, _ = process.communicate(timeout=_LIMIT_S)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
                self._kill_all()
                return Run(False, f"the test did not end within {_LIMIT_S:g} s", _LIMIT_S)
        took_s = time.monotonic() - began_mono
        return Run({_PASSED: True, _FAILED: False}.get(process.returncode), _reason(output), took_s)

    def _kill_all(self) -> None:
        """Kill what a killed test left running: it all runs the copy's interpreter."""

        def are_gone() -> bool:
            left = processes.marked(self.path)
            processes.kill(left)
            return not left

        eventually(are_gone, what=f"no process of {self.path} is left")


def _create_interpreter(path: str, source: str) -> str:
    """Create a virtual environment that imports from `source`, then from our own environment.

    Ours finds `holdfast` through a .pth file of the development install. Python reads .pth files only in the
    directory of the running environment, so the new one does not find the original source at all.
    """
    venv.EnvBuilder(symlinks=True).create(path)
    python = os.path.join(path, "bin", "python")
    packages = sysconfig.get_path("purelib", "venv", {"base": path, "platbase": path})
    with open(os.path.join(packages, "mutants.pth"), "w", encoding="utf-8") as file:
        file.write(f"{source}\n{sysconfig.get_path('purelib')}\n")
    script = os.path.join(path, "bin", "holdfast")
    with open(os.path.join(ROOT, "bin", "holdfast"), encoding="utf-8") as file:
        _, _, body = file.read().partition("\n")
    with open(script, "w", encoding="utf-8") as file:
        file.write(f"#!{python}\n{body}")
    os.chmod(script, 0o755)
    argv = [python, "-c", "import holdfast; print(holdfast.__file__)"]
    imported = subprocess.run(argv, capture_output=True, text=True, check=True, cwd="/").stdout.strip()
    if not imported.startswith(source):
        raise RuntimeError(f"the copy's interpreter imports {imported}, not from {source}")
    return python


def _write_module(path: str, text: str) -> None:
    """Replace a module and remove its compiled file: Python recognises an old one only by size and second."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    folder, name = os.path.split(path)
    stem, _ = os.path.splitext(name)
    compiled = os.path.join(folder, "__pycache__", f"{stem}.{sys.implementation.cache_tag}.pyc")
    if os.path.exists(compiled):
        os.unlink(compiled)


def _reason(output: str) -> str:
    lines = [line.strip() for line in output.splitlines()]
    errors = [
        line.removeprefix("E ").strip() for line in lines if line.startswith(("E ", "ERROR", "INTERNAL"))
    ]
    return next((line for line in errors if line), lines[-1] if lines else "pytest printed nothing")[:150]
