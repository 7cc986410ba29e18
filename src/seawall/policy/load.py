"""Policy files on disk: TOML with units, one extending another.

    extends = "default"              # a ready-made name, or the path of a file beside this one
    [presets.network]                # changes a preset, or makes one
    [default]                        # replaces the rule by annotations
    [tools.http_check]               # an exact name; [tools."git_*"] is a pattern
    [tools.http_check.breaker]       # or `breaker = false`
    [families.reading]               # match, tags, categories, servers, annotations choose tools
    [risk]                           # ask_from or strict; allow, ask, deny
    [risk.tools]                     # the risk of tools: delete_file = "high"
    [[risk.rules]]                   # what arguments decide: tool, argument, a condition, decide
    [trace]                          # capacity
    [loop]                           # threshold, window, …; or `loop = false`
    [console]                        # allow: what the gateway's page may run
    [shared]                         # url_env, replicas, timeout_s: what processes share

Durations are seconds or `"250ms"`, `"30s"`, `"2m"`, `"1h"`; sizes are bytes or `"256KiB"`; `false`
takes a limit away. A file says its changes over the one that it extends, key by key; lists are
replaced, and a section that names a `preset` replaces the whole section. Nothing unknown is passed
over, and all faults are told at once, each with its line.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from seawall.contract.approval import WaitingRoom
from seawall.contract.errors import ConfigurationError, Fault
from seawall.policy.changes import unknown
from seawall.policy.origins import Origins, fault_at
from seawall.policy.overrides import is_overridden, read_overrides
from seawall.policy.places import find_places
from seawall.policy.ready_made import label_of, ready_made, ready_made_names
from seawall.policy.settings import (
    AuditSettings,
    ConsoleSettings,
    HttpCheckSettings,
    LoopSettings,
    RiskSettings,
    SharedSettings,
    TraceSettings,
)
from seawall.policy.sheet import Sheet, read_sheet

if TYPE_CHECKING:
    from collections.abc import Mapping

S = TypeVar("S")

_KINDS: Mapping[str, type[Any]] = {
    "trace": TraceSettings,
    "loop": LoopSettings,
    "console": ConsoleSettings,
    "audit": AuditSettings,
    "approvals": WaitingRoom,
    "http_check": HttpCheckSettings,
    "shared": SharedSettings,
}
"""What the sections of plain settings become, under the same names as arguments of `Policies`."""

MAX_BYTES = 256 * 1024
"""A policy file is written by hand; what is larger is something else."""

MAX_FILES = 16
"""How long a chain of `extends` may be."""

_AT = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


def read_policy_file(
    path: str | Path,
    environment: Mapping[str, str] | None = None,
    over: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Read a policy file and those it extends, as arguments of `Policies`.

    `over` is what another file, that extends this one, would say. Variables of `environment` that
    begin with `SEAWALL_POLICY__` are laid over the files. What could not be read is noted in
    `origins`, to be told with all else that is wrong.
    """
    chain, _ = _chain(Path(path))
    sheet = chain.pop()
    while chain:
        sheet = chain.pop().over(sheet)
    if over is not None:
        sheet = read_sheet(over, {}).over(sheet)
    if environment and is_overridden(environment):
        sheet = read_overrides(environment, sheet).over(sheet)
    origins = Origins(sheet.places, sheet.faults)
    risk = dict(sheet.risk)
    if "ask_from" in risk and "allow" in risk:
        risk["ask_listed_from"] = risk.pop("ask_from")
    return {
        **sheet.rules(),
        "risk": _settings(RiskSettings, risk, "risk", origins),
        **{
            name: _settings(kind, sheet.settings.get(name, {}), name, origins)
            for name, kind in _KINDS.items()
        },
        **({"loop": None} if sheet.has_loop is False else {}),
        "origins": origins,
    }


def policy_files(path: str | Path) -> tuple[Path, ...]:
    """Name the file and those that it extends, as far as they can be read now."""
    _, files = _chain(Path(path))
    return tuple(files)


