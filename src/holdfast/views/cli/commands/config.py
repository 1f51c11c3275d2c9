"""holdfast config: show the settings and where each was set."""

from __future__ import annotations

import os

from holdfast import paths
from holdfast.config import settings
from holdfast.config.keys import KEYS
from holdfast.packet import limits
from holdfast.store.trust import TrustCheck
from holdfast.views.cli.parse.command_spec import JSON, Argument, Command, Option
from holdfast.views.cli.show import out, wrapped_table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

COMMAND = Command(
    name="config",
    summary="Show the settings and where each was set.",
    description="'path' shows the settings files. Precedence: flag > environment (MONITOR_*) > project "
    "(.holdfast/config.toml) > user (config.toml) > default. A running keeper reads an edited "
    "file by itself. Settings: " + ", ".join(KEYS) + ".",
    examples=("holdfast config show", "holdfast config show --json", "holdfast config path"),
    arguments=(Argument(dest="action", metavar="show|path", choices=("show", "path")),),
    options=(
        Option(
            flags=("--project",), dest="project", metavar="DIR", help="Project directory (default: here)."
        ),
        JSON,
    ),
)


def run(values: dict[str, Any]) -> int:
    """Run the action."""
    project = paths.project(values["project"])
    if values["action"] == "path":
        return _path(project, as_json=values["json"])
    limits.resolve(os.environ, {}, stale_s=None)  # report an invalid variable as 'run' does
    judge = TrustCheck(project)
    settled = settings.effective(project, os.environ, judge)
    for line in judge.notices():
        out.talk(line)
    if values["json"]:
        origins = {
            name: {"value": setting.value, "from": setting.source, "where": setting.where}
            for name, setting in settled.items()
        }
        out.data({"schema": "holdfast.config/1", "settings": origins})
        return 0
    files = _files(project)
    wrapped_table.show(
        ("SETTING", "VALUE", "FROM"),
        [(name, _text(setting.value), _origin(setting, files)) for name, setting in settled.items()],
    )
    used = {setting.source for setting in settled.values()}
    for owner, path in files.items():
        if owner in used:
            out.fact(owner, path, at=9)
    return 0


def _path(project: str, *, as_json: bool) -> int:
    files = _files(project)
    if as_json:
        rows = [{"of": owner, "path": path, "exists": os.path.exists(path)} for owner, path in files.items()]
        out.data({"schema": "holdfast.config-path/1", "files": rows})
        return 0
    for owner, path in files.items():
        out.fact(owner, path + ("" if os.path.exists(path) else "  (not found)"), at=9)
    return 0


def _files(project: str) -> dict[str, str]:
    return {"project": paths.project_settings(project), "user": paths.user_settings()}


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return str(value).lower()  # as in TOML
    if not isinstance(value, list):
        return str(value)
    return " ".join(_item_text(item) for item in value) or "-"  # pyright: ignore[reportUnknownVariableType]


def _item_text(item: Any) -> str:
    """A name, or a `notify` rule as `events→target`."""
    return f"{','.join(item['on'])}→{item['to']}" if isinstance(item, dict) else str(item)  # pyright: ignore


def _origin(setting: settings.Setting, files: dict[str, str]) -> str:
    """The source; the files are named once, below the table, because their paths make rows too wide."""
    if setting.where == files.get(setting.source):
        return setting.source
    return f"{setting.source} {setting.where}".rstrip()
