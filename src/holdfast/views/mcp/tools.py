"""The tools: what each does with checked arguments, and how results and errors are told."""

from __future__ import annotations

from holdfast import paths, quick_json, spawn
from holdfast.errors import HoldfastError, UsageError
from holdfast.packet import load
from holdfast.store.layout import Home
from holdfast.views.mcp import protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from holdfast.store.layout import Packet
    from holdfast.views.create.new_task import Talk
    from holdfast.views.create.options import TaskOptions

#: Size of a text of `show`, unless another is asked for.
_SHOWN_BYTES, _MAX_BYTES = 8192, 65536
#: Options of `start` that go to the task as they are.
_SAME = ("prompt", "agent", "model", "project", "packet", "permissions", "name", "id", "worktree", "sandbox")
#: Types of a schema.
_TYPES: dict[str, Any] = {
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "array": list,
    "object": dict,
}
#: Options of `start` that are passed as text, under the name of the task option.
_LIMITS = {"deadline": "deadline_s", "budget_usd": "budget_usd", "max_turns": "max_turns"}


# The server lives long, and may be inside an agent whose program emptied its environment.
spawn.is_guest = True


def result(value: dict[str, Any]) -> dict[str, Any]:
    """A result: as data, and as text for clients that read no data."""
    text = quick_json.dumps(value, ensure_ascii=False)
    return {"content": [{"type": "text", "text": text}], "structuredContent": value}


def failed(error: HoldfastError | OSError) -> dict[str, Any]:
    """An error, with code and exit status of the command line: as plain text, and in `_meta` for programs.

    Not as data, nor as JSON in the text: clients check both by the tool's output schema (Gemini does).
    """
    if isinstance(error, HoldfastError):
        about: dict[str, Any] = {"code": error.code, "exit": error.exit_status, "message": str(error)}
        about |= {"details": list(error.details)} if error.details else {}
        about |= {"hint": error.hint} if error.hint else {}
    else:
        about = {"code": "system", "exit": 3, "message": f"the system refused a call: {error.strerror}"}
    lines = [f"error: {about['message']} ({about['code']}, exit {about['exit']})", *about.get("details", ())]
    lines += [f"hint: {about['hint']}"] if "hint" in about else []
    text = {"type": "text", "text": "\n".join(lines)}
    return {"content": [text], "isError": True, "_meta": {"holdfast/error": about}}


def check(name: str, arguments: dict[str, Any]) -> None:
    """Raises UsageError for arguments that do not fit the tool's schema."""
    from holdfast.views.mcp import tool_list

    schema: dict[str, Any] = next(tool["inputSchema"] for tool in tool_list.TOOLS if tool["name"] == name)
    known: dict[str, Any] = schema["properties"]
    for key, value in arguments.items():
        if key not in known:
            raise UsageError(f"{name}: no argument {key!r}", hint=f"it takes {', '.join(known)}")
        _check_value(f"{name}: {key}", value, known[key])
    for key in schema.get("required", ()):
        if key not in arguments:
            raise UsageError(f"{name}: {key} is missing")


def _check_value(where: str, value: Any, schema: dict[str, Any]) -> None:
    kind: str = schema["type"]
    if not isinstance(value, _TYPES[kind]) or (isinstance(value, bool) and kind != "boolean"):
        raise UsageError(f"{where}: must be of type {kind}")
    if value not in schema.get("enum", (value,)):
        raise UsageError(f"{where}: must be one of {', '.join(schema['enum'])}")
    if kind in ("array", "object"):
        inner: dict[str, Any] = schema["items" if kind == "array" else "additionalProperties"]
        for each in (*protocol.as_list(value), *protocol.as_object(value).values()):
            _check_value(where, each, inner)


def task_ids(home: Home, arguments: dict[str, Any]) -> set[str] | None:
    """The ids of the tasks that are asked for; None for all. Raises NotFound."""
    names: list[str] = arguments.get("tasks") or []
    return {load.find(home, name, archived=True).task_id for name in names} or None


def _state(packet: Packet) -> dict[str, Any]:
    return {"task_id": packet.task_id, "state": load.read_manifest(load.wherever(packet))["status"]}


