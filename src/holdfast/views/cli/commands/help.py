"""holdfast help: print a topic, or the help of a verb."""

from __future__ import annotations

import os

from holdfast.errors import UsageError
from holdfast.views.cli import verbs
from holdfast.views.cli.parse.command_spec import Argument, Command
from holdfast.views.cli.show import terminal
from holdfast.views.text import fit_text, suggest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

COMMAND = Command(
    name="help",
    summary="Show help on a verb or topic.",
    description="Topics: environment, exit-codes, files, states.",
    examples=("holdfast help", "holdfast help exit-codes", "holdfast help run", "holdfast help queue import"),
    arguments=(Argument(dest="topic", metavar="[TOPIC…]", required=False, many=True, completes="topic"),),
)

#: Width of a line, and of the column with names.
_WIDEST, _NAME = 80, 15
_FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "topics")


def topics() -> tuple[str, ...]:
    """Names of the topics; each is a page in the package."""
    return tuple(sorted(name[:-3] for name in os.listdir(_FOLDER) if name.endswith(".md")))


def read(topic: str) -> str:
    """The page of a topic."""
    with open(os.path.join(_FOLDER, f"{topic}.md"), encoding="utf-8") as file:
        return file.read()


def run(values: dict[str, Any]) -> int:
    """Print a topic, the help of a verb, or an overview."""
    if not values["topic"]:
        return _overview()
    words: list[str] = values["topic"]
    # `help exit codes`, and `help queue import`.
    topic = "-".join(words)
    if topic in topics():
        print(read(topic), end="")
        return 0
    verb = verbs.ALIASES.get(words[0], words[0])
    if verb in verbs.VERBS:
        return _of_verb(verb, words[1:])
    known = (*topics(), *verbs.VERBS)
    hint = (
        suggest.did_you_mean(topic, known)
        or f"topics: {', '.join(topics())}; 'holdfast --help' lists the verbs"
    )
    raise UsageError(f"no help on {' '.join(words)!r}", hint=hint)


def _of_verb(verb: str, rest: list[str]) -> int:
    """The help of a verb, or of one of its actions."""
    actions = tuple(action.name for action in verbs.load(verb).COMMAND.actions)
    synonyms: dict[str, str] = verbs.load(verb).COMMAND.arguments[0].synonyms if actions else {}
    action = synonyms.get(rest[0], rest[0]) if rest else ""
    if len(rest) > 1 or (rest and action not in actions):
        hint = suggest.did_you_mean(rest[0], actions, synonyms) or f"'holdfast help {verb}' has all there is"
        raise UsageError(f"no help on '{verb} {' '.join(rest)}'", hint=hint)
    from holdfast.views.cli.parse import click_app

    return click_app.run([verb, *([action] if action else []), "--help"])


def _overview() -> int:
    print("Topics ('holdfast help TOPIC'):")
    for topic in topics():
        _entry(topic, read(topic).partition("\n")[0].lstrip("# "))
    for title, names in verbs.SECTIONS.items():
        print(f"\n{title} ('holdfast help VERB'):")
        for name in names:
            _entry(name, verbs.load(name).COMMAND.summary)
    return 0


def _entry(name: str, text: str) -> None:
    """Print a name and its description, in at most 80 columns as click does."""
    room = min(terminal.width() or _WIDEST, _WIDEST)
    for line in fit_text.wrap(
        fit_text.as_displayed(text), room, first=f"  {name:{_NAME - 3}} ", rest=" " * _NAME
    ):
        print(line)
