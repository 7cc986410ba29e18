"""Tell a model of tools that come and go without rewriting what it was told before.

A changed list of tools at the top of a prompt spoils the cache of all that follows. Instead, system
messages inside the conversation say what was added and removed:

    {"role": "system", "content": "", "toolsAdded": [declaration, …], "toolsRemoved": [{"name": …}]}

Works with declarations of any shape. Nothing that is given is changed.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from seawall.pipeline.digest import canonical_text
from seawall.registry.declarations import name_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Declaration = dict[str, Any]
Message = dict[str, Any]

Comparison = Literal["value", "text"]
"""Whether the order of keys inside a declaration counts as a change: not by value."""

Transport = Literal["none", "additions", "changes"]
"""What of the messages a provider understands: nothing, added tools, or added and removed ones."""

ADDED = "toolsAdded"
REMOVED = "toolsRemoved"


class DeclarationChanges(msgspec.Struct, frozen=True):
    """What has to be said: a changed tool is removed and added."""

    added: tuple[Declaration, ...] = ()
    """In the order of the new list."""
    removed: tuple[str, ...] = ()
    """In the order of the old one."""

    def __bool__(self) -> bool:
        return bool(self.added or self.removed)

    def as_message(self) -> Message:
        """Write the fields of a message; what is empty is left out."""
        found: Message = {ADDED: list(self.added)} if self.added else {}
        if self.removed:
            found[REMOVED] = [{"name": name} for name in self.removed]
        return found


class Declared(msgspec.Struct, frozen=True):
    """What the messages of a conversation have declared."""

    current: tuple[Declaration, ...]
    """The tools there are now, in the order in which a model knows them."""
    declared: tuple[Declaration, ...]
    """All tools there ever were, each as it was declared last."""
    redefinitions: bool
    """Whether a name was declared again with another content."""
    non_additive: bool
    """Whether anything was removed or declared again."""
    stable: tuple[Declaration, ...]
    """What a provider that understands additions only is given at the top."""
    folded: int
    """How many system messages `stable` holds."""
    messages: int
    """How many system messages there are."""

    def top_level(self, transport: Transport) -> tuple[Declaration, ...]:
        """The tools to be given at the top of a request."""
        return {"none": self.current, "additions": self.stable, "changes": ()}[transport]

    def folded_messages(self, transport: Transport) -> int:
        """How many system messages, from the first, the top holds already."""
        return {"none": self.messages, "additions": self.folded, "changes": 0}[transport]


def declaration_changes(
    previous: Sequence[Declaration], current: Sequence[Declaration], *, by: Comparison = "value"
) -> DeclarationChanges:
    """Compare two lists of declarations; the order of the lists is no change."""
    text = _TEXTS[by]
    before = {name_of(one): text(one) for one in previous}
    after = {name_of(one): text(one) for one in current}
    return DeclarationChanges(
        added=tuple(one for one in current if before.get(name_of(one)) != text(one)),
        removed=tuple(name for name, said in before.items() if after.get(name) != said),
    )


def replay_declarations(
    messages: Sequence[Mapping[str, Any]], *, by: Comparison = "value"
) -> Declared:
    """Read what the messages of a conversation declare, from the first to the last."""
    replaying = _Replay(_TEXTS[by])
    for position, message in enumerate(messages):
        if message.get("role") == "system":
            replaying.take(message, leads=position == 0)
    return replaying.declared()


def announce_declarations(
    history: Sequence[Message],
    pending: Sequence[Message],
    tools: Sequence[Declaration],
    *,
    by: Comparison = "value",
) -> list[Message]:
    """Give the pending messages so that, after them, exactly `tools` are declared.

    Without a difference they are given as they are. Else the last pending system message says it,
    in place of its own claims; if there is none, a new one comes before the first pending message.
    """

    def missing_after(messages: Sequence[Message]) -> DeclarationChanges:
        return declaration_changes(replay_declarations(messages, by=by).current, tools, by=by)

    if not missing_after([*history, *pending]):
        return list(pending)
    places = [at for at, message in enumerate(pending) if message.get("role") == "system"]
    if not places:
        said = missing_after(history).as_message()
        return [{"role": "system", "content": "", **said}, *pending]
    found = list(pending)
    bare = {key: item for key, item in found[places[-1]].items() if key not in (ADDED, REMOVED)}
    found[places[-1]] = bare
    found[places[-1]] = {**bare, **missing_after([*history, *found]).as_message()}
    return found


class _Replay:
    def __init__(self, text: Callable[[Declaration], str]) -> None:
        self._text = text
        self._current: dict[str, Declaration] = {}
        self._declared: dict[str, Declaration] = {}
        self._redefined = self._non_additive = False
        self._stable: tuple[Declaration, ...] = ()
        self._folded = self._messages = 0

    def take(self, message: Mapping[str, Any], *, leads: bool) -> None:
        self._messages += 1
        moved = leads
        for removed in message.get(REMOVED) or ():
            moved = self._non_additive = True
            self._current.pop(name_of(removed), None)
        for added in message.get(ADDED) or ():
            moved = self._add(added) or moved
        if moved:
            self._stable = tuple(self._current.values())
            self._folded = self._messages

    def _add(self, added: Declaration) -> bool:
        """Take an addition; whether its name was ever declared before."""
        name = name_of(added)
        known = self._declared.get(name)
        self._current[name] = self._declared[name] = added
        if known is None:
            return False
        self._non_additive = True
        self._redefined = self._redefined or self._text(known) != self._text(added)
        return True

    def declared(self) -> Declared:
        return Declared(
            current=tuple(self._current.values()),
            declared=tuple(self._declared.values()),
            redefinitions=self._redefined,
            non_additive=self._non_additive,
            stable=self._stable,
            folded=self._folded,
            messages=self._messages,
        )


_TEXTS: Mapping[str, Callable[[Declaration], str]] = {"value": canonical_text, "text": json.dumps}
