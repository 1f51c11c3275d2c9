"""What the ES modules of the pages import."""

from __future__ import annotations

import json
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

#: Where a statement can begin: minified modules have several in a line.
BEGIN = r"(?:^|(?<=[;}\n]))[ \t]*"
IMPORT = re.compile(
    BEGIN + r"import\s*(?P<names>[\w$*{][^;\"'`()]*?)?\s*(?:from\s*)?([\"'])(?P<module>[^\"'\n]+)\2;?",
    re.MULTILINE,
)
EXPORT_LIST = re.compile(
    BEGIN + r"export\s*\{(?P<names>[^{}]*)\}(?:\s*from\s*([\"'])(?P<module>[^\"'\n]+)\2)?;?", re.MULTILINE
)


def import_map(page: bytes) -> dict[str, str]:
    """The paths of modules that are imported by a name."""
    found = re.search(rb'<script type="importmap">(.*?)</script>', page, re.DOTALL)
    return json.loads(found[1])["imports"] if found is not None else {}


def needed(entry: str, sources: Mapping[str, str], names: Mapping[str, str]) -> list[str]:
    """The paths of a module and of all that it imports, directly or not; not what it loads later."""
    found: dict[str, None] = {entry: None}
    todo = [entry]
    while todo:
        source = sources[todo.pop()]
        for match in (*IMPORT.finditer(source), *EXPORT_LIST.finditer(source)):
            path = names.get(match["module"] or "", match["module"])
            if path and path not in found:
                found[path] = None
                todo.append(path)
    return list(found)
