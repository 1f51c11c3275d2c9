"""Prompt templates: one per role, and the rules that all roles share.

The first one that exists is used: of the task (`inputs/templates/`), the project (`.holdfast/prompts/`), the
user (`~/.config/holdfast/prompts/`), the package. In each place `<profile>/<role>.md` goes before
`<role>.md`. Those of a project need trust. They are copied into the task when it is created, so a runner
never reads them from the project, where an agent may have changed them.
"""

from __future__ import annotations

import os

from holdfast import paths
from holdfast.config import classes, needs
from holdfast.config import project as project_files
from holdfast.errors import MissingTemplate, UnreadableFile
from holdfast.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from holdfast.config.needs import Judge
    from holdfast.model.spec import StageSpec
    from holdfast.store.layout import Packet

#: The name of the template with the rules for all roles.
RULES = "_rules"
_FOLDER = "prompts"
_MAX_BYTES = 256 * 1024


class Template(Record):
    """A template and where it was found."""

    role: str
    text: str
    path: str
    #: task, project, user or package.
    place: str


def load(
    role: str,
    *,
    project_dir: str | None = None,
    profile: str = "",
    packet: Packet | None = None,
    judge: Judge = needs.nothing,
) -> Template:
    """The template of a role; of the project only if `judge` allows it. Raises MissingTemplate."""
    for place, folder in _places(project_dir, packet):
        for names in _names(role, profile):
            path = os.path.join(folder, *names)
            if place == "project":
                assert project_dir is not None
                data = project_files.read(project_dir, _FOLDER, *names)
                if data is not None and judge(_part(names, data)):
                    return Template(role=role, text=_text(data, path), path=path, place=place)
            elif os.path.isfile(path):
                if place == "task" and packet is not None and not _is_inside(path, packet.path):
                    raise MissingTemplate(f"the prompt template {path} is a link out of the packet")
                return Template(role=role, text=_read(path), path=path, place=place)
    folder = os.path.join(
        paths.config_dir() if project_dir is None else paths.project_config_dir(project_dir), _FOLDER
    )
    raise MissingTemplate(
        f"there is no prompt template for the role {role}", hint=f"write {os.path.join(folder, role)}.md"
    )


def rules(*, project_dir: str | None = None, profile: str = "", packet: Packet | None = None) -> Template:
    """The rules that all roles share."""
    return load(RULES, project_dir=project_dir, profile=profile, packet=packet)


def needed(
    stages: Iterable[StageSpec],
    *,
    project_dir: str | None = None,
    profile: str = "",
    packet: Packet | None = None,
    judge: Judge = needs.nothing,
) -> tuple[list[Template], list[str]]:
    """The templates that these stages need, and the problems of those that cannot be used."""
    found: list[Template] = []
    problems: list[str] = []
    for role in dict.fromkeys([RULES, *(stage.role for stage in stages)]):
        try:
            found.append(load(role, project_dir=project_dir, profile=profile, packet=packet, judge=judge))
        except (MissingTemplate, UnreadableFile) as error:
            problems.append(str(error))
    return found, problems


def parts(project_dir: str) -> list[needs.Part]:
    """What all templates of a project ask for."""
    found: list[needs.Part] = []
    for name in project_files.listing(project_dir, _FOLDER):
        inner = [] if name.endswith(".md") else project_files.listing(project_dir, _FOLDER, name)
        for names in [(name,)] if name.endswith(".md") else [(name, each) for each in inner]:
            data = project_files.read(project_dir, _FOLDER, *names) if names[-1].endswith(".md") else None
            if data is not None:
                found.append(_part(names, data))
    return found


def _part(names: tuple[str, ...], data: bytes) -> needs.Part:
    need = needs.Need(classes.PROMPTS, "prompt", f"{len(data)} bytes for agents", data)
    return needs.Part("/".join((_FOLDER, *names)), [need])


def _places(project_dir: str | None, packet: Packet | None) -> Iterator[tuple[str, str]]:
    """The folders of templates, strongest first."""
    if packet is not None:
        yield "task", packet.templates
    if project_dir is not None:
        yield "project", os.path.join(paths.project_config_dir(project_dir), _FOLDER)
    yield "user", os.path.join(paths.config_dir(), _FOLDER)
    yield "package", os.path.join(os.path.dirname(paths.__file__), "config", _FOLDER)


def _names(role: str, profile: str) -> Iterator[tuple[str, ...]]:
    for name in ((profile, role), (role,)) if profile else ((role,),):
        # Users choose these names: a name with a path in it is ignored.
        if all(part and os.sep not in part and part not in (".", "..") for part in name):
            yield (*name[:-1], f"{name[-1]}.md")


def _is_inside(path: str, folder: str) -> bool:
    return os.path.realpath(path).startswith(os.path.realpath(folder) + os.sep)


def _read(path: str) -> str:
    try:
        with open(path, "rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise MissingTemplate(f"cannot read the prompt template {path}: {error.strerror}") from error
    return _text(data, path)


def _text(data: bytes, path: str) -> str:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise MissingTemplate(f"the prompt template {path} is not UTF-8: {error}") from error
    if len(data) > _MAX_BYTES:
        raise MissingTemplate(f"the prompt template {path} has more than {_MAX_BYTES} bytes")
    if not text.strip():
        raise MissingTemplate(f"the prompt template {path} is empty", hint="fill it, or remove the file")
    return text
