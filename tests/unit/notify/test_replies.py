"""Records of replies, their signature, the key, and the lines of a stream."""

from __future__ import annotations

import io
import json
import os
from typing import Any, cast

import pytest

from holdfast import clock, ids
from holdfast.errors import NotPossible, UsageError
from holdfast.notify import replies, reply_key, reply_stream, rules
from holdfast.notify.replies import Awaited
from holdfast.store.layout import Home
from tests.unit.notify.test_settings import read

RULE = {"to": "ntfy", "on": ["all"], "server": "https://ntfy.example.org", "topic": "secret"}
NOTICE = {"event": "interrupted", "task_id": "it", "interrupt": 1, "approval": "verify"}


@pytest.fixture
def place_home(place, clean_env: dict[str, str]) -> Home:
    path = os.path.join(place.root, "home")
    os.mkdir(path, 0o700)
    return Home(path)


def awaited(**fields: Any) -> Awaited:
    known = {"notice": ids.new_ulid(), "task_id": "it", "interrupt": 1, "stage": "verify", "rule": RULE}
    return Awaited(**{**known, "forget_at": clock.now() + 60, **fields})


def test_the_signature_covers_everything() -> None:
    one = awaited()
    key = b"k" * 32
    mac = replies.mac(key, one, "approve", 100)
    others = (
        replies.mac(b"l" * 32, one, "approve", 100),
        replies.mac(key, one, "reject", 100),
        replies.mac(key, one, "approve", 101),
        *(
            replies.mac(key, one.evolve(**{name: value}), "approve", 100)
            for name, value in (
                ("notice", ids.new_ulid()), ("task_id", "other"), ("interrupt", 2), ("stage", "impl"),
            )
        ),
    )  # fmt: skip
    assert len({mac, *others}) == 8
    assert replies.mac(key, one, "approve", 100) == mac


def test_the_key_is_made_once_and_is_another_for_a_copy(place_home: Home) -> None:
    assert replies.key(place_home) is None
    key = replies.key(place_home, create=True)
    assert key is not None
    assert (len(key), replies.key(place_home)) == (32, key)
    os.mkdir(place_home.path + "-copy", 0o700)
    other = replies.key(Home(place_home.path + "-copy"), create=True)
    assert other is not None
    assert replies.topic(other) != replies.topic(key)
    assert key.hex()[:8] not in replies.topic(key)


@pytest.mark.parametrize("content", [b"", b"00\n", b"zz" * 32, b"00" * 33])
def test_a_key_that_is_torn_is_not_used(place_home: Home, content: bytes) -> None:
    replies.key(place_home, create=True)
    folder = os.path.expanduser("~/.config/holdfast/trust")
    (name,) = os.listdir(folder)
    with open(os.path.join(folder, name), "wb") as file:
        file.write(content)
    with pytest.raises(NotPossible, match="is not a key"):
        reply_key.read(place_home.path, create=True)


def test_of_two_replies_one_is_taken(place_home: Home) -> None:
    one = replies.expect(place_home, {**NOTICE, "id": ids.new_ulid()}, RULE, int(clock.now()) + 60)
    assert one is not None
    assert replies.read(place_home, one.notice) == one
    first = replies.take(place_home, one.notice, "approve")
    assert first is not None
    assert replies.take(place_home, one.notice, "reject") is None
    assert replies.taken(place_home, one.notice) == first
    # A notice that is delivered again has no buttons any more.
    assert replies.expect(place_home, {**NOTICE, "id": one.notice}, RULE, int(clock.now()) + 60) is None
    replies.forget(place_home, one.notice)
    assert replies.names(place_home) == []
    assert os.listdir(place_home.replies) == []


@pytest.mark.parametrize(
    "change",
    [
        {"rule": 3}, {"interrupt": "1"}, {"interrupt": True}, {"stage": None}, {"task_id": "../x"},
        {"task_id": 7}, {"forget_at": "soon"}, {"notice": "another"}, {"schema": "holdfast.reply/2"},
    ],
)  # fmt: skip
def test_a_record_that_an_agent_wrote_is_none(place_home: Home, change: dict[str, Any]) -> None:
    one = awaited()
    os.mkdir(place_home.replies)
    with open(place_home.reply(one.notice), "w", encoding="utf-8") as file:
        json.dump({**one.to_json(), **change}, file)
    assert replies.read(place_home, one.notice) is None
    with open(place_home.reply(one.notice), "w", encoding="utf-8") as file:
        file.write("{")
    assert replies.read(place_home, one.notice) is None
    os.unlink(place_home.reply(one.notice))
    os.mkfifo(place_home.reply(one.notice))
    assert replies.read(place_home, one.notice) is None
    assert replies.is_past(one.evolve(forget_at=clock.now() + 1e9))
    assert replies.is_past(one.evolve(forget_at=float("nan")))


