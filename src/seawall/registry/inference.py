"""Guess what a tool does from its name, for tools whose authors said nothing.

Opt-in, and nothing calls it: a wrong guess may repeat a payment. Show the guesses, edit them, and
give a tool what you agree with:

    guess = infer_annotations("read_file")
    print(guess.rule)                      # name 'read_file': reads
    tool = msgspec.structs.replace(tool, annotations=guess.annotations)

A name that no rule knows says nothing, so such a tool is neither repeated nor taken for harmless.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

import msgspec

from seawall.contract.annotations import Annotations, Risk


class Guess(msgspec.Struct, frozen=True):
    """What a name suggests, and by which rule."""

    annotations: Annotations
    rule: str
    """For people: what in the name led there."""


class _Rule(msgspec.Struct, frozen=True):
    does: str
    annotations: Annotations
    names: tuple[str, ...]
    """Exact, or with `*`; letters count as they are written."""

    def pattern(self, name: str) -> str | None:
        if name in self.names:
            return name
        words = (word.lower() for word in _WORDS.findall(name))
        if self.annotations.retry_safe and not _CHANGING.isdisjoint(words):
            return None  # a family of readers may have a member that changes something
        return next((one for one in self.names if "*" in one and fnmatchcase(name, one)), None)


_WORDS = re.compile(r"[A-Z]?[a-z]+")

_CHANGING = frozenset(
    (
        *("add", "append", "archive", "call", "cancel", "clear", "close", "commit", "copy"),
        *("create", "delete", "drop", "edit", "exec", "execute", "forget", "forward", "grant"),
        *("import", "insert", "install", "invite", "kill", "merge", "modify", "move", "order"),
        *("patch", "pay", "post", "publish", "purge", "push", "put", "remember", "remove"),
        *("rename", "replace", "reply", "reset", "restart", "run", "save", "send", "set"),
        *("share", "start", "stop", "store", "submit", "transfer", "trigger", "uninstall"),
        *("unset", "update", "upload", "upsert", "write"),
    )
)

_RULES = (
    _Rule("takes away", Annotations.for_destroying(), ("memory_delete*", "memory_clear*")),
    _Rule(
        "sends a request whose method is not known",
        Annotations(open_world=True),
        ("http_request",),
    ),
    _Rule("types into a terminal", Annotations.for_changing(), ("terminal.write*",)),
    _Rule(
        "reads",
        Annotations.for_reading(),
        (
            *("read_file", "list_files", "glob_files", "search_files", "get_time", "time"),
            *("get_device_info", "app_list", "app_info", "ui_dump", "logcat"),
            *("notification_read", "image_info", "context_recap", "context_search"),
            *("session_stats", "memory_find*", "memory_get*", "memory_list*", "memory_read*"),
            *("memory_recall*", "memory_search*", "terminal.snapshot*", "terminal.observe*"),
            *("terminal.backends*", "terminal.linux.status*", "terminal.ubuntu.status*"),
            "terminal.workspaces*.list",
        ),
    ),
    _Rule(
        "reads what is outside",
        Annotations.for_reading(open_world=True),
        (
            *("web_fetch", "web_search", "mcp_list", "mcp_connect", "github_get*"),
            *("github_read*", "github_search*", "github_list*"),
        ),
    ),
    _Rule(
        "takes away",
        Annotations.for_destroying(),
        (
            *("delete_file", "app_uninstall", "app_force_stop", "terminal.close*"),
            *("terminal.signal*", "skill_uninstall*"),
        ),
    ),
    _Rule(
        "puts a whole thing in place",
        Annotations.for_overwriting(),
        ("write_file", "download_file", "app_launch", "app_install", "terminal.resize*"),
    ),
    _Rule(
        "changes something",
        Annotations.for_changing(),
        (
            *("edit_file", "copy_move_file", "input_text", "ui_tap", "ui_swipe", "clipboard"),
            "screenshot",
        ),
    ),
)

_BY_RISK = {
    Risk.HIGH: Guess(Annotations.for_destroying(), "high risk: taken for one that takes away"),
    Risk.MEDIUM: Guess(Annotations.for_changing(), "medium risk: taken for one that changes"),
}

_NOTHING = Guess(Annotations(), "no rule knows the name: nothing is assumed")


def infer_annotations(name: str, risk: Risk | None = None) -> Guess:
    """Guess a tool's hints by its name, else by its risk. Low risk alone never means reading."""
    for rule in _RULES:
        pattern = rule.pattern(name)
        if pattern is not None:
            what = "name" if pattern == name else "names like"
            return Guess(rule.annotations, f"{what} {pattern!r}: {rule.does}")
    return _NOTHING if risk is None else _BY_RISK.get(risk, _NOTHING)
