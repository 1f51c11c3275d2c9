"""holdfast queue: list, fill and reorder the queue."""

from __future__ import annotations

import json
import os
import pwd
import re
import subprocess

import jsonschema
import pytest

from contracts import schema
from holdfast.packet import load
from holdfast.queue.local import LocalQueue
from holdfast.store.layout import Home
from holdfast.testing import Scenario
from tests.support import loops
from tests.support.tasks import holdfast, workspace

SAMPLES = os.path.join(os.path.dirname(__file__), os.pardir, os.pardir, "captures", "sources")


@pytest.fixture(autouse=True)
def in_a_home(home: str) -> None:
    workspace()


def queue(*args: str, **given) -> subprocess.CompletedProcess[str]:
    return holdfast("queue", *args, cwd=workspace(), **given)


def submit(task_id: str, *args: str) -> None:
    done = holdfast("submit", "--id", task_id, *args, "--", "true", cwd=workspace())
    assert done.returncode == 0, done.stderr


def told(name: str, *args: str) -> dict:
    """The --json output of an action, checked against its schema."""
    done = queue(*args, "--json")
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    jsonschema.validate(data, schema.schemas()[name])
    return data


def states() -> dict[str, str]:
    return {item["task_id"]: item["state"] for item in told("queue", "ls")["items"]}


# ── list ──


def test_an_empty_queue_is_no_error() -> None:
    done = queue("ls")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "the queue is empty\n")
    assert queue("check").stdout == "0\n"
    assert queue("next").returncode == 3


@pytest.mark.req("QUE-1", "W-C6")
def test_next_check_and_show_change_nothing() -> None:
    submit("low", "--priority", "low")
    submit("high", "--priority", "high")
    submit("late", "--after", "low")
    before = told("queue", "ls")
    assert [item["task_id"] for item in before["items"]] == ["high", "low", "late"]
    assert queue("next").stdout == "high\n"
    assert told("queue-item", "next")["task_id"] == "high"
    assert told("queue-check", "check") == {
        "schema": "holdfast.queue-check/1",
        "ready": 2,
        "queued": 3,
        "claimed": 0,
        "held": 0,
        "poison": 0,
        "paused": [],
    }
    assert "waits_for:    low" in queue("show", "late").stdout
    assert told("queue-item", "show", "hi")["priority"] == 10
    assert told("queue", "show") == before
    assert told("queue", "ls") == before
    assert "after low" in queue("ls").stdout


def test_a_packet_whose_submit_was_killed_is_seen(home: str) -> None:
    submit("a")
    for suffix in ("", "-wal", "-shm"):
        path = os.path.join(home, f"queue.db{suffix}")
        if os.path.exists(path):
            os.unlink(path)
    assert queue("next").stdout == "a\n"


# ── add ──


@pytest.mark.req("QUE-1", "W-C6")
def test_an_added_item_is_there_after_check(home: str) -> None:
    done = queue("add", '{"id": "issue-123", "title": "Fix it", "priority": 7, "command": ["true"]}')
    assert (done.returncode, done.stdout) == (0, "issue-123\n")
    assert queue("check").stdout == "1\n"
    assert queue("check").stdout == "1\n"
    spec = load.fold(Home(home).packet("issue-123")).spec
    assert (spec.task_name, spec.command) == ("Fix it", ["true"])
    assert spec.work == {"id": "issue-123", "details": "Fix it", "source": "queue add", "url": ""}


def test_an_item_for_an_agent_may_come_from_stdin(home: str) -> None:
    item = json.dumps({"id": "issue-1", "title": "Fix it", "prompt": "Fix the thing.", "agent": "command"})
    assert queue("add", item).returncode == 2  # a command needs one
    done = queue("add", "-", stdin=b'{"id": "x/1", "title": "T", "command": "exit 3", "pool": "p"}')
    assert done.stdout == "x-1\n", done.stderr
    assert told("queue-item", "show", "x-1")["pool"] == "p"


