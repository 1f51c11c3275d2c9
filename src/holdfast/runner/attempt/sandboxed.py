"""The sandbox of an attempt: what its agent needs of the packet and of its config homes, and nothing else.

The packet is hidden. An agent gets its workspace, a /tmp that survives its attempts, its scratch folder, a
folder for its interrupt file, and private config homes. `INTERRUPT_FILE` leads into the sandbox's folder; the
runner moves the file to where it belongs (`interrupt_files.move_from_sandbox`).
"""

from __future__ import annotations

import os

from holdfast import files, own_python, quick_json
from holdfast.agents import registry
from holdfast.agents.base import ConfigHome, Launch
from holdfast.errors import HoldfastError
from holdfast.model import events as ev
from holdfast.model import permissions
from holdfast.runner.attempt import private_home
from holdfast.runner.ledger import Ledger
from holdfast.sandbox import machine, mounts
from holdfast.sandbox import start as starts
from holdfast.sandbox.builder import SandboxBuilder
from holdfast.store import atomic, no_links
from holdfast.store.layout import AttemptDir
from holdfast.workspace import sandbox_commits, task_worktree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.model.spec import SandboxSpec, TaskSpec
    from holdfast.store.layout import Packet
    from holdfast.workspace import git

#: Where programs keep what they can fetch again: HOME is read-only.
_CACHES = {"XDG_CACHE_HOME": "/tmp/.cache", "npm_config_cache": "/tmp/.npm"}
#: Options that name a file for the agent.
_FILE_OPTIONS = ("settings_path", "system_prompt_path")


def wrap(
    ledger: Ledger,
    launch: Launch,
    opened: ev.AttemptOpened,
    *,
    spec: SandboxSpec,
    directory: AttemptDir,
    captured: dict[str, str],
    env: dict[str, str],
) -> tuple[list[str], dict[str, str]]:
    """The command line in the sandbox, and the whole environment.

    `env` is that without a sandbox, `captured` the user's.

    Without bubblewrap, the command line fails: an agent never runs outside its sandbox.
    """
    packet = ledger.packet
    for folder in (packet.sandbox, packet.sandbox_tmp, packet.sandbox_homes, packet.sandbox_asks):
        atomic.make_directory(folder)
    builder = SandboxBuilder(env=env)
    builder.hide(packet.home.path)
    _workspace(ledger, builder, opened)
    builder.put(packet.sandbox_tmp, "/tmp")
    builder.write(packet.scratch, packet.sandbox_asks)
    builder.read(directory.system_prompt, *_named_files(ledger, opened))
    added = {**_CACHES, "TMPDIR": "/tmp", "IS_SANDBOX": "1", "INTERRUPT_FILE": packet.sandbox_request}
    added |= _config_homes(ledger, builder, opened, env)
    added |= proxy_variables(spec.hosts)
    _private_home(builder, launch, captured)
    _usage_file(builder, opened, directory)
    sandbox = builder.sandbox(
        bwrap=machine.path(),
        cwd=ledger.task.workspace_of(opened.stage),
        network=spec.network,
        hosts=spec.hosts,
        after=_after(ledger, opened),
    )
    return mounts.command_line(sandbox, launch.argv), {**env, **added}


def proxy_variables(hosts: tuple[str, ...]) -> dict[str, str]:
    """What programs read to find the proxy, which is the only way to the hosts. Without a list: nothing."""
    if not hosts:
        return {}
    proxy = f"http://127.0.0.1:{mounts.PROXY_PORT}"
    names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
    found = {written: proxy for name in names for written in (name, name.lower())}
    # Servers that the agent starts itself are reached directly, unless the user's are meant.
    is_local = any(host.startswith(("localhost", "127.", "[::1]")) for host in hosts)
    own = "" if is_local else "localhost,127.0.0.1,::1"
    return {**found, "NO_PROXY": own, "no_proxy": own, "NODE_USE_ENV_PROXY": "1"}


def _workspace(ledger: Ledger, builder: SandboxBuilder, opened: ev.AttemptOpened) -> None:
    directory, spec = ledger.task.workspace_of(opened.stage), ledger.task.spec
    patterns = spec.pipeline.forbidden_paths if spec.pipeline is not None else ()
    own = task_worktree.of_stage(ledger.packet, ledger.task, opened.stage)
    is_own = spec.workspace == "worktree" and (directory + "/").startswith(task_worktree.path_of(own) + "/")
    only_reads = _only_reads(ledger, opened)
    if not is_own and not only_reads:
        starts.show(builder, ledger.packet, directory, patterns)
        return
    start = starts.start_of(ledger.packet, directory, patterns)
    if only_reads:
        builder.read_workspace(directory, _in_worktree(own, spec) if is_own else start.repository)
    else:
        # Its root, and not the project in it: that may be a link by now.
        builder.workspace(task_worktree.path_of(own), _in_worktree(own, spec), store=own.sandbox_git)
    starts.forbid(builder, start, directory, patterns)


def _only_reads(ledger: Ledger, opened: ev.AttemptOpened) -> bool:
    """Whether the program relies on the sandbox to write nothing."""
    stage = ledger.task.stage_spec(opened.stage)
    profile = permissions.granted(ledger.task, stage) if stage is not None else ""
    able = registry.adapter(opened.agent).capabilities
    return profile == permissions.READ and bool(able.permission(profile).in_sandbox)


