"""Portable tool calls: mapped to the client's own shell or file tool."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from holdfast.testing.agent.kinds import as_object
from holdfast.testing.models.shapes import object_at, sample, string
from holdfast.testing.models.turns import Call, ScriptError

if TYPE_CHECKING:
    from holdfast.testing.models.shapes import OfferedTool

#: Tool names of Claude Code, Codex, Gemini CLI, Copilot CLI, OpenCode and Pi.
SHELLS = ("Bash", "bash", "exec_command", "shell_command", "shell", "run_shell_command", "local_shell")
WRITERS = ("Write", "write", "write_file", "create")
_COMMANDS = ("command", "cmd")
_PATHS = ("file_path", "filePath", "path")
_CONTENTS = ("content", "file_text")


def resolve(call: Call, offered: list[OfferedTool]) -> Call:
    """The call with the tool name and arguments of this client."""
    if call.portable is None:
        return call
    by_name = {tool.name: tool for tool in offered}
    if call.portable == "write":
        writer = next((by_name[name] for name in WRITERS if name in by_name), None)
        if writer:
            path, content = _named(writer, _PATHS), _named(writer, _CONTENTS)
            given = {path: call.arguments["path"], content: call.arguments["content"]}
            return Call(name=writer.name, arguments=_filled(writer, given))
        path, content = shlex.quote(call.arguments["path"]), shlex.quote(call.arguments["content"])
        command = f"printf %s {content} > {path}"
    else:
        command = call.arguments["command"]
    shell = next((by_name[name] for name in SHELLS if name in by_name), None)
    if shell is None:
        raise ScriptError(f"{call.portable}: the client offers no such tool (offered: {', '.join(by_name)})")
    name = _named(shell, _COMMANDS)
    is_list = string(object_at(shell.schema, "properties", name).get("type")).lower() == "array"
    given = {name: ["bash", "-c", command] if is_list else command}
    return Call(name=shell.name, arguments=_filled(shell, given))


def _named(tool: OfferedTool, names: tuple[str, ...]) -> str:
    properties = object_at(tool.schema, "properties")
    return next((name for name in names if name in properties), names[0])


def _filled(tool: OfferedTool, given: dict[str, Any]) -> dict[str, Any]:
    """Other required arguments get the simplest valid value."""
    plain = sample(tool.schema | {"type": "object", "required": tool.schema.get("required", [])})
    return (as_object(plain) or {}) | given
