"""A life whose approval comes from a phone: notice, delivery and listener are processes of the scenario."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from holdfast import paths
from holdfast.model import events as ev
from holdfast.model.task import Task
from holdfast.notify import outbox, replies
from holdfast.store import journal
from tests.crash import written
from tests.crash.drive import Case, deadline
from tests.support.ntfy import Ntfy, press


class Phone:
    """The server of a case, the processes that the keeper would start, and a person who presses each button
    twice."""

    def __init__(self, case: Case) -> None:
        self.case, self.server = case, Ntfy()
        self.children: dict[str, subprocess.Popen[bytes]] = {}
        self.pressed = 0

    def tend(self) -> None:
        names = outbox.names(self.case.home)
        if names:
            self._ensure("delivery", os.path.join(self.case.home.outbox, names[0]))
        if replies.names(self.case.home):
            self._ensure("listener", "--replies", self.server.url)
        asked = [message for message in self.server.of("alerts") if message.get("actions")]
        for message in asked[self.pressed :]:
            self.pressed += 1
            for _ in range(2):
                press(message, "Approve")

    def _ensure(self, kind: str, *words: str) -> None:
        child = self.children.get(kind)
        if child is not None and child.poll() is None:
            return
        with open(self.case.log, "ab") as log:
            self.children[kind] = subprocess.Popen(
                [sys.executable, "-P", "-m", "holdfast.notify", *words],
                env=self.case.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.case.root,
            )  # fmt: skip
        self.case.others.append(self.children[kind])


_phones: dict[str, Phone] = {}


def begin(case: Case) -> None:
    """The second stage needs approval, and a rule sends the question to a phone."""
    _phones[case.root] = phone = Phone(case)
    values = {
        "on": ["all"],
        "to": "ntfy",
        "server": phone.server.url,
        "topic": "alerts",
        "allow": ["approve"],
    }
    os.makedirs(paths.config_dir(), exist_ok=True)
    with open(paths.user_settings(), "w", encoding="utf-8") as file:
        file.write(
            "[[notify]]\n" + "".join(f"{name} = {json.dumps(each)}\n" for name, each in values.items())
        )
    written.with_approval(case)


def tend(case: Case) -> None:
    """Runners, deliveries and the listener, as a keeper does."""
    case.tend()
    _phones[case.root].tend()


def finish(case: Case) -> None:
    """All notices are delivered, all records are gone, and the listener leaves by itself."""
    phone, is_over = _phones.pop(case.root), deadline(30)
    try:
        while True:
            phone.tend()
            is_left = outbox.names(case.home) or replies.names(case.home)
            if not is_left and all(child.poll() is not None for child in phone.children.values()):
                return
            if is_over():
                case.fail(f"left are {is_left}, {phone.children}")
            case.pause()
    finally:
        for child in phone.children.values():
            child.kill()
            child.wait()
        phone.server.close()


def check(case: Case, task: Task) -> None:
    """Approved once, by the reply. If a runner was killed before it recorded that it posted the notice, there
    are two of it, and the person answers both: the second answer is refused."""
    written.check_approval(case, task)
    events = [event for _, event in journal.read(case.packet.journal)]
    refused = [event for event in events if isinstance(event, ev.RequestRefused)]
    assert len(refused) <= 1
    assert all(event.reason.endswith("waits for no approval") for event in refused)
    applied = [event for event in events if isinstance(event, ev.RequestApplied)]
    assert [(event.verb, event.by[:7]) for event in applied] == [("approve", "a reply")]
