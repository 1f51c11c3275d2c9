"""Push the work of a task, and open or update its pull request. All of it can be repeated."""

from __future__ import annotations

from holdfast.failpoints import failpoint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.forge.gh import Forge


def open_or_update(
    forge: Forge, branch: str, *, base: str | None, title: str, body: str, draft: bool
) -> tuple[str, bool]:
    """The address of the pull request of a branch, and whether it is new. It is found again by its branch."""
    url = forge.find(branch)
    if url is None:
        created = forge.create(branch, base=base, title=title, body=body, draft=draft)
        failpoint("pr.opened")
        return created, True
    forge.update(url, base=base, title=title, body=body)
    return url, False
