"""Installs what tests use: official MCP clients and axe-core. `python -m tests.support.mcp_setup`."""

from __future__ import annotations

import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.axe import AXE
from tests.support.mcp import INSPECTOR, SDKS, cache

if TYPE_CHECKING:
    from collections.abc import Callable

_LIMIT_S = 900.0


def main() -> int:
    """What is complete stays as it is."""
    failed = False
    for version in SDKS:
        failed |= not _install(cache() / f"sdk-{version}", partial(_sdk, version))
    failed |= not _install(
        cache() / f"inspector-{INSPECTOR}", partial(_npm, f"@modelcontextprotocol/inspector@{INSPECTOR}")
    )
    failed |= not _install(cache() / f"axe-{AXE}", partial(_npm, f"axe-core@{AXE}"))
    return 1 if failed else 0


def _install(target: Path, make: Callable[[Path], None]) -> bool:
    """A stamp tells that it is complete: an environment cannot be moved, because it has absolute paths."""
    stamp = target / ".complete"
    if stamp.exists():
        return True
    print(f"installing {target.name}", flush=True)
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    try:
        make(target)
    except (OSError, subprocess.SubprocessError) as error:
        sys.stderr.write(f"error: {target.name} was not installed: {error}\n")
        return False
    stamp.touch()
    return True


def _sdk(version: str, target: Path) -> None:
    _run([sys.executable, "-m", "venv", str(target)])
    _run([str(target / "bin" / "pip"), "install", "--quiet", f"mcp=={version}"])


def _npm(package: str, target: Path) -> None:
    if shutil.which("npm") is None:
        raise OSError("it needs npm: install Node 20 or later")
    (target / "package.json").write_text('{"private": true}\n', encoding="utf-8")
    flags = ["--no-audit", "--no-fund", "--no-package-lock", "--no-update-notifier", "--loglevel=error"]
    _run(["npm", "install", *flags, package], cwd=target)


def _run(argv: list[str], cwd: Path | None = None) -> None:
    subprocess.run(argv, cwd=cwd, check=True, timeout=_LIMIT_S, stdin=subprocess.DEVNULL)


if __name__ == "__main__":
    sys.exit(main())
