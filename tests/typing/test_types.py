"""Type checkers see the API as it is: correct uses pass in strict mode, wrong ones are errors."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast
from tests.support import pages

EXAMPLES = Path(__file__).with_name("api.py")


def errors_in(folder: Path) -> list[str]:
    """What pyright says in strict mode, as it would in a user's project."""
    config = {
        "typeCheckingMode": "strict",
        "pythonVersion": "3.11",
        "reportUnnecessaryTypeIgnoreComment": True,
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(config), encoding="utf-8")
    pyright = os.path.join(os.path.dirname(sys.executable), "pyright")
    done = subprocess.run(
        [pyright, "--outputjson", "--pythonpath", sys.executable, "-p", str(folder)],
        env={**os.environ, "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"},
        capture_output=True,
        timeout=110,
        check=False,
    )
    found = json.loads(done.stdout)
    assert found["summary"]["filesAnalyzed"] == 1, done.stdout
    return [
        f"{each['range']['start']['line'] + 1}: {each.get('rule')}: {each['message']}"
        for each in found["generalDiagnostics"]
    ]


def test_correct_uses_pass_and_wrong_ones_are_errors(tmp_path: Path) -> None:
    shutil.copy(EXAMPLES, tmp_path)
    assert errors_in(tmp_path) == []


@pytest.mark.parametrize("page", ["python", "orchestrate"])
def test_the_examples_of_the_guides_have_types(page: str, tmp_path: Path) -> None:
    text = pages.read(f"docs/guides/{page}.md")
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    (tmp_path / "guide.py").write_text("\n".join(blocks), encoding="utf-8")
    assert errors_in(tmp_path) == []


def test_the_stub_has_every_name_of_the_api() -> None:
    stub = Path(holdfast.__file__).with_name("__init__.pyi").read_text(encoding="utf-8")
    listed = set(re.findall(r"import \w+ as (\w+)", stub))
    assert listed == set(vars(holdfast)["_API"])
    for name in listed:
        assert getattr(holdfast, name).__name__ == name
    assert Path(holdfast.__file__).with_name("py.typed").exists()
