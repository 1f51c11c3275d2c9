"""A stand-in for gh in PATH."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

#: It remembers its pull requests and how it was called, in a folder.
GH = """#!{python}
import json, os, subprocess, sys
folder, words = {folder!r}, sys.argv[1:]
def kept(name, default):
    path = os.path.join(folder, name)
    return json.load(open(path)) if os.path.exists(path) else default
with open(os.path.join(folder, "calls"), "a") as file:
    file.write(json.dumps({{"argv": words, "cwd": os.getcwd(), "env": dict(os.environ)}}) + "\\n")
def after(flag):
    return words[words.index(flag) + 1] if flag in words else None
pulls = kept("pulls", {{}})
if words[:2] == ["pr", "list"]:
    print(json.dumps([{{"url": pulls[after("--head")]["url"]}}] if after("--head") in pulls else []))
elif words[:2] == ["pr", "create"]:
    assert after("--body-file") == "-"
    url = "https://forge.example/o/n/pull/%d" % (len(pulls) + 1)
    pulls[after("--head")] = {{"url": url, "title": after("--title"), "body": sys.stdin.read()}}
    print("Creating pull request", file=sys.stderr)
    print(url)
elif words[:2] == ["api", "--hostname"]:
    assert after("--input") == "-"
    place = after("PATCH").removeprefix("repos").replace("/pulls/", "/pull/")
    pull = next(each for each in pulls.values() if each["url"] == "https://" + after("--hostname") + place)
    pull.update(json.load(sys.stdin))
elif words[:2] == ["pr", "view"]:
    branch, pull = next(pair for pair in pulls.items() if pair[1]["url"].endswith("/pull/" + words[2]))
    answers = kept("checks", [])
    # Its own environment lets no git of ours talk to a remote.
    head = kept("head", "") or subprocess.run(
        ["git", "--git-dir", kept("remote", ""), "rev-parse", "refs/heads/" + branch],
        capture_output=True, text=True, env={{"PATH": os.environ["PATH"]}},
    ).stdout.strip()
    rollup = answers[0] if answers else []
    state = pull.get("state", "OPEN")
    found = {{"url": pull["url"], "state": state, "headRefName": branch, "headRefOid": head}}
    print(json.dumps({{**found, "statusCheckRollup": rollup}}))
elif words[:2] == ["pr", "checks"]:
    answers = kept("checks", [])
    answer = answers.pop(0) if len(answers) > 1 else answers[0] if answers else []
    json.dump(answers or [answer], open(os.path.join(folder, "checks"), "w"))
    if not answer:
        sys.exit("no checks reported on the branch")
    for each in answer:
        print(each["name"], each["bucket"], "5s", each["link"], "", sep="\\t")
    buckets = [each["bucket"] for each in answer]
    sys.exit(1 if "fail" in buckets else 8 if "pending" in buckets else 0)
elif words[:2] == ["run", "view"]:
    print("test\\tpytest\\tE   assert 1 == 2 in job " + after("--job"))
else:
    sys.exit("unknown: %r" % words)
json.dump(pulls, open(os.path.join(folder, "pulls"), "w"))
"""


def path_without_gh() -> str:
    """PATH without gh. A folder that has it is replaced by one with links to the other programs."""
    root = os.path.dirname(os.environ["HOLDFAST_HOME"])
    folders: list[str] = []
    for at, folder in enumerate(os.environ["PATH"].split(":")):
        if not os.path.exists(os.path.join(folder, "gh")):
            folders.append(folder)
            continue
        linked = os.path.join(root, f"without-gh-{at}")
        if not os.path.isdir(linked):
            os.mkdir(linked)
            for name in os.listdir(folder):
                if name != "gh":
                    os.symlink(os.path.join(folder, name), os.path.join(linked, name))
        folders.append(linked)
    return ":".join(folders)


class Gh:
    """A stand-in for gh."""

    def __init__(self, root: str | None = None, *, script: str = GH, remote: str = "") -> None:
        root = root or os.path.dirname(os.environ["HOLDFAST_HOME"])
        self.folder, programs = os.path.join(root, "gh-state"), os.path.join(root, "gh-programs")
        os.mkdir(self.folder)
        os.mkdir(programs)
        path = os.path.join(programs, "gh")
        with open(path, "w", encoding="utf-8") as file:
            # Not the python of the environment in this repository: holdfast runs no script that names it.
            file.write(script.format(python=os.path.realpath(sys.executable), folder=self.folder))
        os.chmod(path, 0o755)
        self.remote = remote or os.path.join(root, "remote.git")
        self._keep("remote", self.remote)
        self.env = {"PATH": f"{programs}:{os.environ['PATH']}"}

    def calls(self) -> list[dict[str, Any]]:
        with open(os.path.join(self.folder, "calls"), encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def verbs(self) -> list[str]:
        return [" ".join(call["argv"][:2]) for call in self.calls()]

    def pulls(self) -> dict[str, Any]:
        with open(os.path.join(self.folder, "pulls"), encoding="utf-8") as file:
            return json.load(file)

    def answer(self, *checks: list[dict[str, str]]) -> None:
        """What `pr checks` says, one after the other; the last one again and again."""
        self._keep("checks", checks)

    def show_head(self, commit: str) -> None:
        """The commit that the forge has seen; empty: what is at the remote."""
        self._keep("head", commit)

    def change(self, branch: str, **fields: str) -> None:
        """Change a pull request."""
        pulls = self.pulls()
        pulls[branch].update(fields)
        self._keep("pulls", pulls)

    def _keep(self, name: str, value: Any) -> None:
        path = os.path.join(self.folder, name)
        with open(f"{path}.new", "w", encoding="utf-8") as file:
            json.dump(value, file)
        os.replace(f"{path}.new", path)
