"""Files are opened in one way: nothing but a regular file, without blocking, without following a link."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import pytest

import holdfast
from holdfast import files
from holdfast.errors import UnreadableFile
from holdfast.packet import environment

SOURCE = Path(holdfast.__file__).parent
#: What is opened there is no file of a home: kernel files, our own installation, a user's argument, a
#: project, or a file that the module makes itself.
EXEMPT = {
    "files.py": "the way",
    "store/process.py": "/proc",
    "recorder.py": "/proc",
    "runner/attempt/kinship.py": "/proc",
    "views/doctor/machine.py": "/proc",
    "views/doctor/mounts.py": "/proc",
    "sandbox/machine.py": "/proc",
    "views/cli/show/out.py": "/proc",
    "views/cli/entry.py": "standard streams",
    "seed.py": "our installation",
    "views/cli/commands/help.py": "our installation",
    "pipeline/prompt/template.py": "templates of the installation, the user and the project",
    "agents/probe.py": "an agent's installation",
    "packet/inputs.py": "a user's files, opened without blocking",
    "notify/webhook.py": "a user's file",
    "pipeline/prompt/attachments.py": "a user's files, opened without blocking",
    "queue/sources/run.py": "a user's file",
    "views/create/from_options.py": "a user's file",
    "views/create/check_command.py": "a program",
    "views/removal/session_notes.py": "a new file",
    "runner/stage/bootstrap.py": "a file of the project",
    "views/doctor/home.py": "a new file",
    "workspace/snapshots/trees.py": "git's own files",
    "views/demo/": "its own sandbox",
    "testing/": "programs of their own",
}


def bare_opens(path: Path) -> list[int]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "open"
    ]


def test_no_other_module_opens_files_by_itself() -> None:
    found = {
        module: lines
        for path in sorted(SOURCE.rglob("*.py"))
        if (lines := bare_opens(path))
        and not (module := path.relative_to(SOURCE).as_posix()).startswith(tuple(EXEMPT))
    }
    assert found == {}, "use files.stream, files.read or atomic.read_json"


def test_a_regular_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 300_000)
    assert files.read(str(path)) == b"x" * 300_000
    with files.stream(str(path)) as file:
        assert file.read(5) == b"xxxxx"


@pytest.mark.parametrize("makes", ["pipe", "directory", "link", "zero", "huge"])
def test_anything_else_is_refused_at_once(tmp_path: Path, makes: str) -> None:
    path = str(tmp_path / "file")
    match makes:
        case "pipe":
            os.mkfifo(path)
        case "directory":
            os.mkdir(path)
        case "link":
            (tmp_path / "other").write_bytes(b"of another user")
            os.symlink(tmp_path / "other", path)
        case "zero":
            os.symlink("/dev/zero", path)
        case _:
            with open(path, "wb") as file:
                file.truncate(2 * 1024**3)
    with pytest.raises(OSError) as caught:
        files.read(path)
    assert caught.value.errno in files.UNUSABLE
    if makes == "link":
        assert files.read(path, follow=True) == b"of another user"
    if makes == "zero":
        with pytest.raises(OSError, match="regular"):
            files.read(path, follow=True)


def test_nothing_is_read_after_too_long_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_BYTES", 10)
    path = tmp_path / "file"
    path.write_bytes(b"short\n" + b"y" * 35 + b"\nnext\n" + b"torn")
    with files.stream(str(path)) as file:
        assert list(files.lines(file)) == [b"short\n", b"y" * 10]


def test_an_argument_may_be_a_pipe_but_must_have_an_end() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"A=1\n")
    os.close(writing)
    try:
        assert environment.read_file(f"/dev/fd/{reading}") == {"A": "1"}
    finally:
        os.close(reading)
    with pytest.raises(UnreadableFile, match="more than 64 MB"):
        environment.read_file("/dev/zero")
