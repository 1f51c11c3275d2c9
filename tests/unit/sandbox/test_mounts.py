"""The table of mounts: the more specific path wins, and for the same path the stricter mount."""

from __future__ import annotations

import pytest

from holdfast.sandbox.mounts import (
    HIDE_FILE,
    HIDE_FOLDER,
    PRIVATE,
    READ,
    REPLACE,
    WRITE,
    Mount,
    Sandbox,
    command_line,
    ordered,
)


def line(*mounts: Mount, **fields: object) -> list[str]:
    values = {"bwrap": "/usr/bin/bwrap", "python": "/usr/bin/python3", "cwd": "/w", **fields}
    return command_line(Sandbox(mounts=mounts, **values), ["agent", "--flag"])  # pyright: ignore


def test_parents_come_before_what_is_in_them() -> None:
    paths = ["/home/me/.ssh", "/home/me", "/tmp", "/home/me/work/.git", "/home/me/work"]
    mounts = tuple(Mount(kind=WRITE, path=path) for path in paths)
    found = [mount.path for mount in ordered(mounts)]
    assert found == ["/tmp", "/home/me", "/home/me/.ssh", "/home/me/work", "/home/me/work/.git"]


@pytest.mark.parametrize(
    ("kinds", "kept"),
    [
        ((WRITE, READ), READ),
        ((READ, WRITE), READ),
        ((HIDE_FOLDER, READ), HIDE_FOLDER),
        ((PRIVATE, WRITE), WRITE),
        ((REPLACE, HIDE_FOLDER), REPLACE),
        ((HIDE_FILE, WRITE), HIDE_FILE),
    ],
)
def test_of_one_path_the_stricter_mount_holds(kinds: tuple[str, ...], kept: str) -> None:
    assert [mount.kind for mount in ordered(tuple(Mount(kind=kind, path="/x") for kind in kinds))] == [kept]


def test_hidden_folders_become_read_only_after_all_mounts() -> None:
    words = line(Mount(kind=HIDE_FOLDER, path="/a"), Mount(kind=WRITE, path="/a/b"))
    assert words.index("--tmpfs") < words.index("--bind") < words.index("--remount-ro")


def test_the_command_comes_last_and_keeps_its_flags() -> None:
    words = line()
    assert words[-3:] == ["--", "agent", "--flag"]
    assert words[:3] == ["/usr/bin/python3", "-I", "-S"]


def test_network_and_namespaces() -> None:
    assert "--unshare-net" not in line()
    assert "--unshare-net" in line(network=False)
    assert "--disable-userns" in line()
    assert "--disable-userns" not in line(has_userns=True)


def test_variables_that_lead_out_are_removed() -> None:
    words = line(drop_env=("SSH_AUTH_SOCK",))
    assert words[words.index("--unsetenv") + 1] == "SSH_AUTH_SOCK"
