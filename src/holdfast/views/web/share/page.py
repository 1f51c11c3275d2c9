"""One HTML file with styles, script and data in it. It requests nothing, and its policy forbids it."""

from __future__ import annotations

import base64
import html
import os
import re
from hashlib import sha256

from holdfast import files
from holdfast.views.web import module_imports, static_files
from holdfast.views.web.share import gather
from holdfast.views.web.share.bundle import bundle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.store.layout import Home, Packet

_FOLDER = os.path.join(os.path.dirname(__file__), "static")
_ENTRY = "/share.js"

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="referrer" content="no-referrer">
<meta http-equiv="x-dns-prefetch-control" content="off">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<link rel="icon" href="data:image/svg+xml;base64,{icon}">
<style>{style}</style>
</head>
<body>
{comment}<div id="app"><p class="loading">Loading…</p></div>
<noscript>This page needs JavaScript.</noscript>
<script type="application/json" id="data">"""
_END = """</script>
<script>{script}</script>
</body>
</html>
"""


def write(home: Home, packet: Packet) -> tuple[bytes, tuple[str, ...]]:
    """The file about a task, and what was left out of it."""
    static = static_files.load()
    script, style = _script(static), _style(static)
    fixed = len(script.encode()) + len(style.encode()) + len(_PAGE) + 10_000
    shared = gather.gather(home, packet, room=gather.MAX_BYTES - fixed)
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src '{_hash(script)}'",
            f"style-src '{_hash(style)}'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
    )
    # For those who read the file itself. Two hyphens would end the comment.
    told = "\n".join(shared.left_out).replace("-", "‐").replace(">", "›").replace("<", "‹")
    head = _PAGE.format(
        policy=html.escape(policy),
        title=html.escape(f"{shared.title} – holdfast", quote=True),
        icon=base64.b64encode(static["/icon.svg"].data).decode(),
        style=style,
        comment=f"<!-- Left out of this file:\n{told}\n-->\n" if shared.left_out else "",
    )
    end = _END.format(script=script)
    return head.encode("utf-8", "replace") + shared.data + end.encode(), shared.left_out


def _script(static: dict[str, static_files.StaticFile]) -> str:
    sources = {path: file.data.decode() for path, file in static.items() if path.endswith(".js")}
    # Modules of the same name stand for those of the server: the page asks the file instead.
    for name in os.listdir(_FOLDER):
        if name.endswith(".js"):
            sources[f"/{name}"] = _own(name)
    names = module_imports.import_map(static["/"].data)
    return bundle(_ENTRY, sources, names)


def _style(static: dict[str, static_files.StaticFile]) -> str:
    page = static["/"].data.decode()
    paths = re.findall(r'<link rel="stylesheet" href="([^"]+)"', page)
    return "\n".join([static[path].data.decode() for path in paths] + [_own("share.css")])


def _own(name: str) -> str:
    # A package may be installed as links.
    return files.read(os.path.join(_FOLDER, name), follow=True).decode()


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}"
