"""docs/agents.md: what the adapters say, no older and no newer."""

from __future__ import annotations

import pytest

from holdfast.agents import registry
from tests.docs import agents_page


def page() -> str:
    with open(agents_page.PATH, encoding="utf-8") as file:
        return file.read()


def test_the_page_is_fresh() -> None:
    assert page() == agents_page.page(), "run python -m tests.docs.agents_page"


@pytest.mark.parametrize("name", sorted(registry.BUILT_IN))
def test_each_agent_has_its_section(name: str) -> None:
    able = registry.adapter(name).capabilities
    section = page().partition(f"## {name}\n")[2].partition("\n## ")[0]
    for words in (able.login, able.program, able.package, *able.env, *able.aliases.values()):
        assert words in section
