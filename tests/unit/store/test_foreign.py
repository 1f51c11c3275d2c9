"""Which tree a directory belongs to, and so which files others may have written."""

from __future__ import annotations

import os

import pytest

from holdfast.errors import NotPossible
from holdfast.store import foreign, projects
from holdfast.store.layout import Home


@pytest.fixture
def user(home: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The user's home directory, and the current one."""
    monkeypatch.chdir(os.environ["HOME"])
    return os.environ["HOME"]


def make(*parts: str) -> str:
    path = os.path.join(*parts)
    os.makedirs(path)
    return path


def test_the_tree_of_a_directory_ends_at_a_mark_at_the_home_and_where_users_share(user: str) -> None:
    make(user, "work", "clone", ".git")
    for inner, tree in (
        ("src/tarball/sub", "src"),
        ("work/clone/sub", "work/clone"),
        ("work/notes", "work"),
    ):
        assert foreign.tree_around(make(user, inner)) == os.path.join(user, tree)
    for alone in (user, os.path.dirname(user), "/tmp", "/"):
        assert foreign.tree_around(alone) is None


@pytest.mark.parametrize("mode", [0o1777, 0o1700, 0o777])
def test_an_archive_does_not_end_its_tree_by_the_modes_of_its_directories(
    user: str, mode: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    packet = make(user, "archive", "task")
    for each in (packet, os.path.dirname(packet)):
        os.chmod(each, mode)
    assert foreign.tree_around(packet) == os.path.dirname(packet)
    monkeypatch.chdir(os.path.dirname(packet))
    assert foreign.is_foreign("task", make(user, "good"))
    os.symlink("../.bashrc", "page.html")
    with pytest.raises(NotPossible, match="leads out of"):
        foreign.refuse_way_out("page.html")


def test_a_directory_below_tmp_is_a_tree(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also for root, who owns /tmp."""
    top = os.path.dirname(home)
    monkeypatch.setenv("HOME", "/nonexistent")
    assert foreign.tree_around("/tmp") is None
    assert foreign.tree_around(make(top, "archive", "sub")) == top


def test_a_directory_of_root_below_the_users_home_is_not_the_systems(
    user: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container may have unpacked it. (If root runs the tests, root owns it.)"""
    inner = make(user, "archive", "sub")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert foreign.tree_around(inner) == os.path.dirname(inner)


def test_what_is_in_the_tree_around_the_current_directory_is_not_the_users(
    user: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    packet, other = make(user, "src", "tarball", "task"), make(user, "src", "tarball", "other")
    # From elsewhere it is what the user names; from inside, whatever project it names.
    assert not foreign.is_foreign(packet)
    monkeypatch.chdir(make(user, "src", "tarball", "sub"))
    assert foreign.is_foreign(packet)
    assert foreign.is_foreign("../task", other)
    monkeypatch.chdir(user)
    assert foreign.is_foreign(packet, other)


def test_it_says_which_project_a_packet_is_in_and_why_that_counts_as_one(home: str, user: str) -> None:
    clone, worked, given = (make(user, "work", name) for name in ("clone", "worked", "given"))
    make(clone, ".git")
    projects.note(Home(home), worked)
    for root, why in (
        (clone, "is a project: it has .git"),
        (worked, "counts as a project: a task was started in it"),
        (given, "counts as a project: it is around the directory of this command or task"),
    ):
        assert foreign.reason(make(root, "packet"), given) == f"{root} {why}"
    assert foreign.reason(make(user, "packet")) == ""


def test_a_packet_beside_a_repository_is_the_users(user: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make(user, "work", "proj", ".git")
    packet = make(user, "work", "fix")
    monkeypatch.chdir(make(user, "work", "proj", "sub"))
    assert not foreign.is_foreign("../../fix", os.path.join(user, "work", "proj"))
    assert not foreign.is_foreign(packet)


def test_nothing_leads_out_of_the_smallest_directory_that_may_be_an_archive(
    user: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of ~/src may be one tree, or each directory in it."""
    top = make(user, "src", "tarball")
    make(top, "sub")
    for name in ("victim", "tarball/inner"):
        with open(os.path.join(user, "src", name), "w", encoding="utf-8"):
            pass
    os.symlink("../victim", os.path.join(top, "page.html"))
    os.symlink("inner", os.path.join(top, "own.html"))
    for here, way in (("src/tarball", ""), ("src/tarball/sub", "../")):
        monkeypatch.chdir(os.path.join(user, here))
        with pytest.raises(NotPossible, match=rf"leads out of {top}, .*: to {user}/src/victim"):
            foreign.refuse_way_out(f"{way}page.html")
        foreign.refuse_way_out(f"{way}own.html")
    # A link of the user's own, outside any project.
    monkeypatch.chdir(user)
    os.symlink(top, "link")
    foreign.refuse_way_out("link")


def test_a_home_directory_under_version_control_is_no_project_around_all_others(user: str) -> None:
    make(user, ".git")
    work = make(os.path.dirname(user), "disk", "app")
    os.symlink(os.path.dirname(work), os.path.join(user, "work"))
    foreign.refuse_way_out(os.path.join(user, "work", "app"))
    assert foreign.tree_around(make(user, "src", "tarball")) == os.path.join(user, "src")
