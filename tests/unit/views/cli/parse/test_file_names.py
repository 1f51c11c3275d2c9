"""Names of files that a shell puts in place of `*` are no options."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.errors import UsageError
from holdfast.views.cli.parse import quick

ACCEPT = "--accept=sh evil.sh;: .yaml"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "--x").mkdir()
    (tmp_path / "y").mkdir()
    for name in ("--trust-project", ACCEPT, "-d", "items.jsonl", "plan.yaml", "--x/items", "y/items"):
        (tmp_path / name).touch()


@pytest.mark.parametrize(
    "argv",
    [
        ["import", "--trust-project", "items.jsonl"],
        [ACCEPT, "plan.yaml", "--agent", "claude"],
        ["-d", "plan.yaml"],
        ["import", "--x/items", "y/items"],
        ["import", "/etc/passwd", "--trust-project"],
        ["--trust-project", "-d"],
        ["a prompt", "--trust-project"],
    ],
)
def test_a_name_in_place_of_an_option_is_refused(argv: list[str]) -> None:
    with pytest.raises(UsageError, match="is also the name of a file here: was it a wildcard") as caught:
        quick.refuse_file_names(argv)
    assert caught.value.hint == "remove or rename the file, or write './*' instead of '*'"


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["import", "./--trust-project", "./items.jsonl"],
        ["import", "--dry-run", "items.jsonl"],
        ["--dry-run", "--", "cat", "-d", "items.jsonl"],
        ["--", "--trust-project", "items.jsonl"],
        ["-", "items.jsonl"],
    ],
)
def test_others_are_not(argv: list[str]) -> None:
    quick.refuse_file_names(argv)


def test_a_file_that_ends_the_options(tmp_path: Path) -> None:
    """`holdfast run *` would run the next name."""
    (tmp_path / "--").touch()
    with pytest.raises(UsageError, match="'--' is also the name"):
        quick.refuse_file_names(["--", "items.jsonl"])
