"""What each value in a project's `.holdfast/` may do without the user's trust (docs/security.md).

A project is another person's text: a clone, or what an agent left there. A value that can run a command,
choose a program, change the environment or widen permissions needs trust. A value that is not listed here
needs it too.
"""

from __future__ import annotations

HARMLESS = ""
COMMANDS = "runs commands"
PROGRAMS = "chooses programs"
ENVIRONMENT = "changes the environment"
PERMISSIONS = "widens permissions"
#: In the order in which they are shown.
CLASSES = (COMMANDS, PROGRAMS, ENVIRONMENT, PERMISSIONS)

#: config.toml: setting → class.
SETTINGS = {
    "base_interval": HARMLESS,
    "max_interval": HARMLESS,
    "grace": HARMLESS,
    "deadline": HARMLESS,
    "timeout": HARMLESS,
    "on_limit": HARMLESS,
    "interrupt_off": PERMISSIONS,  # no person is asked any more
    "max_retries": HARMLESS,
    "stale": HARMLESS,
    "retry_ceiling": HARMLESS,
    "output_limit": HARMLESS,
    "memory_limit": HARMLESS,
    "agent": PROGRAMS,
    "permissions": PERMISSIONS,
    "tmux": HARMLESS,
    "env": ENVIRONMENT,
    "env_file": ENVIRONMENT,
    "leftovers": PERMISSIONS,  # processes that outlive the task
    "sandbox": PERMISSIONS,
    "network": PERMISSIONS,
    "inhibit_sleep": HARMLESS,
    "slots": HARMLESS,
    "max_iterations": HARMLESS,
    "iteration_delay": HARMLESS,
    "max_failures": HARMLESS,
    "agent_limits": HARMLESS,
    "pool_limits": HARMLESS,
    "pool_windows": HARMLESS,
    "budget_per_day": HARMLESS,
    "pool_budgets": HARMLESS,
    "min_free_memory": HARMLESS,
    "min_free_disk": HARMLESS,
    "sources": COMMANDS,
    "refresh": HARMLESS,
    "import_most": HARMLESS,
    "priorities": HARMLESS,
    "project_order": HARMLESS,
    "notify": COMMANDS,
    "archive_after": PERMISSIONS,
    "keep_for": PERMISSIONS,  # `prune` deletes the tasks of all projects
    "knowledge": PERMISSIONS,  # where `archive` writes
    "pre_work": COMMANDS,
    "post_work": COMMANDS,
    "expect_empty": COMMANDS,
    "clean_git": HARMLESS,  # if it is true, see WEAKER
    "on_quality": PERMISSIONS,  # weakens the user's own checks
    "issue_command": COMMANDS,
    "quality_timeout": HARMLESS,
}
#: The values of harmless settings that switch off a check of the user's own: they need trust as well.
WEAKER: dict[str, object] = {"clean_git": False}
#: agents/*.yaml: first word of a path → class.
AGENTS = {
    "default_model": HARMLESS,
    "allowed_models": PERMISSIONS,
    "efforts": PERMISSIONS,  # they become arguments of the agent's program
    "defaults": HARMLESS,
    "purpose_models": HARMLESS,
    "purpose_efforts": HARMLESS,
    "options": PERMISSIONS,
}
#: pipelines/*.yaml: first word of a path → class; of `profiles`, the third word.
PIPELINES = {
    "default_profile": PROGRAMS,
    "flags": PROGRAMS,
    "profiles": {
        "is_there": HARMLESS,
        "about": HARMLESS,
        "stages": PROGRAMS,
        "flags": PROGRAMS,
        "options": PROGRAMS,
        "stage_models": HARMLESS,
        "stage_efforts": HARMLESS,
        "stage_options": PERMISSIONS,
        "writes": PERMISSIONS,
        "approval": PERMISSIONS,  # replaces the list of stages that wait for a person
        "on_fail": HARMLESS,
        "ci": PERMISSIONS,  # it pushes
        "attempts": HARMLESS,
        "attempt_agents": PROGRAMS,
        "judge": PROGRAMS,
    },
}
#: prompts/*.md: they replace the rules and instructions of agents.
PROMPTS = PERMISSIONS
#: manifest.yaml of a packet: path → class. Whoever names a packet chooses its text,
#: pipeline and limits.
PACKET = {
    "task_id": HARMLESS,
    "goal": HARMLESS,
    "project": PERMISSIONS,  # another directory
    "workspace": HARMLESS,
    "sandbox": HARMLESS,  # it can only add one
    "network": HARMLESS,
    "approval": HARMLESS,
    "env": ENVIRONMENT,
    "labels": HARMLESS,
    "notes": HARMLESS,
    "needs_trust": HARMLESS,  # it can only ask for it
    "routing.intent": HARMLESS,
    "routing.agent": HARMLESS,
    "routing.model.*": HARMLESS,
    "permissions": PERMISSIONS,
    "routing.options.*": PERMISSIONS,
    "routing.permissions.*": PERMISSIONS,
    "routing.failover": PROGRAMS,
    "routing.pipeline.profile": HARMLESS,
    "routing.pipeline.flags.*": HARMLESS,
    "routing.pipeline.options.*": HARMLESS,
    "routing.pipeline.on_fail.back_to": HARMLESS,
    "routing.pipeline.on_fail.times": HARMLESS,
    "routing.pipeline.attempts.*": HARMLESS,
    "routing.pipeline.attempt_agents": PROGRAMS,
    "routing.pipeline.judge": PROGRAMS,
    "scope.allow": HARMLESS,
    "scope.deny": HARMLESS,
    "scope.revert": HARMLESS,
    "acceptance.commands": COMMANDS,
    "acceptance.setup": COMMANDS,
    # Where commands run, and what they use there: settings of git that an agent wrote, for example.
    "acceptance.links": PERMISSIONS,
    "acceptance.clean_room": PERMISSIONS,
    "acceptance.criteria": HARMLESS,
    "acceptance.timeout_sec": HARMLESS,
    "gate.max_severity": HARMLESS,
    "gate.checks": PROGRAMS,
    "gate.ci.pull_request": PERMISSIONS,  # it pushes
    "gate.ci.timeout_sec": HARMLESS,
    "gate.ci.remote": PERMISSIONS,
    "gate.ci.base": PERMISSIONS,
    "budgets.retry_budget": HARMLESS,
    "budgets.paid_call_budget": HARMLESS,
    "budgets.max_wallclock_sec": HARMLESS,
    "budgets.deadline_sec": HARMLESS,
    "budgets.budget_usd": HARMLESS,
    "budgets.budget_tokens": HARMLESS,
    "budgets.max_turns": HARMLESS,
    "budgets.on_limit": HARMLESS,
    "context.digest_policy": HARMLESS,
    "security.redaction_patterns": HARMLESS,
    "security.forbidden_paths": HARMLESS,
}
#: Fields of a work item in a file or folder inside a project → class. Whoever imports it chooses its text,
#: its agent and its place in the queue.
WORK_ITEM = {
    "task_id": HARMLESS,
    "key": HARMLESS,
    "title": HARMLESS,
    "prompt": HARMLESS,
    "priority": HARMLESS,
    "pool": HARMLESS,
    "agent": HARMLESS,
    "model": HARMLESS,
    "project": PERMISSIONS,  # another directory
    "command": COMMANDS,
    "accept": COMMANDS,
    "after": HARMLESS,
    "not_before": HARMLESS,
    "rig": HARMLESS,
    "bootstrap": PERMISSIONS,  # replaces the instructions of agents
    "permissions": PERMISSIONS,
    "options": PERMISSIONS,
    "variables": HARMLESS,
    "source": HARMLESS,
    "url": HARMLESS,
}


def of_work_item(field: str) -> str:
    """The class of a field of a work item."""
    return WORK_ITEM.get(field, PERMISSIONS)


def of_setting(name: str, value: object = None) -> str:
    """The class of a setting with this value."""
    if name in WEAKER and value == WEAKER[name]:
        return PERMISSIONS
    return SETTINGS.get(name, PERMISSIONS)


def of_packet(path: str) -> str:
    """The class of a field of a packet."""
    return PACKET.get(path, PERMISSIONS)


def of_catalog(kind: str, path: str) -> str:
    """The class of a value in a file of `agents` or `pipelines`."""
    words = path.split(".")
    table = AGENTS if kind == "agents" else PIPELINES
    found = table.get(words[0], PERMISSIONS)
    if isinstance(found, dict):
        return found.get(words[2], PERMISSIONS) if len(words) > 2 else PERMISSIONS
    return found
