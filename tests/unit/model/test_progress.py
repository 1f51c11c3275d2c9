"""Progress: what an agent's to-do list and its file say, and which of them the manifest shows."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import clock
from holdfast.model import events as ev
from holdfast.model import manifest, readable
from tests.support.story import Story


def told(attempt: int, done: int, total: int, step: str | None = None) -> ev.AgentProgress:
    return ev.AgentProgress(attempt=attempt, steps_completed=done, steps_total=total, current_step=step)


def shown(story: Story, file: dict[str, Any] | None = None, *, written_at: str = "") -> Any:
    """The manifest's progress, with what state/work.json says."""
    observed = manifest.Observed()
    observed.file_progress, observed.file_progress_at = file, written_at
    return manifest.render(story.task, "/p", observed)["progress"]


@pytest.mark.req("PKT-16")
def test_the_last_word_counts() -> None:
    story = Story().attempt(1)
    assert shown(story) is None
    story.tell(told(1, 1, 5, "reading"), told(1, 2, 5, "writing tests"))
    assert shown(story) == {"steps_completed": 2, "steps_total": 5, "current_step": "writing tests"}
    story.end(1, "crashed").move("crashed").move("spawning").attempt(2, mode="resume")
    assert shown(story)["steps_completed"] == 2
    story.tell(told(2, 0, 0))
    assert shown(story) is None, "the list was cleared"


def test_a_new_session_has_no_list_yet() -> None:
    for mode in ("fresh", "briefing"):
        story = Story().attempt(1).tell(told(1, 5, 5)).end(1, "crashed").move("crashed").move("spawning")
        assert shown(story.attempt(2, mode=mode)) is None


@pytest.mark.req("PKT-16")
def test_the_agents_file_counts_where_it_is_newer() -> None:
    written = {"steps_completed": 3, "steps_total": 10, "current_step": None}
    story = Story().attempt(1)
    assert shown(story, written, written_at=clock.iso(story.now)) == written
    before, after = clock.iso(story.now), clock.iso(story.now + 5)
    story.tell(told(1, 2, 5))
    assert shown(story, written, written_at=before)["steps_total"] == 5
    assert shown(story, written, written_at=after) == written
    assert shown(story, None, written_at=after)["steps_total"] == 5


def test_it_is_one_readable_line() -> None:
    assert readable.lines(told(1, 2, 5, "writing\n tests")) == ["[2/5 writing tests]"]
    assert readable.lines(told(1, 5, 5)) == ["[5/5]"]
