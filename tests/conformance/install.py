"""Installs the pinned programs with npm: `python -m tests.conformance.install [AGENT…]`. Complete
installations stay as they are."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.conformance.pins import BY_AGENT, PINS, cache

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.conformance.pins import Pin

INSTALL_S = 900.0


def missing() -> list[Pin]:
    """The programs that are not installed completely."""
    return [pin for pin in PINS if not pin.stamp.exists()]


def install(pin: Pin) -> str:
    """Installs one program and returns its version. Raises OSError or SubprocessError."""
    work = cache() / f".{pin.name}.{os.getpid()}"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    (work / "package.json").write_text('{"private": true}\n')
    packages = [f"{pin.package}@{pin.version}", *pin.extra]
    flags = [
        "--no-audit",
        "--no-fund",
        "--no-package-lock",
        "--no-update-notifier",
        "--loglevel=error",
        "--engine-strict=false",
    ]
    try:
        subprocess.run(
            ["npm", "install", *flags, *packages],
            cwd=work,
            check=True,
            timeout=INSTALL_S,
            stdin=subprocess.DEVNULL,
        )
        shutil.rmtree(pin.prefix, ignore_errors=True)
        work.rename(pin.prefix)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    told = version(pin)
    if told != pin.version:
        raise OSError(f"{pin.package} in {pin.prefix} is {told}")
    pin.stamp.write_text(told + "\n")
    return told


def version(pin: Pin) -> str:
    """The installed version, from its package.json: no program is run outside the namespace, not even for
    its version."""
    with open(pin.prefix / "node_modules" / pin.package / "package.json", encoding="utf-8") as file:
        told = json.load(file)["version"]
    if not os.access(pin.bin / pin.program, os.X_OK):
        raise OSError(f"no {pin.program} in {pin.bin}")
    return told


def main(argv: Sequence[str]) -> int:
    """Installs those of the named programs (default: all) that are missing."""
    wanted = [BY_AGENT[name] for name in argv] if argv else list(PINS)
    if shutil.which("npm") is None:
        sys.stderr.write("error: the conformance suite needs npm; hint: install Node 20 or later\n")
        return 1
    failed = False
    for pin in wanted:
        if pin.stamp.exists():
            continue
        sys.stdout.write(f"installing {pin.package} {pin.version}\n")
        sys.stdout.flush()
        try:
            install(pin)
        except (OSError, subprocess.SubprocessError) as error:
            sys.stderr.write(f"error: {pin.package} {pin.version} was not installed: {error}\n")
            failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
