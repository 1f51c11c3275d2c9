"""`doctor` and an installed holdfast whose files have other names."""

from __future__ import annotations

import os
import shutil

import pytest

import holdfast as package
from tests.support.tasks import holdfast


@pytest.mark.parametrize("is_linked", [False, True])
def test_files_of_holdfast_with_other_hard_links(home: str, is_linked: bool) -> None:
    root = os.path.dirname(home)
    source, copy = os.path.dirname(package.__file__), os.path.join(root, "site-packages", "holdfast")
    shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__", "testing"))
    if is_linked:
        os.link(os.path.join(copy, "files.py"), os.path.join(root, "files.py"))
    done = holdfast("doctor", cwd=root, env={"PYTHONPATH": os.path.dirname(copy)})
    assert ("--link-mode=copy" in " ".join(done.stdout.split())) == is_linked, done.stdout + done.stderr
