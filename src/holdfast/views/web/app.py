"""The application: which path is answered by what."""

from __future__ import annotations

import json
import sys
import traceback

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from holdfast.errors import HoldfastError, NotFound, UsageError
from holdfast.views.web import actions, answers, endpoints, sessions, static_files
from holdfast.views.web.answers import Json
from holdfast.views.web.guard import Guard
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


def make(home: Home, feed: Feed, *, rules: Rules, known: Sessions) -> ASGIApp:
    """The application for a home."""
    static = static_files.load()
    streams = Streams(home, feed)

    async def page(request: Request) -> Response:
        # Addresses of tasks are those of the page itself, which reads them.
        path = request.url.path
        file = static.get("/" if path.startswith("/task/") or path == "/new" else path)
        if file is None:
            return Json({"error": "no such page"}, 404)
        return Response(file.data, media_type=file.media_type)

    async def session(request: Request) -> Response:
        bearer = known.exchange(str((await _body(request)).get("token")))
        if bearer is None:
            return Json({"error": "this link was used, or is wrong; 'holdfast serve' prints another"}, 403)
        return Json({"bearer": bearer, "is_read_only": rules.is_read_only})

    async def token(request: Request) -> Response:
        return Json({"token": known.new_token(life_s=sessions.TAB_TOKEN_S)})

    async def read(request: Request) -> Response:
        reading = endpoints.READS.get(request.path_params["what"])
        if reading is None:
            return Json({"error": "no such page"}, 404)
        return await run_in_threadpool(lambda: Json(reading(home, request.query_params)))

    async def read_task(request: Request) -> Response:
        reading = endpoints.READS_OF_TASK.get(request.path_params.get("what", ""))
        if reading is None:
            return Json({"error": "no such page"}, 404)
        task_id = request.path_params["task"]
        return await run_in_threadpool(
            lambda: Json(reading(home, endpoints.packet_of(home, task_id), request.query_params))
        )

    async def file(request: Request) -> Response:
        task_id = request.path_params["task"]

        def text() -> str:
            packet = endpoints.packet_of(home, task_id)
            return "\n".join(
                map(answers.clean, endpoints.file_of(home, packet, request.query_params).split("\n"))
            )

        return PlainTextResponse(
            (await run_in_threadpool(text)).encode("utf-8", "replace")[: answers.ANSWER_BYTES]
        )

    async def act(request: Request) -> Response:
        verb = request.path_params["verb"]
        if verb not in actions.VERBS:
            raise NotFound(f"no action {verb}")
        return await actions.on_task(request.path_params["task"], verb, await _body(request))

    async def new_task(request: Request) -> Response:
        return await actions.new_task(await _body(request))

    routes = [
        Route("/api/session", _told(session), methods=["POST"]),
        Route("/api/token", _told(token), methods=["POST"]),
        Route("/api/stream", _told(streams.open), methods=["GET"]),
        Route("/api/tasks", _told(new_task), methods=["POST"]),
        Route("/api/tasks/{task}/file", _told(file), methods=["GET"]),
        Route("/api/tasks/{task}/{verb}", _told(act), methods=["POST"]),
        Route("/api/tasks/{task}/{what}", _told(read_task), methods=["GET"]),
        Route("/api/tasks/{task}", _told(read_task), methods=["GET"]),
        Route("/api/{what}", _told(read), methods=["GET"]),
        Route("/{path:path}", page, methods=["GET"]),
    ]
    hashes = static_files.script_hashes(static["/"].data)
    return Guard(Starlette(routes=routes), rules=rules, sessions=known, script_hashes=hashes)


async def _body(request: Request) -> dict[str, Any]:
    try:
        body: Any = json.loads(await request.body())
    except (ValueError, RecursionError, ClientDisconnect):
        body = None
    if not isinstance(body, dict):
        raise UsageError("the body is not a JSON object")
    return body  # pyright: ignore[reportUnknownVariableType]


def _told(handle: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    """Errors of holdfast as answers."""

    async def handler(request: Request) -> Response:
        try:
            return await handle(request)
        except HoldfastError as error:
            told = {"error": str(error), "code": error.code, "hint": error.hint, "details": error.details}
            return Json(told, endpoints.status_of(error))
        except OSError as error:
            return Json({"error": f"cannot read it: {error.strerror}"}, 500)
        except (
            Exception
        ) as error:  # a bug, or a packet that nobody thought of: the person at the terminal sees it
            where = traceback.extract_tb(error.__traceback__)[-1]
            told = f"{type(error).__name__} in {where.name}"
            print(f"error: {request.url.path}: {told}: {error}", file=sys.stderr)
            return Json({"error": f"this cannot be shown: {told}"}, 500)

    return handler
