"""The rules of a sandbox's proxy: which names and addresses a list of hosts allows."""

from __future__ import annotations

import pytest

from holdfast.sandbox import proxy

pytestmark = pytest.mark.req("SBX-3")


@pytest.mark.parametrize(
    ("entry", "name", "port", "fits"),
    [
        ("api.example.com", "api.example.com", 443, True),
        ("api.example.com", "API.Example.COM.", 80, True),
        ("api.example.com", "api.example.com", 22, False),
        ("api.example.com:22", "api.example.com", 22, True),
        ("api.example.com:22", "api.example.com", 443, False),
        ("example.com", "api.example.com", 443, False),
        ("example.com", "badexample.com", 443, False),
        ("*.example.com", "api.example.com", 443, True),
        ("*.example.com", "a.b.example.com", 443, True),
        ("*.example.com", "example.com", 443, False),
        ("*.example.com", "badexample.com", 443, False),
        ("*.example.com", "example.com.evil.net", 443, False),
        ("127.0.0.1:8080", "127.0.0.1", 8080, True),
        ("127.0.0.1:8080", "2130706433", 8080, False),
        ("[::1]:8080", "::1", 8080, True),
    ],
)
def test_names(entry: str, name: str, port: int, fits: bool) -> None:
    assert bool(proxy.allowing([entry], name, port)) is fits


@pytest.mark.parametrize(
    "entry",
    ["", "*", "*.com:x", "a b", "http://x", "x/y", "-x", "x:0", "x:70000", "*.1.2.3.4", "a..b", "[x]", "é"],
)
def test_what_is_no_host(entry: str) -> None:
    with pytest.raises(ValueError, match="not a"):
        proxy.parse(entry)


@pytest.mark.parametrize(
    ("entry", "address", "may"),
    [
        ("api.example.com", "93.184.216.34", True),
        ("api.example.com", "127.0.0.1", False),
        ("api.example.com", "::1", False),
        ("api.example.com", "::ffff:127.0.0.1", False),
        ("api.example.com", "169.254.169.254", False),
        ("api.example.com", "0.0.0.0", False),
        ("api.example.com", "fe80::1%eth0", False),
        ("npm.corp", "10.0.0.7", True),
        ("*.example.com", "10.0.0.7", False),
        ("*.example.com", "192.168.1.1", False),
        ("*.example.com", "93.184.216.34", True),
        ("localhost", "127.0.0.1", True),
        ("localhost", "169.254.169.254", False),
        ("127.0.0.1", "127.0.0.1", True),
        ("169.254.169.254", "169.254.169.254", True),
    ],
)
def test_addresses_of_allowed_names(entry: str, address: str, may: bool) -> None:
    below, host, _ = proxy.parse(entry)
    assert proxy.may_reach([(below, host)], address) is may
