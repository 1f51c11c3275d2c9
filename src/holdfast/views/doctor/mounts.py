"""On which file system a directory is."""

from __future__ import annotations

import os

#: File systems of other machines, or of programs: whether a lock is one for all depends on them.
_UNRELIABLE = frozenset(
    {
        "nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "lustre", "gfs2", "ocfs2",
        "beegfs", "davfs", "virtiofs", "vboxsf", "vmhgfs", "prl_fs", "fuse", "fuseblk",
    }
)  # fmt: skip


def kind_of(path: str) -> str:
    """The type of the file system of a directory; empty if it is not known."""
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            return find(file.read(), os.path.realpath(path))
    except OSError:
        return ""


def is_unreliable(kind: str) -> bool:
    """Whether locks on such a file system may not hold."""
    return kind in _UNRELIABLE or kind.startswith("fuse.")


def find(mountinfo: str, path: str) -> str:
    """The type of the file system that is mounted over `path`, given the text of mountinfo. Pure."""
    best, kind = -1, ""
    for line in mountinfo.splitlines():
        before, separator, after = line.partition(" - ")
        fields = before.split(" ")
        if not separator or len(fields) < 5:
            continue
        point = _unescaped(fields[4])
        is_above = path == point or path.startswith(point.rstrip("/") + "/")
        # Of two mounts on one directory, the later one is seen.
        if is_above and len(point) >= best:
            best, kind = len(point), after.split(" ")[0]
    return kind


def _unescaped(text: str) -> str:
    """Without the octal escapes of mountinfo, for blanks and backslashes."""
    for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, char)
    return text
