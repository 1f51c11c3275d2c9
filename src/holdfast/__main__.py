"""The console script, and `python -m holdfast`.

This module contains only what makes Ctrl-C quiet, not even an import from `__future__`: before `main` is
called, Ctrl-C shows a Python traceback.
"""


def main() -> None:
    """Import the command line and run it."""
    try:
        from holdfast import own_python

        own_python.leave_out_pythonpath()

        from holdfast.views.cli import entry

        entry.main()
    except KeyboardInterrupt:
        import os

        os._exit(130)


if __name__ == "__main__":
    main()
