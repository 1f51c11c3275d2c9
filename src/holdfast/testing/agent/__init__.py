"""The scripted agent: plays a scenario file in place of a coding-agent CLI.

    __main__      command line in, exit status out
    scenario      the scenario file, checked; verbs: the table of what a step may say
    session       the memory on disk that spans the processes of one session
    play          the loop over the steps
    steps/        what each verb does
    dialect_*     how it is said: one file per CLI
    output        bytes to stdout and stderr; signals: what TERM, INT and HUP do

Standard library only, and nothing else of holdfast: it stands where a foreign program would.
It is started by the hundred in crash runs, so modules that are slow to import (pathlib, typing,
dataclasses, argparse, subprocess) are left out or imported where they are needed.
"""
