"""The scope gate of a stage that writes: only the working tree counts."""

from __future__ import annotations

import os

import pytest

from holdfast.gates.scope import violations
from holdfast.workspace.scope import Scope, project_path
from holdfast.workspace.snapshots.changes import Change
from holdfast.workspace.snapshots.trees import Trees
from tests.support.repos import Repo, judge, packet_for, prepare, report


class Stage:
    """A prepared `impl` stage in a repository."""

    def __init__(
        self, home: str, *, with_git: bool = True, project: str = "", ignore: str = "", **asked
    ) -> None:
        self.repo = Repo(os.path.join(os.path.dirname(home), "project"), with_git=with_git)
        self.repo.write("src/a", "".join(f"line {n}\n" for n in range(20)))
        self.repo.write("other/b", "b\n")
        self.repo.write(".gitignore", ".env\n*.tmp\n" + ignore)
        self.repo.write(".env", "KEY=1\n")
        if with_git:
            self.repo.commit()
        self.repo.write("mine", "a person's own\n")
        if "__pycache__" in ignore:
            self.repo.write("tests/__pycache__/mine.pyc", "of an earlier run\n")
        self.project = os.path.join(self.repo.path, project)
        asked = {"scope_allow": ("src/",), "scope_deny": (".env", "secrets/"), **asked}
        self.packet = packet_for(home, self.project, **asked)
        self.prepared = prepare(self.packet)
        self.work = Repo(self.prepared["path"], with_git=False)
        report(self.packet, "# Done\n\nI changed src/a, and nothing else.\n")

    def judge(self) -> tuple[int, dict]:
        return judge(self.packet)


@pytest.fixture
def stage(home: str) -> Stage:
    return Stage(home)


@pytest.mark.req("GAT-3", "GAT-5")
def test_a_change_inside_the_scope_passes(stage: Stage) -> None:
    stage.repo.write("src/a", "changed\n")
    stage.repo.write("src/new")
    code, result = stage.judge()
    assert (code, result["passed"], result["failed"]) == (0, True, "")
    assert [check["name"] for check in result["checks"]] == ["report", "patch", "scope"]
    assert (result["schema"], result["stage"], result["role"]) == ("holdfast.gate/1", "codex_impl", "impl")
    assert result["attempt"] == 2
    assert result["timestamp"].endswith("Z")


@pytest.mark.req("GAT-3", "W-B3")
def test_a_change_outside_is_caught_though_the_report_hides_it(stage: Stage) -> None:
    stage.repo.write("src/a", "changed\n")
    stage.repo.write("other/b", "changed\n")
    stage.repo.write("untracked")
    code, result = stage.judge()
    assert (code, result["failed"]) == (1, "scope")
    assert result["reasons"] == [
        "other/b was modified: it is not in scope.allow",
        "untracked was added: it is not in scope.allow",
    ]


@pytest.mark.req("GAT-3")
def test_even_a_committed_change_is_caught(stage: Stage) -> None:
    stage.repo.write("other/b", "changed\n")
    stage.repo.git("add", "other/b")
    stage.repo.git("commit", "-q", "-m", "hidden in a commit")
    assert stage.judge()[1]["reasons"] == ["other/b was modified: it is not in scope.allow"]


@pytest.mark.req("GAT-3")
def test_what_a_person_had_changed_is_not_blamed(stage: Stage) -> None:
    stage.repo.write("src/a", "changed\n")
    assert os.path.exists(os.path.join(stage.repo.path, "mine"))
    assert stage.judge()[0] == 0


@pytest.mark.req("GAT-3")
def test_a_rename_out_of_the_scope_and_one_into_it(stage: Stage) -> None:
    os.rename(os.path.join(stage.repo.path, "src/a"), os.path.join(stage.repo.path, "a"))
    assert stage.judge()[1]["reasons"] == ["src/a was renamed to a: it is not in scope.allow"]
    os.rename(os.path.join(stage.repo.path, "a"), os.path.join(stage.repo.path, "src/a"))
    os.rename(os.path.join(stage.repo.path, "other/b"), os.path.join(stage.repo.path, "src/b"))
    assert stage.judge()[1]["failed"] == "scope"


