"""The journal, whatever happens to its end: appended, reopened, torn at any byte, followed by rubbish."""

from __future__ import annotations

import json
import os
import tempfile

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from holdfast.errors import CorruptFile
from holdfast.model import events as ev
from holdfast.store import journal
from holdfast.store.journal import Journal

# Everything that a text can hold, lone surrogates of undecodable bytes too.
_TEXT = st.text(st.characters(), max_size=40)
_EVENTS = st.one_of(
    st.builds(ev.TaskMoved, old=st.just("running"), new=st.just("crashed"), reason=_TEXT),
    st.builds(ev.AgentText, attempt=st.integers(1, 9), offset=st.integers(0, 10**9), text=_TEXT),
    st.builds(
        ev.AttemptSwept, attempt=st.integers(1, 9), killed=st.just([]), spared=st.just([]), proof=_TEXT
    ),
)
# One line at most, and nothing that could pass for an event.
_RUBBISH = st.builds(
    lambda data, newline: data.replace(b"\n", b"") + newline,
    st.one_of(
        st.binary(max_size=80), st.sampled_from([b"{", b'{"id":"x"}', b"[1]", b"\0" * 40, b"null", b" "])
    ),
    st.sampled_from([b"", b"\n"]),
)


class JournalMachine(RuleBasedStateMachine):
    """The model is the list of events that are wholly on disk."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "events.jsonl")
        with open(self.path, "wb"):
            pass
        self.model: list[ev.Event] = []
        self.journal: Journal | None = Journal(self.path)

    @precondition(lambda self: self.journal is not None)
    @rule(events=st.lists(_EVENTS, min_size=1, max_size=3))
    def append(self, events: list[ev.Event]) -> None:
        assert self.journal is not None
        self.journal.append(events)
        self.model += [_as_read(event) for event in events]

    @rule()
    def reopen(self) -> None:
        self._close()
        self.journal = Journal(self.path)
        size = os.path.getsize(self.path)
        repaired = self.journal.repair()
        if repaired is not None:
            assert repaired.dropped_bytes == size - os.path.getsize(self.path) > 0
            self.journal.append([repaired])
            self.model.append(_as_read(repaired))

    @precondition(lambda self: self.model)
    @rule(back=st.integers(1, 400))
    def cut(self, back: int) -> None:
        """The machine dies, and of the last bytes nothing is on disk: nothing before them may be lost."""
        self._close()
        with open(self.path, "rb+") as file:
            data = file.read()
            kept = data[: max(0, len(data) - back)]
            file.truncate(len(kept))
        del self.model[kept.count(b"\n") :]

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def cut_inside_the_last_line(self, data: st.DataObject) -> None:
        with open(self.path, "rb") as file:
            last = file.read().splitlines(keepends=True)[-1]
        self.cut(data.draw(st.integers(1, len(last))))

    @rule(rubbish=_RUBBISH)
    def rubbish_at_the_end(self, rubbish: bytes) -> None:
        self._close()
        with open(self.path, "rb") as file:
            has_half_line = not file.read().endswith(b"\n")
        if has_half_line and rubbish.endswith(b"\n"):
            rubbish = b"\xff" + rubbish  # so that it cannot complete a line that lacked only its newline
        with open(self.path, "ab") as file:
            file.write(rubbish)
        if rubbish.endswith(b"\n"):
            self.reopen()  # a second bad line after it would be a corrupt journal, not a torn one

    @invariant()
    def what_is_read_is_the_model(self) -> None:
        assert [event for _, event in journal.read(self.path)] == self.model

    @invariant()
    def ids_are_never_used_twice(self) -> None:
        with open(self.path, "rb") as file:
            ids = [json.loads(line)["id"] for line in file.read().splitlines()[: len(self.model)]]
        assert len(set(ids)) == len(ids)

    def _close(self) -> None:
        if self.journal is not None:
            self.journal.close()
            self.journal = None

    def teardown(self) -> None:
        self._close()
        self.folder.cleanup()


def _as_read(event: ev.Event) -> ev.Event:
    """What comes back: surrogates that no UTF-8 can hold are escaped."""
    line = journal.encode_line(event, "2000-01-01T00:00:00.000Z")
    return ev.decode(json.loads(line))


JournalMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)


@pytest.mark.req("PKT-10", "PKT-17")
class TestJournal(JournalMachine.TestCase):
    """Nothing but the torn end is ever lost, and what is appended afterwards is read."""


@pytest.mark.req("PKT-10")
def test_a_bad_line_that_is_not_the_last_is_an_error_and_nothing_is_cut(tmp_path) -> None:
    path = os.fspath(tmp_path / "events.jsonl")
    good = journal.encode_line(ev.RunnerLeft(pid=1, reason="x"), "2000-01-01T00:00:00.000Z")
    data = good + b"rubbish\n" + good
    with open(path, "wb") as file:
        file.write(data)
    with pytest.raises(CorruptFile, match="line 2"):
        list(journal.read(path))
    opened = Journal(path)
    assert opened.repair() is None
    opened.close()
    with open(path, "rb") as file:
        assert file.read() == data
