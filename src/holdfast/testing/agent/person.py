"""The session for a person: what a coding agent's own interactive program is to its session."""

from __future__ import annotations

import os
import subprocess
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from holdfast.testing.agent.session import Session


def talk(session: Session) -> NoReturn:
    """Take the lines that a person types until `exit`, or the end of the terminal."""
    print(f"session {session.id} after {session.process_number} processes, in {os.getcwd()}", flush=True)
    for line in iter(sys.stdin.readline, ""):
        words = line.strip()
        if words.partition(" ")[0] == "exit":
            sys.exit(int(words.partition(" ")[2] or 0))
        if words.startswith("!"):
            subprocess.run(words[1:], shell=True, check=False)
        print(f"done: {words}", flush=True)
    sys.exit(0)
