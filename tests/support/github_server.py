"""The part of GitHub's API that `gh pr` and `gh run view` use, over TLS on port 443 of a private loopback.

    unshare --net -- python -m tests.support.github_server FOLDER

FOLDER has the certificate (`cert.pem`, `key.pem`), the bare repository (`remote`: a path), and the checks of
the last commit (`checks`: contexts as in GraphQL). It gets `pulls`, `requests` and, when the server
answers, `ready`. As GitHub does since 2025, it refuses queries for classic projects.
"""

from __future__ import annotations

import http.server
import io
import json
import os
import re
import ssl
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

from tests.conformance import namespace

HOST, TOKEN = "localhost", "dummy"
_REPOSITORY = {
    "id": "R_1", "name": "n", "owner": {"login": "o"}, "viewerPermission": "WRITE",
    "defaultBranchRef": {"name": "main"}, "parent": None,
}  # fmt: skip
_CLASSIC = "Projects (classic) is being deprecated in favor of the new Projects experience"


class Forge:
    """The pull requests of one repository, and the checks of their last commits."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.pulls: list[dict[str, Any]] = []

    def read(self, name: str, default: Any) -> Any:
        path = os.path.join(self.folder, name)
        if not os.path.exists(path):
            return default
        with open(path, encoding="utf-8") as file:
            return json.load(file)

    def keep(self) -> None:
        path = os.path.join(self.folder, "pulls")
        with open(f"{path}.new", "w", encoding="utf-8") as file:
            json.dump(self.pulls, file)
        os.replace(f"{path}.new", path)

    def shown(self, pull: dict[str, Any]) -> dict[str, Any]:
        git = ["git", "--git-dir", self.read("remote", ""), "rev-parse", f"refs/heads/{pull['headRefName']}"]
        head = subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()
        return {**pull, "headRefOid": head, "statusCheckRollup": self.rollup(head)}

    def rollup(self, head: str) -> dict[str, Any]:
        """As GraphQL has it: null for a commit without checks."""
        nodes = self.read("checks", [])
        contexts = {"nodes": nodes, "pageInfo": {"hasNextPage": False, "endCursor": ""}}
        rollup = {"contexts": contexts} if nodes else None
        return {"nodes": [{"commit": {"oid": head, "statusCheckRollup": rollup}}]}

    # ── GraphQL ──

    def query(self, text: str, variables: dict[str, Any]) -> dict[str, Any]:
        found = re.search(r"\b(?:query|mutation)\s+(\w+)", text)
        name = found[1] if found else ""
        if "projectCards" in text:
            where = ["repository", "pullRequest", "projectCards"]
            return {"data": None, "errors": [{"message": _CLASSIC, "path": where, "type": "NOT_FOUND"}]}
        answer = self._operations().get(name)
        if answer is None:
            return {"errors": [{"message": f"this server has no operation {name!r}: {text}"}]}
        return {"data": answer(variables)}

    def _operations(self) -> dict[str, Callable[[dict[str, Any]], dict[str, Any]]]:
        return {
            "RepositoryInfo": self._repository,
            "PullRequest_fields": self._fields,
            "PullRequest_fields2": self._fields,
            "PullRequestList": self._listed,
            "PullRequestForBranch": self._found,
            "PullRequestCreate": self._created,
            "PullRequestByNumber": self._numbered,
            "PullRequestStatusChecks": self._checked,
        }

    def _repository(self, _: dict[str, Any]) -> dict[str, Any]:
        return {"repository": _REPOSITORY}

    def _fields(self, _: dict[str, Any]) -> dict[str, Any]:
        fields = {"fields": [{"name": "statusCheckRollup"}]}
        return {"PullRequest": fields, "StatusCheckRollupContextConnection": fields, "WorkflowRun": fields}

    def _listed(self, variables: dict[str, Any]) -> dict[str, Any]:
        return self._of_branch(variables["headBranch"], variables["state"])

    def _found(self, variables: dict[str, Any]) -> dict[str, Any]:
        return self._of_branch(variables["headRefName"], variables["states"])

    def _of_branch(self, branch: str, states: list[str]) -> dict[str, Any]:
        fits = [pull for pull in self.pulls if pull["headRefName"] == branch and pull["state"] in states]
        page = {"hasNextPage": False, "endCursor": ""}
        nodes = [self.shown(pull) for pull in fits]
        pulls = {"totalCount": len(nodes), "nodes": nodes, "pageInfo": page}
        return {"repository": {**_REPOSITORY, "pullRequests": pulls}}

    def _created(self, variables: dict[str, Any]) -> dict[str, Any]:
        number, given = len(self.pulls) + 1, variables["input"]
        self.pulls.append(
            {
                "id": f"PR_{number}",
                "number": number,
                "url": f"https://{HOST}/o/n/pull/{number}",
                "state": "OPEN",
                "title": given["title"],
                "body": given["body"],
                "isDraft": given["draft"],
                "baseRefName": given["baseRefName"],
                "headRefName": given["headRefName"],
                "isCrossRepository": False,
                "headRepositoryOwner": {"login": "o"},
            }
        )
        self.keep()
        return {"createPullRequest": {"pullRequest": self.pulls[-1]}}

    def _numbered(self, variables: dict[str, Any]) -> dict[str, Any]:
        return {"repository": {"pullRequest": self.shown(self.pulls[variables["pr_number"] - 1])}}

    def _checked(self, variables: dict[str, Any]) -> dict[str, Any]:
        pull = next(each for each in self.pulls if each["id"] == variables["id"])
        return {"node": self.shown(pull)}

    # ── REST ──

    def patch(self, path: str, given: dict[str, Any]) -> dict[str, Any] | None:
        found = re.fullmatch(r"/api/v3/repos/o/n/pulls/(\d+)", path)
        if found is None or not 1 <= int(found[1]) <= len(self.pulls):
            return None
        pull = self.pulls[int(found[1]) - 1]
        names = {"title": "title", "body": "body", "base": "baseRefName"}
        pull.update({names[name]: value for name, value in given.items()})
        self.keep()
        return {"number": pull["number"], "html_url": pull["url"]}

    def get(self, path: str) -> Any:
        """JSON, or the bytes of an archive; None: there is no such thing. Run 77 has two jobs that failed."""
        place = "/api/v3/repos/o/n/actions"
        if path == f"{place}/runs/77":
            jobs = f"https://{HOST}{place}/runs/77/jobs"
            times = {"created_at": _WHEN, "updated_at": _WHEN, "run_started_at": _WHEN}
            return {"id": 77, "workflow_id": 5, "jobs_url": jobs, **_COMPLETED, **times}
        if path == f"{place}/workflows/5":
            return {"id": 5, "name": "CI", "state": "active"}
        if path == f"{place}/runs/77/jobs":
            return {"total_count": len(JOBS), "jobs": [_job(number) for number in JOBS]}
        if (found := re.fullmatch(rf"{place}/jobs/(\d+)", path)) and int(found[1]) in JOBS:
            return _job(int(found[1]))
        if path == f"{place}/runs/77/logs":
            packed = io.BytesIO()
            with zipfile.ZipFile(packed, "w") as archive:
                for name in JOBS.values():
                    archive.writestr(f"{name}/1_Set up job.txt", "prepared\n")
                    archive.writestr(f"{name}/2_Run it.txt", f"E   assert 1 == 2 in {name}\n")
            return packed.getvalue()
        return None


JOBS = {8: "test", 9: "lint"}
_WHEN = "2026-01-01T00:00:00Z"
_COMPLETED = {"status": "completed", "conclusion": "failure"}


def _job(number: int) -> dict[str, Any]:
    steps = [
        {"name": "Set up job", "status": "completed", "conclusion": "success", "number": 1},
        {"name": "Run it", "number": 2, **_COMPLETED},
    ]
    times = {"started_at": _WHEN, "completed_at": _WHEN}
    return {"id": number, "run_id": 77, "name": JOBS[number], "steps": steps, **times, **_COMPLETED}


class Handler(http.server.BaseHTTPRequestHandler):
    forge: Forge

    def do_POST(self) -> None:
        given = self.given()
        if self.path == "/api/graphql":
            self.answer(200, self.forge.query(given["query"], given.get("variables") or {}))
        else:
            self.answer(404, {"message": "Not Found"})

    def do_PATCH(self) -> None:
        found = self.forge.patch(self.path, self.given())
        self.answer(404 if found is None else 200, found or {"message": "Not Found"})

    def do_GET(self) -> None:
        found = self.forge.get(self.path.partition("?")[0])
        self.answer(404 if found is None else 200, {"message": "Not Found"} if found is None else found)

    def given(self) -> Any:
        length = self.headers.get("Content-Length")
        return json.loads(self.rfile.read(int(length)) if length is not None else b"".join(self.chunks()))

    def chunks(self) -> Iterator[bytes]:
        """What `gh api` reads from its stdin has no length."""
        while size := int(self.rfile.readline(), 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()

    def answer(self, status: int, found: Any) -> None:
        if self.headers.get("Authorization") != f"token {TOKEN}":
            status, found = 401, {"message": "Bad credentials"}
        with open(os.path.join(self.forge.folder, "requests"), "a", encoding="utf-8") as file:
            file.write(f"{self.command} {self.path} {status}\n")
        data = found if isinstance(found, bytes) else json.dumps(found).encode()
        self.send_response(status)
        kind = "application/zip" if isinstance(found, bytes) else "application/json; charset=utf-8"
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


def main(folder: str) -> None:
    namespace.bring_up_loopback()
    assert namespace.interfaces() == ["lo"]
    Handler.forge = Forge(folder)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 443), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(os.path.join(folder, "cert.pem"), os.path.join(folder, "key.pem"))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    with open(os.path.join(folder, "ready"), "w", encoding="utf-8"):
        pass
    server.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1])
