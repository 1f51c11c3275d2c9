"""Run a command in bubblewrap: read-only files, hidden secrets, its own processes, perhaps no network.

mounts.py     pure: what is seen and what may be written → the arguments of bwrap
hidden.py     what no sandbox shows
start.py      what a workspace was before its first sandboxed agent
builder.py    the file system: which of these paths exist, and what git needs to commit
machine.py    whether this machine can do it, and the fix if not
outside.py    the process that stands for the command outside: passes signals in, ends as the command ended
inside.py     process 1 of the sandbox: starts the command, reaps, ends everything when the command ends

The last two are executed by path, import only the standard library, and know nothing of holdfast.
"""
