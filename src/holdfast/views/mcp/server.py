"""The loop of the server: one line is one JSON-RPC message. One thread; a call that waits is kept in a list.

The official SDK needs 1.9 s of CPU and 56 MB before its first answer, once for every session of an agent; its
clients judge this one in the tests (docs/decisions/0071-mcp-server.md).
"""

from __future__ import annotations

import os
import select

import holdfast
from holdfast import clock, quick_json
from holdfast.errors import HoldfastError
from holdfast.views.mcp import protocol
from holdfast.views.mcp.protocol import RpcError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.views.mcp.waiting import Wait

#: A longer line is refused, and skipped without being kept.
MAX_MESSAGE_BYTES = 4 * 1024 * 1024
_SERVER = {"name": "holdfast", "title": "holdfast", "version": holdfast.__version__}
_CAPABILITIES: dict[str, Any] = {"tools": {}, "resources": {}}
_INSTRUCTIONS = (
    "holdfast runs coding agents and commands as tasks that survive crashes, restarts and rate limits. start "
    "returns a task id at once. Give your tasks a label, and find them by it after a restart. wait returns "
    "within 50 s with a digest of what changed and a cursor: pass it as since to the next wait. Answer "
    "questions with say. Read show with what=summary before the log or the diff."
)


def serve() -> int:
    """Answer requests until stdin ends or nobody reads stdout any more."""
    # Programs that we run must not read the client's messages, and what is printed must not be one of ours.
    source, sink = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(2, 1)
    os.close(null)
    server = _Server(source, sink)
    try:
        server.run()
    except BrokenPipeError:
        pass  # the client is gone
    return 0


