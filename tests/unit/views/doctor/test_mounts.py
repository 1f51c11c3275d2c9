"""The file system of a directory, from the kernel's list of mounts."""

from __future__ import annotations

import os

import pytest

from holdfast.views.doctor import mounts

MOUNTINFO = r"""22 1 259:1 / / rw,relatime shared:1 - ext4 /dev/root rw
30 22 0:40 / /home rw,relatime shared:2 - nfs4 server:/home rw,vers=4.2
31 30 0:41 / /home/ada/local rw - xfs /dev/sdb1 rw
32 22 0:42 / /mnt/my\040disk rw master:1 - fuse.sshfs ada@host: rw
33 22 0:43 / /twice rw - ext4 /dev/sdc1 rw
34 22 0:44 / /twice rw - cifs //host/share rw
a line of a later kernel
"""


@pytest.mark.parametrize(
    ("path", "kind", "is_unreliable"),
    [
        ("/", "ext4", False),
        ("/home", "nfs4", True),
        ("/home/ada/.holdfast", "nfs4", True),
        ("/home/ada/local/h", "xfs", False),
        ("/homeland", "ext4", False),
        ("/mnt/my disk/h", "fuse.sshfs", True),
        ("/twice/h", "cifs", True),
    ],
)
def test_the_nearest_and_last_mount_counts(path: str, kind: str, *, is_unreliable: bool) -> None:
    assert mounts.find(MOUNTINFO, path) == kind
    assert mounts.is_unreliable(kind) is is_unreliable


def test_this_machine(tmp_path: os.PathLike[str]) -> None:
    kind = mounts.kind_of(os.fspath(tmp_path))
    assert kind
    assert not mounts.is_unreliable(kind)
    assert mounts.kind_of("/proc") == "proc"
