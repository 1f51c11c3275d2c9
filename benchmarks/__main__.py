"""`python -m benchmarks`: measure and print one table; with --write, save it to docs/benchmarks.md."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time

from benchmarks import report, table
from benchmarks.place import Place
from benchmarks.rows import ROWS, measure
from benchmarks.table import Line


def main() -> int:
    """Returns 0 even if a target is missed: the table shows it, and machines differ."""
    options = _parser().parse_args()
    # Clean up after a signal, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    lines: list[Line] = []
    place = Place(quick=options.quick, whole=options.whole, jq=options.jq)
    try:
        for row in options.rows:
            began = time.monotonic()
            print(f"row {row}", file=sys.stderr, flush=True)
            lines += measure(row)(place)
            place.end_processes()
            place.progress(f"took {time.monotonic() - began:.0f} s")
        print(table.as_text(lines))
        for note in table.notes(lines):
            print(f"  {note}")
        print(f"on {report.machine(place)}")
        if options.write:
            report.write(place, lines, "python -m benchmarks " + " ".join(_shown(sys.argv[1:])))
    finally:
        place.close()
    return 0


def _shown(args: list[str]) -> list[str]:
    """The command line without paths of this machine."""
    return [os.path.basename(arg) if "/" in arg else arg for arg in args]


def _rows(text: str) -> list[int]:
    rows = [int(part) for part in text.split(",")]
    if not set(rows) <= set(ROWS):
        raise argparse.ArgumentTypeError(f"rows are {', '.join(map(str, ROWS))}")
    return rows


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--rows", type=_rows, default=list(ROWS), metavar="2,3", help="measure these rows only"
    )
    parser.add_argument("--quick", action="store_true", help="few repeats, to check that everything works")
    parser.add_argument("--whole", action="store_true", help="row 11 with 3,000 tasks, too (20 GB of memory)")
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks.md")
    parser.add_argument("--jq", metavar="FILE", help="the jq of the bash design (default: from PATH)")
    return parser


sys.exit(main())
