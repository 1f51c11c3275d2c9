"""holdfast review: what it refuses before it creates anything."""

from __future__ import annotations

import os

import pytest

from holdfast.testing import Scenario
from tests.support.tasks import holdfast, trust, workspace


@pytest.fixture
def files(home: str) -> str:
    for name in ("pack.md", "report.md"):
        with open(os.path.join(workspace(), name), "w", encoding="utf-8") as file:
            file.write("words\n")
    return workspace()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "one of cross, post-impl is missing"),
        (("crss", "pack.md", "report.md"), "cross"),
        (("cross", "pack.md"), "IMPL_REPORT"),
        (("cross", "none.md", "report.md"), "cannot read none.md"),
        (("post-impl", "pack.md", "none.md"), "cannot read none.md"),
        (("cross", "pack.md", "report.md", "--id", "a/b"), "not a task id"),
        (("cross", "pack.md", "report.md", "--profile", "strict"), "did you mean 'strict_review'?"),
        (("cross", "pack.md", "report.md", "full"), "exists and is not empty"),
        (("cross", "pack.md", "empty.md"), "empty.md is empty"),
    ],
)
def test_what_is_wrong_is_told_and_nothing_is_made(files: str, words: tuple[str, ...], message: str) -> None:
    os.mkdir(os.path.join(files, "full"))
    for path in ("full/x", "empty.md"):
        with open(os.path.join(files, path), "w", encoding="utf-8"):
            pass
    done = holdfast("review", *words, cwd=files)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert holdfast("ls", "-q", "--all").stdout == ""
    assert not [name for name in os.listdir(files) if name.startswith("review-")]
    assert os.listdir(os.environ["TMPDIR"]) == []


def test_missing_agents_are_reported(files: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    done = holdfast("review", "post-impl", "pack.md", "report.md", cwd=files)
    assert done.returncode == 2
    assert "gemini: no gemini in PATH" in done.stderr


ANSWER = "".join(
    f"## {title}\n\nnone\n\n" for title in ("Findings", "Test gaps", "Breaking changes", "Minimal fix")
)


@pytest.mark.req("PIP-2", "PIP-3")
def test_it_runs_to_its_end_and_hands_out_the_results(files: str) -> None:
    Scenario().say(ANSWER).result(ANSWER).write_to(os.path.join(files, "play.json"))
    for path, text in (
        ("agents/scripted.yaml", f"version: 1\nagent: scripted\noptions: {{scenario: {files}/play.json}}\n"),
        (
            "pipelines/ours.yaml",
            "version: 1\npipeline: review\n"
            "profiles: {ours: {stages: [scripted_review, scripted_review_consolidate]}}\n",
        ),
    ):
        target = os.path.join(files, ".holdfast", path)
        os.makedirs(os.path.dirname(target))
        with open(target, "w", encoding="utf-8") as file:
            file.write(text)
    trust(files)
    done = holdfast(
        "review", "cross", "pack.md", "report.md", "out", "--profile", "ours", "--id", "t1", cwd=files
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "t1\n"
    out = os.path.join(files, "out")
    assert sorted(os.listdir(out)) == [
        "dispatch_summary.md",
        "scripted_review.md",
        "scripted_review_consolidate.md",
        "summary.md",
    ]
    with open(os.path.join(out, "scripted_review.md"), encoding="utf-8") as file:
        assert "## Findings" in file.read()
    packet = os.path.join(os.environ["HOLDFAST_HOME"], "tasks", "t1")
    with open(os.path.join(packet, "inputs", "attachments", "impl_report.md"), encoding="utf-8") as file:
        assert file.read() == "words\n"
    # The consolidation got the review's report.
    with open(
        os.path.join(packet, "inputs", "prompt", "scripted.review_consolidate.md"), encoding="utf-8"
    ) as file:
        prompt = file.read()
    assert "scripted_review.scripted.out" in prompt
    assert ANSWER.strip() in prompt
    assert os.listdir(os.environ["TMPDIR"]) == []
