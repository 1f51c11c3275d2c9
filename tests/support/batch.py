"""Many command lines in one process that has loaded everything: each runs in a fork of it.

    python -m tests.support.batch < CASES > ANSWERS

CASES is a JSON list of argument lists; ANSWERS a list of [exit status, stdout, stderr].
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from typing import Any

#: What one command line may take.
_WITHIN_S = 20


def answers(cases: list[list[str]], *, cwd: str, env: dict[str, str] | None = None) -> list[Any]:
    """(exit status, stdout, stderr) of each command line."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    path = {"PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)}
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.batch"],
        input=json.dumps(cases),
        env={**os.environ, **path, **(env or {})},
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=240,
        check=True,
    )
    return json.loads(done.stdout)


def _answer(argv: list[str]) -> tuple[int, str, str]:
    from holdfast.views.cli import entry

    with tempfile.TemporaryFile("w+b") as stdout, tempfile.TemporaryFile("w+b") as stderr:
        pid = os.fork()
        if pid == 0:
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(stdout.fileno(), 1)
            os.dup2(stderr.fileno(), 2)
            signal.alarm(_WITHIN_S)
            sys.argv = ["holdfast", *argv]
            entry.main()
        _, status = os.waitpid(pid, 0)
        return os.waitstatus_to_exitcode(status), _text(stdout), _text(stderr)


def _text(file: Any) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


def main() -> None:
    from holdfast.views.cli import verbs

    __import__("holdfast.views.cli.parse.click_app")
    for verb in verbs.VERBS:
        verbs.load(verb)
    print(json.dumps([_answer(argv) for argv in json.load(sys.stdin)]))


if __name__ == "__main__":
    main()
