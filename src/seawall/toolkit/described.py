"""What is said of each bundled tool beyond its function: group, hints, output, examples.

Examples are run as tests, so they are true: on a clock that shows the epoch's second 1,700,000,000,
in a folder with a file `hello.txt`, one after the other. What depends on the machine or on the
network is an example of the shape alone.
"""

from __future__ import annotations

from typing import Any

import msgspec

from seawall.contract.annotations import Annotations, Risk

Example = tuple[dict[str, Any], Any]


class Described(msgspec.Struct, frozen=True, kw_only=True):
    """Fields of a `Tool` that its function does not say."""

    category: str
    family: str = "compute"
    examples: tuple[Example, ...]
    output_schema: dict[str, Any] | None = None
    annotations: Annotations = Annotations.for_reading()
    risk: Risk = Risk.LOW
    duration: str | None = None
    same_everywhere: bool = True
    """Whether an example's result is exact, or shows the shape alone."""

    @property
    def fields(self) -> dict[str, Any]:
        """The fields by name, as `Tool` takes them."""
        found = msgspec.structs.asdict(self)
        del found["same_everywhere"]
        return found


_TEXT = {"type": "string"}
_WHOLE = {"type": "integer"}
_NUMBER = {"type": "number"}
_FLAG = {"type": "boolean"}


