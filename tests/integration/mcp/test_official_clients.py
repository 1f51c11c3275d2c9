"""The official clients judge the server: the Python SDK 1.x and 2.x, and the Inspector's command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.support.mcp import INSPECTOR, SDKS, cache, require
from tests.support.tasks import Task, workspace

OURS = [sys.executable, "-m", "holdfast", "mcp"]
CASES = [(SDKS[0], "handshake"), (SDKS[1], "handshake"), (SDKS[1], "auto"), (SDKS[1], "2026-07-28")]
#: Found before the tests get another HOME.
CACHE = cache()


@pytest.fixture(autouse=True)
def in_a_home(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace()
    monkeypatch.delenv("HOLDFAST_KEEPER")


@pytest.mark.timeout(180)
@pytest.mark.parametrize(("version", "mode"), CASES, ids=str)
def test_a_session_with_the_official_sdk(version: str, mode: str) -> None:
    python = require(CACHE / f"sdk-{version}" / "bin" / "python")
    script = os.path.join(os.path.dirname(__file__), "sdk_session.py")
    done = subprocess.run(
        [python, script, mode, *OURS],
        cwd=workspace(),
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    seen: dict[str, Any] = json.loads(done.stdout)
    assert seen["version"] == ("2025-11-25" if mode == "handshake" else "2026-07-28")
    assert seen["tools"] == ["start", "digest", "wait", "show", "say", "stop"]
    assert seen["made"]["task_id"] == "it"
    assert (seen["waited"]["finished"], seen["waited"]["counts"]) == (True, {"completed": 1})
    assert seen["shown"]["state"] == "completed"
    assert seen["failed"] == [True, "not-found"]
    assert seen["resources"] == ["holdfast://task/it/summary"]
    assert seen["templates"] == 3
    assert "it" in seen["read"]
    assert "none" in seen["missing"]
    assert "no tool" in seen["no tool"]
    assert "Traceback" not in done.stderr


@pytest.mark.timeout(180)
def test_the_inspector_finds_nothing_wrong() -> None:
    Task.shell("echo hi", "--id", "it").wait_for("completed")

    def inspect(*words: str) -> Any:
        program = require(CACHE / f"inspector-{INSPECTOR}" / "node_modules" / ".bin" / "mcp-inspector")
        done = subprocess.run(
            [program, "--cli", *OURS, "-e", f"HOLDFAST_HOME={os.environ['HOLDFAST_HOME']}", *words],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr + done.stdout
        return json.loads(done.stdout)

    listed = inspect("--method", "tools/list", "--strict")
    assert [tool["name"] for tool in listed["tools"]] == ["start", "digest", "wait", "show", "say", "stop"]
    shown = inspect("--method", "tools/call", "--tool-name", "show", "--tool-arg", "task=it")
    assert shown["structuredContent"]["state"] == "completed"
    assert inspect("--method", "resources/list")["resources"][0]["uri"] == "holdfast://task/it/summary"
    read = inspect("--method", "resources/read", "--uri", "holdfast://task/it/summary")
    assert read["contents"][0]["mimeType"] == "text/markdown"