@pytest.mark.req("GAT-3")
@pytest.mark.parametrize("target", ["/etc/passwd", "../../outside", "../.env", "../secrets"])
def test_a_link_out_of_the_project_or_to_what_is_denied(stage: Stage, target: str) -> None:
    os.symlink(target, os.path.join(stage.repo.path, "src/link"))
    code, result = stage.judge()
    assert (code, result["failed"]) == (1, "scope")
    assert "src/link" in result["reasons"][0]
    assert "symbolic link" in result["reasons"][0]


def test_a_link_inside_the_scope_is_fine(stage: Stage) -> None:
    os.symlink("a", os.path.join(stage.repo.path, "src/link"))
    assert stage.judge()[0] == 0


@pytest.mark.req("GAT-3")
def test_an_ignored_file_counts_where_it_is_denied_only(stage: Stage) -> None:
    stage.repo.write("src/a", "changed\n")
    stage.repo.write("dropping.tmp")
    assert stage.judge()[0] == 0
    stage.repo.write(".env", "KEY=2\n")
    assert stage.judge()[1]["reasons"] == [".env was modified: it matches scope.deny"]


@pytest.mark.parametrize("deny", ["tests/", "tests", "tests/**"])
@pytest.mark.parametrize("workspace", ["in_place", "worktree"])
def test_a_cache_below_a_denied_directory_is_not_work(home: str, deny: str, workspace: str) -> None:
    stage = Stage(home, scope_deny=(deny,), workspace=workspace, ignore="__pycache__/\n*.log\n")
    stage.work.write("src/a", "changed\n")
    stage.work.write("tests/__pycache__/a.pyc", "one\n")
    code, result = stage.judge()
    assert (code, "tests" in str(result["reasons"])) == (0, False), result
    trees = Trees.of(stage.packet)
    names = trees.run(["ls-tree", "-r", "--name-only", result["tree"]]).decode().splitlines()
    assert "tests/__pycache__/a.pyc" not in names  # nor in a clean room
    # The next stage starts from a tree without it.
    assert prepare(stage.packet)["tree"] == result["tree"]
    stage.work.write("tests/__pycache__/a.pyc", "two\n")
    stage.work.write("src/a", "changed again\n")
    assert stage.judge()[0] == 0


def test_a_denied_file_that_was_there_or_is_named_counts_though_it_is_ignored(home: str) -> None:
    stage = Stage(home, scope_deny=("tests/", "key"), ignore="__pycache__/\nkey\n")
    stage.work.write("src/a", "changed\n")
    stage.work.write("tests/__pycache__/mine.pyc", "changed\n")
    stage.work.write("key", "planted\n")
    assert stage.judge()[1]["reasons"] == [
        "key was added: it matches scope.deny",
        "tests/__pycache__/mine.pyc was modified: it matches scope.deny",
    ]


@pytest.mark.parametrize("where", [".gitignore", "tests/.gitignore", ".git/info/exclude"])
def test_an_ignore_rule_of_the_stage_hides_nothing_below_a_denied_directory(home: str, where: str) -> None:
    stage = Stage(home, scope_allow=("src/", ".gitignore"), scope_deny=("tests/",))
    stage.work.write(where, "*\n")
    stage.work.write("tests/conftest.py", "import os\n")
    reasons = stage.judge()[1]["reasons"]
    assert "tests/conftest.py was added: it matches scope.deny" in reasons


@pytest.mark.req("GAT-3")
def test_deny_is_stronger_than_allow(home: str) -> None:
    stage = Stage(home, scope_allow=("**",))
    stage.repo.write("secrets/key")
    stage.repo.write("anything")
    assert stage.judge()[1]["reasons"] == ["secrets/key was added: it matches scope.deny"]


@pytest.mark.req("GAT-3")
def test_an_empty_scope_allows_nothing(home: str) -> None:
    stage = Stage(home, scope_allow=())
    stage.repo.write("src/a", "changed\n")
    assert stage.judge()[1]["failed"] == "scope"


