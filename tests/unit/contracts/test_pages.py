"""The pages of docs/contracts match the code."""

from __future__ import annotations

import os
import re

import pytest

from contracts import manifest_yaml, pages, schema
from contracts.parts import CONTRACTS
from holdfast.model import manifest
from holdfast.model.attempt_table import Reading, read_table
from holdfast.model.status import EXIT_STATUS, MOVES
from holdfast.packet import environment
from holdfast.store import layout

REGENERATE = "run python -m contracts"


@pytest.mark.parametrize("page", pages.pages())
def test_the_generated_part_of_a_page_is_up_to_date(page: str) -> None:
    assert pages.read(page) == pages.regenerated(page), REGENERATE


def test_every_generated_part_is_in_a_page() -> None:
    text = "".join(pages.read(page) for page in pages.pages())
    assert set(re.findall(r"<!-- generated: (\w+) -->", text)) == set(pages.PARTS)


def test_the_schemas_on_disk_are_up_to_date() -> None:
    folder = os.path.join(CONTRACTS, "schemas")
    wanted = {f"{name}.json": schema.as_text(each) for name, each in schema.schemas().items()}
    # The schema of manifest.yaml is tested in test_manifest_yaml.py.
    others = {os.path.basename(manifest_yaml.SCHEMA)}
    assert sorted(set(os.listdir(folder)) - others) == sorted(wanted)
    for name, text in wanted.items():
        assert pages.read(os.path.join("schemas", name)) == text, f"{name}: {REGENERATE}"


def test_the_table_of_moves_lists_every_state_and_every_move() -> None:
    rows = dict(re.findall(r"^\| (\w+) \| (.*) \|$", pages.moves(), re.MULTILINE))
    for old, targets in MOVES.items():
        assert {word for word in re.split(r"\W+", rows[old]) if word in MOVES} == targets


def test_every_state_is_explained() -> None:
    page = pages.read("states.md").partition("<!-- generated")[0]
    for status in MOVES:
        assert re.search(rf"^\| .*\b{status}\b.* \|", page, re.MULTILINE), status


def test_the_exit_statuses_are_those_of_the_page() -> None:
    page = pages.read("states.md")
    for status, number in EXIT_STATUS.items():
        assert re.search(rf"\b{status}\b[a-z ]* {number}\b", page), status


def test_the_attempt_table_of_the_page_is_the_code() -> None:
    rows = re.findall(
        r"^\| (held|free|any) \| (yes|no) \| (yes|no) \| `(\w+)` \|",
        pages.read("attempt.md"),
        re.MULTILINE,
    )
    assert len(rows) == 6
    seen = set()
    for lock, identity, exit_record, reading in rows:
        for held in {"held": [True], "free": [False], "any": [True, False]}[lock]:
            case = (held, identity == "yes", exit_record == "yes")
            assert case not in seen
            seen.add(case)
            assert read_table(lock_held=held, has_identity=case[1], has_exit=case[2]) == reading
    assert len(seen) == 8
    assert {row[3] for row in rows} == set(Reading)


def test_every_field_of_the_manifest_is_on_its_page() -> None:
    page = pages.read("manifest.md")
    for field in manifest.FIELDS:
        assert re.search(rf"`{field}(\[\])?`", page), field


def test_every_field_of_a_schema_is_on_a_page() -> None:
    text = "".join(
        pages.read(name) for name in os.listdir(CONTRACTS) if name.endswith(".md") and name != "events.md"
    )
    for name in ("request", "env", "exit", "identity", "current-session"):
        for field in schema.schemas()[name]["properties"]:
            assert f"`{field}`" in text, f"{name}: {field}"


@pytest.mark.parametrize(
    ("made", "root"),
    [
        (layout.Home("/h"), "/h"),
        (layout.Packet("/h/tasks/id"), "/h/tasks/id"),
        (layout.AttemptDir("/h/tasks/id/attempts/001-x"), "/h/tasks/id/attempts/001-x"),
    ],
)
def test_every_path_of_the_layout_is_on_the_page(made: object, root: str) -> None:
    page = pages.read("files.md")
    for value in vars(made).values():
        if value.startswith(root + "/"):
            path = os.path.relpath(value, root)
            assert re.search(rf"`{re.escape(path)}[/`]", page), path


def test_every_captured_variable_is_on_its_page() -> None:
    page = pages.read("env.md")
    for name in environment.NAMES:
        assert name.upper() in page, name


def test_links_between_the_pages_resolve() -> None:
    for name in os.listdir(CONTRACTS):
        if not name.endswith(".md"):
            continue
        for target in re.findall(r"\]\(([^)#]+)\)", pages.read(name)):
            if not target.startswith("https://"):
                assert os.path.exists(os.path.join(CONTRACTS, target)), f"{name}: {target}"


def test_every_fixture_is_linked_or_listed() -> None:
    text = "".join(pages.read(name) for name in os.listdir(CONTRACTS) if name.endswith(".md"))
    for name in os.listdir(os.path.join(CONTRACTS, "fixtures")):
        assert name in text, name
