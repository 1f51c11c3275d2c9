"""A task from options, as the command line has them: they are read and checked, and nothing is written."""

from __future__ import annotations

import os

from holdfast import clock, ids, paths
from holdfast.agents import registry
from holdfast.errors import NoSuchDirectory, PromptTooLarge, UnreadableFile, UsageError
from holdfast.model.spec import QualitySpec, StageSpec, TaskSpec, short_name
from holdfast.packet import environment, limits
from holdfast.redact import MARGIN, Redactor, begin_of
from holdfast.store import foreign
from holdfast.views import option_values
from holdfast.views.create import agent_options, check_agent, check_command, check_sandbox, permissions
from holdfast.views.create.new_task import NewTask, environment_of, trusted_settings
from holdfast.views.create.options import LIMIT_OPTIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.agents.base import Adapter
    from holdfast.views.create.new_task import Talk

_GOAL_CHARS = 500
_PROMPT_BYTES = 16 * 1024 * 1024
#: As in the pipelines that write: what is refused a third time needs a person.
_REPAIRS = 2


def read(values: dict[str, Any], *, verb: str = "run", talk: Talk) -> NewTask:
    """The task that OPTIONS, PROMPT and `-- COMMAND` describe. Raises UsageError."""
    _check_texts(values)
    if verb != "queue add" and paths.has_keeper_variables():
        from holdfast.config import variables

        variables.check_keeper(os.environ)  # the keeper that may be started for the task reads them
    if values["packet"] is not None:
        from holdfast.views.create import from_packet  # loads all of the pipeline

        return from_packet.read(values["packet"], values=values, talk=talk, is_new=True)
    project = paths.project(values["project"])
    prompt = _prompt(values, project)
    settings, trust = trusted_settings(project, by_flag=values["trust_project"], talk=talk)
    spec, env = _spec(values, prompt, settings, project=project, verb=verb, talk=talk)
    spec = spec.evolve(trust=trust) if trust else spec
    permissions.warn(spec, talk=talk)
    if values["budget_usd"] is not None or values["budget_tokens"] is not None or "limits" in settings:
        from holdfast.views.create import budget_notes

        spec = budget_notes.noted(spec, talk=talk)
    if spec.workspace == "worktree":
        from holdfast.views.create import check_git

        spec = check_git.noted(spec, talk=talk)
    return NewTask(spec=spec, prompt=prompt, env=env, settings=settings)


def _check_texts(values: dict[str, Any]) -> None:
    """Raises UsageError for texts that no command line can have; a program or an MCP client can pass them."""
    for name, value in values.items():
        for text in value if isinstance(value, (tuple, list)) else (value,):  # pyright: ignore[reportUnknownVariableType]
            if not isinstance(text, str):
                continue
            try:
                is_possible = b"\0" not in os.fsencode(text)
            except UnicodeEncodeError:
                is_possible = False
            if not is_possible:
                raise UsageError(
                    f"{name}: {text[:40]!r} has a NUL character or half of a surrogate pair", hint="remove it"
                )


def _prompt(values: dict[str, Any], project: str) -> bytes | None:
    prompt, file = values["prompt"], values["file"]
    if prompt is not None and file is not None:
        raise UsageError("a prompt and --file exclude each other", hint="give one of them")
    if file is None:
        return None if prompt is None else os.fsencode(prompt)
    if file != "-":
        foreign.refuse_way_out(file, project)
    try:
        with open(0 if file == "-" else file, "rb", closefd=file != "-") as opened:
            # With a limit: input without end (`yes |`) would fill the memory.
            data = opened.read(_PROMPT_BYTES + 1)
    except OSError as error:
        raise UnreadableFile(
            f"cannot read the prompt file {file}: {error.strerror}", hint="check its path and mode"
        ) from error
    if len(data) > _PROMPT_BYTES:
        raise PromptTooLarge(
            f"the prompt in {'stdin' if file == '-' else file} is larger than {_PROMPT_BYTES >> 20} MB",
            hint="put the text into files, and name them in the prompt",
        )
    return data


