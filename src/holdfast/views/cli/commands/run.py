"""holdfast run: start a task."""

from __future__ import annotations

import os
import signal

from holdfast import ids, paths
from holdfast.agents import program, registry
from holdfast.errors import CommandNotFound, HoldfastError, NoSuchDirectory, UnreadableFile, UsageError
from holdfast.model.spec import StageSpec, TaskSpec
from holdfast.model.status import Status
from holdfast.packet import environment, limits, load
from holdfast.packet.create import create
from holdfast.start import ensure_keeper, start_runner
from holdfast.store.layout import Home, Packet
from holdfast.views.cli import follow, out
from holdfast.views.cli.commands import up
from holdfast.views.cli.spec import JSON, Argument, Command, Option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.agents.base import Adapter

#: Flag → field of Limits.
_LIMIT_FLAGS = (
    "deadline_s",
    "stale_s",
    "grace_s",
    "base_interval_s",
    "max_interval_s",
    "max_retries",
    "linger_s",
    "stop_pause_s",
    "output_bytes",
    "budget_usd",
    "budget_tokens",
    "max_turns",
)

COMMAND = Command(
    name="run",
    summary="Run a task and do not let go of it.",
    description="Give a prompt for an agent, or a command behind --. It prints the task's id and follows the task until it "
    "has ended or needs a person; the exit status says how (see 'holdfast help exit-codes'). What the task prints is in "
    "its files ('holdfast logs'). Ctrl-C detaches: the task lives on.",
    examples=(
        "holdfast run -- make test",
        'holdfast run --agent scripted -o scenario=demo.json "try it"',
        "holdfast run -d -- make test",
        "holdfast run -d --name nightly --deadline 2h -- ./long-job.sh",
    ),
    takes_command=True,
    arguments=(Argument(dest="prompt", metavar="[PROMPT]", required=False),),
    options=(
        Option(
            flags=("-f", "--file"),
            dest="file",
            metavar="FILE",
            completes="file",
            help="Read the prompt from a file (- is stdin).",
        ),
        Option(
            flags=("--agent",),
            dest="agent",
            metavar="NAME",
            completes="agent",
            help="The agent that does the work.",
        ),
        Option(flags=("--model",), dest="model", metavar="NAME", help="The model that the agent uses."),
        Option(
            flags=("--project",),
            dest="project",
            metavar="DIR",
            completes="folder",
            help="Where it works (default: here).",
        ),
        Option(flags=("--name",), dest="name", metavar="TEXT", help="A name for people."),
        Option(
            flags=("--id",), dest="id", metavar="ID", help="The task's id (default: made from date and name)."
        ),
        Option(flags=("-d", "--detach"), dest="detach", kind="flag", help="Print the id and return at once."),
        Option(
            flags=("-o", "--option"),
            dest="option",
            kind="many",
            metavar="KEY=VALUE",
            help="An option of the agent.",
        ),
        Option(
            flags=("--yolo",),
            dest="yolo",
            kind="flag",
            help="Let the agent use its tools without asking; it is recorded.",
        ),
        Option(flags=("--env",), dest="env", kind="many", metavar="NAME", help="Also pass this variable on."),
        Option(
            flags=("--env-file",),
            dest="env_file",
            metavar="FILE",
            completes="file",
            help="Also pass on the NAME=VALUE lines of this file.",
        ),
        Option(
            flags=("--deadline",),
            dest="deadline_s",
            metavar="TIME",
            help="Active time it may take (5h; none).",
        ),
        Option(
            flags=("--stale",),
            dest="stale_s",
            metavar="TIME",
            help="Silence after which it may be stuck (none).",
        ),
        Option(
            flags=("--grace",), dest="grace_s", metavar="TIME", help="Grace before silence is called a hang."
        ),
        Option(
            flags=("--base-interval",),
            dest="base_interval_s",
            metavar="TIME",
            help="Check interval, base of backoff.",
        ),
        Option(
            flags=("--max-interval",),
            dest="max_interval_s",
            metavar="TIME",
            help="Longest pause between attempts.",
        ),
        Option(
            flags=("--max-retries",),
            dest="max_retries",
            metavar="N",
            help="Retries over its whole life (10).",
        ),
        Option(
            flags=("--budget-usd",),
            dest="budget_usd",
            metavar="USD",
            help="Dollars it may cost; then it is stopped and asks. (What an agent does not report is unknown.)",
        ),
        Option(
            flags=("--budget-tokens",),
            dest="budget_tokens",
            metavar="N",
            help="Tokens it may use, in and out; then it is stopped and asks.",
        ),
        Option(
            flags=("--max-turns",),
            dest="max_turns",
            metavar="N",
            help="Turns of the agent; then it is stopped and asks.",
        ),
        Option(
            flags=("--linger",),
            dest="linger_s",
            metavar="TIME",
            help="How long it may live on after its result (10s).",
        ),
        Option(
            flags=("--stop-pause",),
            dest="stop_pause_s",
            metavar="TIME",
            help="Pause after the first stop signal (the agent's own, 30s).",
        ),
        Option(
            flags=("--output-limit",),
            dest="output_bytes",
            metavar="BYTES",
            help="Raw output it may print (10 GiB).",
        ),
        Option(
            flags=("--leftovers",),
            dest="leftovers",
            choices=("report", "kill", "keep"),
            help="Processes that outlive a successful agent (report).",
        ),
        Option(
            flags=("--tmux",), dest="tmux", kind="flag", help="Open its tmux window at once, for 'attach'."
        ),
        JSON.evolve(help="Print the manifest (at the end, or with -d the new one) instead of the id."),
    ),
)


