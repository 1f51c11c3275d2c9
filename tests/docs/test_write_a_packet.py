"""docs/guides/write-a-packet.md: its files and commands, in order, work as shown."""

from __future__ import annotations

import os
import re
import sys

import pytest

from tests.support import pages
from tests.support.tasks import Task, workspace

_BLOCK = re.compile(
    r"(?:^`(?P<path>[^`\n]+)`:\n\n)?^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE
)

#: Commands share the current directory and $packet, as in one shell.
_IN_ONE_SHELL = """
test -e "$1" && . "$1"
eval "$2"; status=$?
printf 'cd "%s"; packet="%s"\\n' "$PWD" "${packet-}" > "$1"
exit $status
"""


def page() -> str:
    return pages.read("docs/guides/write-a-packet.md")


def test_the_worked_example(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.path.dirname(sys.executable), prepend=":")
    root = workspace()
    state = os.path.join(os.path.dirname(home), "state of the shell")
    for block in _BLOCK.finditer(page()):
        if block["kind"] != "console":
            path = os.path.join(root, block["path"])
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(block["text"])
            continue
        for command, expected in pages.steps(block["text"]):
            argv = ["sh", "-c", _IN_ONE_SHELL, "sh", state, command]
            assert pages.check(argv, command, expected, home=home) == 0, command
    task = Task(os.path.join(home, "tasks", "fix-greeting"))
    prompt = task.read("inputs", "prompt", "scripted.impl.md").decode()
    assert "INC-2041" not in prompt
    assert "should return `hello Ada`" in prompt
    with open(os.path.join(root, "greeter", "greet.py"), encoding="utf-8") as file:
        assert "{name}" in file.read()


def test_its_verbs_exist() -> None:
    from holdfast.views.cli import verbs

    named = set(re.findall(r"(?:`|\$ )holdfast ([a-z]+)", page()))
    assert "apply" in named
    assert named <= set(verbs.VERBS)
