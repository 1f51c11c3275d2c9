"""Bad input: a clear error, a hint, the right exit status, and no data is lost."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.support import kin, processes
from tests.support.tasks import Task, holdfast, workspace
from tests.support.tools import need
from tests.support.waiting import eventually

NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")


@pytest.fixture(autouse=True)
def alone(home: str) -> Iterator[None]:
    """No keeper: the tests start the runners."""
    lock = kin.alone(home)
    yield
    os.close(lock)


def tree(path: str) -> dict[str, str]:
    """Every file below a directory with its hash: to see that nothing changed."""
    found = {}
    for folder, directories, files in os.walk(path):
        found.update({os.path.join(folder, name): "directory" for name in directories})
        for name in files:
            full = os.path.join(folder, name)
            with open(full, "rb") if os.path.isfile(full) else open(os.devnull, "rb") as file:
                found[full] = hashlib.sha256(file.read()).hexdigest()
    return found


def refused(*args: str, status: int = 2, **given: object) -> str:
    """Run a command that must fail with `status`; returns its stderr: an error and perhaps a hint, no
    traceback."""
    done = holdfast(*args, **given)
    assert done.returncode == status, (done.returncode, done.stderr)
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert lines[0].startswith("error: "), done.stderr
    assert all(line.startswith(("error: ", "hint: ")) for line in lines), done.stderr
    return done.stderr


def nothing_made(home: str) -> bool:
    return not os.path.isdir(os.path.join(home, "tasks")) or os.listdir(os.path.join(home, "tasks")) == []


def wrote(name: str, data: bytes = b"", mode: int = 0o600) -> str:
    path = os.path.join(workspace(), name)
    with open(path, "wb") as file:
        file.write(data)
    os.chmod(path, mode)
    return path


# ── what is wrong as written: exit 2, nothing changed ──


@pytest.mark.req("LCH-8", "SUP-7")
@pytest.mark.parametrize(
    ("args", "error", "hint"),
    [
        (["--agent", "scriptd", "do it"], "no agent named 'scriptd'", "did you mean 'scripted'?"),
        (["--agent", "", "do it"], "no agent named ''", "agents: "),
        (["--agent", "../../etc", "do it"], "no agent named", "agents: "),
        ([], "neither a prompt nor a command", "-- COMMAND"),
        (["--"], "no command was given", "-- COMMAND"),
        (["--agent", "command"], "no command was given", "-- COMMAND"),
        (["--", "no-such-program-anywhere"], "no-such-program-anywhere: command not found", "PATH"),
        (["--", "./missing"], "./missing: command not found", "spelling"),
        (["--", "/etc/passwd"], "/etc/passwd is not executable", "it does not look like a program"),
        (["--", "/tmp"], "/tmp is a directory", "program"),
        (["--", ""], "no command was given", "COMMAND"),
        (["--agent", "scripted"], "no prompt for scripted", "PROMPT"),
        (["--agent", "scripted", "-f", "missing.md"], "cannot read the prompt file missing.md", "path"),
        (["--agent", "scripted", "-f", "/"], "cannot read the prompt file /", "path"),
        (
            ["--agent", "scripted", "-f", "x.md", "do it"],
            "a prompt and --file exclude each other",
            "one of them",
        ),
        (["--project", "nowhere", "--", "true"], "nowhere does not exist", "--project"),
        (["--project", "/etc/passwd", "--", "true"], "/etc/passwd is not a directory", "--project"),
        (
            ["-o", "nonsense", "--agent", "scripted", "hi"],
            "--option nonsense: not KEY=VALUE",
            "give it a value: --option nonsense=VALUE",
        ),
        (["--leftovers", "burn", "--", "true"], "'burn' is not one of", "--leftovers report|kill|keep"),
        (["--no-such-flag", "--", "true"], "--no-such-flag", "--help"),
        (["one", "two", "--", "true"], "two", "--help"),
    ],
)
def test_a_task_that_cannot_be_started_as_written(args: list[str], error: str, hint: str, home: str) -> None:
    said = refused("run", "-d", *args, cwd=workspace())
    assert error in said
    assert hint in said
    assert nothing_made(home)


def test_a_script_of_ones_own_may_be_made_executable(home: str) -> None:
    path = os.path.join(workspace(), "script")
    with open(path, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\n")
    assert f"hint: chmod +x {path}" in refused("run", "--", path, cwd=workspace())
    assert nothing_made(home)


@pytest.mark.req("LCH-8")
@pytest.mark.parametrize(
    "task_id",
    ["a/b", "..", ".", "../x", "/etc", ".hidden", "-x", "_x", "a b", "a\nb", "ä", "a" * 65, "~", "a*"],
)
def test_an_id_that_is_no_id(task_id: str, home: str) -> None:
    said = refused("run", "-d", f"--id={task_id}", "--", "true", cwd=workspace())
    assert "not a task id" in said
    assert "hint: an id starts with a letter or digit" in said
    assert nothing_made(home)
    # The same text wherever a task is named; a path is never followed.
    if not task_id.startswith("-"):
        assert "not a task id" in refused("show", task_id, "--json")


@pytest.mark.req("LCH-8")
def test_the_longest_id_and_odd_but_valid_ones_work(home: str) -> None:
    for task_id in ("a" * 64, "0", "A.b_c-D", "run"):
        done = holdfast("run", "-d", "--id", task_id, "--", "true", cwd=workspace())
        assert (done.returncode, done.stdout) == (0, task_id + "\n"), done.stderr
        Task(os.path.join(home, "tasks", task_id)).wait_for("completed")


@pytest.mark.req("SUP-4", "SUP-5", "SUP-7")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MONITOR_BASE_INTERVAL", "soon"),
        ("MONITOR_BASE_INTERVAL", "0"),
        ("MONITOR_BASE_INTERVAL", "-5"),
        ("MONITOR_BASE_INTERVAL", "nan"),
        ("MONITOR_BASE_INTERVAL", "1e999"),
        ("MONITOR_MAX_INTERVAL", "1.2.3"),
        ("MONITOR_GRACE_PERIOD", "5 minutes"),
        ("MONITOR_DEADLINE", "tomorrow"),
        ("MONITOR_DEADLINE", "h"),
        ("MONITOR_MAX_RETRIES", "many"),
        ("MONITOR_MAX_RETRIES", "1.5"),
        ("MONITOR_MAX_RETRIES", "-1"),
    ],
)
def test_nonsense_in_the_monitor_variables(name: str, value: str, home: str) -> None:
    said = refused("run", "-d", "--", "true", env={name: value}, cwd=workspace())
    assert f"error: {name}" in said
    assert nothing_made(home)


@pytest.mark.req("SUP-7")
@pytest.mark.parametrize(
    "flag",
    [
        "--deadline=x",
        "--deadline=",
        "--deadline=-1h",
        "--grace=1y",
        "--stale=abc",
        "--max-retries=none",
        "--output-limit=1x",
        "--stop-pause=..",
        "--base-interval=0s",
        "--max-interval=١٢x",
    ],
)
def test_bad_durations_and_numbers(flag: str, home: str) -> None:
    said = refused("run", "-d", flag, "--", "true", cwd=workspace())
    assert f"error: {flag.partition('=')[0]}" in said
    assert nothing_made(home)


@pytest.mark.req("SUP-4", "SUP-5")
def test_empty_monitor_variables_mean_nothing_and_flags_beat_them(home: str) -> None:
    env = {"MONITOR_DEADLINE": "", "MONITOR_MAX_RETRIES": "3", "MONITOR_GRACE_PERIOD": "7"}
    task = Task.start("--max-retries", "4", "--deadline", "none", "--", "true", env=env)
    task.wait_for("completed")
    limits = task.events("task.created")[0]["spec"]["limits"]
    assert (limits["max_retries"], limits["grace_s"], limits["deadline_s"]) == (4, 7.0, None)


@pytest.mark.req("SUP-7")
def test_commands_that_are_none(home: str) -> None:
    assert "id you mean 'show'?" in refused("shwo", "x")
    assert "for example: holdfast show" in refused("show")
    assert "--help" in refused("show", "a", "b")
    assert "--timeout" in refused("wait", kin.make("--", "true").id, "--timeout", "soon")


@pytest.mark.req("SUP-7")
def test_a_prompt_file_that_may_not_be_read(home: str) -> None:
    path = wrote("secret.md", b"hello", 0o000)
    said = complaint(without_power("run", "-d", "--agent", "scripted", "-f", path), 2)
    assert f"error: cannot read the prompt file {path}: Permission denied" in said
    assert nothing_made(home)


# ── tasks that are there, or not: exit 2 and 3 ──


@pytest.mark.req("LCH-9")
def test_a_taken_id_is_refused_and_the_task_stays_as_it_was(home: str) -> None:
    task = Task.start("--id", "mine", "--", "echo", "first")
    task.wait_for("completed")
    eventually(lambda: not processes.marked(task.packet), what="the runner is gone")
    before = tree(task.packet)
    said = refused("run", "-d", "--id", "mine", "--", "true", cwd=workspace())
    assert "task mine already exists" in said
    assert "hint: choose another id" in said
    assert tree(task.packet) == before
    assert os.listdir(os.path.join(home, "tasks")) == ["mine"]


@pytest.mark.req("LCH-9")
def test_of_racing_duplicates_one_wins_and_nothing_is_left_of_the_others(home: str) -> None:
    argv = [sys.executable, "-m", "holdfast", "run", "-d", "--id", "mine", "--"]
    racers = [
        subprocess.Popen(
            [*argv, "sh", "-c", f"echo {number}"],
            cwd=workspace(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for number in range(8)
    ]
    outputs = [racer.communicate(timeout=60) for racer in racers]
    assert sorted(racer.returncode for racer in racers) == [0] + [2] * 7
    assert sum(b"task mine already exists" in err for _, err in outputs) == 7
    winner = next(number for number, racer in enumerate(racers) if racer.returncode == 0)
    task = Task(os.path.join(home, "tasks", "mine"))
    assert task.wait_for("completed")["output_tail"] == str(winner)
    assert os.listdir(os.path.join(home, "tasks")) == ["mine"]


@pytest.mark.req("LCH-9")
def test_generated_ids_do_not_collide(home: str) -> None:
    script = "from holdfast import ids; print(*[ids.new_task_id('x') for _ in range(50)])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=30, check=True)
    assert len(set(done.stdout.split())) == 50


@pytest.mark.req("SUP-7")
def test_unknown_tasks_and_prefixes(home: str) -> None:
    assert "no task 'x'" in refused("show", "x", status=3)  # no home yet
    for task_id in ("alpha", "alphabet", "beta"):
        kin.make("--", "true", task_id=task_id)
    before = tree(home)
    for verb in ("show", "stop", "interrupt", "resume", "retry", "wait"):
        said = refused(verb, "gamma", status=3)
        assert f"error: no task 'gamma' in {home}" in said
        assert "hint: " in said
    said = refused("stop", "al", status=3)
    assert "error: 'al' is ambiguous: alpha, alphabet" in said
    assert "hint: type more of the id" in said
    assert tree(home) == before
    # An id that is a prefix of another one is found, and so is an unambiguous prefix.
    assert json.loads(holdfast("show", "alpha", "--json").stdout)["task_id"] == "alpha"
    assert json.loads(holdfast("show", "b", "--json").stdout)["task_id"] == "beta"


# ── files of a packet that are not what they should be ──


@pytest.mark.req("PKT-10", "SUP-7")
@pytest.mark.parametrize(
    "data", [b"", b"{", b"null", b'"text"', b"\xff\xfe", b'{"schema": "holdfast.manifest/1"}', b"[" * 99_999]
)
def test_a_corrupt_manifest_is_read_from_the_journal_and_rewritten(data: bytes) -> None:
    task = kin.make("--", "sh", "-c", "exit 0")
    with open(task.path("manifest.json"), "wb") as file:
        file.write(data)
    done = holdfast("show", task.id, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["status"] == "spawning"
    assert task.read("manifest.json") == data  # a view writes nothing
    assert kin.run_runner(task) == 0
    assert task.manifest()["status"] == "completed"


@pytest.mark.req("PKT-10")
@pytest.mark.parametrize(
    "torn", [b'{"id":"01', b"\0" * 100, b'{"type":"task.moved"}\n', b"nonsense\n", b"x" * 300_000]
)
def test_a_torn_end_of_the_journal_is_cut_off_and_recorded(torn: bytes) -> None:
    task = kin.make("--", "sh", "-c", "exit 0")
    whole = task.read("events.jsonl")
    with open(task.path("events.jsonl"), "ab") as file:
        file.write(torn)
    assert json.loads(holdfast("show", task.id, "--json").stdout)["status"] == "spawning"
    assert task.read("events.jsonl") == whole + torn
    assert kin.run_runner(task) == 0
    assert task.read("events.jsonl").startswith(whole)
    repaired = task.events("journal.repaired")[0]
    assert repaired["dropped_bytes"] == len(torn)
    assert torn.decode("utf-8", "backslashreplace").startswith(repaired["fragment"][:4096])
    assert task.status() == "completed"


def damage(task: Task, data: bytes) -> None:
    """Replace its journal, and remove the manifest that was derived from it."""
    with open(task.path("events.jsonl"), "wb") as file:
        file.write(data)
    os.unlink(task.path("manifest.json"))


@pytest.mark.req("PKT-10")
@pytest.mark.parametrize("end", [b"", b'{"to'])
def test_nonsense_in_a_journal_is_put_aside_and_a_person_is_asked(end: bytes) -> None:
    task = kin.make("--", "sh", "-c", "exit 0")
    whole = task.read("events.jsonl")
    damage(task, data := whole + b"nonsense\n" + whole.replace(b"task.created", b"future.event") + end)
    assert kin.run_runner(task) == 0
    assert task.status() == "interrupted"
    assert task.read("events.jsonl").startswith(whole)
    assert task.read("events.jsonl.forged-1") == data
    assert os.listdir(task.path("attempts")) == []


@pytest.mark.req("PKT-10")
@pytest.mark.parametrize("case", ["empty", "only a torn line", "only nonsense"])
def test_a_journal_of_which_nothing_can_be_read_is_kept_and_starts_nothing(case: str) -> None:
    task = kin.make("--", "sh", "-c", "exit 0")
    whole = task.read("events.jsonl")
    data = {"empty": b"", "only a torn line": whole[:-20], "only nonsense": b"nonsense\n"}[case]
    damage(task, data)
    for verb in (["show", task.id], ["show", task.id, "--json"]):
        said = refused(*verb, status=3)
        assert "events.jsonl" in said
        assert "hint: " in said
    assert kin.run_runner(task) == 3
    assert task.read("events.jsonl.forged-1") == data
    assert os.listdir(task.path("attempts")) == []


@pytest.mark.req("PKT-10")
def test_a_stop_of_a_task_whose_journal_is_broken_says_so_in_time_and_loses_nothing() -> None:
    task = kin.make("--", "sh", "-c", "exit 0")
    data = b"nonsense\n" + task.read("events.jsonl")
    with open(task.path("events.jsonl"), "wb") as file:
        file.write(data)
    assert "its journal is unreadable" in refused("stop", task.id, status=3)
    assert task.read("events.jsonl.forged-1") == data


@pytest.mark.req("PKT-10", "SUP-7")
@pytest.mark.parametrize("name", ["identity.json", "exit.json", "lock"])
def test_a_corrupt_record_of_an_attempt_kills_no_runner(name: str) -> None:
    task = Task.shell("[ $HOLDFAST_RESUME_COUNT = 0 ] || exit 0; " + kin.WAIT)
    agent, runner, recorder = task.agent_pid(), task.runner_pid(), kin.recorder_pid(task)
    kin.kill(runner, recorder, agent)
    with open(os.path.join(task.attempts()[0], name), "wb") as file:
        file.write(b'{"boot_id": 5, "pid": "x"')
    task.start_runner()
    assert task.wait_for("completed")["attempt"] == 2


@pytest.mark.req("SUP-7")
@pytest.mark.parametrize("data", [b"{}", b'{"boot_id": 5, "pid": "x", "start_time": null}'])
@pytest.mark.parametrize("name", ["identity.json", "exit.json"])
def test_a_record_with_the_wrong_fields_kills_no_runner(name: str, data: bytes) -> None:
    task = Task.shell("[ $HOLDFAST_RESUME_COUNT = 0 ] || exit 0; " + kin.WAIT)
    agent, runner, recorder = task.agent_pid(), task.runner_pid(), kin.recorder_pid(task)
    kin.kill(runner, recorder, agent)
    with open(os.path.join(task.attempts()[0], name), "wb") as file:
        file.write(data)
    task.start_runner()
    assert task.wait_for("completed")["attempt"] == 2


@pytest.mark.req("SUP-7")
def test_a_runner_of_what_is_no_task(home: str, place) -> None:
    for argv, status in (([], 2), (["a", "b"], 2), ([os.path.join(home, "none")], 3), (["/etc/passwd"], 3)):
        argv = [sys.executable, "-m", "holdfast.runner", *argv]
        done = subprocess.run(argv, capture_output=True, timeout=30, check=False)
        assert done.returncode == status, done.stderr
        assert b"Traceback" not in done.stderr
    empty = os.path.join(place.root, "empty")
    os.mkdir(empty)
    assert kin.run_runner(Task(empty)) == 3
    assert set(os.listdir(empty)) <= {"runner.lock"}


# ── homes ──


def without_power(*args: str, home: str | None = None) -> subprocess.CompletedProcess[str]:
    """A command that obeys file modes: root drops the capabilities to bypass them."""
    argv = [sys.executable, "-m", "holdfast", *args]
    if os.geteuid() == 0:
        need("setpriv")
        argv = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all", *argv]
    env = {**os.environ, "HOLDFAST_HOME": home or os.environ["HOLDFAST_HOME"]}
    return subprocess.run(
        argv, env=env, cwd=workspace(), capture_output=True, timeout=30, text=True, check=False
    )


def complaint(done: subprocess.CompletedProcess[str], status: int) -> str:
    assert done.returncode == status, done.stderr
    assert [line.split(":")[0] for line in done.stderr.splitlines()] == ["error", "hint"], done.stderr
    return done.stderr


@pytest.mark.req("LCH-2")
def test_a_read_only_home(place) -> None:
    path = os.path.join(place.root, "fixed")
    os.makedirs(os.path.join(path, "tasks"))
    for folder in (os.path.join(path, "tasks"), path):
        os.chmod(folder, 0o500)
    said = complaint(without_power("run", "-d", "--", "true", home=path), 3)
    assert "Permission denied" in said
    assert os.listdir(os.path.join(path, "tasks")) == []
    missing = os.path.join(path, "below")
    said = complaint(without_power("run", "-d", "--", "true", home=missing), 3)
    assert f"cannot create the home {missing}" in said
    said = complaint(without_power("run", "-d", "--", "true", home=wrote("plain")), 2)
    assert "is a file" in said


@pytest.mark.req("SUP-7")
def test_a_packet_that_became_read_only_takes_a_request_all_the_same() -> None:
    task = kin.make("--", "true")
    os.chmod(task.path("inbox"), 0o500)
    done = without_power("stop", task.id)
    assert (done.returncode, done.stderr) == (0, f"stopped {task.id}\n")
    assert os.listdir(task.path("inbox")) == []
    assert os.stat(task.path("inbox")).st_mode & 0o777 == 0o700


@pytest.mark.req("LCH-2")
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702, 0o720])
def test_a_home_that_others_can_write(mode: int, place) -> None:
    path = os.path.join(place.root, "open")
    os.mkdir(path)
    os.chmod(path, mode)
    said = refused("run", "-d", "--", "true", env={"HOLDFAST_HOME": path}, cwd=workspace())
    assert f"other users can write to the home {path} (mode {mode:04o})" in said
    assert f"hint: chmod go-w {path}" in said
    assert nothing_made(path)


@pytest.mark.req("LCH-2")
@as_root
def test_a_home_of_another_user(place) -> None:
    path = os.path.join(place.root, "theirs")
    os.mkdir(path, 0o700)
    os.chown(path, NOBODY, NOBODY)
    said = refused("run", "-d", "--", "true", env={"HOLDFAST_HOME": path}, cwd=workspace())
    assert f"belongs to another user (uid {NOBODY})" in said
    assert "hint: set HOLDFAST_HOME" in said
    assert nothing_made(path)
    assert "cannot read" in complaint(without_power("show", "made", home=path), 3)


@pytest.mark.req("LCH-2")
def test_a_new_home_and_its_tasks_are_private(place) -> None:
    path = os.path.join(place.root, "new", "home")
    lock_free = {"HOLDFAST_HOME": path}
    done = holdfast(
        "run", "-d", "--id", "it", "--", "sh", "-c", "echo hi; exit 0", env=lock_free, cwd=workspace()
    )
    assert done.returncode == 0, done.stderr
    task = Task(os.path.join(path, "tasks", "it"))
    task.wait_for("completed")
    eventually(lambda: not processes.marked(task.packet), what="the runner is gone")
    for folder, directories, files in os.walk(path):
        for name in directories:
            assert os.stat(os.path.join(folder, name)).st_mode & 0o077 == 0, name
        for name in files:
            assert os.lstat(os.path.join(folder, name)).st_mode & 0o077 == 0, name
    assert task.manifest()["tmpdir"] == task.packet


# ── a full disk ──


@pytest.fixture
def small_home(place, monkeypatch: pytest.MonkeyPatch, home: str) -> Iterator[str]:
    """A home on a disk of one megabyte."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount")
    path = os.path.join(place.root, "small")
    os.mkdir(path, 0o700)
    argv = ["mount", "-t", "tmpfs", "-o", "size=1m,mode=0700", "tmpfs", path]
    if subprocess.run(argv, capture_output=True, timeout=30, check=False).returncode != 0:
        pytest.skip("cannot mount here")
    monkeypatch.setenv("HOLDFAST_HOME", path)
    lock = kin.alone(path)
    yield path
    os.close(lock)
    eventually(lambda: not processes.marked(path + "/tasks"), what="nobody uses the disk")
    subprocess.run(["umount", "-l", path], timeout=30, check=True)


