"""Prompt templates: one per role, and the rules that all roles share.

The first one that exists is used: of the task (`inputs/templates/`), the project (`.holdfast/prompts/`), the
user (`~/.config/holdfast/prompts/`), the package. In each place `<profile>/<role>.md` goes before
`<role>.md`.
"""

from __future__ import annotations

import os

from holdfast import paths
from holdfast.errors import MissingTemplate
from holdfast.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from holdfast.model.spec import StageSpec
    from holdfast.store.layout import Packet

#: The name of the template with the rules for all roles.
RULES = "_rules"
_MAX_BYTES = 256 * 1024


class Template(Record):
    """A template and where it was found."""

    role: str
    text: str
    path: str
    #: task, project, user or package.
    place: str


def load(role: str, *, project_dir: str, profile: str = "", packet: Packet | None = None) -> Template:
    """The template of a role. Raises MissingTemplate."""
    for place, path in _candidates(role, project_dir=project_dir, profile=profile, packet=packet):
        if os.path.isfile(path):
            if place == "task" and packet is not None and not _is_inside(path, packet.path):
                raise MissingTemplate(f"the prompt template {path} is a link out of the packet")
            return Template(role=role, text=_read(path), path=path, place=place)
    raise MissingTemplate(
        f"there is no prompt template for the role {role}",
        hint=f"write {os.path.join(_project_place(project_dir), role)}.md",
    )


def rules(*, project_dir: str, profile: str = "", packet: Packet | None = None) -> Template:
    """The rules that all roles share."""
    return load(RULES, project_dir=project_dir, profile=profile, packet=packet)


def check(
    stages: Iterable[StageSpec], *, project_dir: str, profile: str = "", packet: Packet | None = None
) -> list[str]:
    """The problems of the templates that these stages need."""
    problems: list[str] = []
    for role in dict.fromkeys([RULES, *(stage.role for stage in stages)]):
        try:
            load(role, project_dir=project_dir, profile=profile, packet=packet)
        except MissingTemplate as error:
            problems.append(str(error))
    return problems


def _candidates(
    role: str, *, project_dir: str, profile: str, packet: Packet | None
) -> Iterator[tuple[str, str]]:
    places = [
        ("project", _project_place(project_dir)),
        ("user", os.path.join(paths.config_dir(), "prompts")),
        ("package", os.path.join(os.path.dirname(paths.__file__), "config", "prompts")),
    ]
    if packet is not None:
        places.insert(0, ("task", packet.templates))
    for place, folder in places:
        for name in ([profile, role], [role]) if profile else ([role],):
            # Users choose these names: a name with a path in it is ignored.
            if all(part and os.sep not in part and part not in (".", "..") for part in name):
                yield place, os.path.join(folder, *name) + ".md"


def _is_inside(path: str, folder: str) -> bool:
    return os.path.realpath(path).startswith(os.path.realpath(folder) + os.sep)


def _project_place(project_dir: str) -> str:
    return os.path.join(paths.project_config_dir(project_dir), "prompts")


def _read(path: str) -> str:
    try:
        with open(path, "rb") as file:
            data = file.read(_MAX_BYTES + 1)
        text = data.decode("utf-8")
    except OSError as error:
        raise MissingTemplate(f"cannot read the prompt template {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise MissingTemplate(f"the prompt template {path} is not UTF-8: {error}") from error
    if len(data) > _MAX_BYTES:
        raise MissingTemplate(f"the prompt template {path} has more than {_MAX_BYTES} bytes")
    if not text.strip():
        raise MissingTemplate(f"the prompt template {path} is empty", hint="fill it, or remove the file")
    return text
