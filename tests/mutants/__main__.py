"""`python -m tests.mutants [NAME…]`: plant each bug and check that its test fails."""

from __future__ import annotations

import argparse
import os
import queue
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from tests.mutants.bug import LISTS, Bug, problems, read_all
from tests.mutants.tree import Run, Tree

#: A bug to plant, or None, and the tests to run.
Job = tuple[Bug | None, tuple[str, ...]]


def main(argv: list[str]) -> int:
    """Exit status 0: every bug was killed. 1: a bug survived or could not be planted. 2: wrong arguments."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only bugs whose name or file contains this")
    parser.add_argument("-n", type=int, default=2, metavar="N", help="how many at a time (default: 2)")
    parser.add_argument("--list", action="store_true", help="list the bugs and exit")
    parser.add_argument("--check", action="store_true", help="check that every bug can be planted, and exit")
    parser.add_argument("--no-baseline", action="store_true", help="do not run the tests without a bug first")
    parser.add_argument("--bugs", default=LISTS, metavar="DIR", help="read the lists in this directory")
    options = parser.parse_args(argv)
    bugs = [bug for bug in read_all(options.bugs) if _is_selected(bug, options.names)]
    if not bugs:
        parser.error(f"no bug has a name or file that contains {' or '.join(options.names)}")
    if options.list:
        for bug in bugs:
            print(f"{bug.name}: {bug.effect} ({bug.file})")
        return 0
    broken = {bug.name: reasons for bug in bugs if (reasons := problems(bug))}
    for name, reasons in broken.items():
        print(f"BROKEN    {name}: {'; '.join(reasons)}")
    if options.check:
        print(f"{len(bugs) - len(broken)} of {len(bugs)} bugs can be planted")
        return 1 if broken else 0
    sound = [bug for bug in bugs if bug.name not in broken]
    is_clean = _run(sound, options.n, with_baseline=not options.no_baseline)
    return 0 if is_clean and not broken else 1


def _is_selected(bug: Bug, names: list[str]) -> bool:
    return not names or any(name in bug.name or name in bug.file for name in names)


def _run(bugs: list[Bug], count: int, *, with_baseline: bool) -> bool:
    """Plant the bugs. Returns whether all of them were killed."""
    began_mono = time.monotonic()
    survivors: list[Bug] = []
    killed = 0
    with tempfile.TemporaryDirectory(prefix="hf-mutants-", ignore_cleanup_errors=True) as folder:
        pool = _Pool(folder, count)
        red = _red_tests(bugs, pool) if with_baseline else set()
        tested = [bug for bug in bugs if not red.intersection(bug.tests)]
        for bug, run in zip(tested, pool.run([(bug, bug.tests) for bug in tested]), strict=True):
            state = {True: "SURVIVED", False: "killed", None: "BROKEN"}[run.passed]
            text = bug.effect if run.passed else run.reason
            print(f"{state:9} {run.took_s:5.1f} s  {bug.name}: {text}", flush=True)
            killed += run.passed is False
            survivors += [bug] if run.passed else []
    minutes = (time.monotonic() - began_mono) / 60
    print(f"\n{killed} of {len(bugs)} planted bugs killed in {minutes:.1f} min")
    for bug in survivors:
        print(f"survived: {bug.name} in {bug.file}: {bug.effect}\n    {' '.join(bug.tests)}")
    return killed == len(bugs)


def _red_tests(bugs: list[Bug], pool: _Pool) -> set[str]:
    """The tests that fail without any bug: they would seem to kill everything."""
    tests = sorted({test for bug in bugs for test in bug.tests})
    red: set[str] = set()
    for test, run in zip(tests, pool.run([(None, (test,)) for test in tests]), strict=True):
        if run.passed is not True:
            red.add(test)
            print(f"RED       {test} fails without a bug: {run.reason}", flush=True)
    return red


class _Pool:
    """Copies of the tree, created when they are first needed."""

    def __init__(self, folder: str, count: int) -> None:
        self._folder, self._count = folder, count
        #: Free copies, and the numbers of those that do not exist yet.
        self._free: queue.SimpleQueue[Tree | int] = queue.SimpleQueue()
        for number in range(count):
            self._free.put(number)
        self._copying = threading.Lock()

    def run(self, jobs: Sequence[Job]) -> Iterator[Run]:
        """The results of the jobs, in their order."""
        with ThreadPoolExecutor(self._count) as threads:
            yield from threads.map(self._run_one, jobs)

    def _run_one(self, job: Job) -> Run:
        bug, tests = job
        tree = self._free.get()
        try:
            if isinstance(tree, int):
                with self._copying:
                    tree = Tree(os.path.join(self._folder, str(tree)))
            with tree.planted(bug):
                return tree.run(tests)
        finally:
            self._free.put(tree)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
