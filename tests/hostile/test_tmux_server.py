"""A tmux server at the socket of the home that an agent has started: `attach` does not use it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable

import pytest

from tests.support.tasks import Task, holdfast
from tests.support.terminal import Terminal
from tests.support.waiting import eventually

#: Whoever attaches is detached, and runs a command in place of the client.
AGENT = """
tmux() {{ env -i PATH="$PATH" tmux -S {home}/tmux.sock -f /dev/null "$@"; }}
tmux new-session -d -s holdfast-it sleep 300
tmux set-hook -g client-attached 'detach-client -E "echo $PPID > {ran}"'
touch {ready}
exec sleep 300
"""


def test_attach_uses_no_server_of_an_agent(home: str) -> None:
    root = os.path.dirname(home)
    ran, ready = os.path.join(root, "ran"), os.path.join(root, "ready")
    script = AGENT.format(home=home, ran=ran, ready=ready)
    task = Task.start("--id", "it", "--", "/bin/sh", "-c", script)
    eventually(lambda: os.path.exists(ready), within_s=20)

    terminal = Terminal("attach", "it")
    status = terminal.finish()

    assert "it runs in the agent of it" in terminal.text
    assert "attach --no-tmux" in terminal.text
    assert status == 3
    assert not os.path.exists(ran)
    assert holdfast("stop", task.id, "--now").returncode == 0
    assert holdfast("rm", task.id).returncode == 0
    assert holdfast("down").returncode == 0
    assert not os.path.lexists(os.path.join(home, "tmux.sock"))


def test_a_server_that_is_ours_is_used_again(home: str) -> None:
    """Its own check does not disturb it."""
    task = Task.start("--id", "it", "--", "/bin/sleep", "300")
    for _ in range(2):
        terminal = Terminal("attach", "it")
        terminal.read_until("sleep", within_s=20)
        assert terminal.detach() == 0
    assert holdfast("stop", task.id, "--now").returncode == 0
    assert holdfast("down").returncode == 0


@pytest.mark.parametrize("make", [os.symlink, os.link])
def test_a_link_to_the_socket_of_a_user_ends_no_server(home: str, make: Callable[[str, str], None]) -> None:
    socket = os.path.join(os.path.dirname(home), "mine.sock")
    tmux = ["tmux", "-S", socket, "-f", os.devnull]
    subprocess.run([*tmux, "new-session", "-d", "-s", "mine", "sleep", "300"], check=True)
    try:
        task = Task.start("--id", "it", "--", "true")
        task.wait_for("completed")
        make(socket, os.path.join(home, "tmux.sock"))
        assert holdfast("rm", task.id).returncode == 0
        assert holdfast("down", "--now").returncode == 0
        assert subprocess.run([*tmux, "has-session", "-t", "mine"], check=False).returncode == 0
    finally:
        subprocess.run([*tmux, "kill-server"], check=False)
