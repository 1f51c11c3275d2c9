"""A session with `holdfast mcp` through the official SDK; run by the interpreter of its own environment.

`sdk_session.py MODE SERVER…` prints what the client saw as one JSON object. MODE is `handshake`, or for 2.x
`auto` or a version.
"""

# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false
from __future__ import annotations

import json
import os
import sys
from typing import Any

import anyio
from mcp import ClientSession, StdioServerParameters  # noqa: TID253 - no part of holdfast runs here
from mcp.client.stdio import stdio_client  # noqa: TID253


def plain(model: Any) -> Any:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


async def use(session: Any, seen: dict[str, Any]) -> None:
    tools = plain(await session.list_tools())["tools"]
    seen["tools"] = [tool["name"] for tool in tools]
    made = plain(await session.call_tool("start", {"command": ["echo", "hi"], "id": "it"}))
    seen["made"] = made["structuredContent"]
    progress: list[Any] = []

    async def on_progress(done: float, total: float | None, message: str | None) -> None:
        progress.append([done, total, message])

    waited = await session.call_tool("wait", {"tasks": ["it"]}, progress_callback=on_progress)
    seen["waited"] = plain(waited)["structuredContent"]
    seen["shown"] = plain(await session.call_tool("show", {"task": "it"}))["structuredContent"]
    failed = plain(await session.call_tool("show", {"task": "none"}))
    seen["failed"] = [failed["isError"], failed["_meta"]["holdfast/error"]["code"]]
    seen["resources"] = [each["uri"] for each in plain(await session.list_resources())["resources"]]
    templates = plain(await session.list_resource_templates())
    seen["templates"] = len(templates["resourceTemplates"])
    read = plain(await session.read_resource("holdfast://task/it/summary"))
    seen["read"] = read["contents"][0]["text"]
    try:
        await session.read_resource("holdfast://task/none/summary")
    except Exception as error:  # its class differs between the versions
        seen["missing"] = str(error)
    try:
        await session.call_tool("none", {})
    except Exception as error:
        seen["no tool"] = str(error)


async def main(mode: str, command: list[str]) -> None:
    server = StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))
    seen: dict[str, Any] = {}
    with anyio.fail_after(90):
        if mode == "handshake":
            async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
                begun = plain(await session.initialize())
                seen["version"] = begun["protocolVersion"]
                await session.send_ping()
                await use(session, seen)
        else:
            from mcp import Client

            async with Client(stdio_client(server), mode=mode) as client:
                seen["version"] = client.protocol_version
                await use(client, seen)
    print(json.dumps(seen))


anyio.run(main, sys.argv[1], sys.argv[2:])
