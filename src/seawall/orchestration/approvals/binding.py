"""What an approval is bound to: the tool's definition, and the very arguments."""

from __future__ import annotations

import hmac
import json
from collections.abc import Mapping
from hashlib import blake2b, scrypt
from typing import TYPE_CHECKING, Any

import msgspec

from seawall.pipeline.digest import canonical_text

if TYPE_CHECKING:
    from seawall.contract.tool import Tool
    from seawall.orchestration.approvals.store import Box

SALT_BYTES = 16
_MAC_BYTES = 16
_WORK = 2**13
"""Work for each guess at arguments whose salt is not kept sealed: about 20 ms, 8 MiB."""


def definition_of(tool: Tool) -> dict[str, str]:
    """Fingerprint the parts of a tool that a person relied on, each by itself."""
    parts = {
        "description": tool.description,
        "schema": tool.input_schema,
        "risk": int(tool.effective_risk),
        "annotations": msgspec.structs.asdict(tool.annotations),
    }
    if tool.origin:
        parts["server"] = tool.origin
    return {name: _fingerprint(part) for name, part in parts.items()}


def changes(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Name the parts that are not what they were."""
    return [name for name in {**before, **now} if before.get(name) != now.get(name)]


def _fingerprint(part: Any) -> str:
    text = json.dumps(part, sort_keys=True, default=_plain)
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    return f"<{type(value).__name__}>"


def digest_of(tool: str, arguments: Any, salt: bytes, *, guessable: bool) -> str:
    """Digest arguments: length, count of characters that are no blanks, and a keyed fingerprint.

    `guessable` says that the salt can be read by whoever reads the digest: then each guess at the
    arguments is made to cost time.
    """
    text = canonical_text(arguments)
    plain = f"{tool}\0{text}".encode("utf-8", "surrogatepass")
    if guessable:
        mac = scrypt(plain, salt=salt, n=_WORK, r=8, p=1, dklen=_MAC_BYTES)
    else:
        mac = blake2b(plain, key=salt, digest_size=_MAC_BYTES).digest()
    return f"{len(text)}/{len(text) - text.count(' ')}:{mac.hex()}"


def names_of(box: Box | None, tool: str, arguments: Any) -> tuple[str, ...]:
    """Give the names under which requests for a call are found; a new one is kept by the first.

    A name is the same for all requests of a call, so it is made with a key that is not kept beside
    it: else whoever reads it could try arguments. Without a key it names the tool alone.
    """
    alone = blake2b(tool.encode("utf-8", "surrogatepass"), digest_size=_MAC_BYTES).hexdigest()
    if box is None:
        return (alone,)
    plain = f"{tool}\0{canonical_text(arguments)}".encode("utf-8", "surrogatepass")
    return (*box.names(plain), alone)


def same_digest(one: str, other: str) -> bool:
    """Compare without telling by the time it takes where they differ."""
    return hmac.compare_digest(one.encode(), other.encode())
