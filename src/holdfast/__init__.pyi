# The types of the Python API. `__init__.py` loads what is used: nothing is imported before.
from holdfast.errors import HoldfastError as HoldfastError
from holdfast.model.status import Status as Status
from holdfast.views.api.home import digest as digest
from holdfast.views.api.home import fan_out as fan_out
from holdfast.views.api.home import open as open  # noqa: A004 (holdfast.open)
from holdfast.views.api.home import run as run
from holdfast.views.api.home import submit as submit
from holdfast.views.api.home import tasks as tasks
from holdfast.views.api.home import wait as wait
from holdfast.views.api.task import Task as Task
from holdfast.views.api.values import Applied as Applied
from holdfast.views.api.values import Change as Change
from holdfast.views.api.values import Digest as Digest
from holdfast.views.api.values import Event as Event
from holdfast.views.api.values import HoldfastWarning as HoldfastWarning
from holdfast.views.api.values import Log as Log
from holdfast.views.api.values import PullRequest as PullRequest
from holdfast.views.api.values import PullRequestCheck as PullRequestCheck
from holdfast.views.api.values import Summary as Summary
from holdfast.views.api.values import TaskInfo as TaskInfo
from holdfast.views.facts.diff import Diff as Diff

__version__: str
