"""The settings of a user that git gets from us: a few that can do no harm, checked one by one.

git itself reads only the configuration that we write. A setting of the user counts if it is in the list
below and its value has the expected form: line endings, file modes, who commits. So a configuration that an
agent wrote can choose nothing else, wherever it is. Ignore rules and attributes are taken as text: an
attribute can name a filter or a driver, but there is none to be found.
"""

from __future__ import annotations

import os
import re
import stat

from holdfast.errors import GitFailed
from holdfast.model.record import Record
from holdfast.workspace.git.execute import execute, is_late
from holdfast.workspace.git.parse import names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from holdfast.workspace.git.discovery import Repository

_SWITCH = re.compile(r"true|false|yes|no|on|off|1|0|")
_TEXT = re.compile(r"[^\x00-\x1f\x7f]{1,500}")
_HARMLESS = {
    "core.autocrlf": re.compile(r"true|false|input|yes|no|on|off|1|0|"),
    "core.eol": re.compile(r"lf|crlf|native"),
    "core.filemode": _SWITCH,
    "core.ignorecase": _SWITCH,
    "core.precomposeunicode": _SWITCH,
    "core.symlinks": _SWITCH,
    "core.sparsecheckout": _SWITCH,
    "core.sparsecheckoutcone": _SWITCH,
    "core.logallrefupdates": re.compile(r"true|false|always"),
    "core.sharedrepository": re.compile(r"[a-z]{1,20}|0[0-7]{3}|true|false"),
    "index.sparse": _SWITCH,
    "extensions.objectformat": re.compile(r"sha1|sha256"),
    "extensions.refstorage": re.compile(r"files|reftable"),
    "user.name": _TEXT,
    "user.email": _TEXT,
    "author.name": _TEXT,
    "author.email": _TEXT,
    "committer.name": _TEXT,
    "committer.email": _TEXT,
}
_FILTER = re.compile(r"filter\.(.+)\.(?:clean|process)", re.DOTALL)
#: Scopes of what is in the repository, and of what that includes: others may have written it.
_OF_REPOSITORY = ("local", "worktree")
_READ_BYTES = 1 << 20
_READ_S = 10.0
#: Where the user's own configuration is; only the call that lists settings gets them.
_WHERE = ("HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM")


class Settings(Record):
    """What git is told."""

    schema: str = "holdfast.git-settings/1"
    #: Harmless settings, by name.
    values: dict[str, str]
    #: Ignore rules of the user and of `info/exclude`, as the content of one file.
    exclude: str = ""
    #: The content of `info/attributes`, and of the user's own attributes file.
    attributes: str = ""
    user_attributes: str = ""
    #: Filters that the user has configured. They are never run.
    filters: tuple[str, ...] = ()
    #: Whether each worktree has a configuration of its own.
    has_worktree_config: bool = False

    @classmethod
    def from_file(cls, data: dict[str, Any]) -> Settings:
        """The settings in a file, which an agent may have changed: they are checked again."""
        values = data.get("values")
        filters: Any = data.get("filters")

        def text(name: str) -> str:
            found = data.get(name)
            return found if isinstance(found, str) else ""

        return cls(
            values=_harmless(values.items()) if isinstance(values, dict) else {},  # pyright: ignore
            exclude=text("exclude"),
            attributes=text("attributes"),
            user_attributes=text("user_attributes"),
            filters=tuple(map(str, filters)) if isinstance(filters, list) else (),  # pyright: ignore
        )


def none() -> Settings:
    """No settings."""
    return Settings(values={})


_read: dict[tuple[object, ...], Settings] = {}


def read(repository: Repository) -> Settings:
    """The settings for a repository: those of the user, and those in the repository."""
    watched = [
        os.path.join(repository.common_dir, "config"),
        os.path.join(repository.git_dir, "config.worktree"),
        os.path.join(repository.common_dir, "info", "exclude"),
        os.path.join(repository.common_dir, "info", "attributes"),
    ]
    key = (repository.git_dir, repository.common_dir, *map(_signature, watched))
    if key not in _read:
        _read[key] = _read_now(repository)
    return _read[key]


def _signature(path: str) -> tuple[int, ...]:
    try:
        found = os.lstat(path)
    except OSError:
        return ()
    return found.st_ino, found.st_size, found.st_mtime_ns


def _read_now(repository: Repository) -> Settings:
    scoped = _scoped(repository)
    entries = [(name, value) for _, name, value in scoped]
    values = _harmless(entries)
    everything = dict(entries)
    exclude = [
        _chosen_text(repository, scoped, "core.excludesfile", "ignore"),
        _own_text(repository, os.path.join(repository.common_dir, "info", "exclude")),
    ]
    return Settings(
        values=values,
        exclude="".join(text if not text or text.endswith("\n") else text + "\n" for text in exclude),
        attributes=_own_text(repository, os.path.join(repository.common_dir, "info", "attributes")),
        user_attributes=_chosen_text(repository, scoped, "core.attributesfile", "attributes"),
        filters=tuple(
            dict.fromkeys(match.group(1) for name, _ in entries if (match := _FILTER.fullmatch(name)))
        ),
        has_worktree_config=everything.get("extensions.worktreeconfig") == "true",
    )


def remotes(repository: Repository) -> dict[str, str]:
    """The remotes, each with the address to push to. An agent can have written them."""
    found: dict[str, dict[str, str]] = {}
    for name, value in _listed(repository):
        section, _, rest = name.partition(".")
        remote, _, key = rest.rpartition(".")
        if section == "remote" and key in ("url", "pushurl"):
            found.setdefault(remote, {})[key] = value
    # One without an address has its name as such, as for git: it is refused as an address.
    return {remote: keys.get("pushurl") or keys.get("url", remote) for remote, keys in found.items()}


