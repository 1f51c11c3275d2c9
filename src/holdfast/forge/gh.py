"""Pull requests through `gh`, the command line of GitHub.

It runs with the environment of `git.for_gh`, which names the repository, and not in the project: it is not
taken from a directory in which agents write, and the git that it starts neither fetches nor runs what a
repository names.

Distributions ship versions that are years old. So it is asked only for what 2.23 (2023) can do: its `pr
checks` prints no JSON, and its `pr edit` asks for something that GitHub no longer has.
"""

from __future__ import annotations

import json
import re

from holdfast.errors import NotPossible
from holdfast.model.record import Record
from holdfast.queue.sources import run
from holdfast.workspace.git.for_gh import environment_for_gh

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: `gh` talks to a server.
_LIMIT_S = 120.0
#: The result of a check: how `gh` groups it. A cancelled one is a failed one.
PENDING, FAILED = ("pending",), ("fail",)
_BUCKETS = ("pass", "skipping", *PENDING, *FAILED)
_PULL = re.compile(r"https://([^/\s]+)/([^/\s]+/[^/\s]+)/pull/(\d+)")
_ACTION = re.compile(r"/actions/runs/(\d+)(?:/job/(\d+))?")


class CiCheck(Record):
    """One check of a pull request."""

    name: str
    #: pass, fail, pending or skipping.
    bucket: str
    link: str = ""


class PullRequest(Record):
    """The state of a pull request."""

    url: str
    #: OPEN, CLOSED or MERGED.
    state: str
    #: Its branch, and the last commit of it.
    branch: str
    head: str
    has_checks: bool

    def shows_checks_of(self, commit: str) -> bool:
        """The forge takes a moment to see a push; until then it shows the checks of the commit before."""
        return self.head == commit and self.has_checks


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
        args = ["pr", "create", "--head", branch, "--title", title, "--body-file", "-"]
        args += ["--base", base] if base else []
        args += ["--draft"] if draft else []
        lines = self._run(*args, stdin=body).split()
        return lines[-1] if lines else ""

    def update(self, url: str, *, base: str | None, title: str, body: str) -> None:
        """Give a pull request another title and text."""
        host, repository, number = _parts(url)
        given = {"title": title, "body": body, **({"base": base} if base else {})}
        place = ["--hostname", host, "--method", "PATCH", f"repos/{repository}/pulls/{number}"]
        self._start(["api", *place, "--input", "-"], stdin=json.dumps(given))

    def view(self, url: str) -> PullRequest:
        """Whether a pull request is open, at which commit, and whether that has any check."""
        fields = "url,state,headRefName,headRefOid,statusCheckRollup"
        # Its number: with an address, gh would talk to whatever server that names.
        number = _parts(url)[2]
        found = self._parsed(self._run("pr", "view", number, "--json", fields), "pr view")
        table: dict[str, Any] = found if isinstance(found, dict) else {}  # pyright: ignore[reportUnknownVariableType]
        return PullRequest(
            url=str(table.get("url") or ""),
            state=str(table.get("state") or ""),
            branch=str(table.get("headRefName") or ""),
            head=str(table.get("headRefOid") or ""),
            has_checks=bool(table.get("statusCheckRollup")),
        )

    def checks(self, url: str) -> list[CiCheck]:
        """The checks of a pull request that has some. Raises NotPossible."""
        # 0: all passed. 8: one is pending. 1: one failed; or an error, and nothing is printed.
        lines = self._run("pr", "checks", _parts(url)[2], allowed=(0, 1, 8)).splitlines()
        rows = [line.split("\t") for line in lines]
        if not rows or any(len(row) < 4 or row[1] not in _BUCKETS for row in rows):
            raise NotPossible(
                f"'gh pr checks {url}' printed no checks", hint="run it by hand to see the error"
            )
        return [CiCheck(name=row[0], bucket=row[1], link=row[3]) for row in rows]

    def failed_log(self, check: CiCheck) -> str:
        """The log of the failed steps of a check, as far as there is one."""
        match = _ACTION.search(check.link)
        if match is None:
            return ""
        run_id, job_id = match.groups()
        # Without its job: the logs of everything that failed in the run.
        which = ["--job", job_id] if job_id else [run_id]
        try:
            return self._run("run", "view", *which, "--log-failed")
        except NotPossible:
            return ""

    def _json(self, *args: str) -> list[dict[str, Any]]:
        found = self._parsed(self._run(*args) or "[]", f"{args[0]} {args[1]}")
        return found if isinstance(found, list) else []  # pyright: ignore[reportUnknownVariableType]

    def _parsed(self, text: str, what: str) -> object:
        try:
            return json.loads(text)
        except ValueError as error:
            raise NotPossible(f"'gh {what}' printed no JSON", hint="update gh") from error

    def _run(self, *args: str, stdin: str = "", allowed: tuple[int, ...] = (0,)) -> str:
        """The output of `gh` about this repository. Raises CommandNotFound, NotPossible."""
        where = ["--repo", self.repository] if self.repository else []
        return self._start([*args, *where], stdin=stdin, allowed=allowed)

    def _start(self, args: list[str], *, stdin: str = "", allowed: tuple[int, ...] = (0,)) -> str:
        with environment_for_gh(self.project, self.repository) as env:
            output = run.output(
                ["gh", *args],
                cwd="/",  # the variables name the repository
                env=env,
                stdin=stdin.encode("utf-8", "replace"),
                limit_s=_LIMIT_S,
                allowed=allowed,
            )
        return output.decode("utf-8", "replace")


def is_address(text: str) -> bool:
    """Whether a text has the form of the address of a pull request."""
    return _PULL.fullmatch(text) is not None


def _parts(url: str) -> tuple[str, str, str]:
    """Host, repository and number of a pull request. Raises NotPossible."""
    match = _PULL.fullmatch(url)
    if match is None:
        raise NotPossible(f"not the address of a pull request: {url[:200]!r}", hint="update gh")
    return match[1], match[2], match[3]
