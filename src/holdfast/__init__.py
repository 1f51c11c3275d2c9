"""holdfast runs coding agents on long tasks and keeps them going.

The Python API (docs/guides/python.md): `submit`, `run`, `fan_out`, `open`, `tasks`, `digest`, `wait`;
`holdfast.aio` is the same for asyncio. Its types are in `__init__.pyi`. Every command and every runner
imports this package, so a name of the API loads its module when it is first used.
"""

__version__ = "0.1.0"

#: Name → module that has it.
_API = {
    "submit": "views.api.home",
    "run": "views.api.home",
    "fan_out": "views.api.home",
    "open": "views.api.home",
    "tasks": "views.api.home",
    "digest": "views.api.home",
    "wait": "views.api.home",
    "HoldfastWarning": "views.api.values",
    "Task": "views.api.task",
    "TaskInfo": "views.api.values",
    "Event": "views.api.values",
    "Log": "views.api.values",
    "Summary": "views.api.values",
    "Applied": "views.api.values",
    "PullRequest": "views.api.values",
    "PullRequestCheck": "views.api.values",
    "Change": "views.api.values",
    "Digest": "views.api.values",
    "Diff": "views.facts.diff",
    "Status": "model.status",
    "HoldfastError": "errors",
}


def __getattr__(name: str) -> object:
    if name not in _API:
        raise AttributeError(f"module 'holdfast' has no attribute {name!r}")
    module = __import__(f"holdfast.{_API[name]}", fromlist=(name,))
    value = globals()[name] = getattr(module, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_API})
