"""The pages of the documentation: their text, their fenced blocks, and whether their commands do what they
show."""

from __future__ import annotations

import os
import re
import subprocess

from tests.support.tasks import workspace

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

#: Texts that differ between runs, and their replacements on both sides. The order matters.
_PLACEHOLDERS = (
    (r"/home/you/\.local/state/holdfast", "HOME"),
    (r"/tmp/holdfast-demo-\w+", "DEMO"),
    (r"\d{8}-demo-\w{4}", "TASK"),
    (r"session [0-9a-f]{8}", "session ID"),
    (r"\d+(\.\d+)*", "N"),
    (r" +", " "),
)


def read(path: str) -> str:
    """The text of a page, named from the root of the repository."""
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def fenced(text: str, language: str) -> str:
    """The one block of this language."""
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return found


def links(text: str) -> list[str]:
    """Where its links lead, without those within the page."""
    return re.findall(r"\]\(([^)#]+)\)", text)


def blocks(text: str) -> list[str]:
    """The console blocks of a page."""
    return re.findall(r"^```console\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def steps(block: str) -> list[tuple[str, list[str]]]:
    """Commands and what each prints. The demo prints a line that looks like a command: only `$ holdfast demo`
    begins it."""
    found: list[tuple[str, list[str]]] = []
    for line in block.splitlines():
        if line.startswith("$ ") and not (found and found[-1][0] == "holdfast demo"):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def _settle(text: str) -> str:
    for pattern, name in _PLACEHOLDERS:
        text = re.sub(pattern, name, text)
    return text.strip()


def _as_pattern(expected: list[str]) -> str:
    """A line of … alone is any number of lines; within a line it is anything."""
    parts: list[str] = []
    for line in expected:
        if line == "…":
            parts.append(r"(?:.*\n)*?")
        else:
            parts.append(r".*".join(re.escape(_settle(part)) for part in line.split("…")) + r" ?\n")
    return "".join(parts)


def matches(expected: list[str], printed: str) -> bool:
    """Whether a page shows what was printed, but for what differs from run to run."""
    lines = "".join(_settle(line) + "\n" for line in printed.splitlines())
    return re.fullmatch(_as_pattern(expected), lines) is not None


def check(argv: list[str], command: str, expected: list[str], *, home: str) -> int:
    """Run what a page shows as `command`; it prints what is expected. Returns its exit status."""
    done = subprocess.run(
        argv,
        cwd=workspace(),
        # pytest sets it where the tests run in its own process.
        env={name: value for name, value in os.environ.items() if name != "COLUMNS"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=60,
        check=False,
    )
    printed = done.stdout.decode().replace(home, "/home/you/.local/state/holdfast")
    printed = printed.replace(os.environ["TMPDIR"], "/tmp")
    wanted = "\n".join(expected)
    assert matches(expected, printed), f"$ {command}\n--- the page:\n{wanted}\n--- really:\n{printed}"
    return done.returncode
