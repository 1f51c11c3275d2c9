"""holdfast queue: list, fill and reorder the queue."""

from __future__ import annotations

import os

from holdfast import paths
from holdfast.errors import UsageError
from holdfast.packet import load
from holdfast.queue import sync
from holdfast.store.layout import Home
from holdfast.views.cli.parse.command_spec import JSON, Action, Argument, Command, Option, actions_help
from holdfast.views.cli.parse.task_options import PROJECT, TRUST_PROJECT
from holdfast.views.cli.queue import add, change, external, listing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_ITEMS = ("agent", "project", "pool", "sandbox", "trust_project", "json")
_ACTIONS = (
    Action(
        name="ls",
        summary="list the queue (the default; also 'list')",
        description="In the order in which the tasks start, with what each of them waits for.",
        examples=("holdfast queue ls", "holdfast queue ls --json"),
    ),
    Action(
        name="show",
        usage="[TASK]",
        summary="show one item",
        examples=("holdfast queue show 20260131-fix",),
        completes="queued-task",
    ),
    Action(
        name="next",
        summary="print the task that would start next",
        description="Exits 3 if no task is ready.",
        examples=("holdfast queue next",),
    ),
    Action(name="check", summary="print how many tasks are ready", examples=("holdfast queue check --json",)),
    Action(
        name="add",
        usage="JSON",
        summary="add a work item (- reads stdin)",
        description="A work item is a JSON object, a list of objects, or one object per line: id or title, "
        "and prompt, agent, command, project, priority, pool, after, not_before. All items are added, or "
        "none. For a plain prompt, use 'holdfast submit PROMPT'.",
        examples=(
            """holdfast queue add '{"title": "Fix the tests", "priority": "high"}' --agent claude""",
            "holdfast queue add - --agent codex < items.jsonl",
        ),
        options=_ITEMS,
    ),
    Action(
        name="import",
        usage="SOURCE",
        summary="add new items from a source",
        description="SOURCE is FILE.json, FILE.jsonl, a folder of .md files, gh:label=NAME[,repo=OWNER/NAME] "
        "(GitHub issues), bd: (beads), gt:[RIG,…], or cmd:COMMAND, which prints JSON. Items that are there "
        "already are skipped.",
        examples=(
            "holdfast queue import items.json --agent claude",
            "holdfast queue import --from gh:label=agent --agent claude --most 5",
        ),
        options=("source", "most", *_ITEMS),
        completes="file",
    ),
    Action(
        name="claim",
        usage="[TASK]",
        summary="take a task for an external worker",
        description="The keeper does not start it. Without TASK, the next one that is ready.",
        examples=("holdfast queue claim --by ci-7", "holdfast queue claim 20260131-fix"),
        options=("by", "json"),
        completes="queued-task",
    ),
    Action(
        name="release",
        usage="TASK",
        summary="give a claimed task back",
        examples=("holdfast queue release 20260131-fix",),
        completes="queued-task",
    ),
    Action(
        name="done",
        usage="TASK",
        summary="mark a claimed task as done",
        examples=("holdfast queue done 20260131-fix",),
        completes="queued-task",
    ),
    Action(
        name="priority",
        usage="TASK PRIORITY",
        summary="set the priority: high, medium, low or a number",
        examples=("holdfast queue priority 20260131-fix high",),
        completes="queued-task",
    ),
    Action(
        name="retry",
        usage="TASK",
        summary="run a held or poison task again",
        examples=("holdfast queue retry 20260131-fix",),
        completes="queued-task",
    ),
    Action(
        name="rm",
        usage="TASK",
        summary="remove a task or a schedule",
        description="A queued task is killed; 'holdfast rm' removes its files. The tasks of a schedule stay.",
        examples=("holdfast queue rm 20260131-fix",),
        completes="queued-task",
    ),
    Action(
        name="pause",
        usage="[POOL]",
        summary="stop starting tasks (running ones continue)",
        examples=("holdfast queue pause", "holdfast queue pause nightly"),
        completes="pool",
    ),
    Action(
        name="resume",
        usage="[POOL]",
        summary="start tasks again",
        examples=("holdfast queue resume", "holdfast queue resume nightly"),
        completes="pool",
    ),
    Action(
        name="clear",
        summary="remove all waiting tasks",
        examples=("holdfast queue clear --yes",),
        options=("yes", "json"),
    ),
)
ACTIONS = tuple(action.name for action in _ACTIONS)
_SOURCES = """

\b
Sources: FILE.json, FILE.jsonl, a folder of .md files,
  gh:label=NAME[,repo=OWNER/NAME], bd:, gt:[RIG,…], cmd:COMMAND

'holdfast queue ACTION --help' explains one."""

COMMAND = Command(
    name="queue",
    summary="List, fill and reorder the queue.",
    description=actions_help(_ACTIONS) + _SOURCES,
    examples=(
        "holdfast queue ls",
        """holdfast queue add '{"id": "issue-123", "title": "Fix the tests", "priority": "high"}' """
        "--agent claude",
        "holdfast queue import --from gh:label=agent --agent claude",
        "holdfast queue pause nightly",
    ),
    arguments=(
        Argument(dest="action", metavar="[ACTION]", choices=ACTIONS, required=False, synonyms={"list": "ls"}),
        Argument(dest="target", metavar="[TASK|JSON|SOURCE|POOL]", required=False, completes="queued-task"),
        Argument(dest="value", metavar="[PRIORITY]", required=False),
    ),
    actions=_ACTIONS,
    options=(
        Option(
            flags=("--agent",),
            dest="agent",
            metavar="NAME",
            completes="agent",
            help="For add and import: agent of items without one.",
        ),
        PROJECT.evolve(help="For add and import: project directory (default: here)."),
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
            hint=f"'holdfast queue {action} --help' shows the usage",
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
