"""Pushing to a remote of the user: the only call of git that leaves the machine.

It is a user's act, so the user's own settings count here: credential helpers, ssh, proxies,
`url.*.insteadOf`. Those of the repository, which an agent can write, still do not, but for the address of the
remote. That must have a form that names a place and no command (docs/security.md).
"""

from __future__ import annotations

import os
import re

from holdfast import program_search
from holdfast.errors import GitFailed, NotPossible, UsageError
from holdfast.model.record import Record
from holdfast.workspace.git import settings
from holdfast.workspace.git.execute import execute
from holdfast.workspace.git.parse import text
from holdfast.workspace.git.private import SharedDirectories, Target

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterable

    from holdfast.workspace.git.discovery import Repository

#: Not `file`: `local_remote` pushes to a path, because git would run the hooks there.
PROTOCOLS = "https:ssh"
LIMIT_S = 300.0
#: What the user's way to a remote may need of the environment.
_OF_USER = (
    "HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM", "SSH_AUTH_SOCK", "SSH_AGENT_PID", "DBUS_SESSION_BUS_ADDRESS", "GNUPGHOME",
    "http_proxy", "https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY", "ALL_PROXY", "all_proxy",
    "GIT_SSL_CAINFO", "SSL_CERT_FILE", "SSL_CERT_DIR", "GH_TOKEN", "GITHUB_TOKEN", "GH_HOST", "GH_CONFIG_DIR",
)  # fmt: skip
_REPLACED = ("GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_GLOBAL")
#: Over whatever the user's settings say.
_SETTINGS = {"push.gpgSign": "false", "push.recurseSubmodules": "no", "push.followTags": "false"}
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]{0,99}")
_HOST = r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?"
_PLACE = r"[A-Za-z0-9._~%+/-]+"
#: Host and path of an address: https, ssh, and the short form of ssh.
_URLS = (
    re.compile(rf"https://(?:[A-Za-z0-9._~%+-]+@)?({_HOST})(?::\d+)?/({_PLACE})"),
    re.compile(rf"ssh://(?:[A-Za-z0-9_][A-Za-z0-9._-]*@)?({_HOST})(?::\d+)?/({_PLACE})"),
    re.compile(rf"(?:[A-Za-z0-9_][A-Za-z0-9._-]*@)?({_HOST}):((?!//){_PLACE})"),
)


class Remote(Record):
    """A place to push to."""

    name: str
    url: str

    @property
    def path(self) -> str | None:
        """Its directory, if it is on this machine."""
        place = self.url.removeprefix("file://")
        return place if place.startswith("/") else None

    @property
    def repository(self) -> str:
        """`owner/name`, or `host/owner/name` outside github.com; empty if the address has no such form."""
        match = next((found for each in _URLS if (found := each.fullmatch(self.url))), None)
        words = match[2].strip("/").removesuffix(".git").split("/") if match is not None else []
        if match is None or len(words) != 2 or not all(words):
            return ""
        return "/".join(words) if match[1] == "github.com" else f"{match[1]}/{'/'.join(words)}"


def find(repository: Repository, name: str | None) -> Remote:
    """The remote with this name; without a name `origin`, or the only one. Raises UsageError, NotPossible."""
    known = settings.remotes(repository)
    chosen = name or ("origin" if "origin" in known or len(known) != 1 else next(iter(known)))
    if chosen not in known:
        listed = ", ".join(sorted(known)) or "none"
        raise UsageError(
            f"{repository.top} has no remote {chosen}",
            hint=f"its remotes: {listed}; 'git remote add {chosen} URL' adds one, --remote chooses another",
        )
    remote = Remote(name=chosen, url=known[chosen])
    if not _NAME.fullmatch(chosen) or not is_place(remote):
        raise NotPossible(
            f"the address of the remote {chosen} is not one that holdfast pushes to: {remote.url[:200]!r}",
            hint="https://…, ssh://…, user@host:path, or an absolute path; else push with git",
        )
    # git gets the path that is checked: a link may lead elsewhere later, or in another process.
    return remote if remote.path is None else remote.evolve(url=os.path.realpath(remote.path))


def is_place(remote: Remote) -> bool:
    """Whether an address names a place, and neither a command nor an option of a program."""
    if remote.path is not None:
        is_of_process = remote.path.startswith(("/proc/", "/dev/"))
        return remote.url.isprintable() and os.path.isabs(remote.path) and not is_of_process
    return any(each.fullmatch(remote.url) for each in _URLS)


def on_this_machine(remote: Remote) -> str | None:
    """The directory of a remote, if it is on this machine. The user's `url.*.insteadOf` may lead there."""
    found: dict[str, dict[str, str]] = {}
    for name, start in settings.all_of_user():
        section, _, rest = name.partition(".")
        base, _, key = rest.rpartition(".")
        if section == "url" and start and remote.url.startswith(start):
            found.setdefault(key, {})[start] = base
    for key in ("pushinsteadof", "insteadof"):
        if starts := found.get(key):
            longest = max(starts, key=len)
            return remote.evolve(url=starts[longest] + remote.url[len(longest) :]).path
    return remote.path


def tip(repository: Repository, remote: Remote, branch: str) -> str | None:
    """The commit of a branch there; None if there is no such branch. Raises GitFailed."""
    args = ["ls-remote", "--refs", remote.url, f"refs/heads/{branch}"]
    line = text(_call(repository, args).stdout)
    return line.split()[0] if line else None


def push(repository: Repository, remote: Remote, *, commit: str, branch: str, instead_of: str | None) -> None:
    """Make `commit` the tip of a branch there. Raises GitFailed.

    `instead_of` is the tip that it may replace; None: there must be no such branch.
    """
    ref = f"refs/heads/{branch}"
    lease = f"--force-with-lease={ref}:{instead_of or ''}"
    _call(repository, ["push", "--quiet", "--no-verify", "--no-signed", lease, remote.url, f"{commit}:{ref}"])


def _call(repository: Repository, args: Iterable[str]) -> subprocess.CompletedProcess[bytes]:
    program_search.distrust(repository.top)
    target = Target(
        objects=os.path.join(repository.common_dir, "objects"),
        git_dir=repository.git_dir,
        common_dir=repository.common_dir,
    )
    of_user = {name: os.environ[name] for name in _OF_USER if name in os.environ}
    env = {
        **of_user,
        "GIT_ALLOW_PROTOCOL": PROTOCOLS,
        # Our configuration of git has none.
        "GIT_SSH_COMMAND": os.environ.get("GIT_SSH_COMMAND") or settings.of_user("core.sshcommand") or "ssh",
    }
    env["GIT_CONFIG_COUNT"] = str(len(_SETTINGS))
    for at, (name, value) in enumerate(_SETTINGS.items()):
        env |= {f"GIT_CONFIG_KEY_{at}": name, f"GIT_CONFIG_VALUE_{at}": value}
    try:
        with SharedDirectories() as directories:
            return execute(
                args,
                cwd="/",  # ssh and credential helpers start there, too
                env={**directories.variables(target, settings.read(repository)), **env},
                limit_s=LIMIT_S,
                without=[name for name in _REPLACED if name not in of_user],
                writable=None,  # ssh and credential helpers write files of the user
            )
    except GitFailed as error:
        raise GitFailed(
            str(error), hint="git cannot ask for a password here; try the same with git, or log in first"
        ) from error
