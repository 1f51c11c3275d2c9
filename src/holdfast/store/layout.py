"""Paths of all files in a home, a packet and an attempt. Only this module knows their names.

(Three exceptions: the recorder, which imports only the standard library, the pure `model.manifest`, which
names the interrupt file, and `program_search`, which is below this module. Tests compare them with it.)

The paths are f-strings: os.path.join takes ten times as long, and a keeper makes thousands of these objects.
"""

from __future__ import annotations

import os

from holdfast import ids

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

#: Directories of a new packet.
PACKET_DIRECTORIES = ("inbox", "inputs", "attempts", "outputs", "state", "done", "scratch")
#: What a user writes into a packet.
MANIFEST_YAML = "manifest.yaml"
#: What makes a directory a packet.
JOURNAL = "events.jsonl"
#: Temporary names among the tasks: a packet that is being created, and one that is being removed.
NEW_PREFIX, GONE_PREFIX = ".new-", ".gone-"


class Home:
    """Paths in a home."""

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
        self.outbox = f"{path}/outbox"
        self.outbox_status = f"{path}/outbox/status.json"
        self.outbox_failed = f"{path}/outbox/failed"
        self.replies = f"{path}/replies"
        self.audit = f"{path}/audit.jsonl"
        self.loop = f"{path}/loop.json"
        self.schedules = f"{path}/schedules"
        self.settings = f"{path}/settings.json"
        self.metrics = f"{path}/metrics.json"
        self.task_index = f"{path}/task-index.json"
        self.sessions = f"{path}/sessions"
        self.projects = f"{path}/projects"
        self.scripted_agent = f"{path}/scripted-agent"
        self.worktrees = f"{path}/worktrees"
        self.workspaces = f"{path}/workspaces"
        self.left_out = f"{path}/left-out"
        self.interrupt_request = f"{path}/interrupt-request.txt"
        self.down = f"{path}/down"
        self.up = f"{path}/up"

    @property
    def tmux_socket(self) -> str:
        """Beside the user's settings. In the home, an agent could replace it by that of its own server, which
        can make a tmux client run any command."""
        from holdfast.store import trust_dir  # few commands need it

        return trust_dir.path_for(self.path, "tmux")

    @property
    def admitted(self) -> str:
        """Digests of what commands of this home have made."""
        return f"{records_of(self.path)}/admitted"

    @property
    def seals(self) -> str:
        """The seals of its journals."""
        return f"{records_of(self.path)}/seals"

    # For lists of thousands of tasks: cheaper than a Packet. See also `manifest_in`.

    def manifest_of(self, task_id: str) -> str:
        """The manifest of a task."""
        return f"{self.tasks}/{task_id}/manifest.json"

    def journal_of(self, task_id: str) -> str:
        """The journal of a task."""
        return f"{self.tasks}/{task_id}/{JOURNAL}"

    def seals_of(self, task_id: str) -> str:
        """The seals of a task's journal."""
        return f"{self.seals}/{task_id}"

    def admission_of(self, task_id: str) -> str:
        """The record that a command made the task."""
        return f"{self.admitted}/{task_id}"

    def output_log_of(self, task_id: str) -> str:
        """The readable output of a task."""
        return f"{self.tasks}/{task_id}/output.log"

    def packet(self, task_id: str) -> Packet:
        """The packet of a task, whether it exists or not. Raises InvalidId for a path."""
        return Packet(f"{self.tasks}/{ids.check_one_name(task_id)}")

    def archived(self, task_id: str) -> Packet:
        """The packet of an archived task, whether it exists or not. Raises InvalidId for a path."""
        return Packet(f"{self.archive}/{ids.check_one_name(task_id)}")

    def notice(self, notice_id: str) -> str:
        """A notice that waits to be delivered."""
        return f"{self.outbox}/{notice_id}.json"

    def reply(self, notice_id: str) -> str:
        """What a reply to a notice may answer."""
        return f"{self.replies}/{notice_id}.json"

    def replies_failure(self, name: str) -> str:
        """Why replies on a server cannot be read."""
        return f"{self.replies}/failure-{name}.json"

    def reply_taken(self, notice_id: str) -> str:
        """The record that a reply to a notice was used."""
        return f"{self.replies}/{notice_id}.taken"

    def schedule(self, name: str) -> str:
        """A schedule of the queue."""
        return f"{self.schedules}/{name}.json"

    def schedule_admission(self, name: str) -> str:
        """The record that a command made the schedule. No task has such an id."""
        return f"{self.admitted}/.schedule-{name}"

    def session_lock(self, name: str) -> str:
        """The lock of an agent's session."""
        return f"{self.sessions}/{name}.lock"

    def workspace_lock(self, name: str) -> str:
        """The lock of a directory in which agents write."""
        return f"{self.workspaces}/{name}.lock"


#: Home → its inode and the directory of its records, as this process has found it.
_records: dict[str, tuple[int, str]] = {}


