"""Hostile output: no line kills a runner, poisons the journal or shows a secret."""

from __future__ import annotations

import json
import os

import pytest

from holdfast.testing import Scenario
from tests.support import kin
from tests.support.tasks import Task, holdfast, workspace
from tests.support.waiting import eventually


def strict_events(task: Task) -> list[dict]:
    """The journal, by a reader that knows no NaN and no Infinity."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} in the journal")

    lines = task.read("events.jsonl").split(b"\n")[:-1]
    return [json.loads(line, parse_constant=refuse) for line in lines]


def line(**fields: object) -> str:
    return json.dumps(fields)


def said(*blocks: dict) -> str:
    return line(type="assistant", message={"content": list(blocks)})


def assert_the_next_runner_lives(task: Task) -> None:
    """The journal is read again from its first line."""
    task.kill_runner()
    task.start_runner()
    task.wait_for_event("runner.started", 2)
    task.runner_pid()


# ── numbers ──


@pytest.mark.parametrize(
    "delay", ["1e300", "NaN", "Infinity", "-1e300", "1e15", "9" * 400, "1e999", '"soon"', "[1]"]
)
def test_an_announced_pause_of_any_size_harms_nobody(home: str, delay: str) -> None:
    retry = f'{{"type":"system","subtype":"api_retry","retry_delay_ms":{delay},"error":"overloaded"}}'
    task = Task.play(Scenario().print(retry + "\n").say("behind it").wait_file("go"))
    task.wait_for_event("agent.text")
    assert_the_next_runner_lives(task)
    kin.go()
    task.wait_for("completed")
    strict_events(task)
    assert len(task.events("runner.started")) == 2


@pytest.mark.parametrize("text", ["9" * 30, "1" + "0" * 29 + "h", "200000d"])
@pytest.mark.parametrize("flag", ["--deadline", "--grace", "--base-interval"])
def test_a_time_that_nobody_can_mean_is_a_usage_error(home: str, flag: str, text: str) -> None:
    done = holdfast("run", "-d", flag, text, "--", "true", cwd=workspace())
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr
    assert not os.path.isdir(os.path.join(home, "tasks")) or os.listdir(os.path.join(home, "tasks")) == []


# ── kinds ──

HOSTILE = {
    "text is a list": said({"type": "text", "text": ["a"]}),
    "text is an object": said({"type": "text", "text": {"a": 1}}),
    "a tool's id is a list": said({"type": "tool_use", "id": ["a"], "name": "Bash", "input": {}}),
    "a tool's name is a number": said({"type": "tool_use", "id": "t", "name": 5, "input": {}}),
    "a tool's id is null": said({"type": "tool_use", "id": None, "name": "Bash", "input": {}}),
    "content is a number": line(type="assistant", message={"content": 5}),
    "a block is a list": line(type="assistant", message={"content": [[]]}),
    "the message is a text": line(type="assistant", message="hello"),
    "a result's tool is an object": line(
        type="user", message={"content": [{"type": "tool_result", "tool_use_id": {"a": 1}}]}
    ),
    "the session is a list": line(type="system", subtype="init", session_id=["a"]),
    "the model is a number": line(type="system", subtype="init", session_id="s", model=5),
    "deep": '{"type":"assistant","message":' + "[" * 50_000 + "]" * 50_000 + "}",
    "the type is a list": line(type=["assistant"]),
    "no object": "[]",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_line_of_the_wrong_kind_is_no_event_and_stop_works(home: str, name: str) -> None:
    task = Task.play(Scenario().print(HOSTILE[name] + "\n").say("behind it").hang())
    task.wait_for_event("agent.text")
    assert [event["text"] for event in task.events("agent.text")] == ["behind it"]
    assert [event["type"] for event in task.events("agent.")] == ["agent.session", "agent.text"]
    assert_the_next_runner_lives(task)
    task.stop()


@pytest.mark.parametrize(
    "figures",
    [
        {"usage": {"input_tokens": "x", "output_tokens": 7}},
        {"usage": {"input_tokens": ["x"]}},
        {"usage": {"input_tokens": 10**400}},
        {"total_cost_usd": "much"},
        {"total_cost_usd": {"usd": 1}},
        {"num_turns": "many"},
    ],
    ids=lambda figures: json.dumps(figures)[:40],
)
def test_figures_that_are_none_are_left_out_and_the_work_counts(home: str, figures: dict) -> None:
    odd = line(type="result", subtype="success", is_error=False, result="done", **figures)
    task = Task.play(Scenario().say("one").print(odd + "\n").crash("KILL", once=True).result("done"))
    manifest = task.wait_for("completed")
    for name in ("input_tokens", "output_tokens"):
        assert type(manifest["usage"][name]) in (int, type(None))  # unknown is null
    assert manifest["usage"]["cost_usd"] is None or type(manifest["usage"]["cost_usd"]) in (int, float)
    strict_events(task)
    assert len(task.events("runner.started")) == 1


def test_a_reader_that_fails_does_not_kill_the_task(
    home: str, place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a third party, that is: it is plugged in by entry point."""
    plugin = os.path.join(place.root, "site-packages")
    os.makedirs(os.path.join(plugin, "failing-1.0.dist-info"))
    with open(os.path.join(plugin, "failing-1.0.dist-info", "METADATA"), "w", encoding="utf-8") as file:
        file.write("Metadata-Version: 2.1\nName: failing\nVersion: 1.0\n")
    with open(
        os.path.join(plugin, "failing-1.0.dist-info", "entry_points.txt"), "w", encoding="utf-8"
    ) as file:
        file.write("[holdfast.agents]\nfailing = failing:ADAPTER\n")
    with open(os.path.join(plugin, "failing.py"), "w", encoding="utf-8") as file:
        file.write(_FAILING)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([plugin, os.environ.get("PYTHONPATH", "")]).rstrip(":"))
    task = Task.start("--agent", "failing", "--env", "PYTHONPATH", "do it")
    manifest = task.wait_for("completed")
    assert [event["text"] for event in task.events("agent.text")] == ["good line"]
    assert (manifest["attempt"], len(task.events("runner.started"))) == (1, 1)
    assert "no reader for this" in task.read("runner.log").decode()


