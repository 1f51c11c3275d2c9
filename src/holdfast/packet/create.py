"""Create a packet: written to `tasks/.new-*` and renamed, so that no reader sees an incomplete one."""

from __future__ import annotations

import errno
import fcntl
import json
import os

from holdfast import clock, ids
from holdfast.errors import DuplicateTask, HoldfastError
from holdfast.failpoints import failpoint
from holdfast.model import events as ev
from holdfast.model import manifest, permissions
from holdfast.model.fold import apply
from holdfast.model.spec import TaskSpec
from holdfast.model.status import Status
from holdfast.model.task import Task
from holdfast.store import admitted, atomic, audit, no_links, process, projects, seals
from holdfast.store.digest import sha256
from holdfast.store.directories import remove_tree
from holdfast.store.journal import encode_line
from holdfast.store.layout import NEW_PREFIX, PACKET_DIRECTORIES, Home, Packet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: How long to wait for another command that creates a packet: each needs some milliseconds.
_TURN_S = 1.0


def create(
    home: Home,
    spec: TaskSpec,
    *,
    prompt: bytes | None,
    env: dict[str, Any],
    status: Status,
    inputs: str | None = None,
    manifest_yaml: bytes | None = None,
    files: dict[str, bytes] | None = None,
    by: str | None = None,
) -> Packet:
    """Create a packet, durably, in the given state.

    Raises DuplicateTask, StorageError or ProcMissing; then nothing is left behind.

    For a written packet, `inputs` is the directory to copy (UsageError for files that cannot be copied), and
    `manifest_yaml` its text. `files` are further files: path in the packet → content.
    `by` is who creates it, for the audit; by default, the user.
    """
    ids.check_task_id(spec.task_id)
    process.require_proc()
    target = home.packet(spec.task_id)
    no_links.refuse_link(home.tasks)
    check_new(home, spec.task_id)
    staged = Packet(os.path.join(home.tasks, f"{NEW_PREFIX}{ids.new_ulid()}"))
    try:
        line = _fill(
            staged,
            target,
            spec,
            prompt=prompt,
            env=env,
            status=status,
            yaml=_yaml(spec.to_json()) if manifest_yaml is None else manifest_yaml,
        )
        if inputs is not None:
            _copy_inputs(inputs, staged)
        for name, data in (files or {}).items():
            path = os.path.join(staged.path, name)
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            _put(path, data)
            atomic.sync_directory(os.path.dirname(path))
        failpoint("create.staged")
        turn = _take_turn(home)
        try:
            check_new(home, spec.task_id)
            remove_tree(target.index_notes)
            # First: the keeper and agents may look at the packet as soon as it is there.
            projects.note(home, spec.project_dir)
            admitted.admit(target, line)
            seals.begin(target.seals, line)
            failpoint("create.sealed")
            os.rename(staged.path, target.path)
        finally:
            os.close(turn)
        failpoint("create.renamed")
        atomic.sync_directory(home.tasks)
    except OSError as error:
        remove_tree(staged.path)
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            raise DuplicateTask(f"task {spec.task_id} already exists") from error
        atomic.storage_failed(error, f"cannot create the task {spec.task_id} in {home.path}")
    except HoldfastError:
        remove_tree(staged.path)
        raise
    _audit_creation(home, spec, status, by or audit.whoami())
    return target


def check_new(home: Home, task_id: str) -> None:
    """Raises DuplicateTask. An archived task keeps its id: commands that read tasks would find only one."""
    if os.path.lexists(home.packet(task_id).path):
        raise DuplicateTask(f"task {task_id} already exists")
    if no_links.is_directory(home.archive) and os.path.lexists(home.archived(task_id).path):
        raise DuplicateTask(
            f"task {task_id} already exists, in the archive",
            hint=f"choose another id; 'holdfast rm {task_id}' removes the archived task",
        )


def _take_turn(home: Home) -> int:
    """A descriptor to close: until then, no other command creates a packet, so that of two that create the
    same id, the second finds the packet of the first, and leaves its seals alone.

    It gives up after a moment: an agent can hold this lock, and the rename decides in any case.
    """
    folder = os.open(home.tasks, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    ends_mono = clock.mono() + _TURN_S
    while not _is_turn(folder) and clock.mono() < ends_mono:
        clock.sleep(0.01)
    return folder


def _is_turn(folder: int) -> bool:
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # directories cannot be locked here
    return True


def _audit_creation(home: Home, spec: TaskSpec, status: Status, by: str) -> None:
    """Add a line to the audit, with a warning if permission prompts are bypassed."""
    entry: dict[str, Any] = {"operation": "task.created", "task_id": spec.task_id, "by": by}
    entry |= {"new": status, "agent": spec.agent, "project_dir": spec.project_dir}
    if permissions.is_full(spec):
        entry |= {"level": "warn", "reason": "permission prompts bypassed (--permissions full)"}
    if spec.trust:
        entry["trust"] = spec.trust
    if spec.trust.get("by") == "--trust-project":
        reason = "the project was trusted for this task (--trust-project)"
        entry |= {"level": "warn", "reason": "; ".join(filter(None, (entry.get("reason"), reason)))}
    audit.append(home, entry)


def _fill(
    staged: Packet,
    target: Packet,
    spec: TaskSpec,
    *,
    prompt: bytes | None,
    env: dict[str, Any],
    status: Status,
    yaml: bytes,
) -> bytes:
    """Write the files of a new packet. Returns the first line of its journal."""
    os.mkdir(staged.path, 0o700)
    for name in PACKET_DIRECTORIES:
        os.mkdir(os.path.join(staged.path, name), 0o700)
    os.mkfifo(staged.bell, 0o600)
    at = clock.iso_now()
    captured = json.dumps(env).encode() + b"\n"
    created = ev.TaskCreated(
        task_id=spec.task_id,
        status=status,
        spec=spec.to_json(),
        manifest_sha256=sha256(yaml),
        env_sha256=sha256(captured),
        request_sha256="" if prompt is None else sha256(prompt),
    )
    task = Task()
    apply(task, created, at)
    _put(staged.manifest_yaml, yaml)
    _put(staged.env, captured)
    if prompt is not None:
        _put(staged.user_request, prompt)
        atomic.sync_directory(staged.inputs)
    line = encode_line(created, at)
    _put(staged.journal, line)
    atomic.sync_directory(staged.path)
    observed = manifest.Observed()
    observed.journal_bytes = len(line)
    atomic.write_json(staged.manifest, manifest.render(task, target.path, observed), durable=False)
    return line


def _copy_inputs(source: str, staged: Packet) -> None:
    # Imported only for written packets.
    from holdfast.packet import inputs

    # If there is a request already, it came from the prompt.
    name = os.path.basename(staged.user_request)
    inputs.copy(source, staged.inputs, except_for=(name,) if os.path.exists(staged.user_request) else ())


def _put(path: str, data: bytes) -> None:
    """Write a file durably. No rename is needed: no reader knows the directory yet."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        atomic.write_all(descriptor, data)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _yaml(data: dict[str, Any]) -> bytes:
    """YAML with one key per line. JSON values are valid YAML, so no YAML library is needed."""
    head = "# What was requested. Never changed after the start: its sha256 is in the journal.\n"
    lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}\n" for key, value in data.items()]
    return (head + "".join(lines)).encode("utf-8", "backslashreplace")
