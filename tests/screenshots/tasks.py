"""The tasks of the pictures: one that crashes, is resumed and passes its gates, a question, a limit, work."""

from __future__ import annotations

import os
import signal

from holdfast.testing import Scenario
from tests.support.packets import REPORTS, Written
from tests.support.repos import Repo
from tests.support.tasks import Task, holdfast, workspace

#: The task whose flight recorder is shown.
SHOWN = "checkout-tax"
_BEFORE = """def total(prices):
    return sum(prices)
"""
_AFTER = '''TAX = 0.19


def total(prices, tax=TAX):
    """What the customer pays."""
    return round(sum(prices) * (1 + tax), 2)
'''


_WORK = "## Summary\n\n`total()` adds the tax, 19 % by default, and rounds once. Callers stay as they are.\n"
_REVIEW = """## Findings

None. The tax is added in one place and rounded once.

## Test gaps

A total of no prices.

## Breaking changes

None.

## Minimal fix

Not needed.
"""


def make() -> None:
    """Create them, and wait until each is where the pictures show it."""
    _pipeline()
    _plain("readme-links", "Fix dead links in the docs", "14 links mended, 2 pages removed", cost=0.08)
    _plain(
        "slow-query", "Find out why the report page is slow", "an index on orders.created_at helps", cost=0.31
    )
    Task.shell("echo 'collecting tests'; echo '3 failed, 214 passed'; exit 1", "--id", "nightly-tests",
               "--name", "Run the nightly tests", "--max-retries", "0").wait_for("failed")  # fmt: skip
    _waiting()
    _asking()
    _working()
    for name, title in (("changelog", "Write the changelog of 2.4"), ("typing", "Add types to billing/")):
        done = holdfast("submit", "--id", name, "--name", title, "--not-before", "23:59", "--", "true")
        assert done.returncode == 0, done.stderr


def _usage(scenario: Scenario, tokens: int, cost: float) -> Scenario:
    return scenario.usage(input_tokens=tokens, output_tokens=tokens // 12, cost_usd=cost)


def _plain(name: str, title: str, result: str, *, cost: float) -> None:
    scenario = _usage(Scenario().say("reading the code"), 24_000, cost).say(result).result(result)
    Task.play(scenario, "--id", name, "--name", title, prompt=title).wait_for("completed")


def _waiting() -> None:
    scenario = _usage(Scenario().say("18 of 40 files are translated"), 61_000, 0.74).rate_limit()
    task = Task.play(
        scenario, "--id", "translate", "--name", "Translate the help pages", prompt="translate them"
    )
    task.wait_for("waiting", within_s=30)


def _asking() -> None:
    scenario = _usage(Scenario().say("two tables have a column 'state'"), 18_000, 0.22)
    scenario.interrupt_request("Which table should I migrate: orders or orders_archive?").hang()
    task = Task.play(scenario, "--id", "migrate", "--name", "Migrate the orders table", prompt="migrate it")
    task.wait_for("interrupted", within_s=30)


def _working() -> None:
    for name, title, says, tokens, cost in (
        ("deps", "Upgrade the dependencies", "npm test: 212 of 340 passed", 88_000, 0.97),
        ("flaky-test", "Make test_login stable", "running it 200 times", 12_000, 0.11),
    ):
        scenario = _usage(Scenario(), tokens, cost).say(says).hang()
        task = Task.play(scenario, "--id", name, "--name", title, prompt=title)
        task.wait_for_log(says)


def _pipeline() -> None:
    """A brief, an implementation that is killed once, and a review."""
    project = Repo(os.path.join(workspace(), "shop"))
    project.write("shop.py", _BEFORE)
    project.write("test_shop.py", "from shop import total\n\nassert total([1, 2]) == 3.57\n")
    project.commit("shop.py", "test_shop.py", message="a shop without taxes")
    work = _usage(Scenario().say("total() is used in three places"), 21_000, 0.19)
    work.tool("Bash", command="sleep 1.2").say("adding the tax").hang(once=True)
    work.write("shop.py", content=_AFTER).tool("Bash", command="sleep 0.8")
    _usage(work, 9_000, 0.08).say(_WORK).result("ok")
    brief = _usage(Scenario().tool("Read", command="sleep 0.6"), 14_000, 0.12)
    review = _usage(Scenario().tool("Read", command="sleep 0.9"), 17_000, 0.15)
    packet = Written(
        {
            "scripted_brief": brief.say(REPORTS["brief"]).result("ok"),
            "scripted_impl": work,
            "scripted_review": review.say(_REVIEW).result("ok"),
        },
        task_id=SHOWN,
        project=project,
        request="Add the tax to the total of the checkout.\n",
        goal="Add the tax to the checkout",
        scope={"allow": ["shop.py"], "deny": []},
        acceptance={"commands": ["python3 test_shop.py"], "criteria": ["the test passes"]},
        budgets={"retry_budget": 2, "paid_call_budget": 8, "max_wallclock_sec": 600},
    )
    done = holdfast("run", "-d", "--packet", packet.path, cwd=project.path)
    assert done.returncode == 0, done.stderr
    task = Task(os.path.join(os.environ["HOLDFAST_HOME"], "tasks", SHOWN))
    task.wait_for_log("adding the tax", within_s=60)
    os.kill(task.agent_pid(), signal.SIGKILL)
    task.wait_for("completed", within_s=90)