def run(values: dict[str, Any]) -> int:
    """Make the task, start its runner, and follow it unless told not to."""
    home = Home(paths.ensure_home(paths.home()))
    every_s = follow.interval_s()
    prompt = _prompt(values)
    project = paths.project(values["project"])
    given = _settings(project)
    spec, env = _spec(values, prompt, given, project=project)
    try:
        packet = _begin(home, spec, prompt=prompt, env=env)
        if values["tmux"] or given.get("tmux") == "always":
            _open_window(packet)
        if values["detach"]:
            out.data(load.read_manifest(packet)) if values["json"] else print(spec.task_id)
            return 0
        if not values["json"]:
            print(spec.task_id, flush=True)
        manifest = follow.follow(packet, every_s)
    except KeyboardInterrupt:
        _say_goodbye(home.packet(spec.task_id))
        return 130
    if values["json"]:
        out.data(manifest)
    return follow.report(packet, manifest)


def _begin(home: Home, spec: TaskSpec, *, prompt: bytes | None, env: dict[str, Any]) -> Packet:
    """A task that exists has a runner: Ctrl-C waits until both do."""
    up.lift(home)
    masked = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT,))
    try:
        packet = create(home, spec, prompt=prompt, env=env, status=Status.SPAWNING)
        start_runner(packet)
        _ensure_keeper(home)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, masked)
    return packet


def _ensure_keeper(home: Home) -> None:
    """The task runs already: what keeps the keeper from starting is told, and no more."""
    try:
        ensure_keeper(home, by_person=True)
    except (OSError, HoldfastError) as error:
        out.talk(f"warning: no keeper was started: {error}")


def _settings(project: str) -> dict[str, Any]:
    """What config files set; whoever has none loads nothing."""
    if not paths.settings_files(project):
        return {}
    from holdfast.config import settings

    return settings.values(project)


def _open_window(packet: Packet) -> None:
    """The task does not need it, so it fails in words only."""
    from holdfast.views.cli.commands import attach

    try:
        attach.open_window(packet)
    except HoldfastError as error:
        out.talk(f"warning: no window: {error}")


def _say_goodbye(packet: Packet) -> None:
    if not os.path.exists(packet.path):
        return
    out.talk(f"detached; {packet.task_id} goes on. To come back:")
    for command, meaning in (
        ("attach", "watch it"),
        ("logs -f", "its output"),
        ("wait", "until it has ended"),
    ):
        out.talk(f"  holdfast {command} {packet.task_id}   {meaning}")
    out.talk(f"  holdfast stop {packet.task_id}   end it")


def _prompt(values: dict[str, Any]) -> bytes | None:
    prompt, file = values["prompt"], values["file"]
    if prompt is not None and file is not None:
        raise UsageError("a prompt and --file were given", hint="give one of them")
    if file is None:
        return None if prompt is None else os.fsencode(prompt)
    try:
        with open(0 if file == "-" else file, "rb", closefd=file != "-") as opened:
            return opened.read()
    except OSError as error:
        raise UnreadableFile(
            f"cannot read the prompt file {file}: {error.strerror}", hint="check its path and mode"
        ) from error


