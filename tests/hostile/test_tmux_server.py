"""A tmux server at the socket of the home that an agent has started: `attach` does not use it."""

from __future__ import annotations

import os
import shutil

from holdfast.store.layout import Home
from tests.support.tasks import Task, holdfast
from tests.support.terminal import Terminal
from tests.support.waiting import eventually

#: Whoever attaches is detached, and runs a command in place of the client.
AGENT = """
tmux() {{ env -i PATH="$PATH" tmux -S {socket} -f /dev/null "$@"; }}
tmux new-session -d -s holdfast-it sleep 300
tmux set-hook -g client-attached 'detach-client -E "echo $PPID > {ran}"'
touch {ready}
exec sleep 300
"""


def test_attach_uses_no_server_of_an_agent(home: str) -> None:
    root = os.path.dirname(home)
    ran, ready = os.path.join(root, "ran"), os.path.join(root, "ready")
    script = AGENT.format(socket=Home(home).tmux_socket, ran=ran, ready=ready)
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
    assert not os.path.lexists(Home(home).tmux_socket)


def test_an_agent_cannot_replace_the_socket_while_a_client_starts(home: str) -> None:
    """It would rename its own in the moment after the check of the server; here, the client does."""
    root = os.path.dirname(home)
    ran, ready, programs = (os.path.join(root, name) for name in ("ran", "ready", "programs"))
    os.mkdir(programs)
    real, evil, wrapper = shutil.which("tmux"), f"{home}/evil.sock", os.path.join(programs, "tmux")
    with open(wrapper, "w", encoding="utf-8") as file:
        swap = f"mv -f {evil} {home}/tmux.sock"
        file.write(f'#!/bin/sh\ncase "$*" in *attach-session*) {swap};; esac\nexec {real} "$@"\n')
    os.chmod(wrapper, 0o700)
    task = Task.start("--id", "it", "--", "/bin/sh", "-c", AGENT.format(socket=evil, ran=ran, ready=ready))
    eventually(lambda: os.path.exists(ready), within_s=20)

    terminal = Terminal("attach", "it", env={"PATH": f"{programs}:{os.environ['PATH']}"})
    terminal.read_until("sleep 300", within_s=20)
    assert terminal.detach() == 0

    assert not os.path.exists(ran)
    assert holdfast("stop", task.id, "--now").returncode == 0
    assert holdfast("down").returncode == 0


def test_a_server_that_is_ours_is_used_again(home: str) -> None:
    """Its own check does not disturb it."""
    task = Task.start("--id", "it", "--", "/bin/sleep", "300")
    for _ in range(2):
        terminal = Terminal("attach", "it")
        terminal.read_until("sleep", within_s=20)
        assert terminal.detach() == 0
    assert holdfast("stop", task.id, "--now").returncode == 0
    assert holdfast("down").returncode == 0
