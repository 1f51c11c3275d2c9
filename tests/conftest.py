"""Fixtures of every test: its own home, a clean environment, and nothing left behind."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator

import hypothesis
import pytest

from tests.support import processes
from tests.support.tasks import workspace
from tests.support.waiting import eventually

# Read once, before a test sets TMPDIR to its own directory.
_TMP = "/tmp" if os.path.isdir("/tmp") else tempfile.gettempdir()
tempfile.gettempdir()

#: How long processes of a test may take to exit after its last line.
GRACE_S = 5.0

# Variables of the caller's own holdfast, or of a task in which the tests run.
_FOREIGN = ("HOLDFAST_", "MONITOR_", "XDG_")
_FOREIGN_NAMES = (
    "TASK_TMPDIR",
    "SESSION_ID",
    "INTERRUPT_FILE",
    "HARNESS_SESSION",
    "BD_ACTOR",
    "ITERATION",
    "TMUX",
    "COLUMNS",
)

# Variables of the tests themselves.
_OURS = ("HOLDFAST_TEST_ID", "HOLDFAST_CRASH_FULL", "HOLDFAST_HOSTILE_FULL", "HOLDFAST_KEEP")

hypothesis.settings.register_profile(
    "holdfast",
    deadline=None,  # the machine may be busy; pytest-timeout bounds the whole test
    # New examples are for developers: one that fails says nothing about the change that CI judges.
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("holdfast")


class Place:
    """Directory and id of one test. A process with either of them belongs to the test."""

    def __init__(self) -> None:
        self.id = uuid.uuid4().hex
        self._root: str | None = None

    @property
    def root(self) -> str:
        """A short path, mode 0700, created on first use."""
        if self._root is None:
            self._root = tempfile.mkdtemp(prefix="hf-", dir=_TMP)
        return self._root

    @property
    def marks(self) -> list[str]:
        marks = [f"HOLDFAST_TEST_ID={self.id}"]
        return marks if self._root is None else [*marks, self._root]

    def stop_keepers(self) -> None:
        """End keeper and seed of the test's homes: they outlive their tasks by design."""
        for folder, directories, files in os.walk(self._root or ""):
            if "tasks" not in directories:
                continue
            # One that is just starting has no lock yet; it leaves when it finds the home down.
            with open(os.path.join(folder, "down"), "w", encoding="utf-8"):
                pass
            for name in ("keeper.lock", "seed.lock"):
                if name in files:
                    processes.stop_owner(os.path.join(folder, name))

    def remove(self) -> None:
        if self._root is None or os.environ.get("HOLDFAST_KEEP"):
            return
        shutil.rmtree(self._root, onerror=_make_writable_and_retry)


@pytest.fixture(autouse=True)
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """The test's own directory; afterwards, proof that the test left no process behind.

    It is set up first and torn down last, so every other fixture has had its chance to stop what it started.
    """
    place = Place()
    monkeypatch.setenv("HOLDFAST_TEST_ID", place.id)
    is_over = False
    before = {(p.pid, p.start_ticks) for p in processes.descendants()}

    def alive() -> list[processes.Process]:
        place.stop_keepers() if is_over else None
        own = [p for p in processes.descendants() if (p.pid, p.start_ticks) not in before]
        return list({p.pid: p for p in [*own, *processes.marked(*place.marks)]}.values())

    yield place

    is_over = True
    may_leave = request.node.get_closest_marker("leaves_processes") is not None
    left = _settle(alive, 0.0 if may_leave else GRACE_S)
    try:
        if left:
            _kill_all(alive)
    finally:
        place.remove()
    if left and not may_leave:
        listing = "\n".join(f"  {process}" for process in left)
        pytest.fail(
            f"{len(left)} processes were still alive {GRACE_S:g} s after the test:\n{listing}", pytrace=False
        )


@pytest.fixture(autouse=True, scope="session")
def no_settings_of_the_caller(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """For tests without `clean_env`: the settings and notes of whoever runs the tests are not read, nor
    written."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("settings")))
        yield


@pytest.fixture(autouse=True)
def not_a_guest() -> Iterator[None]:
    """The Python API marks its process for good; the tests after it fork as a command does."""
    yield
    if "holdfast.spawn" in sys.modules:
        from holdfast import spawn

        spawn.is_guest = False


@pytest.fixture
def clean_env(place: Place, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Nothing of the caller's holdfast in the environment; HOME and TMPDIR are the test's own. Returns a
    copy."""
    for name in list(os.environ):
        if name in _OURS:
            continue
        if name.startswith(_FOREIGN) or name in _FOREIGN_NAMES:
            monkeypatch.delenv(name)
    # A keeper would restart what a test kills; tests of the keeper remove this variable.
    monkeypatch.setenv("HOLDFAST_KEEPER", "off")
    for name, folder in (("HOME", "user"), ("TMPDIR", "tmp")):
        path = os.path.join(place.root, folder)
        os.mkdir(path, 0o700)
        monkeypatch.setenv(name, path)
    return dict(os.environ)


@pytest.fixture
def home(place: Place, clean_env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> str:
    """An empty HOLDFAST_HOME, mode 0700, set in the environment. Its path is short: sockets live in it."""
    path = os.path.join(place.root, "home")
    os.mkdir(path, 0o700)
    monkeypatch.setenv("HOLDFAST_HOME", path)
    clean_env["HOLDFAST_HOME"] = path
    return path


@pytest.fixture
def with_keeper(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands start a keeper, as they do for a user."""
    monkeypatch.delenv("HOLDFAST_KEEPER")
    workspace()


def _settle(alive, grace_s: float) -> list[processes.Process]:
    """The processes that are still alive after the grace period."""
    give_up_mono = time.monotonic() + grace_s
    while left := alive():
        if time.monotonic() >= give_up_mono:
            break
        time.sleep(0.02)  # noqa: TID251 - a grace period, ended as soon as nothing is left
    return left


def _kill_all(alive) -> None:
    def all_gone() -> bool:
        processes.kill(alive())
        return not alive()

    eventually(all_gone, within_s=10, what="the test's processes die of SIGKILL")


def _make_writable_and_retry(function, path, error) -> None:
    """A test may have made a directory read-only."""
    os.chmod(os.path.dirname(path), 0o700)
    if os.path.isdir(path) and not os.path.islink(path):
        os.chmod(path, 0o700)
        shutil.rmtree(path, ignore_errors=True)
    elif os.path.lexists(path):
        function(path)
