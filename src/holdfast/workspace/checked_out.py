"""Which commit is checked out around a directory, read without running git: a start must not wait for it."""

from __future__ import annotations

import os

from holdfast.store import atomic

_LINE_BYTES = 4096
_PACKED_BYTES = 4 << 20
#: Characters of a commit's name: SHA-1, SHA-256.
_LENGTHS = (40, 64)
#: A symbolic ref may point to another one.
_MOST_LINKS = 5


def commit(directory: str) -> str:
    """The commit of HEAD; empty outside git, before the first commit, or if the files do not say it."""
    git_dir = _git_dir(os.path.realpath(directory))
    if not git_dir:
        return ""
    shared = _line(os.path.join(git_dir, "commondir"))
    common = os.path.join(git_dir, shared) if shared else git_dir
    text = _line(os.path.join(git_dir, "HEAD"))
    for _ in range(_MOST_LINKS):
        if not text.startswith("ref: "):
            break
        name = text.removeprefix("ref: ").strip()
        if not name.startswith("refs/") or ".." in name:
            return ""
        text = _line(os.path.join(common, name)) or _packed(common, name)
    return text if is_commit(text) else ""


def is_commit(text: str) -> bool:
    """Whether the text is the full name of a commit."""
    return len(text) in _LENGTHS and not set(text) - set("0123456789abcdef")


def _git_dir(folder: str) -> str:
    while True:
        link = os.path.join(folder, ".git")
        if os.path.isdir(link):
            return link
        if (line := _line(link)).startswith("gitdir: "):
            return os.path.join(folder, line.removeprefix("gitdir: "))
        above = os.path.dirname(folder)
        if above == folder:
            return ""
        folder = above


def _packed(common: str, name: str) -> str:
    data = atomic.read_small(os.path.join(common, "packed-refs"), _PACKED_BYTES) or b""
    end = data.find(b" " + os.fsencode(name) + b"\n")
    return data[data.rfind(b"\n", 0, end) + 1 : end].decode("ascii", "replace") if end >= 0 else ""


def _line(path: str) -> str:
    return os.fsdecode((atomic.read_small(path, _LINE_BYTES) or b"").rstrip(b"\r\n"))
