"""Rows 14 and 15: what people look at, with a thousand live tasks: `holdfast top` and `holdfast serve`."""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import pty
import select
import shutil
import signal
import struct
import termios
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from benchmarks.place import Holdfast, Place, pause, program
from benchmarks.stats import median, percentile
from benchmarks.table import Baseline, Line
from holdfast.packet import load
from holdfast.store import atomic
from holdfast.store.layout import Home
from tests.support.waiting import eventually
from tests.support.web import Served, serving

if TYPE_CHECKING:
    from playwright.sync_api import Page

_MANIFEST = os.path.join(os.path.dirname(__file__), "../../docs/contracts/fixtures/manifest.running.json")
_TICKS = os.sysconf("SC_CLK_TCK")
#: Changes of tasks per second.
_RATE = 20
_SIZE = (40, 140)
_LAST = "the last line of the log"


# ── holdfast top ──


def top(place: Place) -> list[Line]:
    """On a terminal of its own: CPU while nothing happens and while tasks change, and keys."""
    count, while_s = place.pick(1000, 100), float(place.pick(20, 5))
    holdfast = Holdfast(place)
    home = Home(holdfast.home)
    _fill(home, count)
    listed_ms = _listing_ms(holdfast)
    with _terminal(holdfast) as screen:
        screen.until(b"task-0", 60)
        screen.settle()
        place.progress(f"top: idle for {while_s:g} s")
        idle = _cpu_percent(screen.pid, lambda: pause(while_s))
        place.progress(f"top: {_RATE} changes a second for {while_s:g} s")
        busy = _cpu_percent(screen.pid, lambda: _change(home, count, while_s))
        screen.settle()
        keys_ms = [screen.key_ms(key) for key in itertools.islice(itertools.cycle(b"jk"), place.pick(60, 10))]
    once_a_second = Baseline(name="'holdfast ls' once a second", value=listed_ms / 10)
    return [
        Line(
            row=14,
            what=f"top, {count} live tasks: CPU while nothing happens",
            value=idle,
            unit="% of a core",
            baseline=once_a_second,
            target="≤ 1 %",
            met=idle <= 1,
        ),
        Line(
            row=14,
            what=f"top, {count} live tasks: CPU with {_RATE} changes a second",
            value=busy,
            unit="% of a core",
            baseline=once_a_second,
            target="≤ 3 %",
            met=busy <= 3,
        ),
        Line(
            row=14,
            what=f"top, {count} live tasks: key → screen, p95 of {len(keys_ms)}",
            value=percentile(keys_ms, 95),
            unit="ms",
            target="≤ 100 ms",
            met=percentile(keys_ms, 95) <= 100,
        ),
    ]


class _Screen:
    """The other end of a terminal: everything that is drawn is read, as a terminal does."""

    def __init__(self, pid: int, descriptor: int) -> None:
        self.pid, self._descriptor = pid, descriptor
        self._seen = b""
        self._drawn_ns = time.monotonic_ns()
        self._lock = threading.Lock()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self._descriptor, 65536)
            except OSError:
                return
            if not data:
                return
            with self._lock:
                self._seen = (self._seen + data)[-200_000:]
                self._drawn_ns = time.monotonic_ns()

    def until(self, text: bytes, within_s: float) -> None:
        eventually(lambda: text in self._seen, within_s, f"{text!r} is on the screen")

    def settle(self) -> None:
        """Let it draw what has changed; after that, it draws only its clock."""
        pause(3.0)

    def key_ms(self, key: int) -> float:
        """The time from a key to the next bytes for the screen."""
        pause(0.15)
        with self._lock:
            began = time.monotonic_ns()
            self._drawn_ns = 0
        os.write(self._descriptor, bytes([key]))
        eventually(lambda: self._drawn_ns, 10, "it draws")
        return (self._drawn_ns - began) / 1e6