def test_a_link_in_place_of_the_directory_leads_nowhere(place_home: Home) -> None:
    """To the outbox, for example, whose files have names like these."""
    name = ids.new_ulid()
    os.mkdir(place_home.outbox)
    with open(place_home.notice(name), "w", encoding="utf-8") as file:
        file.write("{}")
    os.symlink("outbox", place_home.replies)
    assert replies.names(place_home) == []
    assert replies.read(place_home, name) is None
    replies.forget(place_home, name)
    assert os.path.exists(place_home.notice(name))
    assert replies.expect(place_home, {**NOTICE, "id": name}, RULE, int(clock.now()) + 60) is not None
    assert os.listdir(place_home.outbox) == [f"{name}.json"]
    assert not os.path.islink(place_home.replies)


def test_only_an_approval_is_asked_for() -> None:
    notice = {**NOTICE, "id": ids.new_ulid()}
    assert replies.asks(notice, RULE)
    assert not replies.asks(notice, {**RULE, "allow": []})
    for change in (
        {"approval": None},
        {"event": "failed"},
        {"interrupt": None},
        {"task_id": "../x"},
        {"id": "x"},
    ):
        assert not replies.asks({**notice, **change}, RULE)


def test_lines_of_any_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reply_stream, "LINE_BYTES", 10)
    monkeypatch.setattr(reply_stream, "SKIPPED_BYTES", 100)

    def lines(data: bytes) -> list[bytes | None]:
        return list(reply_stream.lines(cast("Any", io.BytesIO(data))))

    assert lines(b"a\n\nbb\n") == [b"a\n", b"\n", b"bb\n"]
    assert lines(b"a" * 50 + b"\nb\n") == [None, b"b\n"]
    assert lines(b"a" * 10 + b"\nb") == [b"a" * 10 + b"\n", b"b"]
    assert lines(b"a" * 1000 + b"\nb\n") == []
    for junk in (b"{", b"[]", b"\xff", b"[" * 100_000, None):
        assert reply_stream.parsed(junk) is None


def test_a_label_has_no_topic() -> None:
    assert rules.label(RULE) == "ntfy ntfy.example.org"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ('topic = "a"', "ntfy needs 'server'"),
        ('server = "https://x"', "ntfy needs one of 'topic' and 'topic_env'"),
        ('server = "https://x"\ntopic = "a"\ntopic_env = "T"', "ntfy needs one of 'topic' and 'topic_env'"),
        ('server = "https://x"\ntopic = "a/b"', "topic: must be 1 to 64"),
        ('server = "ntfy.example.org"\ntopic = "a"', "server: must be https://HOST"),
        ('server = "https://me:pw@x"\ntopic = "a"', "server: must be https://HOST"),
        ('server = "https://x/path"\ntopic = "a"', "server: must be https://HOST"),
        ('server = "https://x:99999"\ntopic = "a"', "server: must be https://HOST"),
        ('server = "ftp://x"\ntopic = "a"', "server: must start with https://"),
        (
            'server = "https://x"\ntopic = "a"\nallow = ["resume"]',
            "allow: must be a list of approve and reject",
        ),
        (
            'server = "https://x"\ntopic = "a"\nallow = "approve"',
            "allow: must be a list of approve and reject",
        ),
        ('server = "https://x"\ntopic = "a"\nreply_within = "5s"', "reply_within: must be from 1m to 7d"),
        ('server = "https://x"\ntopic = "a"\nreply_within = "soon"', "reply_within: not a duration"),
    ],
)
def test_a_wrong_rule_is_refused(place, options: str, said: str) -> None:
    with pytest.raises(UsageError) as error:
        read(place, f'[[notify]]\nto = "ntfy"\non = ["all"]\n{options}\n')
    assert said in str(error.value)


def test_a_rule_is_read(place) -> None:
    (found,) = read(
        place,
        '[[notify]]\nto = "ntfy"\non = ["all"]\nserver = "https://[::1]:8080/"\ntopic = "a"\n'
        'allow = ["reject", "approve"]\nreply_within = "1d"\nopen_url = "http://box:8733/"\n',
    )
    assert found["server"] == "https://[::1]:8080"
    assert found["allow"] == ["approve", "reject"]
    assert found["open_url"] == "http://box:8733"
    assert replies.within_s(found) == 86400
