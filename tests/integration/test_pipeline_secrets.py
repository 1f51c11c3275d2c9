"""Secrets of a packet: wherever one is planted, only the inputs and the raw logs of attempts contain it."""

from __future__ import annotations

import os
import re

import pytest

from holdfast.testing import Scenario
from tests.support import processes
from tests.support.packets import PACK, WORK, Written, brief, calls, gate, played, summary
from tests.support.tasks import Task, holdfast, workspace
from tests.support.waiting import eventually

#: One for each place, so that a failure says which.
SECRETS = {
    "request": "sk-ant-api03-AAAArequestAAAAAAAAAAAA",
    "goal": "sk-ant-api03-BBBBgoalBBBBBBBBBBBBBB",
    "criterion": "glpat-CCCCcriterionCCCCCC",
    "pack": "ghp_DDDDpackDDDDDDDDDDDDDDDDDDDDDDDDDDDD",
    "attachment": "ghp_EEEEattachmentEEEEEEEEEEEEEEEEEEEE",
    "output": "xoxb-1234-FFFFoutputFFFF",
    "stderr": "AKIAGGGGSTDERRGGGGGG",
    "tool": "github_pat_HHHHtoolHHHHHHHHHHHHHHHH",
    "brief": "sk-proj-IIIIbriefIIIIIIIIIIIIII",
    "environment": "the-value-of-a-variable-7421",
    "pattern": "internal-552417",
    "command": "npm_JJJJcommandJJJJJJJJJJJJJJJJJJJJJJJJJ",
}
#: What a person handed in is theirs, and stays as it is; what an attempt printed is kept as it came, private
#: to the user; and the sessions of an agent are its own.
_RAW = re.compile(
    r"/(inputs/(user_request\.md|attachments/.*)|manifest\.yaml|runs/.*"
    r"|attempts/[^/]+/(stdout|stderr)\.log|scripted-agent/.*)$"
)


def leaks(*folders: str) -> list[str]:
    """Every file that has a secret, by name or by content, beside those that may."""
    found: list[str] = []
    for folder in folders:
        for here, directories, files in os.walk(folder):
            for name in (*directories, *files):
                path = os.path.join(here, name)
                found += [
                    f"{place} in the name {path}" for place, secret in SECRETS.items() if secret in name
                ]
                if _RAW.search(path) or name in directories or not os.path.isfile(path):
                    continue
                with open(path, "rb") as file:
                    data = file.read()
                found += [
                    f"{place} in {path}" for place, secret in SECRETS.items() if secret.encode() in data
                ]
    return found


@pytest.fixture
def packet(home: str, monkeypatch: pytest.MonkeyPatch) -> Written:
    """A packet with one secret in each place. Notices stay in the outbox."""
    monkeypatch.setenv("DEPLOY_WORD", SECRETS["environment"])
    settings = os.path.join(os.environ["HOME"], ".config", "holdfast")
    os.makedirs(settings)
    with open(os.path.join(settings, "config.toml"), "w", encoding="utf-8") as file:
        file.write('[[notify]]\non = ["all"]\nto = "command"\nargv = ["true"]\n')
    report = brief(f"echo {SECRETS['command']} $DEPLOY_WORD; exit 3", pack=PACK + SECRETS["brief"])
    work = (
        Scenario()
        .write(WORK, content="hello\n")
        .tool("sh", command=f"echo {SECRETS['tool']}; echo $DEPLOY_WORD")
        .print(
            f"warning: {SECRETS['stderr']} {SECRETS['environment']} {SECRETS['pattern']}\n", stream="stderr"
        )
        .say(f"using {SECRETS['output']} and {SECRETS['environment']} and {SECRETS['pattern']}")
    )
    said = f"## Summary\n\n{SECRETS['output']} {SECRETS['environment']} {SECRETS['pattern']}\n"
    packet = Written(
        {
            "scripted_brief": report,
            "scripted_impl": played("impl", said, before=work),
            "scripted_verify": None,
        },
        request=f"Write b.txt with {SECRETS['request']} and {SECRETS['pattern']}.\n",
        goal=f"write b.txt with {SECRETS['goal']}",
        env=["DEPLOY_WORD"],
        acceptance={"criteria": [f"nobody sees {SECRETS['criterion']}"]},
        security={"redaction_patterns": [r"internal-\d+"], "forbidden_paths": [".env", "secrets/"]},
    )
    packet.put("inputs/context_pack.md", PACK.replace("said by the brief", f"the key {SECRETS['pack']}"))
    packet.put(
        "inputs/attachments/logs.txt", f"start\nBearer {SECRETS['attachment']}\n{SECRETS['environment']}\n"
    )
    return packet


