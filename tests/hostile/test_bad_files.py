"""One bad file costs one row: every file of a home and a packet, damaged in every way, under every reader.

All combinations: HOLDFAST_HOSTILE_FULL=1. Otherwise a sample, with each file and each damage at least once.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys

import pytest

from holdfast import spawn
from holdfast.store.layout import Home
from tests.support import keepers, kin, powers
from tests.support.tasks import Task, holdfast, workspace

#: Files of the home; `bad/` is a packet of an ended task, `live/` one of a task without runner.
FILES = (
    "queue.json", "queue.db", "queue.db-wal", "index.db", "audit.jsonl", "keeper.lock", "keeper-start.lock",
    "seed.lock", "seed.sock", "keeper.bell", "keeper.log", "keeper-starts.json", "loop.json", "settings.json",
    "service.json", "metrics.json", "task-index.json", "outbox/status.json", "keeper.held", "config.toml",
    *(
        f"bad/{name}"
        for name in (
            "manifest.json", "events.jsonl", "runner.lock", "bell", "output.log", "output.idx", "runner.log",
            "env.json", "manifest.yaml", "inbox/01ARZ3NDEKTSV4RRFFQ69G5FAV.json",
            "state/current-session.json", "state/ingest", "state/work.json",
            "state/interrupt-request.txt", "done/_task.done",
            "outputs/_summary.md", "attempts/001-command_run/lock", "attempts/001-command_run/identity.json",
            "attempts/001-command_run/exit.json", "attempts/001-command_run/pid",
            "attempts/001-command_run/attempt.json", "attempts/001-command_run/argv.json",
            "attempts/001-command_run/stdout.log",
        )
    ),
    *(f"live/{name}" for name in ("manifest.json", "events.jsonl", "runner.lock", "bell", "inbox")),
)  # fmt: skip
DAMAGES = (
    "object", "empty", "half", "junk", "deep", "huge", "closed", "directory", "pipe", "socket", "dangling",
    "zero", "device", "wrong types",
)  # fmt: skip
#: Commands that must succeed: they are about the home or another task.
MUST = (
    "ls", "ls --json", "ls --all", "status", "status --json", "report", "report --json", "queue ls",
    "metrics", "show good", "wait good", "logs good", "events good",
)  # fmt: skip
#: Commands that may fail, but must not hang or crash.
MAY = (
    "show bad",
    "logs bad",
    "events bad",
    "show live",
    "events --json bad",
    "doctor",
    "doctor --json",
    "diff bad",
)
#: Time limit of one command.
WITHIN_S = 20


def cases() -> list[tuple[str, str]]:
    if os.environ.get("HOLDFAST_HOSTILE_FULL"):
        return [(name, damage) for name in FILES for damage in DAMAGES]
    every = [(name, DAMAGES[number % len(DAMAGES)]) for number, name in enumerate(FILES)]
    known = [
        ("bad/manifest.json", "pipe"), ("live/manifest.json", "zero"), ("bad/events.jsonl", "pipe"),
        ("index.db", "half"), ("audit.jsonl", "pipe"), ("config.toml", "pipe"),
        ("bad/events.jsonl", "closed"), ("queue.db", "closed"),
    ]  # fmt: skip
    return [*every[::5], *known]


def damage_file(path: str, damage: str) -> None:
    """Put something else in place of a file."""
    old = b""
    if os.path.isfile(path) and not os.path.islink(path):
        with open(path, "rb") as file:
            old = file.read()
    if damage == "closed":
        if os.path.isfile(path):
            os.chmod(path, 0)
        return
    if os.path.isdir(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    match damage:
        case "directory":
            os.mkdir(path)
            with open(os.path.join(path, "inside"), "wb"):
                pass
        case "pipe":
            os.mkfifo(path)
        case "socket":
            with socket.socket(socket.AF_UNIX) as made:
                folder = os.open(os.path.dirname(path), os.O_RDONLY)
                made.bind(f"/proc/self/fd/{folder}/{os.path.basename(path)}")
                os.close(folder)
        case "dangling":
            os.symlink("/nowhere/else", path)
        case "zero":
            os.symlink("/dev/zero", path)
        case "device":
            os.mknod(path, 0o20600, os.makedev(1, 5))  # a second /dev/zero
        case "huge":
            with open(path, "wb") as file:
                file.write(old[: len(old) // 2])
                file.truncate(2 * 1024**3)
        case _:
            texts = {
                "object": b"{}\n",
                "empty": b"",
                "half": old[: len(old) // 2],
                "junk": bytes(range(256)) * 20,
                "deep": b"[" * 200_000,
                "wrong types": wrong_types(old),
            }
            with open(path, "wb") as file:
                file.write(texts[damage])


def wrong_types(old: bytes) -> bytes:
    """Every value of a JSON file replaced by one of another type, line by line."""
    made = []
    for line in old.splitlines() or [b'{"schema": 1, "status": []}']:
        try:
            data = json.loads(line)
        except ValueError:
            return b'{"status": ["a"], "task_id": {}, "started_at": 5}\n'
        other = (
            {"a": 1}
            if not isinstance(data, dict)
            else {k: [v] if k != "type" else v for k, v in data.items()}
        )
        made.append(json.dumps(other).encode())
    return b"\n".join(made) + b"\n"


_VERBS = """
import os, signal, sys, time
from holdfast.views.cli import entry
import holdfast.views.cli.commands.ls
for verb in sys.argv[2:]:
    began = time.monotonic()
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        status = 70
        try:
            signal.alarm(int(sys.argv[1]))
            null = os.open("/dev/null", os.O_WRONLY)
            os.dup2(null, 1)
            status = entry.run(verb.split())
        except SystemExit as error:
            status = error.code
        finally:
            sys.stderr.flush()
            os._exit(status if isinstance(status, int) else 70)
    print(verb, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), sep="=")
