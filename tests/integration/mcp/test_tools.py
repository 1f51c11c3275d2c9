"""The tools of `holdfast mcp` do what the command line does, with its error codes."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

import jsonschema
import pytest

from holdfast import paths
from holdfast.testing import Scenario
from holdfast.views.mcp import tool_list
from tests.hostile.planting import write
from tests.support import kin
from tests.support.mcp import Client
from tests.support.packets import Written, scripted_claude
from tests.support.repos import Repo
from tests.support.tasks import Task, holdfast, workspace
from tests.support.waiting import eventually


@pytest.fixture(autouse=True)
def in_a_home(home: str) -> None:
    workspace()


@pytest.fixture
def keeper(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is submitted needs a keeper."""
    monkeypatch.delenv("HOLDFAST_KEEPER")


def task(task_id: str) -> Task:
    return Task(os.path.join(os.environ["HOLDFAST_HOME"], "tasks", task_id))


def fits(tool: str, value: dict[str, Any]) -> dict[str, Any]:
    """The value, checked by the tool's output schema."""
    (schema,) = [each["outputSchema"] for each in tool_list.TOOLS if each["name"] == tool]
    jsonschema.validate(value, schema)
    return value


def test_start_wait_and_show(keeper: None) -> None:
    with Client(cwd=workspace()) as client:
        labels = {"batch": "x"}
        made = fits("start", client.call("start", command=["echo", "hello"], labels=labels, name="greet"))
        assert made["state"] == "queued"
        waited = fits("wait", client.call("wait", labels=labels, until="all"))
        assert waited["finished"] is True
        assert waited["counts"] == {"completed": 1}
        assert [(each["id"], each["labels"]) for each in waited["tasks"]] == [(made["task_id"], labels)]
        shown = fits("show", client.call("show", task=made["task_id"]))
        assert (shown["state"], "greet" in shown["text"]) == ("completed", True)
        log = fits("show", client.call("show", task=made["task_id"], what="log"))
        assert "hello" in log["text"]
        assert log["end"] == log["size"]
        later = fits("digest", client.call("digest", since=waited["cursor"]))
        assert (later["tasks"], later["full"]) == ([], False)


def test_a_prompt_is_split_among_agents(keeper: None, monkeypatch: pytest.MonkeyPatch) -> None:
    project = Repo(os.path.join(workspace(), "project"))
    project.commit("a")
    for name, value in scripted_claude(run=Scenario().hang()).items():
        monkeypatch.setenv(name, value)
    with Client(cwd=project.path) as client:
        for more in ({"command": ["true"]}, {"prompt": "x", "after": ["y"]}, {}):
            assert client.fail("start", split=True, **more)["code"] == "usage"
        made = fits("start", client.call("start", prompt="write both", agent="claude", split=True, id="f"))
        assert made["task_id"] == "f"
        planner = task("f.plan")
        eventually(lambda: os.path.exists(planner.path("manifest.json")), 30.0, "an agent writes the plan")
        assert planner.events("task.created")[0]["spec"]["agent"] == "claude"
        client.call("stop", task="f", now=True)
        task("f").wait_for("killed", within_s=30.0)
        planner.wait_for("killed", "abandoned", within_s=30.0)


def test_wait_returns_with_a_cursor_in_time_and_tells_its_progress() -> None:
    Task.shell(kin.WAIT, "--id", "it")
    with Client() as client:
        began = time.monotonic()
        params = {
            "name": "wait",
            "arguments": {"tasks": ["it"], "timeout_s": 6},
            "_meta": {"progressToken": "t-1"},
        }
        result = client.ask("tools/call", params)["structuredContent"]
        assert 5.9 <= time.monotonic() - began < 12
        assert (result["finished"], result["counts"]) == (False, {"running": 1})
        (notice,) = [each["params"] for each in client.notices]
        assert notice["progressToken"] == "t-1"
        assert 0 < notice["progress"] <= notice["total"] == 6
        assert "1 running" in notice["message"]
        # The next one continues: nothing that has happened since is missed, and nothing is told twice.
        kin.go()
        after = client.call("wait", tasks=["it"], since=result["cursor"])
        assert [(each["id"], each["state"]) for each in after["tasks"]] == [("it", "completed")]
        assert after["finished"] is True
        again = client.call("wait", tasks=["it"], since=after["cursor"], timeout_s=0)
        assert (again["tasks"], again["finished"]) == ([], False)


