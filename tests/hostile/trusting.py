"""A project whose files are not trusted, and where trust is recorded."""

from __future__ import annotations

import json
import os

from tests.support.repos import Repo
from tests.support.tasks import holdfast, workspace


def project(**files: str) -> Repo:
    """A cloned project; `config` is its settings."""
    repo = Repo(os.path.join(workspace(), "clone"))
    if "config" in files:
        repo.write(".holdfast/config.toml", files["config"])
    return repo


def trust(repo: Repo, *flags: str) -> str:
    done = holdfast("trust", repo.path, "--yes", *flags)
    assert done.returncode == 0, done.stderr
    return done.stdout


def records() -> str:
    return os.path.join(os.environ["HOME"], ".config", "holdfast", "trust")


def proof(name: str = "pwned") -> str:
    return os.path.join(workspace(), name)


def audit() -> list[dict[str, object]]:
    with open(os.path.join(os.environ["HOLDFAST_HOME"], "audit.jsonl"), encoding="utf-8") as file:
        return [json.loads(line) for line in file]
