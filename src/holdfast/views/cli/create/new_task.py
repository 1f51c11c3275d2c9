"""What a command line asks for, as a task: read, checked and settled, before anything is made."""

from __future__ import annotations

import os

from holdfast import clock, ids, paths
from holdfast.agents import program, registry
from holdfast.errors import CommandNotFound, NoSuchDirectory, PromptTooLarge, UnreadableFile, UsageError
from holdfast.model.record import Record
from holdfast.model.spec import QualitySpec, StageSpec, TaskSpec, short_name
from holdfast.packet import environment, limits
from holdfast.redact import MARGIN, Redactor, begin_of
from holdfast.views.cli.create import agent_options, check_command
from holdfast.views.cli.create.task_options import LIMIT_FLAGS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.agents.base import Adapter

_GOAL_CHARS = 500
_PROMPT_BYTES = 16 * 1024 * 1024


class Asked(Record):
    """A task that could be made now."""

    spec: TaskSpec
    prompt: bytes | None
    #: What `environment.capture` found, with the env file's variables.
    env: dict[str, Any]
    #: What config files set, by name.
    settings: dict[str, Any]
    #: Of a written packet: the folder of its inputs, and the text of its manifest.
    inputs: str | None = None
    manifest_yaml: bytes | None = None


def read(values: dict[str, Any], *, verb: str = "run") -> Asked:
    """The task that the values of OPTIONS, PROMPT and `-- COMMAND` describe. Nothing is written. Raises UsageError."""
    if verb != "queue add" and paths.has_keeper_variables():
        from holdfast.config import variables

        variables.check_keeper(os.environ)  # the keeper that is started for the task would go by them
    if values["packet"] is not None:
        from holdfast.views.cli.create import (
            from_packet,  # with all of the pipeline, which a plain task needs not
        )

        return from_packet.from_packet(values["packet"], values=values)
    prompt = _prompt(values)
    project = paths.project(values["project"])
    given = settings_of(project)
    spec, env = _spec(values, prompt, given, project=project, verb=verb)
    return Asked(spec=spec, prompt=prompt, env=env, settings=given)


def settings_of(project: str) -> dict[str, Any]:
    """What config files set; whoever has none loads nothing."""
    if not paths.settings_files(project):
        return {}
    from holdfast.config import settings

    return settings.values(project)


def _prompt(values: dict[str, Any]) -> bytes | None:
    prompt, file = values["prompt"], values["file"]
    if prompt is not None and file is not None:
        raise UsageError("a prompt and --file were given", hint="give one of them")
    if file is None:
        return None if prompt is None else os.fsencode(prompt)
    try:
        with open(0 if file == "-" else file, "rb", closefd=file != "-") as opened:
            # One that never ends (`yes |`) would otherwise be read until the memory is full.
            read = opened.read(_PROMPT_BYTES + 1)
    except OSError as error:
        raise UnreadableFile(
            f"cannot read the prompt file {file}: {error.strerror}", hint="check its path and mode"
        ) from error
    if len(read) > _PROMPT_BYTES:
        raise PromptTooLarge(
            f"the prompt in {'stdin' if file == '-' else file} is larger than {_PROMPT_BYTES >> 20} MB",
            hint="no model reads that much: let the prompt name the files to look at",
        )
    return read


def _spec(
    values: dict[str, Any], prompt: bytes | None, given: dict[str, Any], *, project: str, verb: str
) -> tuple[TaskSpec, dict[str, Any]]:
    command = values["command"]
    agent = values["agent"] or ("command" if command is not None else given.get("agent"))
    if agent is None:
        raise UsageError(
            "neither an agent nor a command was given",
            hint=_how(verb),
        )
    if command is not None and agent != "command":
        raise UsageError(
            f"an agent ({agent}) and a command were given",
            hint="give one of them: what stands behind -- is a command",
        )
    adapter = registry.adapter(agent)
    if not os.path.isdir(project):
        if os.path.exists(project):
            raise NoSuchDirectory(
                f"the project {project} is not a directory", hint="name its directory with --project"
            )
        raise NoSuchDirectory(f"the project directory {project} does not exist")
    if agent == "command":
        if not command or not command[0]:
            raise UsageError("no command was given", hint=_how(verb))
        check_command.check(command[0], project)
    spare = _failover(agent, values["failover"])
    options: dict[str, object] = {}
    if agent != "command":
        options = agent_options.read(values["option"], [adapter, *spare])
        _check_agent(adapter, prompt, options, verb=verb)
    if values["worktree"]:
        from holdfast.views.cli.create import check_git

        check_git.check_worktree(project)
    _check_session(adapter, values["session"])
    _check_env(values["env"])
    stage = StageSpec(name=f"{agent}_run", agent=agent, model=values["model"])
    flags = {field: values[field] for field in LIMIT_FLAGS if values[field] is not None}
    env_file = os.path.abspath(values["env_file"]) if values["env_file"] else given.get("env_file")
    added = environment.read_file(env_file) if env_file else {}
    declared = tuple(dict.fromkeys([*given.get("env", ()), *values["env"], *added]))
    needed = [name for each in (adapter, *spare) for name in each.capabilities.env]
    captured = environment.capture(dict(os.environ), (*needed, *declared))
    captured["env"].update(added)
    # What is shown of a task everywhere; what it runs with is in its own files.
    redact = Redactor(captured["env"], declared)
    goal = (
        begin_of(prompt[: _GOAL_CHARS + MARGIN], redact, _GOAL_CHARS)
        if prompt
        else redact(" ".join(command or ()))
    )
    name = redact(values["name"] or "") or _name(goal, command, redact)
    spec = TaskSpec(
        task_id=ids.new_task_id(name) if values["id"] is None else ids.check_task_id(values["id"]),
        task_name=name,
        goal=goal,
        agent=agent,
        model=values["model"],
        command=command,
        options={**options, **({"yolo": True} if values["yolo"] else {})},
        project_dir=project,
        stages=(stage,),
        limits=limits.settle(
            os.environ, flags, stale_s=adapter.capabilities.stale_s, settings=given.get("limits", {})
        ),
        leftovers=values["leftovers"] or given.get("leftovers", "report"),
        failover=tuple(adapter.name for adapter in spare),
        interrupt_off=tuple(given.get("interrupt_off", ())),
        session=values["session"],
        workspace="worktree" if values["worktree"] else "in_place",
        bootstrap=_bootstrap(values["bootstrap"]),
        variables=dict(agent_options.pair("--var", text) for text in values["var"]),
        env=declared,
        env_file=env_file,
        quality=None if values["no_quality"] else _quality(given),
    )
    if agent == "command":
        # The last: what is wrong in itself was told by now.
        agent_options.refuse_for_command(values)
    return spec, captured


