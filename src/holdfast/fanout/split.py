"""Let an agent write the plan: the first task of a fan-out that was started with a goal instead of a plan.

Its answer is taken from its journal, which is sealed, and checked like any plan. An answer that cannot be
used goes back to the agent, with what is wrong.
"""

from __future__ import annotations

from holdfast.model import work_plan
from holdfast.packet import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.model.work_plan import Plan
    from holdfast.store.layout import Packet

_PROMPT = """\
Split the work below into items that different engineers can do at the same time, each in its own checkout.
Read the project first. Change nothing.

## The work

{goal}

## Rules

- At most {most} items; fewer are better. Each is worth a review of its own.
- Two items must not change the same files. If one needs the result of another, name that one in depends_on.
- The prompt of an item says everything that its engineer must know: the goal, the files, how to check it.
- After each item alone, the project must still work.

## Your answer

End with exactly one block of JSON, of at most 12,000 characters:

```json
{{
  "schema": "{schema}",
  "goal": "the work in one line",
  "items": [
    {{
      "id": "short-name",
      "title": "one line",
      "prompt": "what to do",
      "depends_on": [],
      "scope": ["src/parser/", "docs/parser.md"]
    }}
  ]
}}
```

`id` has at most {chars} lower-case letters, digits and '-'. `scope` lists the files, and the directories
with a final slash, that the item may change, without wildcards. `depends_on` and `scope` are optional.
"""


def prompt(goal: str) -> str:
    """What the agent is asked."""
    return _PROMPT.format(
        goal=goal.strip(), most=work_plan.MAX_ITEMS, schema=work_plan.SCHEMA, chars=work_plan.ID_CHARS
    )


def answer(packet: Packet) -> Plan:
    """The plan that its task ended with."""
    attempt = load.fold(packet).attempt
    return work_plan.in_report(attempt.report if attempt is not None else "")


def message(plan: Plan) -> str:
    """What the agent is told about an answer that cannot be used."""
    listed = "\n".join(f"- {problem}" for problem in plan.problems)
    return f"Your plan cannot be used:\n{listed}\n\nAnswer again with the whole plan as one block of JSON.\n"
