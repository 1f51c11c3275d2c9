"""Only store/layout.py knows the names of files in a home, a packet and an attempt."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import holdfast
from holdfast import recorder
from holdfast.model import manifest
from holdfast.store.layout import AttemptDir, Home, InterruptDir, Packet

SOURCE = Path(holdfast.__file__).parent
#: The layout itself; the recorder, which may not import it; the model, which is below it; separate programs.
EXEMPT = ("store/layout.py", "recorder.py", "model/manifest.py", "testing/")
#: The same name in another place: the results that a pipeline publishes to the project, and the settings in
#: the config homes of agents.
OTHERS = {
    ("pipeline/results/export.py", "summary.md"),
    # The end of a path, and names within a directory, for which there is no packet or home yet.
    ("packet/asker.py", "/runner.lock"),
    ("sandbox/builder.py", "keeper.lock"),
    ("sandbox/builder.py", "settings.json"),
    ("sandbox/builder.py", "audit.jsonl"),
    ("views/facts/changes.py", "audit.jsonl"),
    ("views/facts/changes.py", "manifest.json"),
    ("views/facts/changes.py", "_task.done"),
    ("views/facts/changes.py", "/done/_task.done"),
    *((f"agents/{name}/adapter.py", "settings.json") for name in ("claude", "copilot", "gemini", "pi")),
}


def names() -> set[str]:
    """File names with a suffix; words such as `down` and `lock` are too common to search for."""
    places = (Home(""), Packet(""), AttemptDir(""), InterruptDir(""))
    paths = {value for place in places for value in vars(place).values() if isinstance(value, str)}
    return {name for name in map(os.path.basename, paths) if "." in name}


def constants(path: Path) -> list[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]


def test_no_other_module_spells_a_file_name() -> None:
    known = names()
    assert {"events.jsonl", "result.json", "queue.db", "context.json"} <= known
    spelled = set()
    for path in sorted(SOURCE.rglob("*.py")):
        module = path.relative_to(SOURCE).as_posix()
        if module.startswith(EXEMPT):
            continue
        spelled |= {(module, text) for text in constants(path) if text.rpartition("/")[2] in known}
    assert spelled - OTHERS == set()


def test_the_recorder_writes_the_files_of_the_layout() -> None:
    written = {"identity.json", "exit.json", "exit_code", "done", "pid", "stdout.log", "stderr.log"}
    assert written <= set(constants(Path(recorder.__file__)))
    assert {os.path.join("/a", name) for name in written} <= set(vars(AttemptDir("/a")).values())


def test_the_manifest_names_the_interrupt_file_of_the_layout() -> None:
    assert os.path.relpath(Packet("/p").interrupt_request, "/p") in constants(Path(manifest.__file__))
