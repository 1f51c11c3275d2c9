"""The files of the pages: a fixed list, read once at the start. No path of a request reaches the disk."""

from __future__ import annotations

import base64
import os
from hashlib import sha256

from holdfast import files
from holdfast.model.record import Record
from holdfast.views.web import module_imports

_FOLDER = os.path.join(os.path.dirname(__file__), "static")
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}


class StaticFile(Record):
    """One file."""

    media_type: str
    data: bytes


#: The pages, by their address (or how it begins), and the module of each.
_PAGES = {
    "/": "/board.js",
    "/task/": "/task.js",
    "/new": "/new_task.js",
    "/queue": "/queue.js",
    "/metrics": "/metrics.js",
}


def load() -> dict[str, StaticFile]:
    """All files, by the path of their address."""
    found: dict[str, StaticFile] = {}
    for folder, _, names in os.walk(_FOLDER):
        for name in names:
            media_type = _TYPES.get(os.path.splitext(name)[1])
            if media_type is not None:
                path = os.path.join(folder, name)
                address = f"/{os.path.relpath(path, _FOLDER)}"
                # A package may be installed as links.
                found[address] = StaticFile(media_type=media_type, data=files.read(path, follow=True))
    index = found.pop("/index.html")
    for address, module in _PAGES.items():
        found[address] = StaticFile(media_type=index.media_type, data=_preloading(index.data, module, found))
    return found


def _preloading(page: bytes, module: str, found: dict[str, StaticFile]) -> bytes:
    """The page, with its modules named: a browser would find them only one after the other."""
    sources = {path: file.data.decode() for path, file in found.items() if path.endswith(".js")}
    names = module_imports.import_map(page)
    paths = dict.fromkeys(
        path for entry in ("/main.js", module) for path in module_imports.needed(entry, sources, names)
    )
    links = "\n".join(f'<link rel="modulepreload" href="{path}">' for path in paths)
    return page.replace(b"<!-- modules -->", links.encode())


def script_hashes(page: bytes) -> list[str]:
    """The hashes of the scripts inside a page: its import map."""
    hashes: list[str] = []
    for part in page.split(b"<script")[1:]:
        attributes, _, rest = part.partition(b">")
        if b"src=" not in attributes:
            digest = sha256(rest.partition(b"</script>")[0]).digest()
            hashes.append(f"sha256-{base64.b64encode(digest).decode()}")
    return hashes
