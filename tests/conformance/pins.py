"""The programs that the suite runs, with their versions. A change here changes which
versions holdfast is known to work with."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

#: The variable with the directory of all prefixes, for processes with another HOME.
CACHE = "CONFORMANCE_CACHE"
#: For programs that need a newer Node than the machine's.
NODE = "node@22.23.3"


class Pin(NamedTuple):
    """One program at one version, in its own prefix."""

    agent: str
    package: str
    version: str
    program: str
    #: Installed beside it.
    extra: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of its prefix."""
        return f"{self.agent}-{self.version}"

    @property
    def prefix(self) -> Path:
        """Where it is installed: outside the clone, so that a fresh clone does not download it again."""
        return cache() / self.name

    @property
    def bin(self) -> Path:
        """The directory for PATH."""
        return self.prefix / "node_modules" / ".bin"

    @property
    def stamp(self) -> Path:
        """A file that exists once the prefix is complete."""
        return self.prefix / ".complete"


PINS = (
    Pin("claude", "@anthropic-ai/claude-code", "2.1.197", "claude"),
    Pin("codex", "@openai/codex", "0.166.0", "codex"),
    Pin("gemini", "@google/gemini-cli", "0.61.0", "gemini"),
    Pin("copilot", "@github/copilot", "1.0.102", "copilot"),
    Pin("opencode", "opencode-ai", "1.18.33", "opencode"),
    Pin("pi", "@earendil-works/pi-coding-agent", "0.87.1", "pi", (NODE,)),
)
BY_AGENT = {pin.agent: pin for pin in PINS}


def cache() -> Path:
    """The directory of all prefixes."""
    given = os.environ.get(CACHE)
    if given:
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "holdfast" / "conformance"
