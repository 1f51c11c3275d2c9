"""ES modules as one script: a policy can allow it by its hash, and a page from a file loads no module.

Only what the modules of the pages use is understood: static imports and exports of names, no cycles, no
`await` outside functions. Everything else raises ValueError; a test bundles the real ones.
"""

from __future__ import annotations

import re

from holdfast.views.web.module_imports import BEGIN, EXPORT_LIST, IMPORT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_EXPORT_DEFAULT = re.compile(BEGIN + r"export\s+default\s+", re.MULTILINE)
_EXPORT = re.compile(
    BEGIN + r"export\s+(?P<kind>(?:async\s+)?function\*?|class|const|let|var)\s+(?P<name>[\w$]+)",
    re.MULTILINE,
)
_LEFT = re.compile(BEGIN + r"(?:import|export)(?:\s|[{*\"'])[^\n]{0,60}", re.MULTILINE)
#: What would end the script, or hide its end, inside HTML. In texts and patterns of JavaScript it can be
#: written in another way, and elsewhere it does not occur.
_MARKUP = re.compile(r"<(?=!--|/?script)", re.IGNORECASE)

_LOADER = """"use strict";
const modules = {}, loaded = {};
function load(name) {
  if (!(name in loaded)) { loaded[name] = {}; modules[name](loaded[name]); }
  return loaded[name];
}
"""


def bundle(entry: str, sources: Mapping[str, str], names: Mapping[str, str]) -> str:
    """A script that runs the module `entry`. `names` are those of an import map."""
    done: dict[str, str] = {}
    _add(entry, sources, names, done=done, above=())
    body = "".join(done.values())
    script = f"(() => {{\n{_LOADER}{body}load({_quoted(entry)});\n}})();\n"
    return _MARKUP.sub(r"\\x3c", script)


def _add(
    path: str,
    sources: Mapping[str, str],
    names: Mapping[str, str],
    *,
    done: dict[str, str],
    above: tuple[str, ...],
) -> None:
    """Add a module, after all that it imports."""
    if path in done:
        return
    if path in above or path not in sources:
        what = "imports itself" if path in above else "is not there"
        raise ValueError(f"module {path} {what}: {' → '.join((*above, path))}")
    text, needed = _translated(sources[path], names)
    for each in needed:
        _add(each, sources, names, done=done, above=(*above, path))
    done[path] = f"modules[{_quoted(path)}] = (exported) => {{\n{text}\n}};\n"


def _translated(source: str, names: Mapping[str, str]) -> tuple[str, list[str]]:
    """A module as the body of a function, and the paths that it imports."""
    needed: list[str] = []
    exports: list[str] = []

    def loaded(name: str) -> str:
        path = names.get(name, name)
        needed.append(path)
        return f"load({_quoted(path)})"

    def take(match: re.Match[str]) -> str:
        return _import(match["names"] or "", loaded(match["module"]))

    def give_list(match: re.Match[str]) -> str:
        of = f"{loaded(match['module'])}." if match["module"] else ""
        for own, public in _pairs(match["names"]):
            exports.append(_getter(public, of + own))
        return ""

    def give(match: re.Match[str]) -> str:
        exports.append(_getter(match["name"], match["name"]))
        return f"{match['kind']} {match['name']}"

    text = IMPORT.sub(take, source)
    text = EXPORT_LIST.sub(give_list, text)
    text = _EXPORT_DEFAULT.sub("exported.default = ", text)
    text = _EXPORT.sub(give, text)
    if (left := _LEFT.search(text)) is not None:
        raise ValueError(f"cannot bundle: {left.group().strip()}")
    # First: functions and classes are known by the time that a getter is called.
    return "".join(exports) + text, needed


def _import(names: str, source: str) -> str:
    default, _, rest = names.partition("{")
    default = default.strip().rstrip(",").strip()
    if default.startswith("*"):
        return f"const {default.partition(' as ')[2].strip()} = {source};"
    wanted = [f"{own}: {local}" for own, local in _pairs(rest.rpartition("}")[0])]
    if default:
        wanted.insert(0, f"default: {default}")
    return f"const {{ {', '.join(wanted)} }} = {source};" if wanted else f"{source};"


def _pairs(names: str) -> list[tuple[str, str]]:
    """`a as b, c` as pairs."""
    found: list[tuple[str, str]] = []
    for each in filter(None, (part.strip() for part in names.split(","))):
        own, _, other = each.partition(" as ")
        found.append((own.strip(), (other or own).strip()))
    return found


def _getter(name: str, value: str) -> str:
    return f"Object.defineProperty(exported, {_quoted(name)}, {{ get: () => {value}, enumerable: true }});\n"


def _quoted(name: str) -> str:
    if re.fullmatch(r"[\w$@./-]+", name) is None:
        raise ValueError(f"not the name of a module: {name!r}")
    return f'"{name}"'
