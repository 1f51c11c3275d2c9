"""A recorder is forked empty-handed and told later what to start.

A forked process shares its parent's memory until one of them writes, and a Python process writes wherever it looks: into
reference counts. A recorder that is forked from a runner at work keeps an old copy of most of the runner's memory for as long
as the agent lives. So the first one of a task is forked before its runner has looked at anything, and waits; and what can be
done by others, who do not stay, is not done by the recorder (docs/decisions/0041-what-an-idle-task-costs.md).

The order, and with it the held lock of the attempt, goes through a socket. While it is on its way the kernel keeps the lock held.
So what a killed runner leaves reads as ever: the lock is held by one who will start the agent, or it is free and nobody will.
"""

from __future__ import annotations

import _socket
import gc
import marshal
import os
import struct

from holdfast import recorder

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable
else:
    import _signal as signal  # in C, as in the recorder

#: Of the parts of an order: the signature, the attempt's directory, and what to start.
_LENGTHS = struct.Struct("!III")
_DESCRIPTOR = struct.Struct("i")
#: Lock, pipe, and the locks to keep: of the session and of the workspace.
_MOST_DESCRIPTORS = 8


class _Spare:
    """A recorder that waits for its order."""

    def __init__(self, pid: int, channel: _socket.socket) -> None:
        self.pid = pid
        self.channel = channel


#: The one that waits, if any.
_waiting: _Spare | None = None


def prepare() -> None:
    """Fork a recorder that waits for its order, unless there is one. It leaves when we do. Raises OSError when there is no
    process to be had."""
    global _waiting
    if _waiting is not None:
        return
    recorder.boot_id()
    runner = os.getpid()
    ours, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        pid = os.fork()
    except OSError:
        ours.close()
        theirs.close()
        raise
    if pid:
        theirs.close()
        _waiting = _Spare(pid, ours)
        return
    status = 70
    try:
        status = _await_order(theirs, runner)
    finally:
        os._exit(status)


def channel() -> int:
    """The descriptor by which we hold the one that waits; -1 without one."""
    return -1 if _waiting is None else _waiting.channel.fileno()


def dismiss() -> None:
    """Let the one that waits go."""
    global _waiting
    spare, _waiting = _waiting, None
    if spare is not None:
        _end(spare)


def start(
    order: recorder.Start, lock: int, started: int, *, keep: tuple[int, ...], sign: Callable[[int], bytes]
) -> int:
    """Let a recorder start an agent; returns its pid. `keep` are held locks that must outlive the runner, `sign` makes the text
    of the attempt's lock for a pid; for `lock` and `started` see `recorder.record`. The caller closes its copies of them."""
    prepare()
    try:
        return _hand_over(order, (lock, started, *keep), sign)
    except OSError:
        # It was killed while it waited. Half an order starts nothing, so another one may have it.
        prepare()
        return _hand_over(order, (lock, started, *keep), sign)


def _hand_over(order: recorder.Start, descriptors: tuple[int, ...], sign: Callable[[int], bytes]) -> int:
    global _waiting
    spare, _waiting = _waiting, None
    assert spare is not None
    # One that was stopped cannot be found by the lock that it has not taken in yet. Before the order: from then on it can.
    os.kill(spare.pid, signal.SIGCONT)
    try:
        directory = order.directory.encode("utf-8", "surrogateescape")
        _send(spare.channel, (sign(spare.pid), directory, marshal.dumps(vars(order))), descriptors)
    except OSError:
        _end(spare)
        raise
    spare.channel.close()
    return spare.pid


def _end(spare: _Spare) -> None:
    spare.channel.close()
    os.kill(spare.pid, signal.SIGKILL)  # our child, not waited for yet: the pid is its own
    os.waitpid(spare.pid, 0)


def _send(channel: _socket.socket, parts: tuple[bytes, bytes, bytes], descriptors: tuple[int, ...]) -> None:
    packed = b"".join(_DESCRIPTOR.pack(each) for each in descriptors)
    rights = (_socket.SOL_SOCKET, _socket.SCM_RIGHTS, packed)
    channel.sendmsg([_LENGTHS.pack(*map(len, parts))], [rights])
    channel.sendall(b"".join(parts))


def _await_order(channel: _socket.socket, runner: int) -> int:
    """In the recorder."""
    gc.disable()  # it would write to all that it looks at, and a recorder makes no garbage
    recorder.detach(channel.fileno())
    space = _socket.CMSG_SPACE(_MOST_DESCRIPTORS * _DESCRIPTOR.size)
    head, messages, _, _ = channel.recvmsg(_LENGTHS.size, space)
    if len(head) < _LENGTHS.size or not messages:
        return 0  # the runner left without an attempt
    lengths = _LENGTHS.unpack(head)
    signature, named, order = (_receive(channel, length) for length in lengths)
    if (len(signature), len(named), len(order)) != lengths:
        return 0  # the runner was killed in the middle of a word
    channel.close()
    lock, started, *keep = (number for (number,) in _DESCRIPTOR.iter_unpack(messages[0][2]))
    for descriptor in (lock, started, *keep):
        os.set_inheritable(descriptor, False)
    directory = str(named, "utf-8", "surrogateescape")
    return recorder.record(directory, order, lock, started, signature=signature, runner=runner)


def _receive(channel: _socket.socket, length: int) -> bytearray:
    """So much, or less where the other end was closed. Into one piece of memory: an order can be large, and is given back."""
    found = bytearray(length)
    count = 0
    with memoryview(found) as view:
        while count < length and (more := channel.recv_into(view[count:])):
            count += more
    del found[count:]
    return found
