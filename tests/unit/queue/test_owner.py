"""Who has a claim."""

from __future__ import annotations

import subprocess
import sys

import pytest

from holdfast.queue import owner


@pytest.mark.starts_processes
def test_this_process_is_alive_and_one_that_ended_is_not() -> None:
    assert owner.is_alive(owner.me())
    done = subprocess.run(
        [sys.executable, "-c", "from holdfast.queue import owner; print(owner.me())"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert not owner.is_alive(done.stdout.strip())


def test_somebody_outside_keeps_a_claim() -> None:
    assert owner.is_outside(owner.outside("ada"))
    assert owner.is_alive(owner.outside("ada"))


def test_a_text_that_names_nobody_is_not_alive() -> None:
    for text in (None, "", "packet", "a:b:c"):
        assert not owner.is_alive(text)
        assert not owner.is_outside(text)