def refuse_blank(path: str | Path) -> None:
    """Refuse a file without a letter, or one such that it extends, as `ConfigurationError`.

    For files that are taken while calls go on: one that is emptied before it is written, or that a
    full disk cut off, would else put every rule back to its default. Comments are letters.
    """
    blank = [file for file in policy_files(path) if _is_blank(file)]
    if blank:
        said = 'is empty; for a policy of defaults alone, write `extends = "default"`'
        raise ConfigurationError([Fault(said, file=label_of(file)) for file in blank])


def _is_blank(path: Path) -> bool:
    try:
        return not path.read_bytes().strip()
    except OSError:
        return False  # whoever loads it says what is wrong


def _settings(kind: type[S], values: dict[str, Any], section: str, origins: Origins) -> S:
    try:
        return kind(**values)
    except ConfigurationError as error:
        origins.faults_of(error, (section,))
        return kind()


def _chain(path: Path) -> tuple[list[Sheet], list[Path]]:
    """Read a file, then the one it extends, and so on to the last; tell which they were."""
    label = label_of(path)
    sheets: list[Sheet] = []
    seen: list[Path] = []
    while True:
        sheet = _read(path, label)
        sheets.append(sheet)
        seen.append(path.resolve())
        if sheet.extends is None:
            return sheets, seen
        try:
            path, label = _extended(sheet.extends, path, label, seen)
        except ValueError as error:
            sheet.faults.append(fault_at(("extends",), str(error), sheet.places))
            return sheets, seen


def _extended(extends: str, path: Path, label: str, seen: list[Path]) -> tuple[Path, str]:
    """Find the file that is extended, and what to call it."""
    if extends.endswith(".toml"):
        found, name = path.parent / extends, str(Path(label).parent / extends)
    elif extends in (names := ready_made_names()):
        found = ready_made(extends)
        name = label_of(found)
    else:
        raise ValueError(
            f"{extends!r} {unknown(extends, names)}; a file of your own is named with its .toml"
        )
    if not found.is_file():
        raise ValueError(
            f"there is no file {name}; give its path from here, or the name of a ready-made one"
        )
    if found.resolve() in seen:
        raise ValueError(f"{name} extends this file in turn; take one of the two out")
    if len(seen) == MAX_FILES:
        raise ValueError(
            f"this is a chain of more than {MAX_FILES} files; put some of them together"
        )
    return found, name


def _read(path: Path, label: str) -> Sheet:
    """Read one file; what is wrong with it is noted in the sheet."""
    try:
        text = _text(path)
    except UnicodeDecodeError as error:
        before = error.object[: error.start]
        line, column = before.count(b"\n") + 1, len(before) - before.rfind(b"\n")
        return _unread(
            f"is no UTF-8 text (byte {error.start}); save it as that", label, line, column
        )
    except OSError as error:
        return _unread(f"cannot be read: {error.strerror or type(error).__name__}", label)
    try:
        document = tomllib.loads(text)
    except RecursionError:
        return _unread("has brackets that are nested too deep; no key needs that many", label)
    except ValueError as error:
        return Sheet(faults=[_syntax_fault(str(error), text, label)])
    return read_sheet(document, find_places(text, label))


def _text(path: Path) -> str:
    if path.is_dir():
        raise IsADirectoryError(0, "it is a folder; name a file in it")
    if not path.is_file():
        known = (
            f'; ready_made("{path}") finds one of Seawall'
            if str(path) in ready_made_names()
            else ""
        )
        raise FileNotFoundError(0, f"there is no such file{known}")
    with path.open("rb") as file:
        raw = file.read(MAX_BYTES + 1)
    if len(raw) > MAX_BYTES:
        raise OSError(0, f"it is larger than {MAX_BYTES // 1024} KiB, which no policy needs")
    # Line ends are made equal as `tomllib` does, so that places fit what it read.
    return raw.decode("utf-8-sig").replace("\r\n", "\n")


def _unread(message: str, label: str, line: int | None = None, column: int | None = None) -> Sheet:
    return Sheet(faults=[Fault(message, file=label, line=line, column=column)])


def _syntax_fault(message: str, text: str, label: str) -> Fault:
    found = _AT.search(message)
    if found is None:
        return Fault(message, file=label)
    end = (text.count("\n") + 1, len(text) - text.rfind("\n"))
    line, column = (int(found[1]), int(found[2])) if found[1] else end
    return Fault(message[: found.start()], file=label, line=line, column=column)
