"""A JSON Schema of policy files, for editors: keys, types, units and what may be chosen from.

It refuses nothing that the loader takes. What only several values together make wrong, such as a
ceiling below its floor or a name that no preset has, is left to the loader.
"""

from __future__ import annotations

from typing import Any

from seawall.contract.annotations import Annotations
from seawall.contract.decision import Action
from seawall.layers.rate_limit.strategies import STRATEGIES
from seawall.policy.argument_rules import ARGUMENT_RULE
from seawall.policy.ready_made import ready_made_names

Schema = dict[str, Any]

_NO_LIMIT: Schema = {"const": False, "description": "no limit"}
_AMOUNT = r"[0-9]{1,12}(\.[0-9]{1,9})?"
_DURATION_TEXT: Schema = {"type": "string", "pattern": rf"^\s*{_AMOUNT} ?(ms|s|m|h)\s*$"}
_TEXT: Schema = {"type": "string", "pattern": r"\S"}
_TEXTS: Schema = {"anyOf": [_TEXT, {"type": "array", "items": _TEXT, "maxItems": 1000}]}
_SOME_TEXTS: Schema = {
    "anyOf": [_TEXT, {"type": "array", "items": _TEXT, "minItems": 1, "maxItems": 1000}]
}
_FLAG: Schema = {"type": "boolean"}
_MODE: Schema = {"enum": ["on", "shadow", "off"]}
_RISK: Schema = {
    "type": "string",
    "pattern": r"^\s*([Ll][Oo][Ww]|[Mm][Ee][Dd][Ii][Uu][Mm]|[Hh][Ii][Gg][Hh]|[Ss][Aa][Ff][Ee]"
    r"|[Ss][Ee][Nn][Ss][Ii][Tt][Ii][Vv][Ee]|[Dd][Aa][Nn][Gg][Ee][Rr][Oo][Uu][Ss])\s*$",
}


def _whole(least: int, most: int = 10**12) -> Schema:
    # A number such as 5.0 is whole to JSON Schema, but not to the loader.
    return {"type": "integer", "minimum": least, "maximum": most}


def _seconds(*, zero: bool) -> Schema:
    bound = {"minimum": 0} if zero else {"exclusiveMinimum": 0}
    text = dict(_DURATION_TEXT)
    if not zero:
        text["not"] = {"pattern": r"^\s*0+(\.0+)? ?[a-z]+\s*$"}
    return {"anyOf": [{"type": "number", "maximum": 10**12, **bound}, text]}


def _or_none(schema: Schema) -> Schema:
    return {"anyOf": [_NO_LIMIT, schema]}


_SIZE_TEXT = rf"^\s*{_AMOUNT} ?(B|KiB|MiB|GiB)\s*$"
_SIZE: Schema = {
    "anyOf": [
        _whole(256),
        {"type": "string", "pattern": _SIZE_TEXT},
    ]
}
_RATE: Schema = {
    "type": "string",
    "maxLength": 100,
    "pattern": r"^\s*0*[1-9][0-9]*\s*(/|[Pp][Ee][Rr])\s*([1-9][0-9]*)?\s*[A-Za-z]+\s*$",
    "examples": ["120/minute", "10 per 2 hours"],
}
_RATE_KEY: Schema = {
    "anyOf": [
        {"enum": ["tool", "caller", "session", "global"]},
        {
            "type": "array",
            "minItems": 1,
            "maxItems": 1000,
            "items": {"enum": ["tool", "caller", "session"]},
        },
        {"type": "array", "minItems": 1, "maxItems": 1, "items": {"const": "global"}},
    ]
}

_SHARE: Schema = {
    "anyOf": [
        {"type": "number", "minimum": 0},
        {"type": "string", "pattern": r"^\s*[0-9]+(\.[0-9]+)?\s*%\s*$"},
    ]
}
_ACTION: Schema = {"enum": [action.value for action in Action]}
_ARGUMENT: dict[str, Schema] = {"decide": _ACTION, "otherwise": _ACTION}
_ANY_TABLE: Schema = {"type": "object"}

