"""Real git repositories, and packets that use them as workspace."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

from holdfast.gates import __main__ as gates
from holdfast.model import events as ev
from holdfast.model.spec import Limits, PipelineSpec, StageSpec, TaskSpec
from holdfast.model.status import Status
from holdfast.packet.create import create
from holdfast.store import atomic
from holdfast.store.layout import Home, Packet
from holdfast.workspace import __main__ as preparing
from tests.support.journals import opened
from tests.support.tasks import workspace

_IDENTITY = {
    "GIT_AUTHOR_NAME": "A Person",
    "GIT_AUTHOR_EMAIL": "person@example.org",
    "GIT_COMMITTER_NAME": "A Person",
    "GIT_COMMITTER_EMAIL": "person@example.org",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
}


class Repo:
    """A directory, with or without git."""

    def __init__(self, path: str, *, with_git: bool = True) -> None:
        self.path = os.path.realpath(path)
        os.makedirs(self.path, exist_ok=True)
        if with_git:
            self.git("init", "-q", "-b", "main")

    def git(self, *words: str, ok: bool = True) -> str:
        done = subprocess.run(
            ["git", *words],
            cwd=self.path,
            env={**os.environ, **_IDENTITY},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0 or not ok, done.stderr
        return done.stdout

    def write(self, name: str, text: str | bytes = "text\n") -> str:
        """A file, with the directories that it needs."""
        path = os.path.join(self.path, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(text if isinstance(text, bytes) else text.encode())
        return path

    def read(self, name: str) -> str:
        with open(os.path.join(self.path, name), encoding="utf-8") as file:
            return file.read()

    def commit(self, *names: str, message: str = "work") -> str:
        """Commit files (created if missing), or everything."""
        for name in names:
            if not os.path.lexists(os.path.join(self.path, name)):
                self.write(name)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD").strip()

    def state(self) -> dict[str, Any]:
        """What a person would notice if it changed: index, refs, settings, objects. (git renews the time of
        an object that is met again, which keeps it from being pruned.)"""
        found: dict[str, Any] = {}
        for folder, _, files in os.walk(os.path.join(self.path, ".git")):
            for name in files:
                path = os.path.join(folder, name)
                with open(path, "rb") as file:
                    found[path] = (file.read(), 0 if "/objects/" in path else os.stat(path).st_mtime_ns)
        return found


def packet_for(
    home: str,
    project: str,
    *,
    task_id: str = "it",
    stages: tuple[tuple[str, str], ...] = (("codex_impl", "impl"),),
    workspace: str = "in_place",
    status: Status = Status.COMPLETED,
    env: dict[str, str] | None = None,
    writes: bool = True,
    **pipeline: Any,
) -> Packet:
    """A packet of a pipeline, as if its runner had just left it."""
    os.makedirs(Home(home).tasks, mode=0o700, exist_ok=True)
    specs = tuple(
        StageSpec(name=name, agent="codex", role=role, writes=writes and role in ("impl", "test_impl", "fix"))
        for name, role in stages
    )
    spec = TaskSpec(
        task_id=task_id,
        task_name=task_id,
        goal="mend the thing",
        agent="codex",
        project_dir=project,
        stages=specs,
        limits=Limits(),
        workspace=workspace,
        pipeline=PipelineSpec(intent="safe_impl", group="impl", profile="safe_impl", **pipeline),
    )
    found = {"schema": "holdfast.env/1", "env": env or {}, "umask": 0o077, "limits": {}}
    return create(Home(home), spec, prompt=b"do it\n", env=found, status=status)


def module(
    name: str, *words: str, cwd: str, env: dict[str, str] | None = None, before: Sequence[str] = ()
) -> subprocess.CompletedProcess[str]:
    """`python -m holdfast.NAME WORDS…`, as a runner runs it."""
    return subprocess.run(
        [*before, sys.executable, "-m", f"holdfast.{name}", *words],
        cwd=cwd,
        env={**os.environ, **_IDENTITY, **(env or {})},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def prepare(packet: Packet, stage: str = "codex_impl") -> dict[str, Any]:
    """Prepare a stage and journal it, as the runner does; in this process, which is quicker."""
    out = os.path.join(packet.state, f"{stage}.prepared.json")
    code, said = _main(preparing.main, ["prepare", "--packet", packet.path, "--stage", stage, "--out", out])
    assert code == 0, said
    with open(out, encoding="utf-8") as file:
        found = json.load(file)
    event = ev.WorkspacePrepared.from_json(found)
    journal = opened(packet)
    journal.append([event])
    journal.close()
    return found


def report(packet: Packet, text: str, stage: str = "codex_impl") -> None:
    """What the agent left."""
    atomic.write(packet.output(stage, "codex", "out"), text.encode(), durable=False)
    atomic.write_json(packet.output(stage, "codex", "meta.json"), {"stage": stage}, durable=False)


def judge_argv(packet: Packet, stage: str) -> list[str]:
    """The arguments of `python -m holdfast.gates`."""
    out = os.path.join(packet.state, f"{stage}.gate.json")
    words = ["--packet", packet.path, "--stage", stage, "--attempt", "2", "--out", out]
    return [*words, "--artifact", packet.artifact(stage)]


def judge(
    packet: Packet, stage: str = "codex_impl", *, before: Sequence[str] = ()
) -> tuple[int, dict[str, Any]]:
    """The gate's exit status, and its result; what it said where it could not judge.

    With words `before` its command, it is a process of its own.
    """
    argv = judge_argv(packet, stage)
    if before:
        done = module("gates", *argv, cwd=packet.state, before=before)
        code, said = done.returncode, done.stderr
    else:
        code, said = _main(gates.main, argv)
    assert code in (0, 1, 3), said
    if code == 3:
        return 3, {"stderr": said}
    with open(argv[7], encoding="utf-8") as file:
        return code, json.load(file)


def _main(main: Callable[[list[str]], int], argv: list[str]) -> tuple[int, str]:
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        return main(argv), said.getvalue()


def bare_remote() -> Repo:
    """An empty bare repository beside the home, to push to."""
    repo = Repo(os.path.join(os.path.dirname(os.environ["HOLDFAST_HOME"]), "remote.git"), with_git=False)
    repo.git("init", "-q", "--bare", "-b", "main")
    return repo


def pushed_project(remote: Repo, *, url: str = "") -> Repo:
    """A project of one commit, which the remote has, too; its `origin` has the address `url`."""
    repo = Repo(os.path.join(workspace(), "project"))
    repo.write("a.txt", "a\n")
    repo.commit()
    repo.git("remote", "add", "origin", remote.path)
    repo.git("push", "-q", "origin", "main")
    if url:
        repo.git("remote", "set-url", "origin", url)
    return repo
