"""The difference of two trees file by file, within limits: counts, and hunks to read."""

from __future__ import annotations

import os

from holdfast.model.record import Record
from holdfast.workspace import git

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from holdfast.workspace.snapshots.trees import Trees

_KINDS = {"A": "added", "D": "deleted", "M": "modified", "T": "modified", "R": "renamed"}
_LINK, _GITLINK = "120000", "160000"
#: Paths on a command line of git.
_NAMES_BYTES = 200_000
_FLAGS = (
    "--no-color", "--no-ext-diff", "--no-textconv", "--submodule=short", "--ignore-submodules=none",
    "--src-prefix=a/", "--dst-prefix=b/", "-M", "-l2000", "-z",
)  # fmt: skip


class Limits(Record):
    """How much of a difference is given. What exceeds it is named."""

    #: Files with hunks, and their size before and after.
    files: int = 300
    file_bytes: int = 512 * 1024
    total_bytes: int = 4 * 1024 * 1024
    line_chars: int = 4000


class Hunk(Record):
    """Lines that changed, with their neighbours."""

    old_start: int
    old_lines: int
    new_start: int
    new_lines: int
    #: The function or section in which it is, as git guesses it.
    section: str = ""
    #: Each begins with a space, `+`, `-`, or a backslash (no newline at the end of the file).
    lines: tuple[str, ...]


class FileDiff(Record):
    """What changed in one file."""

    nested = {"hunks": Hunk}

    path: str
    #: With `renamed`: the path before.
    old_path: str | None = None
    #: added, deleted, modified, renamed, or submodule.
    kind: str
    old_mode: str
    new_mode: str
    is_symlink: bool = False
    is_binary: bool = False
    #: Lines; null for a binary file.
    added: int | None = None
    deleted: int | None = None
    hunks: tuple[Hunk, ...] = ()
    #: Why it has no hunks although its content changed: `binary`, `large` (the file), `limit` (of the whole).
    left_out: str = ""
    #: Lines of its hunks that were cut.
    cut_lines: int = 0


def compare(trees: Trees, old_tree: str, new_tree: str, limits: Limits) -> tuple[FileDiff, ...]:
    """Every changed file, sorted by path; hunks as far as the limits allow."""
    if old_tree == new_tree:
        return ()
    listed = list(
        _listed(trees.run(["diff", "--raw", "--numstat", "--no-abbrev", *_FLAGS, old_tree, new_tree, "--"]))
    )
    sizes = _sizes(trees, [each for each in listed if not each.file.is_binary])
    wanted: list[_Listed] = []
    reasons: dict[str, str] = {}
    total = names = 0
    for each in listed:
        size = sum(sizes.get(blob, 0) for blob in each.blobs)
        if each.file.is_binary:
            reasons[each.file.path] = "binary"
        elif size > limits.file_bytes:
            reasons[each.file.path] = "large"
        elif (
            len(wanted) == limits.files
            or total + size > limits.total_bytes
            or names + each.name_bytes > _NAMES_BYTES
        ):
            reasons[each.file.path] = "limit"
        else:
            wanted.append(each)
            total, names = total + size, names + each.name_bytes
    hunks = _hunks(trees, (old_tree, new_tree), wanted, limits)
    found = [
        each.file.evolve(left_out=reasons[each.file.path])
        if each.file.path in reasons
        else _with_hunks(each.file, hunks.get(each.file.path))
        for each in listed
    ]
    return tuple(sorted(found, key=lambda file: file.path))


def _with_hunks(file: FileDiff, found: tuple[tuple[Hunk, ...], int] | None) -> FileDiff:
    if found is None:  # with fewer files, git paired a rename in another way
        return file.evolve(left_out="limit")
    return file.evolve(hunks=found[0], cut_lines=found[1])


class _Listed:
    """A changed file without hunks, and the blobs of its sides."""

    def __init__(self, file: FileDiff, blobs: tuple[str, ...]) -> None:
        self.file = file
        self.blobs = blobs

    @property
    def name_bytes(self) -> int:
        return len(os.fsencode(self.file.path)) + len(os.fsencode(self.file.old_path or ""))