"""


def outcomes(*verbs: str) -> tuple[dict[str, int], str]:
    """The exit status of each verb (negative: killed by its deadline), and what they complained about."""
    done = subprocess.run(
        [sys.executable, "-c", _VERBS, str(WITHIN_S), *verbs],
        capture_output=True, text=True, timeout=WITHIN_S * len(verbs) + 30, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return {
        verb: int(status)
        for verb, _, status in (line.rpartition("=") for line in done.stdout.split("\n") if line)
    }, done.stderr


@pytest.fixture
def good(home: str, monkeypatch: pytest.MonkeyPatch) -> Task:
    """Three tasks: good and bad have ended, live waits for a runner; and a queue."""
    for name in ("bad", "good"):
        Task.start("--id", name, "--", "sh", "-c", "echo hello").wait_for("completed")
    kin.make("--", "true", task_id="live")
    done = holdfast("submit", "--id", "queued", "--", "true", cwd=workspace())
    assert done.returncode == 0, done.stderr
    assert holdfast("queue", "pause").returncode == 0
    assert holdfast("report").returncode == 0
    return Task(os.path.join(home, "tasks", "good"))


def path_of(home: str, name: str) -> str:
    if name == "config.toml":
        return os.path.join(os.environ["HOME"], ".config", "holdfast", name)
    first = name.partition("/")[0]
    return os.path.join(home, *(["tasks"] if first in ("bad", "live") else []), name)


@pytest.mark.parametrize(("name", "damage"), cases())
def test_one_bad_file_stops_nobody_else(
    home: str, good: Task, name: str, damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if damage == "device" and os.geteuid() != 0:
        pytest.skip("only root makes devices")
    damage_file(path_of(home, name), damage)
    if damage == "closed":
        # Root reads everything: the commands are run without that power.
        powers.without(lambda: stops_nobody_else(home, name, monkeypatch))
    else:
        stops_nobody_else(home, name, monkeypatch)


def stops_nobody_else(home: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command answers, and the keeper runs the queue."""
    found, complaints = outcomes(*MUST, *MAY)
    # Only damaged settings of the user may make a command fail.
    fine = (0, 2) if name == "config.toml" else (0,)
    assert {verb: found[verb] for verb in MUST if found[verb] not in fine} == {}, complaints
    assert {verb: status for verb, status in found.items() if status < 0 or status == 70} == {}, complaints
    if name != "config.toml":
        rows = {row["task_id"]: row for row in json.loads(holdfast("ls", "--json").stdout)}
        assert set(rows) == {"good", "bad", "live", "queued"}
        assert rows["good"]["status"] == "completed"
    # Keeper and queue.
    monkeypatch.delenv("HOLDFAST_KEEPER")
    assert holdfast("queue", "resume").returncode == 0
    spawn.ensure_keeper(Home(home), by_person=True)
    keepers.wait_for(home)
    Task(os.path.join(home, "tasks", "queued")).wait_for("completed", within_s=30)
