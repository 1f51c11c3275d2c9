"""`python -m tests.screenshots`: write docs/images/{board,flight-recorder,top}.png."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sys
import tempfile
from typing import TYPE_CHECKING

from holdfast.store.layout import Home
from tests.screenshots import tasks
from tests.support import browser, processes
from tests.support.pages import ROOT
from tests.support.tasks import holdfast, workspace
from tests.support.waiting import eventually
from tests.support.web import serving

if TYPE_CHECKING:
    from playwright.sync_api import Page

_IMAGES = os.path.join(ROOT, "docs", "images")
#: A picture is loaded with every look at the README.
_MOST_BYTES = 200_000
_WIDTH = 1200


def main() -> int:
    """Make a home, its tasks and the pictures, and remove the home."""
    root = tempfile.mkdtemp(prefix="hf-")
    try:
        _environment(root)
        workspace()
        tasks.make()
        os.makedirs(_IMAGES, exist_ok=True)
        grid = asyncio.run(_top())
        with serving() as served, browser.browsing(served, "screenshots") as page:
            _board(page)
            _recorder(page, served.base)
            _terminal(page, grid)
    finally:
        holdfast("down", "--now")
        eventually(lambda: _are_gone(root), 30, "its processes end")
        shutil.rmtree(root, ignore_errors=True)
    for name in sorted(os.listdir(_IMAGES)):
        size = os.path.getsize(os.path.join(_IMAGES, name))
        print(f"docs/images/{name}  {size // 1000} kB")
        assert size < _MOST_BYTES, f"{name} is too large"
    return 0


def _environment(root: str) -> None:
    """A home of its own: nothing of the user's is in the pictures, or touched."""
    for name in [name for name in os.environ if name.startswith(("HOLDFAST_", "MONITOR_", "XDG_"))]:
        del os.environ[name]
    for variable, name in (("HOME", "user"), ("HOLDFAST_HOME", "home"), ("TMPDIR", "tmp")):
        path = os.path.join(root, name)
        os.mkdir(path, 0o700)
        os.environ[variable] = path


def _are_gone(root: str) -> bool:
    processes.kill(processes.marked(root))
    return not processes.marked(root)


def _board(page: Page) -> None:
    page.set_viewport_size({"width": _WIDTH, "height": 920})
    page.locator("tr", has_text="Which table should I migrate").wait_for()
    _save(page, "board")


def _recorder(page: Page, base: str) -> None:
    page.goto(f"{base}/task/{tasks.SHOWN}")
    page.locator(".lines .line").first.wait_for()
    page.set_viewport_size({"width": _WIDTH, "height": 700})
    _save(page, "flight-recorder")


async def _top() -> str:
    """The terminal view as SVG."""
    from holdfast.views.tui.app import TopApp

    app = TopApp(Home(os.environ["HOLDFAST_HOME"]))
    async with app.run_test(size=(118, 24)) as pilot:
        ends = asyncio.get_running_loop().time() + 20
        while "needs&#160;you&#160;(" not in (grid := app.export_screenshot(title="holdfast top")):
            assert asyncio.get_running_loop().time() < ends, "no task is shown"
            await pilot.pause(0.05)
        await pilot.press("j")
        await pilot.pause(0.3)
        grid = app.export_screenshot(title="holdfast top")
    # Without the fonts that a browser would have to fetch.
    return re.sub(r"@font-face \{[^}]*\}", "", grid)


def _terminal(page: Page, grid: str) -> None:
    path = os.path.join(os.environ["TMPDIR"], "top.svg")
    with open(path, "w", encoding="utf-8") as file:
        file.write(grid)
    page.goto(f"file://{path}")
    box = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', grid)
    assert box is not None
    height = round(_WIDTH * float(box[2]) / float(box[1]))
    page.set_viewport_size({"width": _WIDTH, "height": height})
    _save(page, "top")


def _save(page: Page, name: str) -> None:
    page.screenshot(path=os.path.join(_IMAGES, f"{name}.png"), animations="disabled")


sys.exit(main())