BREAKER: dict[str, tuple[Schema, str]] = {
    "threshold": (_whole(1), "failures in a row that open the circuit"),
    "failure_rate": (_or_none(_SHARE), "share of failing calls that opens it"),
    "slow_rate": (_or_none(_SHARE), "share of slow calls that opens it"),
    "slow_call_s": (_or_none(_seconds(zero=False)), "from which a call counts as slow"),
    "window_calls": (_whole(1), "the last calls among which shares are counted"),
    "window_s": (_or_none(_seconds(zero=False)), "the last seconds among which they are"),
    "min_calls": (_whole(1), "calls from which a share counts"),
    "honour_retry_after": (_FLAG, "stay open for as long as the tool said"),
    "cooldown_s": (_seconds(zero=False), "from opening to the first probe"),
    "max_cooldown_s": (_seconds(zero=False), "ceiling of the doubled cooldown"),
    "ignore": (_TEXTS, "exception types that say nothing about the tool's health"),
    "permits": (_whole(1), "probes at once"),
    "mode": (_MODE, "whether it acts, only watches, or neither"),
    "shared": (_or_none(_TEXT), "a circuit that several tools share"),
    "outside_retry": (_FLAG, "guard the call instead of each attempt"),
}
TABLES: dict[str, dict[str, tuple[Schema, str]]] = {
    "breaker": BREAKER,
    "fallback": {
        "tool": (_or_none(_TEXT), "the tool that is called instead"),
        "text": (_or_none(_TEXT), "the text that is given instead"),
        "structured_content": (_or_none(_ANY_TABLE), "the data that is given instead"),
        "on": (_SOME_TEXTS, "failures for which it is"),
        "tell": (_FLAG, "whether the model is told"),
    },
    "cache": {
        "ttl_s": (_seconds(zero=True), "how long a result is kept"),
        "max_entries": (_whole(0), "results that are kept"),
        "max_bytes": (
            {"anyOf": [_whole(0), {"type": "string", "pattern": _SIZE_TEXT}]},
            "bytes that are kept",
        ),
        "scope": (_TEXT, "who shares results"),
    },
    "retry_budget": {
        "share": (_SHARE, "retries for each call"),
        "min_retries": (_whole(0), "retries that are always allowed"),
        "window_s": (_seconds(zero=True), "the last seconds in which they are counted"),
        "mode": (_MODE, "whether it acts, only watches, or neither"),
    },
    "hedge": {
        "delay_s": (_seconds(zero=True), "after which a second attempt begins"),
        "quantile": (_or_none(_SHARE), "of the tool's own times, instead of a fixed delay"),
        "min_samples": (_whole(0), "attempts from which the quantile counts"),
        "max_extra": (_whole(0), "further attempts at once"),
    },
    "adaptive_limit": {
        "initial": (_whole(1), "calls at once to begin with"),
        "min_limit": (_whole(1), "never fewer"),
        "max_limit": (_whole(1), "never more"),
        "mode": (_MODE, "whether it acts, only watches, or neither"),
    },
}
"""The tables in a rule; `true` takes one with its defaults, `false` takes it away."""

RULE: dict[str, tuple[Schema, str]] = {
    "preset": (_TEXT, "start anew from this preset"),
    "timeout_s": (_or_none(_seconds(zero=False)), "seconds of one attempt"),
    "timeout_mode": (_MODE, "whether timeout_s acts, only watches, or neither"),
    "deadline_s": (_or_none(_seconds(zero=False)), "seconds of the whole call"),
    "idle_timeout_s": (_or_none(_seconds(zero=False)), "seconds without progress"),
    "grace_s": (_seconds(zero=True), "how long a cancelled tool may take to end"),
    "max_threads": (_whole(1), "worker threads of a plain function"),
    "max_retries": (_whole(0), "attempts after the first"),
    "base_delay_s": (_seconds(zero=True), "ceiling of the first wait, doubled by each retry"),
    "max_delay_s": (_seconds(zero=False), "ceiling of every wait"),
    "delays_s": (
        {"type": "array", "items": _seconds(zero=True), "maxItems": 1000},
        "exact waits instead of jitter",
    ),
    "rate": (_or_none(_RATE), "calls in a time"),
    "rate_strategy": ({"enum": list(STRATEGIES)}, "how calls in a time are counted"),
    "rate_key": (_RATE_KEY, "what has a budget of its own"),
    "rate_mode": (_MODE, "whether the rate limit acts, only watches, or neither"),
    "cost": (_whole(1), "tokens of one call"),
    "on_store_down": ({"enum": ["fail-open", "fail-closed"]}, "for limits that are shared"),
    "max_concurrency": (_or_none(_whole(1)), "calls under way at once"),
    "max_concurrency_mode": (_MODE, "whether the bulkhead acts, only watches, or neither"),
    "max_result_bytes": (_or_none(_SIZE), "results are cut beyond it"),
    "coercion": ({"enum": ["careful", "lenient", "off"]}, "how far arguments are mended"),
    "check_mode": (_MODE, "whether the argument check acts, only watches, or neither"),
    "unknown_arguments": (
        {"enum": ["ignore", "refuse"]},
        "what becomes of arguments that the tool does not know",
    ),
    "gate_mode": (_MODE, "the same for both gates"),
    "output": ({"enum": ["check", "warn", "off"]}, "what a broken output schema means"),
    "spill": (_FLAG, "keep the text of results that are cut"),
    "spill_keep_s": (_seconds(zero=False), "how long it is kept"),
    "ledger": ({"enum": ["on", "off"]}, "write down effects before and after"),
    "ledger_keep_s": (_seconds(zero=False), "how long they are kept"),
}
"""All keys of a rule but its tables, with what they take and what they mean."""