def fill(path: str) -> str:
    """Fill the rest of the disk."""
    filler = os.path.join(path, "filler")
    with open(filler, "ab", buffering=0) as file:
        for size in (65536, 4096, 1):
            try:
                while file.write(b"x" * size) == size:
                    pass
            except OSError:
                continue
    return filler


@pytest.mark.req("PKT-10")
def test_a_full_disk_refuses_a_task_and_leaves_nothing_behind(small_home: str) -> None:
    old = Task.start("--", "echo", "old")
    old.wait_for("completed")
    eventually(lambda: not processes.marked(old.packet), what="the runner is gone")
    filler = fill(small_home)
    before = tree(old.packet)
    said = refused("run", "-d", "--id", "new", "--", "true", cwd=workspace(), status=3)
    assert "No space left on device" in said
    assert "hint: free some space; no existing data is lost" in said
    assert os.listdir(os.path.join(small_home, "tasks")) == [old.id]
    said = refused("retry", old.id, "--from", "command_run", status=3)
    assert "No space left on device" in said
    assert tree(old.packet) == before
    assert holdfast("show", old.id).returncode == 0
    os.unlink(filler)
    Task.start("--id", "new", "--", "true").wait_for("completed")


@pytest.mark.req("PKT-10")
def test_a_disk_that_fills_up_under_a_running_task_is_waited_out(small_home: str) -> None:
    task = Task.shell("echo before; " + kin.WAIT + "echo after; exit 0")
    task.wait_for_log("before")
    agent = task.agent_pid()
    filler = fill(small_home)
    kin.go()
    eventually(lambda: not processes.is_alive(agent), what="the agent ended")
    assert task.runner_pid()
    os.unlink(filler)
    manifest = task.wait_for("completed")
    assert manifest["exit_code"] == 0
    assert len(task.events("runner.started")) == 1
    assert len(task.events("attempt.ended")) == 1


