"""The scripted agent: plays a scenario file in place of a coding-agent CLI.

    __main__      command line and exit status
    scenario      the scenario file, checked; verbs: the table of verbs and their arguments
    session       what the processes of one session remember on disk
    loop          the loop over the steps; play: the state of one process
    steps/        the implementation of each verb
    dialect_*     the output format: one file per CLI
    output        bytes to stdout and stderr; signals: reactions to TERM, INT and HUP

Standard library only, and nothing else of holdfast: it stands for a foreign program. Crash runs start it
hundreds of times, so modules that are slow to import (pathlib, typing, dataclasses, argparse, subprocess) are
avoided or imported where they are needed.
"""
