"""Deliver the work of a task, for a program."""

from __future__ import annotations

import warnings

from holdfast.model import concerns
from holdfast.packet import load
from holdfast.views import delivery
from holdfast.views.api import values
from holdfast.views.api.values import Applied, HoldfastWarning, PullRequest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.store.layout import Packet


def apply(packet: Packet, *, patch: bool, force: bool) -> Applied:
    """As `holdfast apply`."""
    done = delivery.apply(packet, as_patch=patch, force=force, warn=_warn)
    if objections := load.derived(packet).get("concerns"):
        _warn(f"there are objections: {concerns.all_as_text(objections)}")
    return Applied(
        how=done.how,
        into=done.into,
        branch=done.branch,
        commit=done.commit,
        paths=done.paths,
        left_out=done.left_out,
        submodules=done.submodules,
        squashed=done.squashed,
        was_there=done.was_there,
        unreadable=done.unreadable,
    )


def pr(
    packet: Packet,
    *,
    draft: bool,
    remote: str | None,
    base: str | None,
    yes: bool,
    wait_s: float | None,
    is_cancelled: Callable[[], bool] | None = None,
) -> PullRequest:
    """As `holdfast pr`. `is_cancelled` ends the wait; it is asked twice a second."""
    done = delivery.publish(packet, draft=draft, remote=remote, base=base, is_confirmed=yes)
    checks = None
    if wait_s is not None and done.url is not None:
        found = delivery.wait_for_checks(done, wait_s, say=_ignore, is_cancelled=is_cancelled)
        checks = tuple(
            values.PullRequestCheck(name=each.name, bucket=each.bucket, link=each.link) for each in found
        )
    pushed = done.pushed
    return PullRequest(
        url=done.url,
        is_new=done.is_new,
        title=done.title,
        body=done.body,
        branch=pushed.branch,
        commit=pushed.commit,
        remote=pushed.remote,
        paths=pushed.paths,
        left_out=pushed.left_out,
        unreadable=pushed.unreadable,
        checks=checks,
    )


def _warn(text: str) -> None:
    # From the caller of `Task.apply`.
    warnings.warn(text, HoldfastWarning, stacklevel=4)


def _ignore(text: str) -> None:
    """Which checks are pending."""