def test_wait_is_never_longer_than_50_s() -> None:
    from holdfast.views.mcp import waiting

    assert waiting.MAX_WAIT_S <= 50
    wait = waiting.Wait({"timeout_s": 3600}, {})
    try:
        assert wait.look() is None
        assert wait._ends_mono - wait._began_mono == waiting.MAX_WAIT_S  # pyright: ignore[reportPrivateUsage]
    finally:
        wait.close()


def test_calls_are_answered_while_others_wait() -> None:
    Task.shell(kin.WAIT, "--id", "one")
    with Client() as client:
        first = client.post("tools/call", {"name": "wait", "arguments": {"tasks": ["one"], "until": "all"}})
        second = client.post("tools/call", {"name": "wait", "arguments": {"until": "change"}})
        assert client.ask("ping") == {}
        assert client.ask("tools/call", {"name": "show", "arguments": {"task": "one"}})["structuredContent"]
        kin.go()
        answered = {client.receive()["id"], client.receive()["id"]}
        assert answered == {first, second}


def test_a_question_is_answered() -> None:
    asking = Scenario().interrupt_request("which one?").hang().resumed(Scenario().say("thanks").result())
    Task.play(asking, "--id", "it")
    with Client() as client:
        found = client.call("wait", tasks=["it"])
        (entry,) = found["tasks"]
        assert (entry["state"], entry["needs"], entry["question"]) == ("interrupted", "answer", "which one?")
        assert client.fail("say", task="it", verb="answer")["code"] == "usage"
        said = fits("say", client.call("say", task="it", verb="answer", message="the red one"))
        assert said["task_id"] == "it"
        after = client.call("wait", tasks=["it"], since=found["cursor"])
        assert after["tasks"][0]["state"] == "completed"
    assert "the red one" in json.dumps(task("it").events())


def test_interrupt_resume_and_stop() -> None:
    Task.shell(kin.WAIT, "--id", "it")
    with Client() as client:
        client.call("say", task="it", verb="interrupt", message="wait for me")
        found = client.call("wait", tasks=["it"])
        assert found["tasks"][0]["question"] == "wait for me"
        client.call("say", task="it", verb="resume")
        eventually(lambda: client.call("show", task="it")["state"] == "running", 20, "it runs again")
        fits("stop", client.call("stop", task="it", message="enough", now=True))
        ended = client.call("wait", tasks=["it"], since=found["cursor"])
        assert ended["tasks"][0]["state"] == "killed"
        assert fits("stop", client.call("stop", task="it"))["state"] == "killed"


ERRORS = [
    ("show", {"task": "none"}, "show none"),
    ("say", {"task": "none", "verb": "resume"}, "resume none"),
    ("stop", {"task": "none"}, "stop none"),
    ("digest", {"tasks": ["none"]}, "digest none"),
    ("wait", {"tasks": ["none"]}, "wait none"),
    ("say", {"task": "done", "verb": "approve"}, "approve done"),
    ("show", {"task": "done", "what": "findings"}, "show done --findings"),
    ("show", {"task": "done", "what": "diff"}, "diff done"),
    ("start", {}, "submit"),
    ("start", {"prompt": "x", "agent": "nobody"}, "submit --agent nobody x"),
    ("start", {"command": ["no-such-program"]}, "submit -- no-such-program"),
    ("start", {"command": ["true"], "id": "done"}, "submit --id done -- true"),
    ("start", {"command": ["true"], "project": "/no/such"}, "submit --project /no/such -- true"),
    ("start", {"command": ["true"], "after": ["none"]}, "submit --after none -- true"),
]


