"""The JSON Schema of manifest.yaml and its reference page, both generated from the table of fields.

The schema is for editors: it has types, enums and required keys. What depends on the configuration (profiles,
models, flags) is checked by `holdfast pipeline check`.
"""

from __future__ import annotations

import os
import textwrap
from typing import Any

from contracts import schema as schemas
from contracts.parts import CONTRACTS, DRAFT, TASK_ID, Schema
from holdfast.model.roles import ROLES
from holdfast.pipeline.define import field_schema, security_lens
from holdfast.pipeline.define.intents import INTENTS, OPTIONS
from holdfast.pipeline.define.manifest_fields import FIELDS, Field, tree

ID = "https://holdfast.dev/schemas/manifest.yaml.schema.json"
#: The two files, in docs.
SCHEMA = "contracts/schemas/manifest.yaml.schema.json"
PAGE = "reference/manifest.md"
_DOCS = os.path.dirname(CONTRACTS)
_KINDS = {
    "id": "task id",
    "text": "string",
    "choice": "one of",
    "whole": "integer",
    "number": "number",
    "flag": "boolean",
    "texts": "list of strings",
    "paths": "list of paths",
    "patterns": "list of regular expressions",
    "stages": "list of stages",
    "agents": "list of agents",
    "variables": "list of variable names",
    "labels": "list of `key=value`",
    "options": "map",
}


def write() -> None:
    """Write the schema and the page."""
    for path, text in ((SCHEMA, schemas.as_text(schema())), (PAGE, page())):
        with open(os.path.join(_DOCS, path), "w", encoding="utf-8") as file:
            file.write(text)


# ── the schema ──────────────────────────────────────────────────────────────


def schema() -> Schema:
    """The JSON Schema."""
    return {"$schema": DRAFT, "$id": ID, "title": "manifest.yaml of a task packet", **_object(tree())}


def _object(known: dict[str, Any], path: str = "") -> Schema:
    if "*" in known:
        return {"type": "object", "additionalProperties": _field(known["*"])}
    properties = {
        name: _field(below) if isinstance(below, Field) else _below(below, f"{path}{name}.")
        for name, below in known.items()
    }
    result: Schema = {"type": "object", "additionalProperties": False, "properties": properties}
    required = [name for name, below in known.items() if _is_required(below)]
    return {**result, "required": required} if required else result


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
    return {"type": "string", "pattern": TASK_ID} if field.kind == "id" else field_schema.of_value(field)


# ── the page ────────────────────────────────────────────────────────────────

_HEAD = """\
<!-- Written by `python -m contracts`; edit src/holdfast/pipeline/define/manifest_fields.py instead. -->
# manifest.yaml

The manifest of a written packet. `holdfast new` creates one with comments, `holdfast pipeline check DIR`
reports all problems with line and path, `holdfast pipeline show DIR` prints what it resolves to, and
`holdfast run --packet DIR` runs it. Unknown keys are errors. For editors there is a
[JSON Schema](../contracts/schemas/manifest.yaml.schema.json): put `# yaml-language-server: $schema=PATH` on
the first line.

The file has at most 256 KiB of UTF-8, without anchors, aliases, tags and duplicate keys. Values follow YAML
1.2: `no` and `12:30` are strings.
"""


def page() -> str:
    """The reference page."""
    parts = [_HEAD, "## Fields\n", _table(FIELDS), _PATHS, _intents(), _options(), _roles(), _FILES]
    return "\n".join(parts)


def _filled(text: str) -> str:
    return textwrap.fill(text, 110, break_long_words=False, break_on_hyphens=False) + "\n"


def _table(fields: tuple[Field, ...]) -> str:
    rows = ["| field | type | required | default | |", "|---|---|---|---|---|"]
    for field in fields:
        default = "" if field.default is None else f"`{_shown(field.default)}`"
        required = "yes" if field.required else ""
        rows.append(f"| `{field.path}` | {_kind(field)} | {required} | {default} | {field.about} |")
    return "\n".join(rows) + "\n"


def _kind(field: Field) -> str:
    kind = _KINDS[field.kind]
    if field.choices:
        return f"{kind} {', '.join(f'`{choice}`' for choice in field.choices)}"
    if field.kind == "whole":
        return f"{kind}, {field.least} to {field.most}"
    return f"{kind}, above 0, at most {field.most}" if field.kind == "number" else kind


def _shown(value: object) -> str:
    if value == ():
        return "[]"
    return str(value).lower() if isinstance(value, bool) else str(value)


