"""Where each file of a home and of a packet lies. The only module that knows the names.

Plain f-strings: os.path.join takes ten times as long, and a keeper makes thousands of these.
"""

from __future__ import annotations

import os


class Home:
    """Paths below a home."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.tasks = f"{path}/tasks"
        self.archive = f"{path}/archive"
        self.index = f"{path}/index.db"
        self.queue = f"{path}/queue.db"
        self.queue_kept = f"{path}/queue.json"
        self.keeper_lock = f"{path}/keeper.lock"
        self.keeper_start_lock = f"{path}/keeper-start.lock"
        self.keeper_log = f"{path}/keeper.log"
        self.keeper_bell = f"{path}/keeper.bell"
        self.keeper_starts = f"{path}/keeper-starts.json"
        self.service = f"{path}/service.json"
        self.seed_lock = f"{path}/seed.lock"
        self.seed_socket = f"{path}/seed.sock"
        self.tmux_socket = f"{path}/tmux.sock"
        self.outbox = f"{path}/outbox"
        self.audit = f"{path}/audit.jsonl"
        self.loop = f"{path}/loop.json"
        self.settings = f"{path}/settings.json"
        self.metrics = f"{path}/metrics.json"
        self.task_index = f"{path}/task-index.json"
        self.sessions = f"{path}/sessions"
        self.scripted_agent = f"{path}/scripted-agent"
        self.worktrees = f"{path}/worktrees"
        self.workspaces = f"{path}/workspaces"
        self.left_out = f"{path}/left-out"
        self.interrupt_request = f"{path}/interrupt-request.txt"
        self.down = f"{path}/down"
        self.up = f"{path}/up"

    def packet(self, task_id: str) -> Packet:
        """The packet of a task, whether it exists or not."""
        return Packet(os.path.join(self.tasks, task_id))

    def archived(self, task_id: str) -> Packet:
        """The packet of a task that was put away, whether it exists or not."""
        return Packet(os.path.join(self.archive, task_id))


class Packet:
    """Paths below a packet, `<home>/tasks/<id>`."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.task_id = os.path.basename(path)
        self.manifest_yaml = f"{path}/manifest.yaml"
        self.manifest = f"{path}/manifest.json"
        self.journal = f"{path}/events.jsonl"
        self.output_log = f"{path}/output.log"
        self.env = f"{path}/env.json"
        self.after = f"{path}/after.json"
        self.runner_log = f"{path}/runner.log"
        self.runner_lock = f"{path}/runner.lock"
        self.bell = f"{path}/bell"
        self.inbox = f"{path}/inbox"
        self.runs = f"{path}/runs"
        self.inputs = f"{path}/inputs"
        self.user_request = f"{path}/inputs/user_request.md"
        self.context_pack = f"{path}/inputs/context_pack.md"
        self.context_digest = f"{path}/inputs/context_pack.digest.md"
        self.attachments = f"{path}/inputs/attachments"
        self.prompts = f"{path}/inputs/prompt"
        self.attempts = f"{path}/attempts"
        self.outputs = f"{path}/outputs"
        self.summary = f"{path}/outputs/_summary.md"
        self.findings = f"{path}/outputs/_findings.md"
        self.state = f"{path}/state"
        self.current_session = f"{path}/state/current-session.json"
        self.interrupt_request = f"{path}/state/interrupt-request.txt"
        self.stats = f"{path}/state/stats.json"
        self.last_failure = f"{path}/state/last_failure.json"
        self.phase_links = f"{path}/state/phase-links.json"
        self.commands_override = f"{path}/state/acceptance.commands.override"
        self.work = f"{path}/state/work.json"
        self.workspace = f"{path}/state/workspace"
        self.interrupts = f"{path}/state/interrupts"
        self.issues = f"{path}/state/issues"
        self.preflight = f"{path}/state/preflight.json"
        self.error_marker = f"{path}/state/error"
        self.done = f"{path}/done"
        self.task_done = f"{path}/done/_task.done"

    @property
    def home(self) -> Home:
        """The home that the packet lies in."""
        return Home(os.path.dirname(os.path.dirname(self.path)))

    def stage_done(self, stage: str) -> str:
        """The done marker of a stage."""
        return os.path.join(self.done, f"{stage}.done")

    def gate_result(self, stage: str) -> str:
        """The evidence beside the marker."""
        return os.path.join(self.outputs, f"{stage}.gate_result.json")

    def pre_work(self, stage: str) -> str:
        """What the repository's own checks found before a stage began."""
        return os.path.join(self.outputs, f"{stage}.pre_work.json")

    def output(self, stage: str, agent: str, kind: str) -> str:
        """What an agent's call left for people: `out`, `err`, `meta.json`, `compose.log`, `wrapper.log`."""
        return os.path.join(self.outputs, f"{stage}.{agent}.{kind}")

    def artifact(self, stage: str) -> str:
        """What a stage's checks found."""
        return os.path.join(self.outputs, f"{stage}.artifact.md")

    def prompt(self, agent: str, role: str) -> str:
        """The composed prompt of a stage."""
        return os.path.join(self.prompts, f"{agent}.{role}.md")

    def attempt(self, dirname: str) -> AttemptDir:
        """The directory of one attempt."""
        return AttemptDir(os.path.join(self.attempts, dirname))


class AttemptDir:
    """Paths below one attempt, `attempts/<nnn>-<stage>`."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.lock = f"{path}/lock"
        self.prompt = f"{path}/prompt"
        self.argv = f"{path}/argv.json"
        self.identity = f"{path}/identity.json"
        self.pid = f"{path}/pid"
        self.exit = f"{path}/exit.json"
        self.exit_code = f"{path}/exit_code"
        self.done = f"{path}/done"
        self.stdout = f"{path}/stdout.log"
        self.stderr = f"{path}/stderr.log"
        self.record = f"{path}/attempt.json"


#: Directories of a new packet.
PACKET_DIRECTORIES = ("inbox", "inputs", "attempts", "outputs", "state", "done")


def is_packet(entry: os.DirEntry[str]) -> bool:
    """Whether what stands among the tasks is one: a directory, or a link to a packet that somebody moved elsewhere. (Nothing may
    be written behind any other link.)"""
    return entry.is_dir() and (not entry.is_symlink() or os.path.exists(Packet(entry.path).journal))


def is_our_lock(path: str) -> bool:
    """Whether a path is that of a lock file of holdfast: of a home, a packet or an attempt. Its name alone says nothing."""
    folder, name = os.path.split(path)
    parent = os.path.basename(os.path.dirname(folder))
    if name == "lock":
        return parent == "attempts"
    if name == "runner.lock":
        return parent == "tasks"
    if os.path.basename(folder) == "workspaces" and name.endswith(".lock"):
        return os.path.isdir(os.path.join(os.path.dirname(folder), "tasks"))
    return name in ("keeper.lock", "keeper-start.lock", "seed.lock") and os.path.isdir(
        os.path.join(folder, "tasks")
    )
