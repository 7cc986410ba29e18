"""The chain of the audit log: each entry holds the hash of the one before it.

    hash = HMAC-SHA256(key, text)      text = JSON of the entry with `seq` and `previous`

Without a key it is a plain SHA-256, which shows mistakes but not a forger who writes all anew.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import TYPE_CHECKING, TypeVar

import msgspec

from seawall.contract.audit import (
    AuditEntry,
    AuditFault,
    AuditMark,
    AuditRecord,
    AuditReport,
    Private,
)
from seawall.contract.errors import SealBroken
from seawall.stores.keys import derived, id_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from seawall.stores.keys import Keys
    from seawall.stores.seal import Seal

T = TypeVar("T")

MAX_TEXT = 300
MAX_FAULTS = 20

_SEALED = "why_sealed"

BEGINNING = AuditMark(0, "")
"""What the first entry follows."""


class Chain:
    """Makes and checks links."""

    def __init__(self, keys: Keys | None, seal: Seal | None = None) -> None:
        self._seal = seal
        self._keys = {} if keys is None else {id_of(k).hex(): derived(k, "audit") for k in keys.all}
        self._current = next(iter(self._keys), "")

    def link(self, before: AuditMark, entry: AuditEntry) -> AuditRecord:
        """Put an entry behind another."""
        seq = before.seq + 1
        private = entry.why if isinstance(entry.why, Private) else None
        if private is not None:
            entry = msgspec.structs.replace(entry, why="")
        fields = {name: _cut(value) for name, value in msgspec.to_builtins(entry).items()}
        if private and self._seal is not None:
            fields[_SEALED] = _sealed(self._seal, _cut(str(private)), seq)
        fields["seq"] = seq
        fields["previous"] = before.hash
        text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
        key = self._current
        return AuditRecord(seq=seq, text=text, key=key, hash=self._hash(text, key) or "")

    def why(self, record: AuditRecord) -> str:
        """Tell what an entry says of why, opened if it is sealed; raises `SealBroken`."""
        try:
            fields = json.loads(record.text)
            sealed = base64.b64decode(fields.get(_SEALED, ""))
        except (ValueError, TypeError, AttributeError) as error:
            raise SealBroken(f"entry {record.seq} cannot be read") from error
        if not sealed:
            return str(fields.get("why", ""))
        if self._seal is None:
            raise SealBroken("the state has no key to open this with")
        return self._seal.open(sealed, _place(record.seq)).decode("utf-8", "surrogatepass")

    def _hash(self, text: str, key: str) -> str | None:
        """Hash a text; None without the key."""
        plain = text.encode("utf-8", "surrogatepass")
        if not key:
            return hashlib.sha256(plain).hexdigest()
        secret = self._keys.get(key)
        return None if secret is None else hmac.digest(secret, plain, hashlib.sha256).hex()

    def checker(
        self,
        expected: AuditMark | None = None,
        *,
        start: AuditMark = BEGINNING,
        keyed: bool = False,
    ) -> Checker:
        """Give what reads the log from `start` on and finds what is wrong.

        `keyed` says that there always was a key, so that an entry without one is a forger's.
        """
        return Checker(self._hash, expected, start, keyed=keyed)


class Checker:
    """Reads records in order. `expected` is an entry that must be there, as it was noted before."""

    def __init__(
        self,
        hashed: Callable[[str, str], str | None],
        expected: AuditMark | None,
        start: AuditMark,
        *,
        keyed: bool = False,
    ) -> None:
        self._hashed = hashed
        self._expected = expected
        self._last = start
        self._count = self._unkeyed = 0
        self._keyed = keyed
        self._faults: list[AuditFault] = []

    def read(self, records: Iterable[AuditRecord]) -> None:
        """Check the next records."""
        for record in records:
            self._check(record)
            self._last = AuditMark(record.seq, record.hash)
            self._count += 1

    def report(self, head: AuditMark) -> AuditReport:
        """Say what was found; `head` is what the log itself says was written last."""
        if head != self._last:
            self._fault(head.seq, f"the log ends at {self._last.seq}, but {head.seq} were written")
        expected = self._expected
        if expected is not None and expected.seq > self._last.seq:
            self._fault(expected.seq, "the end of the log was cut off: this entry was there")
        return AuditReport(
            entries=self._count,
            faults=tuple(self._faults),
            unkeyed=self._unkeyed,
            last=self._last if self._count else None,
        )

    def _check(self, record: AuditRecord) -> None:
        last = self._last
        if record.seq != last.seq + 1:
            self._fault(record.seq, f"what should follow {last.seq} is not there")
        self._check_key(record)
        self._check_hash(record)
        self._check_text(record, last)
        expected = self._expected
        if expected is not None and expected.seq == record.seq and expected.hash != record.hash:
            self._fault(record.seq, "it is not the entry that was noted before")

    def _check_key(self, record: AuditRecord) -> None:
        if record.key:
            self._keyed = True
            return
        self._unkeyed += 1
        if self._keyed:
            self._fault(record.seq, "it was written without a key, where there was one already")

    def _check_hash(self, record: AuditRecord) -> None:
        hashed = self._hashed(record.text, record.key)
        if hashed is None:
            self._fault(record.seq, f"it cannot be checked without the key {record.key[:8]}")
        elif not hmac.compare_digest(hashed, record.hash):
            self._fault(record.seq, "it was changed")

    def _check_text(self, record: AuditRecord, last: AuditMark) -> None:
        try:
            fields = json.loads(record.text)
            found = AuditMark(fields["seq"], fields["previous"])
        except (ValueError, KeyError, TypeError):
            self._fault(record.seq, "it cannot be read")
            return
        if found.seq != record.seq:
            self._fault(record.seq, f"it was put here from place {found.seq}")
        if found.hash != last.hash:
            self._fault(record.seq, f"it does not follow from entry {last.seq}")

    def _fault(self, seq: int, said: str) -> None:
        if len(self._faults) < MAX_FAULTS:
            self._faults.append(AuditFault(seq, said))


def _cut(value: T) -> T | str:
    return (
        f"{value[: MAX_TEXT - 1]}…" if isinstance(value, str) and len(value) > MAX_TEXT else value
    )


def _sealed(seal: Seal, text: str, seq: int) -> str:
    closed = seal.close(text.encode("utf-8", "surrogatepass"), _place(seq))
    return base64.b64encode(closed).decode()


def _place(seq: int) -> str:
    return f"audit:{seq}:why"
