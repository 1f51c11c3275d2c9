"""`holdfast …`: find the verb, parse, run, and turn errors into an exit status.

Every verb takes a path that loads only what it uses (json, sqlite3): start-up is part of the product. Help, and every
command line that the quick parser does not understand, goes through click.
"""

from __future__ import annotations

import os
import sys

from holdfast.errors import HoldfastError
from holdfast.views.cli import out, spec, verbs

#: What a bug of ours ends with (sysexits: EX_SOFTWARE).
OUR_BUG = 70


def main() -> None:
    """The console script."""
    out.settle()
    status = run(sys.argv[1:])
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            pass  # closed, full, or not there: nobody is left to tell
    # Taking the interpreter down in order would cost a tenth of the whole command.
    os._exit(status)


def run(argv: list[str]) -> int:
    """Run one command line; returns its exit status."""
    is_verbose = bool(argv) and argv[0] in ("-v", "-vv")
    try:
        status = _dispatch(argv[is_verbose:])
        if sys.stdout is not None:  # None when it was closed: >&-
            sys.stdout.flush()
        return status
    except HoldfastError as error:
        return out.complain(error)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of our output left (`| head`): nothing to say, and nowhere to say it.
        _forget_stdout()
        return 0
    except (
        Exception
    ) as error:  # a bug of ours, or a disk that does not take our output: whoever typed this sees it
        return _apologise(error, is_verbose=is_verbose)


def _dispatch(argv: list[str]) -> int:
    if argv and argv[0] in verbs.VERBS:
        module = verbs.load(argv[0])
        try:
            values = spec.parse(module.COMMAND, argv[1:])
        except spec.NeedsClick:
            pass
        else:
            return module.run(values)
    elif argv and argv[0] == "_complete":
        from holdfast.views.cli import complete

        return complete.run(argv[1:])
    from holdfast.views.cli import full

    return full.run(argv)


def _apologise(error: Exception, *, is_verbose: bool) -> int:
    if is_verbose:
        import traceback

        traceback.print_exc()
    _forget_stdout()
    if isinstance(error, OSError) and error.filename is None and error.errno is not None:
        out.talk(f"error: cannot write the output: {error.strerror}")
        return 3
    out.talk(f"error: holdfast has a bug: {type(error).__name__}: {error}")
    out.talk("hint: no task is harmed; 'holdfast -vv …' shows the traceback, please report it")
    return OUR_BUG


def _forget_stdout() -> None:
    """What is still in the buffer can go nowhere; the interpreter must not try again at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
