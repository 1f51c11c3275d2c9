"""`holdfast …`: find the verb, parse, run, and turn errors into an exit status.

A correct command line loads only what its verb uses, because start-up time matters. Help, and command lines
that the quick parser does not accept, go through click.

This module imports almost nothing: before `main` runs, Ctrl-C causes a traceback that cannot be caught.
"""

from __future__ import annotations

import gc
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import Any

    from holdfast.errors import HoldfastError
else:
    # The C module, loaded in every interpreter: importing `signal` costs half a millisecond for its enums.
    import _signal as signal

#: Exit status of a bug in holdfast (EX_SOFTWARE).
BUG = 70
CTRL_C = 130


def main() -> None:
    """The console script."""
    gc.disable()  # while modules load, nothing is garbage
    try:
        _leave_at_ctrl_c()
        _open_missing_streams()
        status = _run_and_flush(sys.argv[1:])
    except KeyboardInterrupt:  # outside of run()
        status = CTRL_C
    # An orderly shutdown of the interpreter takes a tenth of the whole command.
    os._exit(status)


def _leave_at_ctrl_c() -> None:
    """While modules load, exit at once: an exception raised in a callback of Python is printed and dropped.
    An ignored SIGINT (a background job) stays ignored."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)


def _leave(number: int, frame: object) -> None:
    os._exit(CTRL_C)


def _begin_verb() -> None:
    """Everything is loaded. From here on, the verb handles Ctrl-C."""
    gc.enable()
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _open_missing_streams() -> None:
    """Replace closed standard streams (`>&-`) by /dev/null: otherwise the next opened file gets the
    descriptor, and child processes write into it."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is not None:
            continue
        try:
            os.fstat(number)
        except OSError:
            # It gets the lowest free number, which is this one. Child processes inherit it.
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
            pass  # closed or full
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
        _add_hint(error, argv[is_verbose:])
        return out.complain(error)
    except KeyboardInterrupt:
        return CTRL_C
    except BrokenPipeError:
        # The reader is gone (`| head`).
        out.discard_stdout()
        return 0
    except Exception as error:  # a bug, or a full disk: reported on stderr
        return _report_unexpected(error, is_verbose=is_verbose)


def _add_hint(error: HoldfastError, argv: list[str]) -> None:
    """Every usage error has a hint."""
    from holdfast.errors import UsageError
    from holdfast.views.cli import verbs

    if not error.hint and isinstance(error, UsageError) and argv and argv[0] in verbs.VERBS:
        error.hint = f"'holdfast {argv[0]} --help' shows the usage"


def _dispatch(argv: list[str]) -> int:
    from holdfast.views.cli import verbs
    from holdfast.views.cli.parse import quick

    if argv and argv[0] in verbs.ALIASES:
        argv = [verbs.ALIASES[argv[0]], *argv[1:]]
    if argv and argv[0] in verbs.VERBS:
        module = verbs.load(argv[0])
        quick.refuse_file_names(argv[1:])
        try:
            values = quick.parse(module.COMMAND, argv[1:])
        except quick.NeedsClick:
            pass
        else:
            _begin_verb()
            _check_permit(argv[0], values)
            return module.run(values)
    elif argv and argv[0] == "_complete":
        from holdfast.views.cli import complete

        return complete.run(argv[1:])
    from holdfast.views.cli.parse import click_app

    _begin_verb()
    return click_app.run(argv)


def _check_permit(verb: str, values: dict[str, Any]) -> None:
    """Raises ForPersons if an agent may not do this. Reading is not asked about: it starts often."""
    from holdfast.views.cli import verbs

    if verbs.FOR_AGENTS[verb] != verbs.READ:
        from holdfast.views.cli import permits

        permits.check(verb, values)


def _report_unexpected(error: Exception, *, is_verbose: bool) -> int:
    import errno

    from holdfast.views.cli.show import out

    if is_verbose:
        import traceback

        traceback.print_exc()
    is_terminal_gone = out.is_terminal_gone(error)
    is_output = out.is_about_stdout(error)
    out.discard_stdout()
    if is_terminal_gone:
        return 0  # like a pipe without a reader
    if isinstance(error, FileNotFoundError) and error.filename is None and _is_cwd_removed():
        out.talk("error: the current directory no longer exists")
        out.talk("hint: change to an existing directory and try again")
        return 2
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        out.talk(f"error: no more files can be opened: {error.strerror}")
        out.talk("hint: tasks are not affected; 'ulimit -n 1024' raises the limit of this shell")
        return 3
    if isinstance(error, OSError) and error.filename is None and error.errno is not None:
        if is_output:
            out.talk(f"error: cannot write the output: {error.strerror}")
            out.talk("hint: make room where stdout goes, or redirect it; tasks are not affected")
        else:
            out.talk(f"error: the system refused a call: {error.strerror}")
            out.talk("hint: tasks are not affected; 'holdfast doctor' checks the machine, -vv shows the call")
        return 3
    if isinstance(error, (IsADirectoryError, NotADirectoryError)) and error.filename is not None:
        out.talk(f"error: cannot read {os.fsdecode(error.filename)}: {error.strerror}")
        out.talk("hint: 'holdfast doctor' names what is damaged")
        return 3
    if isinstance(error, PermissionError) and error.filename is not None:
        out.talk(f"error: cannot use {os.fsdecode(error.filename)}: {error.strerror}")
        out.talk("hint: is it read-only, or does it belong to another user?")
        return 3
    out.talk(f"error: holdfast has a bug: {type(error).__name__}: {error}")
    out.talk("hint: tasks are not affected; please report it with the traceback that 'holdfast -vv …' shows")
    return BUG


def _is_cwd_removed() -> bool:
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False
