"""`holdfast _complete WORDS…`: completions of the last word, one per line. Called by the shell scripts."""

from __future__ import annotations

import os

from holdfast import paths
from holdfast.errors import HoldfastError
from holdfast.model.status import ENDS, PARKED, Status
from holdfast.store.layout import Home
from holdfast.views.cli import verbs
from holdfast.views.cli.parse import command_spec
from holdfast.views.text import describe, fit_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

#: The shell completes these itself.
FILES, FOLDERS = ":files", ":dirs"


def run(words: list[str]) -> int:
    """Print the candidates; on an error, none."""
    try:
        for name, meaning in candidates(words):
            print(f"{name}\t{fit_text.printable(meaning)}" if meaning else name)
    except HoldfastError:
        return 0
    return 0


def candidates(words: list[str]) -> list[tuple[str, str]]:
    """(candidate, meaning) for the last of `words`, which may be empty."""
    *before, word = words or [""]
    if not before:
        return [(verb, verbs.load(verb).COMMAND.summary) for verb in verbs.VERBS if verb.startswith(word)]
    if before[0] not in verbs.VERBS:
        return []
    command: command_spec.Command = verbs.load(before[0]).COMMAND
    if command.takes_command and "--" in before:
        return [(FILES, "")]
    by_flag = {flag: option for option in command.options for flag in option.flags}
    option = by_flag.get(before[-1])
    if option is not None and option.kind != "flag":
        return _values(option.choices, option.completes, word)
    if word.startswith("-"):
        flags = [(flag, option.help) for flag, option in by_flag.items() if flag.startswith("--")]
        return _fitting([*flags, ("--help", "Show this message and exit.")], word)
    if command.actions and (action := _action(command, before[1:], by_flag)) is not None:
        return _values((), action.completes, word)
    argument = _argument(command, before[1:], by_flag)
    return _values(argument.choices, argument.completes, word) if argument is not None else []


def _action(
    command: command_spec.Command, before: list[str], by_flag: dict[str, command_spec.Option]
) -> command_spec.Action | None:
    """The action whose first argument is completed; None while the action itself is typed."""
    words = _positional(before, by_flag)
    if len(words) != 1:
        return None
    name = command.arguments[0].synonyms.get(words[0], words[0])
    return next((action for action in command.actions if action.name == name), None)


def _argument(
    command: command_spec.Command, before: list[str], by_flag: dict[str, command_spec.Option]
) -> command_spec.Argument | None:
    """The argument that the last word belongs to."""
    count = len(_positional(before, by_flag))
    for argument in command.arguments:
        if argument.many or count == 0:
            return argument
        count -= 1
    return None


def _positional(before: list[str], by_flag: dict[str, command_spec.Option]) -> list[str]:
    """The words that are not options and not their values."""
    found: list[str] = []
    words = iter(before)
    for word in words:
        option = by_flag.get(word)
        if option is not None and option.kind != "flag":
            next(words, None)
        elif not word.startswith("-"):
            found.append(word)
    return found


def _values(choices: tuple[str, ...], source: str, word: str) -> list[tuple[str, str]]:
    if choices:
        return _fitting([(choice, "") for choice in choices], word)
    return _fitting(SOURCES[source]() if source else [], word)


def _fitting(candidates: Iterable[tuple[str, str]], word: str) -> list[tuple[str, str]]:
    return [pair for pair in candidates if pair[0].startswith(word) or pair[0] in (FILES, FOLDERS)]


def _tasks(states: frozenset[Status]) -> list[tuple[str, str]]:
    from holdfast.views.facts import task_list

    rows = task_list.tasks(Home(paths.home()), everything=True, state=None)
    return [
        (row["task_id"], f"{row['status']}: {row['task_name']}") for row in rows if row["status"] in states
    ]


def _working() -> frozenset[Status]:
    """The states in which a task can be interrupted."""
    return frozenset(Status) - ENDS - PARKED - {Status.QUEUED}


def _queued() -> list[tuple[str, str]]:
    from holdfast.queue.local import LocalQueue

    home = Home(paths.home())
    if not os.path.exists(home.queue):
        return []
    with LocalQueue(home, reads_only=True) as queue:
        return [(item.task_id, item.state) for item in queue.items()]


def _pools() -> list[tuple[str, str]]:
    from holdfast.queue.local import LocalQueue
    from holdfast.views.create import pools

    home = Home(paths.home())
    if not os.path.exists(home.queue):
        return [(name, "") for name in (pools.DEFAULT, *pools.configured())]
    with LocalQueue(home, reads_only=True) as queue:
        return [(name, "") for name in pools.known(queue)]


def _topics() -> list[tuple[str, str]]:
    from holdfast.views.cli.commands.help import topics

    return [(name, "") for name in (*topics(), *verbs.VERBS)]


def _agents() -> list[tuple[str, str]]:
    from holdfast.agents.registry import names

    return [(name, "") for name in names()]


#: What the `completes` of an argument or option can be.
SOURCES: dict[str, Callable[[], list[tuple[str, str]]]] = {
    "task": lambda: _tasks(frozenset(Status)),
    "live-task": lambda: _tasks(frozenset(Status) - ENDS),
    "ended-task": lambda: _tasks(ENDS),
    "working-task": lambda: _tasks(_working()),
    "asking-task": lambda: _tasks(frozenset({Status.INTERRUPTED})),
    "queued-task": _queued,
    "pool": _pools,
    "parked-task": lambda: _tasks(frozenset({Status.INTERRUPTED, Status.WAITING})),
    "state": lambda: [(state, "") for state in (*Status, *describe.HELD)],
    "agent": _agents,
    "topic": _topics,
    "file": lambda: [(FILES, "")],
    "folder": lambda: [(FOLDERS, "")],
}
