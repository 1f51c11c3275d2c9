"""Preflight: check before the first call of a run that everything its stages need is available.

What is certainly missing stops the task before it costs anything. What is only not visible (a login may be in
a keychain) is noted; the agent itself reports whether it works. `state/preflight.json` has the results.
"""

from __future__ import annotations

import os

from holdfast import clock, files
from holdfast.agents import probe, program, registry
from holdfast.errors import HoldfastError
from holdfast.model.task import Task
from holdfast.runner.ledger import Ledger
from holdfast.runner.plan.facts import PreflightProblem
from holdfast.store import atomic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.agents.probe import Probe


def find_problems(ledger: Ledger, env: Mapping[str, str]) -> tuple[PreflightProblem, ...]:
    """Run all checks and write state/preflight.json. Returns what is missing."""
    agents = _agents(ledger.task)
    probes = [probe.probe(registry.adapter(name), env) for name in agents]
    problems = [
        PreflightProblem(text=text, missing_program=each.missing or "")
        for each in probes
        for text in each.problems
    ]
    problems += [PreflightProblem(text=text) for text in _environment_problems(ledger, env)]
    problems = [problem.evolve(text=ledger.redact(problem.text)) for problem in problems]
    if any(agent != "command" for agent in agents) or problems:
        _note(ledger, probes, problems)
    return tuple(problems)


def _agents(task: Task) -> list[str]:
    """The agents of the remaining stages."""
    left = [stage for stage in task.spec.stages if not task.is_over(stage.name)]
    stage_states = task.stage_states
    return list(
        dict.fromkeys(
            stage_states[stage.name].agent if stage.name in stage_states else stage.agent for stage in left
        )
    )


def _environment_problems(ledger: Ledger, env: Mapping[str, str]) -> list[str]:
    """Problems of the directory, git, the bootstrap and templates."""
    spec, problems = ledger.task.spec, list[str]()
    if not os.path.isdir(spec.project_dir):
        problems.append(f"the directory {spec.project_dir} does not exist")
    needs_git = spec.workspace == "worktree" or any(stage.writes for stage in spec.stages)
    if needs_git and program.which("git", env.get("PATH", os.defpath)) is None:
        problems.append("there is no git in PATH; it is needed to track changes")
    if (
        spec.pipeline is not None
        and spec.pipeline.ci
        and program.which("gh", env.get("PATH", os.defpath)) is None
    ):
        problems.append("there is no gh in PATH; the gate 'ci' needs it")
    if spec.bootstrap not in (None, "default") and not os.access(spec.bootstrap, os.R_OK):
        problems.append(f"the bootstrap {spec.bootstrap} cannot be read")
    if spec.sandbox is not None:
        from holdfast.sandbox import machine

        lack = machine.find_problem(network=spec.sandbox.network)
        problems += [f"no sandbox: {lack.message} ({lack.fix})"] if lack is not None else []
    if spec.pipeline is not None:
        # Only pipelines pay for the imports.
        from holdfast.pipeline.prompt import template
        from holdfast.sandbox import machine

        left = [stage for stage in spec.stages if stage.name not in ledger.task.stages_done]
        lack = machine.find_problem_of_brief(spec, left)
        problems += [f"{lack.message} ({lack.fix})"] if lack is not None else []
        problems += template.needed(left, profile=spec.pipeline.profile, packet=ledger.packet)[1]
    return problems


def _note(ledger: Ledger, probes: list[Probe], problems: list[PreflightProblem]) -> None:
    no_login = [each.agent for each in probes if _lacks_login(each)]
    for agent in no_login:
        login = registry.adapter(agent).capabilities.login
        files.log(f"{agent}: no sign of a login; '{login}' logs in")
    note = {
        "schema": "holdfast.preflight/1",
        "at": clock.iso_now(),
        "run": ledger.task.run,
        "agents": [each.to_json() for each in probes],
        "no_login_seen": no_login,
        "problems": [problem.text for problem in problems],
    }
    try:
        atomic.write_json(ledger.packet.preflight, note, durable=False)
    except HoldfastError:
        return  # derived: the next run writes it again


def _lacks_login(probed: Probe) -> bool:
    able = registry.adapter(probed.agent).capabilities
    return bool(able.login_env or able.login_files) and not probed.login_seen
