"""Start a task: at once with its own runner, or through the queue. For every view."""

from __future__ import annotations

from holdfast import paths
from holdfast.errors import HoldfastError, UsageError
from holdfast.model.permissions import is_full
from holdfast.model.status import Status
from holdfast.runner_process import start_runner
from holdfast.spawn import allow_keeper, ensure_keeper
from holdfast.store.layout import Home, Packet
from holdfast.views.create import from_options, new_task
from holdfast.views.text import keeper_settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Sequence

    from holdfast.model.spec import TaskSpec
    from holdfast.views.create.new_task import NewTask, Talk
    from holdfast.views.create.options import TaskOptions

else:
    # The C module: importing `signal` costs half a millisecond for its enums.
    import _signal as signal


def run(options: TaskOptions, *, talk: Talk) -> Packet:
    """Create a task in the home and start it at once, as `holdfast run -d`. Raises UsageError, …"""
    home = Home(paths.ensure_home(paths.home()))
    return begin(home, from_options.read(options.values(), talk=talk), talk=talk)


def submit(
    options: TaskOptions,
    *,
    priority: str | None = None,
    pool: str | None = None,
    after: Sequence[str] = (),
    not_before: str | None = None,
    may_be_full: bool = True,
    talk: Talk,
) -> Packet:
    """Create a task in the home's queue, as `holdfast submit`. Raises UsageError, NotFound, …

    `may_be_full`: whether its agents may have the profile `full`, be it from a packet or a setting.
    """
    home = Home(paths.ensure_home(paths.home()))
    task = from_options.read(options.values(), verb="submit", talk=talk)
    if not may_be_full:
        refuse_full(task.spec)
    from holdfast.views.create import enqueue, queue_options  # they load the queue

    queue = queue_options.read(
        home, task.settings, priority=priority, pool=pool, after=after, not_before=not_before
    )
    packet = enqueue.create(home, task, queue)
    enqueue.add(home, packet, talk=talk)
    enqueue.wake_keeper(home, talk=talk)
    enqueue.say_if_stopped(packet, talk=talk)
    return packet


def refuse_full(spec: TaskSpec) -> None:
    """Raises UsageError if an agent of a new task would have full permissions: a program asks for it."""
    if is_full(spec):
        raise UsageError(
            "permissions: full cannot be granted here", hint="a person starts such a task: 'holdfast submit'"
        )


def begin(home: Home, task: NewTask, *, talk: Talk) -> Packet:
    """Create the task and start its runner, with Ctrl-C blocked so that both happen.

    If the task cannot be created, a home that is down stays down.
    """
    masked = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT,))
    try:
        packet = new_task.create(home, task, status=Status.SPAWNING)
        allow_keeper(home)
        start_runner(packet)
        try:
            ensure_keeper(home, by_person=True)
        except (OSError, HoldfastError) as error:
            talk(f"warning: cannot start the keeper: {error}")  # the task is already running
        if unknown := keeper_settings.warning(home):
            talk(f"warning: {unknown}")
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, masked)
    return packet
