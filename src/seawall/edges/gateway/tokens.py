"""Who may do what: bearer tokens with scopes, kept as digests and looked up by them.

Tokens come from a file, from the environment, or are made at the start. A file says them so:

    [tokens.ci-agent]
    token = "…"                        # or sha256 = "…", so that the file holds no secret
    scopes = ["call"]
    rate = "600/minute"                # of this client; the gateway's default if absent

`call` may list and call tools and read what was recorded, `approve` may answer approvals, and
`admin` may do all of that and open and close breakers.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import stat
import tomllib
from typing import TYPE_CHECKING, Any

import msgspec

from seawall.contract.errors import ConfigurationError, Fault

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

SCOPES = ("call", "approve", "admin")

MIN_LENGTH = 16
"""Characters of a token; what is shorter can be guessed."""
MAX_TOKENS = 1_000
OWN_NAMES = ("anybody", "nobody")
"""Names of who comes without a token."""
MAX_LENGTH = 4_096

_KEYS = ("token", "sha256", "scopes", "rate")


class Client(msgspec.Struct, frozen=True):
    """Somebody who calls."""

    name: str
    scopes: frozenset[str]
    rate: str | None = None

    def may(self, scope: str) -> bool:
        """Whether this client has a scope; `admin` has all."""
        return scope in self.scopes or "admin" in self.scopes


class Tokens:
    """The clients by the digest of their token."""

    def __init__(self, entries: Iterable[tuple[bytes, Client]] = ()) -> None:
        self._entries = tuple(entries)
        self._by_digest = dict(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __add__(self, other: Tokens) -> Tokens:
        return Tokens((*self._entries, *other._entries))

    def doubled(self) -> list[str]:
        """Say which clients cannot be told apart: by their name, or by their token."""
        names = [client.name for _, client in self._entries]
        digests = [digest for digest, _ in self._entries]
        twice = sorted({name for name in names if names.count(name) > 1})
        said = [f"two clients have the name {name}; rename one" for name in twice]
        said += [f"the name {name} is the gateway's own" for name in names if name in OWN_NAMES]
        if len(set(digests)) < len(digests):
            said.append("two clients have the same token, so one would get the other's scopes")
        return said

    def only(self, *names: str) -> Tokens:
        """Give those of some clients."""
        return Tokens(entry for entry in self._entries if entry[1].name in names)

    @property
    def clients(self) -> tuple[Client, ...]:
        """All clients."""
        return tuple(client for _, client in self._entries)

    def client_of(self, token: bytes) -> Client | None:
        """Find whose token this is, in a time that says nothing of any token.

        What is looked up is a digest, in a table whose order differs in each process; whoever
        does not know a token cannot choose a digest that is near its own.
        """
        return self._by_digest.get(hashlib.sha256(token).digest())


def token_of(name: str, token: str, *scopes: str, rate: str | None = None) -> Tokens:
    """Make one client of a token at hand."""
    return Tokens([(_digest(token), Client(name, frozenset(scopes), rate))])


def tokens_from_environment(environ: Mapping[str, str]) -> Tokens:
    """Read `SEAWALL_TOKEN` (may call) and `SEAWALL_ADMIN_TOKEN` (may do everything)."""
    found = Tokens()
    for variable, name, scope in (
        ("SEAWALL_TOKEN", "environment", "call"),
        ("SEAWALL_ADMIN_TOKEN", "admin", "admin"),
    ):
        token = environ.get(variable, "")
        if not token:
            continue
        if fault := _token_fault(token):
            raise ConfigurationError([Fault(fault, variable)])
        found += token_of(name, token, scope)
    return found


def tokens_from_file(path: Path) -> Tokens:
    """Read a file of tokens; all faults in one error. Others must not be able to read it."""
    try:
        mode = path.stat().st_mode
        document = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        said = error.strerror if isinstance(error, OSError) else str(error)
        raise ConfigurationError([Fault(f"cannot be read: {said}", file=str(path))]) from error
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        said = f"may be read by others; run `chmod 600 {path}`"
        raise ConfigurationError([Fault(said, file=str(path))])
    faults = [
        Fault("is not known; tokens stand in tables [tokens.NAME]", key, file=str(path))
        for key in document.keys() - {"tokens"}
    ]
    named = document.get("tokens", {})
    if not isinstance(named, dict) or len(named) > MAX_TOKENS:
        faults.append(Fault(f"must be at most {MAX_TOKENS} tables", "tokens", file=str(path)))
        named = {}
    entries = [_entry(name, table, str(path), faults) for name, table in named.items()]
    digests = [entry[0] for entry in entries if entry is not None]
    if len(set(digests)) < len(digests):
        said = "two clients have the same token; give each one of its own"
        faults.append(Fault(said, "tokens", file=str(path)))
    if faults:
        raise ConfigurationError(faults)
    return Tokens(entry for entry in entries if entry is not None)


class MadeToken:
    """A token for one run, in a file that nobody else can read, as long as the run lasts."""

    def __init__(self, path: Path, name: str = "local-token", scope: str = "admin") -> None:
        self.path = path
        self._token = secrets.token_urlsafe(32)
        self.tokens = token_of(name, self._token, scope)

    def write(self) -> None:
        """Write the file, in the place of a former one."""
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        beside = self.path.with_name(f"{self.path.name}.{os.getpid()}.{secrets.token_hex(4)}")
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(f"{self._token}\n")
        beside.replace(self.path)

    def remove(self) -> None:
        """Take the file away, unless it is that of another run by now."""
        with contextlib.suppress(OSError, UnicodeDecodeError):
            if self.path.read_text(encoding="utf-8").strip() == self._token:
                self.path.unlink()


def _entry(name: str, table: Any, file: str, faults: list[Fault]) -> tuple[bytes, Client] | None:
    key = f"tokens.{name}"
    if not isinstance(table, dict):
        faults.append(Fault("must be a table with token and scopes", key, file=file))
        return None
    odd = f"is not known; use {', '.join(_KEYS)}"
    wrong = [Fault(odd, f"{key}.{one}", file=file) for one in table.keys() - set(_KEYS)]
    digest = _digest_in(table, key, file, wrong)
    scopes = table.get("scopes", ["call"])
    if not isinstance(scopes, list) or not scopes or any(one not in SCOPES for one in scopes):
        said = f"must be a list out of {', '.join(SCOPES)} (got {scopes!r})"
        wrong.append(Fault(said, f"{key}.scopes", file=file))
        scopes = []
    rate = table.get("rate")
    if rate is not None:
        wrong.extend(_rate_faults(rate, f"{key}.rate", file))
    faults.extend(wrong)
    return None if wrong or digest is None else (digest, Client(name, frozenset(scopes), rate))


def _digest_in(table: dict[str, Any], key: str, file: str, faults: list[Fault]) -> bytes | None:
    token: Any = table.get("token")
    digest: Any = table.get("sha256")
    if (token is None) == (digest is None):
        faults.append(Fault("needs either token or sha256", key, file=file))
    elif token is not None:
        fault = _token_fault(token)
        if not fault:
            return _digest(token)
        faults.append(Fault(fault, f"{key}.token", file=file))
    else:
        try:
            found = bytes.fromhex(digest)
        except (TypeError, ValueError):
            found = b""
        if len(found) == 32:
            return found
        faults.append(Fault("must be 64 hexadecimal digits", f"{key}.sha256", file=file))
    return None


def _rate_faults(rate: Any, key: str, file: str) -> list[Fault]:
    from seawall.layers.rate_limit.strategies import parse_rate  # noqa: PLC0415  # only with a rate

    try:
        parse_rate(rate)
    except ConfigurationError as error:
        return [Fault(fault.message, key, file=file) for fault in error.faults]
    return []


def _token_fault(token: Any) -> str:
    if not isinstance(token, str) or not MIN_LENGTH <= len(token) <= MAX_LENGTH:
        return f"must be a text of {MIN_LENGTH} to {MAX_LENGTH} characters"
    if not token.isascii() or not token.isprintable() or " " in token:
        return "must be of printable ASCII characters without blanks"
    return ""


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
