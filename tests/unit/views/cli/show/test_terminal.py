"""Every state has a colour."""

from __future__ import annotations

from holdfast.views.cli.show import terminal


def test_every_state_has_a_colour() -> None:
    from holdfast.model.status import Status

    assert set(terminal.STATE_COLOURS) == {*Status, "stopping"}