def records_of(home: str) -> str:
    """The directory with `admitted` and `seals` of a home: outside, where no agent writes."""
    inode, place = _records.get(home, (0, ""))
    try:
        # The home may have been renamed, and copied; and its records may have followed it.
        is_known = bool(place) and os.stat(home).st_ino == inode and os.path.isdir(place)
    except OSError:
        is_known = bool(place)
    if not is_known:
        from holdfast.store import home_records  # not every command needs it

        place, inode = home_records.find(home)
        if inode:
            _records[home] = inode, place
    return place


def make_records(home: str, is_kept: Callable[[], bool] | None = None) -> None:
    """Make that directory if it is missing. Raises OSError. For `is_kept` see `home_records.make`."""
    from holdfast.store import home_records

    home_records.make(home, records_of(home), is_kept)


#: The directories of packets that this process knows. Another `tasks` in a path is a user's.
packet_folders: set[str] = set()


class Packet:
    """Paths in a packet, `<home>/tasks/<id>`."""

    def __init__(self, path: str) -> None:
        packet_folders.add(os.path.dirname(path))
        self.path = path
        self.task_id = os.path.basename(path)
        #: The name of its worktree, and of the branch below `holdfast/`.
        self.worktree_name = self.task_id
        self.manifest_yaml = f"{path}/{MANIFEST_YAML}"
        self.manifest = f"{path}/manifest.json"
        self.journal = f"{path}/{JOURNAL}"
        self.output_log = f"{path}/output.log"
        self.output_index = f"{path}/output.idx"
        self.env = f"{path}/env.json"
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
        self.templates = f"{path}/inputs/templates"
        self.prompts = f"{path}/inputs/prompt"
        self.attempts = f"{path}/attempts"
        self.outputs = f"{path}/outputs"
        self.summary = f"{path}/outputs/_summary.md"
        self.findings = f"{path}/outputs/_findings.md"
        #: What the stages changed, within the scope.
        self.changes = f"{path}/outputs/_changes.patch"
        self.state = f"{path}/state"
        self.ingest = f"{path}/state/ingest"
        self.current_session = f"{path}/state/current-session.json"
        self.interrupt_request = f"{path}/state/interrupt-request.txt"
        self.stats = f"{path}/state/stats.json"
        self.last_failure = f"{path}/state/last_failure.json"
        self.phase_links = f"{path}/state/phase-links.json"
        self.commands_override = f"{path}/state/acceptance.commands.override"
        self.work = f"{path}/state/work.json"
        self.fan_out = f"{path}/state/fan-out.json"
        self.workspace = f"{path}/state/workspace"
        self.workspace_base = f"{path}/state/workspace/base.json"
        self.worktree = f"{path}/state/workspace/worktree.json"
        self.applied = f"{path}/state/workspace/applied.json"
        self.interrupts = f"{path}/state/interrupts"
        self.asked_approval = f"{path}/state/interrupts/approval.json"
        self.issues = f"{path}/state/issues"
        self.preflight = f"{path}/state/preflight.json"
        self.git_settings = f"{path}/state/git-settings.json"
        self.error_marker = f"{path}/state/error"
        self.done = f"{path}/done"
        self.task_done = f"{path}/done/_task.done"
        #: For the agent alone: nothing in it is ever read.
        self.scratch = f"{path}/scratch"
        #: Of a sandboxed task: its /tmp, its agents' config homes, and the folder of its interrupt file.
        self.sandbox = f"{path}/sandbox"
        #: What its workspaces were before an agent wrote there. No sandbox shows it.
        self.sandbox_start = f"{path}/sandbox/start.json"
        self.sandbox_tmp = f"{path}/sandbox/tmp"
        self.sandbox_homes = f"{path}/sandbox/homes"
        self.sandbox_asks = f"{path}/sandbox/asks"
        self.sandbox_request = f"{path}/sandbox/asks/interrupt-request.txt"

    @property
    def home(self) -> Home:
        """The home of the packet."""
        return Home(self._home_path)

    @property
    def _home_path(self) -> str:
        """A Home would be far more than its path."""
        return os.path.dirname(os.path.dirname(self.path))

    @property
    def sandbox_git(self) -> str:
        """What sandboxed agents committed in the worktree: objects, the branch, its log."""
        return f"{self.sandbox}/git/{self.worktree_name}"

    def candidate(self, number: int) -> Packet:
        """The packet with the worktree of one of several candidates in the place of the task's."""
        packet = Packet(self.path)
        packet.worktree_name = f"{self.task_id}.c{number}"
        packet.workspace_base = f"{self.workspace}/base.c{number}.json"
        packet.worktree = f"{self.workspace}/worktree.c{number}.json"
        return packet

    @property
    def admission(self) -> str:
        """Its record outside the packet: a command made the packet, or a person adopted it."""
        return f"{records_of(self._home_path)}/admitted/{self.task_id}"

    @property
    def seals(self) -> str:
        """The seals of the journal, outside the packet."""
        return f"{records_of(self._home_path)}/seals/{self.task_id}"

    @property
    def index_notes(self) -> str:
        """Digests of the indexes in the packet, outside the packet."""
        return f"{records_of(self._home_path)}/seals/{self.task_id}.indexes"

    def request(self, request_id: str) -> str:
        """A request in the inbox."""
        return f"{self.inbox}/{request_id}.json"

    def stage_done(self, stage: str) -> str:
        """The done marker of a stage."""
        return os.path.join(self.done, f"{stage}.done")

    def gate_result(self, stage: str) -> str:
        """The evidence for a stage's done marker."""
        return os.path.join(self.outputs, f"{stage}.gate_result.json")

    def pre_work(self, stage: str) -> str:
        """The result of the repository's own checks before a stage."""
        return os.path.join(self.outputs, f"{stage}.pre_work.json")

    def output(self, stage: str, agent: str, kind: str) -> str:
        """A file about an agent's call: `out`, `err`, `meta.json`, `compose.log` or `wrapper.log`."""
        return os.path.join(self.outputs, f"{stage}.{agent}.{kind}")

    def artifact(self, stage: str) -> str:
        """The report of a stage's checks."""
        return os.path.join(self.outputs, f"{stage}.artifact.md")

    def reverted_patch(self, stage: str) -> str:
        """The changes of a stage that its gate reverted."""
        return os.path.join(self.outputs, f"{stage}.reverted.patch")

    def candidate_patch(self, stage: str) -> str:
        """What a candidate changed, within the scope."""
        return os.path.join(self.outputs, f"{stage}.patch")

    def judged_tree(self, stage: str) -> str:
        """The tree that a stage's gate looked at, noted before its commands run."""
        return f"{self.workspace}/judged.{stage}.json"

    def issue(self, name: str) -> str:
        """The record of an issue that was filed."""
        return f"{self.issues}/{name}.json"

    def prompt(self, agent: str, role: str) -> str:
        """The composed prompt of a stage."""
        return os.path.join(self.prompts, f"{agent}.{role}.md")

    def past_run(self, run: int) -> str:
        """The directory of an earlier run."""
        return f"{self.runs}/{run}"

    def attempt(self, dirname: str) -> AttemptDir:
        """The directory of one attempt."""
        return AttemptDir(os.path.join(self.attempts, dirname))

    def interrupt(self, number: int) -> InterruptDir:
        """The saved context of one interrupt."""
        return InterruptDir(f"{self.interrupts}/{number}")