_FAILING = """
from holdfast.agents.base import Capabilities, Launch
from holdfast.model import events as ev
from holdfast.model.outcome import Outcome


class Reader:
    def read(self, line):
        if line.startswith(b"{"):
            raise LookupError("no reader for this")
        return [ev.AgentText(text=line.decode())]

    def read_stderr(self, line):
        raise ZeroDivisionError

    def finish(self):
        raise RuntimeError("nothing more")


class Failing:
    name = "failing"
    capabilities = Capabilities(
        chooses_session_id=False, can_resume=False, stdin_prompt=True, has_events=True, stale_s=None
    )

    def launch(self, spec):
        script = "echo {}; echo oops >&2; echo good line; echo {}"
        return Launch(argv=["sh", "-c", script], stdin=spec.prompt_path)

    resume = launch

    def reader(self):
        return Reader()

    def classify(self, end, attempt):
        return Outcome(kind="success" if end.exit.exit_code == 0 else "crashed")


ADAPTER = Failing()
"""


# ── half an emoji, bytes that are no text ──


def test_half_an_emoji_in_a_result_is_kept_and_shown(home: str) -> None:
    task = Task.play(
        Scenario().print('{"type":"result","subtype":"success","is_error":false,"result":"ok \\ud83d"}\n')
    )
    task.wait_for("completed")
    result = task.events("agent.result")[0]
    assert result["text"] == "ok \ud83d"
    for args in (("show",), ("show", "--json"), ("logs",)):
        done = task.ask(*args)
        assert done.returncode == 0, done.stderr
    assert holdfast("ls", "--json").returncode == 0


def test_half_an_emoji_in_a_call_that_was_cut_off_reaches_the_resumed_session(home: str) -> None:
    call = (
        '{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t\\ud83d","name":"Bash\\ud83d",'
    )
    call += '"input":{"command":"echo \\ud83d"}}]}}'
    task = Task.play(Scenario().say("one").print(call + "\n").crash("KILL", once=True).result("done"))
    task.wait_for("completed")
    assert [start.is_resume for start in task.memory().starts()] == [False, True]
    assert "Bash\\ud83d" in task.memory().starts()[1].prompt
    assert len(task.events("runner.started")) == 1


def test_a_retry_from_a_shell_with_a_variable_that_is_no_text(home: str) -> None:
    script = 'printf %s "$ODD" | od -An -tx1; [ -e fixed ] || exit 3'
    task = Task.shell(script, "--env", "ODD", env={"ODD": os.fsdecode(b"a\xff\xfeb")})
    task.wait_for("failed")
    assert task.log().split() == ["61", "ff", "fe", "62"]
    kin.go("fixed")
    done = holdfast("retry", task.id, env={"ODD": os.fsdecode(b"c\xc3(\xed\xa0\xbd")})
    assert done.returncode == 0, done.stderr
    task.wait_for("completed")
    assert task.log().splitlines()[-1].split() == ["63", "c3", "28", "ed", "a0", "bd"]


