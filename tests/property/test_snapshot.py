"""Whatever is done to a working tree, the difference of two snapshots is the difference of its files."""

from __future__ import annotations

import os
import shutil
import tempfile

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.workspace.project_tree import locate
from holdfast.workspace.snapshots import snapshot
from holdfast.workspace.snapshots.changes import changed
from holdfast.workspace.snapshots.trees import Trees
from tests.support.repos import Repo

#: Few names, so that files, directories and links take each other's place.
_PATHS = st.sampled_from(["a", "b", "a/x", "b/x", "a/x/y", "d/é", "d/new\nline", os.fsdecode(b"d/\xff")])
_TEXTS = st.sampled_from(["", "one\n", "two\n"])
_STEPS = st.one_of(
    st.tuples(st.just("write"), _PATHS, _TEXTS),
    st.tuples(st.just("link"), _PATHS, st.sampled_from(["a", "/etc", "gone"])),
    st.tuples(st.just("remove"), _PATHS, st.just("")),
    st.tuples(st.just("commit"), st.just(""), st.just("")),
    st.tuples(st.just("stage"), st.just(""), st.just("")),
    st.tuples(st.just("snapshot"), st.just(""), st.just("")),
)


def files(root: str) -> dict[str, str]:
    """Every file and link with what it says."""
    found: dict[str, str] = {}
    for folder, directories, names in os.walk(root):
        directories[:] = [name for name in directories if name != ".git"]
        for name in [*names, *(name for name in directories if os.path.islink(os.path.join(folder, name)))]:
            path = os.path.join(folder, name)
            if os.path.islink(path):
                found[os.path.relpath(path, root)] = "-> " + os.readlink(path)
            else:
                with open(path, encoding="utf-8") as file:
                    found[os.path.relpath(path, root)] = file.read()
    return found


def clear(repo: Repo, path: str) -> str:
    """Make room for `path`: whatever is there goes, and no file or link is on the way."""
    full = os.path.join(repo.path, path)
    folder = os.path.dirname(path)
    while folder:
        above = os.path.join(repo.path, folder)
        if os.path.islink(above) or os.path.isfile(above):
            os.unlink(above)
        folder = os.path.dirname(folder)
    if os.path.isdir(full) and not os.path.islink(full):
        shutil.rmtree(full)
    elif os.path.lexists(full):
        os.unlink(full)
    return full


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=st.lists(_STEPS, max_size=6), after=st.lists(_STEPS, max_size=6))
def test_two_snapshots_differ_as_the_files_do(clean_env: dict[str, str], before: list, after: list) -> None:
    root = tempfile.mkdtemp()
    repo = Repo(os.path.join(root, "project"))
    trees = Trees(os.path.join(root, "workspace"))

    def take() -> str:
        return snapshot.take(locate(repo.path), trees, tries=1)

    def play(steps: list) -> None:
        for verb, path, text in steps:
            if verb == "write":
                clear(repo, path)
                repo.write(path, text)
            elif verb == "link":
                full = clear(repo, path)
                os.makedirs(os.path.dirname(full), exist_ok=True)
                os.symlink(text, full)
            elif verb == "remove":
                clear(repo, path)
            elif verb == "commit":
                repo.commit()
            elif verb == "stage":
                repo.git("add", "-A")
            else:
                take()

    play(before)
    old_files, old = files(repo.path), take()
    play(after)
    new_files, new = files(repo.path), take()
    different = {path for path in {*old_files, *new_files} if old_files.get(path) != new_files.get(path)}
    told = {end for change in changed(trees, old, new) for end in change.ends}
    assert told == different
    shutil.rmtree(root)
