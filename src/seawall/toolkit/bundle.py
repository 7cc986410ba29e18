"""The bundled tools as a registry: real and safe, so that the product runs out of the box."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seawall.pipeline.chance import Chance, SystemChance
from seawall.pipeline.clock import Clock, SystemClock
from seawall.registry.function import tool
from seawall.registry.registry import Registry
from seawall.toolkit.base_convert import base_convert
from seawall.toolkit.calculate import calculate
from seawall.toolkit.clocks import TimeNow, Wait
from seawall.toolkit.cron_next import CronNext
from seawall.toolkit.csv_query import csv_query
from seawall.toolkit.date_time import date_time
from seawall.toolkit.described import DESCRIBED
from seawall.toolkit.duration_convert import duration_convert
from seawall.toolkit.file_hash import FileHash
from seawall.toolkit.http_check import HttpCheck
from seawall.toolkit.json_path import json_path
from seawall.toolkit.json_transform import json_transform
from seawall.toolkit.local_status import LocalStatus
from seawall.toolkit.notes import Notebook, Notes, NoteStore
from seawall.toolkit.patterns import Patterns
from seawall.toolkit.random_generate import RandomGenerate
from seawall.toolkit.string_distance import string_distance
from seawall.toolkit.text_diff import text_diff
from seawall.toolkit.text_transform import text_transform
from seawall.toolkit.unit_convert import unit_convert
from seawall.toolkit.uuid_generate import UuidGenerate
from seawall.toolkit.version_compare import version_compare
from seawall.toolkit.xml_extract import xml_extract

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

PURE: tuple[Callable[..., Any], ...] = (
    date_time,
    duration_convert,
    calculate,
    unit_convert,
    base_convert,
    version_compare,
    json_transform,
    json_path,
    csv_query,
    xml_extract,
    text_transform,
    text_diff,
    string_distance,
)
"""Tools that are functions of their arguments alone."""

_NAMES = {"date_time": "datetime"}


def bundled(
    *,
    clock: Clock | None = None,
    chance: Chance | None = None,
    http_allow: Iterable[str] = (),
    root: str | Path | None = None,
    notes: NoteStore | None = None,
) -> Registry:
    """Make a registry of the bundled tools, with state of its own.

    `http_allow` opens private addresses to `http_check`, as `host:port` or a network; `root` is
    the folder below which `file_hash` may read, and without it there is no such tool. Those on
    regular expressions are there if google-re2 is. Notes are kept in memory unless `notes` is
    given.
    """
    clock = clock or SystemClock()
    functions = {
        _NAMES.get(function.__name__, function.__name__): function
        for function in (*PURE, *_bound(clock, chance or SystemChance(), http_allow, root, notes))
    }
    return Registry(
        tool(functions[name], name=name, **described.fields)
        for name, described in DESCRIBED.items()
        if name in functions
    )


def _bound(
    clock: Clock,
    chance: Chance,
    http_allow: Iterable[str],
    root: str | Path | None,
    notes: NoteStore | None,
) -> list[Callable[..., Any]]:
    """Bind the tools that need a clock, chance, a folder or a store."""
    notebook = Notebook(Notes() if notes is None else notes, clock.wall)
    found: list[Callable[..., Any]] = [
        TimeNow(clock.wall).time_now,
        CronNext(clock.wall).cron_next,
        Wait(clock.sleep, clock.now).wait,
        LocalStatus().local_status,
        HttpCheck(clock.now, allow=http_allow).http_check,
        notebook.note_add,
        notebook.note_search,
        RandomGenerate(chance).random_generate,
        UuidGenerate(clock.wall, chance).uuid_generate,
    ]
    if root is not None:
        found.append(FileHash(Path(root)).file_hash)
    if find_spec("re2") is not None:
        patterns = Patterns(clock.now)
        found += [patterns.regex_extract, patterns.regex_replace]
    return found