def test_a_project_directory_whose_name_is_no_text(home: str, place) -> None:
    project = os.path.join(place.root, os.fsdecode(b"pro\xffject \xc3"))
    os.mkdir(project)
    task = Task.shell("pwd | od -An -tx1 | tr -d ' \\n'; test -d .", "--name", "odd", project=project)
    task.wait_for("completed")
    assert b"pro\xffject \xc3".hex() in task.log()
    rows = json.loads(holdfast("ls", "--json").stdout)
    assert [os.fsencode(row["project_dir"]) for row in rows] == [os.fsencode(project)]
    assert task.id in holdfast("ls").stdout
    shown = task.ask("show")
    assert (shown.returncode, task.id in shown.stdout) == (0, True)
    assert json.loads(task.ask("show", "--json").stdout)["project_dir"] == project
    assert (
        task.id in holdfast("ls", env={"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}).stdout
    )


# ── secrets ──

TOKEN = "sk-ant-api03-" + "aB3_" * 10


def everything(task: Task) -> bytes:
    """What a reader of the packet sees: all of it but the raw logs, the request and the script."""
    found = []
    for folder, _, names in os.walk(task.packet):
        for name in names:
            if name in (
                "stdout.log",
                "stderr.log",
                "user_request.md",
                "prompt",
                "bell",
                "env.json",
                "argv.json",
            ):
                continue
            with open(os.path.join(folder, name), "rb") as file:
                found.append(file.read())
    return b"\n".join(found)


@pytest.mark.parametrize("before", [160, 180, 190, 198, 3970, 3990, 3999])
def test_a_token_across_the_cut_is_masked_whole(home: str, before: int) -> None:
    """A summary is cut at 200 characters and a text at 4000, wherever the token begins."""
    blocks = [
        {"type": "text", "text": "." * before + TOKEN},
        {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "x" * (before - 13) + TOKEN}},
    ]
    result = line(type="result", subtype="success", is_error=False, result="." * before + TOKEN)
    task = Task.play(Scenario().print(said(*blocks) + "\n").print(result + "\n"))
    task.wait_for("completed")
    data = everything(task)
    assert b"sk-ant" not in data
    assert b"aB3_" not in data
    assert task.events("agent.text")[0]["text"].rstrip("*") == "." * min(before, 4000)


def test_a_token_across_the_cut_of_an_error_message_is_masked_whole(home: str) -> None:
    """An adapter takes the last words of stderr: the token begins before them."""
    script = f"printf '%s{TOKEN}%s' {'x' * 50} {'y' * 180} >&2; exit 3"
    path = os.path.join(workspace(), "claude")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"#!/bin/sh\n{script}\n")
    os.chmod(path, 0o700)
    task = Task.start(
        "--agent", "claude", "--max-retries", "0", "x", env={"PATH": workspace() + ":" + os.environ["PATH"]}
    )
    task.wait_for("failed", "abandoned", "interrupted")
    assert b"aB3_" not in everything(task)


def test_what_was_handed_over_is_masked_wherever_it_is_shown(home: str) -> None:
    env_file = os.path.join(workspace(), "vars")
    with open(env_file, "w", encoding="utf-8") as file:
        file.write("FROM_FILE='file value 123'\n")
    script = 'echo "1 $HTTP_PROXY"; echo "2 $PLAIN_NAME"; echo "3 $FROM_FILE"; echo "4 $DB_PASS" >&2'
    task = Task.shell(
        script,
        "--env",
        "PLAIN_NAME",
        "--env",
        "DB_PASS",
        "--env-file",
        env_file,
        env={
            "HTTP_PROXY": "http://bob:hunter2secret@host:3128",
            "PLAIN_NAME": "plain-value-1",
            "DB_PASS": "pass-value-1",
        },
    )
    manifest = task.wait_for("completed")
    assert sorted(task.log().splitlines()) == ["1 http://***@host:3128", "2 ***", "3 ***", "4 ***"]
    assert "***" in manifest["output_tail"]
    data = everything(task)
    for secret in (b"hunter2secret", b"plain-value-1", b"file value 123", b"pass-value-1"):
        assert secret not in data, secret
    # And in a second run with another environment.
    again = holdfast("retry", task.id, "--from", "command_run", env={"PLAIN_NAME": "other-value-2"})
    assert again.returncode == 0, again.stderr
    eventually(lambda: task.log().count("2 ***") == 2, what="the second run", journal=task.packet)
    task.wait_for("completed")
    assert b"other-value-2" not in everything(task)


@pytest.mark.req("CTX-3")
def test_a_key_that_is_printed_over_the_death_of_a_runner_is_masked(home: str) -> None:
    head = "-----BEGIN RSA PRIVATE KEY-----\\nMIIEowIBAAKCAQEAfirstPART\\n"
    rest = "QUJDsecondPARTofTheBODY0123\\n-----END RSA PRIVATE KEY-----\\nbehind\\n"
    task = Task.shell(f"printf '%b' '{head}'; {kin.WAIT}printf '%b' '{rest}'")
    eventually(lambda: task.log().count("***") == 2, what="the first half is masked")
    task.kill_runner()
    kin.go()
    task.start_runner()
    task.wait_for("completed")
    assert task.log().splitlines()[-4:] == ["***", "***", "***", "behind"]
    assert b"PART" not in task.read("manifest.json")
