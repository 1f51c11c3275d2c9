"""The command line, parsed by hand: argparse would double the start-up time."""

from __future__ import annotations

USAGE = """\
usage: python -m holdfast.testing.agent SCENARIO.json [options] [PROMPT]

Plays a scenario file in place of a coding-agent CLI. Without PROMPT, stdin is read.

  --session-id UUID   start a session with this id (default: a new one)
  --resume ID         continue an earlier session
  --state-dir DIR     directory of the sessions (default: $HOLDFAST_SCRIPTED_STATE,
                      else in a task <home>/scripted-agent, else
                      $XDG_STATE_HOME/scripted-agent, else ~/.local/state/scripted-agent)
  --model NAME        the model to report
  --dialect NAME      stream-json (default) or text
  --interactive       with --resume: for a person, who types lines (`!COMMAND` runs it,
                      `exit` ends it)
  --help              this text
"""

OPTIONS = {"--session-id", "--resume", "--state-dir", "--model", "--dialect"}


class UsageError(Exception):
    """Raised if the command line or the scenario is invalid; the program exits with 2."""


class CommandLine:
    """The parsed options; `prompt` is None if it comes from stdin."""

    def __init__(self, argv: list[str]) -> None:
        options, words = _split(argv)
        if not words:
            raise UsageError("a scenario file is required\n\n" + USAGE)
        if len(words) > 2:
            raise UsageError(f"unexpected argument {words[2]!r}: one scenario and one prompt are allowed")
        if "--session-id" in options and "--resume" in options:
            raise UsageError("--session-id and --resume exclude each other")
        self.scenario = words[0]
        self.prompt = words[1] if len(words) > 1 else None
        self.session_id = options.get("--session-id")
        self.resume = options.get("--resume")
        self.state_dir = options.get("--state-dir")
        self.model = options.get("--model")
        self.interactive = "--interactive" in options
        self.dialect = options.get("--dialect", "stream-json")


def _split(argv: list[str]) -> tuple[dict[str, str], list[str]]:
    options: dict[str, str] = {}
    words: list[str] = []
    rest = iter(argv)
    for word in rest:
        if word == "--":
            words.extend(rest)
        elif not word.startswith("--"):
            words.append(word)
        else:
            name, has_value, value = word.partition("=")
            if name == "--interactive":
                options[name] = "yes"
                continue
            if name not in OPTIONS:
                raise UsageError(f"unknown option {name}\n\n{USAGE}")
            if not has_value:
                value = next(rest, "")
            if not value:
                raise UsageError(f"{name} needs a value")
            options[name] = value
    return options, words
