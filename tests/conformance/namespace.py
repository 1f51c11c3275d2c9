"""A network namespace with only loopback, so that real CLIs cannot send anything off the machine."""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import struct
import subprocess

#: Set inside, for the tests' own conftest. The namespace is checked in any case.
MARK = "CONFORMANCE_NAMESPACE"

_GET_FLAGS, _SET_FLAGS, _UP = 0x8913, 0x8914, 0x1
_TRY_S = 10.0


def is_inside() -> bool:
    """Whether this process runs in such a namespace."""
    return os.environ.get(MARK) == "1" and interfaces() == ["lo"]


def interfaces() -> list[str]:
    """The network interfaces that this process can reach."""
    return sorted(name for _, name in socket.if_nameindex())


def wrapper() -> list[str] | None:
    """The command that enters one, or None if this machine or user cannot create one."""
    if shutil.which("unshare") is None:
        return None
    for flags in (["--net"], ["--map-root-user", "--net"]):
        command = ["unshare", *flags, "--"]
        done = subprocess.run([*command, "true"], capture_output=True, timeout=_TRY_S, check=False)
        if done.returncode == 0:
            return command
    return None


def bring_up_loopback() -> None:
    """Bring loopback up: in a new namespace it is down."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        asked = struct.pack("16sh22x", b"lo", 0)
        flags = struct.unpack("16sh22x", fcntl.ioctl(any_socket, _GET_FLAGS, asked))[1]
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sh22x", b"lo", flags | _UP))
