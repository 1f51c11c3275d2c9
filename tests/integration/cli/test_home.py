"""Every verb that needs a home reports an unusable one."""

from __future__ import annotations

import os

import pytest

from tests.support.tasks import holdfast, workspace

WORDS = [
    ["ls"], ["ls", "--json"], ["status"], ["run", "--", "true"], ["run", "-d", "--", "true"], ["show", "x"],
    ["logs", "x"], ["wait", "x"], ["attach", "x"], ["stop", "x"], ["interrupt", "x"], ["resume", "x"],
    ["retry", "x"], ["rm", "x"], ["up"], ["down"], ["service", "status"],
]  # fmt: skip


@pytest.mark.parametrize("below", ["", "/deep/below"])
@pytest.mark.parametrize("words", WORDS, ids=" ".join)
def test_a_home_that_is_a_file(home: str, words: list[str], below: str) -> None:
    workspace()
    os.rmdir(home)
    with open(home, "w", encoding="utf-8"):
        pass
    done = holdfast(*words, env={"HOLDFAST_HOME": home + below}, cwd=workspace())
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"error: the home {home}{below} cannot be used: {home} is a file\n"
        "hint: set HOLDFAST_HOME to a directory; it need not exist\n"
    )
    assert os.path.getsize(home) == 0
