"""Commands that must be refused: an error, a hint, and nothing changed."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys

from tests.support.tasks import holdfast, workspace
from tests.support.tools import need


def tree(path: str) -> dict[str, str]:
    """Every file below a directory with its hash: to see that nothing changed."""
    found = {}
    for folder, directories, files in os.walk(path):
        found.update({os.path.join(folder, name): "directory" for name in directories})
        for name in files:
            full = os.path.join(folder, name)
            with open(full, "rb") if os.path.isfile(full) else open(os.devnull, "rb") as file:
                found[full] = hashlib.sha256(file.read()).hexdigest()
    return found


def refused(*args: str, status: int = 2, **given: object) -> str:
    """Run a command that must fail with `status`; returns its stderr: an error and perhaps a hint, no
    traceback."""
    done = holdfast(*args, **given)
    assert done.returncode == status, (done.returncode, done.stderr)
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert lines[0].startswith("error: "), done.stderr
    assert all(line.startswith(("error: ", "hint: ")) for line in lines), done.stderr
    return done.stderr


def nothing_made(home: str) -> bool:
    return not os.path.isdir(os.path.join(home, "tasks")) or os.listdir(os.path.join(home, "tasks")) == []


def wrote(name: str, data: bytes = b"", mode: int = 0o600) -> str:
    path = os.path.join(workspace(), name)
    with open(path, "wb") as file:
        file.write(data)
    os.chmod(path, mode)
    return path


def without_power(*args: str, home: str | None = None) -> subprocess.CompletedProcess[str]:
    """A command that obeys file modes: root drops the capabilities to bypass them."""
    argv = [sys.executable, "-m", "holdfast", *args]
    if os.geteuid() == 0:
        need("setpriv")
        argv = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all", *argv]
    env = {**os.environ, "HOLDFAST_HOME": home or os.environ["HOLDFAST_HOME"]}
    return subprocess.run(
        argv, env=env, cwd=workspace(), capture_output=True, timeout=30, text=True, check=False
    )


def complaint(done: subprocess.CompletedProcess[str], status: int) -> str:
    assert done.returncode == status, done.stderr
    assert [line.split(":")[0] for line in done.stderr.splitlines()] == ["error", "hint"], done.stderr
    return done.stderr
