"""README: short, its links lead somewhere, its verbs exist, and its console blocks are what really happens."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from holdfast.views.cli import verbs
from tests.support.tasks import workspace

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

#: What differs from run to run, and what stands for it on both sides. The order matters.
PLACEHOLDERS = (
    (r"/home/you/\.local/state/holdfast", "HOME"),
    (r"/tmp/holdfast-demo-\w+", "DEMO"),
    (r"\d{8}-demo-\w{4}", "TASK"),
    (r"session [0-9a-f]{8}", "session ID"),
    (r"\d+(\.\d+)*", "N"),
    (r" +", " "),
)


def readme() -> str:
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
        return file.read()


def blocks(text: str) -> list[str]:
    return re.findall(r"^```console\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def steps(block: str) -> list[tuple[str, list[str]]]:
    """Commands and what each prints. The demo prints a line that looks like a command: only `$ holdfast demo` begins it."""
    found: list[tuple[str, list[str]]] = []
    for line in block.splitlines():
        if line.startswith("$ ") and not (found and found[-1][0] == "holdfast demo"):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def settle(text: str) -> str:
    for pattern, name in PLACEHOLDERS:
        text = re.sub(pattern, name, text)
    return text.strip()


def as_pattern(expected: list[str]) -> str:
    """A line of … alone is any number of lines; within a line it is anything."""
    parts: list[str] = []
    for line in expected:
        if line == "…":
            parts.append(r"(?:.*\n)*?")
        else:
            parts.append(r".*".join(re.escape(settle(part)) for part in line.split("…")) + r" ?\n")
    return "".join(parts)


def matches(expected: list[str], printed: str) -> bool:
    lines = "".join(settle(line) + "\n" for line in printed.splitlines())
    return re.fullmatch(as_pattern(expected), lines) is not None


def test_every_console_block_is_what_really_happens(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOLDFAST_KEEPER")
    monkeypatch.setenv("PATH", os.path.dirname(sys.executable), prepend=":")
    found = [step for block in blocks(readme()) for step in steps(block)]
    assert len(found) >= 8
    for command, expected in found:
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=workspace(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=60,
            check=False,
        )
        printed = done.stdout.decode().replace(home, "/home/you/.local/state/holdfast")
        printed = printed.replace(os.environ["TMPDIR"], "/tmp")
        wanted = "\n".join(expected)
        assert matches(expected, printed), f"$ {command}\n--- README:\n{wanted}\n--- really:\n{printed}"


@pytest.mark.parametrize(
    ("expected", "printed", "fits"),
    [
        (["a", "…", "b"], "a\nx\ny\nb\n", True),
        (["a", "…", "b"], "a\nb\n", True),
        (["a", "…"], "b\n", False),
        (["took 1.5s"], "took 22.75s\n", True),
        (["took 1.5s"], "took 22.75s too long\n", False),
        (["error: …"], "error: whatever\n", True),
        ([], "surprise\n", False),
    ],
)
def test_the_comparison_bites(expected: list[str], printed: str, fits: bool) -> None:
    assert matches(expected, printed) is fits


def test_it_has_at_most_150_lines() -> None:
    assert len(readme().splitlines()) <= 150


def test_links_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", readme())
    assert links
    for link in links:
        assert os.path.exists(os.path.join(ROOT, link)), link


def test_every_verb_is_named() -> None:
    text = readme()
    for verb in verbs.VERBS:
        assert re.search(rf"`(holdfast )?{verb}\b", text), f"README does not name {verb}"


def test_the_list_of_targets_fits_a_terminal_of_80_columns() -> None:
    said = subprocess.run(
        ["make", "--no-print-directory", "help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    ).stdout
    assert said.isascii()
    assert [line for line in said.splitlines() if len(line) > 80] == []
