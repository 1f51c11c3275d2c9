"""Messages to an agent that continues."""

from __future__ import annotations

import pytest

from holdfast.model import events as ev
from holdfast.model.attempt import Attempt
from holdfast.runner.stage import briefing
from tests.support.story import Story


def crashed(*tools: tuple[str, str], said: str = "") -> tuple[Story, Attempt]:
    story = Story().attempt(1)
    for number, (name, summary) in enumerate(tools):
        story.tell(
            ev.AgentToolStarted(attempt=1, offset=number, tool_id=f"t{number}", name=name, summary=summary)
        )
    if said:
        story.tell(ev.AgentText(attempt=1, offset=90, text=said))
    story.end(1, "crashed", detail="killed by signal 9")
    return story, story.task.current[0]


def test_the_same_session_hears_what_happened_and_what_was_cut_off() -> None:
    story, attempt = crashed(("Bash", "make deploy"), ("Read", ""))
    text = briefing.resume_message(story.task, attempt)
    assert "crashed: killed by signal 9" in text
    assert "- Bash make deploy\n- Read" in text
    assert "run partially" in text


def test_one_that_we_stopped_hears_why() -> None:
    story = Story().attempt(1)
    story.tell(ev.StopIntended(attempt=1, intent="hang", reason="silent for 10 minutes")).end(1, "hung")
    assert "stopped: silent for 10 minutes" in briefing.resume_message(story.task, story.task.current[0])


def test_one_whose_work_was_refused_hears_every_reason_and_not_that_it_crashed() -> None:
    story, attempt = crashed(("Bash", "make"))
    text = briefing.resume_message(
        story.task, attempt, refused=briefing.refusal(["b.txt is outside scope.allow", "make test: exit 2"])
    )
    assert "- b.txt is outside scope.allow\n- make test: exit 2" in text
    assert "did not pass" in text
    assert "killed by signal 9" not in text
    assert "Bash" not in text


def test_changed_files_are_named_up_to_a_number() -> None:
    story, attempt = crashed()
    few = briefing.resume_message(story.task, attempt, changed=("a.txt", "b c.txt"))
    assert few.endswith("- a.txt\n- b c.txt")
    assert "more" not in few
    many = briefing.resume_message(story.task, attempt, changed=tuple(f"f{n}" for n in range(45)))
    assert "- f39\n- … and 5 more" in many
    assert "- f40" not in many


def test_an_answer_is_handed_on_in_every_case() -> None:
    story, attempt = crashed()
    story.move("interrupted").move("spawning", answer="use the test database")
    for text in (
        briefing.resume_message(story.task, attempt),
        briefing.resume_message(story.task, attempt, refused="r"),
        briefing.recovery_briefing(story.task, attempt, "the request"),
    ):
        assert "A person answered:\n\nuse the test database" in text


def test_a_resume_without_details_has_a_message() -> None:
    assert briefing.resume_message(Story().task, None) == "Continue the task."


@pytest.mark.req("INT-6")
def test_a_new_session_gets_the_request_last_and_the_old_ones_last_words() -> None:
    story, attempt = crashed(("Bash", "make"), said="I was about to run the tests.")
    text = briefing.recovery_briefing(story.task, attempt, "fix the tests", changed=("src/x.py",))
    order = [
        "crashed: killed by signal 9",
        "- Bash make",
        "I was about to run the tests.",
        "- src/x.py",
        "The request:\n\nfix the tests",
    ]
    assert [text.index(part) for part in order] == sorted(text.index(part) for part in order)
    assert text.endswith("fix the tests")


def test_a_new_session_without_an_earlier_one_gets_the_request() -> None:
    assert briefing.recovery_briefing(Story().task, None, "fix it").endswith("The request:\n\nfix it")


def test_an_error_that_the_program_prints_as_agent_text_is_not_its_last_words() -> None:
    limit = "You've hit your limit"
    story = Story().attempt(1)
    story.tell(ev.AgentText(attempt=1, offset=1, text="I begin with half.txt."))
    story.tell(ev.AgentText(attempt=1, offset=2, text=limit))
    story.tell(ev.AgentError(attempt=1, offset=3, kind="quota", message=limit)).end(1, "quota", detail="out")
    text = briefing.recovery_briefing(story.task, story.task.current[0], "write both halves")
    assert "Its last message was:\n\nI begin with half.txt." in text
    assert limit not in text
