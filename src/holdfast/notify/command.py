"""`command`: run a program with the notice as JSON on stdin and the main fields in its environment."""

from __future__ import annotations

import json
import os
import subprocess

from holdfast import program_search
from holdfast.errors import CommandNotFound, NotPossible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Below the limit of the whole delivery, so that the error can name the program.
LIMIT_S = 25.0
#: Internal variables that the program should not get.
_HIDDEN = ("HOLDFAST_ROLE",)
_SAID_CHARS = 300


def notify(notice: dict[str, Any], rule: dict[str, Any]) -> None:
    """Run `argv`; it must exit with 0."""
    run(rule["argv"], notice)


def run(argv: list[str], notice: dict[str, Any]) -> None:
    """Run a program until it exits. Raises CommandNotFound, and NotPossible with its last output."""
    # Searched where no agent writes: one in the project does not replace the user's.
    program_search.distrust(str(notice.get("project_dir") or ""))
    path = argv[0] if os.sep in argv[0] else program_search.find(argv[0])
    if path is None:
        raise CommandNotFound(
            f"cannot run {argv[0]}: it is not in PATH, or only in a directory of a project",
            hint="name it by its path in the rule",
        )
    try:
        done = subprocess.run(
            [path, *argv[1:]],
            input=json.dumps(notice, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n",
            # Nor does it start in a project, as 'notify test' may: the keeper does not.
            cwd="/",
            env={**_environment(), **variables(notice)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=LIMIT_S,
            check=False,
        )
    except FileNotFoundError as error:
        raise CommandNotFound(f"cannot run {argv[0]}: {error.strerror}") from error
    except OSError as error:
        raise NotPossible(f"cannot run {argv[0]}: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise NotPossible(f"{argv[0]} exceeded its limit of {LIMIT_S:.0f} s") from error
    if done.returncode != 0:
        stderr = done.stderr.decode("utf-8", "replace").strip()[-_SAID_CHARS:]
        raise NotPossible(f"{argv[0]} exited with {done.returncode}" + (f": {stderr}" if stderr else ""))


def variables(notice: dict[str, Any]) -> dict[str, str]:
    """`HOLDFAST_EVENT` and so on: strings, truncated to what an environment can hold."""
    names = {
        "HOLDFAST_EVENT": "event",
        "HOLDFAST_NOTICE": "id",
        "HOLDFAST_TASK": "task_id",
        "HOLDFAST_STATUS": "status",
        "HOLDFAST_REASON": "reason",
        "HOLDFAST_TEXT": "text",
        "HOLDFAST_PROJECT": "project_dir",
        "HOLDFAST_HOME": "home",
    }
    return {name: str(notice.get(field) or "").replace("\0", "")[:4000] for name, field in names.items()}


def _environment() -> dict[str, str]:
    return {name: value for name, value in program_search.environment().items() if name not in _HIDDEN}