CHOICE: dict[str, tuple[Schema, str]] = {
    "match": (_SOME_TEXTS, "names with *, ? and […]"),
    "tags": (_SOME_TEXTS, "tags of tools"),
    "categories": (_SOME_TEXTS, "categories of tools"),
    "servers": (_SOME_TEXTS, "what stands before the __ in a name"),
}
RISK: dict[str, tuple[Schema, str]] = {
    "ask_from": (_RISK, "calls of tools with this risk or a higher one are asked for"),
    "strict": (_FLAG, "true asks from medium, false from high"),
    "allow": (_TEXTS, "names that run without a question; all others are refused"),
    "ask": (_TEXTS, "names that are asked for"),
    "deny": (_TEXTS, "names that are refused"),
}
SETTINGS: dict[str, dict[str, tuple[Schema, str]]] = {
    "trace": {"capacity": (_whole(0, 1_000_000), "spans kept in memory")},
    "loop": {
        "threshold": (_whole(2, 1000), "equal calls with equal results"),
        "window": (_or_none(_whole(1, 1000)), "the last calls among which they are counted"),
        "cycle_rounds": (_or_none(_whole(2, 100)), "rounds of the same two or three calls"),
        "pause_s": (_or_none(_seconds(zero=False)), "a session silent for so long begins anew"),
        "exempt": (_TEXTS, "names of tools that may repeat"),
        "exempt_tags": (_TEXTS, "tools with one of these tags may repeat, too"),
        "scope": ({"enum": ["all", "sessions"]}, "whose calls are watched"),
        "mode": ({"enum": ["on", "shadow"]}, "whether it refuses, or only says what it would"),
    },
    "http_check": {"allow": (_TEXTS, "host:port, or a network, beside public addresses")},
    "audit": {
        "calls": ({"enum": ["all", "refused", "off"]}, "which calls go into the audit log"),
        "wait": (_FLAG, "whether each call waits until it is written"),
    },
    "approvals": {
        "max_waiting": (_or_none(_whole(1)), "requests of one caller that wait at once"),
        "max_waiting_bytes": (
            _or_none({"anyOf": [_whole(1), {"type": "string", "pattern": _SIZE_TEXT}]}),
            "bytes that they may hold",
        ),
    },
    "console": {"allow": (_TEXTS, "what the gateway's page may run")},
    "shared": {
        "url": (_TEXT, "a Redis or Valkey that processes share; without a password"),
        "url_env": (_TEXT, "the environment variable that holds its URL"),
        "replicas": (_whole(1, 100_000), "processes that share the rates"),
        "timeout_s": (_seconds(zero=False), "how long it may take to answer"),
        "prefix": (_TEXT, "what the names of its keys begin with"),
    },
}


def policy_schema() -> Schema:
    """Make the schema of a whole policy file."""
    rule = {"$ref": "#/$defs/rule"}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Seawall policy",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "extends": {
                "description": "a ready-made name, or the path of a file beside this one",
                "anyOf": [
                    {"enum": list(ready_made_names())},
                    {"type": "string", "pattern": r"\.toml$"},
                ],
            },
            "presets": _named(rule),
            "default": rule,
            "tools": _named(rule),
            "families": _named({"$ref": "#/$defs/family"}),
            "risk": _risk(),
            **{
                name: {"anyOf": [{"const": False}, _table(keys)]}
                if name == "loop"
                else _table(keys)
                for name, keys in SETTINGS.items()
            },
        },
        "$defs": {
            **{name: {"anyOf": [_FLAG, _table(keys)]} for name, keys in TABLES.items()},
            "rule": _rule({}),
            "family": _rule({**_described(CHOICE), "annotations": _annotations()}),
        },
    }


def _rule(also: Schema) -> Schema:
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            **_described(RULE),
            **{name: {"$ref": f"#/$defs/{name}"} for name in TABLES},
            **also,
        },
    }


def _risk() -> Schema:
    risk = _table(RISK)
    one: Schema = {
        "type": "object",
        "additionalProperties": False,
        "properties": {key: _ARGUMENT.get(key, {}) for key in ARGUMENT_RULE},
        "required": ["tool", "argument", "decide"],
    }
    risk["properties"]["tools"] = {"type": "object", "additionalProperties": _RISK}
    risk["properties"]["rules"] = {"type": "array", "items": one}
    return risk


def _annotations() -> Schema:
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": dict.fromkeys(Annotations.__struct_fields__, _FLAG),
    }


def _named(schema: Schema) -> Schema:
    return {
        "type": "object",
        "propertyNames": {"pattern": r"\S"},
        "additionalProperties": schema,
    }


def _table(keys: dict[str, tuple[Schema, str]]) -> Schema:
    return {"type": "object", "additionalProperties": False, "properties": _described(keys)}


def _described(keys: dict[str, tuple[Schema, str]]) -> Schema:
    return {key: {"description": said, **schema} for key, (schema, said) in keys.items()}
