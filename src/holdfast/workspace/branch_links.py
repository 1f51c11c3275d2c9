"""Links on the way to a branch, in a git directory in which an agent can write: git would follow them."""

from __future__ import annotations

import os

from holdfast.store.no_links import plain_path


def refuse_branch_links(common_dir: str, branch: str) -> None:
    """Before git writes or deletes a branch: raises StorageError if its files are reached through a link."""
    places = (os.path.join(common_dir, place, "heads", branch) for place in ("refs", "logs/refs"))
    plain_path(common_dir, *places)