class _Server:
    def __init__(self, source: int, sink: int) -> None:
        self._source, self._sink = source, sink
        self._buffer = bytearray()
        self._is_skipping = False
        #: Calls that wait, with the ids of their requests.
        self._waits: dict[str | int, Wait] = {}

    def run(self) -> None:
        while self._read():
            for request_id, wait in list(self._waits.items()):
                self._look(request_id, wait)
        for wait in self._waits.values():
            wait.close()

    # ── lines ──

    def _read(self) -> bool:
        """Wait for the next event, and take what the client sent. False at the end of stdin."""
        poll = select.poll()
        poll.register(self._source, select.POLLIN)
        for wait in self._waits.values():
            if wait.descriptor >= 0:
                poll.register(wait.descriptor, select.POLLIN)
        pause_s = min((wait.due_s() for wait in self._waits.values()), default=None)
        events = poll.poll(None if pause_s is None else pause_s * 1000)
        if not any(descriptor == self._source for descriptor, _ in events):
            return True
        data = os.read(self._source, 1 << 16)
        *lines, rest = data.split(b"\n")
        for line in lines:
            self._add(line)
            self._end_line()
        self._add(rest)
        if not data:
            self._end_line()
        return bool(data)

    def _add(self, piece: bytes) -> None:
        if not self._is_skipping:
            self._buffer += piece
            if len(self._buffer) > MAX_MESSAGE_BYTES:
                self._is_skipping = True
                self._buffer = bytearray()
                message = f"a message is larger than {MAX_MESSAGE_BYTES >> 20} MB"
                self._fail(None, RpcError(protocol.INVALID_REQUEST, message))

    def _end_line(self) -> None:
        line, self._buffer = bytes(self._buffer), bytearray()
        was_skipped, self._is_skipping = self._is_skipping, False
        if was_skipped or not line.strip():
            return
        try:
            message = quick_json.loads(line)
        except (ValueError, RecursionError):
            self._fail(None, RpcError(protocol.PARSE_ERROR, "not a line of JSON"))
            return
        # A version of the protocol has batches.
        for each in protocol.as_list(message) or [message]:
            self._take(each)

    def _send(self, message: dict[str, Any]) -> None:
        # A lone surrogate is no UTF-8, and strict clients refuse it as an escape, too.
        text = quick_json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False, is_compact=True)
        data = text.encode("utf-8", "replace") + b"\n"
        while data:
            data = data[os.write(self._sink, data) :]

    def _fail(self, request_id: str | int | None, error: RpcError) -> None:
        self._send({"id": request_id, "error": error.body})

    # ── messages ──

    def _take(self, given: Any) -> None:
        message = protocol.as_object(given)
        if message.get("jsonrpc") != "2.0":
            self._fail(None, RpcError(protocol.INVALID_REQUEST, "not a JSON-RPC 2.0 message"))
            return
        method, request_id, params = (
            message.get("method"),
            message.get("id"),
            protocol.as_object(message.get("params")),
        )
        if not isinstance(method, str):
            if "result" not in message and "error" not in message:
                self._fail(None, RpcError(protocol.INVALID_REQUEST, "a message without a method"))
            return
        if "id" not in message:
            if method == "notifications/cancelled":
                self._cancel(params.get("requestId"))
            return
        if not isinstance(request_id, (str, int)) or request_id in self._waits:
            self._fail(None, RpcError(protocol.INVALID_REQUEST, "an id is a string or a number, used once"))
            return
        try:
            result = self._answer(method, params, request_id)
            if result is not None:
                has_version = method != "initialize" and protocol.carries_version(params)
                result = protocol.with_version_fields(result, method, _SERVER) if has_version else result
                self._send({"id": request_id, "result": result})
        except RpcError as error:
            self._fail(request_id, error)
        except BrokenPipeError:
            raise
        except Exception as error:  # a bug, or the machine: the client is told, and the server goes on
            self._fail(request_id, _internal(error))

    def _answer(self, method: str, params: dict[str, Any], request_id: str | int) -> dict[str, Any] | None:
        """The result; None if it comes later. Raises RpcError."""
        about = {"capabilities": _CAPABILITIES, "instructions": _INSTRUCTIONS}
        if method == "initialize":
            version = protocol.negotiated_version(params.get("protocolVersion"))
            return {"protocolVersion": version, "serverInfo": _SERVER, **about}
        protocol.check_version(params)
        if method == "server/discover":
            return {"supportedVersions": list(protocol.MODERN), **about}
        if method == "ping":
            return {}
        if method == "tools/list":
            from holdfast.views.mcp import tool_list

            return {"tools": tool_list.TOOLS}
        if method == "tools/call":
            return self._call(params, request_id)
        if method.startswith("resources/"):
            from holdfast.views.mcp import resources

            return resources.answer(method, params)
        raise RpcError(protocol.NO_METHOD, f"no method {method}")

    def _call(self, params: dict[str, Any], request_id: str | int) -> dict[str, Any] | None:
        from holdfast.views.mcp import tools

        name, arguments = params.get("name"), protocol.as_object(params.get("arguments"))
        if not isinstance(name, str) or name not in (*tools.TOOLS, "wait"):
            raise RpcError(protocol.INVALID_PARAMS, f"no tool {name!r}")
        try:
            tools.check(name, arguments)
            if name != "wait":
                return tools.result(tools.TOOLS[name](arguments))
            from holdfast.views.mcp.waiting import Wait

            wait = Wait(arguments, params)
        except (HoldfastError, OSError) as error:
            return tools.failed(error)
        self._waits[request_id] = wait
        self._look(request_id, wait)
        return None

    # ── calls that wait ──

    def _look(self, request_id: str | int, wait: Wait) -> None:
        """Answer a call that has waited enough, or tell its progress."""
        from holdfast.views.mcp import tools

        try:
            found = wait.look()
            if found is None:
                if progress := wait.progress(clock.mono()):
                    self._send({"method": "notifications/progress", "params": progress})
                return
            result = tools.result(found)
        except (HoldfastError, OSError) as error:
            if isinstance(error, BrokenPipeError):
                raise
            result = tools.failed(error)
        except Exception as error:  # as in `_take`; it would be met again at every look
            self._cancel(request_id)
            self._fail(request_id, _internal(error))
            return
        self._cancel(request_id)
        if wait.carries_version:
            result = protocol.with_version_fields(result, "tools/call", _SERVER)
        self._send({"id": request_id, "result": result})

    def _cancel(self, request_id: Any) -> None:
        """Forget a call that waits. Any other has been answered."""
        if isinstance(request_id, (str, int)) and request_id in self._waits:
            self._waits.pop(request_id).close()


def _internal(error: Exception) -> RpcError:
    return RpcError(protocol.INTERNAL, f"{type(error).__name__}: {error}")