@pytest.mark.req("GAT-3")
def test_a_repository_inside_is_looked_into(stage: Stage) -> None:
    inner = Repo(os.path.join(stage.repo.path, "vendor"))
    inner.commit("library")
    assert stage.judge()[1]["reasons"] == ["vendor/library was added: it is not in scope.allow"]


@pytest.mark.req("GAT-3")
def test_a_project_without_git_has_a_scope_too(home: str) -> None:
    stage = Stage(home, with_git=False)
    stage.repo.write("src/a", "changed\n")
    assert stage.judge()[0] == 0
    stage.repo.write("other/b", "changed\n")
    assert stage.judge()[1]["reasons"] == ["other/b was modified: it is not in scope.allow"]


def test_patterns_belong_to_the_project_and_what_is_beside_it_is_out(home: str) -> None:
    stage = Stage(home, project="src", scope_allow=("*",))
    stage.repo.write("src/new")
    assert stage.judge()[0] == 0
    stage.repo.write("other/b", "changed\n")
    assert stage.judge()[1]["reasons"] == ["../other/b was modified: it is outside the project"]


def test_a_repository_that_is_gone_cannot_be_judged(stage: Stage) -> None:
    os.rename(os.path.join(stage.repo.path, ".git"), os.path.join(stage.repo.path, "hidden"))
    code, result = stage.judge()
    assert code == 3
    assert "is gone" in result["stderr"]


def test_a_stage_that_was_not_prepared_cannot_be_judged(home: str) -> None:
    repo = Repo(os.path.join(os.path.dirname(home), "project"))
    packet = packet_for(home, repo.path, scope_allow=("*",))
    report(packet, "No changes required.\n")
    code, result = judge(packet)
    assert code == 3
    assert "no tree was recorded" in result["stderr"]


def test_out_of_scope_changes_in_a_worktree_are_taken_back_and_kept(home: str) -> None:
    stage = Stage(home, workspace="worktree", revert_out_of_scope=True)
    stage.work.write("src/a", "changed\n")
    stage.work.write("other/b", "changed\n")
    stage.work.write("new/deep/file", b"\0\1binary")
    os.symlink("/etc", os.path.join(stage.work.path, "link"))
    code, result = stage.judge()
    assert code == 0, result
    assert "3 changes out of scope reverted" in result["reasons"][-4]
    assert stage.work.read("other/b") == "b\n"
    assert stage.work.read("src/a") == "changed\n"
    assert sorted(os.listdir(stage.work.path)) == [".git", ".gitignore", "other", "src"]
    assert os.path.isdir("/etc")
    with open(os.path.join(stage.packet.state, "reverted.patch"), "rb") as file:
        kept = file.read()
    assert b"other/b" in kept
    assert b"GIT binary patch" in kept


def test_more_than_a_command_line_holds_is_taken_back(home: str) -> None:
    stage = Stage(home, workspace="worktree", revert_out_of_scope=True)
    stage.work.write("src/a", "changed\n")
    stage.work.write("other/b", "changed\n")
    deep = "/".join(["d" * 250] * 12)
    for number in range(800):
        stage.work.write(f"{deep}/{number}")
    code, result = stage.judge()
    assert (code, "801 changes out of scope reverted" in result["warnings"][0]) == (0, True)
    assert (stage.work.read("other/b"), stage.work.read("src/a")) == ("b\n", "changed\n")


def test_a_link_in_a_directorys_place_is_taken_back_and_nothing_behind_it(home: str) -> None:
    stage = Stage(home, workspace="worktree", revert_out_of_scope=True)
    outside = Repo(os.path.join(os.path.dirname(home), "outside"), with_git=False)
    outside.write("b", "precious\n")
    os.rename(os.path.join(stage.work.path, "other"), os.path.join(outside.path, "moved"))
    os.symlink(outside.path, os.path.join(stage.work.path, "other"))
    assert stage.judge()[0] == 0
    assert outside.read("b") == "precious\n"
    assert not os.path.islink(os.path.join(stage.work.path, "other"))
    assert stage.work.read("other/b") == "b\n"


