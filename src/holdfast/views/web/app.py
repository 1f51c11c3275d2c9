"""The application: which path is answered by what."""

from __future__ import annotations

import sys
import traceback

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from holdfast.errors import HoldfastError
from holdfast.views.web import actions, answers, endpoints, new_task, sessions, static_files
from holdfast.views.web.answers import Json
from holdfast.views.web.body import json_object
from holdfast.views.web.request_filter import RequestFilter
from holdfast.views.web.stream import Streams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

    from starlette.requests import Request
    from starlette.types import ASGIApp

    from holdfast.store.layout import Home
    from holdfast.views.web.feed import Feed
    from holdfast.views.web.security import Rules
    from holdfast.views.web.sessions import Sessions

    Handle = Callable[[Request], Awaitable[Response]]


def make(home: Home, feed: Feed, *, rules: Rules, known: Sessions) -> ASGIApp:
    """The application for a home."""
    handlers = Handlers(home, feed, rules=rules, known=known)
    hashes = static_files.script_hashes(handlers.static["/"].data)
    app = Starlette(routes=handlers.routes())
    return RequestFilter(app, rules=rules, sessions=known, script_hashes=hashes)


class Handlers:
    """One method for each kind of request. What reads files runs in a thread."""

    def __init__(self, home: Home, feed: Feed, *, rules: Rules, known: Sessions) -> None:
        self._home = home
        self._rules = rules
        self._sessions = known
        self._streams = Streams(home, feed)
        self.static = static_files.load()

    def routes(self) -> list[Route]:
        """The first that fits answers."""
        table: tuple[tuple[str, str, Handle], ...] = (
            ("POST", "/api/session", self.session),
            ("POST", "/api/token", self.token),
            ("GET", "/api/stream", self._streams.open),
            ("POST", "/api/tasks", self.new_task),
            ("GET", "/api/tasks/{task}/file", self.file),
            ("POST", "/api/tasks/{task}/{verb}", self.act),
            ("GET", "/api/tasks/{task}/{what}", self.read_task),
            ("GET", "/api/tasks/{task}", self.read_task),
            ("GET", "/api/{what}", self.read),
            ("GET", "/{path:path}", self.page),
        )
        return [Route(path, _with_error_responses(handle), methods=[verb]) for verb, path, handle in table]

    async def page(self, request: Request) -> Response:
        """The page, or a file that it needs."""
        path = request.url.path
        file = self.static.get("/task/" if path.startswith("/task/") else path)
        if file is None:
            return _no_such_page()
        return Response(file.data, media_type=file.media_type)

    async def session(self, request: Request) -> Response:
        """Exchange a token for a bearer."""
        bearer = self._sessions.exchange(str((await json_object(request)).get("token")))
        if bearer is None:
            return Json({"error": "this link was used, or is wrong; 'holdfast serve' prints another"}, 403)
        return Json({"bearer": bearer, "is_read_only": self._rules.is_read_only})

    async def token(self, request: Request) -> Response:
        """A token for another tab."""
        return Json({"token": self._sessions.new_token(life_s=sessions.TAB_TOKEN_S)})

    async def read(self, request: Request) -> Response:
        """Data about the home."""
        read = endpoints.READS.get(request.path_params["what"])
        if read is None:
            return _no_such_page()
        return await run_in_threadpool(lambda: Json(read(self._home, request.query_params)))

    async def read_task(self, request: Request) -> Response:
        """Data about a task."""
        read = endpoints.READS_OF_TASK.get(request.path_params.get("what", ""))
        if read is None:
            return _no_such_page()

        def answer() -> Response:
            packet = endpoints.packet_of(self._home, request.path_params["task"])
            return Json(read(self._home, packet, request.query_params))

        return await run_in_threadpool(answer)

    async def file(self, request: Request) -> Response:
        """A file of a packet, as plain text."""

        def answer() -> bytes:
            packet = endpoints.packet_of(self._home, request.path_params["task"])
            lines = endpoints.file_of(self._home, packet, request.query_params).split("\n")
            return "\n".join(map(answers.clean, lines)).encode("utf-8", "replace")

        return PlainTextResponse((await run_in_threadpool(answer))[: answers.ANSWER_BYTES])

    async def act(self, request: Request) -> Response:
        """A request to a task."""
        task, verb = request.path_params["task"], request.path_params["verb"]
        body = await json_object(request)
        return Json(await run_in_threadpool(actions.on_task, self._home, task, verb, body))

    async def new_task(self, request: Request) -> Response:
        """A new task, or a check of its fields."""
        return Json(await run_in_threadpool(new_task.create, await json_object(request)))


def _no_such_page() -> Response:
    return Json({"error": "no such page"}, 404)


def _with_error_responses(handle: Handle) -> Handle:
    """The same handler; what it raises becomes an answer."""

    async def handler(request: Request) -> Response:
        try:
            return await handle(request)
        except HoldfastError as error:
            about: dict[str, Any] = {
                "error": str(error),
                "code": error.code,
                "hint": error.hint,
                "details": error.details,
            }
            if isinstance(error, new_task.BadFields):
                about["problems"] = error.problems
            return Json(about, endpoints.status_of(error))
        except OSError as error:
            return Json({"error": f"cannot read it: {error.strerror}"}, 500)
        except Exception as error:  # a bug, or an unexpected packet: the terminal shows it
            where = traceback.extract_tb(error.__traceback__)[-1]
            kind = f"{type(error).__name__} in {where.name}"
            print(f"error: {request.url.path}: {kind}: {error}", file=sys.stderr)
            return Json({"error": f"this cannot be shown: {kind}"}, 500)

    return handler