def _spec(
    values: dict[str, Any], prompt: bytes | None, given: dict[str, Any], *, project: str
) -> tuple[TaskSpec, dict[str, Any]]:
    command = values["command"]
    agent = values["agent"] or ("command" if command is not None else given.get("agent"))
    if agent is None:
        raise UsageError(
            "neither an agent nor a command was given",
            hint="'holdfast run --agent NAME PROMPT', or 'holdfast run -- COMMAND'",
        )
    adapter = registry.adapter(agent)
    if not os.path.isdir(project):
        raise NoSuchDirectory(f"the project directory {project} does not exist")
    if agent == "command":
        _check_command(command, project)
    else:
        _check_agent(adapter, prompt, values["option"])
    _check_env(values["env"])
    name = values["name"] or _name(prompt, command)
    stage = StageSpec(name=f"{agent}_run", agent=agent, model=values["model"])
    flags = {field: values[field] for field in _LIMIT_FLAGS if values[field] is not None}
    env_file = os.path.abspath(values["env_file"]) if values["env_file"] else given.get("env_file")
    added = environment.read_file(env_file) if env_file else {}
    spec = TaskSpec(
        task_id=ids.new_task_id(name) if values["id"] is None else ids.check_task_id(values["id"]),
        task_name=name,
        goal=os.fsencode(prompt).decode("utf-8", "replace")[:500] if prompt else " ".join(command or ()),
        agent=agent,
        model=values["model"],
        command=command,
        options={**_options(values["option"]), **({"yolo": True} if values["yolo"] else {})},
        project_dir=project,
        stages=(stage,),
        limits=limits.settle(
            os.environ, flags, stale_s=adapter.capabilities.stale_s, settings=given.get("limits", {})
        ),
        leftovers=values["leftovers"] or given.get("leftovers", "report"),
        env=tuple(dict.fromkeys([*given.get("env", ()), *values["env"], *added])),
        env_file=env_file,
    )
    captured = environment.capture(dict(os.environ), (*adapter.capabilities.env, *spec.env))
    captured["env"].update(added)
    return spec, captured


def _name(prompt: bytes | None, command: list[str] | None) -> str:
    if command:
        return " ".join([os.path.basename(command[0]), *command[1:3]])[:60]
    return (prompt or b"task").decode("utf-8", "replace").strip().partition("\n")[0][:60]


def _check_command(command: list[str] | None, project: str) -> None:
    """A typo is told now, not after three backoffs."""
    if not command:
        raise UsageError("no command was given", hint="'holdfast run -- COMMAND ARGUMENTS…'")
    program = command[0]
    if "/" in program:
        candidates = [os.path.join(project, program)]
    else:
        candidates = [
            os.path.join(folder, program) for folder in os.environ.get("PATH", os.defpath).split(":")
        ]
    if not any(os.access(path, os.X_OK) and not os.path.isdir(path) for path in candidates):
        raise CommandNotFound(f"{program}: no such program")


def _check_agent(adapter: Adapter, prompt: bytes | None, options: list[str]) -> None:
    """What is certain to fail is told now, not after ten retries."""
    able = adapter.capabilities
    if prompt is None or not prompt.strip():
        raise UsageError(
            f"no prompt for {adapter.name}",
            hint=f"'holdfast run --agent {adapter.name} PROMPT', or --file FILE (- is stdin)",
        )
    if able.program and program.find(able, os.environ.get("PATH", os.defpath)) is None:
        raise CommandNotFound(
            f"{adapter.name} is not installed: no {able.program} in PATH",
            hint=f"'holdfast agent probe {adapter.name}' says more",
        )
    given = {pair.partition("=")[0] for pair in options}
    missing = [name for name in able.needs if name not in given]
    if missing:
        raise UsageError(f"{adapter.name} needs -o {missing[0]}=…", hint=f"for example -o {missing[0]}=FILE")


def _check_env(names: list[str]) -> None:
    for name in names:
        if not name.isidentifier():
            raise UsageError(
                f"--env {name}: not the name of a variable",
                hint="'--env NAME' passes NAME on as it is set here",
            )
        if name not in os.environ:
            raise UsageError(
                f"--env {name}: it is not set", hint="set it, or write it into a file for --env-file"
            )


def _options(pairs: list[str]) -> dict[str, object]:
    found: dict[str, object] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise UsageError(f"--option {pair}: not KEY=VALUE")
        # A file is meant from here, not from where the runner will be.
        found[key] = os.path.abspath(value) if os.path.isfile(value) else value
    return found
