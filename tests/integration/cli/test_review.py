"""holdfast review: what it refuses, before anything is made."""

from __future__ import annotations

import os

import pytest

from tests.support.tasks import holdfast, workspace


@pytest.fixture
def files(home: str) -> str:
    for name in ("pack.md", "report.md"):
        with open(os.path.join(workspace(), name), "w", encoding="utf-8") as file:
            file.write("words\n")
    return workspace()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "cross|post-impl"),
        (("crss", "pack.md", "report.md"), "cross"),
        (("cross", "pack.md"), "IMPL_REPORT"),
        (("cross", "none.md", "report.md"), "cannot read none.md"),
        (("post-impl", "pack.md", "none.md"), "cannot read none.md"),
        (("cross", "pack.md", "report.md", "--id", "a/b"), "not a task id"),
        (("cross", "pack.md", "report.md", "--profile", "strict"), "did you mean 'strict_review'?"),
        (("cross", "pack.md", "report.md", "full"), "is there already, and not empty"),
        (("cross", "pack.md", "empty.md"), "empty.md is empty"),
    ],
)
def test_what_is_wrong_is_told_and_nothing_is_made(files: str, words: tuple[str, ...], said: str) -> None:
    os.mkdir(os.path.join(files, "full"))
    for path in ("full/x", "empty.md"):
        with open(os.path.join(files, path), "w", encoding="utf-8"):
            pass
    done = holdfast("review", *words, cwd=files)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert holdfast("ls", "-q", "--all").stdout == ""
    assert not [name for name in os.listdir(files) if name.startswith("review-")]
    assert os.listdir(os.environ["TMPDIR"]) == []


def test_agents_that_are_missing_are_told(files: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    done = holdfast("review", "post-impl", "pack.md", "report.md", cwd=files)
    assert done.returncode == 2
    assert "gemini: no gemini in PATH" in done.stderr
