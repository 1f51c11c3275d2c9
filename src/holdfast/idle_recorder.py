"""A pre-forked recorder that waits for its order.

A forked process shares its parent's memory until one of them writes, and Python writes on every access
(reference counts). A recorder forked from a busy runner would keep an old copy of most of the runner's memory
for as long as the agent lives. So a task's first recorder is forked before its runner has done anything, and
does as little as possible itself (docs/decisions/0041-idle-tasks.md).

The order and the attempt's held lock are sent through a socket. While they are in transit, the kernel keeps
the lock held. So if the runner is killed, the lock tells the truth: either it is held by a recorder that will
start the agent, or it is free and nothing will.
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
    import _signal as signal  # the C module, as in the recorder

#: Lengths of an order's parts: the lock's signature, the attempt's directory, the marshalled order.
_LENGTHS = struct.Struct("!III")
_DESCRIPTOR = struct.Struct("i")
#: The attempt's lock, the pipe, and the locks to keep (session and workspace); a lock has two descriptors.
_MAX_DESCRIPTORS = 8


class _IdleRecorder:
    """A recorder that waits for its order."""

    def __init__(self, pid: int, channel: _socket.socket) -> None:
        self.pid = pid
        self.channel = channel


_waiting: _IdleRecorder | None = None


def prepare() -> None:
    """Fork a recorder that waits for its order, unless there is one. It exits when this process does.

    Raises OSError if the fork fails.
    """
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
        _waiting = _IdleRecorder(pid, ours)
        return
    status = 70
    try:
        status = _await_order(theirs, runner)
    finally:
        os._exit(status)


def channel() -> int:
    """Descriptor of the socket to the idle recorder, or -1 if there is none."""
    return -1 if _waiting is None else _waiting.channel.fileno()


def pid() -> int:
    """The pid of the idle recorder, or -1 if there is none."""
    return -1 if _waiting is None else _waiting.pid


def dismiss() -> None:
    """End the idle recorder, if there is one."""
    global _waiting
    idle, _waiting = _waiting, None
    if idle is not None:
        _end(idle)


def send_order(
    order: recorder.Order,
    lock: tuple[int, int],
    started: int,
    *,
    keep: tuple[int, ...],
    sign: Callable[[int], bytes],
) -> int:
    """Send an order to the idle recorder, forking one if needed. Returns the recorder's pid.

    `lock` is the attempt's lock: its file and its directory. `keep` are held locks that must outlive the
    runner; `sign` returns the content of the attempt's lock file for a pid. For `started` see
    `recorder.record`. The caller closes its own copies of all descriptors.
    """
    prepare()
    try:
        return _hand_over(order, (*lock, started, *keep), sign)
    except OSError:
        # The idle recorder was killed. A partial order starts nothing, so it is safe to send it to another
        # one.
        prepare()
        return _hand_over(order, (*lock, started, *keep), sign)


def _hand_over(order: recorder.Order, descriptors: tuple[int, ...], sign: Callable[[int], bytes]) -> int:
    global _waiting
    idle, _waiting = _waiting, None
    assert idle is not None
    # It may have been stopped by a signal. Continue it before it gets the lock: until then, nothing on disk
    # leads to it; afterwards, the lock's owner does.
    os.kill(idle.pid, signal.SIGCONT)
    try:
        directory = order.directory.encode("utf-8", "surrogateescape")
        _send(idle.channel, (sign(idle.pid), directory, marshal.dumps(vars(order))), descriptors)
    except OSError:
        _end(idle)
        raise
    idle.channel.close()
    return idle.pid


def _end(idle: _IdleRecorder) -> None:
    idle.channel.close()
    os.kill(idle.pid, signal.SIGKILL)  # a child that was not reaped yet, so the pid cannot have been reused
    os.waitpid(idle.pid, 0)


def _send(channel: _socket.socket, parts: tuple[bytes, bytes, bytes], descriptors: tuple[int, ...]) -> None:
    packed = b"".join(_DESCRIPTOR.pack(each) for each in descriptors)
    rights = (_socket.SOL_SOCKET, _socket.SCM_RIGHTS, packed)
    channel.sendmsg([_LENGTHS.pack(*map(len, parts))], [rights])
    channel.sendall(b"".join(parts))


def _await_order(channel: _socket.socket, runner: int) -> int:
    """In the recorder: wait for the order and carry it out. Returns the exit status."""
    gc.disable()  # a collection writes to every object, and the recorder creates no cycles
    recorder.detach(channel.fileno())
    space = _socket.CMSG_SPACE(_MAX_DESCRIPTORS * _DESCRIPTOR.size)
    head, messages, _, _ = channel.recvmsg(_LENGTHS.size, space)
    if len(head) < _LENGTHS.size or not messages:
        return 0  # the runner exited without an attempt
    lengths = _LENGTHS.unpack(head)
    signature, name, order = (_receive(channel, length) for length in lengths)
    if (len(signature), len(name), len(order)) != lengths:
        return 0  # the runner was killed while sending
    channel.close()
    lock, folder, started, *keep = (number for (number,) in _DESCRIPTOR.iter_unpack(messages[0][2]))
    for descriptor in (lock, folder, started, *keep):
        os.set_inheritable(descriptor, False)
    directory = str(name, "utf-8", "surrogateescape")
    return recorder.record(directory, order, (lock, folder), started, signature=signature, runner=runner)


def _receive(channel: _socket.socket, length: int) -> bytearray:
    """Read `length` bytes, fewer if the other end closes.

    One buffer: an order can be large, and is freed later.
    """
    data = bytearray(length)
    count = 0
    with memoryview(data) as view:
        while count < length and (more := channel.recv_into(view[count:])):
            count += more
    del data[count:]
    return data
