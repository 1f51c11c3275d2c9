"""The process of the `server` step: answers "ok" over HTTP. Run by path; imports nothing of holdfast."""

from __future__ import annotations

import signal
import socket
import sys


def main(fd: int, limit_s: int) -> None:
    """Answer "ok" on a loopback port until the time is over."""
    signal.alarm(limit_s)
    listener = socket.socket(fileno=fd)
    while True:
        client, _ = listener.accept()
        with client:
            client.settimeout(5)
            try:
                client.recv(65536)
                client.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nok\n")
            except OSError:
                continue  # the client went away; the next one is served


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
