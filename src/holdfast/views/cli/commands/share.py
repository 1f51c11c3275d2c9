"""holdfast share: the page of a task as one file."""

from __future__ import annotations

import os
import sys

from holdfast import paths
from holdfast.errors import NoSuchDirectory, NotPossible, UsageError
from holdfast.packet import load
from holdfast.store import atomic
from holdfast.store.layout import Home
from holdfast.views.cli.parse.command_spec import JSON, TASK, Command, Option
from holdfast.views.cli.show import out
from holdfast.views.text import amounts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SCHEMA = "holdfast.share/1"

COMMAND = Command(
    name="share",
    summary="Write the page of a task to one file, to look at without holdfast.",
    description="The file has what the page of 'holdfast serve' shows: history, log, changes, gates, usage, "
    "files and events, as they are now. It is redacted once more, opens in any browser, and requests "
    "nothing from a network. It has at most 5 MB; what was left out is said in the file and on stderr. "
    "Look at it before you give it away: a secret that holdfast does not know is not masked. "
    "Needs 'holdfast[web]'.",
    examples=(
        "holdfast share 20260131-fix",
        "holdfast share 20260131-fix -o fix.html --force",
        "holdfast share 20260131-fix -o - | ssh host 'cat > fix.html'",
    ),
    arguments=(TASK,),
    options=(
        Option(
            flags=("-o", "--output"),
            dest="output",
            metavar="FILE",
            completes="file",
            help="The file to write (TASK.html); - for stdout.",
        ),
        Option(flags=("--force",), dest="force", kind="flag", help="Replace the file if it exists."),
        JSON,
    ),
)


def run(values: dict[str, Any]) -> int:
    """Write the file."""
    home = Home(paths.home())
    packet = load.find(home, values["task"], archived=True)
    is_piped = values["output"] == "-"
    if is_piped and values["json"]:
        raise UsageError("-o - and --json both print to stdout", hint="give one of them")
    path = "" if is_piped else _target(values["output"] or f"{packet.task_id}.html", force=values["force"])
    try:
        from holdfast.views.web.share import page
    except ImportError as error:
        raise NotPossible(
            f"the web view is not installed ({error.name} is missing)", hint="pip install 'holdfast[web]'"
        ) from error
    data, left_out = page.write(home, packet)
    if is_piped:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    else:
        atomic.write(path, data, durable=False, mode=0o644)
        out.talk(f"wrote {values['output'] or os.path.basename(path)} ({amounts.size(len(data))})")
    for each in left_out:
        out.talk(f"left out: {each}")
    if values["json"]:
        facts = {"schema": SCHEMA, "task_id": packet.task_id, "path": path}
        out.data({**facts, "bytes": len(data), "left_out": list(left_out)})
    return 0


def _target(name: str, *, force: bool) -> str:
    """The absolute path of a file that may be written. Raises NoSuchDirectory, NotPossible."""
    path = os.path.abspath(name)
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise NoSuchDirectory(
            f"cannot write {name}: no such directory: {folder}", hint="create it, or choose another file"
        )
    if os.path.isdir(path):
        raise NotPossible(f"{name} is a directory", hint=f"for example -o {os.path.join(name, 'task.html')}")
    if os.path.lexists(path) and not force:
        raise NotPossible(f"{name} exists", hint="--force replaces it; -o names another file")
    return path