_PATHS = """## Paths and patterns

Paths in `scope` and `security.forbidden_paths` are patterns as in .gitignore, relative to the project. An
absolute path, a path with `..` and a leading `!` are errors. A name without an inner slash matches at any
depth: `a.py` also matches `vendor/deep/a.py`, but `./a.py` only matches at the top of the project. `[…]` is a
set of characters: for a directory named `[id]` write `app/\\[id]/`.

`security.redaction_patterns` are regular expressions in RE2 syntax
([prompts.md](prompts.md#secrets-and-forbidden-paths)). An invalid one, or one that matches the empty string,
is an error.
"""


def _intents() -> str:
    rows = ["## Intents\n", "| intent | group | changes code | |", "|---|---|---|---|"]
    for name, intent in INTENTS.items():
        groups = ", ".join((intent.group, *intent.also))
        rows.append(f"| `{name}` | {groups} | {'yes' if intent.changes else 'no'} | {intent.about} |")
    after = _filled(
        "An intent runs the profile of the same name. `routing.pipeline.profile` selects another profile "
        "of its group. A profile that writes is an error if the intent changes nothing, and the reverse. "
        "`design_only` can also select a profile of the group `plan`, whose result can be passed to "
        "`holdfast new --from-plan`. `safe_impl` with the profile `review_fix` runs parallel reviews of "
        "the current code, then fixes the findings one by one."
    )
    return "\n".join(rows) + "\n\n" + after


def _options() -> str:
    rows = ["## Options\n", "| option | values | groups | |", "|---|---|---|---|"]
    for name, option in OPTIONS.items():
        values = ", ".join(f"`{value}`" for value in option.values)
        rows.append(f"| `{name}` | {values} | {', '.join(option.groups)} | {option.about} |")
    after = _filled(
        "`impl_mode` and `review_mode` describe a profile. In a manifest they must agree with the intent, "
        "or with the profile that it selects. `review_only` with `review_mode: codex_only` runs the "
        "profile `codex_only`."
    )
    return "\n".join(rows) + "\n\n" + after + "\n" + _security_lens()


def _security_lens() -> str:
    words, beginnings = (", ".join(each) for each in (security_lens.WORDS, security_lens.BEGINNINGS))
    return _filled(
        "`security_lens` adds a stage with the role `security_review` in parallel to the last review, "
        "played by the agent of the first review, unless the profile already has such a stage. `off` "
        "removes it; without the option, a profile runs as written. `auto` decides when the packet is "
        "read, by words in the goal, the allowed paths, the criteria, the request and the paths of "
        f"attached diffs: {words}; and words that begin with {beginnings}."
    )


def _roles() -> str:
    rows = ["## Stages and roles\n", "A stage is named `<agent>_<role>`; any agent can play any role.\n"]
    rows += ["| role | models of | writes | |", "|---|---|---|---|"]
    for name, role in ROLES.items():
        writes = "yes" if role.writes else "if the profile allows it" if role.may_write else "no"
        rows.append(f"| `{name}` | `{role.purpose}` | {writes} | {role.about} |")
    return "\n".join(rows) + "\n"


_FILES = """## Agent and pipeline files

What the manifest does not set comes from `agents/*.yaml` and `pipelines/*.yaml`: those of the project
(`.holdfast/`) override those of the user (`~/.config/holdfast/`), which override those of the package. They
are checked in the same way. Of a project, models, efforts and time limits are used as they are; stages,
options, flags and permissions only after `holdfast trust` ([security](../security.md#projects)).

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
    writes: []                      # stages that write although their role does not by default
    approval: [claude_impl]
```

A file with `stages` for a profile replaces the whole profile; without `stages` it changes only the keys that
it has. Otherwise maps are merged and lists are replaced. A stage that writes cannot be part of a parallel
group. It gets the [permission profile](../agents.md#permission-profiles) `edit`, all others `read`
([decision 0030](../decisions/0030-permission-profiles.md)). `timeout_sec: 0` means no limit; all parallel
groups of a profile have the same `timeout_sec`.

Order of precedence:

- model: `routing.model`, `stage_models`, `purpose_models`, `default_model`
- effort: `stage_efforts`, `purpose_efforts`, `defaults.effort`
- time limit of a call: `budgets.max_wallclock_sec` always holds. `defaults.timeout_sec` holds too if
  `timeout_mode` is `enforce` (manifest, then profile, then agent).
"""
