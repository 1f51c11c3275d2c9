"""A commit of an agent replaces no file of the user that git ignores: no commit has it."""

from __future__ import annotations

import os

import pytest

from tests.support.repos import Repo
from tests.support.tasks import holdfast

_IGNORED = ".env\n-data/\n"


def _apply(home: str, made: str, *flags: str) -> tuple[Repo, str]:
    """A project with ignored files, and what `apply` says about a task whose agent commits others."""
    repo = Repo(os.path.join(os.path.dirname(home), "project"))
    repo.write(".gitignore", _IGNORED)
    repo.write("kept/old", "old\n")
    repo.commit(".gitignore", "kept")
    repo.write(".env", "precious\n")
    repo.write("-data/deep/x", "precious\n")
    script = f"{made}; git add -f -- .; git -c user.name=a -c user.email=a commit -q -m work"
    done = holdfast("run", "--id", "it", "--worktree", "--", "sh", "-c", script, cwd=repo.path)
    assert done.returncode == 0, done.stderr
    return repo, holdfast("apply", "it", *flags, cwd=repo.path).stderr


@pytest.mark.parametrize(
    "made",
    [
        "echo other > .env",
        "mkdir .env; echo other > .env/x",
        "echo other > ./-data",
        "ln -s /tmp ./-data",
        "mkdir ./-data; ln -s /tmp ./-data/deep",
    ],
)
@pytest.mark.parametrize("flags", [(), ("--patch",)], ids=["merge", "patch"])
def test_apply_replaces_no_ignored_file(home: str, made: str, flags: tuple[str, ...]) -> None:
    repo, said = _apply(home, f"echo new > a.txt; {made}", *flags)
    assert "would be overwritten" in said
    assert repo.read(".env") == repo.read("-data/deep/x") == "precious\n"
    assert repo.git("log", "--oneline").count("\n") == 1
    assert not os.path.lexists(os.path.join(repo.path, "a.txt"))


def test_apply_adds_files_beside_ignored_ones(home: str) -> None:
    repo, _ = _apply(home, "mkdir ./-data; echo new > ./-data/y; git rm -q -r kept; echo new > kept")
    assert repo.read("-data/y") == repo.read("kept") == "new\n"
    assert repo.read("-data/deep/x") == "precious\n"
