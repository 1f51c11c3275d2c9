"""Trust in work items: a file or folder inside a project may be another's, or an agent's."""

from __future__ import annotations

import os
from shlex import quote

from holdfast import paths
from holdfast.errors import HoldfastError, UsageError
from holdfast.queue import item_needs
from holdfast.store.digest import sha256
from holdfast.store.foreign import is_foreign
from holdfast.store.trust import TrustCheck

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.config.needs import Part
    from holdfast.queue.work_item import WorkItem
    from holdfast.store.layout import Packet
    from holdfast.views.create.new_task import NewTask

_FILES = (".json", ".jsonl")


def judge_of(source: str, project: str, *, by_flag: bool) -> TrustCheck | None:
    """Who decides about the items of a source; None if the user or a program of the user wrote them."""
    from holdfast.queue import sources  # `queue ls` needs none of it

    # Whether it exists means nothing: an agent may have moved it after it was read. The current directory
    # counts also if the user names another project.
    if not sources.is_path(source) or not is_foreign(source, project, paths.project(None)):
        return None
    return TrustCheck(os.path.abspath(source), by_flag=by_flag)


def check(work: WorkItem, judge: TrustCheck | None, contents: dict[str, bytes | None]) -> dict[str, object]:
    """What was granted, for the task's spec. An item without its command would be another one, so an item
    that is not trusted is refused. Raises UsageError.

    `contents` gets the files that it names: real path → the content that is trusted."""
    part = item_needs.part_of(work, contents)
    if judge is None or not part.needs:
        return {}
    if not judge(part):
        names = ", ".join(need.name for need in part.needs)
        why = "changed since you trusted it; it has" if judge.was_trusted else "was not trusted yet:"
        # In the message: an import shows no hints of single items.
        command = f"'holdfast trust {quote(judge.project)}'"
        raise UsageError(
            f"it {why} {names}; {command} shows and allows it",
            hint="for scripts: --trust-project",
        )
    unread = [path for path, data in contents.items() if data is None]
    if unread:
        hint = "check its mode and its size, at most 1 MiB"
        raise UsageError(f"cannot read {unread[0]}, which the item names", hint=hint)
    record = judge.record()
    return {"items": {**record, "parts": {part.name: judge.granted[part.name]}}}


def frozen(task: NewTask, target: Packet, contents: dict[str, bytes | None]) -> NewTask:
    """The task with copies of the trusted files: an agent could change them before the start."""
    files = dict(task.files)

    def copied(value: object) -> object:
        if not isinstance(value, str) or (data := contents.get(value)) is None:
            return value
        name = f"{sha256(data)[:16]}-{os.path.basename(value)}"
        files[os.path.join(os.path.basename(target.inputs), "frozen", name)] = data
        return os.path.join(target.inputs, "frozen", name)

    spec = task.spec
    options = {key: copied(value) for key, value in spec.options.items()}
    spec = spec.evolve(options=options, bootstrap=copied(spec.bootstrap))
    return task.evolve(spec=spec, files=files)


def parts_of(path: str) -> list[Part]:
    """What the items in a file or folder ask for; none if there are no items."""
    from holdfast.queue.sources import folder, lines, run  # `queue ls` needs none of it

    try:
        if os.path.isdir(path):
            works = folder.read(path, wrong=[])
        else:
            works = lines.parse(run.contents(path), source=path, wrong=[])
    except HoldfastError:
        return []
    return [part for part in map(item_needs.part_of, works) if part.needs]


def is_file_of_items(path: str) -> bool:
    """Whether a path names a file that may have work items."""
    return path.endswith(_FILES) and os.path.isfile(path)
