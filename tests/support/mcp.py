"""A plain client of `holdfast mcp`, and the official programs that judge the server."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Self

import pytest

#: The Python SDKs, each in an environment of its own, and the Inspector: outside the clone, as the real CLIs.
SDKS = ("1.30.0", "2.3.0")
INSPECTOR = "2.12.0"
ANSWER_S = 30.0
MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


def cache() -> Path:
    """The directory of the installed programs."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(os.environ.get("HOLDFAST_MCP_CACHE") or Path(base) / "holdfast" / "mcp")


def require(path: Path) -> str:
    """The path, if it exists. Otherwise the test is skipped; in CI it fails."""
    if path.exists():
        return str(path)
    why = f"{path.name} is not installed: make mcp-setup"
    if os.environ.get("CI"):
        pytest.fail(why)
    pytest.skip(why)


class Client:
    """One server process, and a connection to it."""

    def __init__(self, *, env: dict[str, str] | None = None, cwd: str | None = None) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "holdfast", "mcp"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **(env or {})},
            cwd=cwd,
        )
        self._buffer = b""
        self._number = 0
        #: Messages without an answer to anything: notifications.
        self.notices: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> tuple[int, str]:
        """Close stdin; returns exit status and stderr."""
        process = self.process
        assert process.stdin is not None
        assert process.stderr is not None
        assert process.stdout is not None
        if not process.stdin.closed:
            try:
                process.stdin.close()
            except BrokenPipeError:
                pass
        try:
            status = process.wait(ANSWER_S)
        finally:
            process.kill()
        said = process.stderr.read().decode() if not process.stderr.closed else ""
        process.stderr.close()
        if not process.stdout.closed:
            process.stdout.close()
        return status, said

    def send(self, line: bytes | dict[str, Any] | list[Any]) -> None:
        """Send one line."""
        data = line if isinstance(line, bytes) else json.dumps(line).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(data + b"\n")
        self.process.stdin.flush()

    def post(self, method: str, params: dict[str, Any] | None = None) -> int:
        """Send a request, and return its id."""
        self._number += 1
        self.send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params or {}})
        return self._number

    def receive(self, within_s: float = ANSWER_S) -> dict[str, Any]:
        """The next message."""
        assert self.process.stdout is not None
        ends = time.monotonic() + within_s
        while b"\n" not in self._buffer:
            left = ends - time.monotonic()
            assert left > 0, f"no message within {within_s} s; so far: {self._buffer[:500]!r}"
            if select.select([self.process.stdout], [], [], left)[0]:
                data = os.read(self.process.stdout.fileno(), 1 << 16)
                assert data, "the server ended"
                self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        return json.loads(line)

    def answer(self, request_id: int | None, within_s: float = ANSWER_S) -> dict[str, Any]:
        """The answer to a request; notifications are kept."""
        while True:
            message = self.receive(within_s)
            if "method" not in message:
                assert message["id"] == request_id, message
                return message
            self.notices.append(message)

    def ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """The result of a request."""
        answer = self.answer(self.post(method, params))
        assert "result" in answer, answer
        return answer["result"]

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The data that a tool returns."""
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})
        assert not result.get("isError"), result
        assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
        return result["structuredContent"]

    def fail(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The error that a tool returns: code, exit, message, hint."""
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})
        assert result["isError"] is True, result
        error = result["_meta"]["holdfast/error"]
        said = result["content"][0]["text"]
        assert said.startswith(f"error: {error['message']} ({error['code']}, exit {error['exit']})"), said
        assert "structuredContent" not in result
        return error