def _spec(
    values: dict[str, Any],
    prompt: bytes | None,
    settings: dict[str, Any],
    *,
    project: str,
    verb: str,
    talk: Talk,
) -> tuple[TaskSpec, dict[str, Any]]:
    agent = _agent(values, settings, verb=verb, talk=talk)
    adapters, options = _checked_adapters(agent, values, prompt, project=project, verb=verb)
    _check_work(values, project)
    profile = "" if agent == "command" else permissions.chosen(values, settings, adapters, talk=talk)
    if values["model"] is not None:
        check_agent.check_model(values["model"])
    stage = StageSpec(
        name=f"{agent}_run",
        agent=agent,
        model=values["model"],
        permissions=profile,
        # Its tree is recorded before the work, and only this task writes to it.
        writes=bool(values["accept"]),
    )
    flags = {field: values[field] for field in LIMIT_OPTIONS if values[field] is not None}
    env_file, from_file = environment_of(values, settings, project=project)
    declared = tuple(dict.fromkeys([*settings.get("env", ()), *values["env"], *from_file]))
    captured = _captured_env(adapters, declared, from_file)
    redact = Redactor(captured["env"], declared)
    goal, name = _goal_and_name(values, prompt, redact)
    spec = TaskSpec(
        task_id=ids.new_task_id(name) if values["id"] is None else ids.check_task_id(values["id"]),
        task_name=name,
        goal=goal,
        labels={key: redact(value) for key, value in option_values.labels(values["label"]).items()},
        agent=agent,
        model=values["model"],
        command=values["command"],
        options=options,
        project_dir=project,
        project_real=os.path.realpath(project),
        stages=(stage,),
        limits=limits.resolve(
            os.environ, flags, stale_s=adapters[0].capabilities.stale_s, settings=settings.get("limits", {})
        ),
        leftovers=values["leftovers"] or settings.get("leftovers", "report"),
        failover=tuple(adapter.name for adapter in adapters[1:]),
        interrupt_off=tuple(settings.get("interrupt_off", ())),
        session=values["session"],
        workspace="worktree" if values["worktree"] else "in_place",
        bootstrap=_bootstrap(values["bootstrap"], project),
        variables=dict(agent_options.pair("--var", text) for text in values["var"]),
        env=declared,
        env_file=env_file,
        env_file_sha256=environment.digest_of(from_file),
        quality=_accepted(
            None if values["no_quality"] else _quality(settings), values["accept"], settings, adapters[0]
        ),
        sandbox=check_sandbox.read(values, settings, project=project),
    )
    check_sandbox.check_link(spec)
    if agent == "command":
        # Checked last: a mistake in an option itself is the more useful error.
        agent_options.refuse_for_command(values)
    return spec, captured


def _checked_adapters(
    agent: str, values: dict[str, Any], prompt: bytes | None, *, project: str, verb: str
) -> tuple[list[Adapter], dict[str, object]]:
    """The adapter of the agent, those of its failover, and their options; all can do the work."""
    adapter = registry.adapter(agent)
    _check_project(project)
    if agent == "command":
        command = values["command"]
        if not command or not command[0]:
            raise UsageError("no command was given", hint=_usage(verb))
        check_command.check(command[0], project)
    adapters = [adapter, *check_agent.failover(agent, values["failover"])]
    check_agent.check_session(adapter, values["session"])
    if agent == "command":
        return adapters, {}
    options = agent_options.read(values["option"], adapters, project=project)
    check_agent.check(adapter, prompt, options, verb=verb)
    return adapters, options


def _check_work(values: dict[str, Any], project: str) -> None:
    """Check where the agent works, what it must pass, and the names of variables."""
    if values["worktree"] or values["accept"]:
        from holdfast.views.create import check_git

        if values["worktree"]:
            check_git.check_worktree(project)
        if values["accept"]:
            check_git.check_accept(project, values["accept"])
    _check_env(values["env"])


def _captured_env(
    adapters: list[Adapter], declared: tuple[str, ...], from_file: dict[str, str]
) -> dict[str, Any]:
    """The variables that the task runs with: what its agents need, and what the user names."""
    needed = [name for each in adapters for name in each.capabilities.env]
    captured = environment.capture(dict(os.environ), (*needed, *declared))
    captured["env"].update(from_file)
    return captured


def _goal_and_name(values: dict[str, Any], prompt: bytes | None, redact: Redactor) -> tuple[str, str]:
    """Both are shown everywhere, so they are redacted. What the task runs with is in its files."""
    command = values["command"]
    if prompt:
        goal = begin_of(prompt[: _GOAL_CHARS + MARGIN], redact, _GOAL_CHARS)
    else:
        goal = redact(" ".join(command or ()))
    return goal, redact(values["name"] or "") or _name(goal, command, redact)


def _agent(values: dict[str, Any], settings: dict[str, Any], *, verb: str, talk: Talk) -> str:
    """The name of the agent that does the work; `command` for a plain command."""
    command, prompt, agent = values["command"], values["prompt"], values["agent"]
    if command is not None and agent not in (None, "command"):
        raise UsageError(
            f"an agent ({agent}) and a command were given",
            hint="give one of them: everything after -- is a command",
        )
    # With an explicit --agent command, the file is what the command reads from stdin.
    is_input = agent == "command" and prompt is None
    if command is not None and (prompt is not None or values["file"] is not None) and not is_input:
        raise _two_tasks(values, verb=verb)
    if command is not None or agent is not None:
        return "command" if agent is None else agent
    if prompt is None and values["file"] is None:
        raise UsageError("neither a prompt nor a command was given", hint=_usage(verb))
    if verb == "queue add" and not settings.get("agent"):
        raise UsageError("neither an agent nor a command was given", hint=_usage(verb))
    _refuse_program(prompt, verb=verb)
    return check_agent.default(settings, verb=verb, talk=talk)


