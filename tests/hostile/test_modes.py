"""An agent that makes its packet read-only, or hides it: its task still ends and can be removed."""

from __future__ import annotations

import json
import os

import pytest

from holdfast.testing import Scenario
from tests.support import kin, powers, processes
from tests.support.packets import Written, gate, played
from tests.support.repos import Repo
from tests.support.tasks import ENDS, Task, holdfast, workspace
from tests.support.tools import need_sandbox
from tests.support.waiting import eventually

EAGER = ("--base-interval", "0.2s", "--stale", "none")
PARTS = {
    "packet": '"$HOLDFAST_PACKET"',
    "attempt": '"$HOLDFAST_ATTEMPT"',
    "attempts": '"$HOLDFAST_PACKET/attempts"',
    "inbox": '"$HOLDFAST_PACKET/inbox"',
    "done": '"$HOLDFAST_PACKET/done" "$HOLDFAST_PACKET/outputs" "$HOLDFAST_PACKET/state"',
    "all": '-R "$HOLDFAST_PACKET"',
}
#: With a kill of the first attempt, the second needs a directory of its own.
FULL = bool(os.environ.get("HOLDFAST_HOSTILE_FULL"))
PARTS_TO_TRY = tuple(PARTS) if FULL else ("packet", "attempt", "attempts", "all")
MODES = ("500", "000") if FULL else ("500",)
CAP_FOWNER = 3


def chmod(part: str, mode: str) -> str:
    place = PARTS[part]
    return f"chmod -R {mode} {place[3:]}" if place.startswith("-R ") else f"chmod {mode} {place}"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("part", PARTS_TO_TRY)
def test_a_task_ends(home: str, part: str, mode: str) -> None:
    def body() -> None:
        # Its first attempt crashes, so that a second one has to be made.
        once = os.path.join(workspace(), "once")
        crash = f"[ -e {once} ] || {{ touch {once}; kill -SEGV $$; }}"
        task = Task.shell(f"{chmod(part, mode)}; {crash}; exit 0", *EAGER)
        task.wait_for("completed", within_s=60)
        done = holdfast("rm", task.id)
        assert done.returncode == 0, done.stderr
        assert not os.path.exists(task.packet)

    powers.without(body)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("part", PARTS_TO_TRY)
@pytest.mark.parametrize("verb", ["stop", "rm"])
def test_a_task_can_be_stopped_and_removed(home: str, part: str, mode: str, verb: str) -> None:
    def body() -> None:
        task = Task.shell(f"{chmod(part, mode)}; echo $$ > agent; " + kin.WAIT, *EAGER)

        def there() -> int:
            with open(os.path.join(workspace(), "agent"), encoding="utf-8") as file:
                return int(file.read())

        agent = eventually(there, what="the agent runs")
        if verb == "stop":
            done = holdfast("stop", task.id)
            assert done.returncode == 0, done.stderr
            eventually(lambda: task.status() == "killed", 40, "it is stopped", journal=task.packet)
        done = holdfast("rm", "--force", task.id)
        assert done.returncode == 0, done.stderr
        assert not os.path.exists(task.packet)
        eventually(lambda: not processes.is_alive(agent), 30, "the agent is gone")

    powers.without(body)


def test_a_recorder_that_can_never_write_gives_up(home: str) -> None:
    """The directory of the attempt belongs to another user."""

    def body() -> None:
        give_away = 'touch once; chmod 755 "$HOLDFAST_ATTEMPT"; chown 12345 "$HOLDFAST_ATTEMPT"; exit 3'
        task = Task.shell(f"[ -e once ] && exit 0; {give_away}", *EAGER)
        eventually(lambda: task.status() in ENDS, 90, "it ends", journal=task.packet)
        assert task.status() == "completed"
        assert [event["outcome"] for event in task.events("attempt.ended")] == ["lost", "success"]
        eventually(lambda: not processes.marked(home), 30, "nobody is left")

    if os.geteuid() != 0:
        pytest.skip("only root can give a directory away")
    powers.without(body, also=(CAP_FOWNER,))


def test_a_forged_exit_record_in_a_read_only_directory(home: str) -> None:
    """The agent says that it succeeded, and makes its directory read-only; the recorder knows better."""

    def body() -> None:
        forge = (
            'import json,os,time; d=os.environ["HOLDFAST_ATTEMPT"]; i=json.load(open(d+"/identity.json"));'
            'json.dump({"schema":"holdfast.exit/1","by":"recorder","wait_status":0,"exit_code":0,'
            '"exit_signal":None,"exec_errno":None,"rusage":None,"at":i["started_at"],'
            '"boot_id":i["boot_id"],"mono_s":time.monotonic()},open(d+"/exit.json","w"));'
            'open(d+"/done","w").close(); os.chmod(d,0o500); raise SystemExit(3)'
        )
        task = Task.start(*EAGER, "--max-retries", "0", "--", "python3", "-c", forge)
        eventually(lambda: task.status() in ENDS, 60, "it ends", journal=task.packet)
        assert (task.status(), task.manifest()["exit_code"]) == ("failed", 3)

    powers.without(body)


