"""A stand-in for systemd: `systemctl` and `loginctl` that do to a unit's processes what systemd does.

The unit file is read as systemd reads it (the few settings that ours have). A service is started with the
environment of a user manager: none of the caller's variables but the ones that systemd sets itself. KillMode
decides who is killed.

    python -m tests.support.systemd STATE systemctl --user start holdfast.service
"""

from __future__ import annotations

import configparser
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time

TIMEOUT_S = 5.0


def put_into(folder: str, state: str) -> None:
    """Write `systemctl` and `loginctl` into a directory for PATH; `state` is where they remember things."""
    os.makedirs(state, exist_ok=True)
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    for name in ("systemctl", "loginctl"):
        path = os.path.join(folder, name)
        words = [sys.executable, "-m", "tests.support.systemd", state, name]
        with open(path, "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\ncd {shlex.quote(root)} && exec {shlex.join(words)} "$@"\n')
        os.chmod(path, 0o755)


class Unit:
    """One unit and its main process."""

    def __init__(self, state: str, name: str) -> None:
        base = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
        self.path = os.path.join(base, "systemd", "user", name)
        self.memory = os.path.join(state, name)

    def settings(self) -> dict[str, list[str]]:
        """Every setting of [Service]; one may stand several times."""
        found: dict[str, list[str]] = {}
        parser = configparser.RawConfigParser(strict=False, delimiters=("=",), comment_prefixes=("#",))
        parser.optionxform = str  # type: ignore[assignment,method-assign]
        with open(self.path, encoding="utf-8") as file:
            parser.read_string(file.read())  # the syntax, and that [Service] is there
        assert parser.has_section("Service")
        with open(self.path, encoding="utf-8") as file:
            for line in file:
                name, equals, value = line.strip().partition("=")
                if equals and not line.startswith("#"):
                    found.setdefault(name, []).append(value)
        return found

    @property
    def main_pid(self) -> int:
        try:
            with open(self.memory + ".pid", encoding="utf-8") as file:
                return int(file.read())
        except FileNotFoundError:
            return 0

    def is_active(self) -> bool:
        return bool(self.main_pid) and is_alive(self.main_pid)

    def start(self) -> None:
        if self.is_active():
            return
        settings = self.settings()
        env = {name: os.environ[name] for name in ("HOME", "USER", "LOGNAME") if name in os.environ}
        # systemctl is in the PATH of everything that systemd starts, so this one is, too.
        own = os.path.dirname(shutil.which("systemctl") or "/usr/bin/systemctl")
        env["PATH"] = f"{own}:/usr/local/bin:/usr/bin:/bin"
        env |= dict(_words(value)[0].split("=", 1) for value in settings["Environment"])
        argv = _words(settings["ExecStart"][0])
        process = subprocess.Popen(
            argv,
            env=env,
            cwd=settings["WorkingDirectory"][0],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        with open(self.memory + ".pid", "w", encoding="utf-8") as file:
            file.write(str(process.pid))

    def stop(self) -> None:
        """SIGTERM, then SIGKILL: to the main process only where KillMode is process, else to all that it
        started."""
        pid = self.main_pid
        victims = [pid]
        if self.settings().get("KillMode") != ["process"]:
            from tests.support import processes

            victims += [found.pid for found in processes.descendants(pid)]
        for number in (signal.SIGTERM, signal.SIGKILL):
            for victim in victims:
                try:
                    os.kill(victim, number)
                except ProcessLookupError:
                    continue
            ends_mono = time.monotonic() + TIMEOUT_S
            while any(map(is_alive, victims)) and time.monotonic() < ends_mono:
                time.sleep(0.01)  # noqa: TID251 - the stand-in for a supervisor, not a test
            if not any(map(is_alive, victims)):
                break


def _words(text: str) -> list[str]:
    return [word.replace("%%", "%").replace("$$", "$") for word in shlex.split(text)]


def is_alive(pid: int) -> bool:
    from tests.support import processes

    return processes.is_alive(pid)


def systemctl(state: str, args: list[str]) -> int:
    assert args.pop(0) == "--user", "our service is a user's"
    flags = [word for word in args if word.startswith("--")]
    verb, *names = [word for word in args if not word.startswith("--")]
    if verb in ("daemon-reload", "show-environment", "reset-failed"):
        return 0
    unit = Unit(state, names[0])
    if verb in ("start", "restart", "enable") and not os.path.exists(unit.path):
        print(f"Unit {names[0]} not found.", file=sys.stderr)
        return 5
    enabled = unit.memory + ".enabled"
    if verb == "enable":
        with open(enabled, "w", encoding="utf-8"):
            pass
    elif verb == "disable":
        if os.path.exists(enabled):
            os.unlink(enabled)
        if "--now" in flags:
            unit.stop()
    elif verb == "start":
        unit.start()
    elif verb in ("stop", "restart"):
        unit.stop()
        if verb == "restart":
            unit.start()
    elif verb == "is-active":
        print("active" if unit.is_active() else "inactive")
        return 0 if unit.is_active() else 3
    elif verb == "is-enabled":
        print("enabled" if os.path.exists(enabled) else "disabled")
        return 0 if os.path.exists(enabled) else 1
    else:
        raise AssertionError(f"systemctl {verb} is not imitated")
    return 0


def loginctl(state: str, args: list[str]) -> int:
    path = os.path.join(state, "linger")
    if args[0] == "enable-linger":
        with open(path, "w", encoding="utf-8"):
            pass
    elif args[0] == "disable-linger":
        os.unlink(path)
    elif args[0] == "show-user":
        print("yes" if os.path.exists(path) else "no")
    else:
        raise AssertionError(f"loginctl {args[0]} is not imitated")
    return 0


if __name__ == "__main__":
    state, program, *args = sys.argv[1:]
    with open(os.path.join(state, "calls.jsonl"), "a", encoding="utf-8") as file:
        file.write(json.dumps([program, *args]) + "\n")
    sys.exit(systemctl(state, args) if program == "systemctl" else loginctl(state, args))