def _how(verb: str) -> str:
    """How a command is told who does the work."""
    if verb == "queue add":
        return """'holdfast queue add ITEM --agent NAME', or "agent" or "command" in the item"""
    return f"'holdfast {verb} --agent NAME PROMPT', or 'holdfast {verb} -- COMMAND ARGUMENTS…'"


def _name(goal: str, command: list[str] | None, redact: Redactor) -> str:
    if command:
        return short_name(redact(" ".join([os.path.basename(command[0]), *command[1:3]])))
    return short_name(goal.strip() or "task")


def _check_agent(adapter: Adapter, prompt: bytes | None, options: dict[str, object], *, verb: str) -> None:
    """What is certain to fail is told now, not after ten retries."""
    if prompt is None or not prompt.strip():
        raise UsageError(
            f"no prompt for {adapter.name}",
            hint=f"'holdfast {verb} --agent {adapter.name} PROMPT', or --file FILE (- is stdin)",
        )
    _check_installed(adapter)
    for name in adapter.capabilities.needs:
        if name not in options:
            raise _lacks(adapter.name, name, verb=verb)
        path = str(options[name])
        if not os.path.isfile(path) or not os.access(path, os.R_OK):
            raise UnreadableFile(f"cannot read the file of -o {name}={path}", hint="check its path and mode")


def _check_installed(adapter: Adapter) -> None:
    able = adapter.capabilities
    if able.program and program.find(able, os.environ.get("PATH", os.defpath)) is None:
        raise CommandNotFound(
            f"{adapter.name} is not installed: no {able.program} in PATH",
            hint=f"'holdfast agent probe {adapter.name}' says more",
        )


def _check_session(adapter: Adapter, session: str | None) -> None:
    if session is None:
        return
    if not adapter.capabilities.can_resume:
        raise UsageError(f"--session {session}: {adapter.name} has no sessions that can go on")
    if not session or session.startswith("-") or not session.isprintable() or " " in session:
        raise UsageError(
            f"--session {session!r}: not the id of a session",
            hint="'holdfast show TASK' has that of a task; the agent's program lists its own",
        )


def _failover(agent: str, names: list[str]) -> list[Adapter]:
    """The agents that may take over. One that is not there would be found out when it is needed most."""
    if names and "command" in (agent, *names):
        raise UsageError("a command has no failover", hint="--failover is between agents")
    found: list[Adapter] = []
    for name in dict.fromkeys(names):
        if name == agent:
            raise UsageError(f"--failover {name}: it is the agent of the task already")
        adapter = registry.adapter(name)
        _check_installed(adapter)
        found.append(adapter)
    return found


def _quality(given: dict[str, Any]) -> QualitySpec | None:
    """What the settings ask of work in this project; None where they ask for nothing."""
    action = given.get("on_quality", "interrupt")
    if action == "interrupt" and "quality" in given.get("interrupt_off", ()):
        action = "warn"
    quality = QualitySpec(
        pre_work=tuple(given.get("pre_work", ())),
        post_work=tuple(given.get("post_work", ())),
        expect_empty=tuple(given.get("expect_empty", ())),
        clean_git=given.get("clean_git", False),
        action=action,
        issue_command=given.get("issue_command"),
        timeout_s=clock.parse_duration(given.get("quality_timeout", "10m")),
    )
    if not quality.looks_before and not quality.looks_after:
        return None
    if quality.action == "file_issue" and quality.issue_command is None:
        raise UsageError(
            "on_quality is file_issue, and no issue_command is set",
            hint="for example: issue_command = \"gh issue create --title 'Checks fail' --body-file -\"",
        )
    return quality


def _bootstrap(chosen: str | None) -> str | None:
    """`default`, or the file as an absolute path."""
    if chosen is None or chosen == "default":
        return chosen
    path = os.path.abspath(chosen)
    if not os.path.isfile(path) or not os.access(path, os.R_OK):
        raise UnreadableFile(
            f"cannot read the bootstrap {chosen}",
            hint="check its path and mode; 'default' is the one shipped",
        )
    return path


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


def _lacks(agent: str, option: str, *, verb: str) -> UsageError:
    if verb == "queue add":  # an item brings its options along
        return UsageError(
            f"{agent} needs the option {option}",
            hint=f'for example \'{{"title": "TITLE", "options": {{"{option}": "FILE"}}}}\'',
        )
    return UsageError(f"{agent} needs -o {option}=…", hint=f"for example -o {option}=FILE")
