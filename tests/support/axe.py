"""axe-core, which finds what people cannot use: installed by `make mcp-setup`, outside the clone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.support.mcp import cache, require

if TYPE_CHECKING:
    from playwright.sync_api import Page

AXE = "4.10.3"
#: Where it is: found now, because a test may have another home directory.
_SCRIPT = cache() / f"axe-{AXE}" / "node_modules" / "axe-core" / "axe.min.js"
_SERIOUS = """async () => (await axe.run(document, { resultTypes: ["violations"] })).violations
  .filter((each) => ["serious", "critical"].includes(each.impact))
  .map((each) => `${each.id}: ${each.help}: ${each.nodes.slice(0, 3).map((one) => one.html).join(" | ")}`)"""


def serious_findings(page: Page) -> list[str]:
    """What axe-core calls serious or critical on the page as it is."""
    path = require(_SCRIPT)
    if not page.evaluate("() => 'axe' in window"):
        with open(path, encoding="utf-8") as file:
            source = file.read()
        # Not a script tag: the policy of the page forbids that.
        page.context.new_cdp_session(page).send("Runtime.evaluate", {"expression": source})
    found: Any = page.evaluate(_SERIOUS)
    return found