@pytest.mark.req("W-B6", "CTX-3", "CTX-4")
def test_no_secret_leaves_its_place(packet: Written, home: str) -> None:
    done = holdfast("run", "--packet", packet.path, cwd=packet.project.path)
    assert done.returncode == 1, done.stderr
    task = Task(os.path.join(home, "tasks", packet.task_id))
    # The stages have really seen what they print, and the gate has really run its command.
    assert SECRETS["environment"].encode() in task.read(
        "attempts", _directory(task, "scripted_impl"), "stderr.log"
    )
    assert gate(task, "scripted_verify")["failed"] == "acceptance"
    assert "***" in task.read("outputs", "scripted_verify.artifact.md").decode()
    assert os.listdir(os.path.join(home, "outbox"))
    assert leaks(home) == []
    for words in (
        ("show", packet.task_id),
        ("show", packet.task_id, "--json"),
        ("ls", "--json"),
        ("logs", packet.task_id),
    ):
        shown = holdfast(*words)
        assert not [place for place, secret in SECRETS.items() if secret in shown.stdout + shown.stderr], (
            words
        )
    assert not [place for place, secret in SECRETS.items() if secret in done.stdout + done.stderr]
    summary(task)


def _directory(task: Task, stage: str) -> str:
    return f"{calls(task, stage)[0]['attempt']:03d}-{stage}"


@pytest.mark.req("CTX-3")
def test_prompts_are_redacted(packet: Written, home: str) -> None:
    packet.run(end="failed")
    folder = os.path.join(home, "tasks", packet.task_id, "inputs", "prompt")
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            text = file.read()
        assert "***" in text
        assert not [place for place, secret in SECRETS.items() if secret in text], name


@pytest.mark.req("CTX-3")
def test_forbidden_paths_are_not_in_prompts(home: str) -> None:
    packet = Written(
        {"scripted_review": None},
        intent="review_only",
        group="review",
        request="Look at src/a.py and at secrets/keys.txt and .env.\n",
        security={"forbidden_paths": [".env", "secrets/"]},
    )
    packet.put(
        "inputs/attachments/git.diff",
        "diff --git a/.env b/.env\n--- a/.env\n+++ b/.env\n@@ -1 +1 @@\n-OLD_LINE\n+NEW_LINE\n"
        "diff --git a/src/a.py b/src/a.py\n--- a/src/a.py\n+++ b/src/a.py\n@@ -1 +1 @@\n-one\n+two\n",
    )
    task = packet.run()
    told = task.read("inputs", "prompt", "scripted.review.md").decode()
    assert "secrets/keys.txt" not in told
    assert "NEW_LINE" not in told
    assert "+two" in told
    assert "src/a.py" in told


@pytest.mark.req("CTX-3", "W-B6")
def test_a_forbidden_attachment_or_a_bad_pattern_is_refused_before_anything_is_made(home: str) -> None:
    bad: list[dict[str, object]] = [{"forbidden_paths": ["*.pem"]}, {"redaction_patterns": ["(unclosed"]}]
    for number, security in enumerate(bad):
        packet = Written(
            {"scripted_review": None},
            task_id=f"p{number}",
            intent="review_only",
            group="review",
            security=security,
        )
        packet.put("inputs/attachments/server.pem", "x\n")
        done = holdfast("run", "--packet", packet.path, cwd=packet.project.path)
        assert done.returncode in (2, 3), done.stderr
        assert done.stderr.startswith("error: ")
        assert not os.path.exists(os.path.join(home, "tasks", packet.task_id))


@pytest.mark.req("CTX-3")
def test_a_pattern_that_this_version_refuses_interrupts_the_task_and_leaks_nothing(home: str) -> None:
    """As after an upgrade: earlier versions accepted look-around in patterns."""
    go = os.path.join(workspace(), "go")
    scenario = Scenario().say("before").wait_file(go).say(SECRETS["pattern"]).print("552417\n").hang()
    packet = Written(
        {"scripted_impl": scenario},
        goal=f"look at {SECRETS['pattern']}",
        security={"redaction_patterns": [r"internal-\d+", r"\d{6}"]},
    )
    task = packet.start()
    task.wait_for_log("before")
    agent = task.agent_pid()
    task.kill_runner()
    with open(go, "w", encoding="utf-8"):
        pass
    stdout = os.path.join(task.attempts()[-1], "stdout.log")
    eventually(lambda: b"552417" in task.read(stdout).splitlines(), what="the agent has printed it")
    journal = task.read("events.jsonl")
    assert rb"internal-\\d+" in journal
    with open(task.path("events.jsonl"), "wb") as file:
        file.write(journal.replace(rb"internal-\\d+", rb"(?<=-)internal-\\d+"))
    task.reseal()
    task.start_runner()
    reason = task.wait_for("interrupted", within_s=30)["interrupt"]["reason"]
    assert reason.startswith("security.redaction_patterns cannot be applied, so nothing is shown: ")
    assert r"'(?<=-)internal-\\d+' is not a regular expression" in reason
    assert "no look-around" in reason
    assert not processes.is_alive(agent)
    assert task.log().splitlines()[-2:] == ["***", "***"]
    assert leaks(task.packet) == []
    # A resume does not help; a person can still stop it.
    assert task.ask("resume").returncode == 0
    eventually(lambda: task.moves()[-2:] == ["spawning", "interrupted"], what="it is interrupted again")
    task.stop()
    assert leaks(home) == []
