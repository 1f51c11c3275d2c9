"""Importing the data of views loads no view and no library of a view."""

from __future__ import annotations

import json
import pkgutil
import subprocess
import sys

import pytest

from holdfast.views import facts

_SCRIPT = """
import importlib, json, sys
importlib.import_module(sys.argv[1])
print(json.dumps(sorted(sys.modules)))
"""
_LIBRARIES = {"click", "mcp", "rich", "starlette", "textual", "uvicorn"}


@pytest.mark.parametrize("name", [module.name for module in pkgutil.iter_modules(facts.__path__)])
def test_it_loads_no_view(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, f"{facts.__name__}.{name}"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    loaded = set(json.loads(done.stdout))
    assert not loaded & _LIBRARIES
    assert not [module for module in loaded if module.startswith("holdfast.views.cli")]
