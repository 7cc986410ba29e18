"""Which definitions of tools somebody has accepted, kept in a file.

A tool's text and schema are read by the model as instructions: a server that changes them later
changes what the model does. The first definition of a tool that is seen is taken as accepted. One
that differs is kept beside it until somebody looks at the difference and accepts exactly that.
"""

from __future__ import annotations

import contextlib
import difflib
import json
import os
import shlex
import sys
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from seawall.contract.errors import ConfigurationError, Fault
from seawall.pipeline.visible import visible_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PINNED = ("title", "description", "inputSchema", "outputSchema", "annotations")
"""What of a declaration is held to: what a model reads, and the hints."""

MAX_PINS = 10_000
"""Tools of one server whose definitions are held. None is forgotten for another: a server could
else make room, and then change what was accepted."""

Definition = dict[str, Any]


class Pin(msgspec.Struct, omit_defaults=True):
    """One tool: the definition that was accepted, and the other one that was seen since."""

    accepted: Definition
    changed: Definition | None = None


class _File(msgspec.Struct):
    version: int = 1
    servers: dict[str, dict[str, Pin]] = {}


class Change(msgspec.Struct, frozen=True):
    """A tool whose definition is not the accepted one."""

    server: str
    tool: str
    accepted: Definition
    changed: Definition
    pins: str = ""
    """The file that holds it."""

    @property
    def digest(self) -> str:
        """Names the new definition; to accept it is to name it."""
        return digest_of(self.changed)

    @property
    def fields(self) -> tuple[str, ...]:
        """Which parts differ."""
        return tuple(
            key for key in PINNED if _text(self.accepted.get(key)) != _text(self.changed.get(key))
        )

    def difference(self) -> list[str]:
        """The lines that differ, as `diff -u` writes them."""
        return list(
            difflib.unified_diff(
                _lines(self.accepted), _lines(self.changed), "accepted", "changed", lineterm=""
            )
        )

    @property
    def command(self) -> str:
        """What accepts it, at a shell. Names are quoted: they are the server's to choose."""
        words = [*self._where, self.server, self.tool, self.digest]
        return f"seawall mcp pins accept {' '.join(map(shlex.quote, words))}"

    @property
    def _where(self) -> list[str]:
        return ["--pins", self.pins] if self.pins else []

    def __str__(self) -> str:
        if not self.accepted:
            said = f"the server has declared more than {MAX_PINS} tools by now, and this one is new"
            return f"{said}; take what is gone out of {self.pins}" if self.pins else said
        said = f"its definition is not the accepted one ({', '.join(self.fields)} changed)"
        if not self.pins:
            return said
        look = f"seawall mcp pins show {' '.join(map(shlex.quote, self._where))}"
        return f"{said}; look at it with `{look}`, and accept it with `{self.command}`"


