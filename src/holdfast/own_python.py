"""Start holdfast's own processes without the modules of a project.

Python looks for modules in the current directory and in PYTHONPATH before its own library. Either can be a
project in which an agent writes: a `json.py` there would run outside the agent's sandbox. Entries that hold
holdfast itself or installed packages are kept, because some systems install programs that way. But they come
after Python's library.

    python -P -E own_python.py ENTRIES MODULE ARGUMENTS…

runs a module with the kept entries. This file imports only what every interpreter has loaded.
"""

from __future__ import annotations

import os
import sys

_INSTALLED = ("site-packages", "dist-packages")
_FILE = os.path.abspath(__file__)
#: The directory that holds the package holdfast.
_OURS = os.path.dirname(os.path.dirname(_FILE))
_LIBRARY = os.path.dirname(os.path.abspath(os.__file__))


def command(module: str, *args: str, python: str = sys.executable) -> list[str]:
    """`python -m module args`, without the current directory and PYTHONPATH. The variable itself stays in the
    environment: agents and gates may need it."""
    # Not -I, which leaves out the user's own packages: holdfast may be there.
    kept = [entry for entry in _pythonpath() if _is_kept(entry)]
    start = [_FILE, os.pathsep.join(kept)] if kept else ["-m"]
    return [python, "-P", "-E", *start, module, *args]


def module_of(line: list[str]) -> str:
    """The module that a command line of `command` runs; empty if it is another command line."""
    if line[3:4] == [_FILE]:
        return "".join(line[5:6])
    # Other programs that start us may leave out the options.
    return next(("".join(line[at + 1 : at + 2]) for at in (1, 2, 3) if line[at : at + 1] == ["-m"]), "")


def leave_out_pythonpath() -> None:
    """Remove the current directory and PYTHONPATH from the import path, for a process that was started
    without `command`."""
    added = _pythonpath()
    if not sys.flags.safe_path and sys.path and os.path.abspath(sys.path[0]) == os.path.abspath(""):
        added.insert(0, os.path.abspath(""))  # python -m
    dropped = set(added) - {_LIBRARY, os.path.join(_LIBRARY, "lib-dynload")}
    if dropped:
        sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) not in dropped]
        _add([entry for entry in added if entry in dropped and _is_kept(entry)])


def added_paths() -> list[str]:
    """Entries of the import path that belong neither to Python, nor to its environment, nor to us: those of
    `.pth` files, such as for a project that was installed to be edited."""
    own = (sys.prefix, sys.base_prefix)
    return [
        entry
        for entry in map(os.path.abspath, sys.path)
        if entry != _OURS and not any(entry.startswith(folder.rstrip("/") + "/") for folder in own)
    ]


def _add(entries: list[str]) -> None:
    """Add entries to the import path. Ours comes before other packages: they may have another holdfast."""
    after = 1 + max((at for at, entry in enumerate(sys.path) if _is_library(entry)), default=-1)
    sys.path[after:after] = dict.fromkeys(entry for entry in entries if entry == _OURS)
    sys.path += dict.fromkeys(entry for entry in entries if entry not in sys.path)


def _pythonpath() -> list[str]:
    """The entries of PYTHONPATH. For the interpreter, an empty one is the current directory."""
    value = os.environ.get("PYTHONPATH", "")
    return [os.path.abspath(entry) for entry in value.split(os.pathsep)] if value else []


def _is_kept(entry: str) -> bool:
    """Whether it is ours, or has installed packages. To be asked when PYTHONPATH is not in the import path:
    it imports modules."""
    if entry == _OURS or os.path.basename(entry) not in _INSTALLED:
        return entry == _OURS
    # <environment>/lib/python3.x/site-packages: an environment that is not ours is often a project's.
    environment = os.path.dirname(os.path.dirname(os.path.dirname(entry)))
    if environment == sys.prefix or os.path.lexists(os.path.join(environment, "pyvenv.cfg")):
        return environment == sys.prefix
    # An agent can remove that file.
    from holdfast import program_search  # few people have such an entry

    return not program_search.is_of_project(entry)


def _is_library(entry: str) -> bool:
    folder = os.path.abspath(entry)
    return folder == _LIBRARY or (
        os.path.dirname(folder) == _LIBRARY and os.path.basename(folder) not in _INSTALLED
    )


def main() -> None:
    """Run a module with entries of PYTHONPATH."""
    _add(sys.argv[1].split(os.pathsep))
    module = sys.argv[2]
    sys.argv[:3] = [""]  # replaced by the module's file
    import runpy

    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
