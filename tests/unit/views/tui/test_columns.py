"""The cells of the task list."""

from __future__ import annotations

from holdfast.views.tui import columns


def test_a_pipeline_shows_how_many_stages_are_done() -> None:
    row = {"stage": "a_impl", "stages": [{"state": "done"}, {"state": "active"}, {"state": "pending"}]}
    assert columns.cell("STAGE", row, 0.0, "") == "1/3 a_impl"
    assert columns.cell("STAGE", {"stage": "a_run", "stages": [{"state": "active"}]}, 0.0, "") == "a_run"
    assert columns.cell("STAGE", {"stage": None}, 0.0, "") == "-"