def test_without_an_agent_nothing_is_made(home: str) -> None:
    done = queue("add", '{"id": "a", "title": "b"}')
    assert done.returncode == 2
    assert "neither an agent nor a command" in done.stderr
    assert "'holdfast queue add ITEM --agent NAME'" in done.stderr
    assert "queue add --" not in done.stderr
    assert os.listdir(os.path.join(home, "tasks")) == []


def test_what_is_there_already_is_not_added_again() -> None:
    submit("a")
    done = queue("add", '{"id": "a", "command": ["true"]}')
    assert done.returncode == 2
    assert "task a already exists" in done.stderr


@pytest.mark.req("W-C6")
def test_an_import_adds_what_is_new_and_leaves_the_rest_alone(home: str) -> None:
    path = os.path.join(workspace(), "items.jsonl")
    with open(path, "w", encoding="utf-8") as file:
        for name in ("a", "b", "c"):
            file.write(
                json.dumps(
                    {
                        "id": name,
                        "command": ["true"],
                        "priority": "low",
                        "after": ["c"] if name == "a" else [],
                    }
                )
                + "\n"
            )
    submit("b", "--priority", "high")
    data = told("queue-import", "import", "--trust-project", path)
    assert (data["added"], data["skipped"]) == (["c", "a"], ["b"])
    assert told("queue-item", "show", "b")["priority"] == 10
    assert told("queue-item", "show", "a")["waits_for"] == ["c"]
    again = queue("import", "--trust-project", path)
    assert (again.stdout, again.stderr) == ("", "0 items added, 3 already there\n")
    assert queue("import", "--trust-project", path, "--most", "1000").returncode == 2


