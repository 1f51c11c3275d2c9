"""`holdfast …`: find the verb, parse, run, and turn errors into an exit status.

Every verb takes a path that loads only what it uses (json, sqlite3): start-up is part of the product. Help, and every
command line that the quick parser does not understand, goes through click.

This module itself loads nothing: whoever presses Ctrl-C before `main` is called gets a traceback that nobody can catch, so
all else is loaded inside it.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal

    from holdfast.errors import HoldfastError
else:
    # In C, and loaded in every interpreter. The one in Python gives names to its numbers, for half a millisecond.
    import _signal as signal

#: What a bug of ours ends with (sysexits: EX_SOFTWARE).
OUR_BUG = 70
CTRL_C = 130


def main() -> None:
    """The console script."""
    try:
        _leave_at_ctrl_c()
        _open_missing_streams()
        status = _run_and_flush(sys.argv[1:])
    except KeyboardInterrupt:  # before that, or at the very end
        status = CTRL_C
    # Taking the interpreter down in order would cost a tenth of the whole command.
    os._exit(status)


def _leave_at_ctrl_c() -> None:
    """While we load, leave on the spot: an exception may come up in a callback of Python's own, which prints and forgets it.
    Whoever started us without Ctrl-C (a shell in the background) has it so."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)


def _leave(number: int, frame: object) -> None:
    os._exit(CTRL_C)


def _raise_at_ctrl_c() -> None:
    """All is loaded: from here on a verb decides what Ctrl-C means."""
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _open_missing_streams() -> None:
    """Whoever started us may have closed some of them (`>&-`). The next file that is opened would take the place of one, and
    what we start would write into it."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is not None:
            continue
        try:
            os.fstat(number)
        except OSError:
            # The lowest number that is free, which is this one; those that we start get it too.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
        mode = "w" if number else "r"
        setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))


def _run_and_flush(argv: list[str]) -> int:
    from holdfast.views.cli.show import out

    out.set_up_streams()
    status = run(argv)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            pass  # closed or full: nobody is left to tell
    return status


def run(argv: list[str]) -> int:
    """Run one command line; returns its exit status."""
    from holdfast import paths
    from holdfast.errors import HoldfastError
    from holdfast.views.cli.show import out

    is_verbose = bool(argv) and argv[0] in ("-v", "-vv")
    try:
        paths.pin_home()
        status = _dispatch(argv[is_verbose:])
        sys.stdout.flush()
        return status
    except HoldfastError as error:
        _advise(error, argv[is_verbose:])
        return out.complain(error)
    except KeyboardInterrupt:
        return CTRL_C
    except BrokenPipeError:
        # The reader of our output left (`| head`): nothing to say, and nowhere to say it.
        out.discard_stdout()
        return 0
    except (
        Exception
    ) as error:  # a bug of ours, or a disk that does not take our output: whoever typed this sees it
        return _apologise(error, is_verbose=is_verbose)


def _advise(error: HoldfastError, argv: list[str]) -> None:
    """Whoever typed something wrong is never left without a next step."""
    from holdfast.errors import UsageError
    from holdfast.views.cli import verbs

    if not error.hint and isinstance(error, UsageError) and argv and argv[0] in verbs.VERBS:
        error.hint = f"'holdfast {argv[0]} --help' shows what is possible"


def _dispatch(argv: list[str]) -> int:
    from holdfast.views.cli import verbs
    from holdfast.views.cli.parse import quick

    if argv and argv[0] in verbs.VERBS:
        module = verbs.load(argv[0])
        try:
            values = quick.parse(module.COMMAND, argv[1:])
        except quick.NeedsClick:
            pass
        else:
            _raise_at_ctrl_c()
            return module.run(values)
    elif argv and argv[0] == "_complete":
        from holdfast.views.cli import complete

        return complete.run(argv[1:])
    from holdfast.views.cli.parse import click_app

    _raise_at_ctrl_c()
    return click_app.run(argv)


def _apologise(error: Exception, *, is_verbose: bool) -> int:
    from holdfast.views.cli.show import out

    if is_verbose:
        import traceback

        traceback.print_exc()
    is_terminal_gone = out.is_terminal_gone(error)
    out.discard_stdout()
    if is_terminal_gone:
        return 0  # as with a pipe that nobody reads any more
    if isinstance(error, FileNotFoundError) and error.filename is None and _is_nowhere():
        out.talk("error: the current directory no longer exists")
        out.talk("hint: go to one that does, then try again")
        return 2
    if isinstance(error, OSError) and error.filename is None and error.errno is not None:
        out.talk(f"error: cannot write the output: {error.strerror}")
        out.talk("hint: make room where stdout goes, or send it elsewhere; no task is harmed")
        return 3
    if isinstance(error, PermissionError) and error.filename is not None:
        out.talk(f"error: cannot use {os.fsdecode(error.filename)}: {error.strerror}")
        out.talk("hint: is it read-only, or does it belong to another user?")
        return 3
    out.talk(f"error: holdfast has a bug: {type(error).__name__}: {error}")
    out.talk("hint: no task is harmed; 'holdfast -vv …' shows the traceback, please report it")
    return OUR_BUG


def _is_nowhere() -> bool:
    """Whether the directory in which we were called was removed."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False
