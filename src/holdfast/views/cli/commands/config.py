"""holdfast config: what is set, and where it was set."""

from __future__ import annotations

import os

from holdfast import paths
from holdfast.config import settings
from holdfast.config.keys import KEYS
from holdfast.packet import limits
from holdfast.views.cli.parse.command_spec import JSON, Argument, Command, Option
from holdfast.views.cli.show import out, wrapped_table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

COMMAND = Command(
    name="config",
    summary="Show the settings and where each comes from, or the files in which they are set.",
    description="A flag beats the environment (MONITOR_*), that beats .holdfast/config.toml in the project, that "
    "beats config.toml of the user, that beats the default. Settings: " + ", ".join(KEYS) + ".",
    examples=("holdfast config show", "holdfast config show --json", "holdfast config path"),
    arguments=(Argument(dest="action", metavar="show|path", choices=("show", "path")),),
    options=(
        Option(flags=("--project",), dest="project", metavar="DIR", help="The project (default: here)."),
        JSON,
    ),
)


def run(values: dict[str, Any]) -> int:
    """Print one or the other."""
    project = paths.project(values["project"])
    if values["action"] == "path":
        return _path(project, as_json=values["json"])
    limits.settle(os.environ, {}, stale_s=None)  # a variable that does not read is told as 'run' tells it
    settled = settings.settle(project, os.environ)
    if values["json"]:
        shown = {
            name: {"value": found.value, "from": found.source, "where": found.where}
            for name, found in settled.items()
        }
        out.data({"schema": "holdfast.config/1", "settings": shown})
        return 0
    wrapped_table.show(
        ("SETTING", "VALUE", "FROM"),
        [(name, _words(found.value), _origin(found)) for name, found in settled.items()],
    )
    return 0


def _path(project: str, *, as_json: bool) -> int:
    files = {"project": paths.project_settings(project), "user": paths.user_settings()}
    if as_json:
        rows = [{"of": of, "path": path, "exists": os.path.exists(path)} for of, path in files.items()]
        out.data({"schema": "holdfast.config-path/1", "files": rows})
        return 0
    for of, path in files.items():
        out.fact(of, path + ("" if os.path.exists(path) else "  (not there)"), at=9)
    return 0


def _words(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return str(value).lower()  # as it is written in the file
    if not isinstance(value, list):
        return str(value)
    return " ".join(_word(item) for item in value) or "-"  # pyright: ignore[reportUnknownVariableType]


def _word(item: Any) -> str:
    """A name, or a rule of `notify`: what it is about and whom it tells."""
    return f"{','.join(item['on'])}→{item['to']}" if isinstance(item, dict) else str(item)  # pyright: ignore


def _origin(found: settings.Setting) -> str:
    return f"{found.source} {found.where}".rstrip()
