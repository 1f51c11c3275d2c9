"""holdfast trust: allow what a project brings, show what is allowed, or take it back."""

from __future__ import annotations

import os
import sys

from holdfast import paths
from holdfast.config import settings
from holdfast.config.classes import CLASSES
from holdfast.errors import NoSuchDirectory, NotFound, NotPossible, UsageError
from holdfast.pipeline.define import load_catalog, packet_template, written_packet
from holdfast.pipeline.prompt import template
from holdfast.store import audit, trust
from holdfast.store.layout import Home
from holdfast.views import option_values
from holdfast.views.cli.parse.command_spec import JSON, Argument, Command, Option
from holdfast.views.cli.queue import item_trust
from holdfast.views.cli.show import out, prompt, wrapped_table
from holdfast.views.text.fit_text import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.config.needs import Part

COMMAND = Command(
    name="trust",
    summary="Trust the settings and commands in a project's .holdfast/.",
    description="A project's settings, pipelines, prompts and templates can run commands, choose programs, "
    "change the environment and widen permissions. Until you trust them, holdfast ignores them and says so. "
    "This command shows what PATH (default: here) asks for and what changed since you trusted it, then asks "
    "you. A change needs trust again. PATH can also be a packet, or a file or folder of work items. "
    "Trust is stored next to your settings, by digest.",
    examples=(
        "holdfast trust",
        "holdfast trust ~/src/greeter --yes",
        "holdfast trust --list",
        "holdfast trust --revoke ~/src/greeter",
    ),
    arguments=(Argument(dest="path", metavar="[PATH]", required=False, completes="folder"),),
    options=(
        Option(flags=("-y", "--yes"), dest="yes", kind="flag", help="Do not ask."),
        Option(flags=("--list",), dest="list", kind="flag", help="List the projects that you trust."),
        Option(flags=("--revoke",), dest="revoke", kind="flag", help="Revoke trust."),
        JSON,
    ),
)


def run(values: dict[str, Any]) -> int:
    """Trust, list or revoke."""
    action = option_values.only_one(values, "list", "revoke")
    if action == "list":
        if values["path"]:
            raise UsageError("--list takes no path", hint="'holdfast trust PATH' shows one project")
        return _list(as_json=values["json"])
    project = paths.project(values["path"])
    return _revoke(project, as_json=values["json"]) if action else _trust(project, values)


def _list(*, as_json: bool) -> int:
    records = trust.everything()
    if as_json:
        rows = [{name: record.get(name) for name in ("project", "at", "by", "parts")} for record in records]
        out.data({"schema": "holdfast.trusted/1", "projects": rows})
    elif records:
        rows = [(record["project"], str(record.get("at")), ", ".join(record["parts"])) for record in records]
        wrapped_table.show(("PROJECT", "SINCE", "FILES"), rows)
    else:
        out.talk("you trust no project")
    return 0


def _revoke(project: str, *, as_json: bool) -> int:
    if not trust.forget(project):
        raise NotFound(f"{project} was not trusted", hint="'holdfast trust --list' lists what is")
    _account("project.revoked", project)
    if as_json:
        out.data(
            {"schema": "holdfast.trust-result/1", "project": os.path.realpath(project), "trusted": False}
        )
    else:
        out.talk(f"{project} is no longer trusted; tasks that exist keep what they have")
    return 0


def _trust(project: str, values: dict[str, Any]) -> int:
    if not os.path.isdir(project) and not item_trust.is_file_of_items(project):
        raise NoSuchDirectory(f"there is no directory {project}")
    # Read once: what is shown is what is recorded.
    parts = [part for part in parts_of(project) if part.needs]
    known = trust.read(project)
    news = _differences(parts, known)
    if not news:
        return _result(project, parts, values, said="nothing to trust" if not parts else "already trusted")
    if not values["json"]:
        _show(project, parts, changes=news if known else None)
    if not values["yes"] and not _is_confirmed():
        raise NotPossible(f"{project} was not trusted", hint="nothing has changed")
    trust.accept(project, parts, by=audit.whoami())
    _account("project.trusted", project)
    return _result(project, parts, values, said="trusted" if parts else "trusted as it is now")


def parts_of(project: str) -> list[Part]:
    """Everything that a project asks for. Raises UsageError for files that cannot be read."""
    if not os.path.isdir(project):
        return item_trust.parts_of(project)
    parts: list[Part] = []

    def collect(part: Part) -> bool:
        parts.append(part)
        return True

    settings.load(project, collect)
    load_catalog.load(project, collect)
    parts += template.parts(project)
    parts += packet_template.parts(project)
    if os.path.lexists(os.path.join(project, written_packet.NAME)):
        parts.append(written_packet.part_of(written_packet.read(project)))
    return parts + item_trust.parts_of(project)


def _differences(parts: list[Part], known: dict[str, dict[str, Any]]) -> list[str]:
    """Lines that are new (+) or gone (-) since the project was trusted; empty if nothing changed."""
    lines: list[str] = []
    now = {part.name: trust.lines_of(part) for part in parts}
    for name in dict.fromkeys((*known, *now)):
        old, new = known.get(name, {"lines": []})["lines"], now.get(name, [])
        lines += [f"- {name}: {line}" for line in old if line not in new]
        lines += [f"+ {name}: {line}" for line in new if line not in old]
        if (
            old == new
            and next(trust.digest_of(part) for part in parts if part.name == name) != known[name]["digest"]
        ):
            lines.append(f"  {name}: the content of a file it names, or its order")
    return lines


def _show(project: str, parts: list[Part], *, changes: list[str] | None) -> None:
    out.say(visible(f"{project} asks for:"))
    for kind in CLASSES:
        lines = [
            f"{part.name}: {need.name} = {need.text}"
            for part in parts
            for need in part.needs
            if need.kind == kind
        ]
        if lines:
            print(f"  {kind}")
        for line in lines:
            out.say(visible(line), first="    ", rest="      ")
    if changes is not None:
        print("changed since you trusted it:")
        for line in changes:
            out.say(visible(line), first="  ", rest="    ")
    sys.stdout.flush()


def _is_confirmed() -> bool:
    if not sys.stdin.isatty():
        raise UsageError("stdin is not a terminal, so holdfast cannot ask", hint="read it, then use --yes")
    return prompt.is_confirmed("Trust this?")


def _result(project: str, parts: list[Part], values: dict[str, Any], *, said: str) -> int:
    if values["json"]:
        digests = {part.name: trust.digest_of(part) for part in parts}
        out.data(
            {
                "schema": "holdfast.trust-result/1",
                "project": os.path.realpath(project),
                "trusted": True,
                "parts": digests,
            }
        )
    else:
        out.talk(f"{project}: {said}")
    return 0


def _account(operation: str, project: str) -> None:
    entry = {"operation": operation, "by": audit.whoami(), "project_dir": os.path.realpath(project)}
    audit.append(Home(paths.home()), entry)
