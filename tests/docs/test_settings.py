"""docs/guides/settings.md has every setting with its default and variable, and a valid example."""

from __future__ import annotations

import os
import re

from holdfast.config import classes, settings
from holdfast.config.keys import KEYS
from tests.support import pages


def page() -> str:
    return pages.read("docs/guides/settings.md")


def test_the_table_matches_the_code() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \|(.*)\|$", page(), re.MULTILINE))
    assert list(rows) == list(KEYS)
    for name, key in KEYS.items():
        cells = [cell.strip().strip("`") for cell in rows[name].split("|")]
        assert cells[3] == key.variable, name
        assert cells[4] == classes.of_setting(name), name
        if key.default:
            assert cells[1] == str(key.default), name


def test_the_example_is_valid(tmp_path: os.PathLike[str]) -> None:
    path = os.path.join(tmp_path, "config.toml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(pages.fenced(page(), "toml"))
    values = settings.read(path)
    assert values["deadline"] == "2h"
    assert values["env_file"] == os.path.join(tmp_path, "secrets.env")
