"""What a task changed, file by file."""

from __future__ import annotations

import json
import os

import jsonschema
import pytest

from contracts import schema
from holdfast.store.layout import Home
from holdfast.views.facts.diff import diff
from holdfast.workspace.snapshots.file_diffs import FileDiff, Limits
from tests.support.repos import Repo, packet_for, prepare
from tests.support.tasks import holdfast


@pytest.fixture
def repo(home: str) -> Repo:
    repo = Repo(os.path.join(os.path.dirname(home), "project"))
    lines = "".join(f"line {number}\n" for number in range(40))
    repo.write("a", lines)
    repo.write("moved", "".join(f"text {number}\n" for number in range(40)))
    repo.write("gone", "gone\n")
    repo.write("linked", "a file\n")
    repo.commit("a", "moved", "gone", "linked")
    prepare(packet_for(home, repo.path, scope_allow=(".",)))
    repo.write("a", lines.replace("line 3\n", "three\n").replace("line 30\n", "thirty\nmore\n"))
    os.rename(os.path.join(repo.path, "moved"), os.path.join(repo.path, "née ü"))
    os.unlink(os.path.join(repo.path, "gone"))
    os.unlink(os.path.join(repo.path, "linked"))
    os.symlink("a", os.path.join(repo.path, "linked"))
    repo.write("binary", b"\xff\0\xff")
    repo.write("odd", "diff --git a/x b/x\n@@ -1 +1 @@\n\nlast")
    return repo


def by_path(files: tuple[FileDiff, ...]) -> dict[str, FileDiff]:
    return {file.path: file for file in files}


def test_files_have_kinds_counts_and_hunks(home: str, repo: Repo) -> None:
    found = diff(Home(home), "it")
    files = by_path(found.files)
    assert {path: file.kind for path, file in files.items()} == {
        "a": "modified",
        "binary": "added",
        "gone": "deleted",
        "linked": "modified",
        "née ü": "renamed",
        "odd": "added",
    }
    first, second = files["a"].hunks
    assert (first.old_start, first.new_start) == (1, 1)
    assert "-line 3" in first.lines
    assert "+three" in first.lines
    assert (second.old_lines, second.new_lines) == (7, 8)
    assert (files["a"].added, files["a"].deleted) == (3, 2)
    assert (files["née ü"].old_path, files["née ü"].hunks) == ("moved", ())
    assert (files["binary"].is_binary, files["binary"].left_out, files["binary"].added) == (
        True,
        "binary",
        None,
    )
    assert [hunk.lines for hunk in files["linked"].hunks] == [
        ("-a file",),
        ("+a", "\\ No newline at end of file"),
    ]
    assert files["odd"].hunks[0].lines == (
        "+diff --git a/x b/x",
        "+@@ -1 +1 @@",
        "+",
        "+last",
        "\\ No newline at end of file",
    )
    assert (found.added, found.deleted, found.files_left_out) == (3 + 1 + 4, 2 + 1 + 1, 0)


def test_limits_say_what_was_left_out(home: str, repo: Repo) -> None:
    repo.write("big", "x" * 5000 + "\n")
    few = by_path(diff(Home(home), "it", limits=Limits(files=1)).files)
    assert [path for path, file in few.items() if file.hunks] == ["a"]
    assert {file.left_out for path, file in few.items() if path not in ("a", "binary")} == {"limit"}
    small = diff(Home(home), "it", limits=Limits(file_bytes=1000, total_bytes=100))
    files = by_path(small.files)
    assert (files["big"].left_out, files["big"].added) == ("large", 1)
    assert small.files_left_out == sum(file.left_out in ("large", "limit") for file in small.files) > 0
    cut = by_path(diff(Home(home), "it", limits=Limits(line_chars=100)).files)["big"]
    assert (cut.cut_lines, len(cut.hunks[0].lines[0])) == (1, 101)


def test_json_has_the_files_and_the_patch(home: str, repo: Repo) -> None:
    data = json.loads(holdfast("diff", "it", "--json").stdout)
    jsonschema.validate(data, schema.schemas()["diff"])
    assert len(data["files"]) == len(data["changes"]) == 6
    assert "GIT binary patch" in data["patch"]