class Pins:
    """The accepted definitions; without a path they live as long as this object."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._kept = _File()
        with self._locked():
            pass  # a file that is no good is told of at once

    def check(self, server: str, declared: list[Mapping[str, Any]]) -> dict[str, Change]:
        """Compare what a server declares; what is new is accepted, and what differs is noted.

        Gives the changes by the tools' names on the server.
        """
        found: dict[str, Change] = {}
        with self._locked() as kept:
            known = kept.servers.setdefault(server, {})
            for one in declared:
                name = str(one.get("name"))
                definition = definition_of(one)
                if name not in known and len(known) >= MAX_PINS:
                    found[name] = self._change(server, name, {}, definition)
                    continue
                pin = known.setdefault(name, Pin(definition))
                same = _text(pin.accepted) == _text(definition)
                pin.changed = None if same else definition
                if not same:
                    found[name] = self._change(server, name, pin.accepted, definition)
        return found

    def changes(self) -> list[Change]:
        """All tools whose last definition is not the accepted one."""
        with self._locked() as kept:
            return [
                self._change(server, name, pin.accepted, pin.changed)
                for server, tools in kept.servers.items()
                for name, pin in tools.items()
                if pin.changed is not None
            ]

    def counts(self) -> dict[str, int]:
        """How many definitions are held, by server."""
        with self._locked() as kept:
            return {server: len(tools) for server, tools in kept.servers.items()}

    def accept(self, server: str, tool: str, digest: str) -> Change:
        """Accept the definition of this digest; raises ConfigurationError if it is another by now.

        A digest may be shortened to its first 8 digits.
        """
        with self._locked() as kept:
            pin = kept.servers.get(server, {}).get(tool)
            if pin is None or pin.changed is None:
                said = (
                    "has no change that waits to be accepted; `seawall mcp pins show` lists those"
                )
                raise ConfigurationError([Fault(said, f"{server} {tool}")])
            change = self._change(server, tool, pin.accepted, pin.changed)
            if len(digest) < 8 or not digest_of(pin.changed, 64).startswith(digest):
                said = f"its changed definition is {change.digest}, not {digest}; look at it again"
                raise ConfigurationError([Fault(said, f"{server} {tool}")])
            pin.accepted, pin.changed = pin.changed, None
            return change

    def _change(self, server: str, tool: str, accepted: Definition, changed: Definition) -> Change:
        return Change(
            server, tool, accepted, changed, "" if self._path is None else str(self._path)
        )

    @contextlib.contextmanager
    def _locked(self) -> Iterator[_File]:
        """Read, let change, and write if it was changed; several processes take turns."""
        if self._path is None:
            yield self._kept
            return
        with _lock(self._path):
            kept = _read(self._path)
            before = msgspec.json.encode(kept)
            yield kept
            if msgspec.json.encode(kept) != before:
                _write(self._path, kept)


def pins_path(config: Path) -> Path:
    """Where the pins of a configuration are kept by default: beside it."""
    return config.with_name(f"{config.stem}.pins.json")


def definition_of(declared: Mapping[str, Any]) -> Definition:
    """The part of a declaration that is held to."""
    return {key: declared[key] for key in PINNED if declared.get(key) is not None}


def digest_of(definition: Definition, length: int = 12) -> str:
    """A name for a definition, the same wherever it is made."""
    return sha256(_text(definition).encode("utf-8", "surrogatepass")).hexdigest()[:length]


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _lines(definition: Definition) -> list[str]:
    text = json.dumps(definition, indent=2, sort_keys=True, ensure_ascii=False)
    # What a reader would not see a model reads all the same.
    return visible_json(text).split("\n")


def _read(path: Path) -> _File:
    try:
        return msgspec.json.decode(path.read_bytes(), type=_File)
    except FileNotFoundError:
        return _File()
    except OSError as error:
        said = f"cannot be read: {error.strerror or type(error).__name__}"
    except (ValueError, msgspec.MsgspecError) as error:
        said = f"is no file of accepted definitions: {error}"
    raise ConfigurationError([Fault(said, "pins", file=str(path))])


def _write(path: Path, kept: _File) -> None:
    """Write it whole or not at all, for this user only."""
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(msgspec.json.format(msgspec.json.encode(kept), indent=1) + b"\n")
            Path(name).replace(path)
        finally:
            Path(name).unlink(missing_ok=True)
    except OSError as error:
        raise _not_writable(path, error) from None


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[None]:
    if sys.platform == "win32":
        yield
        return
    import fcntl  # noqa: PLC0415  # not on every platform

    try:
        # The folder is locked, as the file itself is replaced; so no other file is left behind.
        handle = os.open(path.parent, os.O_RDONLY)
    except OSError as error:
        raise _not_writable(path, error) from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _not_writable(path: Path, error: OSError) -> ConfigurationError:
    said = (
        f"cannot be written: {error.strerror or type(error).__name__}; name another file with"
        " --pins, or 'pins' in code"
    )
    return ConfigurationError([Fault(said, "pins", file=str(path))])
