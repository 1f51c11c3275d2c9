"""Secrets that an agent prints in another form: every form of the value is masked."""

from __future__ import annotations

import base64
import json
import time
import urllib.parse

import pytest

from holdfast.redact import MASK, Redactor
from tests.support.tasks import Task

SECRETS = (
    "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY",
    "s3cr3t/p@ss word!",
    "a\"b\\c\nd'e/é漢😀&<x",
    "pa\\\\ss\\word99",
    "0123456789abcdef",
)


def forms(secret: str) -> dict[str, str]:
    """The value in the forms in which programs print it."""
    data = secret.encode()
    once = json.dumps(secret)
    found = {
        "plain": secret,
        "url": urllib.parse.quote(secret),
        "url, all": urllib.parse.quote(secret, safe=""),
        "form": urllib.parse.quote_plus(secret),
        "url, every byte": "".join(f"%{byte:02x}" for byte in data),
        "hex": data.hex(),
        "HEX": data.hex().upper(),
        "repr": repr(secret),
        "repr of bytes": repr(data),
        "repr of repr": repr(repr(secret)),
        "json": once,
        "json twice": json.dumps(once),
        "json three times": json.dumps(json.dumps(once)),
        "json, unicode": json.dumps(secret, ensure_ascii=False),
        "json, as Go writes it": once.replace("&", "\\u0026").replace("<", "\\u003c"),
        "json, as PHP writes it": once.replace("/", "\\/"),
        "json in repr": repr(once),
        "\\x of every byte": "".join(f"\\x{byte:02x}" for byte in data),
        "\\X of every byte": "".join(f"\\x{byte:02X}" for byte in data),
        "\\x in json": "".join(f"\\\\x{byte:02x}" for byte in data),
        "octal": "".join(f"\\{byte:03o}" for byte in data),
        "octal of printf": "".join(f"\\0{byte:03o}" for byte in data),
        "\\u of every character": json.dumps("".join(f"\\u{unit:04x}" for unit in units(secret))),
    }
    for before in range(5):
        for after in ("", "x", "yz"):
            found[f"base32 {before} {after}"] = base64.b32encode(
                b"q" * before + data + after.encode()
            ).decode()
    for before in range(3):
        for after in ("", "x", "yz"):
            longer = b"q" * before + data + after.encode()
            found[f"base64 {before} {after}"] = base64.b64encode(longer).decode()
            found[f"base64url {before} {after}"] = base64.urlsafe_b64encode(longer).decode()
            for deeper in ("", "r", "st"):
                twice = base64.b64encode(deeper.encode() + base64.b64encode(longer)).decode()
                found[f"base64 twice {before} {after} {deeper}"] = twice
    return found


def units(text: str) -> list[int]:
    """The UTF-16 code units of a text."""
    data = text.encode("utf-16-be")
    return [int.from_bytes(data[at : at + 2]) for at in range(0, len(data), 2)]


@pytest.mark.req("CTX-4")
@pytest.mark.parametrize("secret", SECRETS)
def test_every_form_of_a_value_is_masked(secret: str) -> None:
    redact = Redactor({"DB_PASSWORD": secret})
    for name, form in forms(secret).items():
        shown = redact(f"see {form} end")
        assert MASK in shown, (name, form)
        # In base64, characters at both edges also encode neighbouring bytes; these may remain.
        assert len(shown) <= len("see '\"*** end\"'") + 12, (name, form, shown)


def test_ordinary_text_is_left_alone() -> None:
    redact = Redactor({"DB_PASSWORD": "s3cr3t/p@ss word!"})
    for text in (
        "100% of C:\\new\\table",
        "%41%42 is AB",
        "deadbeef " * 20,
        '{"a": "\\u00e9\\n"}',
        "\\x1b" * 20,
    ):
        assert redact(text) == text


def test_no_line_takes_quadratic_time() -> None:
    redact = Redactor({"DB_PASSWORD": "s3cr3t/p@ss word!", "OTHER_TOKEN": "\\\"\\'\\\"\\'x"})
    began = time.process_time()
    for line in (
        "\\" * 500_000,
        "%5c" * 200_000,
        "s%33" * 200_000,
        "\\u0073" * 100_000,
        "\\x73" * 200_000,
        ("\\x73" * 7 + "-") * 30_000,
    ):
        redact(line)
    assert time.process_time() - began < 10


@pytest.mark.usefixtures("home")
def test_what_an_agent_encodes_is_masked_in_the_log() -> None:
    script = 'printf %s "$MY_TOKEN" | base64; printf %s "$MY_TOKEN" | od -An -tx1 | tr -d " \\n"; echo'
    secret = "k7Hq2mZr9xW4"
    task = Task.shell(script, "--env", "MY_TOKEN", env={"MY_TOKEN": secret})
    task.wait_for("completed")
    log = task.log()
    assert base64.b64encode(secret.encode()).decode() not in log
    assert secret.encode().hex() not in log
    assert log.count(MASK) == 2
