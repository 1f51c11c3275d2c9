"""Where each file of a home and of a packet lies. The only module that knows the names."""

from __future__ import annotations

import os


class Home:
    """Paths below a home."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.tasks = os.path.join(path, "tasks")
        self.archive = os.path.join(path, "archive")
        self.index = os.path.join(path, "index.db")
        self.queue = os.path.join(path, "queue.db")
        self.keeper_lock = os.path.join(path, "keeper.lock")
        self.keeper_start_lock = os.path.join(path, "keeper-start.lock")
        self.keeper_log = os.path.join(path, "keeper.log")
        self.keeper_bell = os.path.join(path, "keeper.bell")
        self.keeper_starts = os.path.join(path, "keeper-starts.json")
        self.service = os.path.join(path, "service.json")
        self.seed_lock = os.path.join(path, "seed.lock")
        self.seed_socket = os.path.join(path, "seed.sock")
        self.tmux_socket = os.path.join(path, "tmux.sock")
        self.outbox = os.path.join(path, "outbox")
        self.audit = os.path.join(path, "audit.jsonl")
        self.loop = os.path.join(path, "loop.json")
        self.metrics = os.path.join(path, "metrics.json")
        self.task_index = os.path.join(path, "task-index.json")
        self.sessions = os.path.join(path, "sessions")
        self.worktrees = os.path.join(path, "worktrees")
        self.workspaces = os.path.join(path, "workspaces")
        self.interrupt_request = os.path.join(path, "interrupt-request.txt")
        self.down = os.path.join(path, "down")
        self.up = os.path.join(path, "up")

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
        self.manifest_yaml = os.path.join(path, "manifest.yaml")
        self.manifest = os.path.join(path, "manifest.json")
        self.journal = os.path.join(path, "events.jsonl")
        self.output_log = os.path.join(path, "output.log")
        self.env = os.path.join(path, "env.json")
        self.runner_log = os.path.join(path, "runner.log")
        self.runner_lock = os.path.join(path, "runner.lock")
        self.bell = os.path.join(path, "bell")
        self.inbox = os.path.join(path, "inbox")
        self.runs = os.path.join(path, "runs")
        self.inputs = os.path.join(path, "inputs")
        self.user_request = os.path.join(path, "inputs", "user_request.md")
        self.context_pack = os.path.join(path, "inputs", "context_pack.md")
        self.context_digest = os.path.join(path, "inputs", "context_pack.digest.md")
        self.attachments = os.path.join(path, "inputs", "attachments")
        self.prompts = os.path.join(path, "inputs", "prompt")
        self.attempts = os.path.join(path, "attempts")
        self.outputs = os.path.join(path, "outputs")
        self.summary = os.path.join(path, "outputs", "_summary.md")
        self.state = os.path.join(path, "state")
        self.current_session = os.path.join(path, "state", "current-session.json")
        self.interrupt_request = os.path.join(path, "state", "interrupt-request.txt")
        self.stats = os.path.join(path, "state", "stats.json")
        self.last_failure = os.path.join(path, "state", "last_failure.json")
        self.phase_links = os.path.join(path, "state", "phase-links.json")
        self.commands_override = os.path.join(path, "state", "acceptance.commands.override")
        self.work = os.path.join(path, "state", "work.json")
        self.workspace = os.path.join(path, "state", "workspace")
        self.interrupts = os.path.join(path, "state", "interrupts")
        self.issues = os.path.join(path, "state", "issues")
        self.preflight = os.path.join(path, "state", "preflight.json")
        self.error_marker = os.path.join(path, "state", "error")
        self.done = os.path.join(path, "done")
        self.task_done = os.path.join(path, "done", "_task.done")

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
        self.lock = os.path.join(path, "lock")
        self.prompt = os.path.join(path, "prompt")
        self.argv = os.path.join(path, "argv.json")
        self.identity = os.path.join(path, "identity.json")
        self.pid = os.path.join(path, "pid")
        self.exit = os.path.join(path, "exit.json")
        self.exit_code = os.path.join(path, "exit_code")
        self.done = os.path.join(path, "done")
        self.stdout = os.path.join(path, "stdout.log")
        self.stderr = os.path.join(path, "stderr.log")
        self.record = os.path.join(path, "attempt.json")


#: Directories of a new packet.
PACKET_DIRECTORIES = ("inbox", "inputs", "attempts", "outputs", "state", "done")


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