def test_diff_says_what_it_cannot_read(home: str) -> None:
    def body() -> None:
        repo = Repo(os.path.join(workspace(), "project"))
        repo.commit("README.md")
        work = "mkdir -p hidden seen; echo a > hidden/a; echo b > seen/b; chmod 000 hidden"
        task = Task.start("--id", "it", "--worktree", "--project", repo.path, "--", "sh", "-c", work)
        task.wait_for("completed", within_s=60)
        done = holdfast("diff", "it")
        assert done.returncode == 0, done.stderr
        assert "seen/b" in done.stdout
        assert "/hidden cannot be read, so what is in it is not shown" in done.stderr
        told = json.loads(holdfast("diff", "it", "--json").stdout)
        assert [os.path.basename(path) for path in told["unreadable"]] == ["hidden"]
        assert holdfast("rm", "--force", "it").returncode == 0

    powers.without(body)


HIDES = "mkdir -p hidden seen; echo a > hidden/a; echo b > seen/b; chmod 000 hidden"


def test_apply_says_what_it_cannot_read(home: str) -> None:
    def body() -> None:
        repo = Repo(os.path.join(workspace(), "project"))
        repo.commit("README.md")
        worktree = ("--worktree", "--project", repo.path)
        Task.start("--id", "one", *worktree, "--", "sh", "-c", HIDES).wait_for("completed", within_s=60)
        done = holdfast("apply", "one")
        assert done.returncode == 0, done.stderr
        assert "1 file" in done.stderr
        assert "/hidden cannot be read, so what is in it was not applied" in done.stderr
        only = "mkdir hidden; echo a > hidden/a; chmod 000 hidden"
        Task.start("--id", "two", *worktree, "--", "sh", "-c", only).wait_for("completed", within_s=60)
        done = holdfast("apply", "two")
        assert done.returncode == 3
        assert "/hidden cannot be read" in done.stderr
        told = Task.start("--id", "three", *worktree, "--", "sh", "-c", HIDES.replace("seen", "other"))
        told.wait_for("completed", within_s=60)
        applied = json.loads(holdfast("apply", "three", "--patch", "--json").stdout)
        assert [os.path.basename(path) for path in applied["unreadable"]] == ["hidden"]
        for task in ("one", "two", "three"):
            assert holdfast("rm", "--force", task).returncode == 0

    powers.without(body)


@pytest.mark.parametrize("flags", [(), ("--worktree",)], ids=["in place", "worktree"])
def test_a_gate_says_what_it_cannot_read(home: str, flags: tuple[str, ...]) -> None:
    """What was so before the task is not its work."""

    def body() -> None:
        repo = Repo(os.path.join(workspace(), "project"))
        repo.commit("README.md")
        os.mkdir(os.path.join(repo.path, "before"), 0o000)
        task = Task.shell(HIDES, *flags, "--accept", "test -e seen/b", project=repo.path)
        task.wait_for("completed", within_s=60)
        told = "\n".join(task.json("outputs", "command_run.gate_result.json")["reasons"])
        assert "/hidden cannot be read, so what is in it was not judged" in told
        assert "/before" not in told
        assert "/hidden cannot be read" in task.read("outputs", "_summary.md").decode()
        os.rmdir(os.path.join(repo.path, "before"))
        assert holdfast("rm", "--force", task.id).returncode == 0

    powers.without(body)


def test_the_gate_of_a_pipeline_says_what_it_cannot_read(home: str) -> None:
    def body() -> None:
        repo = Repo(os.path.join(workspace(), "project"))
        repo.commit("README.md")
        hides = Scenario().tool(
            "sh", command="mkdir hidden; echo a > hidden/a; chmod 000 hidden; echo x > b.txt"
        )
        written = Written({"scripted_impl": played("impl", before=hides)}, project=repo, workspace="worktree")
        task = written.run()
        assert "/hidden cannot be read" in "\n".join(gate(task, "scripted_impl")["warnings"])
        assert holdfast("rm", "--force", task.id).returncode == 0

    powers.without(body)


@pytest.mark.parametrize("hidden", ["objects", "refs/heads/holdfast"])
def test_commits_of_a_sandbox_arrive(home: str, hidden: str) -> None:
    """Its agent has hidden its private git data. The next attempt can commit again."""
    need_sandbox()
    repo = Repo(os.path.join(os.path.dirname(home), "project"))
    repo.commit("a")

    def body() -> None:
        commit = "git add . && git -c user.name=A -c user.email=a@example.org commit -qm agent"
        hide = f'chmod -R 000 "$(git rev-parse --git-common-dir)/{hidden}"'
        script = f"echo new >> b; {commit} || exit 3; {hide}; [ $(wc -l < b) = 2 ] || exit 1"
        task = Task.shell(script, *EAGER, "--sandbox", "--worktree", project=repo.path)
        task.wait_for("failed", within_s=60)
        retried = holdfast("retry", task.id)
        assert retried.returncode == 0, retried.stderr
        task.wait_for("completed", within_s=60)
        commits = repo.git("log", "--format=%s", f"main..holdfast/{task.id}").split()
        assert commits == ["agent", "agent"]

    powers.without(body)
