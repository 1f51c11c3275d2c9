"""The JSON Schema of manifest.yaml and its reference page, both made from the table of fields.

`python -m holdfast.pipeline.define.reference --write ROOT` writes them into the tree below ROOT. The schema is for editors: it knows
types, enums and required keys; what depends on the configuration (profiles, models, flags) is left to 'pipeline check'.
"""

from __future__ import annotations

import json
import os
import sys

from holdfast.model.roles import ROLES
from holdfast.pipeline.define import security_lens
from holdfast.pipeline.define.checker import MOST_ITEMS, MOST_TEXT
from holdfast.pipeline.define.intents import INTENTS, OPTIONS
from holdfast.pipeline.define.manifest_fields import FIELDS, Field, tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Schema = dict[str, Any]

ID = "https://holdfast.dev/schemas/manifest.yaml.schema.json"
#: Where the two are, from the root of the project; the schema is shipped in the package as well.
SCHEMAS = ("docs/contracts/schemas/manifest.yaml.schema.json", "src/holdfast/config/manifest.schema.json")
PAGE = "docs/reference/manifest.md"
_TEXT = {"type": "string", "minLength": 1, "maxLength": MOST_TEXT}
_NAME = {"type": "string", "minLength": 1}
_KINDS = {
    "id": "an id",
    "text": "a text",
    "choice": "one of",
    "whole": "a whole number",
    "number": "a number",
    "flag": "true or false",
    "texts": "a list of texts",
    "paths": "a list of paths",
    "patterns": "a list of regular expressions",
    "stages": "a list of stages",
    "agents": "a list of agents",
    "variables": "a list of names",
    "options": "a map",
}


def schema() -> Schema:
    """The JSON Schema."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": ID,
        "title": "manifest.yaml of a task packet",
        **_object(tree()),
    }


def schema_text() -> str:
    """As it is written to a file."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def _object(known: dict[str, Any], path: str = "") -> Schema:
    if "*" in known:
        return {"type": "object", "additionalProperties": _field(known["*"])}
    inner = {
        name: _field(below) if isinstance(below, Field) else _below(below, f"{path}{name}.")
        for name, below in known.items()
    }
    found: Schema = {"type": "object", "additionalProperties": False, "properties": inner}
    required = [name for name, below in known.items() if _is_required(below)]
    return {**found, "required": required} if required else found


def _below(known: dict[str, Any], path: str) -> Schema:
    if path == "routing.pipeline.":
        return _object({**known, "options": {name: _option(name) for name in OPTIONS}}, path)
    return _object(known, path)


def _option(name: str) -> Field:
    option = OPTIONS[name]
    return Field(path=name, kind="choice", choices=option.values, about=option.about)


def _is_required(below: Any) -> bool:
    return below.required if isinstance(below, Field) else any(_is_required(each) for each in below.values())


def _field(field: Field) -> Schema:
    return {"description": field.about, **_value(field)}