def items(*given: dict) -> str:
    """A file of work items."""
    path = os.path.join(workspace(), "given.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump([{"command": "true", **each} for each in given], file)
    return path


@pytest.mark.req("QUE-5")
def test_an_import_goes_on_behind_what_it_took_in_before() -> None:
    path = items(*({"id": f"t{n}"} for n in range(5)))
    first = queue("import", "--trust-project", path, "--most", "2")
    assert (first.stdout, first.stderr) == (
        "t0\nt1\n",
        "2 items added, 0 already there, 3 left for the next import\n",
    )
    data = told("queue-import", "import", "--trust-project", path, "--most", "2")
    assert (data["added"], data["skipped"], data["left"]) == (["t2", "t3"], ["t0", "t1"], 1)
    assert queue("import", "--trust-project", path, "--most", "2").stdout == "t4\n"


@pytest.mark.req("QUE-5")
def test_one_bad_item_does_not_block_those_behind_it() -> None:
    path = items(
        {"id": "g1"}, {"id": "g2", "project": "/no/such"}, {"id": "g3"}, {"priority": "soonish", "id": "g4"}
    )
    done = queue("import", "--trust-project", path)
    assert (done.returncode, done.stdout) == (3, "g1\ng3\n")
    assert "2 items could not be imported" in done.stderr
    assert "g2: the project directory /no/such does not exist" in done.stderr
    assert "item 4: not a priority: 'soonish'" in done.stderr
    assert list(states()) == ["g1", "g3"]
    nothing = queue("import", "--trust-project", items({"id": "g2", "project": "/no/such"}))
    assert (nothing.returncode, nothing.stdout) == (2, "")


def test_a_line_that_is_none_does_not_block_the_others() -> None:
    given = b'{"id": "a", "command": "true"}\n{"id": \n{"id": "b", "command": "true"}\n'
    done = queue("import", "-", stdin=given)
    assert (done.returncode, done.stdout) == (3, "a\nb\n")
    assert "-: line 2 is not JSON" in done.stderr
    assert queue("import", "-", stdin=b"<html>\n<p>\n").returncode == 2


def test_a_list_is_added_whole_or_not_at_all(home: str) -> None:
    submit("there")
    for bad in (
        {"id": "there"},
        {"id": "k1"},
        {"id": "k2", "project": "/no/such"},
        {"id": "k2", "after": "k2"},
    ):
        given = json.dumps([{"command": "true", **each} for each in ({"id": "k1"}, bad, {"id": "k3"})])
        done = queue("add", given)
        assert (done.returncode, done.stdout) == (2, ""), done.stderr
        assert os.listdir(os.path.join(home, "tasks")) == ["there"]


# ── dependencies ──


def circle() -> str:
    return json.dumps(
        [{"id": "a", "command": "true", "after": "b"}, {"id": "b", "command": "true", "after": "a"}]
    )


@pytest.mark.req("QUE-1")
def test_a_circle_is_refused(home: str) -> None:
    done = queue("add", circle())
    assert done.returncode == 2
    assert "b waits for itself: it is after a, which is after b" in done.stderr
    done = queue("import", "--trust-project", items({"id": "ok"}, *json.loads(circle())))
    assert (done.returncode, done.stdout) == (3, "ok\n")
    assert "b waits for itself" in done.stderr


@pytest.mark.req("QUE-1")
def test_a_circle_that_is_made_one_by_one_is_held_until_a_person_opens_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert queue("add", '{"id": "a", "command": "true", "after": "b"}').returncode == 0
    assert told("queue-item", "show", "a")["reason"] == "b is not in this home"
    assert queue("add", '{"id": "b", "command": "true", "after": "a"}').returncode == 0
    assert states() == {"a": "queued", "b": "held"}
    assert "b waits for itself: it is after a, which is after b" in queue("ls").stdout
    assert states() == {"a": "queued", "b": "held"}
    assert told("queue-item", "retry", "b")["state"] == "queued"
    assert queue("next").stdout == "b\n"
    monkeypatch.delenv("HOLDFAST_KEEPER")
    loops.up()
    loops.task("b").wait_for("completed")
    loops.task("a").wait_for("completed")


def test_who_waits_for_one_further_down_the_list_waits() -> None:
    given = [{"id": "x1", "command": "true", "after": "x3"}, {"id": "x3", "command": "true"}]
    assert queue("add", json.dumps(given)).stdout == "x3\nx1\n"
    assert states() == {"x3": "queued", "x1": "queued"}


def done_once(task_id: str) -> None:
    """A task that has completed."""
    assert holdfast("run", "--id", task_id, "--", "true", cwd=workspace()).returncode == 0


def test_one_may_be_after_a_task_in_the_archive() -> None:
    done_once("a")
    assert holdfast("archive", "a").returncode == 0
    submit("b", "--after", "a")
    assert (states(), told("queue-item", "show", "b")["waits_for"]) == ({"b": "queued"}, [])


@pytest.mark.parametrize("verb", [("rm", "a1"), ("prune", "--ended", "--older-than", "0s", "--yes")])
def test_what_was_done_before_it_was_removed_stays_done(home: str, verb: tuple[str, ...]) -> None:
    done_once("a1")
    submit("a2")
    submit("b", "--after", "a1", "--after", "a2")
    assert told("queue-item", "show", "b")["waits_for"] == ["a2"]
    done = holdfast(*verb)
    assert done.returncode == 0, done.stderr
    assert not os.path.exists(os.path.join(home, "tasks", "a1"))
    for name in os.listdir(home):
        if name.startswith("queue.db"):
            os.unlink(os.path.join(home, name))
    item = told("queue-item", "show", "b")
    assert (item["state"], item["waits_for"]) == ("queued", ["a2"])


def test_who_was_held_for_one_that_is_gone_waits_when_it_comes() -> None:
    queue("add", '{"id": "a", "command": "true", "after": "b"}')
    assert states() == {"a": "held"}
    submit("b")
    assert states() == {"a": "queued", "b": "queued"}
    assert told("queue-item", "show", "a")["waits_for"] == ["b"]


def test_an_option_that_is_missing_is_shown_where_an_item_has_it(home: str) -> None:
    done = queue("add", '{"title": "t"}', "--agent", "scripted")
    assert done.returncode == 2
    (hint,) = re.findall(r"^hint: for example '(.*)'$", done.stderr, re.MULTILINE)
    Scenario().result("ok").write_to(os.path.join(workspace(), "FILE"))
    done = queue("add", hint, "--agent", "scripted")
    assert done.returncode == 0, done.stderr


def test_issues_come_in_through_gh(home: str) -> None:
    # Not in the project: an agent could have put it there.
    folder = os.path.join(os.path.dirname(home), "bin")
    os.makedirs(folder)
    with open(os.path.join(folder, "gh"), "w", encoding="utf-8") as file:
        file.write(f"#!/bin/sh\ncat {os.path.abspath(SAMPLES)}/gh-issue-list.json\n")
    os.chmod(os.path.join(folder, "gh"), 0o755)
    env = {"PATH": f"{folder}:{os.environ['PATH']}"}
    scenario = os.path.join(workspace(), "config.toml")
    os.makedirs(os.path.join(workspace(), ".holdfast"))
    with open(scenario, "w", encoding="utf-8"):
        pass
    done = queue("import", "gh:label=agent", "--agent", "copilot", env=env)
    assert done.returncode == 2  # not installed: refused before anything is created
    assert os.listdir(os.path.join(home, "tasks")) == []
    with open(os.path.join(folder, "copilot"), "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\nexit 0\n")
    os.chmod(os.path.join(folder, "copilot"), 0o755)
    done = queue("import", "--from", "gh:label=agent", "--agent", "copilot", env=env)
    assert (done.returncode, done.stdout) == (0, "gh-123\ngh-98\ngh-7\n"), done.stderr
    spec = load.fold(Home(home).packet("gh-123")).spec
    assert spec.work["url"] == "https://github.com/ada/engine/issues/123"
    with open(Home(home).packet("gh-98").user_request, encoding="utf-8") as file:
        assert file.read().startswith("Say “hello” in the README")


def test_a_missing_source_is_reported() -> None:
    done = queue("import", "nowhere.json")
    assert done.returncode == 2
    assert "gh:label=NAME" in done.stderr
    assert queue("import").returncode == 2
    assert queue("import", "nowhere.json", "--from", "nowhere.json").returncode == 2
    assert queue("ls", "--from", "nowhere.json").returncode == 2


# ── reorder ──


@pytest.mark.req("QUE-1")
def test_a_worker_outside_claims_and_gives_back() -> None:
    submit("a")
    submit("b", "--after", "a")
    item = told("queue-item", "claim", "--by", "ada")
    assert (item["task_id"], item["claimed_by"], item["state"]) == ("a", "outside:ada", "claimed")
    assert queue("claim").returncode == 3
    taken = queue("claim", "a")
    assert (taken.returncode, "a cannot be claimed" in taken.stderr) == (3, True)
    assert "after a" in queue("claim", "b").stderr
    assert told("queue-item", "release", "a")["state"] == "queued"
    assert queue("release", "a").returncode == 3
    nameless = {"USER": "", "LOGNAME": ""}
    assert holdfast("queue", "claim", "a", env=nameless).returncode == 0
    assert f"for {pwd.getpwuid(os.getuid()).pw_name}" in holdfast("audit", "a").stdout


def test_a_claim_of_ours_is_not_given_back_by_hand(home: str) -> None:
    submit("a")
    with LocalQueue(Home(home)) as local:
        local.claim("keeper")
    done = queue("release", "a")
    assert (done.returncode, "holdfast stop a" in done.stderr) == (3, True)
    assert queue("rm", "a").returncode == 3


def test_a_held_item_goes_again_when_a_person_says_so(home: str) -> None:
    submit("a")
    submit("b", "--after", "a")
    assert queue("rm", "a").returncode == 0
    assert "a was stopped" in queue("ls").stdout
    assert told("queue-item", "retry", "b")["state"] == "queued"
    assert queue("retry", "b").returncode == 3


def test_a_pause_is_seen_and_lifted() -> None:
    submit("a", "--pool", "nightly")
    submit("b")
    assert "the pool nightly is paused" in queue("pause", "nightly").stderr
    assert queue("next").stdout == "b\n"
    assert told("queue-check", "pause")["paused"] == ["*", "nightly"]
    assert queue("next").returncode == 3
    assert "the queue is paused; 'holdfast queue resume'" in queue("ls").stderr
    queue("resume")
    queue("resume", "nightly")
    assert queue("next").stdout == "a\n"


def test_rm_ends_the_task_that_waited(home: str) -> None:
    submit("a")
    submit("b", "--after", "a")
    done = queue("rm", "a")
    assert (done.returncode, done.stdout) == (0, "a\n"), done.stderr
    assert load.read_manifest(Home(home).packet("a"))["status"] == "killed"
    assert states() == {"b": "held"}


def test_clear_wants_a_yes() -> None:
    submit("a")
    submit("b")
    done = queue("clear")
    assert (done.returncode, "2 queued tasks" in done.stderr) == (2, True)
    done = queue("clear", "--yes")
    assert (done.returncode, done.stderr) == (0, "2 tasks killed; 'holdfast rm' removes their files\n")
    assert states() == {}
    assert queue("clear", "--yes").stderr == "the queue is empty\n"


def test_another_priority_is_reported() -> None:
    submit("a")
    done = queue("priority", "a", "high")
    assert (done.returncode, done.stdout) == (0, "a\n")
    assert done.stderr == "a has priority 10 (was 5)\n"


@pytest.mark.parametrize(
    "args", [["retry"], ["add"], ["release"], ["fly"], ["show", "nobody"], ["add", "{"], ["add", "[]"]]
)
def test_bad_input_is_reported(args: list[str]) -> None:
    done = queue(*args)
    assert done.returncode in (2, 3)
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr


@pytest.mark.req("QUE-5")
def test_size_weights_and_order_are_settings() -> None:
    loops.settings('import_most = 2\npriorities = ["high=50", "soon=20"]\nproject_order = ["second"]\n')
    items = [{"id": name, "rig": name, "command": ["true"]} for name in ("first", "second")]
    items.append({"id": "third", "priority": "soon", "command": ["true"]})
    done = queue("import", "-", stdin=json.dumps(items).encode())
    assert done.stdout.split() == ["third", "second"]
    submit("now", "--priority", "high")
    assert [(item["task_id"], item["priority"]) for item in told("queue", "ls")["items"]] == [
        ("now", 50),
        ("third", 20),
        ("second", 5),
    ]
    loops.settings("import_most = 1000\n")
    done = queue("import", "-", stdin=b"[]")
    assert done.returncode == 2
    assert "must be from 1 to 100" in done.stderr


def test_to_look_at_the_queue_of_a_home_that_is_not_there_makes_none(
    home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = os.path.join(os.path.dirname(home), "nowhere")
    monkeypatch.setenv("HOLDFAST_HOME", nowhere)
    empty = holdfast("queue")
    assert (empty.returncode, empty.stdout, empty.stderr) == (0, "", "the queue is empty\n")
    assert json.loads(holdfast("queue", "ls", "--json").stdout)["items"] == []
    assert holdfast("queue", "next").returncode == 3
    assert holdfast("queue", "show", "it").returncode == 3
    assert holdfast("queue", "check").stdout == "0\n"
    assert not os.path.exists(nowhere)


def test_next_check_and_ls_agree_on_what_is_held(home: str) -> None:
    for task_id, flags in (("low", ()), ("late", ("--not-before", "+8h")), ("first", ("--priority", "high"))):
        assert holdfast("submit", "--id", task_id, *flags, "--", "true", cwd=workspace()).returncode == 0
    with open(os.path.join(home, "loop.json"), "w", encoding="utf-8") as file:
        json.dump({"schema": "holdfast.loop/1", "short_of": "less than 1 GB of disk is free"}, file)
    listed = [line.split()[0] for line in holdfast("queue", "ls").stdout.splitlines()[1:]]
    done = holdfast("queue", "next")
    assert (listed, done.stdout) == (["first", "low", "late"], "first\n")
    assert "less than 1 GB of disk is free" in done.stderr
    assert holdfast("queue", "check").stdout == "2\n"
    with open(os.path.join(home, "loop.json"), "w", encoding="utf-8") as file:
        json.dump({"schema": "holdfast.loop/1", "held_agents": {"command": "its limit is reached"}}, file)
    assert holdfast("queue", "ls").stdout.count("its limit is reached") == 2
    assert (holdfast("queue", "next").returncode, holdfast("queue", "check").stdout) == (3, "0\n")
