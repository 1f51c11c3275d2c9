"""holdfast queue: what waits, in which order, and where work comes from."""

from __future__ import annotations

import os

from holdfast import paths
from holdfast.errors import UsageError
from holdfast.packet import load
from holdfast.queue import sync
from holdfast.store.layout import Home
from holdfast.views.cli.parse.command_spec import JSON, Argument, Command, Option
from holdfast.views.cli.queue import add, change, external, listing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ACTIONS = (
    "ls", "show", "next", "check", "add", "import", "claim", "release", "done", "priority", "retry", "rm", "pause", "resume",
    "clear",
)  # fmt: skip

COMMAND = Command(
    name="queue",
    summary="Show the queue, add work to it, or change its order of things.",
    description="Actions: ls, which is what it does without an action; show [TASK]; next: the task whose turn it is; check: how many wait; add JSON (- is stdin): a work "
    "item; import SOURCE: a .json or .jsonl file, a folder of .md files, gh:label=NAME[,repo=OWNER/NAME], bd:, gt:[RIG,…] or "
    "cmd:COMMAND, and what is there already is left alone; claim [TASK]: take it for a worker outside; release TASK: give it "
    "back; done TASK: it was done outside; priority TASK PRIORITY: high, medium, low or a number; retry TASK: let a held or poison one go again; rm TASK; pause and resume [POOL]; clear: end all that waits.",
    examples=(
        "holdfast queue ls",
        """holdfast queue add '{"id": "issue-123", "title": "Fix the tests", "priority": "high"}' --agent claude""",
        "holdfast queue import --from gh:label=agent --agent claude",
        "holdfast queue pause nightly",
    ),
    arguments=(
        Argument(dest="action", metavar="[ACTION]", choices=ACTIONS, required=False),
        Argument(dest="what", metavar="[TASK|JSON|SOURCE|POOL]", required=False, completes="task"),
        Argument(dest="value", metavar="[PRIORITY]", required=False),
    ),
    options=(
        Option(
            flags=("--agent",),
            dest="agent",
            metavar="NAME",
            completes="agent",
            help="For add and import: the agent of items that name none.",
        ),
        Option(
            flags=("--project",),
            dest="project",
            metavar="DIR",
            completes="folder",
            help="For add and import: where the work is done (default: here).",
        ),
        Option(flags=("--pool",), dest="pool", metavar="NAME", help="For add and import: the pool."),
        Option(
            flags=("--most",), dest="most", metavar="N", help="For import: so many items at a time (100)."
        ),
        Option(
            flags=("--from",),
            dest="source",
            metavar="SOURCE",
            help="For import: the source, said with a flag.",
        ),
        Option(flags=("--by",), dest="by", metavar="NAME", help="For claim: who takes it (you)."),
        Option(flags=("--yes",), dest="yes", kind="flag", help="For clear: yes, end them."),
        JSON,
    ),
)


#: What only looks, in a home that is not there yet.
_LOOKS = {"ls": listing.ls, "show": listing.ls, "next": listing.next_ready, "check": listing.check}
_ACTS = {
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
#: What an action cannot do without.
_NEEDS = {
    "add": "an item",
    "import": "a source",
    **dict.fromkeys(("release", "done", "priority", "retry", "rm"), "a task"),
}
_EXAMPLES = {
    "add": """for example holdfast queue add '{"title": "Fix the tests"}' --agent claude""",
    "import": "for example holdfast queue import items.json; 'holdfast queue --help' has every source",
    "priority": "'holdfast queue priority TASK high'",
}


def run(values: dict[str, Any]) -> int:
    """One of the actions."""
    home = Home(paths.home())
    values = {**values, "action": values["action"] or "ls"}
    if values["source"] is not None:
        if values["action"] != "import" or values["what"] is not None:
            raise UsageError(
                "--from names the source of an import", hint="'holdfast queue import --from SOURCE'"
            )
        values = {**values, "what": values["source"]}
    action, what = values["action"], values["what"]
    if values["value"] is not None and action != "priority":
        raise UsageError(
            f"'queue {action}' takes no {values['value']!r}",
            hint="only a priority is two words: 'holdfast queue priority TASK PRIORITY'",
        )
    if action in _NEEDS and not what:
        raise UsageError(
            f"'queue {action}' needs {_NEEDS[action]}",
            hint=_EXAMPLES.get(action, f"'holdfast queue {action} TASK'; 'holdfast queue ls' shows them"),
        )
    if action in _LOOKS and not os.path.isdir(home.tasks):
        # Nobody has worked here yet: whoever only looks makes nothing.
        if action == "show" and what is not None:
            load.find(home, what)  # which says that there is none
        return _LOOKS[action](home, listing.EmptyQueue(), values)
    if action not in _LOOKS:
        paths.ensure_home(home.path)
    with sync.open_queue(home, reads_only=action in _LOOKS) as queue:
        return _ACTS[action](home, queue, values)
