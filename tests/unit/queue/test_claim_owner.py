"""The owner of a claim."""

from __future__ import annotations

import subprocess
import sys

import pytest

from holdfast.queue import claim_owner


@pytest.mark.starts_processes
def test_this_process_is_alive_and_one_that_ended_is_not() -> None:
    assert claim_owner.is_alive(claim_owner.this_process())
    script = "from holdfast.queue import claim_owner; print(claim_owner.this_process())"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not claim_owner.is_alive(done.stdout.strip())


def test_an_external_worker_keeps_its_claim() -> None:
    assert claim_owner.is_external(claim_owner.external("ada"))
    assert claim_owner.is_alive(claim_owner.external("ada"))


def test_a_text_that_names_no_process_is_not_alive() -> None:
    for text in (None, "", "packet", "a:b:c"):
        assert not claim_owner.is_alive(text)
        assert not claim_owner.is_external(text)