@contextmanager
def _terminal(holdfast: Holdfast) -> Iterator[_Screen]:
    pid, descriptor = pty.fork()
    if pid == 0:
        env = {**holdfast.env, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
        os.execve(program(), [program(), "top"], env)
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", *_SIZE, 0, 0))
    try:
        yield _Screen(pid, descriptor)
    finally:
        os.kill(pid, signal.SIGTERM)
        if not select.select([pidfd := os.pidfd_open(pid)], [], [], 10)[0]:
            os.kill(pid, signal.SIGKILL)
        os.close(pidfd)
        os.waitpid(pid, 0)
        os.close(descriptor)


def _listing_ms(holdfast: Holdfast) -> float:
    """CPU time of one `holdfast ls`."""
    before = os.times()
    for _ in range(5):
        holdfast.call("ls")
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return used * 1000 / 5


# ── holdfast serve ──


def serve(place: Place) -> list[Line]:
    """With a real Chromium, if there is one: board, a change, a long log; the server's CPU and memory."""
    count, log_bytes = place.pick(1000, 100), place.pick(1_000_000_000, 50_000_000)
    while_s = float(place.pick(20, 5))
    holdfast = Holdfast(place)
    home = Home(holdfast.home)
    task = os.path.basename(holdfast.run("--id", "long", "--", "sh", "-c", "echo hi"))
    eventually(lambda: os.path.exists(home.packet(task).task_done), 30, "the task ends")
    _write_log(home.packet(task).output_log, log_bytes)
    _fill(home, count)
    with serving(env=holdfast.env) as served:
        board_ms, seen_ms, opened_ms = _in_browser(place, served, home, count, task)
        # One page stays connected.
        with served.stream("/api/stream") as messages:
            next(messages)
            pause(3.0)
            place.progress(f"serve: idle for {while_s:g} s")
            idle = _cpu_percent(served.process.pid, lambda: pause(while_s))
        memory = _memory_mb(served.process.pid)
    return [
        Line(
            row=15,
            what=f"serve: board of {count} tasks, address → all rows",
            value=median(board_ms),
            unit="ms",
            target="≤ 1000 ms",
            met=median(board_ms) <= 1000,
        ),
        Line(
            row=15,
            what=f"serve: manifest written → in the row of the board, p95 of {len(seen_ms)}",
            value=percentile(seen_ms, 95),
            unit="ms",
            target="≤ 300 ms",
            met=percentile(seen_ms, 95) <= 300,
        ),
        Line(
            row=15,
            what=f"serve: log of {log_bytes / 1e6:g} MB, address → its last line",
            value=median(opened_ms),
            unit="ms",
            target="≤ 500 ms",
            met=median(opened_ms) <= 500,
        ),
        Line(
            row=15,
            what="serve: memory, after all this",
            value=memory,
            unit="MB",
            target="≤ 60 MB",
            met=memory <= 60,
        ),
        Line(
            row=15,
            what=f"serve: CPU with a connected page and {count} live tasks, while nothing happens",
            value=idle,
            unit="% of a core",
            target="≤ 0.5 %",
            met=idle <= 0.5,
        ),
    ]


def _in_browser(
    place: Place, served: Served, home: Home, count: int, task: str
) -> tuple[list[float], list[float], list[float]]:
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium")
    if chromium is None:
        raise RuntimeError("row 15 needs chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        try:
            page = browser.new_page(viewport={"width": 1300, "height": 900})
            page.goto(served.address)
            page.wait_for_selector("table.tasks tbody tr")
            place.progress("serve: board")
            board = [_loaded_ms(page, f"{served.base}/", _ROWS, count) for _ in range(place.pick(7, 3))]
            place.progress("serve: changes")
            seen = [_seen_ms(page, home, number % count) for number in range(place.pick(60, 8))]
            place.progress("serve: the log")
            address = f"{served.base}/task/{task}"
            opened = [_loaded_ms(page, address, _LINE, _LAST) for _ in range(place.pick(7, 3))]
            # For the measurement that follows: a page lets another one in.
            served.token = page.evaluate(_TOKEN)
            served.enter()
        finally:
            browser.close()
    return board, seen, opened


_TOKEN = """async () => {
  const bearer = sessionStorage.getItem("holdfast.bearer");
  const headers = { Authorization: `Bearer ${bearer}`, "Content-Type": "application/json" };
  return (await (await fetch("/api/token", { method: "POST", headers, body: "{}" })).json()).token;
}"""


_ROWS = "(count) => document.querySelectorAll('table.tasks tbody tr:not(.group)').length >= count"
_LINE = "(text) => [...document.querySelectorAll('.lines .line')].at(-1)?.textContent.includes(text)"


def _loaded_ms(page: Page, address: str, holds: str, given: Any) -> float:
    """From the address to what is asked for, in the browser's own clock."""
    page.goto("about:blank")
    began = time.monotonic_ns()
    page.goto(address, wait_until="commit")
    page.wait_for_function(holds, arg=given, polling="raf", timeout=60_000)
    return (time.monotonic_ns() - began) / 1e6


_SEEN = """([id, text]) => new Promise((resolve) => {
  const row = [...document.querySelectorAll("table.tasks tr")].find((each) => each.textContent.includes(id));
  const observer = new MutationObserver(() => {
    if (row.textContent.includes(text)) { observer.disconnect(); resolve(Date.now()); }
  });
  observer.observe(row, { subtree: true, childList: true, characterData: true });
})"""


def _seen_ms(page: Page, home: Home, number: int) -> float:
    """From a written manifest to the text in its row; both clocks are that of the machine."""
    text = f"seen-{time.monotonic_ns()}"
    manifest = {**load.read_manifest(home.packet(_task(number))), "task_name": text}
    written: list[float] = []

    def write() -> None:
        written.append(time.time() * 1000)
        _write(home, manifest)

    timer = threading.Timer(0.1, write)
    timer.start()
    seen = page.evaluate(_SEEN, [_task(number), text])
    timer.join()
    return seen - written[0]


def _write_log(path: str, size: int) -> None:
    line = b"a line of a long log, as an agent prints them while it works on something\n"
    block = line * (8_000_000 // len(line))
    with open(path, "wb") as file:
        for _ in range(size // len(block)):
            file.write(block)
        file.write(f"{_LAST}\n".encode())


# ── both ──


def _task(number: int) -> str:
    return f"task-{number:05d}"


def _fill(home: Home, count: int) -> None:
    """Live tasks, as files."""
    with open(_MANIFEST, encoding="utf-8") as file:
        manifest = json.load(file)
    for number in range(count):
        os.makedirs(os.path.join(home.tasks, _task(number), "done"), mode=0o700)
        _write(home, {**manifest, "task_id": _task(number), "task_name": f"task {number}"})


def _write(home: Home, manifest: dict[str, Any]) -> None:
    """As a runner writes it."""
    atomic.write_json(home.manifest_of(str(manifest["task_id"])), manifest, durable=False)


def _change(home: Home, count: int, while_s: float) -> None:
    """Tasks change, at the rate."""
    began = time.monotonic()
    for number in itertools.count():
        due = began + number / _RATE
        if due > began + while_s:
            return
        pause(max(0.0, due - time.monotonic()))
        manifest = load.read_manifest(home.packet(_task(number * 7 % count)))
        usage = {"input_tokens": number * 100, "output_tokens": number, "cost_usd": number / 100}
        _write(home, {**manifest, "usage": usage, "last_line": f"line {number}"})


def _cpu_percent(pid: int, run: Callable[[], object]) -> float:
    """CPU time of a process while something runs, in percent of a core."""
    before, began = _cpu_s(pid), time.monotonic()
    run()
    return (_cpu_s(pid) - before) * 100 / (time.monotonic() - began)


def _cpu_s(pid: int) -> float:
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _memory_mb(pid: int) -> float:
    """Its own memory: without the pages of files, which others share."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        lines = dict(line.split(":", 1) for line in file)
    return int(lines["VmRSS"].split()[0]) / 1000
