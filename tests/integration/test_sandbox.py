"""A sandboxed agent lives as any other: exact exit status, stop, adoption, resume, interrupt, hang."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from holdfast.sandbox import forbidden, machine
from holdfast.sandbox.builder import SandboxBuilder
from holdfast.sandbox.mounts import command_line
from holdfast.testing import Scenario
from holdfast.workspace import git
from tests.support import kin, processes, repos
from tests.support.tasks import Task, holdfast, workspace
from tests.support.tools import broken_bwrap, need_sandbox
from tests.support.waiting import eventually

pytestmark = pytest.mark.req("SBX-1")


@pytest.fixture(autouse=True)
def possible() -> None:
    need_sandbox()


def boxed(script: str, *flags: str, **given: object) -> Task:
    return Task.shell(script, "--sandbox", *flags, **given)


def recorded(task: Task) -> tuple[int | None, int | None]:
    """Exit code and signal of the first attempt."""
    record = task.json("attempts", os.path.basename(task.attempts()[0]), "exit.json")
    return record["exit_code"], record["exit_signal"]


# ── how it ends ──


@pytest.mark.parametrize(
    ("script", "code", "number"),
    [
        ("exit 0", 0, None),
        ("exit 3", 3, None),
        ("exit 143", 143, None),
        ("kill -TERM $$", 143, signal.SIGTERM),
        ("kill -KILL $$", 137, signal.SIGKILL),
        ("kill -SEGV $$", 139, signal.SIGSEGV),
    ],
)
def test_the_exit_status_is_exact(home: str, script: str, code: int, number: int | None) -> None:
    task = boxed(script, "--max-retries", "0")
    task.wait_for("completed", "failed", "abandoned")
    assert recorded(task) == (code, number)


def test_the_output_and_the_environment_arrive(home: str) -> None:
    task = boxed('echo out; echo err >&2; echo "$HOLDFAST_TASK"; echo kept > "$TASK_TMPDIR/note"; pwd')
    task.wait_for("completed")
    assert task.log().split() == ["out", "err", task.id, workspace()] or sorted(task.log().split()) == sorted(
        ["out", "err", task.id, workspace()]
    )
    assert task.read("scratch", "note") == b"kept\n"


def test_its_end_ends_everything_it_started(home: str) -> None:
    task = boxed("setsid sleep 600 & (setsid sleep 601 &) ; echo started", "--leftovers", "keep")
    task.wait_for("completed")
    eventually(lambda: not processes.marked(task.packet), what="nothing of it is left")


def test_a_killed_sandbox_ends_everything_and_is_recorded_as_killed(home: str) -> None:
    task = boxed("echo ready; setsid sleep 600 & wait", "--max-retries", "0")
    task.wait_for_log("ready")
    os.kill(task.agent_pid(), signal.SIGKILL)
    task.wait_for("abandoned")
    assert recorded(task) == (137, signal.SIGKILL)
    assert not processes.marked(task.packet)


def test_a_stop_is_a_term_for_the_agent(home: str) -> None:
    task = boxed("trap 'echo got TERM; exit 21' TERM; echo ready; " + kin.WAIT)
    task.wait_for_log("ready")
    task.stop()
    manifest = task.manifest()
    assert (manifest["status"], manifest["exit_code"]) == ("killed", 21)
    assert "got TERM" in manifest["output_tail"]
    assert task.events("attempt.swept")[-1]["proof"] == "none left"


def test_a_program_that_it_does_not_see_is_named(home: str) -> None:
    path = os.path.join(os.path.dirname(home), "program")
    with open(path, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\n")
    os.chmod(path, 0o755)
    task = Task.start("--sandbox", "--max-retries", "0", "--", path)
    task.wait_for("failed", "abandoned")
    assert recorded(task) == (127, None)
    assert f"cannot execute {path} in the sandbox: No such file" in task.log()


# ── runners come and go ──


def test_a_successor_adopts_it(home: str) -> None:
    lock = kin.alone(home)
    task = boxed("echo ready; while [ ! -e go ]; do sleep 0.05; done; exit 4", "--max-retries", "0")
    task.wait_for_log("ready")
    agent = task.agent_pid()
    task.kill_runner()
    assert processes.is_alive(agent)
    task.start_runner()
    eventually(lambda: task.events("attempt.adopted") or task.runner_pid(), what="it is adopted")
    with open(os.path.join(workspace(), "go"), "w", encoding="utf-8"):
        pass
    task.wait_for("failed")
    assert recorded(task) == (4, None)
    assert len(task.attempts()) == 1
    os.close(lock)


def test_a_crashed_agent_resumes_its_session_and_finds_its_tmp(home: str) -> None:
    script = Scenario().write("/tmp/note", "kept").crash("KILL", tries=1).wait_file("/tmp/note", limit_s=5)
    task = Task.play(script.result("done"), "--sandbox", "--base-interval", "0.1s", "--max-interval", "0.2s")
    task.wait_for("completed", within_s=30)
    assert [event["mode"] for event in task.events("attempt.opened")] == ["fresh", "resume"]
    assert task.read("sandbox", "tmp", "note") == b"kept"
    assert not os.path.exists("/tmp/note")


def test_a_hang_is_noticed(home: str) -> None:
    script = Scenario().say("one").hang(tries=1).say("two").result("done")
    flags = ("--stale", "0.5s", "--grace", "0.2s", "--base-interval", "0.1s", "--max-interval", "0.2s")
    task = Task.play(script, "--sandbox", *flags)
    task.wait_for("completed", within_s=30)
    assert [event["outcome"] for event in task.events("attempt.ended")] == ["hung", "success"]


def test_its_interrupt_file_asks_a_person(home: str) -> None:
    task = boxed('echo "which one?" > "$INTERRUPT_FILE"; ' + kin.WAIT, "--base-interval", "0.1s")
    manifest = task.wait_for("interrupted")
    assert "which one?" in manifest["status_reason"]
    assert task.read("state", "interrupt-request.txt") == b"which one?\n"
    task.stop()


# ── git ──


def test_it_commits_in_its_worktree_and_not_to_other_branches(home: str) -> None:
    repo = repos.Repo(os.path.join(os.path.dirname(home), "repo"))
    repo.commit("a.txt")
    before = repo.git("rev-parse", "main")
    script = (
        "git config user.name; echo two > a.txt; git add a.txt; "
        "git -c user.name=A -c user.email=a@example.org commit -qm two && git log --oneline | wc -l; "
        "git branch other && echo made a branch; "
        "git update-ref refs/heads/main HEAD && echo moved main; exit 0"
    )
    task = boxed(script, "--worktree", project=repo.path)
    task.wait_for("completed")
    assert task.log().split("\n")[0].strip() == "2", task.log()
    assert "made a branch" not in task.log()
    assert "moved main" not in task.log()
    assert repo.git("rev-parse", "main") == before
    assert repo.git("log", "-1", "--format=%s", f"holdfast/{task.id}").strip() == "two"


# ── what it sees ──


@pytest.mark.parametrize("flags", [(), ("--worktree",)], ids=["in place", "worktree"])
@pytest.mark.parametrize("profile", ["read", "edit"])
def test_the_profile_holds_for_an_agent_that_cannot_make_its_own_sandbox(
    home: str, profile: str, flags: tuple[str, ...]
) -> None:
    repo = repos.Repo(os.path.join(os.path.dirname(home), "repo"))
    repo.commit("a.txt")
    task = Task.start(
        *("--agent", "codex", "--sandbox", "--permissions", profile, *flags, "go"),
        project=repo.path,
        env={"PATH": f"{_stub_codex()}:{os.environ['PATH']}"},
    )
    task.wait_for("completed")
    written = {"edit": "wrote a.txt, mine", "read": "wrote"}
    assert [row for row in task.log().splitlines() if row.startswith("wrote")] == [written[profile]]


def _stub_codex() -> str:
    """A directory, visible in the sandbox, with a `codex` that tries to write into its workspace."""
    folder = os.path.join(os.environ["HOME"], "stub")
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "codex")
    with open(path, "w", encoding="utf-8") as file:
        file.write(
            "#!/bin/sh\n"
            """echo '{"type":"thread.started","thread_id":"0199a0b0-0000-7000-8000-000000000001"}'\n"""
            "wrote=\n"
            "(echo two > a.txt) && wrote=' a.txt, mine'\n"
            "touch mine || wrote=\n"
            'echo "wrote$wrote" >&2\n'
            """echo '{"type":"item.completed","item":{"id":"i","type":"agent_message","text":"Done."}}'\n"""
            """echo '{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}}'\n"""
        )
    os.chmod(path, 0o755)
    return folder


def test_forbidden_paths_of_a_packet_are_empty(home: str) -> None:
    project = repos.Repo(os.path.join(os.path.dirname(home), "project"))
    project.write("secrets/key.pem", "SECRET")
    project.write("deep/down/.env", "SECRET")
    project.write("a.txt", "fine")
    project.commit()
    packet = repos.packet_for(home, project.path, forbidden_paths=("secrets/", ".env"))
    found = forbidden.forbidden_in(project.path, (".env", "secrets/"))
    assert sorted(os.path.relpath(path, project.path) for path in found) == ["deep/down/.env", "secrets"]
    builder = SandboxBuilder(env={"HOME": os.path.dirname(home)})
    builder.workspace(project.path, git.find(project.path), store=None)
    builder.hide(packet.home.path)
    builder.forbid(*found)
    box = builder.sandbox(bwrap=machine.require(), cwd=project.path, network=True)
    look = "cat a.txt; ls secrets; cat deep/down/.env; echo new > secrets/x; ls " + home
    done = subprocess.run(
        command_line(box, ["sh", "-c", look]), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "fine"
    assert "Read-only file system" in done.stderr


def test_hidden_files_stay_hidden_when_programs_outside_replace_or_create_them(home: str) -> None:
    person = os.path.join(os.path.dirname(home), "person")
    project = os.path.join(person, "project")
    os.makedirs(project)
    os.makedirs(os.path.join(person, ".config/tool"))
    os.symlink("project", os.path.join(person, "work"))

    def save(name: str, text: str) -> None:
        """As programs do it: write another file, and rename it."""
        path = os.path.join(person, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(f"{path}.new", "w", encoding="utf-8") as file:
            file.write(text)
        os.rename(f"{path}.new", path)

    save(".netrc", "SECRET")
    save(".config/tool/settings", "plain settings")
    builder = SandboxBuilder(env={"HOME": person})
    builder.workspace(project, None, store=None)
    box = builder.sandbox(bwrap=machine.require(), cwd=project, network=True)
    script = (
        "cat ~/.config/tool/settings; echo began > ~/work/began; touch ~/new; "
        "for i in $(seq 600); do test -e go && break; sleep 0.1; done; "
        "cat ~/.netrc ~/.npmrc ~/.ssh/id ~/.config/gh/hosts; ls -A ~ ~/.config"
    )
    agent = subprocess.Popen(
        command_line(box, ["sh", "-c", script]),
        env={**os.environ, "HOME": person},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        eventually(lambda: os.path.exists(os.path.join(project, "began")), 30, "it began")
        for name in (".netrc", ".npmrc", ".ssh/id", ".config/gh/hosts"):
            save(name, "SECRET")
        save("project/go", "")
        said, complained = agent.communicate(timeout=60)
    finally:
        agent.kill()
        agent.wait()
    assert "plain settings" in said
    assert "SECRET" not in said
    assert ".ssh" not in said.split()
    assert "gh" not in said.split()
    assert "Read-only file system" in complained


def test_what_an_agent_writes_to_its_config_home_stays_in_the_task(home: str) -> None:
    root = os.path.dirname(home)
    user, folder = os.path.join(root, "user"), os.path.join(root, "work", "bin")
    os.makedirs(os.path.join(user, ".claude", "skills"))
    os.makedirs(folder)
    for name in ("settings.json", ".credentials.json", "history.jsonl"):
        with open(os.path.join(user, ".claude", name), "w", encoding="utf-8") as file:
            file.write("mine")
    script = (
        "#!/bin/sh\nexec 2>&1; cd $CLAUDE_CONFIG_DIR; pwd; ls -A; cat settings.json .credentials.json; "
        "echo evil > settings.json; echo evil > skills/x; echo renewed > .credentials.json; "
        "echo session > projects\nexit 1\n"
    )
    with open(os.path.join(folder, "claude"), "w", encoding="utf-8") as file:
        file.write(script)
    os.chmod(os.path.join(folder, "claude"), 0o755)
    env = {"HOME": user, "PATH": f"{folder}:{os.environ['PATH']}"}
    task = Task.start("--agent", "claude", "--sandbox", "--max-retries", "0", "do it", env=env)
    task.wait_for("failed", "abandoned")
    mine = os.path.join(user, ".claude")
    assert sorted(os.listdir(mine)) == [".credentials.json", "history.jsonl", "settings.json", "skills"]
    with open(os.path.join(mine, "settings.json"), encoding="utf-8") as file:
        assert file.read() == "mine"
    with open(os.path.join(mine, ".credentials.json"), encoding="utf-8") as file:
        assert file.read() == "renewed\n"
    assert os.listdir(os.path.join(mine, "skills")) == []
    assert task.read("sandbox", "homes", "claude.0", "projects") == b"session\n"


# ── refused ──


def test_without_bubblewrap_nothing_is_created(home: str) -> None:
    before = broken_bwrap(os.path.dirname(home))

    def with_broken_bwrap(*args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*before, sys.executable, "-m", "holdfast", *args],
            capture_output=True, text=True, timeout=60, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    done = with_broken_bwrap("run", "--sandbox", "--", "true")
    assert done.returncode == 2, done.stderr
    assert "cannot make a sandbox here: No permissions to create new namespace" in done.stderr
    assert os.listdir(os.path.join(home, "tasks")) == []
    found = with_broken_bwrap("doctor")
    # Its lines are wrapped at COLUMNS.
    assert "No permissions to create new namespace" in " ".join(found.stdout.split())


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--network", "off"), "needs a sandbox"),
        (("--sandbox", "--no-sandbox"), "exclude each other"),
        (("--sandbox", "--network", "http://github.com"), "not a host"),
    ],
)
def test_flags_that_contradict_each_other(home: str, flags: tuple[str, ...], said: str) -> None:
    done = holdfast("run", *flags, "--", "true")
    assert done.returncode == 2
    assert said in done.stderr


def test_a_project_that_contains_the_home_directory_is_refused(home: str) -> None:
    done = holdfast("run", "--sandbox", "--project", os.path.dirname(os.path.expanduser("~")), "--", "true")
    assert done.returncode == 2
    assert "contains your home directory" in done.stderr


def test_the_setting_turns_it_on_and_the_flag_off(home: str) -> None:
    config = os.path.join(os.path.dirname(home), "config")
    os.makedirs(os.path.join(config, "holdfast"))
    with open(os.path.join(config, "holdfast", "config.toml"), "w", encoding="utf-8") as file:
        file.write('sandbox = "on"\nnetwork = "off"\n')
    env = {"XDG_CONFIG_HOME": config}
    task = Task.shell("cat /proc/1/comm; ls /sys/class/net", env=env)
    task.wait_for("completed")
    assert task.log().split() == ["python3", "lo"] or task.log().split()[-1] == "lo"
    task = Task.shell("echo $IS_SANDBOX", "--no-sandbox", env=env)
    task.wait_for("completed")
    assert task.log().strip() == ""
