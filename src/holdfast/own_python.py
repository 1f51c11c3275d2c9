"""Start holdfast's own processes without the modules of a project.

Python looks for modules in the current directory and in PYTHONPATH before its own library. Either can be a
project in which an agent writes: a `json.py` there would run outside the agent's sandbox.
"""

from __future__ import annotations

import os
import sys

#: Directories of installed packages in PYTHONPATH are kept: some systems install programs that way.
_INSTALLED = ("site-packages", "dist-packages")


def command(module: str, *args: str) -> list[str]:
    """`python -m module args`, without the current directory and PYTHONPATH. The variable itself stays in the
    environment: agents and gates may need it."""
    return [sys.executable, *flags(), "-m", module, *args]


def flags() -> list[str]:
    """Options of the interpreter. Not -I, which leaves out the user's own packages: holdfast may be there."""
    return ["-P"] if any(_is_needed(entry) for entry in _pythonpath()) else ["-P", "-E"]


def leave_out_pythonpath() -> None:
    """Remove what PYTHONPATH added to the import path, for a process that was started without `command`."""
    dropped = {os.path.abspath(entry) for entry in _pythonpath() if not _is_needed(entry)}
    if dropped:
        sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) not in dropped]


def _pythonpath() -> list[str]:
    return [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]


def _is_needed(entry: str) -> bool:
    folder = os.path.abspath(entry)
    is_ours = folder == os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return is_ours or os.path.basename(folder) in _INSTALLED
