"""The output of the command line matches its page and its schemas."""

from __future__ import annotations

import re

from contracts import pages, schema
from holdfast import errors
from holdfast.model.status import EXIT_STATUS
from holdfast.store import index_rows
from holdfast.views.cli import entry

PAGE = pages.read("cli.md")


def test_a_short_manifest_has_the_fields_of_the_index() -> None:
    # Not stored: runner_gone (of the lock), queue, and the last two, which change with time. Stages are
    # shortened.
    fields = {*index_rows.FIELDS, "stages", "runner_gone", "queue", "group", "elapsed_s"}
    assert set(schema.schemas()["short-manifest"]["properties"]) == fields
    for field in fields:
        assert f"`{field}`" in PAGE


def test_every_field_of_the_status_is_explained() -> None:
    for field in schema.schemas()["status"]["properties"]:
        assert f"`{field}`" in PAGE or field == "home"


def test_every_exit_status_is_on_the_page() -> None:
    listed = {int(number) for number in re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE)}
    classes = [
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.HoldfastError)
    ]
    ours = {kind.exit_status for kind in classes} | {entry.BUG, 130}
    assert ours | set(EXIT_STATUS.values()) == listed