def test_errors_have_code_and_exit_status_of_the_command_line() -> None:
    Task.shell("true", "--id", "done").wait_for("completed")
    with Client(cwd=workspace()) as client:
        for tool, arguments, line in ERRORS:
            error = client.fail(tool, **arguments)
            done = holdfast(*line.split(), cwd=workspace())
            assert error["exit"] == done.returncode, (line, error, done.stderr)
            assert " ".join(error["message"].split()) in " ".join(done.stderr.split()), (line, error)


def test_arguments_that_do_not_fit_are_refused() -> None:
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("start", {"prompt": 7}),
        ("start", {"command": "true"}),
        ("start", {"command": ["a", 7]}),
        ("start", {"labels": {"a": 1}}),
        ("start", {"permissions": "full", "prompt": "x"}),
        ("start", {"yolo": True, "prompt": "x"}),
        ("start", {"worktree": 1, "prompt": "x"}),
        ("wait", {"timeout_s": "long"}),
        ("wait", {"until": "never"}),
        ("show", {}),
        ("show", {"task": "x", "what": "environment"}),
        ("say", {"task": "x", "verb": "retry"}),
    ]
    with Client() as client:
        for tool, arguments in wrong:
            error = client.fail(tool, **arguments)
            assert (error["code"], error["exit"]) == ("usage", 2), (tool, arguments, error)
    assert not os.path.exists(os.path.join(os.environ["HOLDFAST_HOME"], "tasks"))


def test_texts_that_no_command_line_can_have_are_refused() -> None:
    with Client(cwd=workspace()) as client:
        for arguments in ({"command": ["tr\0ue"]}, {"command": ["true", "\ud800"]}, {"packet": "a\0b"}):
            error = client.fail("start", **arguments)
            assert (error["code"], error["exit"]) == ("usage", 2), (arguments, error)
    assert holdfast("ls", "-q").stdout == ""


def test_full_permissions_are_not_granted_by_a_packet() -> None:
    """What a client may not say itself, it may not write into a file either."""
    packet = Written({"scripted_impl": None}, permissions="full")
    with Client(cwd=workspace()) as client:
        error = client.fail("start", packet=packet.path, project=packet.project.path)
    assert "full cannot be granted here" in error["message"], error
    assert holdfast("ls", "-q", "--all").stdout == ""


@pytest.mark.parametrize(
    ("agent", "option", "value"),
    [
        ("claude", "permission_mode", "bypassPermissions"),
        ("codex", "sandbox", "danger-full-access"),
        ("gemini", "approval_mode", "yolo"),
    ],
)
def test_full_permissions_are_not_granted_by_an_option_of_a_packet(
    agent: str, option: str, value: str
) -> None:
    routing = {"intent": "one_shot_impl", "agent": agent, "options": {agent: {option: value}}}
    packet = Written(intent="one_shot_impl", routing=routing)
    path = _with_programs(agent)
    with Client(cwd=workspace(), env={"PATH": path}) as client:
        error = client.fail("start", packet=packet.path, project=packet.project.path)
    assert "full cannot be granted here" in error["message"], error
    assert holdfast("ls", "-q", "--all").stdout == ""


def test_full_permissions_are_not_granted_to_the_items_of_a_split_prompt() -> None:
    """Neither by the user's settings: they are about tasks that a person starts."""
    repo = Repo(workspace())
    repo.write("a.txt")
    repo.commit()
    write(paths.user_settings(), 'permissions = "full"\n')
    with Client(cwd=repo.path, env={"PATH": _with_programs("claude")}) as client:
        for flags in ({}, {"split": True}):
            error = client.fail("start", agent="claude", prompt="two things", **flags)
            assert "full cannot be granted here" in error["message"], error
    assert holdfast("ls", "-q", "--all").stdout == ""


