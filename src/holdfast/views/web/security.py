"""What a request must have before anything of the server sees it. Pure.

The attacker is a page in the same browser, a program of another user, or an agent: it can send any request to
the port, and knows neither token nor bearer.
"""

from __future__ import annotations

from holdfast.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

#: The largest body of a request.
BODY_BYTES = 64 * 1024
_SAFE = ("GET", "HEAD")
_API, _EXCHANGE = "/api/", "/api/session"


class Rules(Record):
    """What the server expects."""

    #: Exact values of Host; the first is in the printed address.
    hosts: tuple[str, ...]
    #: Values of Host for programs that are no browsers: in a browser, what another server left under these
    #: names (a worker, an open tab) would act on our pages.
    plain_hosts: tuple[str, ...] = ()
    #: Whether requests that change something are refused.
    is_read_only: bool = False


class Refusal(Record):
    """Why a request is not answered."""

    status: int
    reason: str


def check(
    rules: Rules,
    method: str,
    path: str,
    *,
    headers: Sequence[tuple[str, str]],
    is_known: Callable[[str], bool],
) -> Refusal | None:
    """None if the request may go on."""
    values: dict[str, list[str]] = {}
    for name, value in headers:
        values.setdefault(name.lower(), []).append(value)
    one = {name: found[0] for name, found in values.items()}
    # A name that an attacker points at this address (rebinding) is in Host.
    is_browser = any(name.startswith("sec-fetch-") for name in values)
    allowed = rules.hosts if is_browser else (*rules.hosts, *rules.plain_hosts)
    if values.get("host") not in [[host] for host in allowed]:
        return Refusal(
            status=421, reason="open the address that 'holdfast serve' prints: this server has another name"
        )
    is_api = path.startswith(_API)
    if "*" in path or not path.startswith("/"):
        return Refusal(status=400, reason="not a path")
    # Browsers say where a request comes from. `same-site` is another port: perhaps an agent's server.
    site = one.get("sec-fetch-site")
    if site not in (None, "same-origin") and (is_api or site != "none"):
        return Refusal(status=403, reason="the request comes from another site")
    is_safe = method in _SAFE
    if not is_safe and (method != "POST" or not is_api):
        return Refusal(status=405, reason="this method is not used here")
    origins = values.get("origin", [])
    if (origins or not is_safe) and origins != [f"http://{one['host']}"]:
        return Refusal(status=403, reason="the request has no Origin, or another one")
    if is_api and path != _EXCHANGE and not is_known(_bearer(one)):
        return Refusal(status=401, reason="open the address that 'holdfast serve' prints")
    return None if is_safe else _check_unsafe(rules, path, values, one)


def _check_unsafe(
    rules: Rules, path: str, values: Mapping[str, list[str]], one: Mapping[str, str]
) -> Refusal | None:
    # A form cannot send this type, and a script of another site must ask first, which is refused.
    kind, _, rest = one.get("content-type", "").partition(";")
    if kind.strip().lower() != "application/json" or rest.strip().lower() not in ("", "charset=utf-8"):
        return Refusal(status=415, reason="only application/json is accepted")
    length = one.get("content-length")
    if len(values.get("content-length", ())) > 1 or "transfer-encoding" in one:
        return Refusal(status=411, reason="a body needs one length")
    if length is None or not length.isascii() or not length.isdecimal():
        return Refusal(status=411, reason="a body needs one length")
    if len(length) > 9 or int(length) > BODY_BYTES:
        return Refusal(status=413, reason=f"a request has at most {BODY_BYTES} bytes")
    if rules.is_read_only and path not in (_EXCHANGE, "/api/token"):
        return Refusal(status=403, reason="this server is read-only")
    return None


def _bearer(one: Mapping[str, str]) -> str:
    kind, _, value = one.get("authorization", "").partition(" ")
    return value if kind.lower() == "bearer" else ""


def response_headers(script_hashes: Sequence[str]) -> tuple[tuple[bytes, bytes], ...]:
    """Headers of every answer. `script_hashes`: of scripts inside the page (its import map)."""
    scripts = " ".join(("'self'", *(f"'{each}'" for each in script_hashes)))
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src {scripts}",
            "style-src 'self'",
            "img-src 'self'",
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
            # No text becomes markup or code, not even by a mistake in a page.
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
    )
    headers = {
        "content-security-policy": policy,
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "cross-origin-embedder-policy": "require-corp",
        "x-frame-options": "DENY",
        "permissions-policy": "camera=(), microphone=(), geolocation=()",
        "cache-control": "no-store",
    }
    return tuple((name.encode(), value.encode()) for name, value in headers.items())