class AttemptDir:
    """Paths in the directory of one attempt, `attempts/<nnn>-<stage>`."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.lock = f"{path}/lock"
        self.prompt = f"{path}/prompt"
        self.system_prompt = f"{path}/system_prompt.md"
        self.argv = f"{path}/argv.json"
        self.identity = f"{path}/identity.json"
        self.pid = f"{path}/pid"
        self.exit = f"{path}/exit.json"
        self.exit_code = f"{path}/exit_code"
        self.done = f"{path}/done"
        self.stdout = f"{path}/stdout.log"
        self.stderr = f"{path}/stderr.log"
        self.record = f"{path}/attempt.json"
        #: Written by an agent that reports its usage in a file.
        self.usage = f"{path}/usage.json"
        #: In a sandbox, the agent sees this folder in the place of the attempt's directory.
        self.in_sandbox = f"{path}/sandbox"
        #: Written by a chore.
        self.result = f"{path}/result.json"
        self.artifact = f"{path}/artifact.md"
        self.reverted_patch = f"{path}/reverted.patch"
        self.changes = f"{path}/changes.patch"


class InterruptDir:
    """Paths in the saved context of one interrupt, `state/interrupts/<n>`."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.context = f"{path}/context.json"
        self.summary = f"{path}/summary.md"
        self.logs = f"{path}/logs.txt"
        self.work = f"{path}/work.json"


# Paths relative to `tasks`: with a descriptor of that directory, the kernel finds a file in half the time.


def manifest_in(task_id: str) -> str:
    """The manifest of a task, relative to `Home.tasks`."""
    return f"{task_id}/manifest.json"


def runner_lock_in(task_id: str) -> str:
    """The lock of a task's runner, relative to `Home.tasks`."""
    return f"{task_id}/runner.lock"


def output_log_in(task_id: str) -> str:
    """The readable output of a task, relative to `Home.tasks` or `Home.archive`."""
    return f"{task_id}/output.log"


def is_packet(entry: os.DirEntry[str]) -> bool:
    """Whether an entry of `tasks` is a packet: a directory, or a link to a packet that was moved elsewhere.

    Nothing must be written through any other link. Its name must be an id: code that shows or
    stores it cannot handle others, such as names that are not UTF-8.
    """
    if not ids.is_safe_name(entry.name, 64):
        return False
    return entry.is_dir() and (not entry.is_symlink() or os.path.exists(Packet(entry.path).journal))


def anchor_of(lock: str) -> str:
    """The directory that is locked together with a lock file (`holdfast.store.lock`).

    The lock of a packet or an attempt has that directory itself. Others share a directory, so each has one of
    its own next to the file.
    """
    folder, name = os.path.split(lock)
    return folder if name in ("lock", "runner.lock") else lock.removesuffix(".lock") + ".held"


def is_our_lock(path: str) -> bool:
    """Whether a path is that of a holdfast lock in a home, a packet or an attempt.

    The name alone proves nothing.
    """
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
