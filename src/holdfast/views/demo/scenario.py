"""The scripted agent's scenario: write four parts of a file, with a long tool call between them.

A tool call ends when the file `go-<n>` exists. So every kill hits the agent in the middle of its work, even
on a slow machine, and no part is written once by luck.
"""

from __future__ import annotations

import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PARTS = 4
RESULT = "result.txt"
#: A tool call that is never released ends after this time.
_LIMIT_S = 60


def write(folder: str) -> str:
    """Write the scenario file; returns its path."""
    path = os.path.join(folder, "scenario.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"schema": "holdfast.scenario/1", "steps": _steps()}, file, indent=1)
        file.write("\n")
    return path


def expected() -> str:
    """The contents of the result if each step was done once."""
    return "".join(_line(part) for part in range(1, PARTS + 1))


def release_file(part: int) -> str:
    """The file that ends the tool call after a part."""
    return f"go-{part}"


def _steps() -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = []
    for part in range(1, PARTS + 1):
        steps.append({"say": f"writing part {part} of {PARTS}"})
        steps.append({"write": {"path": RESULT, "content": _line(part), "append": True}})
        if part < PARTS:
            steps.append({"tool": {"name": "Bash", "command": _wait_for(release_file(part))}})
    return [*steps, {"result": f"{PARTS} parts written"}]


def _line(part: int) -> str:
    return f"part {part} of {PARTS}\n"


def _wait_for(name: str) -> str:
    return f"for i in $(seq {_LIMIT_S * 20}); do test -e {name} && exit 0; sleep 0.05; done; exit 1"