def _listed(output: bytes) -> Iterator[_Listed]:
    """Read `git diff --raw --numstat -z`: all raw entries, then the counts of the same files in order."""
    words = output.split(b"\0")
    at = 0
    raws: list[tuple[list[str], str, str | None]] = []
    while at < len(words) and words[at].startswith(b":"):
        facts, path, old_path = words[at][1:].decode().split(" "), os.fsdecode(words[at + 1]), None
        at += 2
        if facts[4][0] == "R":
            old_path, path = path, os.fsdecode(words[at])
            at += 1
        raws.append((facts, path, old_path))
    for facts, path, old_path in raws:
        added, deleted, name = words[at].split(b"\t", 2)
        # A renamed file has both names after an empty one.
        at += 1 if name else 3
        old_mode, new_mode, old, new, kind = facts
        is_binary = added == b"-"
        is_link = _GITLINK in (old_mode, new_mode)
        file = FileDiff(
            path=path,
            old_path=old_path,
            kind="submodule" if is_link else _KINDS.get(kind[0], "modified"),
            old_mode=old_mode,
            new_mode=new_mode,
            is_symlink=new_mode == _LINK,
            is_binary=is_binary,
            added=None if is_binary else int(added),
            deleted=None if is_binary else int(deleted),
        )
        yield _Listed(file, () if is_link else tuple(blob for blob in (old, new) if blob.strip("0")))


def _sizes(trees: Trees, listed: Iterable[_Listed]) -> dict[str, int]:
    """The sizes of blobs by their ids."""
    blobs = list(dict.fromkeys(blob for each in listed for blob in each.blobs))
    if not blobs:
        return {}
    output = trees.run(["cat-file", "--batch-check"], stdin="\n".join(blobs).encode() + b"\n")
    rows = (line.split(" ") for line in git.text(output).split("\n"))
    return {row[0]: int(row[2]) for row in rows if len(row) == 3 and row[2].isdecimal()}


def _hunks(
    trees: Trees, sides: tuple[str, str], wanted: list[_Listed], limits: Limits
) -> dict[str, tuple[tuple[Hunk, ...], int]]:
    """The hunks of some files, and how many of their lines were cut, by path."""
    if not wanted:
        return {}
    paths = [path for each in wanted for path in (each.file.old_path, each.file.path) if path is not None]
    output = trees.run(["diff", "--raw", "--patch", "--no-abbrev", *_FLAGS, *sides, "--", *paths])
    names: list[str] = []
    at = 0
    while output.startswith(b":", at):
        facts, name, *_ = output[at:].split(b"\0", 2)
        at += len(facts) + len(name) + 2
        kind = facts.split(b" ")[4][:1]
        if kind == b"R":
            name = output[at:].split(b"\0", 1)[0]
            at += len(name) + 1
        # What was a file and is a link now is shown as deleted, then as added.
        names += [os.fsdecode(name)] * (2 if kind == b"T" else 1)
    # An empty entry ends the list.
    patch = output[at:].removeprefix(b"\0")
    found: dict[str, tuple[tuple[Hunk, ...], int]] = {}
    for name, lines in zip(names, _sections(patch.decode("utf-8", "replace")), strict=False):
        (before, cut), (hunks, cut_here) = found.get(name, ((), 0)), _parsed(lines, limits)
        found[name] = (*before, *hunks), cut + cut_here
    return found


def _sections(patch: str) -> Iterator[list[str]]:
    """The lines of each file. A line of a hunk begins with another character than a header does."""
    lines: list[str] | None = None
    for line in patch.split("\n"):
        if line.startswith("diff --git "):
            if lines is not None:
                yield lines
            lines = []
        elif lines is not None:
            lines.append(line)
    if lines is not None:
        yield lines


def _parsed(lines: list[str], limits: Limits) -> tuple[tuple[Hunk, ...], int]:
    hunks: list[Hunk] = []
    body: list[str] = []
    cut = 0
    head: tuple[tuple[int, int], tuple[int, int], str] | None = None

    def close() -> None:
        if head is not None:
            (old_start, old_lines), (new_start, new_lines), section = head
            hunks.append(
                Hunk(
                    old_start=old_start,
                    old_lines=old_lines,
                    new_start=new_start,
                    new_lines=new_lines,
                    section=section,
                    lines=tuple(body),
                )
            )

    for line in lines:
        if line.startswith("@@ "):
            close()
            _, old, new, rest = line.split(" ", 3)
            head, body = (_range(old), _range(new), rest.partition("@@")[2].strip()), []
        elif head is not None and line:
            if len(line) > limits.line_chars:
                line, cut = line[: limits.line_chars] + "…", cut + 1
            body.append(line)
    close()
    return tuple(hunks), cut


def _range(text: str) -> tuple[int, int]:
    start, _, count = text[1:].partition(",")
    return int(start), int(count or "1")
