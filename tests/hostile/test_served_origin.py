"""What an earlier server on the same port left in the browser does not reach the pages of `serve`."""

from __future__ import annotations

import http.server
import threading
from typing import Any

import pytest

from tests.support.browser import WITHIN_MS, browser_context
from tests.support.web import serving

_PAGE = b"<script>navigator.serviceWorker.register('/worker.js')</script>"
_WORKER = b"""
addEventListener("install", () => skipWaiting());
addEventListener("activate", event => event.waitUntil(clients.claim()));
addEventListener("fetch", event => event.respondWith(new Response(
    "<h1 id=planted>planted</h1>", {headers: {"content-type": "text/html"}})));
"""


class _Agents(http.server.BaseHTTPRequestHandler):
    """A server of an agent, which leaves a service worker."""

    def do_GET(self) -> None:
        is_worker = self.path == "/worker.js"
        self.send_response(200)
        self.send_header("content-type", "text/javascript" if is_worker else "text/html")
        self.end_headers()
        self.wfile.write(_WORKER if is_worker else _PAGE)

    def log_message(self, *_: Any) -> None:
        pass


def _leave_workers(context: Any) -> int:
    """Returns the port, which is free again."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Agents)
    port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        for name in ("127.0.0.1", "localhost"):
            page = context.new_page()
            page.goto(f"http://{name}:{port}/")
            page.evaluate("navigator.serviceWorker.ready.then(() => 1)")
            page.close()
    finally:
        server.shutdown()
        server.server_close()
        thread.join(20)
    return port


@pytest.mark.usefixtures("home")
def test_a_service_worker_of_an_earlier_server() -> None:
    with browser_context("origin") as context:
        port = _leave_workers(context)
        with serving("--port", str(port)) as served:
            page = context.new_page()
            page.goto(served.address)
            page.wait_for_selector("main h1", timeout=WITHIN_MS)
            assert page.query_selector("#planted") is None
            assert page.evaluate("navigator.serviceWorker.controller === null")
            # Nor is a tab that is still open there answered.
            status, _, _ = served.ask("GET", "/", Host=f"127.0.0.1:{port}", Sec_Fetch_Site="none")
            assert status == 421
            page.close()


@pytest.mark.usefixtures("home")
def test_every_start_has_a_name_of_its_own() -> None:
    with serving() as first, serving() as second:
        names = {served.host.partition(":")[0] for served in (first, second)}
        assert len(names) == 2
        assert all(name.endswith(".localhost") for name in names)
        # A program that is no browser reaches it by its address.
        first.enter()
        for name in ("127.0.0.1", "localhost"):
            host = f"{name}:{first.port}"
            assert first.ask("GET", "/api/tasks", Host=host, Sec_Fetch_Site=None)[0] == 200
            assert first.ask("GET", "/api/tasks", Host=host)[0] == 421
            assert first.ask("GET", "/", Host=host, Sec_Fetch_Site=None, Sec_Fetch_Mode="cors")[0] == 421


@pytest.mark.usefixtures("home")
def test_an_address_that_the_user_names_is_the_origin() -> None:
    """For browsers that do not know names below localhost."""
    with serving("--address", "127.0.0.1") as served:
        assert served.host == f"127.0.0.1:{served.port}"
        assert served.ask("GET", "/", Sec_Fetch_Site="none")[0] == 200
