"""holdfast run: start a task."""

from __future__ import annotations

import json
import os

from holdfast import ids, paths
from holdfast.agents import registry
from holdfast.errors import CommandNotFound, NoSuchDirectory, UnreadableFile, UsageError
from holdfast.model.spec import StageSpec, TaskSpec
from holdfast.model.status import Status
from holdfast.packet import environment, limits, load
from holdfast.packet.create import create
from holdfast.start import ensure_keeper, start_runner
from holdfast.store.layout import Home, Packet
from holdfast.views.cli.commands import up
from holdfast.views.cli.spec import JSON, Argument, Command, Option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

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
)

COMMAND = Command(
    name="run",
    summary="Run a task and do not let go of it.",
    description="Give a prompt for an agent, or a command behind --.",
    examples=(
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
            help="Read the prompt from a file (- is stdin).",
        ),
        Option(flags=("--agent",), dest="agent", metavar="NAME", help="The agent that does the work."),
        Option(flags=("--model",), dest="model", metavar="NAME", help="The model that the agent uses."),
        Option(flags=("--project",), dest="project", metavar="DIR", help="Where it works (default: here)."),
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
        Option(flags=("--env",), dest="env", kind="many", metavar="NAME", help="Also pass this variable on."),
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
        JSON,
    ),
)


def run(values: dict[str, Any]) -> int:
    """Make the task, start its runner, and follow it unless told not to."""
    home = Home(paths.ensure_home(paths.home()))
    prompt = _prompt(values)
    spec, env = _spec(values, prompt)
    up.lift(home)
    packet = create(home, spec, prompt=prompt, env=env, status=Status.SPAWNING)
    start_runner(packet)
    ensure_keeper(home, by_person=True)
    if not values["detach"]:
        from holdfast.views.cli.commands import wait

        print(spec.task_id, flush=True)
        return wait.follow(packet, timeout_s=None)
    print(json.dumps(load.read_manifest(packet), ensure_ascii=False) if values["json"] else spec.task_id)
    return 0


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


def _spec(values: dict[str, Any], prompt: bytes | None) -> tuple[TaskSpec, dict[str, Any]]:
    command = values["command"]
    agent = values["agent"] or ("command" if command is not None else None)
    if agent is None:
        raise UsageError(
            "neither an agent nor a command was given",
            hint="'holdfast run --agent NAME PROMPT', or 'holdfast run -- COMMAND'",
        )
    adapter = registry.adapter(agent)
    project = os.path.abspath(values["project"] or os.getcwd())
    if not os.path.isdir(project):
        raise NoSuchDirectory(f"the project directory {project} does not exist")
    if agent == "command":
        _check_command(command, project)
    elif prompt is None:
        raise UsageError(
            f"no prompt for {agent}", hint=f"'holdfast run --agent {agent} PROMPT', or --file FILE"
        )
    name = values["name"] or _name(prompt, command)
    stage = StageSpec(name=f"{agent}_run", agent=agent, model=values["model"])
    flags = {field: values[field] for field in _LIMIT_FLAGS if values[field] is not None}
    spec = TaskSpec(
        task_id=ids.check_task_id(values["id"]) if values["id"] else ids.new_task_id(name),
        task_name=name,
        goal=os.fsencode(prompt).decode("utf-8", "replace")[:500] if prompt else " ".join(command or ()),
        agent=agent,
        model=values["model"],
        command=command,
        options=_options(values["option"]),
        project_dir=project,
        stages=(stage,),
        limits=limits.settle(os.environ, flags, stale_s=adapter.capabilities.stale_s),
        leftovers=values["leftovers"] or "report",
    )
    return spec, environment.capture(dict(os.environ), (*adapter.capabilities.env, *values["env"]))


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


def _options(pairs: list[str]) -> dict[str, object]:
    found: dict[str, object] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise UsageError(f"--option {pair}: not KEY=VALUE")
        # A file is meant from here, not from where the runner will be.
        found[key] = os.path.abspath(value) if os.path.isfile(value) else value
    return found


def resolve(text: str) -> Packet:
    """The packet that a task id on the command line means."""
    return load.find(Home(paths.home()), text)
