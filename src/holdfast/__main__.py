"""The console script, and `python -m holdfast`.

Nothing stands here but what makes Ctrl-C quiet, not even an import from `__future__`: whoever presses it before `main` is called
gets a traceback of Python's own, so this must be as near to the start as it can be.
"""


def main() -> None:
    """Load the command line, and be it."""
    try:
        from holdfast.views.cli import entry

        entry.main()
    except KeyboardInterrupt:
        import os

        os._exit(130)


if __name__ == "__main__":
    main()