def _two_tasks(values: dict[str, Any], *, verb: str) -> UsageError:
    """The error for a prompt and a command: often the second word of a duration was meant."""
    prompt = values["prompt"]
    unit = clock.unit_of(prompt) if prompt else ""
    for name in LIMIT_OPTIONS if unit else ():
        if (values[name] or "").isdigit():
            flag = limits.flag(name)
            return UsageError(
                f"unexpected argument {prompt!r}", hint=f"did you mean {flag} {values[name]}{unit}?"
            )
    return UsageError(
        f"a prompt ({prompt!r}) and a command were given" if prompt else "--file and a command were given",
        hint=f"give one of them: 'holdfast {verb} --agent NAME PROMPT' or 'holdfast {verb} -- COMMAND'",
    )


def _refuse_program(prompt: str | None, *, verb: str) -> None:
    """A prompt of one word that is a program: `run make`. With --agent, it is a prompt."""
    if prompt and prompt.isascii() and not prompt.split()[1:]:
        from holdfast.agents import program

        if program.which(prompt.strip(), os.environ.get("PATH", os.defpath)):
            raise UsageError(
                f"{prompt.strip()!r} is a program, not a prompt",
                hint=f"did you mean 'holdfast {verb} -- {prompt.strip()}'? With --agent NAME it is a prompt",
            )


def _usage(verb: str) -> str:
    if verb == "queue add":
        return """'holdfast queue add ITEM --agent NAME', or "agent" or "command" in the item"""
    return f"'holdfast {verb} --agent NAME PROMPT', or 'holdfast {verb} -- COMMAND ARGUMENTS…'"


def _check_project(project: str) -> None:
    foreign.refuse_way_out(project)
    if os.path.isdir(project):
        if os.access(project, os.X_OK):
            return
        from shlex import quote  # only needed for an error

        raise NoSuchDirectory(
            f"cannot enter the project directory {project}: Permission denied",
            hint=f"'ls -ld {quote(project)}' shows its owner and mode; or give another with --project",
        )
    if os.path.exists(project):
        raise NoSuchDirectory(
            f"the project {project} is not a directory", hint="give its directory with --project"
        )
    raise NoSuchDirectory(
        f"the project directory {project} does not exist", hint="give an existing one with --project"
    )


def _name(goal: str, command: list[str] | None, redact: Redactor) -> str:
    if command:
        return short_name(redact(" ".join([os.path.basename(command[0]), *command[1:3]])))
    return short_name(goal.strip() or "task")


def _quality(settings: dict[str, Any]) -> QualitySpec | None:
    """The project's own checks before and after the work; None if it has none."""
    action = settings.get("on_quality", "interrupt")
    if action == "interrupt" and "quality" in settings.get("interrupt_off", ()):
        action = "warn"
    quality = QualitySpec(
        pre_work=tuple(settings.get("pre_work", ())),
        post_work=tuple(settings.get("post_work", ())),
        expect_empty=tuple(settings.get("expect_empty", ())),
        clean_git=settings.get("clean_git", False),
        action=action,
        issue_command=settings.get("issue_command"),
        timeout_s=clock.parse_duration(settings.get("quality_timeout", "10m")),
    )
    if not quality.looks_before and not quality.looks_after:
        return None
    if quality.action == "file_issue" and quality.issue_command is None:
        raise UsageError(
            "on_quality is file_issue, but issue_command is not set",
            hint="for example: issue_command = \"gh issue create --title 'Checks fail' --body-file -\"",
        )
    return quality


def _accepted(
    quality: QualitySpec | None, commands: list[str], settings: dict[str, Any], adapter: Adapter
) -> QualitySpec | None:
    """The checks with the commands of `--accept`. Repairs need a session that can be resumed."""
    if not commands:
        return quality
    times = _REPAIRS if adapter.capabilities.can_resume else 0
    limit_s = clock.parse_duration(settings.get("quality_timeout", "10m"))
    quality = quality or QualitySpec(timeout_s=limit_s)
    return quality.evolve(accept=tuple(commands), repair_times=times)


def _bootstrap(chosen: str | None, project: str) -> str | None:
    """`default`, or the file as an absolute path."""
    if chosen is None or chosen == "default":
        return chosen
    foreign.refuse_way_out(chosen, project)
    # Resolved: later, a link in the project may be an agent's.
    path: str = os.path.realpath(chosen)
    if not os.path.isfile(path) or not os.access(path, os.R_OK):
        raise UnreadableFile(
            f"cannot read the bootstrap {chosen}",
            hint="check its path and mode, or use the built-in one: --bootstrap default",
        )
    return path


def _check_env(names: list[str]) -> None:
    for name in names:
        key, equals, value = name.partition("=")
        if equals and key.isidentifier():
            raise UsageError(
                f"--env {key}=…: only the name",
                hint=f"did you mean: {key}={_quoted(value)} holdfast … --env {key} …? "
                "--env-file FILE sets several",
            )
        if not name.isidentifier():
            raise UsageError(
                f"--env {name}: not a variable name",
                hint="'--env NAME' passes on NAME as it is set here; --env-file FILE sets variables",
            )
        if name not in os.environ:
            raise UsageError(f"--env {name}: not set", hint="set it, or put it into a file for --env-file")


def _quoted(value: str) -> str:
    from shlex import quote  # only needed for an error

    # A secret is not repeated on the screen.
    return quote(value) if len(value) <= 8 else "…"
