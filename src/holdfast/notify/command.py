"""`command`: a program gets the notice as JSON on stdin, and the main facts in its environment."""

from __future__ import annotations

import json
import os
import subprocess

from holdfast.errors import CommandNotFound, NotPossible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Below the limit of the whole delivery, so that the error can say what hung.
LIMIT_S = 25.0
#: Ours, and not a program's business.
_HIDDEN = ("HOLDFAST_ROLE",)
_SAID_CHARS = 300


def notify(notice: dict[str, Any], rule: dict[str, Any]) -> None:
    """Run `argv`; it has to exit 0."""
    run(rule["argv"], notice)


def run(argv: list[str], notice: dict[str, Any]) -> None:
    """Run a program to its end. Raises CommandNotFound, and NotPossible with what it said last."""
    try:
        done = subprocess.run(
            argv,
            input=json.dumps(notice, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n",
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
        raise NotPossible(f"{argv[0]} took longer than {LIMIT_S:.0f} s") from error
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip()[-_SAID_CHARS:]
        raise NotPossible(f"{argv[0]} exited with {done.returncode}" + (f": {said}" if said else ""))


def variables(notice: dict[str, Any]) -> dict[str, str]:
    """`HOLDFAST_EVENT` and the others: texts, never longer than an environment can hold."""
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
    return {name: value for name, value in os.environ.items() if name not in _HIDDEN}