def test_what_is_seen_through_a_link_is_not_removed(home: str) -> None:
    allow = ("/src", "/other", "!/other/**")
    stage = Stage(home, workspace="worktree", revert_out_of_scope=True, scope_allow=allow)
    stage.work.write("src/b", "precious\n")
    os.unlink(os.path.join(stage.work.path, "other/b"))
    os.rmdir(os.path.join(stage.work.path, "other"))
    os.symlink("src", os.path.join(stage.work.path, "other"))
    stage.judge()
    assert stage.work.read("src/b") == "precious\n"


def test_a_file_that_no_patch_can_contain_is_not_deleted(home: str) -> None:
    stage = Stage(home, workspace="worktree", revert_out_of_scope=True)
    stage.work.write("other/b", "changed\n")
    path = os.path.join(stage.work.path, "weights.bin")
    with open(path, "wb") as file:
        file.truncate(65 * 1024 * 1024)
    code, result = stage.judge()
    assert code == 1
    assert "nothing was reverted: weights.bin is larger than 64 MiB" in result["reasons"][0]
    assert os.path.getsize(path) == 65 * 1024 * 1024
    assert stage.work.read("other/b") == "changed\n"


def test_in_place_nothing_is_ever_taken_back(home: str) -> None:
    stage = Stage(home, revert_out_of_scope=True)
    stage.repo.write("other/b", "changed\n")
    assert stage.judge()[0] == 1
    assert stage.repo.read("other/b") == "changed\n"


@pytest.mark.parametrize(
    ("allow", "path", "is_allowed"),
    [
        (("src",), "src/deep/x", True),
        (("./src",), "src/x", True),
        (("./src",), "lib/src/x", False),
        (("src/*.py",), "src/x.py", True),
        (("src/*.py",), "src/deep/x.py", False),
        (("src/**/*.py",), "src/deep/x.py", True),
        ((".",), "anything/at/all", True),
        (("*", "!docs/**"), "docs/x", False),
        (("src/",), "src", False),
        (("a b",), "a b", True),
        (("src/",), os.fsdecode(b"src/\xff"), True),
    ],
)
def test_patterns_are_those_of_gitignore(allow: tuple[str, ...], path: str, is_allowed: bool) -> None:
    assert (Scope(allow, ()).objection(path) is None) == is_allowed


def test_many_violations_are_counted_not_listed() -> None:
    changes = [Change(path=f"x{number}", kind="added") for number in range(30)]
    assert len(violations(changes, Scope((), ()), top="/t", prefix="")) == 30


def test_paths_as_the_project_sees_them() -> None:
    assert project_path("", "a/b") == "a/b"
    assert project_path("src/", "src/a") == "a"
    assert project_path("src/deep/", "src/a") == "../a"
    assert project_path("src/", "srcs") == "../srcs"


# ── hooks, settings and hidden files ──


@pytest.mark.req("GAT-3")
@pytest.mark.parametrize(
    ("command", "named"),
    [
        (("config", "core.fsmonitor", "/tmp/x"), ".git/config (core.fsmonitor) was added"),
        (("config", "remote.origin.uploadpack", "x"), ".git/config (remote.origin.uploadpack) was added"),
        (("config", "--unset", "alias.st"), ".git/config (alias.st) was deleted"),
    ],
)
def test_a_setting_of_git_is_in_no_scope(home: str, command: tuple[str, ...], named: str) -> None:
    repo = Repo(os.path.join(os.path.dirname(home), "project"))
    repo.git("config", "alias.st", "status")
    stage = Stage(home, scope_allow=(".",), workspace="worktree")
    stage.work.write("src/a", "changed\n")
    stage.repo.git(*command)
    code, result = stage.judge()
    assert (code, result["failed"]) == (1, "scope")
    assert named in result["reasons"][0]