def files_of(repository: Repository) -> list[str]:
    """The files with the settings of a repository itself, and those that they include, wherever they are."""
    entries = iter(names(_list(repository, "--show-scope", "--show-origin")))
    found: dict[str, None] = {}
    for scope in entries:
        origin, _ = next(entries), next(entries)
        if scope in _OF_REPOSITORY and origin.startswith("file:"):
            found[os.path.join(repository.git_dir, origin.removeprefix("file:"))] = None
    return [os.path.join(repository.common_dir, "config"), *found]


def of_user(name: str) -> str | None:
    """A setting of the user, without those of any repository; None if it is not set."""
    return dict(all_of_user()).get(name)


def all_of_user() -> list[tuple[str, str]]:
    """All settings of the user, without those of any repository."""
    return _listed(None)


def of_repository(repository: Repository) -> list[tuple[str, str]]:
    """The settings of a repository itself, without those of the user."""
    return [(name, value) for scope, name, value in _scoped(repository) if scope in _OF_REPOSITORY]


def _scoped(repository: Repository) -> list[tuple[str, str, str]]:
    """All settings, as in `_listed`, each with its scope."""
    entries = iter(names(_list(repository, "--show-scope")))
    return [(scope, *pair) for scope in entries for pair in _pairs([next(entries)])]


def _listed(repository: Repository | None) -> list[tuple[str, str]]:
    """All settings, the last one of a name counts; without a repository those of the user."""
    return pairs(_list(repository))


def _list(repository: Repository | None, *options: str) -> bytes:
    """The output of `git config --list`.

    This is the only call that reads configuration that others can write. It only prints it.
    """
    env = {name: os.environ[name] for name in _WHERE if name in os.environ}
    missing = {name: "" for name in ("GIT_CONFIG_SYSTEM", "GIT_CONFIG_GLOBAL") if name not in env}
    places: list[dict[str, str]] = [{}]
    if repository is not None:
        here = {"GIT_DIR": repository.git_dir, "GIT_COMMON_DIR": repository.common_dir}
        places.insert(0, here)
    for where in places:
        try:
            return execute(
                ["config", "--list", "-z", "--includes", *options],
                cwd="/",
                env={**env, **where},
                limit_s=_READ_S,
                without=(*missing, *(() if "GIT_CONFIG_NOSYSTEM" in env else ("GIT_CONFIG_NOSYSTEM",))),
            ).stdout
        except GitFailed:
            if is_late():
                raise
            continue  # the repository's own configuration is broken: that of the user counts
    return b""


def listed(config: bytes) -> list[tuple[str, str]] | None:
    """All names and values of a configuration file, given its content; None if it cannot be parsed."""
    args = ["config", "--file", "-", "--list", "-z", "--no-includes"]
    try:
        return pairs(execute(args, cwd="/", env={}, stdin=config, limit_s=_READ_S).stdout)
    except GitFailed:
        return None


def pairs(listed: bytes) -> list[tuple[str, str]]:
    """Names and values in the output of `git config --list -z`. A name without a value means true."""
    return _pairs(names(listed))


def _pairs(entries: Iterable[str]) -> list[tuple[str, str]]:
    parts = [entry.partition("\n") for entry in entries]
    return [(name, value if mark else "true") for name, mark, value in parts]


def _harmless(entries: Iterable[tuple[Any, Any]]) -> dict[str, str]:
    return {
        name: value
        for name, value in entries
        if name in _HARMLESS and isinstance(value, str) and _HARMLESS[name].fullmatch(value)
    }


def _chosen_text(
    repository: Repository, scoped: list[tuple[str, str, str]], setting: str, default: str
) -> str:
    """The text of the file that a setting names, or of git's default. What a repository names must be in it:
    the text is copied, and a clone could name a key of the user."""
    for scope, name, value in reversed(scoped):
        if name != setting:
            continue
        if scope not in _OF_REPOSITORY:
            return _content(os.path.expanduser(value))
        path = os.path.join(repository.top, os.path.expanduser(value))
        if value in ("", os.devnull) or _is_in_repository(repository, path):
            return _own_text(repository, path)
    folder = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return _content(os.path.join(folder, "git", default))


def _own_text(repository: Repository, path: str) -> str:
    return _content(os.path.realpath(path)) if _is_in_repository(repository, path) else ""


def _is_in_repository(repository: Repository, path: str) -> bool:
    """Whether a file is in the repository, also behind links. Those of the tool `repo` lead to `.repo`, in a
    directory above."""
    try:
        real: str = os.path.realpath(path)
    except ValueError:
        return False
    around = real.partition(f"{os.sep}.repo{os.sep}")
    roots = [repository.top, repository.git_dir, repository.common_dir]
    is_of_repo = bool(around[1]) and f"{os.path.realpath(repository.top)}/".startswith(f"{around[0]}/")
    return is_of_repo or any(real.startswith(f"{os.path.realpath(root)}/") for root in roots)


def _content(path: str) -> str:
    """The text of a regular file, at most a megabyte; empty if it cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError):
        return ""
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return ""
        return os.read(descriptor, _READ_BYTES).decode("utf-8", "surrogateescape")
    except OSError:
        return ""
    finally:
        os.close(descriptor)
