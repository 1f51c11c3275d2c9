"""Reading what git prints. Paths can have any bytes but NUL; in strings they are decoded by `os.fsdecode`."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

#: The mode of a nested repository in a tree or an index.
GITLINK = b"160000"


def text(output: bytes) -> str:
    """One value as git prints it, without its final newline (but with all others)."""
    return os.fsdecode(output[:-1] if output.endswith(b"\n") else output)


def names(output: bytes) -> list[str]:
    """The names of a `-z` listing."""
    return [os.fsdecode(name) for name in output.split(b"\0") if name]


def listing(paths: Iterable[str]) -> bytes:
    """The inverse of `names`."""
    return b"".join(os.fsencode(path) + b"\0" for path in paths)


def flagged(listed: bytes, top: str) -> tuple[tuple[str, list[str]], ...]:
    """The options of `update-index` that clear flags, each with the paths, given `ls-files -v -z`.

    git does not compare a path with the flag assume-unchanged or skip-worktree. The latter also marks what a
    sparse checkout leaves out, so it stays on what does not exist.
    """
    unchanged: list[str] = []
    skipped: list[str] = []
    for entry in names(listed):
        flag, path = entry[0], entry[2:]
        if flag.islower():
            unchanged.append(path)
        if flag in "Ss" and os.path.lexists(os.path.join(top, path)):
            skipped.append(path)
    return ("--no-assume-unchanged", unchanged), ("--no-skip-worktree", skipped)


def read_objects(run: Callable[..., bytes], names: Iterable[str]) -> Iterator[tuple[str, bytes, memoryview]]:
    """Objects by their full names, each once: name, kind and content. Without those that are missing."""
    wanted = list(dict.fromkeys(names))
    lines = "".join(f"{name}\n" for name in wanted).encode()
    return contents(wanted, run(["cat-file", "--batch", "--buffer"], stdin=lines) if wanted else b"")


def contents(wanted: Iterable[str], output: bytes) -> Iterator[tuple[str, bytes, memoryview]]:
    """The objects in the output of `cat-file --batch` for these names: name, kind and content.

    Without those that are missing.
    """
    view, at = memoryview(output), 0
    for name in wanted:
        begins = output.index(b"\n", at) + 1
        words, at = output[at : begins - 1].split(b" "), begins
        if words[-1] == b"missing":
            continue
        size = int(words[2])
        yield name, words[1], view[begins : begins + size]
        at = begins + size + 1


def gitlinks(listed: bytes) -> Iterator[tuple[str, str]]:
    """The nested repositories in the output of `ls-files -s -z` or `ls-tree -z`: path and commit."""
    for entry in listed.split(b"\0"):
        if entry.startswith(GITLINK):
            facts, _, name = entry.partition(b"\t")
            # "160000 COMMIT 0" of an index, "160000 commit COMMIT" of a tree.
            words = facts.decode().split(" ")
            yield os.fsdecode(name), words[2] if words[1] == "commit" else words[1]
