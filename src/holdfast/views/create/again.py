"""Run an ended task again, with the current environment: the old one was deleted when the task ended."""

from __future__ import annotations

import os
from shlex import quote

from holdfast.agents import registry
from holdfast.errors import NotPossible
from holdfast.packet import environment, load, sealed
from holdfast.store import foreign
from holdfast.store.digest import sha256
from holdfast.store.layout import Packet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.model.spec import TaskSpec
    from holdfast.views.create.new_task import Talk


def args_of(packet: Packet, values: dict[str, Any]) -> dict[str, Any]:
    """The arguments of the request `retry`: what the options change, and the environment of this process.

    Raises UsageError for a bad value, NotPossible for an environment file that was not trusted.
    """
    spec = sealed.fold_admitted(packet).spec
    args: dict[str, Any] = {
        name: values[name]
        for name in ("message", "from", "deadline", "permissions")
        if values.get(name) is not None
    }
    if values.get("reset"):
        args["reset"] = True
    if values.get("set"):
        from holdfast.pipeline.define import amend

        amend.read(spec, values["set"])  # reject a bad value before anything is sent
        args["set"] = values["set"]
    able = registry.adapter(spec.agent).capabilities
    args["env"] = environment.capture(dict(os.environ), (*able.env, *spec.env))
    if values.get("env_file") is not None:
        foreign.refuse_way_out(values["env_file"], spec.project_dir)
        args["env"]["env"].update(environment.read_file(os.path.abspath(values["env_file"])))
    elif spec.env_file is not None:
        args["env"]["env"].update(_from_file(spec, spec.env_file))
    return args


def list_again(packet: Packet, *, talk: Talk) -> None:
    """List it among the tasks that have not ended, and queue a task of the queue again. If this process is
    killed before, the keeper finds it among the ended ones."""
    from holdfast.store import index

    index.update(packet.home, load.read_manifest(packet))
    if load.fold(packet).spec.queue is not None and not os.path.exists(packet.home.down):
        from holdfast.views.create import enqueue

        enqueue.wake_keeper(packet.home, talk=talk)


def _from_file(spec: TaskSpec, path: str) -> dict[str, str]:
    """The variables of an environment file. One inside a project must be as it was: an agent may
    have changed it, and its variables reach programs outside the agent's sandbox."""
    trusted = spec.trust.get("env_file")
    if trusted is None:
        variables = environment.read_file(path)
        is_as_it_was = spec.env_file_sha256 == environment.digest_of(variables)
        if not is_as_it_was and foreign.is_foreign(path, spec.project_dir):
            raise NotPossible(
                f"{path} was changed after the task was created, and its agent can write there",
                hint=f"check it, then: holdfast retry {spec.task_id} --env-file {quote(path)}",
            )
        return variables
    from holdfast.config import project

    data = project.named_file(path)
    if data is None or sha256(data) != trusted:
        raise NotPossible(
            f"{path} is not the environment file that you trusted for this task",
            hint="restore it, or trust the project and create the task again",
        )
    return environment.read_file(path, data)
