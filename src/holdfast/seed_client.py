"""Ask the seed for a runner."""

from __future__ import annotations

import json
import os

from holdfast import paths
from holdfast.store.layout import Home, Packet

#: A seed that does not answer in this time is ignored; the lock decides.
PATIENCE_S = 0.5


def fork_runner(packet: Packet) -> int:
    """Ask the seed of the packet's home to fork a runner. Returns its pid, 0 if there is none: a seed with
    other settings refuses, because its runners would not find the record of the task."""
    home = packet.home
    if not os.path.exists(home.seed_socket):
        return 0
    request = {"verb": "fork", "packet": packet.path, "trust": paths.trust_dir()}
    pid = (ask(home, request) or {}).get("pid")
    return pid if isinstance(pid, int) else 0


def ask(home: Home, request: dict[str, str]) -> dict[str, object] | None:
    """Send a request and return the answer; None if the seed is dead or too slow."""
    # The C module is enough: the Python one creates enums, which adds three milliseconds to each command.
    import _socket

    # Socket paths are limited to 108 bytes: use a descriptor of the directory.
    try:
        folder = os.open(home.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None
    client = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        client.settimeout(PATIENCE_S)
        client.connect(short_path(home, folder))
        client.sendall(json.dumps(request).encode() + b"\n")
        return json.loads(client.recv(4096))
    except (OSError, ValueError):
        return None
    finally:
        client.close()
        os.close(folder)


def short_path(home: Home, folder: int) -> str:
    """The socket's path through a descriptor if there is /proc, otherwise the plain path."""
    name = os.path.basename(home.seed_socket)
    return f"/proc/self/fd/{folder}/{name}" if os.path.isdir("/proc/self/fd") else home.seed_socket
