"""The real `gh` and a GitHub of ours, both in a network namespace that has only loopback."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from typing import Any

from tests.conformance import namespace
from tests.support.github_server import HOST, TOKEN
from tests.support.tools import give_up, need
from tests.support.waiting import eventually

#: The address of the repository.
URL = f"https://{HOST}/o/n.git"
_LINK = f"https://{HOST}/o/n/actions/runs/77/job"
_WHEN = "2026-01-01T00:00:0"


def check(name: str, conclusion: str = "", *, job: int = 8, second: int = 0) -> dict[str, Any]:
    """A check run; without a conclusion it is running."""
    ended = {"status": "COMPLETED", "conclusion": conclusion, "completedAt": f"{_WHEN}9Z"}
    return {
        "__typename": "CheckRun",
        "name": name,
        "startedAt": f"{_WHEN}{second}Z",
        "detailsUrl": f"{_LINK}/{job}",
        "checkSuite": {"workflowRun": {"event": "pull_request", "workflow": {"name": "CI"}}},
        **(ended if conclusion else {"status": "IN_PROGRESS", "conclusion": ""}),
    }


class GitHub:
    """The server, and the environment in which `gh` uses it."""

    def __init__(self, root: str, remote: str) -> None:
        need("gh", "openssl", "unshare", "nsenter")
        enter = namespace.wrapper()
        if enter is None:
            give_up("no network namespace can be created here")
        self.folder, programs = os.path.join(root, "github"), os.path.join(root, "gh-programs")
        os.mkdir(self.folder)
        os.mkdir(programs)
        self._certify()
        self._keep("remote", remote)
        command = [*enter, sys.executable, "-m", "tests.support.github_server", self.folder]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE)
        eventually(self._is_ready, 20.0, "the server answers")
        # Without root, the namespace is one of a user namespace, in which we stay who we are.
        user = ["--user", "--preserve-credentials"] if "--map-root-user" in enter else []
        words = ["nsenter", f"--target={self.process.pid}", *user, "--net", shutil.which("gh") or "gh"]
        path = os.path.join(programs, "gh")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
        os.chmod(path, 0o755)
        self._log_in(remote)
        self.env = {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "SSL_CERT_FILE": os.path.join(self.folder, "cert.pem"),
        }

    def stop(self) -> None:
        self.process.kill()
        self.process.communicate()

    def answer(self, *checks: dict[str, Any]) -> None:
        """The checks that the last commit of every pull request has."""
        self._keep("checks", checks)

    def pulls(self) -> list[dict[str, Any]]:
        with open(os.path.join(self.folder, "pulls"), encoding="utf-8") as file:
            return json.load(file)

    def requests(self) -> list[str]:
        """Method, path and status of every request."""
        with open(os.path.join(self.folder, "requests"), encoding="utf-8") as file:
            return file.read().splitlines()

    def _is_ready(self) -> bool:
        assert self.process.poll() is None, self.process.communicate()[1]
        return os.path.exists(os.path.join(self.folder, "ready"))

    def _log_in(self, remote: str) -> None:
        """As `gh auth login` leaves it. git of the user pushes to the bare repository."""
        settings = os.path.join(os.environ["HOME"], ".config", "gh")
        os.makedirs(settings)
        with open(os.path.join(settings, "hosts.yml"), "w", encoding="utf-8") as file:
            file.write(f"{HOST}:\n    oauth_token: {TOKEN}\n    user: person\n    git_protocol: https\n")
        with open(os.path.join(os.environ["HOME"], ".gitconfig"), "w", encoding="utf-8") as file:
            file.write(f'[url "{remote}"]\n\tinsteadOf = {URL}\n')

    def _certify(self) -> None:
        words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
        words += ["-subj", f"/CN={HOST}", "-addext", f"subjectAltName=DNS:{HOST}"]
        words += ["-keyout", os.path.join(self.folder, "key.pem")]
        words += ["-out", os.path.join(self.folder, "cert.pem")]
        subprocess.run(words, check=True, capture_output=True)

    def _keep(self, name: str, value: Any) -> None:
        path = os.path.join(self.folder, name)
        with open(f"{path}.new", "w", encoding="utf-8") as file:
            json.dump(value, file)
        os.replace(f"{path}.new", path)
