"""What an agent writes is neither an option of another program nor a command to the user's terminal."""

from __future__ import annotations

import json
import os
import stat

import pytest

from holdfast.testing import Scenario
from tests.support.tasks import Task, holdfast

ESCAPES = "\x1b]0;title\x07\x9b2J"


def test_names_of_tools_are_no_escape_sequences(home: str) -> None:
    scenario = Scenario().tool(f"Bash{ESCAPES}", command="true").result("done")
    Task.play(scenario).wait_for("completed", within_s=30)
    for words in (("metrics", "--prometheus"), ("metrics",), ("report",)):
        shown = holdfast(*words).stdout
        assert "Bash" in shown or words[0] == "report", shown
        assert not [char for char in shown if not char.isprintable() and char != "\n"], shown


def test_no_character_of_an_agent_reorders_a_line(home: str) -> None:
    """U+202E shows the rest of a line from right to left, also the command that is recommended in it."""
    done = holdfast(
        "run", "--id", "it", "--max-retries", "0", "--", "sh", "-c", r"printf 'a\342\200\256b\n'; exit 1"
    )
    page = os.path.join(home, "page.html")
    report = holdfast("report", "--html", page)
    assert report.returncode == 0, report.stderr
    with open(page, encoding="utf-8") as file:
        texts = (done.stderr, done.stdout, holdfast("logs", "it").stdout, report.stdout, file.read())
    assert "ab" in texts[2]
    assert not [text for text in texts if "\u202e" in text]


def test_a_record_of_a_service_has_no_option_for_systemctl(home: str) -> None:
    folder = os.path.join(os.path.dirname(home), "installed")
    os.mkdir(folder)
    called = os.path.join(folder, "called")
    for name in ("systemctl", "loginctl"):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\necho "$*" >> {called}\n')
        os.chmod(file.name, stat.S_IRWXU)
    env = {"PATH": f"{folder}:{os.environ['PATH']}"}
    for unit in ("--machine=root@.host", "-Hexample.org", "other.service"):
        with open(os.path.join(home, "service.json"), "w", encoding="utf-8") as file:
            json.dump({"schema": "holdfast.service/1", "home": home, "kind": "systemd", "unit": unit}, file)
        for words in (("service", "status"), ("status",), ("doctor",)):
            holdfast(*words, env=env)
        if os.path.exists(called):
            with open(called, encoding="utf-8") as file:
                assert unit.strip() not in file.read()


@pytest.mark.parametrize("field", ["allow", "stage"])
def test_a_forged_manifest_adds_no_command_to_one_that_is_shown(home: str, field: str) -> None:
    """People copy what `show` recommends."""
    task = Task.shell("true")
    task.wait_for("completed")
    path = task.path("manifest.json")
    with open(path, encoding="utf-8") as file:
        manifest = json.load(file)
    denied = {"stage": "impl", "tools": "Bash", "allow": "full", field: "full; touch pwned"}
    with open(path, "w", encoding="utf-8") as file:
        json.dump({**manifest, "denied": [denied]}, file)
    shown = " ".join(holdfast("show", task.id).stdout.split())
    assert "holdfast retry" in shown
    assert "'full; touch pwned'" in shown or "; touch" not in shown, shown
