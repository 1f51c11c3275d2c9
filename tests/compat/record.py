"""Records what this version writes: a whole packet for `tests/compat/data/v<version>/`, and the fixtures of
the contracts.

    python -m tests.compat.record     run real tasks, replace paths and names of this machine, write the files

Run once per release, before its version number is published; a recorded directory is never changed
afterwards.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable

from holdfast import __version__
from holdfast.packet import inbox, load
from holdfast.store import lock as locks
from holdfast.store import lock_owner, process
from holdfast.store.layout import Home, Packet
from holdfast.testing import Scenario
from tests.support.packets import REPORTS
from tests.support.waiting import eventually

#: Both are equally long, so that byte offsets in the journal stay true after the replacement.
ROOT, PLACEHOLDER = "/tmp/hf-fixture", "/placeholder/hf"
BOOT = "00000000-0000-4000-8000-000000000000"
REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FIXTURES = os.path.join(REPOSITORY, "docs", "contracts", "fixtures")
DATA = os.path.join(REPOSITORY, "tests", "compat", "data")

HOME = Home(os.path.join(ROOT, "home"))
PROJECT = os.path.join(ROOT, "project")


def main() -> None:
    """Run the tasks and keep what they wrote."""
    shutil.rmtree(ROOT, ignore_errors=True)
    os.makedirs(PROJECT)
    with open(_ONCE, "w", encoding="utf-8"):
        pass
    try:
        _crash_and_resume()
        _people()
        _spawn_failed()
        _void_and_retry()
        _pipeline()
    finally:
        # A recording that failed half-way must not leave a task behind whose directory is gone.
        for task_id in load.task_ids(HOME):
            _holdfast("stop", task_id, check=False)
            _holdfast("wait", task_id, "--timeout", "40s", check=False)
        _dismiss(HOME.keeper_lock)
        _dismiss(HOME.seed_lock)
        shutil.rmtree(ROOT, ignore_errors=True)


# ── the tasks ───────────────────────────────────────────────────────────────


def _crash_and_resume() -> None:
    """An agent that dies of SIGKILL in a tool call, and succeeds in its second attempt."""
    go = os.path.join(PROJECT, "go")
    scenario = (
        Scenario()
        .say("looking around")
        .tool("Bash", command="echo hi > hi.txt")
        .tool("Bash", command="false", fails=True, once=True)
        .say("this is the moment")
        .crash("KILL", once=True)
        .wait_file("go")
        .result("all done")
    )
    path = str(scenario.write_to(os.path.join(ROOT, "scenario.json")))
    options = ["--id", "crash-and-resume", "--agent", "scripted", "-o", f"scenario={path}"]
    packet = _run(*options, "say hi, and do not let go")
    eventually(lambda: _shows(packet, status="running", attempt=2), within_s=30, journal=packet.path)
    eventually(
        lambda: _json(packet.manifest)["pid"] > 0 and _json(packet.manifest)["heartbeat"]["last_check"]
    )
    _keep(packet.manifest, "manifest.running.json")
    _keep(packet.env, "env.json")
    _keep(packet.runner_lock, "lock.runner.json")
    with open(go, "w", encoding="utf-8"):
        pass
    _holdfast("wait", packet.task_id)
    eventually(lambda: not locks.is_held(packet.runner_lock))
    first, second = (packet.attempt(name) for name in sorted(os.listdir(packet.attempts)))
    _keep(packet.journal, "journal.crash-and-resume.jsonl")
    _keep(packet.manifest, "manifest.completed.json")
    _keep(packet.current_session, "current-session.json")
    _keep(packet.gate_result("scripted_run"), "gate_result.json")
    _keep(packet.stage_done("scripted_run"), "stage.done.json")
    _keep(packet.task_done, "task.done.json")
    _keep(first.lock, "lock.recorder.json")
    _keep(first.exit, "exit.signal.json")
    _keep(second.identity, "identity.json")
    _keep(second.argv, "argv.json")
    _keep(second.exit, "exit.success.json")
    _keep(second.record, "attempt.json")
    _keep_packet(packet, os.path.join(DATA, f"v{__version__}", packet.task_id))


def _people() -> None:
    """A task that is interrupted, answered, and stopped."""
    options = ["--id", "interrupt-resume-stop", "--project", PROJECT]
    packet = _run(*options, "--", "sh", "-c", "echo started; exec sleep 600")
    eventually(lambda: _shows(packet, status="running"), journal=packet.path)
    _holdfast("interrupt", packet.task_id, "-m", "which database?")
    eventually(lambda: _shows(packet, status="interrupted"), journal=packet.path)
    _keep(packet.manifest, "manifest.interrupted.json")
    _holdfast("resume", packet.task_id, "-m", "the test database")
    eventually(lambda: _shows(packet, status="running", attempt=2), journal=packet.path)
    _holdfast("stop", packet.task_id, "-m", "not needed any more")
    _holdfast("wait", packet.task_id, check=False)
    _keep(packet.journal, "journal.interrupt-resume-stop.jsonl")
    for verb, args in (
        ("start", {"iteration": 7}),
        ("stop", {"reason": "not needed any more"}),
        ("interrupt", {"reason": "which database?"}),
        ("resume", {"message": "the test database"}),
        ("retry", {"deadline": "10h", "message": "go on", "env": _fixture("env.json")}),
        ("approve", {"message": "but leave the migrations alone"}),
        ("reject", {"message": "not before the freeze is over"}),
        ("done", {"reason": "done by bob, outside"}),
    ):
        request = inbox.drop(packet, verb, args, by=_whoami())
        _keep(packet.request(request.id), f"request.{verb}.json")


def _spawn_failed() -> None:
    """A program whose interpreter does not exist: exec fails, and no retry is allowed."""
    program = os.path.join(PROJECT, "broken")
    with open(program, "w", encoding="utf-8") as file:
        file.write("#!/nonexistent/interpreter\n")
    os.chmod(program, 0o755)
    packet = _run("--id", "spawn-failed", "--project", PROJECT, "--max-retries", "0", "--", program)
    _holdfast("wait", packet.task_id, check=False)
    _keep(packet.journal, "journal.spawn-failed.jsonl")
    _keep(packet.manifest, "manifest.failed.json")
    _keep(packet.attempt("001-command_run").exit, "exit.spawn-failed.json")


def _void_and_retry() -> None:
    """A recorder that is killed before the agent exists; a failure; and a second run."""
    script = "echo run; test -e done || { touch done; exit 3; }"
    os.unlink(_ONCE)
    packet = _run("--id", "void-and-retry", "--project", PROJECT, "--", "sh", "-c", script)
    _holdfast("wait", packet.task_id, check=False)
    _holdfast("retry", packet.task_id, "--deadline", "1h")
    eventually(lambda: _shows(packet, status="completed"), journal=packet.path)
    eventually(lambda: os.path.exists(packet.task_done))
    _keep(packet.journal, "journal.void-and-retry.jsonl")


def _pipeline() -> None:
    """A written packet: an implementation whose first attempt is killed, then two looks at it side by
    side."""
    for words in (["init", "-q", "-b", "main"], ["commit", "-q", "--allow-empty", "-m", "begin"]):
        subprocess.run(["git", "-C", PROJECT, *_GIT, *words], check=True, env=_environ, timeout=60)
    stages = ["scripted_impl", {"parallel": ["scripted_verify", "scripted_review"]}]
    profiles = {"safe_impl": {"stages": stages}}
    _put(
        os.path.join(PROJECT, ".holdfast", "pipelines", "impl.yaml"),
        json.dumps({"version": 1, "pipeline": "impl", "profiles": profiles}),
    )
    folder = os.path.join(ROOT, "packet")
    scenarios = {
        "scripted_impl": Scenario()
        .say("I begin.")
        .crash("KILL", once=True)
        .write("b.txt", content="hello\n"),
        "scripted_verify": Scenario(),
        "scripted_review": Scenario(),
    }
    for stage, scenario in scenarios.items():
        report = REPORTS[stage.removeprefix("scripted_")]
        _put(os.path.join(folder, f"{stage}.json"), "")
        scenario.say(report).result("ok").write_to(os.path.join(folder, f"{stage}.json"))
    manifest = {
        "task_id": "pipeline",
        "goal": "write b.txt",
        "project": PROJECT,
        "routing": {
            "intent": "safe_impl",
            "options": {stage: {"scenario": f"{stage}.json"} for stage in scenarios},
        },
        "scope": {"allow": ["b.txt"], "deny": []},
        "acceptance": {"commands": ["test -e b.txt"], "criteria": ["b.txt is there"]},
        "budgets": {"retry_budget": 2, "paid_call_budget": 10, "max_wallclock_sec": 60},
        "context": {"digest_policy": "auto"},
    }
    _put(os.path.join(folder, "manifest.yaml"), json.dumps(manifest))
    _put(os.path.join(folder, "inputs", "user_request.md"), "Write b.txt.\n")
    _holdfast("run", "-d", "--trust-project", "--packet", folder)
    packet = HOME.packet("pipeline")
    _holdfast("wait", packet.task_id)
    eventually(lambda: os.path.exists(packet.task_done))
    _keep(packet.journal, "journal.pipeline.jsonl")
    _keep(packet.manifest, "manifest.pipeline.json")
    _keep(packet.gate_result("scripted_impl"), "gate_result.pipeline.json")


# ── running ─────────────────────────────────────────────────────────────────

#: While this file exists the failpoint below does nothing.
_ONCE = os.path.join(ROOT, "once")
_GIT = ("-c", "user.name=ada", "-c", "user.email=ada@example", "-c", "commit.gpgsign=false")
_environ = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": os.path.join(ROOT, "user"),
    "USER": "ada",
    "LANG": "C.UTF-8",
    "HOLDFAST_HOME": HOME.path,
    # For all from the start: a seed or keeper hands on the environment in which it was started.
    "HOLDFAST_FAILPOINT": "recorder.signed=kill",
    "HOLDFAST_FAILPOINT_ONCE": _ONCE,
}


def _holdfast(*argv: str, check: bool = True) -> None:
    subprocess.run(
        [sys.executable, "-m", "holdfast", *argv], cwd=PROJECT, env=_environ, check=check, timeout=60,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip


def _run(*argv: str) -> Packet:
    _holdfast("run", "-d", *argv)
    return HOME.packet(argv[1])


def _shows(packet: Packet, **fields: object) -> bool:
    manifest = _json(packet.manifest)
    return all(manifest[name] == value for name, value in fields.items())


def _dismiss(lock: str) -> None:
    """End the keeper or the seed of our home, which runners may have started."""
    owner = lock_owner.owner(lock)
    if owner is not None and locks.is_held(lock) and process.is_alive(owner):
        os.kill(owner.pid, signal.SIGTERM)
        eventually(lambda: not locks.is_held(lock))


def _whoami() -> str:
    return f"ada@{os.uname().nodename}"


# ── keeping ─────────────────────────────────────────────────────────────────


def sanitise(text: str) -> str:
    """Without what names this machine. The paths keep their length."""
    for old, new in (
        (ROOT, PLACEHOLDER),
        (sys.executable, "/placeholder/python"),
        (process.boot_id(), BOOT),
        (f"@{os.uname().nodename}", "@example"),
    ):
        text = text.replace(old, new)
    return text


def _keep(source: str, name: str) -> None:
    _copy(source, os.path.join(FIXTURES, name))


def _keep_packet(packet: Packet, target: str) -> None:
    """All regular files. The bell is a FIFO, which git cannot hold, and env.json is gone after the end."""
    shutil.rmtree(target, ignore_errors=True)
    for folder, _, files in os.walk(packet.path):
        for name in files:
            source = os.path.join(folder, name)
            if os.path.isfile(source):
                _copy(source, os.path.join(target, os.path.relpath(source, packet.path)))
    with open(os.path.join(target, "manifest.yaml"), "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    _edit(os.path.join(target, "events.jsonl"), lambda text: _with_hash(text, digest))


def _with_hash(journal: str, digest: str) -> str:
    """The journal with the hash of the sanitised manifest.yaml."""
    first, _, rest = journal.partition("\n")
    created = json.loads(first)
    return first.replace(created["manifest_sha256"], digest) + "\n" + rest


def _copy(source: str, target: str) -> None:
    with open(source, encoding="utf-8") as file:
        text = sanitise(file.read())
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(target, "w", encoding="utf-8") as file:
        file.write(text)


def _edit(path: str, change: Callable[[str], str]) -> None:
    with open(path, encoding="utf-8") as file:
        text = change(file.read())
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def _put(path: str, text: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def _json(path: str) -> dict[str, object]:
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def _fixture(name: str) -> dict[str, object]:
    return _json(os.path.join(FIXTURES, name))


if __name__ == "__main__":
    main()
