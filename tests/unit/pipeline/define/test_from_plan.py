"""A packet from a plan."""

from __future__ import annotations

import pytest

from holdfast.errors import UnreadableFile, UsageError
from holdfast.pipeline.define import from_plan, new_packet
from holdfast.pipeline.define.new_packet import Draft

PLAN = """# Plan: Make the client retry

## 1. Steps

Do it.

## Acceptance

- [ ] a failed call is tried again
* the tests pass

## Verify Commands

```sh
# all of them
make test
make lint
```

## Risks

none
"""


@pytest.mark.starts_processes
@pytest.mark.req("PKT-18")
def test_a_plan_gives_goal_commands_criteria_and_request() -> None:
    draft = from_plan.filled(Draft(task_id="t", goal="", intent="safe_impl", plan=PLAN))
    assert draft.goal == "Make the client retry"
    assert draft.commands == ("make test", "make lint")
    assert draft.criteria == ("a failed call is tried again", "the tests pass")
    assert PLAN.strip() in new_packet.request(draft)


def test_what_was_given_beats_the_plan() -> None:
    draft = Draft(task_id="t", goal="mine", intent="safe_impl", plan=PLAN, commands=("true",))
    assert from_plan.filled(draft).goal == "mine"
    assert from_plan.filled(draft).commands == ("true",)


@pytest.mark.parametrize(
    "plan", ["just words", "# only a title", "## Verify Commands\n\nnone\n", "```\n", "#"]
)
def test_a_plan_may_say_little(plan: str) -> None:
    draft = from_plan.filled(Draft(task_id="t", goal="", intent="safe_impl", plan=plan))
    assert draft.goal
    assert draft.commands == ()


def test_an_unreadable_plan_is_reported(tmp_path) -> None:
    with pytest.raises(UnreadableFile):
        from_plan.read_plan(str(tmp_path / "none"))
    (tmp_path / "empty").write_bytes(b" \n")
    with pytest.raises(UsageError, match="is empty"):
        from_plan.read_plan(str(tmp_path / "empty"))
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="not UTF-8"):
        from_plan.read_plan(str(tmp_path / "binary"))
    (tmp_path / "big").write_bytes(b"x" * (from_plan.MAX_PLAN_BYTES + 1))
    with pytest.raises(UsageError, match="larger than 1 MiB"):
        from_plan.read_plan(str(tmp_path / "big"))
