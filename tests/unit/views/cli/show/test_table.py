"""Tables fit, and keep the most important columns."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from holdfast.views.cli.show import table

HEAD = ("TASK", "STATE", "AGENT", "COST", "LAST")
ROW = ("20260131-fix-the-tests-k3qa", "completed", "command", "-", "a last line that is rather long")


def fitting(row: Sequence[str], *, room: int, shortest: int | None = None) -> list[int]:
    widest = [max(len(name), len(cell)) for name, cell in zip(HEAD, row, strict=True)]
    return table.fitting_columns(widest, [3], room=room, dropped_first=(2, 3), shortest=shortest)


def test_wide_enough_is_everything() -> None:
    assert fitting(ROW, room=100) == [0, 1, 2, 3, 4]


def test_what_says_nothing_goes_first() -> None:
    assert fitting(ROW, room=66) == [0, 1, 2, 4]


def test_then_the_columns_in_their_order() -> None:
    assert fitting(ROW, room=57) == [0, 1, 4]
    assert fitting(ROW, room=10) == [0, 1, 4]


LONG = ("a-name-that-is-as-long-as-an-id-may-be-" + "x" * 25, *ROW[1:])


def test_a_long_id_leaves_its_place_before_columns_go() -> None:
    assert fitting(LONG, room=66) == [0, 1, 4]
    assert fitting(LONG, room=66, shortest=24) == [0, 1, 2, 4]
    assert fitting(LONG, room=50, shortest=24) == [0, 1, 4]


def test_what_says_nothing_goes_before_an_id_leaves_its_place() -> None:
    assert fitting(ROW, room=66, shortest=10) == [0, 1, 2, 4]


@pytest.mark.parametrize(
    ("room", "widths"),
    [(100, [64, 9, 20]), (94, [64, 9, 17]), (80, [51, 9, 16]), (50, [24, 9, 13]), (30, [16, 9, 1])],
)
def test_the_last_column_gives_way_then_the_id(room: int, widths: list[int]) -> None:
    found = [64, 9, 20]
    table.squeeze(found, room, shortest=24)
    assert found == widths


def test_long_ids_have_their_own_line_where_the_last_column_would_be_hard_to_read(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    generated = "20261117-work-through-two-crashes-2ibm"
    question = "Should add() accept strings, too? Three callers depend on it."
    rows = [
        ("strings", "interrupted", "scripted", "$0.20", question),
        (generated, "completed", "scripted", "-", "Survived two crashes."),
    ]

    def shown(*rows: tuple[str, ...]) -> list[str]:
        table.show(HEAD, rows, dropped_first=(3,), dropped_for_last=(2,), begins_with_id=True)
        return capsys.readouterr().out.splitlines()

    head, first, own, second = shown(*rows)
    assert head == "TASK     STATE        AGENT     COST   LAST"
    assert first == "strings  interrupted  scripted  $0.20  Should add() accept strings, too? Three c"
    assert own == generated
    assert second == "         completed    scripted  -      Survived two crashes."
    # If the rest fits beside the id, it stays in its row.
    assert shown((generated, "completed", "scripted", "-", "Survived."))[1].startswith(
        f"{generated}  completed"
    )


@pytest.mark.parametrize(
    ("most_lines", "shown"),
    [
        (None, ["TASK", "needs you", "t0", "t1", "ended", "t2", "t3"]),
        (7, ["TASK", "needs you", "t0", "t1", "ended", "t2", "t3"]),
        (6, ["TASK", "needs you", "t0", "t1", "… 2 more"]),
        (5, ["TASK", "needs you", "t0", "t1", "… 2 more"]),
        (3, ["TASK", "… 4 more"]),
        (-1, ["TASK", "… 4 more"]),
    ],
)
def test_what_does_not_fit_is_cut_at_the_bottom_and_counted(
    most_lines: int | None, shown: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    headings = {0: "needs you", 2: "ended"}
    table.show(["TASK"], [[f"t{number}"] for number in range(4)], headings=headings, most_lines=most_lines)
    assert capsys.readouterr().out.splitlines() == shown
