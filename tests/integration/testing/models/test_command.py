"""`python -m holdfast.testing.models`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.testing import ModelServer as Exported
from holdfast.testing.models import ModelServer, read_log
from tests.integration.testing.models.conftest import LIMIT_S, ask
from tests.integration.testing.models.reader import said

COMMAND = [sys.executable, "-m", "holdfast.testing.models"]
SCRIPT = {"schema": "holdfast.model-script/1", "turns": [{"text": "from the file"}, {"stall": {}}]}


class Elsewhere:
    """A server in another process, as far as the client is concerned."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        self.process = process
        self.said = json.loads(process.stdout.readline())
        self.port: int = self.said["port"]


@pytest.fixture
def root(place: Any) -> Path:
    return Path(place.root)


@pytest.fixture
def elsewhere(root: Path) -> Iterator[Elsewhere]:
    script = root / "script.json"
    script.write_text(json.dumps(SCRIPT), encoding="utf-8")
    process = subprocess.Popen([*COMMAND, str(script), "--log", str(root / "log")], stdout=subprocess.PIPE)
    try:
        yield Elsewhere(process)
    finally:
        process.kill()
        process.wait(LIMIT_S)
        if process.stdout:
            process.stdout.close()


def test_it_serves_a_script_until_sigterm(elsewhere: Any, root: Path) -> None:
    assert elsewhere.said["url"] == f"http://127.0.0.1:{elsewhere.port}"
    assert elsewhere.said["agents"]["claude"]["env"]["ANTHROPIC_BASE_URL"] == elsewhere.said["url"]
    assert said("gemini", ask(elsewhere, "gemini")).text == "from the file"
    elsewhere.process.terminate()
    assert elsewhere.process.wait(LIMIT_S) == 0
    assert [request.turn for request in read_log(root / "log")] == ["turns[0]"]


def test_mistakes_are_reported(root: Path) -> None:
    script = root / "bad.json"
    script.write_text(json.dumps(SCRIPT | {"turns": [{"txt": 1}]}), encoding="utf-8")
    with ModelServer() as server:
        good = root / "good.json"
        good.write_text(json.dumps(SCRIPT), encoding="utf-8")
        for arguments, status, words in (
            ([str(script)], 2, f"error: {script}: turns[0].txt: unknown key"),
            ([str(root / "none.json")], 2, "cannot be read"),
            ([], 2, "usage:"),
            ([str(good), "--port", str(server.port)], 1, "in use"),
        ):
            done = subprocess.run([*COMMAND, *arguments], capture_output=True, timeout=LIMIT_S, check=False)
            assert (done.returncode, done.stdout) == (status, b"")
            assert words in done.stderr.decode()


def test_the_package_exports_the_server() -> None:
    assert Exported is ModelServer