def _value(field: Field) -> Schema:
    match field.kind:
        case "id":
            return {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"}
        case "choice":
            return {"enum": list(field.choices)}
        case "whole":
            return {"type": "integer", "minimum": field.least, "maximum": field.most}
        case "number":
            return {"type": "number", "exclusiveMinimum": 0, "maximum": field.most}
        case "flag":
            return {"type": "boolean"}
        case "texts" | "patterns":
            return {"type": "array", "items": _TEXT, "maxItems": MOST_ITEMS}
        case "stages" | "agents" | "variables":
            return {"type": "array", "items": _NAME, "maxItems": MOST_ITEMS, "uniqueItems": True}
        case "paths":
            # Not absolute, no `..`, no `!`: the same as the check.
            inner = {**_TEXT, "pattern": r"^(?![/~!\\])(?!(.*[/\\])?\.\.([/\\]|$)).+$"}
            return {"type": "array", "items": inner, "maxItems": MOST_ITEMS}
        case "options":
            return {
                "type": "object",
                "additionalProperties": {"type": ["string", "number", "boolean", "array"]},
            }
        case _:
            return _TEXT


# ── the page ────────────────────────────────────────────────────────────────

_HEAD = """<!-- Made by `python -m holdfast.pipeline.define.reference --write .`; edit src/holdfast/pipeline/define/manifest_fields.py instead. -->
# manifest.yaml

What a written packet asks for. `holdfast new` writes one with comments, `holdfast pipeline check DIR` tells every problem of it
with its line and path, `holdfast pipeline show DIR` prints what it resolves to, and `holdfast run --packet DIR` runs it.
A key that is not listed here is an error. The same as a [JSON Schema](../contracts/schemas/manifest.yaml.schema.json), for editors:
put `# yaml-language-server: $schema=PATH` on the first line.

A file is at most 256 KiB of UTF-8, without anchors, aliases and tags; keys are not repeated. Words are those of YAML 1.2: `no` and
`12:30` are texts.
"""


def page() -> str:
    """The reference page."""
    parts = [_HEAD, "## Fields\n", _table(FIELDS), _PATHS, _intents(), _options(), _roles(), _FILES]
    return "\n".join(parts)


def _table(fields: tuple[Field, ...]) -> str:
    rows = ["| field | type | required | default | |", "|---|---|---|---|---|"]
    for field in fields:
        default = "" if field.default is None else f"`{_words(field.default)}`"
        required = "yes" if field.required else ""
        rows.append(f"| `{field.path}` | {_kind(field)} | {required} | {default} | {field.about} |")
    return "\n".join(rows) + "\n"


def _kind(field: Field) -> str:
    words = _KINDS[field.kind]
    if field.choices:
        return f"{words} {', '.join(f'`{choice}`' for choice in field.choices)}"
    if field.kind == "whole":
        return f"{words}, {field.least} to {field.most}"
    return f"{words}, above 0, at most {field.most}" if field.kind == "number" else words


def _words(value: object) -> str:
    if value == ():
        return "[]"
    return str(value).lower() if isinstance(value, bool) else str(value)


_PATHS = """## Paths

Paths in `scope` and `security.forbidden_paths` are patterns as in .gitignore, relative to the project. One that is absolute, has a
`..`, or begins with `!` is refused. A name without a slash inside fits at any depth: `a.py` is also `vendor/deep/a.py`; `./a.py` is the one
at the project's top. `[…]` is a set of characters: for a directory that is called `[id]` write
`app/\\[id]/`. A regular expression that does not compile, fits the empty text, or may take for ever (`(\\w+)+`) is refused.
"""


def _intents() -> str:
    rows = ["## Intents\n", "| intent | group | changes code | |", "|---|---|---|---|"]
    for name, intent in INTENTS.items():
        groups = ", ".join((intent.group, *intent.also))
        rows.append(f"| `{name}` | {groups} | {'yes' if intent.changes else 'no'} | {intent.about} |")
    after = (
        "\nAn intent runs the profile of its name. `routing.pipeline.profile` names another one of its group; one that writes is "
        "refused where the intent changes nothing, and one that does not where it does. `design_only` may also choose a profile of "
        "the group `plan`, whose result is what `holdfast new --from-plan` reads. `safe_impl` with the profile `review_fix` has what is "
        "there reviewed side by side, and the findings fixed one after the other.\n"
    )
    return "\n".join(rows) + "\n" + after


def _options() -> str:
    rows = ["## Options\n", "| option | values | groups | |", "|---|---|---|---|"]
    for name, option in OPTIONS.items():
        values = ", ".join(f"`{value}`" for value in option.values)
        rows.append(f"| `{name}` | {values} | {', '.join(option.groups)} | {option.about} |")
    after = (
        "\n`impl_mode` and `review_mode` say what a profile is. In a manifest they must agree with the intent (or the profile that it "
        "names); anything else is an error. `review_only` with `review_mode: codex_only` runs the profile `codex_only`.\n"
    )
    return "\n".join(rows) + "\n" + after + _lens()


def _lens() -> str:
    words, beginnings = (", ".join(each) for each in (security_lens.WORDS, security_lens.BEGINNINGS))
    return (
        "\n`security_lens` adds a stage of the role `security_review` beside the last review, played by the agent of the first one; a "
        "profile that names such a stage has its own. `off` leaves it out; without the option a profile runs as it is written. `auto` "
        "looks for words in the goal, the allowed paths, the criteria, the request, and the paths of attached diffs, when the packet "
        f"is read: {words}; and for words that begin with {beginnings}.\n"
    )


def _roles() -> str:
    rows = ["## Stages and roles\n", "A stage is `<agent>_<role>`; any agent can play any role.\n"]
    rows += ["| role | models of | writes | |", "|---|---|---|---|"]
    for name, role in ROLES.items():
        writes = "yes" if role.writes else "where the profile says so" if role.may_write else "no"
        rows.append(f"| `{name}` | `{role.purpose}` | {writes} | {role.about} |")
    return "\n".join(rows) + "\n"


_FILES = """## Files of agents and pipelines

What is not in the manifest comes from `agents/*.yaml` and `pipelines/*.yaml`: those of the package, over them the user's
(`~/.config/holdfast/`), over them the project's (`.holdfast/`). They are checked in the same way.

```yaml
# .holdfast/agents/claude.yaml
version: 1
agent: claude
default_model: opus
allowed_models: [opus, sonnet]      # or any
efforts: []
defaults: {timeout_sec: 900, timeout_mode: enforce}
purpose_models: {review: opus}      # impl, review, verify, plan, one_shot
options: {permission_mode: acceptEdits}
```

```yaml
# .holdfast/pipelines/ours.yaml
version: 1
pipeline: impl
profiles:
  ours:
    stages:
      - gemini_brief
      - claude_impl
      - {parallel: [gemini_review, codex_review], timeout_sec: 900}
      - copilot_review_consolidate
    flags: {enable_brief: true}
    options: {impl_mode: safe, timeout_mode: enforce}
    stage_models: {claude_impl: opus}
    stage_efforts: {codex_review: high}
    stage_options: {}
    writes: []                      # stages of roles that may write, and here do
    approval: [claude_impl]
```

A file that gives a profile its `stages` defines the profile anew; one without them changes only the keys that it names. Elsewhere
maps are merged and lists replaced. A stage that writes has its wave to itself, and may edit its workspace without `--yolo`
([decision 0030](../decisions/0030-permissions-of-writing-stages.md)). `timeout_sec: 0` is no limit; the parallel groups
of a profile share one.

Model: `routing.model`, then `stage_models`, `purpose_models`, `default_model`. Effort: `stage_efforts`, `purpose_efforts`,
`defaults.effort`. Time limit of a call: `defaults.timeout_sec` where `timeout_mode` is `enforce` (manifest, profile, agent, in this
order), and always `budgets.max_wallclock_sec`.
"""


def main(argv: list[str]) -> int:
    """`--write ROOT`."""
    if len(argv) != 2 or argv[0] != "--write":
        print("usage: python -m holdfast.pipeline.define.reference --write ROOT", file=sys.stderr)
        return 2
    for path, text in (*((path, schema_text()) for path in SCHEMAS), (PAGE, page())):
        target = os.path.join(argv[1], path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "w", encoding="utf-8") as file:
            file.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