@pytest.mark.parametrize("revert", [False, True])
def test_what_a_neighbour_writes_into_the_settings_that_all_share_is_a_warning(
    home: str, revert: bool
) -> None:
    stage = Stage(home, workspace="worktree", revert_out_of_scope=revert)
    stage.work.write("src/a", "changed\n")
    if revert:
        stage.work.write("other/b", "changed\n")
    stage.repo.git("remote", "add", "fork", "https://example.org/fork")
    stage.repo.git("config", "user.name", "A Person")
    code, result = stage.judge()
    assert (code, result["failed"]) == (0, "")
    assert [warning.partition(" was ")[0] for warning in result["warnings"][-3:]] == [
        ".git/config (remote.fork.fetch)",
        ".git/config (remote.fork.url)",
        ".git/config (user.name)",
    ]


def test_in_place_a_person_may_have_changed_what_is_gits_own(stage: Stage) -> None:
    stage.repo.write("src/a", "changed\n")
    stage.repo.git("remote", "add", "fork", "https://example.org/fork")
    stage.repo.write(".git/hooks/post-commit", "#!/bin/sh\n")
    code, result = stage.judge()
    assert (code, result["failed"]) == (0, "")
    assert [warning.partition(" was ")[0] for warning in result["warnings"]] == [
        ".git/config (remote.fork.fetch)",
        ".git/config (remote.fork.url)",
        ".git/hooks/post-commit",
    ]
    stage.repo.write("other/b", "changed\n")
    code, result = stage.judge()
    assert (code, result["failed"], len(result["reasons"])) == (1, "scope", 4)
    assert result["reasons"][0].startswith("other/b was modified")


@pytest.mark.req("GAT-3")
def test_a_hook_is_in_no_scope_and_a_worktree_does_not_take_it_back(home: str) -> None:
    stage = Stage(home, scope_allow=(".",), workspace="worktree", revert_out_of_scope=True)
    stage.work.write("src/a", "changed\n")
    stage.repo.write(".git/hooks/post-commit", "#!/bin/sh\n")
    code, result = stage.judge()
    assert (code, result["failed"]) == (1, "scope")
    assert (
        ".git/hooks/post-commit was added: hooks and settings of the repository are never in scope"
        in result["reasons"][0]
    )


def test_what_everyday_commands_of_git_write_is_no_violation(stage: Stage) -> None:
    stage.repo.write("src/a", "changed\n")
    stage.repo.git("config", "branch.main.remote", "origin")
    stage.repo.git("config", "submodule.vend.url", "https://example.org/vend")
    assert stage.judge()[0] == 0


def test_a_link_into_gits_own_directory_is_refused(home: str) -> None:
    stage = Stage(home, scope_allow=(".",))
    os.symlink("../.git/config", os.path.join(stage.repo.path, "src/link"))
    code, result = stage.judge()
    assert (code, "inside .git" in result["reasons"][0]) == (1, True)


@pytest.mark.req("GAT-3")
def test_a_rule_of_ignoring_does_not_hide_what_came_with_it(home: str) -> None:
    stage = Stage(home, scope_allow=("src/", ".gitignore"))
    stage.repo.write("x.tmp", "ignored before\n")
    stage.repo.write(".gitignore", ".env\n*.tmp\nevil.txt\ngen/\n")
    stage.repo.write("evil.txt")
    stage.repo.write("src/gen/new")
    code, result = stage.judge()
    assert (code, result["failed"]) == (1, "scope")
    assert result["reasons"] == [
        "evil.txt was added: it is not in scope.allow, and a new ignore rule hides it",
    ]


def test_a_cache_that_ignores_itself_is_not_work(home: str) -> None:
    stage = Stage(home, scope_allow=("src/", ".gitignore"))
    stage.repo.write(".gitignore", ".env\n*.tmp\nsrc/gen/\n")
    stage.repo.write(".cache/.gitignore", "*\n")
    stage.repo.write(".cache/x")
    assert stage.judge()[0] == 0


def test_links_that_led_out_before_are_named(home: str) -> None:
    repo = Repo(os.path.join(os.path.dirname(home), "project"))
    os.symlink(os.path.dirname(home), os.path.join(repo.path, "way-out"))
    stage = Stage(home)
    stage.repo.write("src/a", "changed\n")
    code, result = stage.judge()
    assert (code, result["warnings"]) == (0, [])
    assert any("not checked: way-out → " in reason for reason in result["reasons"])
