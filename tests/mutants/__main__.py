"""`python -m tests.mutants`: plant every bug, or those that are named, and see whether its test fails."""

from __future__ import annotations

import argparse
import os
import queue
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from tests.mutants.bug import Bug, problems, read_all
from tests.mutants.tree import Run, Tree


def main(argv: list[str]) -> int:
    """Exit status 0: every bug was found. 1: one was not, or could not be planted. 2: a wrong call."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only bugs whose name or file contains this")
    parser.add_argument("-n", type=int, default=2, metavar="N", help="how many at a time (default: 2)")
    parser.add_argument("--list", action="store_true", help="only list them")
    parser.add_argument("--check", action="store_true", help="only see whether each can still be planted")
    parser.add_argument("--no-baseline", action="store_true", help="do not run the tests without a bug first")
    asked = parser.parse_args(argv)
    bugs = [bug for bug in read_all() if _is_meant(bug, asked.names)]
    if not bugs:
        parser.error(f"no bug has a name or file with {' or '.join(asked.names)}")
    if asked.list:
        for bug in bugs:
            print(f"{bug.name}: {bug.says} ({bug.file})")
        return 0
    broken = {bug.name: found for bug in bugs if (found := problems(bug))}
    for name, found in broken.items():
        print(f"BROKEN    {name}: {'; '.join(found)}")
    if asked.check:
        print(f"{len(bugs) - len(broken)} of {len(bugs)} planted bugs fit the code")
        return 1 if broken else 0
    return _run(
        [bug for bug in bugs if bug.name not in broken], asked.n, baseline=not asked.no_baseline
    ) or bool(broken)


def _is_meant(bug: Bug, names: list[str]) -> bool:
    return not names or any(name in bug.name or name in bug.file for name in names)


def _run(bugs: list[Bug], count: int, *, baseline: bool) -> int:
    began_mono = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="hf-mutants-", ignore_cleanup_errors=True) as folder:
        pool = _Pool(folder, count)
        red: set[str] = set()
        if baseline:
            tests = sorted({test for bug in bugs for test in bug.tests})
            for test, run in pool.each([(None, (test,)) for test in tests], tests):
                if run.passed is not True:
                    red.add(test)
                    print(f"RED       {test} fails without any bug: {run.because}", flush=True)
        survivors, unknown, killed = [], [], 0
        sound = [bug for bug in bugs if not red.intersection(bug.tests)]
        for bug, run in pool.each([(bug, bug.tests) for bug in sound], sound):
            state = {True: "SURVIVED", False: "killed", None: "BROKEN"}[run.passed]
            print(
                f"{state:9} {run.took_s:5.1f} s  {bug.name}: {run.because if run.passed is not True else bug.says}",
                flush=True,
            )
            survivors += [bug] if run.passed else []
            unknown += [bug] if run.passed is None else []
            killed += run.passed is False
    minutes = (time.monotonic() - began_mono) / 60
    print(f"\n{killed} of {len(bugs)} planted bugs killed in {minutes:.1f} min")
    for bug in survivors:
        print(f"survived: {bug.name} in {bug.file}: {bug.says}\n    {' '.join(bug.tests)}")
    return 1 if survivors or unknown or red else 0


class _Pool:
    """So many copies of the tree, made when they are first needed."""

    def __init__(self, folder: str, count: int) -> None:
        self._folder, self._count = folder, count
        self._trees: queue.SimpleQueue[Tree | int] = queue.SimpleQueue()
        for number in range(count):
            self._trees.put(number)
        self._making = threading.Lock()

    def each(self, jobs: list[tuple[Bug | None, tuple[str, ...]]], keys: list) -> list[tuple]:
        """Run the jobs; yields each key with its result, in the order in which they were given."""
        with ThreadPoolExecutor(self._count) as threads:
            yield from zip(keys, threads.map(self._job, jobs), strict=True)

    def _job(self, job: tuple[Bug | None, tuple[str, ...]]) -> Run:
        bug, tests = job
        tree = self._trees.get()
        try:
            if isinstance(tree, int):
                with self._making:
                    tree = Tree(os.path.join(self._folder, str(tree)))
            with tree.planted(bug):
                return tree.run(tests)
        finally:
            self._trees.put(tree)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
