"""A task that was read and checked, and the packet made from it."""

from __future__ import annotations

import os

from holdfast import paths
from holdfast.errors import DuplicateTask
from holdfast.model.record import Record
from holdfast.model.spec import TaskSpec
from holdfast.packet import asker, environment
from holdfast.packet import create as packet_create
from holdfast.store import foreign
from holdfast.store.digest import sha256
from holdfast.store.layout import Home, Packet
from holdfast.views import descriptors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from holdfast.model.status import Status
    from holdfast.store.trust import TrustCheck

    #: Prints what is not an error: a warning, or what is ignored.
    Talk = Callable[[str], None]


class NewTask(Record):
    """A task that is ready to be created."""

    spec: TaskSpec
    prompt: bytes | None
    #: What `environment.capture` returned, with the env file's variables added.
    env: dict[str, Any]
    #: The project's settings, by name.
    settings: dict[str, Any]
    #: Of a written packet: the directory of its inputs, and the text of its manifest.
    inputs: str | None = None
    manifest_yaml: bytes | None = None
    #: Further files of the packet: path in it → content.
    files: dict[str, bytes] = {}


def create(home: Home, task: NewTask, *, status: Status) -> Packet:
    """Write the packet, in the given state. Raises DuplicateTask, StorageError, ForPersons, NotPossible."""
    if task.spec.trust.get("by") == "--trust-project":
        asker.require_person("trust a project")
    descriptors.need_for_runner()
    parent = asker.parent_of(asker.find(), home.tasks)
    try:
        return packet_create.create(
            home,
            task.spec if parent is None else task.spec.evolve(parent=parent),
            prompt=task.prompt,
            env=task.env,
            status=status,
            inputs=task.inputs,
            manifest_yaml=task.manifest_yaml,
            files=task.files,
        )
    except DuplicateTask as error:
        if task.manifest_yaml is None:
            raise
        raise _of_packet(error) from error


def check_packet_id(home: Home, task_id: str) -> None:
    """Raises DuplicateTask if a packet has the id of a task: before anything is said about a new one."""
    try:
        packet_create.check_new(home, task_id)
    except DuplicateTask as error:
        raise _of_packet(error) from error


def _of_packet(error: DuplicateTask) -> DuplicateTask:
    # The id came from the manifest, not from the command line.
    return DuplicateTask(str(error), hint="change task_id in manifest.yaml, or give another with --id")


def project_settings(project: str) -> dict[str, Any]:
    """The settings of a project that need no trust; without settings files, the parser is not loaded."""
    if not paths.settings_files(project):
        return {}
    from holdfast.config import settings

    return settings.values(project)


def trusted_settings(project: str, *, by_flag: bool, talk: Talk) -> tuple[dict[str, Any], dict[str, object]]:
    """The settings of a project that the user trusts, and the record of that for the task's spec.

    What is ignored is reported.
    """
    if not paths.settings_files(project) and not os.path.isdir(paths.trust_dir()):
        return {}, {}
    from holdfast.store.trust import TrustCheck

    return settings_with_trust(TrustCheck(project, by_flag=by_flag), talk=talk)


def settings_with_trust(judge: TrustCheck, *, talk: Talk) -> tuple[dict[str, Any], dict[str, object]]:
    """As `trusted_settings`, with a judge that may have seen other parts of the project."""
    from holdfast.config import settings

    values = settings.values(judge.project, judge)
    for line in judge.notices():
        talk(line)
    record = judge.record()
    if record and "env_file_data" in values:
        record["env_file"] = sha256(values["env_file_data"])
    return values, record


def environment_of(
    values: dict[str, Any], settings: dict[str, Any], *, project: str
) -> tuple[str | None, dict[str, str]]:
    """The environment file of a task, of a flag or of the settings, and its variables."""
    if values.get("env_file"):
        foreign.refuse_way_out(values["env_file"], project)
        path = os.path.abspath(values["env_file"])
        return path, environment.read_file(path)
    path = settings.get("env_file")
    return path, environment.read_file(path, settings.get("env_file_data")) if path else {}