def _after(ledger: Ledger, opened: ev.AttemptOpened) -> tuple[str, ...]:
    """The command that brings the commits of the agent into the user's repository."""
    stage, packet = ledger.task.stage_spec(opened.stage), ledger.packet
    number = stage.candidate if stage is not None and ledger.task.has_own_worktree(opened.stage) else 0
    about = ("--packet", packet.path, "--project", ledger.task.spec.project_dir, "--candidate", str(number))
    # -P: the workspace may contain a json.py.
    return tuple(own_python.command("holdfast.workspace", "bring", *about))


def _in_worktree(own: Packet, spec: TaskSpec) -> git.Repository | None:
    """The repository by the task's record, and not by `.git` files, which the agent can write."""
    try:
        tree = task_worktree.of(own, project=spec.project_dir)
        if tree is None:
            return None
        sandbox_commits.lend(own, tree)
        return task_worktree.inside(tree)
    except (OSError, HoldfastError):
        return None


def _named_files(ledger: Ledger, opened: ev.AttemptOpened) -> list[str]:
    """Files that the user named for the agent, wherever they are."""
    stage = ledger.task.stage_spec(opened.stage)
    options: dict[str, Any] = {**ledger.task.spec.options, **(stage.options if stage is not None else {})}
    names = (*registry.adapter(opened.agent).capabilities.needs, *_FILE_OPTIONS)
    roots = (ledger.task.spec.project_dir, ledger.task.workspace_of(opened.stage))
    named = [value for name in names if isinstance(value := options.get(name), str) and os.path.isfile(value)]
    return [path for path in named if not no_links.leads_out(path, *roots)]


def _config_homes(
    ledger: Ledger, builder: SandboxBuilder, opened: ev.AttemptOpened, env: dict[str, str]
) -> dict[str, str]:
    """Private config homes at the usual paths: settings can be read, logins renewed, all else is the task's.

    So a setting that an agent writes (a hook, a server) never runs outside.
    """
    variables: dict[str, str] = {}
    for number, home in enumerate(registry.adapter(opened.agent).capabilities.config_homes):
        path = _expand(home, env)
        if home.is_shared:
            os.makedirs(path, mode=0o700, exist_ok=True)
            builder.write(path)
            continue
        private = os.path.join(ledger.packet.sandbox_homes, f"{opened.agent}.{number}")
        atomic.make_directory(private)
        os.makedirs(path, mode=0o700, exist_ok=True)  # where it is mounted
        _refill(home, private, path, env, is_used=private_home.is_in_use(ledger.task, opened))
        builder.put(private, path)
        builder.read(*(os.path.join(path, name) for name in home.reads))
        builder.write(*(os.path.join(path, name) for name in home.logins))
        for login in (os.path.join(path, name) for name in home.command_logins):
            (builder.write if _expires(login) else builder.read)(login)
        if ledger.task.spec.session is not None:
            builder.write(*(os.path.join(path, name) for name in home.sessions))
        if home.variable:
            variables[home.variable] = path
    return variables


def _refill(home: ConfigHome, private: str, path: str, env: dict[str, str], *, is_used: bool) -> None:
    """Make the settings as the user's again, and remove what an agent may have planted for this attempt.

    What is shown of the user's stays: another agent of the task may have it mounted there. `is_used`: a
    living agent has this very config home, so only what is missing is added.
    """
    shown = [
        name
        for name in (*home.reads, *home.logins, *home.command_logins)
        if os.path.lexists(os.path.join(path, name))
    ]
    sources: dict[str, str] = {}
    for name in home.copies:
        base, source = os.path.basename(name), _absolute(name, path, env)
        if base not in sources or not os.path.isfile(sources[base]):
            sources[base] = source
    if not is_used:
        private_home.clear(private, (*home.keeps, *home.sessions, *shown, *sources))
    for name, source in sources.items():
        if not (is_used and os.path.lexists(os.path.join(private, name))):
            private_home.copy(source, os.path.join(private, name))


def _expires(login: str) -> bool:
    """Whether a part of a login has to be renewed. In doubt it has not."""
    try:
        parts: Any = quick_json.loads(files.read(login, follow=True))
    except (OSError, ValueError, RecursionError):
        return False
    found: list[Any] = list(parts.values()) if isinstance(parts, dict) else []  # pyright: ignore
    return any(isinstance(part, dict) and part.get("type") == "oauth" for part in found)  # pyright: ignore


def _expand(home: ConfigHome, env: dict[str, str]) -> str:
    """The first path whose variable is set; `~` is HOME."""
    for text in home.paths:
        head, slash, rest = text.partition("/")
        if head == "~":
            return _absolute(text, "", env)
        if base := env.get(head[1:]):
            return os.path.normpath(base + slash + rest)
    raise ValueError(f"no path for a config home: {home.paths}")


def _absolute(name: str, folder: str, env: dict[str, str]) -> str:
    """A path in the user's HOME, or in `folder`."""
    if name.startswith("~/"):
        return os.path.join(env.get("HOME") or os.path.expanduser("~"), name[2:])
    return os.path.join(folder, name)


def _private_home(builder: SandboxBuilder, launch: Launch, captured: dict[str, str]) -> None:
    """The config home that the adapter made itself (`private_home`), and the files that it links to."""
    if launch.home is None:
        return
    builder.write(launch.home.path)
    for name, source in private_home.linked(launch.home, captured).items():
        (builder.write if name in launch.home.logins else builder.read)(source)


def _usage_file(builder: SandboxBuilder, opened: ev.AttemptOpened, directory: AttemptDir) -> None:
    """A folder for the program's usage file: it writes another file first, and renames it."""
    if getattr(registry.adapter(opened.agent), "usage_file", None) is not None:
        atomic.make_directory(directory.in_sandbox)
        builder.put(directory.in_sandbox, directory.path)
