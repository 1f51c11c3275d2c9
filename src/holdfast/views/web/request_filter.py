"""The outermost layer of the server: checks a request, reads its body, and adds headers to every answer."""

from __future__ import annotations

import asyncio

from starlette.responses import JSONResponse

from holdfast.views.web import security
from holdfast.views.web.security import BODY_BYTES, Rules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from holdfast.views.web.sessions import Sessions

#: How long a client may take to send a body.
_BODY_S = 10.0
#: In the state of a request that came with a bearer of ours.
HAS_BEARER = "holdfast.has_bearer"


class RequestFilter:
    """Passes on what `security.check` allows."""

    def __init__(
        self, app: ASGIApp, *, rules: Rules, sessions: Sessions, script_hashes: Sequence[str]
    ) -> None:
        self._app = app
        self._rules = rules
        self._sessions = sessions
        self._headers = security.response_headers(script_hashes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            return

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *self._headers]
            await send(message)

        def is_known(bearer: str) -> bool:
            if is_ours := self._sessions.is_known(bearer):
                scope["state"][HAS_BEARER] = True
            return is_ours

        refusal = security.check(
            self._rules,
            scope["method"],
            scope["path"],
            headers=[(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]],
            is_known=is_known,
        )
        if refusal is not None:
            headers = {"connection": "close"}  # its body is not read
            await JSONResponse({"error": refusal.reason}, refusal.status, headers)(scope, receive, answer)
            return
        if scope["method"] == "POST":
            body = await _body(receive)
            if body is None:
                await JSONResponse({"error": "the body did not arrive"}, 408)(scope, receive, answer)
                return
            receive = _replay(body, receive)
        await self._app(scope, receive, answer)


async def _body(receive: Receive) -> bytes | None:
    """A body within the limits; None if it does not arrive, or is larger than it said."""
    body, has_more = b"", True
    try:
        async with asyncio.timeout(_BODY_S):
            while has_more:
                message = await receive()
                if message["type"] != "http.request":
                    return None
                body += message.get("body", b"")
                has_more = message.get("more_body", False)
                if len(body) > BODY_BYTES:
                    return None
    except TimeoutError:
        return None
    return body


def _replay(body: bytes, receive: Receive) -> Receive:
    is_read = False

    async def read() -> Message:
        nonlocal is_read
        if is_read:
            return await receive()
        is_read = True
        return {"type": "http.request", "body": body, "more_body": False}

    return read
