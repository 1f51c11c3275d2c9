"""A real Chromium for a test. Without one, the test is skipped; in CI it fails."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.support import tools
from tests.support.web import Served

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

#: Where pictures of failed tests are kept.
_PICTURES = os.path.join(
    os.path.dirname(os.path.dirname(os.path.dirname(__file__))), ".pytest_cache", "pictures"
)
WITHIN_MS = 40_000  # real processes and a browser, on a busy machine


def program() -> str:
    """The program of the browser."""
    tools.need("chromium")
    try:
        import playwright  # noqa: F401
    except ImportError:
        tools.give_up("needs playwright (make setup)")
    return shutil.which("chromium") or ""


@contextmanager
def browsing(served: Served, name: str, *, relay: int | None = None) -> Iterator[Page]:
    """A page of the server, let in by the printed address. If the test fails, a picture is kept.

    Fails if the page has an error, or does what its policy forbids. `relay`: the browser reaches the server
    through this port.
    """
    rules = () if relay is None else (f"--host-resolver-rules=MAP {served.host} 127.0.0.1:{relay}",)
    with browser_context(name, *rules) as context:
        page = context.new_page()
        page.goto(served.address)
        page.wait_for_selector("main h1", timeout=WITHIN_MS)
        yield page


@contextmanager
def from_file(path: str, name: str, query: str = "") -> Iterator[tuple[Page, list[str]]]:
    """A page from a file, and the addresses that it requests: the list grows. Fails as `browsing` does."""
    with browser_context(name) as context:
        requested: list[str] = []
        context.on("request", lambda request: requested.append(request.url))
        page = context.new_page()
        page.goto(f"file://{path}{query}")
        page.wait_for_selector("main h1", timeout=WITHIN_MS)
        yield page, requested


@contextmanager
def browser_context(name: str, *arguments: str) -> Iterator[BrowserContext]:
    chromium = program()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu", *arguments]
        )
        context = browser.new_context(viewport={"width": 1300, "height": 900})
        context.set_default_timeout(WITHIN_MS)
        problems: list[str] = []

        def watch(page: Page) -> None:
            page.on("pageerror", lambda error: problems.append(f"error: {error}"))
            page.on("dialog", lambda found: problems.append(f"a script ran: {found.message}"))
            page.on(
                "console",
                lambda found: problems.append(found.text) if "Content Security" in found.text else None,
            )

        context.on("page", watch)
        try:
            yield context
            assert problems == []
        except BaseException:
            os.makedirs(_PICTURES, exist_ok=True)
            for number, page in enumerate(context.pages):
                path = os.path.join(_PICTURES, f"{name}-{number}.png")
                page.screenshot(path=path, full_page=True)
                print(f"picture: {path}")
            raise
        finally:
            browser.close()
