"""The patch gate: work that is only in the report is lost; a suggestion beside real work fails nothing."""

from __future__ import annotations

import os

import pytest

from holdfast.gates.patch import files_of, patches
from tests.support.repos import Repo, judge, packet_for, prepare, report

GOOD = """\
--- a/src/a
+++ b/src/a
@@ -1,2 +1,2 @@
 one
-two
+three
"""
NEW = """\
diff --git a/src/new b/src/new
new file mode 100644
--- /dev/null
+++ b/src/new
@@ -0,0 +1 @@
+hello
"""
CORRUPT = """\
--- a/src/a
+++ b/src/a
@@ -1,7 +1,9 @@
 this was
-never there
+at all
"""


def fenced(patch: str, language: str = "diff") -> str:
    return f"# Done\n\nHere it is:\n\n```{language}\n{patch}```\n\nThat is all.\n"


class Stage:
    def __init__(self, home: str) -> None:
        self.repo = Repo(os.path.join(os.path.dirname(home), "project"))
        self.repo.write("src/a", "one\ntwo\n")
        self.repo.commit()
        self.packet = packet_for(home, self.repo.path, scope_allow=("src/",), scope_deny=("src/secret",))
        prepare(self.packet)

    def judge(self, text: str) -> tuple[bool, list[str]]:
        report(self.packet, text)
        _, result = judge(self.packet)
        (check,) = [check for check in result["checks"] if check["name"] == "patch"]
        return check["passed"], check["reasons"]


@pytest.fixture
def stage(home: str) -> Stage:
    return Stage(home)


@pytest.mark.req("GAT-4", "GAT-5", "W-B3")
@pytest.mark.parametrize("patch", [GOOD, NEW, GOOD + NEW, CORRUPT])
def test_a_patch_that_nobody_wrote_fails_although_its_file_exists(stage: Stage, patch: str) -> None:
    passed, (reason,) = stage.judge(fenced(patch))
    assert not passed, "it is not applied"
    assert "no file of the working tree changed" in reason
    assert stage.judge(fenced(patch) + "No changes required.\n")[0]


@pytest.mark.req("GAT-5")
@pytest.mark.parametrize("patch", [GOOD, CORRUPT])
def test_a_stage_that_wrote_the_files_passes(stage: Stage, patch: str) -> None:
    stage.repo.write("src/a", "one\nat all\n")
    assert stage.judge(fenced(patch)) == (True, [])


@pytest.mark.parametrize("path", ["src/b", "other/x", "src/secret", "../x"])
def test_a_patch_that_is_only_suggested_fails_nothing(stage: Stage, path: str) -> None:
    stage.repo.write("src/a", "one\nat all\n")
    passed, (remark,) = stage.judge(fenced(CORRUPT + NEW.replace("src/new", path)))
    assert passed
    assert remark == f"suggested in the report, but not written: {path}"


@pytest.mark.req("GAT-4")
def test_without_a_patch_the_work_must_be_in_the_tree(stage: Stage) -> None:
    passed, (reason,) = stage.judge("# Done\n\nI did everything.\n")
    assert not passed
    assert "no unified diff" in reason
    assert stage.judge("# Done\n\nNo changes required.\n")[0]
    stage.repo.write("src/a", "changed\n")
    assert stage.judge("# Done\n\nI did everything.\n")[0]


def test_a_truncated_patch_is_not_applied_in_part(stage: Stage) -> None:
    assert not stage.judge(fenced(GOOD + NEW.replace("@@ -0,0 +1 @@", "@@ -0,0 +1,9 @@")))[0]


@pytest.mark.req("GAT-4")
@pytest.mark.parametrize(("patch", "is_fine"), [(GOOD, True), (CORRUPT, False)])
def test_a_stage_that_only_proposes_is_judged_by_what_is_there(home: str, patch: str, is_fine: bool) -> None:
    repo = Repo(os.path.join(os.path.dirname(home), "project"))
    repo.write("src/a", "one\ntwo\n")
    repo.commit()
    packet = packet_for(home, repo.path, stages=(("codex_test_impl", "test_impl"),), writes=False)
    titles = ("Added or Updated Tests", "Rationale", "Unified Diff")
    text = "".join(f"## {title}\n\nwords\n\n" for title in titles) + fenced(patch).removeprefix("# Done\n")
    report(packet, text, "codex_test_impl")
    _, result = judge(packet, "codex_test_impl")
    assert (result["passed"], result["failed"]) == (is_fine, "" if is_fine else "patch")


def test_patches_are_found_in_fences_and_in_the_open() -> None:
    assert patches(fenced(GOOD)) == [GOOD]
    assert patches(fenced(GOOD, "")) == [GOOD]
    assert patches(fenced(GOOD, "patch") + fenced(NEW, "text")) == [GOOD, NEW]
    assert patches(f"It is done.\n\n{GOOD}\nThat is all.\n") == [GOOD]
    assert patches(f"Words.\n{NEW}") == [NEW]
    assert patches("- a list\n- of words\n--- a rule\n") == []
    assert patches("```sh\ngit diff --stat\n```\n") == []


def test_files_of_a_patch_are_known_even_if_it_is_broken() -> None:
    assert files_of(GOOD + NEW) == ["src/a", "src/new"]
    assert files_of("--- a/gone\t2026-01-01\n+++ /dev/null\n") == ["gone"]
    assert files_of("diff --git a/old b/new\nrename from old\nrename to new\n") == ["old", "new"]
