"""Tables of which nothing is lost, however narrow."""

from __future__ import annotations

import pytest

from holdfast.views.cli.show import wrapped_table

HEAD = ("TASK", "STATE", "WHY")
LONG = "a-task-whose-name-is-as-long-as-one-may-be-and-goes-on-to-the-end"
ROWS = [
    ("fix", "held", "a task that it waits for has failed, and nobody tried it again"),
    (LONG, "queued", ""),
    ("other", "poison", "/where/a/path/is/that/nobody/wants/broken/in/the/middle says more"),
]


def printed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: int | None) -> str:
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns is not None:
        monkeypatch.setenv("COLUMNS", str(columns))
    wrapped_table.show(HEAD, ROWS)
    return capsys.readouterr().out


def test_without_a_width_a_row_is_a_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = printed(capsys, monkeypatch, None).splitlines()
    assert len(lines) == 4
    assert lines[1].endswith(ROWS[0][2])


@pytest.mark.parametrize("columns", [30, 50, 64, 80, 100, 120, 150, 200])
def test_everything_is_there_and_fits(
    columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = printed(capsys, monkeypatch, columns)
    for line in text.splitlines():
        assert len(line) <= columns or " " not in line.strip(), line
        assert line == line.rstrip()
    said = text.split()
    assert sorted(said) == sorted(word for row in (HEAD, *ROWS) for cell in row for word in cell.split())


def test_what_fits_into_its_row_is_not_printed_below_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    path = "/where/a/path/is/that/nobody/wants/broken/in"
    wrapped_table.show(
        ("TASK", "ENDED", "WHY"), [("fix", "2026-11-17 13:14", "old"), ("b", "-", f"kept: {path}")]
    )
    head, row, *kept = capsys.readouterr().out.splitlines()
    assert (head.split(), row.split()) == (["TASK", "ENDED", "WHY"], ["fix", "2026-11-17", "13:14", "old"])
    assert kept[-1].strip().endswith(path)


def test_a_word_that_is_too_wide_does_not_spoil_the_other_rows(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = printed(capsys, monkeypatch, 100).splitlines()
    assert lines[0].split() == list(HEAD)
    assert lines[1].startswith("fix ")
    assert lines[1].index("held") == lines[0].index("STATE")
    at = lines.index(LONG)
    assert lines[at + 1].strip() == "queued"
    assert lines[at + 1].index("queued") == lines[0].index("STATE")
