"""docs/agents.md matches the adapters."""

from __future__ import annotations

import pytest

from holdfast.agents import registry
from tests.docs import agents_page


def page() -> str:
    with open(agents_page.PATH, encoding="utf-8") as file:
        return file.read()


def test_the_page_is_up_to_date() -> None:
    assert page() == agents_page.page(), "run python -m tests.docs.agents_page"


@pytest.mark.parametrize("name", sorted(registry.BUILT_IN))
def test_each_agent_has_a_section(name: str) -> None:
    able = registry.adapter(name).capabilities
    section = page().partition(f"## {name}\n")[2].partition("\n## ")[0]
    for text in (able.login, able.program, able.package, *able.env, *able.aliases.values()):
        assert text in section
