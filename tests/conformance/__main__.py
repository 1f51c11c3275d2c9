"""`python -m tests.conformance [--smoke] [pytest options]`: run the suite in its own network namespace."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile

from tests.conformance import install, namespace, pins

_ENTER = "--inside"
_SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
#: Passed on from the caller's environment. Nothing else is: no key, no proxy, no home.
_KEPT = ("CI", "TERM", "LANG", "HOLDFAST_KEEP")


def main(argv: list[str]) -> int:
    """Outside: enter the namespace. Inside: loopback up, then pytest."""
    if argv[:1] == [_ENTER]:
        return _inside(argv[1:])
    command = namespace.wrapper()
    if command is None:
        return _refuse("a network namespace cannot be made here", "run it as root, or allow user namespaces")
    missing = install.missing()
    if missing:
        names = ", ".join(pin.name for pin in missing)
        return _refuse(f"not installed: {names}", "make conformance-setup")
    home = tempfile.mkdtemp(prefix="hf-conformance-")
    try:
        line = [*command, sys.executable, "-m", "tests.conformance", _ENTER, *argv]
        return subprocess.run(line, env=_clean(home), check=False).returncode
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _inside(argv: list[str]) -> int:
    namespace.bring_up_loopback()
    if namespace.interfaces() != ["lo"]:
        return _refuse(f"the namespace has {namespace.interfaces()}", "it must have loopback only")
    os.environ[namespace.MARK] = "1"
    import pytest

    given = ["-m", "smoke", *(arg for arg in argv if arg != "--smoke")] if "--smoke" in argv else argv
    return int(
        pytest.main(["-p", "no:cacheprovider", "-p", "tests.conformance.report", "tests/conformance", *given])
    )


def _clean(home: str) -> dict[str, str]:
    env = {name: os.environ[name] for name in _KEPT if name in os.environ}
    path = f"{os.path.dirname(sys.executable)}:{_SYSTEM_PATH}"
    return {**env, "HOME": home, "PATH": path, pins.CACHE: str(pins.cache()), "PYTHONDONTWRITEBYTECODE": "1"}


def _refuse(why: str, hint: str) -> int:
    sys.stderr.write(f"error: the conformance suite cannot run: {why}; hint: {hint}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
