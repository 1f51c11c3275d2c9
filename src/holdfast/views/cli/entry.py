"""`holdfast …`: find the verb, parse, run, and turn errors into an exit status.

Daily verbs take a path that loads only what they use (json, sqlite3): start-up is part of the product. Everything else,
and every command line that the quick parser does not understand, goes through click.
"""

from __future__ import annotations

import importlib
import os
import sys

from holdfast.errors import HoldfastError
from holdfast.views.cli import spec

#: Verbs that never load click unless something is wrong with the command line.
QUICK = frozenset({"run", "show", "ls", "wait", "stop", "resume", "interrupt", "retry"})


def main() -> None:
    """The console script."""
    sys.exit(run(sys.argv[1:]))


def run(argv: list[str]) -> int:
    """Run one command line; returns its exit status."""
    try:
        return _dispatch(argv)
    except HoldfastError as error:
        return complain(error)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of our output left (`| head`): nothing to say, and nowhere to say it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0


def _dispatch(argv: list[str]) -> int:
    if argv and argv[0] in QUICK:
        module = importlib.import_module(f"holdfast.views.cli.commands.{argv[0]}")
        try:
            values = spec.parse(module.COMMAND, argv[1:])
        except spec.NeedsClick:
            pass
        else:
            return module.run(values)
    from holdfast.views.cli import full

    return full.run(argv)


def complain(error: HoldfastError) -> int:
    """What, to which, why; and what to do."""
    print(f"error: {error}", file=sys.stderr)
    if error.hint:
        print(f"hint: {error.hint}", file=sys.stderr)
    return error.exit_status
