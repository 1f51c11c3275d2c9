"""holdfast queue: list, fill and reorder the queue."""

from __future__ import annotations

import os

from holdfast import paths
from holdfast.errors import UsageError
from holdfast.packet import load
from holdfast.queue import sync
from holdfast.store.layout import Home
from holdfast.views.cli.create.task_options import TRUST_PROJECT
from holdfast.views.cli.parse.command_spec import JSON, Argument, Command, Option
from holdfast.views.cli.queue import add, change, external, listing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ACTIONS = (
    "ls", "show", "next", "check", "add", "import", "claim", "release", "done", "priority", "retry", "rm",
    "pause", "resume", "clear",
)  # fmt: skip

_ACTIONS_HELP = """\
\b
Actions:
  ls                      list the queue (the default)
  show [TASK]             show one item
  next                    print the task that would start next
  check                   print how many tasks are ready
  add JSON                add a work item (- reads stdin)
  import SOURCE           add new items from a source
  claim [TASK]            take a task for an external worker
  release TASK            give a claimed task back
  done TASK               mark a claimed task as done
  priority TASK PRIORITY  set the priority: high, medium, low or a number
  retry TASK              run a held or poison task again
  rm TASK                 remove a task from the queue
  pause, resume [POOL]    stop or continue starting tasks
  clear                   remove all waiting tasks

\b
Sources: FILE.json, FILE.jsonl, a folder of .md files,
  gh:label=NAME[,repo=OWNER/NAME], bd:, gt:[RIG,…], cmd:COMMAND"""

COMMAND = Command(
    name="queue",
    summary="List, fill and reorder the queue.",
    description=_ACTIONS_HELP,
    examples=(
        "holdfast queue ls",
        """holdfast queue add '{"id": "issue-123", "title": "Fix the tests", "priority": "high"}' """
        "--agent claude",
        "holdfast queue import --from gh:label=agent --agent claude",
        "holdfast queue pause nightly",
    ),
    arguments=(
        Argument(dest="action", metavar="[ACTION]", choices=ACTIONS, required=False),
        Argument(dest="target", metavar="[TASK|JSON|SOURCE|POOL]", required=False, completes="task"),
        Argument(dest="value", metavar="[PRIORITY]", required=False),
    ),
    options=(
        Option(
            flags=("--agent",),
            dest="agent",
            metavar="NAME",
            completes="agent",
            help="For add and import: agent of items without one.",
        ),
        Option(
            flags=("--project",),
            dest="project",
            metavar="DIR",
            completes="folder",
            help="For add and import: project directory (default: here).",
        ),
        Option(flags=("--pool",), dest="pool", metavar="NAME", help="For add and import: pool."),
        Option(
            flags=("--sandbox",),
            dest="sandbox",
            kind="flag",
            help="For add and import: run the agents in a sandbox (see 'run').",
        ),
        Option(flags=("--most",), dest="most", metavar="N", help="For import: at most N items (100)."),
        Option(
            flags=("--from",),
            dest="source",
            metavar="SOURCE",
            help="For import: the source.",
        ),
        TRUST_PROJECT,
        Option(flags=("--by",), dest="by", metavar="NAME", help="For claim: name of the worker (you)."),
        Option(flags=("--yes",), dest="yes", kind="flag", help="For clear: really remove them."),
        JSON,
    ),
)


#: Read-only actions, as they work in a home that does not exist yet.
_READS = {"ls": listing.ls, "show": listing.ls, "next": listing.next_ready, "check": listing.check}
_RUN = {
    "ls": listing.ls,
    "show": listing.show,
    "next": listing.next_ready,
    "check": listing.check,
    "add": add.add,
    "import": add.import_from,
    "claim": external.claim,
    "release": external.release,
    "done": external.done,
    "priority": change.prioritize,
    "retry": change.retry,
    "rm": change.rm,
    "clear": change.clear,
    "pause": change.pause,
    "resume": change.pause,
}
#: The argument that an action requires.
_NEEDS = {
    "add": "an item",
    "import": "a source",
    **dict.fromkeys(("release", "done", "priority", "retry", "rm"), "a task"),
}
_EXAMPLES = {
    "add": """for example holdfast queue add '{"title": "Fix the tests"}' --agent claude""",
    "import": "for example holdfast queue import items.json; 'holdfast queue --help' lists the sources",
    "priority": "'holdfast queue priority TASK high'",
}


def run(values: dict[str, Any]) -> int:
    """Run the action."""
    home = Home(paths.home())
    values = {**values, "action": values["action"] or "ls"}
    if values["source"] is not None:
        if values["action"] != "import" or values["target"] is not None:
            raise UsageError(
                "--from is only for import, instead of SOURCE", hint="'holdfast queue import --from SOURCE'"
            )
        values = {**values, "target": values["source"]}
    action, target = values["action"], values["target"]
    if values["value"] is not None and action != "priority":
        raise UsageError(
            f"unexpected argument {values['value']!r} for 'queue {action}'",
            hint="only 'holdfast queue priority TASK PRIORITY' takes two",
        )
    if action in _NEEDS and not target:
        raise UsageError(
            f"'queue {action}' needs {_NEEDS[action]}",
            hint=_EXAMPLES.get(action, f"'holdfast queue {action} TASK'; 'holdfast queue ls' lists them"),
        )
    if action in _READS and not os.path.isdir(home.tasks):
        # A read-only action does not create the home.
        if action == "show" and target is not None:
            load.find(home, target)  # raises NotFound
        return _READS[action](home, listing.EmptyQueue(), values)
    if action not in _READS:
        paths.ensure_home(home.path)
    with sync.open_queue(home, reads_only=action in _READS) as queue:
        return _RUN[action](home, queue, values)