def _with_programs(*names: str) -> str:
    """A PATH with stand-ins for programs of agents."""
    folder = os.path.join(os.path.dirname(workspace()), "programs")
    for name in names:
        write(os.path.join(folder, name), "#!/bin/sh\n", mode=0o755)
    return f"{folder}:{os.environ['PATH']}"


def test_an_agent_may_start_tasks_but_not_approve_its_own() -> None:
    """The server is inside the attempt, and its environment was emptied, as some programs do."""
    script = os.path.join(os.path.dirname(workspace()), "inside.py")
    with open(script, "w", encoding="utf-8") as file:
        file.write(_INSIDE)
    env = f'env -i PATH="$PATH" HOLDFAST_HOME="$HOLDFAST_HOME" {sys.executable} {script}'
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    it = Task.shell(f"{env} {root} > said.json; {kin.WAIT}", "--id", "it")
    path = os.path.join(workspace(), "said.json")

    def asked() -> dict[str, Any]:
        with open(path, encoding="utf-8") as file:
            return json.loads(file.read())

    said = eventually(asked, 60, "the agent has asked")
    for verb in ("approve", "answer", "resume", "stop"):
        assert said[verb]["exit"] == 3, (verb, said[verb])
        assert "an agent may not" in said[verb]["message"]
    assert said["started"]["task_id"] == "child"
    assert task("child").events("task.created")[0]["spec"]["parent"] == "it"
    assert it.status() == "running"
    kin.go()
    it.wait_for("completed")


_INSIDE = """
import json, sys
sys.path.insert(0, sys.argv[1])
from tests.support.mcp import Client
with Client() as client:
    said = {}
    for verb in ("approve", "answer", "resume"):
        said[verb] = client.fail("say", task="it", verb=verb, message="yes")
    said["stop"] = client.fail("stop", task="it")
    said["started"] = client.call("start", command=["true"], id="child")
print(json.dumps(said))
"""


def test_a_runner_for_a_request_is_executed_not_forked() -> None:
    """Without a seed: a copy of the server would keep its memory, and would be killed with the agent."""
    it = Task.shell("true", "--id", "it", env={"HOLDFAST_KEEPER": "off"})
    it.wait_for("completed")
    with Client(env={"HOLDFAST_KEEPER": "off", "HOLDFAST_FAILPOINT": ""}) as client:
        assert client.fail("say", task="it", verb="resume")["exit"] == 3
        with open(f"/proc/{client.process.pid}/task/{client.process.pid}/children", encoding="utf-8") as file:
            for pid in file.read().split():
                with open(f"/proc/{pid}/cmdline", "rb") as line:
                    assert b"\0mcp\0" not in line.read()


def test_resources() -> None:
    Task.shell("echo hi", "--id", "it", "--name", "greeting").wait_for("completed")
    with Client() as client:
        (listed,) = client.ask("resources/list")["resources"]
        assert listed["uri"] == "holdfast://task/it/summary"
        (read,) = client.ask("resources/read", {"uri": listed["uri"]})["contents"]
        assert read["uri"] == listed["uri"]
        assert "greeting" in read["text"]
        (gate,) = client.ask("resources/read", {"uri": "holdfast://task/it/gate"})["contents"]
        assert (gate["mimeType"], isinstance(json.loads(gate["text"]), list)) == ("application/json", True)
        templates = client.ask("resources/templates/list")["resourceTemplates"]
        assert [each["name"] for each in templates] == ["summary", "findings", "gate"]
        missing = client.answer(client.post("resources/read", {"uri": "holdfast://task/none/summary"}))
        assert missing["error"]["code"] == -32002


def test_wait_notices_a_task_that_the_queue_will_never_start(keeper: None) -> None:
    with Client(cwd=workspace()) as client:
        client.call("start", command=["false"], id="first")
        client.call("start", command=["true"], id="second", after=["first"])
        client.call("stop", task="first")
        found = client.call("wait", tasks=["second"], until="all", timeout_s=25)
        assert found["finished"] is True, found
