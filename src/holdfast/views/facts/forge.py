"""Pull requests through `gh`, the command line of GitHub.

It runs in the project with the environment of `git.environment_for_others`: it is not taken from a directory
in which agents write, and the git that it starts neither fetches nor runs what a repository names.
"""

from __future__ import annotations

import json

from holdfast.errors import NotPossible
from holdfast.model.record import Record
from holdfast.queue.sources import run
from holdfast.workspace.git.execute import environment_for_others

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: `gh` talks to a server.
_LIMIT_S = 120.0
#: The result of a check: how `gh` groups it.
PENDING, FAILED = ("pending",), ("fail", "cancel")


class Check(Record):
    """One check of a pull request."""

    name: str
    #: pass, fail, pending, skipping or cancel.
    bucket: str
    link: str = ""


class Forge:
    """The forge of a project."""

    def __init__(self, project: str, repository: str) -> None:
        self.project = project
        #: `owner/name`; empty: `gh` finds it from the remotes.
        self.repository = repository

    def find(self, branch: str) -> str | None:
        """The address of the open pull request of a branch. Raises CommandNotFound, NotPossible."""
        found = self._json("pr", "list", "--head", branch, "--state", "open", "--json", "url")
        return str(found[0]["url"]) if found else None

    def create(self, branch: str, *, base: str | None, title: str, body: str, draft: bool) -> str:
        """Open a pull request; returns its address."""
        args = ["pr", "create", "--head", branch, "--title", title, "--body", body]
        args += ["--base", base] if base else []
        args += ["--draft"] if draft else []
        lines = self._run(*args).split()
        return lines[-1] if lines else ""

    def update(self, url: str, *, base: str | None, title: str, body: str) -> None:
        """Give a pull request another title and text."""
        self._run("pr", "edit", url, "--title", title, "--body", body, *(["--base", base] if base else []))

    def checks(self, url: str) -> list[Check]:
        """The checks of a pull request; empty if there are none yet."""
        found = self._json("pr", "checks", url, "--json", "name,bucket,link", allowed=(0, 1, 8))
        return [
            Check(name=str(each["name"]), bucket=str(each["bucket"]), link=str(each.get("link") or ""))
            for each in found
        ]

    def failed_log(self, check: Check) -> str:
        """The log of the failed steps of a check, as far as there is one."""
        _, mark, rest = check.link.partition("/actions/runs/")
        number = rest.partition("/")[0]
        if not mark or not number.isdecimal():
            return ""
        try:
            return self._run("run", "view", number, "--log-failed")
        except NotPossible:
            return ""

    def _json(self, *args: str, allowed: tuple[int, ...] = (0,)) -> list[dict[str, Any]]:
        text = self._run(*args, allowed=allowed)
        try:
            found = json.loads(text or "[]")
        except ValueError as error:
            raise NotPossible(f"'gh {args[0]} {args[1]}' printed no JSON", hint="update gh") from error
        return found if isinstance(found, list) else []  # pyright: ignore[reportUnknownVariableType]

    def _run(self, *args: str, allowed: tuple[int, ...] = (0,)) -> str:
        """The output of `gh`. Raises CommandNotFound, NotPossible."""
        where = ["--repo", self.repository] if self.repository else []
        env = environment_for_others(self.project)
        argv = ["gh", *args, *where]
        output = run.output(argv, cwd=self.project, env=env, limit_s=_LIMIT_S, allowed=allowed)
        return output.decode("utf-8", "replace")
