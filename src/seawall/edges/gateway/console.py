"""The console's page: its files, sent as they are, and the table of characters nobody sees."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from seawall.contract.failure import FailureCode
from seawall.edges.gateway.answers import Answer, refusal
from seawall.pipeline.visible import UNSEEN

if TYPE_CHECKING:
    from seawall.edges.gateway.asked import Asked

_SCRIPTS = ("console", "drawn", "form", "gateway", "results", "settled", "unseen")
_MEDIA = {
    "index.html": b"text/html; charset=utf-8",
    "console.css": b"text/css; charset=utf-8",
    **{f"{name}.js": b"text/javascript; charset=utf-8" for name in _SCRIPTS},
}
_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'"
    b" data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = (
    (b"content-security-policy", _POLICY),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)


def console_answer(asked: Asked) -> Answer:
    """Send the page, or one of the files that it loads."""
    name = "index.html" if asked.path == "/" else asked.part("file")
    if name not in _MEDIA:
        return refusal(FailureCode.NOT_FOUND, "not_found", f"there is no file {name[:100]!r}")
    return Answer(200, _content(name), _HEADERS, _MEDIA[name])


@cache
def _content(name: str) -> bytes:
    if name == "unseen.js":
        return _table()
    return files("seawall.edges.gateway").joinpath("page", name).read_bytes()


def _table() -> bytes:
    """Write the one table there is as a pattern for the page."""
    ranges = "".join(f"\\u{{{first:x}}}-\\u{{{last:x}}}" for first, last in UNSEEN)
    return f"export const UNSEEN = /[{ranges}]/gu;\n".encode()