@pytest.mark.req("PKT-10")
@pytest.mark.parametrize(
    "point",
    [
        "journal.before_append",
        "atomic.before_fsync",
        "atomic.before_rename",
        "ingest.shown",
        "ingest.indexed",
    ],
)
def test_a_disk_that_is_full_for_a_moment_loses_nothing(point: str, place) -> None:
    for nth in (1, 3):
        env = {"HOLDFAST_FAILPOINT": f"{point}=enospc@{nth}"}
        env["HOLDFAST_FAILPOINT_ONCE"] = os.path.join(place.root, f"once-{nth}")
        task = kin.make("--", "sh", "-c", "echo one; echo two; exit 0", task_id=f"t{nth}")
        assert kin.run_runner(task, env) == 0, task.read("events.jsonl")
        assert task.wait_for("completed")["output_tail"] == "one\ntwo"
        assert len(task.events("attempt.ended")) == 1
        assert [name for name in os.listdir(task.packet) if name.endswith(".tmp")] == []
    shutil.rmtree(os.path.join(place.root, "home", "tasks"))


@pytest.mark.parametrize(
    "args",
    [
        ["logs", "it", "--lines", "9" * 5000],
        ["logs", "it", "--attempt", "9" * 5000],
        ["attach", "it", "--lines", "-1"],
        ["prune", "--keep", "9" * 5000],
        ["prune", "--max-size", "inf"],
        ["prune", "--max-size", "-1"],
        ["wait", "it", "--timeout", ""],
        ["report", "--since", ""],
        ["up", "--slots", "9" * 5000],
    ],
    ids=lambda args: " ".join(args)[:30],
)
def test_absurd_numbers(args: list[str]) -> None:
    Task.start("--id", "it", "--", "true").wait_for("completed")
    said = complaint(holdfast(*args), 2)
    assert args[-2] in said
