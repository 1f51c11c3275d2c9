"""Maps a path to an API and an operation. A prefix such as `/proxy` is allowed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from urllib.parse import parse_qs, unquote

from holdfast.testing.models import anthropic, chat, gemini, responses

if TYPE_CHECKING:
    from holdfast.testing.models.wire import Api

ApiName = Literal["anthropic", "responses", "chat", "gemini"]
Operation = Literal["generate", "count", "models", "other"]

APIS: dict[ApiName, Api] = {
    "anthropic": anthropic,
    "responses": responses,
    "chat": chat,
    "gemini": gemini,
}
_GEMINI = re.compile(r"/models/([^/:]+):(generateContent|streamGenerateContent|countTokens)$")
_MODELS = re.compile(r"/models(?:/([^/:]+))?/?$")


class Route(NamedTuple):
    """API and operation of a request."""

    operation: Operation
    api: ApiName | None = None
    model: str = ""
    """The model in the path; the other APIs name it in the body."""
    streams: bool | None = None
    """None if the body decides."""
    is_json_array: bool = False
    """Gemini's stream without `alt=sse`."""


def find(method: str, target: str) -> Route:
    """The route of a method and a path."""
    # Not urlsplit, which raises on some invalid paths.
    path, _, query = target.partition("?")
    path = path.rstrip("/")
    if method in ("GET", "HEAD"):
        found = _MODELS.search(path)
        if not found:
            return Route("other")
        api: ApiName = "gemini" if "/v1beta" in path else "chat"
        return Route("models", api, unquote(found[1] or ""))
    if method != "POST":
        return Route("other")
    if path.endswith("/messages/count_tokens"):
        return Route("count", "anthropic")
    if path.endswith("/messages"):
        return Route("generate", "anthropic")
    if path.endswith("/responses"):
        return Route("generate", "responses")
    if path.endswith("/chat/completions"):
        return Route("generate", "chat")
    if found := _GEMINI.search(path):
        model = unquote(found[1])
        if found[2] == "countTokens":
            return Route("count", "gemini", model)
        streams = found[2] == "streamGenerateContent"
        is_sse = parse_qs(query).get("alt") == ["sse"]
        return Route("generate", "gemini", model, streams, is_json_array=streams and not is_sse)
    return Route("other")


def models_list(route: Route, names: list[str]) -> dict[str, Any] | None:
    """The list of models. One object has the fields of both OpenAI and Anthropic."""
    if route.api == "gemini":
        listed = [_gemini_model(name) for name in names]
        if route.model:
            return _gemini_model(route.model) if route.model in names else None
        return {"models": listed}
    if route.model:
        return _model(route.model) if route.model in names else None
    return {
        "object": "list",
        "data": [_model(name) for name in names],
        "has_more": False,
        "first_id": names[0] if names else None,
        "last_id": names[-1] if names else None,
    }


def _model(name: str) -> dict[str, Any]:
    return {
        "id": name,
        "object": "model",
        "created": 1_700_000_000,
        "owned_by": "holdfast",
        "type": "model",
        "display_name": name,
        "created_at": "2023-11-14T22:13:20Z",
    }


def _gemini_model(name: str) -> dict[str, Any]:
    return {
        "name": f"models/{name}",
        "displayName": name,
        "inputTokenLimit": 1_048_576,
        "outputTokenLimit": 65_536,
        "supportedGenerationMethods": ["generateContent", "countTokens"],
    }