def _list(of: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": of}


def _object(optional: dict[str, Any] | None = None, /, **required: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
    }


_NOTE = _object(number=_WHOLE, text=_TEXT, tags=_list(_TEXT), created=_TEXT)
_VERSION = _object({"post": _list(_TEXT)}, core=_list(_WHOLE), pre=_list(_TEXT))
_CREATED = "2023-11-14T22:13:20Z"

DESCRIBED: dict[str, Described] = {
    "time_now": Described(
        category="time",
        family="clock",
        examples=(
            (
                {"zone": "Europe/Berlin"},
                {
                    "time": "2023-11-14T23:13:20+01:00",
                    "zone": "Europe/Berlin",
                    "abbreviation": "CET",
                    "weekday": "Tuesday",
                    "utc": "2023-11-14T22:13:20.000Z",
                    "epoch_s": 1_700_000_000.0,
                },
            ),
        ),
        output_schema=_object(
            time=_TEXT,
            zone=_TEXT,
            abbreviation={"type": ["string", "null"]},
            weekday=_TEXT,
            utc=_TEXT,
            epoch_s=_NUMBER,
        ),
    ),
    "datetime": Described(
        category="time",
        examples=(
            (
                {"operation": "difference", "moment": "2024-01-31", "other": "2024-03-01T12:00Z"},
                {"seconds": "2635200", "iso": "P30DT12H", "calendar_days": 30},
            ),
            (
                {"operation": "format", "moment": "2024-02-29", "style": "long"},
                {"text": "Thursday, 29 February 2024"},
            ),
        ),
        output_schema=_object(
            {
                "text": _TEXT,
                "seconds": _TEXT,
                "calendar_days": _WHOLE,
                "iso": _TEXT,
                "utc": _TEXT,
                "epoch_s": _TEXT,
                "zone": _TEXT,
                "abbreviation": {"type": ["string", "null"]},
                "weekday": _TEXT,
                "week": _TEXT,
                "day_of_year": _WHOLE,
                "leap_year": _FLAG,
                "exists": _FLAG,
            }
        ),
    ),
    "duration_convert": Described(
        category="time",
        examples=(
            (
                {"duration": "1h30m"},
                {
                    "seconds": "5400",
                    "iso": "PT1H30M",
                    "text": "1h30m",
                    "clock": "1:30:00",
                    "milliseconds": "5400000",
                    "minutes": "90",
                    "hours": "1.5",
                    "days": "0.0625",
                },
            ),
        ),
        output_schema=_object(
            seconds=_TEXT,
            iso=_TEXT,
            text=_TEXT,
            clock=_TEXT,
            milliseconds=_TEXT,
            minutes=_TEXT,
            hours=_TEXT,
            days=_TEXT,
        ),
    ),
    "cron_next": Described(
        category="time",
        family="clock",
        examples=(
            (
                {"expression": "0 9 * * mon-fri", "count": 2},
                {
                    "times": ["2023-11-15T09:00:00+00:00", "2023-11-16T09:00:00+00:00"],
                    "zone": "UTC",
                    "after": "2023-11-14T22:13:20+00:00",
                },
            ),
        ),
        output_schema=_object(times=_list(_TEXT), zone=_TEXT, after=_TEXT),
    ),
    "wait": Described(
        category="time",
        family="clock",
        duration="duration_ms",
        examples=(({"duration_ms": 250}, {"waited_ms": 250, "woke_early": False}),),
        output_schema=_object(waited_ms=_WHOLE, woke_early=_FLAG),
    ),
    "local_status": Described(
        category="system",
        family="machine",
        same_everywhere=False,
        examples=(
            (
                {},
                {
                    "platform": "Linux 6.8.0 x86_64",
                    "python": "CPython 3.11.7",
                    "processors": 2,
                    "load": [0.42, 0.31, 0.28],
                    "memory": {"total_bytes": 8_589_934_592, "available_bytes": 6_442_450_944},
                    "disk": {"total_bytes": 107_374_182_400, "free_bytes": 53_687_091_200},
                    "uptime_s": 86_400,
                },
            ),
        ),
        output_schema=_object(
            {
                "processors": _WHOLE,
                "load": _list(_NUMBER),
                "memory": {"type": "object", "additionalProperties": _WHOLE},
                "disk": _object(total_bytes=_WHOLE, free_bytes=_WHOLE),
                "uptime_s": _WHOLE,
            },
            platform=_TEXT,
            python=_TEXT,
        ),
    ),
    "file_hash": Described(
        category="system",
        family="files",
        examples=(
            (
                {"path": "hello.txt"},
                {
                    "path": "hello.txt",
                    "algorithm": "sha256",
                    "digest": "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03",
                    "bytes": 6,
                },
            ),
        ),
        output_schema=_object(path=_TEXT, algorithm=_TEXT, digest=_TEXT, bytes=_WHOLE),
    ),
    "http_check": Described(
        category="network",
        family="network",
        annotations=Annotations.for_reading(open_world=True),
        risk=Risk.MEDIUM,
        same_everywhere=False,
        examples=(
            (
                {"url": "https://example.com/", "method": "HEAD"},
                {
                    "url": "https://example.com/",
                    "reachable": True,
                    "status": 200,
                    "ok": True,
                    "headers": {"content-type": "text/html"},
                    "certificate_expires": "2030-01-01",
                    "latency_ms": 87.5,
                },
            ),
        ),
        output_schema=_object(
            {
                "status": _WHOLE,
                "headers": {"type": "object", "additionalProperties": _TEXT},
                "redirect": _TEXT,
                "certificate_expires": _TEXT,
                "latency_ms": _NUMBER,
                "problem": _TEXT,
            },
            url=_TEXT,
            reachable=_FLAG,
            ok=_FLAG,
        ),
    ),
    "note_add": Described(
        category="notes",
        family="notes",
        annotations=Annotations.for_changing(),
        examples=(
            (
                {"text": "The customer wants blue.", "tags": ["order"]},
                {
                    "number": 1,
                    "text": "The customer wants blue.",
                    "tags": ["order"],
                    "created": _CREATED,
                },
            ),
        ),
        output_schema=_NOTE,
    ),
    "note_search": Described(
        category="notes",
        family="notes",
        examples=(
            (
                {"query": "colour blue"},
                {
                    "notes": [
                        {
                            "number": 1,
                            "text": "The customer wants blue.",
                            "tags": ["order"],
                            "created": _CREATED,
                        }
                    ],
                    "found": 1,
                    "kept": 1,
                },
            ),
        ),
        output_schema=_object(notes=_list(_NOTE), found=_WHOLE, kept=_WHOLE),
    ),
    "calculate": Described(
        category="math",
        examples=(
            ({"expression": "0.1 + 0.2"}, {"result": "0.3", "exact": True}),
            ({"expression": "round(sqrt(2), 3)"}, {"result": "1.414", "exact": False}),
        ),
        output_schema=_object({"fraction": _TEXT}, result=_TEXT, exact=_FLAG),
    ),
    "unit_convert": Described(
        category="math",
        examples=(
            (
                {"value": 26.2, "from_unit": "mi", "to_unit": "km"},
                {"value": "42.1648128", "unit": "km", "exact": True, "dimension": "length"},
            ),
        ),
        output_schema=_object(value=_TEXT, unit=_TEXT, exact=_FLAG, dimension=_TEXT),
    ),
    "base_convert": Described(
        category="math",
        examples=(
            (
                {"number": "ff", "from_base": 16, "to_base": 2},
                {"number": "11111111", "base": 2, "bits": 8},
            ),
        ),
        output_schema=_object(number=_TEXT, base=_WHOLE, bits=_WHOLE),
    ),
    "random_generate": Described(
        category="math",
        family="chance",
        examples=(
            (
                {"kind": "integer", "low": 1, "high": 6, "count": 3, "seed": 7},
                {"values": [3, 2, 4]},
            ),
        ),
        output_schema=_object(values={"type": "array"}),
    ),
    "uuid_generate": Described(
        category="data",
        family="chance",
        examples=(
            (
                {"version": "v5", "namespace": "dns", "name": "example.com"},
                {"uuids": ["cfbff0d1-9375-5685-968c-48ce8b15ae17"]},
            ),
        ),
        output_schema=_object(uuids=_list(_TEXT)),
    ),
    "version_compare": Described(
        category="data",
        examples=(
            (
                {"a": "1.10.0", "b": "1.9.3"},
                {
                    "a_is": "newer",
                    "a": {"core": [1, 10, 0], "pre": []},
                    "b": {"core": [1, 9, 3], "pre": []},
                },
            ),
        ),
        output_schema=_object(a_is={"enum": ["newer", "older", "equal"]}, a=_VERSION, b=_VERSION),
    ),
    "json_transform": Described(
        category="data",
        examples=(
            (
                {
                    "document": [{"id": 1, "name": "bolt", "internal": 0}],
                    "operations": [{"op": "map_pick", "keys": ["id", "name"]}],
                },
                [{"id": 1, "name": "bolt"}],
            ),
        ),
    ),
    "json_path": Described(
        category="data",
        examples=(
            (
                {
                    "document": {"items": [{"id": 1, "price": 5}, {"id": 2, "price": 12}]},
                    "path": "$.items[?@.price < 10].id",
                },
                {"values": [1], "paths": ["$['items'][0]['id']"], "found": 1},
            ),
        ),
        output_schema=_object(values={"type": "array"}, paths=_list(_TEXT), found=_WHOLE),
    ),
    "csv_query": Described(
        category="data",
        examples=(
            (
                {
                    "text": "item,price\nbolt,0.5\nnut,0.25\n",
                    "where": [{"column": "price", "op": "gt", "value": 0.3}],
                },
                {
                    "columns": ["item", "price"],
                    "rows": [["bolt", "0.5"]],
                    "found": 1,
                    "total": 2,
                },
            ),
        ),
        output_schema=_object(
            columns=_list(_TEXT), rows=_list(_list(_TEXT)), found=_WHOLE, total=_WHOLE
        ),
    ),
    "xml_extract": Described(
        category="data",
        examples=(
            (
                {
                    "xml": "<order><item id='7'><name>bolt</name></item></order>",
                    "path": "//item[@id='7']/name/text()",
                },
                {"matches": ["bolt"], "found": 1},
            ),
        ),
        output_schema=_object(matches={"type": "array"}, found=_WHOLE),
    ),
    "text_transform": Described(
        category="text",
        examples=(({"text": "Hello World", "operation": "slug"}, {"text": "hello-world"}),),
        output_schema=_object(
            {
                "text": _TEXT,
                "characters": _WHOLE,
                "characters_without_spaces": _WHOLE,
                "words": _WHOLE,
                "lines": _WHOLE,
                "utf8_bytes": _WHOLE,
            }
        ),
    ),
    "text_diff": Described(
        category="text",
        examples=(
            (
                {"before": "a\nb\n", "after": "a\nc\n"},
                {
                    "identical": False,
                    "added": 1,
                    "removed": 1,
                    "diff": "--- before\n+++ after\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n",
                },
            ),
        ),
        output_schema=_object(identical=_FLAG, added=_WHOLE, removed=_WHOLE, diff=_TEXT),
    ),
    "string_distance": Described(
        category="text",
        examples=(
            (
                {"a": "kitten", "b": "sitting"},
                {"measure": "levenshtein", "distance": 3, "similarity": 0.571429},
            ),
        ),
        output_schema=_object(measure=_TEXT, distance=_NUMBER, similarity=_NUMBER),
    ),
    "regex_extract": Described(
        category="text",
        examples=(
            (
                {"text": "order A-17", "pattern": r"(?P<shelf>[A-Z])-(\d+)"},
                {
                    "matches": [
                        {
                            "match": "A-17",
                            "start": 6,
                            "end": 10,
                            "groups": ["A", "17"],
                            "named": {"shelf": "A"},
                        }
                    ],
                    "more": False,
                },
            ),
        ),
        output_schema=_object(
            matches=_list(
                _object(
                    {
                        "groups": _list({"type": ["string", "null"]}),
                        "named": {"type": "object"},
                    },
                    match=_TEXT,
                    start=_WHOLE,
                    end=_WHOLE,
                )
            ),
            more=_FLAG,
        ),
    ),
    "regex_replace": Described(
        category="text",
        examples=(
            (
                {"text": "order A-17", "pattern": r"(\w)-(\d+)", "replacement": r"\2\1"},
                {"text": "order 17A", "replaced": 1},
            ),
        ),
        output_schema=_object(text=_TEXT, replaced=_WHOLE),
    ),
}
"""All bundled tools, in the order in which they are registered."""