def _start(arguments: dict[str, Any]) -> dict[str, Any]:
    from holdfast.views.create import start
    from holdfast.views.create.options import TaskOptions

    notes: list[str] = []
    options: dict[str, Any] = {name: arguments[name] for name in _SAME if name in arguments}
    options |= {_LIMITS[name]: str(arguments[name]) for name in _LIMITS if name in arguments}
    for name in ("command", "accept", "failover"):
        if name in arguments:
            options[name] = tuple(arguments[name])
    options["label"] = tuple(f"{key}={value}" for key, value in arguments.get("labels", {}).items())
    if arguments.get("split"):
        return {**_state(_fan_out(arguments, TaskOptions(**options), notes.append)), "notes": notes}
    packet = start.submit(
        TaskOptions(**options),
        priority=arguments.get("priority"),
        after=arguments.get("after", ()),
        may_be_full=False,
        talk=notes.append,
    )
    return {**_state(packet), "notes": notes}


def _fan_out(arguments: dict[str, Any], options: TaskOptions, talk: Talk) -> Packet:
    """An agent splits the prompt into items, which become tasks, and their work is merged."""
    from holdfast.model.work_plan import Plan
    from holdfast.views.create import fan_out

    wrong = [name for name in ("command", "packet", "after") if arguments.get(name)]
    if wrong or not arguments.get("prompt"):
        raise UsageError(
            f"start: split and {wrong[0]} exclude each other" if wrong else "start: split needs a prompt"
        )
    goal, priority = arguments["prompt"], arguments.get("priority")
    return fan_out.begin(Plan(), options, ask=goal, priority=priority, may_be_full=False, talk=talk)


def _digest(arguments: dict[str, Any]) -> dict[str, Any]:
    from holdfast.views.facts import digest

    home = Home(paths.home())
    only, wanted = task_ids(home, arguments), arguments.get("labels")
    return digest.gather(home, since=arguments.get("since"), only=only, wanted=wanted)


def _show(arguments: dict[str, Any]) -> dict[str, Any]:
    packet = load.find(Home(paths.home()), arguments["task"], archived=True)
    what = arguments.get("what", "summary")
    return {**_state(packet), "what": what, **shown(packet, what, arguments)}


def shown(packet: Packet, what: str, arguments: dict[str, Any], *, most: int = _MAX_BYTES) -> dict[str, Any]:
    """A text about a task, within a limit."""
    limit = min(max(1, arguments.get("bytes", _SHOWN_BYTES)), most)
    if what == "summary":
        from holdfast.views.facts import summary

        found = summary.gather(packet, load.read_manifest(packet))
        return {"text": found["text"], "left_out_bytes": found["left_out_bytes"]}
    if what == "log":
        from holdfast.views.facts import log

        if "begin" in arguments:
            return log.window(packet, begin=arguments["begin"], limit=limit)
        return log.window(packet, end=arguments.get("end", 1 << 62), limit=limit)
    if what == "diff":
        from holdfast.views.facts.diff import Comparison

        compared = Comparison(packet, stage=None, candidate=None, everything=False)
        data = compared.patch(is_for_reading=True)
    elif what == "findings":
        from holdfast.views.facts import findings

        data = "\n".join(findings.lines(packet, load.read_manifest(packet))).encode("utf-8", "replace")
    else:
        from holdfast.views.facts import detail

        gates = detail.detail(packet.home, packet.task_id).gates
        data = quick_json.dumps([gate.to_json() for gate in gates], ensure_ascii=False).encode()
    begin = max(0, arguments.get("begin", 0))
    text = data[begin : begin + limit].decode("utf-8", "replace")
    return {"text": text, "left_out_bytes": max(0, len(data) - begin - limit)}


def _say(arguments: dict[str, Any]) -> dict[str, Any]:
    from holdfast.views import requests

    packet = load.find(Home(paths.home()), arguments["task"])
    verb, message = arguments["verb"], arguments.get("message")
    if verb == "answer" and not message:
        raise UsageError("say: an answer needs a message")
    key = "reason" if verb == "interrupt" else "message"
    requests.send_request(packet, "resume" if verb == "answer" else verb, {key: message} if message else {})
    return _state(packet)


def _stop(arguments: dict[str, Any]) -> dict[str, Any]:
    from holdfast.views import requests

    home = Home(paths.home())
    packet = load.find(home, arguments["task"], archived=True)
    args: dict[str, Any] = {"reason": arguments["message"]} if arguments.get("message") else {}
    args |= {"now": True} if arguments.get("now") else {}
    requests.stop(packet, args)
    return _state(packet)


#: By name, without `wait`, which the server answers itself.
TOOLS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "start": _start,
    "digest": _digest,
    "show": _show,
    "say": _say,
    "stop": _stop,
}
