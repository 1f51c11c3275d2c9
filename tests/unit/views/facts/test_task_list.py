"""Lists of tasks: which ended ones are left out, and how many."""

from __future__ import annotations

from pathlib import Path

from holdfast.store.layout import Home
from holdfast.views.facts import task_list
from tests.unit.store.test_index import put


def test_what_is_left_out_is_counted_as_the_index_or_the_manifests_have_it(tmp_path: Path) -> None:
    home = Home(str(tmp_path))
    assert task_list.recent(home) == ([], 0)
    put(home, "now", "running")
    put(home, "then", "running")
    for number in range(task_list.RECENT):
        put(home, f"t{number}", "completed")
    assert task_list.recent(home)[1] == 0
    # Ended, but the index does not know it yet: shown once, and another one is left out.
    put(home, "then", "completed")
    rows, count = task_list.recent(home)
    assert len({row["task_id"] for row in rows}) + count == task_list.RECENT + 2
    for number in range(3):
        put(home, f"u{number}", "completed")
    rows, count = task_list.recent(home)
    others, ids = task_list.recent_and_others(home)
    assert (len(rows), count) == (task_list.RECENT + 1, 4)
    assert len(ids) == count
    assert ids.isdisjoint({row["task_id"] for row in rows})
    assert [row["task_id"] for row in others] == [row["task_id"] for row in rows]
