"""Whether this machine can run a sandbox, and what to do if not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from holdfast.errors import SandboxMissing
from holdfast.model import acceptance
from holdfast.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.model.spec import StageSpec, TaskSpec

_APPARMOR = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"
_CLONE = "/proc/sys/kernel/unprivileged_userns_clone"
_MOST = "/proc/sys/user/max_user_namespaces"
_SYSTEM = "/usr/bin:/bin:/usr/local/bin:/run/current-system/sw/bin:/run/wrappers/bin"
_TRIAL_S = 20.0
_PROFILE = (
    "allow bwrap in AppArmor: write 'abi <abi/4.0>, include <tunables/global> "
    "profile bwrap /usr/bin/bwrap flags=(unconfined) { userns, }' to /etc/apparmor.d/bwrap, "
    "then run 'sudo systemctl reload apparmor'"
)


class SandboxProblem(Record):
    """Why there is no sandbox, and the fix."""

    message: str
    fix: str


def program() -> str | None:
    """The path of bwrap, in a directory of the system: an agent can write to `.venv/bin`, which may be in
    PATH."""
    return shutil.which("bwrap", path=_SYSTEM)


def path() -> str:
    """Where bwrap is, or would be: it may be removed while a task runs. A bare name would be searched in the
    workspace, in which the agent writes."""
    return program() or "/usr/bin/bwrap"


def can_forbid_nesting(bwrap: str) -> bool:
    """Whether bwrap has --disable-userns (0.8 and newer)."""
    try:
        done = subprocess.run(
            [bwrap, "--help"], stdin=subprocess.DEVNULL, capture_output=True, timeout=_TRIAL_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return True  # it does not run at all, which its own error says better
    return b"--disable-userns" in done.stdout + done.stderr


def require(*, network: bool = True) -> str:
    """The path of bwrap, if it works here. Raises SandboxMissing."""
    problem = find_problem(network=network)
    if problem is not None:
        raise SandboxMissing(problem.message, hint=problem.fix)
    return path()


def find_problem(*, network: bool = True) -> SandboxProblem | None:
    """Why a sandbox cannot be made here; None if it can. It makes one to find out."""
    if sys.platform != "linux":
        return SandboxProblem(message=f"there is no sandbox on {sys.platform}", fix="use Linux")
    bwrap = program()
    if bwrap is None:
        return SandboxProblem(
            message="bubblewrap is not installed", fix="install it, for example 'sudo apt install bubblewrap'"
        )
    said = _try(bwrap, network=network)
    if said is None:
        return None
    return SandboxProblem(message=f"bwrap cannot make a sandbox here: {said}", fix=_fix())


def find_problem_of_brief(spec: TaskSpec, stages: Sequence[StageSpec]) -> SandboxProblem | None:
    """Why the acceptance commands cannot run here that only a brief among these stages proposes. They run in
    a sandbox, even if the task has none."""
    if spec.sandbox is not None or not acceptance.needs_brief(spec, stages):
        return None
    problem = find_problem()
    if problem is None:
        return None
    return SandboxProblem(
        message="only the brief would name acceptance commands, which run in a sandbox because an agent "
        f"wrote them, and {problem.message}",
        fix=f"name commands in acceptance.commands, which run without a sandbox; or {problem.fix}",
    )


def _try(bwrap: str, *, network: bool) -> str | None:
    """Make a sandbox; what bwrap said if that failed."""
    argv = [bwrap, "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--cap-drop", "ALL"]
    argv += [] if network else ["--unshare-net"]
    argv += ["--disable-userns"] if can_forbid_nesting(bwrap) else []
    argv += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--", "/bin/true"]
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=_TRIAL_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0:
        return None
    words = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return words[-1].removeprefix("bwrap: ") if words else f"exit status {done.returncode}"


def _fix() -> str:
    """The likely reason, from what the kernel and the system say."""
    if _value(_CLONE) == "0":
        return "allow user namespaces: 'sudo sysctl kernel.unprivileged_userns_clone=1'"
    if _value(_MOST) == "0":
        return "allow user namespaces: 'sudo sysctl user.max_user_namespaces=15000'"
    if _value(_APPARMOR) == "1":
        return _PROFILE
    if is_container():
        return (
            "a container must allow user namespaces and a new /proc: with docker, "
            "'--security-opt seccomp=unconfined --security-opt apparmor=unconfined "
            "--security-opt systempaths=unconfined'"
        )
    return "allow unprivileged user namespaces on this machine, or install bubblewrap setuid root"


def is_container() -> bool:
    """Whether this looks like a container."""
    return any(os.path.exists(path) for path in ("/.dockerenv", "/run/.containerenv"))


def _value(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""
