"""holdfast share: the page of a task as one file."""

from __future__ import annotations

import os

from holdfast import extras, paths
from holdfast.errors import NotPossible, UsageError
from holdfast.packet import load
from holdfast.store.layout import Home
from holdfast.views.cli.parse.command_spec import JSON, TASK, Command, Option
from holdfast.views.cli.show import out, user_file
from holdfast.views.text import amounts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SCHEMA = "holdfast.share/1"

COMMAND = Command(
    name="share",
    summary="Write the page of a task to one HTML file.",
    description="The file has what the page of 'holdfast serve' shows: history, log, changes, gates, usage, "
    "files and events, as they are now. It is redacted once more, opens in any browser, and makes no "
    "network request. It has at most 5 MB; anything left out is listed in the file and on stderr. Read it "
    "before you share it: a secret that holdfast does not know is not masked. Needs the extra 'web'.",
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
    is_piped = values["output"] == user_file.STDOUT
    if is_piped and values["json"]:
        raise UsageError("-o - and --json both print to stdout", hint="give one of them")
    name = values["output"] or f"{packet.task_id}.html"
    _check(name, force=values["force"])
    try:
        from holdfast.views.web.share import page
    except ImportError as error:
        raise NotPossible(
            f"the web view is not installed ({error.name} is missing)", hint=extras.how_to_install("web")
        ) from error
    data, left_out = page.write(home, packet)
    user_file.write(name, data)
    if not is_piped:
        out.talk(f"wrote {name} ({amounts.size(len(data))})")
    for each in left_out:
        out.talk(f"left out: {each}")
    if values["json"]:
        facts = {"schema": SCHEMA, "task_id": packet.task_id, "path": os.path.abspath(name)}
        out.data({**facts, "bytes": len(data), "left_out": list(left_out)})
    return 0


def _check(name: str, *, force: bool) -> None:
    """Raises NoSuchDirectory, NotPossible."""
    user_file.check(name)
    if os.path.lexists(name) and name != user_file.STDOUT and not force:
        raise NotPossible(f"{name} exists", hint="--force replaces it; -o names another file")
