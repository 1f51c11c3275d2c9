"""The way out of a sandbox whose network is a list of hosts: an HTTP proxy that lets only these through.

Executed by path (`python -I -S proxy.py FD HOSTS`); it imports only the standard library. FD is a listening
socket that belongs to the sandbox's network, made by its process 1; this process is outside, so its own
connections are in the user's network. It knows `CONNECT host:port` (TLS and anything else), and plain HTTP.

A name is compared before it is resolved, and the connection goes to the address that was checked: a name
cannot be rebound in between.
"""

from __future__ import annotations

import ipaddress
import os
import re
import select
import socket
import sys
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

#: The ports of an entry without one.
_WEB_PORTS = (80, 443)
_ENTRY = re.compile(r"(\*\.)?([a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?|\[[0-9a-f:.]+\])(?::([0-9]{1,5}))?")
_TARGET = re.compile(r"([A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\]):([0-9]{1,5})")
_HEAD_BYTES, _HEAD_S, _CONNECT_S = 65536, 30.0, 30.0
_CONNECTIONS, _NAMED = 256, 50
#: Headers that are for a proxy, or that we set.
_DROPPED = (b"proxy-", b"connection:", b"keep-alive:", b"host:")


class Refused(Exception):
    """A connection that is not allowed, or not possible; the text is for the agent."""


def parse(entry: str) -> tuple[bool, str, tuple[int, ...]]:
    """An entry of the list: whether it is for names below it, the name, and its ports. Raises ValueError."""
    match = _ENTRY.fullmatch(entry.strip().lower().removesuffix("."))
    if match is None or ".." in entry:
        raise ValueError(f"not a host: {entry!r}")
    name = match[2].strip("[]")
    is_address = _address(name) is not None
    if (match[2][0] == "[" and not is_address) or (match[1] and (is_address or "." not in name)):
        raise ValueError(f"not a host: {entry!r}")
    if match[3] is not None and not 0 < int(match[3]) < 65536:
        raise ValueError(f"not a port: {entry!r}")
    return bool(match[1]), name, (int(match[3]),) if match[3] else _WEB_PORTS


def allowing(hosts: list[str], name: str, port: int) -> list[tuple[bool, str]]:
    """The entries that allow this name and port."""
    wanted = name.lower().removesuffix(".")
    found: list[tuple[bool, str]] = []
    for below, host, ports in map(parse, hosts):
        fits = wanted.endswith("." + host) if below else wanted == host
        if fits and port in ports:
            found.append((below, host))
    return found


def may_reach(entries: list[tuple[bool, str]], address: str) -> bool:
    """Whether an address may be that of a name which these entries allow.

    Whoever answers for a name chooses its addresses. So this machine is reached only by `localhost` or by an
    address in the list, and a private network only by a whole name.
    """
    found = _address(address)
    if found is None:
        return False
    if any(not below and _address(host) == found for below, host in entries):
        return True
    if found.is_loopback:
        return (False, "localhost") in entries
    if found.is_link_local or found.is_multicast or found.is_unspecified:
        return False
    return found.is_global or any(not below for below, _ in entries)


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        found = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found


class Proxy:
    """Serves the connections of one sandbox."""

    def __init__(self, listener: socket.socket, hosts: list[str]) -> None:
        self.listener, self.hosts = listener, hosts
        self.room = threading.BoundedSemaphore(_CONNECTIONS)
        self.named: set[str] = set()

    def serve(self) -> NoReturn:
        """Take connections for ever."""
        while True:
            client, _ = self.listener.accept()
            self.room.acquire()
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            with client:
                self._answer(client)
        except OSError:
            pass  # one of them hung up
        finally:
            self.room.release()

    def _answer(self, client: socket.socket) -> None:
        client.settimeout(_HEAD_S)
        head, rest = _head(client)
        try:
            name, port, first = _request(head)
            server = self._connect(name, port)
        except Refused as refused:
            text = f"{refused}\n".encode()
            client.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain\r\nConnection: close\r\n")
            client.sendall(b"Content-Length: %d\r\n\r\n" % len(text) + text)
            return
        with server:
            if first:
                server.sendall(first + rest)
            else:
                client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                server.sendall(rest)
            _relay(client, server)

    def _connect(self, name: str, port: int) -> socket.socket:
        entries = allowing(self.hosts, name, port)
        if not entries:
            self._note(f"{name}:{port}", "it is not in the list of --network")
        try:
            found = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise Refused(f"holdfast: {name} has no address: {error}") from error
        allowed = [each for each in found if may_reach(entries, str(each[4][0]))]
        if not allowed:
            self._note(f"{name}:{port}", f"its address {found[0][4][0]} is not public")
        problem = ""
        for family, kind, protocol, _, place in allowed:
            server = socket.socket(family, kind, protocol)
            server.settimeout(_CONNECT_S)
            try:
                server.connect(place)
                return server
            except OSError as error:
                server.close()
                problem = str(error)
        raise Refused(f"holdfast: cannot connect to {name}:{port}: {problem}")

    def _note(self, place: str, why: str) -> NoReturn:
        """Refuse; say so in the attempt's stderr, once for each place."""
        text = f"holdfast: no connection to {place}: {why}"
        if place not in self.named and len(self.named) < _NAMED:
            self.named.add(place)
            os.write(2, f"{text}\n".encode())
        raise Refused(text)


def _head(client: socket.socket) -> tuple[bytes, bytes]:
    """The head of a request, and what followed it."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = client.recv(65536)
        if not piece or len(data) > _HEAD_BYTES:
            raise OSError("no request")
        data += piece
    head, _, rest = data.partition(b"\r\n\r\n")
    return head, rest


def _request(head: bytes) -> tuple[str, int, bytes]:
    """Name and port that a request asks for, and what is sent there first: nothing with CONNECT."""
    line, *headers = head.split(b"\r\n")
    words = line.decode("ascii", "replace").split(" ")
    if len(words) != 3:
        raise Refused("holdfast: not an HTTP request")
    method, target, version = words
    if method == "CONNECT":
        return *_place(target), b""
    scheme, found, rest = target.partition("://")
    if scheme.lower() != "http" or not found:
        raise Refused("holdfast: a request must be for http://…, or CONNECT")
    host, slash, path = rest.partition("/")
    name, port = _place(host if _TARGET.fullmatch(host) else f"{host}:80")
    kept = [each for each in headers if not each.lower().startswith(_DROPPED)]
    first = f"{method} {slash or '/'}{path} {version}\r\nHost: {host}\r\nConnection: close".encode("latin-1")
    return name, port, b"\r\n".join([first, *kept]) + b"\r\n\r\n"


def _place(target: str) -> tuple[str, int]:
    match = _TARGET.fullmatch(target)
    if match is None or not 0 < int(match[2]) < 65536:
        raise Refused("holdfast: not a host and port")
    return match[1].strip("[]"), int(match[2])


def _relay(client: socket.socket, server: socket.socket) -> None:
    """Pass bytes on in both directions until both sides are done."""
    client.settimeout(None)
    server.settimeout(None)
    other = {client: server, server: client}
    while other:
        for ready in select.select(list(other), [], [])[0]:
            piece = ready.recv(65536)
            if piece:
                (server if ready is client else client).sendall(piece)
                continue
            (server if ready is client else client).shutdown(socket.SHUT_WR)
            del other[ready]


if __name__ == "__main__":
    Proxy(socket.socket(fileno=int(sys.argv[1])), sys.argv[2].split(",")).serve()
