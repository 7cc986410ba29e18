"""Names that a model API takes, each for one tool, and the way back.

Providers allow fewer letters and shorter names than tools have. A name that fits stays as it is; of
others, what does not fit becomes `_`. What another tool has already, or what is cut, ends in a hash
of the whole name. A name once given stays: tools that come later cannot move it, so a prompt keeps
its prefix, and a call that a model still remembers reaches the tool it meant.
"""

from __future__ import annotations

import re
import unicodedata
from hashlib import blake2b
from typing import TYPE_CHECKING

from seawall.contract.errors import ConfigurationError, Fault

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ALLOWED = re.compile(r"[A-Za-z0-9_-]")
LONGEST = 64
MAX_KEPT = 10_000
"""Names of tools that are gone which are still kept for the tools that had them."""

_HASH = 8


class Names:
    """Exported names of tools; `known` are pairs that were given before, as `snapshot` has them.

    Tools that are asked for first are named first, so ask in the registry's order. `allowed` is a
    pattern for one character.
    """

    def __init__(
        self,
        names: Iterable[str] = (),
        *,
        allowed: re.Pattern[str] = ALLOWED,
        longest: int = LONGEST,
        known: Mapping[str, str] | None = None,
    ) -> None:
        if longest < 2 * _HASH:
            raise ConfigurationError([Fault(f"must be {2 * _HASH} at least", "longest")])
        self._allowed = allowed
        self._longest = longest
        self._exported: dict[str, str] = {}
        self._originals: dict[str, str] = {}
        for original, exported in (known or {}).items():
            self._keep(original, exported)
        self.export(names)

    def export(self, names: Iterable[str]) -> list[str]:
        """Give the exported name of each, in the same order."""
        wanted = list(names)
        # Those that fit come first, so that they stay as they are wherever they stand.
        for name in filter(self._fits, wanted):
            self.exported(name)
        found = [self.exported(name) for name in wanted]
        if len(self._exported) > len(wanted) + MAX_KEPT:
            self._forget(set(wanted))
        return found

    def exported(self, name: str) -> str:
        """The name under which a tool is declared; the same each time."""
        found = self._exported.get(name)
        if found is None:
            found = next(one for one in self._candidates(name) if one not in self._originals)
            self._keep(name, found)
        return found

    def original(self, exported: str) -> str | None:
        """The tool's own name, or None if no tool was declared so."""
        return self._originals.get(exported)

    def snapshot(self) -> dict[str, str]:
        """All pairs, to be stored and given again as `known`."""
        return dict(self._exported)

    def _candidates(self, name: str) -> Iterable[str]:
        """Names to try: the plain one, then with hashes of the name, of ever more rounds."""
        plain = self._plain(name)
        if plain and len(plain) <= self._longest:
            yield plain
        rounds = 0
        while True:
            text = name if rounds == 0 else f"{name}\0{rounds}"
            digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_HASH // 2)
            yield f"{plain[: self._longest - _HASH - 1]}_{digest.hexdigest()}"
            rounds += 1

    def _fits(self, name: str) -> bool:
        return 0 < len(name) <= self._longest and all(map(self._allowed.match, name))

    def _plain(self, name: str) -> str:
        if all(map(self._allowed.match, name)):
            return name
        # `é` is an `e` with an accent: what is left of a name should still be read.
        letters = unicodedata.normalize("NFKD", name)
        kept = (char for char in letters if not unicodedata.combining(char))
        return "".join(char if self._allowed.match(char) else "_" for char in kept)

    def _keep(self, original: str, exported: str) -> None:
        taken = self._originals.get(exported)
        if taken not in (None, original):
            said = f"is given to {taken!r} and to {original!r}; a name can only mean one tool"
            raise ConfigurationError([Fault(said, exported)])
        self._exported[original] = exported
        self._originals[exported] = original

    def _forget(self, present: set[str]) -> None:
        gone = [name for name in self._exported if name not in present]
        for name in gone[: len(gone) - MAX_KEPT]:
            del self._originals[self._exported.pop(name)]
