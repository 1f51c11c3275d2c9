"""The state that all connections of a server share: script, requests, stalled replies."""

from __future__ import annotations

import secrets
import socket
import threading
import time
from typing import TYPE_CHECKING

from holdfast.testing.models import answer, routes
from holdfast.testing.models.record import new_request
from holdfast.testing.models.turns import ScriptError

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.testing.models.answer import Answer
    from holdfast.testing.models.record import Log, ModelRequest
    from holdfast.testing.models.script import Script

#: How often a stalled reply checks whether its client is still connected.
_LOOK_S = 0.1


class Desk:
    """Records requests and chooses answers. Thread-safe."""

    def __init__(self, script: Script, log: Log | None) -> None:
        self.script = script
        self.requests: list[ModelRequest] = []
        self.errors: list[str] = []
        """Errors of the script itself."""
        self.closed = threading.Event()
        self._log = log
        self._changed = threading.Condition()
        self._stalled = 0
        self._releases = 0
        self._id = secrets.token_hex(4)

    @property
    def is_closed(self) -> bool:
        """Whether the server is closing."""
        return self.closed.is_set()

    @property
    def stalled(self) -> int:
        """How many replies are stalled now."""
        return self._stalled

    def take(
        self, *, method: str, path: str, headers: list[tuple[str, str]], raw: bytes, body: bytes
    ) -> ModelRequest:
        """Record a request."""
        with self._changed:
            request = new_request(
                number=len(self.requests) + 1,
                at=time.time(),
                method=method,
                path=path,
                headers=headers,
                raw=raw,
                body=body,
            )
            try:
                request.is_side = self.script.is_side(request)
            except Exception as error:  # code of the test; reported in `errors`
                self.errors.append(f"request {request.number}: script: {type(error).__name__}: {error}")
            self.requests.append(request)
            if self._log:
                self._log.began(request)
            self._changed.notify_all()
        return request

    def finish(self, request: ModelRequest, how: str) -> None:
        """Record how a request ended."""
        with self._changed:
            request.ended = how
            if self._log:
                self._log.ended(request)
            self._changed.notify_all()

    def answer(self, request: ModelRequest) -> Answer:
        """The answer to a request. An error of the script is answered with 400 and added to `errors`."""
        route, api = request.route, request.codec
        if route.operation == "models":
            listed = routes.models_list(route, self.script.models)
            return answer.as_json(200, listed) if listed else answer.refused(api, 404, "no such model")
        if route.operation == "other" or api is None:
            if request.method in ("GET", "HEAD") and request.path.partition("?")[0] in ("/", "", "/v1"):
                return answer.as_json(200, {"ok": True})
            return answer.refused(None, 404, f"no such path: {request.path[:200]}")
        if request.json is None:
            return answer.refused(api, 400, "the body is not a JSON object")
        if route.operation == "count":
            count = self.script.usage.input_tokens
            return answer.as_json(
                200, {"input_tokens": count} if api.NAME == "anthropic" else {"totalTokens": count}
            )
        try:
            request.turn, turn = self.script.choose(request)
            reply_id = f"{self._id}_{request.number}"
            return answer.from_turn(turn, request, api, id=reply_id, usage=self.script.usage)
        except ScriptError as error:
            return self._at_fault(request, f"script: {error}")
        except Exception as error:  # code of the test; reported in the reply and in `errors`
            return self._at_fault(request, f"script: {type(error).__name__}: {error}")

    def stall(self, connection: socket.socket, limit_s: float | None) -> bool:
        """Wait for `release`, the limit, or the end of the server. Returns False if the server closes."""
        give_up = None if limit_s is None else time.monotonic() + limit_s
        with self._changed:
            self._stalled += 1
            releases = self._releases
            self._changed.notify_all()
            try:
                while releases == self._releases and not self.is_closed:
                    left_s = _LOOK_S if give_up is None else min(_LOOK_S, give_up - time.monotonic())
                    if left_s <= 0:
                        return True
                    self._changed.wait(left_s)
                    if _is_gone(connection):
                        raise ConnectionResetError("the client disconnected")
            finally:
                self._stalled -= 1
        return not self.is_closed

    def release(self) -> None:
        """Let all stalled replies continue."""
        with self._changed:
            self._releases += 1
            self._changed.notify_all()

    def close(self) -> None:
        """Close: stalled replies give up."""
        self.closed.set()
        self.release()

    def wait(self, fn: Callable[[], bool], within_s: float) -> bool:
        """Wait until `fn` is true; checked at every change. Returns False after `within_s`."""
        with self._changed:
            return self._changed.wait_for(fn, within_s)

    def _at_fault(self, request: ModelRequest, message: str) -> Answer:
        self.errors.append(f"request {request.number}: {message}")
        # 400, because clients retry a request that failed with 500.
        return answer.refused(request.codec, 400, message)


def _is_gone(connection: socket.socket) -> bool:
    try:
        return not connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True
