"""Values of a policy file with their units: `30s`, `256KiB`, `120/minute`, `false` for no limit.

A reader takes what TOML gave and returns the value, or raises a `ValueError` that says what is
wrong and what to write instead. Bounds are left to the policy itself, which has them for everyone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from seawall.contract.annotations import Risk
from seawall.policy.addresses import address_rule

Reader = Callable[[Any], Any]

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_BYTES = {"B": 1, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3}
_MEANT = {
    **dict.fromkeys(("msec", "msecs", "millisecond", "milliseconds"), "ms"),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), "s"),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), "m"),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), "h"),
    **dict.fromkeys(("b", "byte", "bytes"), "B"),
    **dict.fromkeys(("k", "kb", "kib"), "KiB"),
    **dict.fromkeys(("mb", "mib"), "MiB"),
    **dict.fromkeys(("g", "gb", "gib"), "GiB"),
}
"""Units as others write them, in lower case."""
_QUANTITY = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,9})?) ?([A-Za-z]+)")
_PERCENT = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,9})?")
_LARGEST = 10**12
_LONGEST_LIST = 1_000
_SHOWN = 60


def duration(raw: Any) -> float:
    """Read seconds, or text with a unit: `250ms`, `30s`, `2m`, `1h`."""
    if isinstance(raw, str):
        number, unit = _quantity(raw, _SECONDS, "a number of seconds, or one with a unit, as 30s")
        return float(number) / 1000 if unit == "ms" else float(number) * _SECONDS[unit]
    return float(_number(raw, "a number of seconds, or one with a unit, as 30s"))


def size(raw: Any) -> int:
    """Read bytes, or text with a unit: `256KiB`, `1MiB`."""
    if not isinstance(raw, str):
        return count(raw)
    number, unit = _quantity(raw, _BYTES, "a number of bytes, or one with a unit, as 256KiB")
    found = float(number) * _BYTES[unit]
    if not found.is_integer():
        raise ValueError(f"is {shown(raw)}, which is no whole number of bytes; write 4096 or 4KiB")
    return count(int(found))


def count(raw: Any) -> int:
    """Read a whole number."""
    if isinstance(raw, float):
        raise ValueError(f"is {shown(raw)}; it takes a whole number")  # noqa: TRY004 - readers raise one kind
    return int(_number(raw, "a whole number"))


def flag(raw: Any) -> bool:
    """Read true or false."""
    if not isinstance(raw, bool):
        raise ValueError(f"is {shown(raw)}; it takes true or false")  # noqa: TRY004 - readers raise one kind
    return raw


def text(raw: Any) -> str:
    """Read text that is not empty."""
    if not isinstance(raw, str) or not raw.strip():
        raise ValueError(f"is {shown(raw)}; it takes a text in quotes")
    return raw


def texts(raw: Any) -> tuple[str, ...]:
    """Read one text or a list of them."""
    return (text(raw),) if isinstance(raw, str) else _list(raw, text)


def some_texts(raw: Any) -> tuple[str, ...]:
    """Read one text or a list that is not empty."""
    found = texts(raw)
    if not found:
        raise ValueError("is empty; leave it out if it is not to count")
    return found


def addresses(raw: Any) -> tuple[str, ...]:
    """Read `host:port` or a network, or a list of them."""
    found = texts(raw)
    for rule in found:
        address_rule(rule)
    return found


def durations(raw: Any) -> tuple[float, ...]:
    """Read a list of durations."""
    return _list(raw, duration)


def share(raw: Any) -> float:
    """Read a share of a whole, or text with a percent sign: `0.2`, `"20%"`."""
    if isinstance(raw, str) and raw.strip().endswith("%"):
        number = raw.strip().removesuffix("%").strip()
        if not _PERCENT.fullmatch(number):
            raise ValueError(f"is {shown(raw)}; it takes a share, as 0.2 or 20%")
        return float(number) / 100
    return float(_number(raw, "a share, as 0.2 or 20%"))


def table(raw: Any) -> dict[str, Any]:
    """Read a table of whatever is in it."""
    if not isinstance(raw, dict):
        raise ValueError(f"is {shown(raw)}; it takes a table")  # noqa: TRY004 - readers raise one kind
    return raw


def risk(raw: Any) -> Risk:
    """Read the name of a risk."""
    return Risk.parse(text(raw))


def limit(reader: Reader) -> Reader:
    """Make a reader for what may be without a limit: `false` says so, and 0 is refused."""

    def read(raw: Any) -> Any:
        if raw is False:
            return None
        value = reader(raw)
        if isinstance(value, (int, float)) and value <= 0:
            raise ValueError(f"must be above 0; write false for no limit (got {shown(raw)})")
        return value

    return read


RUN_READERS: Mapping[str, Reader] = {
    "timeout_s": limit(duration),
    "timeout_mode": text,
    "deadline_s": limit(duration),
    "idle_timeout_s": limit(duration),
    "grace_s": duration,
    "max_threads": count,
    "max_retries": count,
    "base_delay_s": duration,
    "max_delay_s": duration,
    "delays_s": durations,
    "rate": limit(text),
    "rate_strategy": text,
    "rate_key": texts,
    "rate_mode": text,
    "cost": count,
    "on_store_down": text,
    "max_concurrency": limit(count),
    "max_concurrency_mode": text,
    "max_result_bytes": limit(size),
    "coercion": text,
    "check_mode": text,
    "unknown_arguments": text,
    "gate_mode": text,
    "output": text,
    "ledger": text,
    "ledger_keep_s": duration,
    "spill": flag,
    "spill_keep_s": duration,
}
"""All keys of a rule but `preset` and those that are tables."""

_BREAKER_READERS: Mapping[str, Reader] = {
    "threshold": count,
    "failure_rate": limit(share),
    "slow_rate": limit(share),
    "slow_call_s": limit(duration),
    "window_calls": count,
    "window_s": limit(duration),
    "min_calls": count,
    "cooldown_s": duration,
    "max_cooldown_s": duration,
    "ignore": texts,
    "permits": count,
    "honour_retry_after": flag,
    "mode": text,
    "shared": limit(text),
    "outside_retry": flag,
}

SECTION_READERS: Mapping[str, Mapping[str, Reader]] = {
    "breaker": _BREAKER_READERS,
    "fallback": {
        "tool": limit(text),
        "text": limit(text),
        "structured_content": limit(table),
        "on": some_texts,
        "tell": flag,
    },
    "cache": {
        "ttl_s": duration,
        "max_entries": count,
        "max_bytes": size,
        "scope": text,
    },
    "retry_budget": {"share": share, "min_retries": count, "window_s": duration, "mode": text},
    "hedge": {
        "delay_s": duration,
        "quantile": limit(share),
        "min_samples": count,
        "max_extra": count,
    },
    "adaptive_limit": {
        "initial": count,
        "min_limit": count,
        "max_limit": count,
        "mode": text,
    },
}
"""The keys of the tables in a rule."""


def shown(raw: Any) -> str:
    """Write a value as the file has it, cut to a readable length."""
    if isinstance(raw, (dict, list)):
        return "a table" if isinstance(raw, dict) else "a list"
    if isinstance(raw, int) and abs(raw) > _LARGEST:
        return "a number that is too large"  # longer ones cannot even be written
    found = str(raw).lower() if isinstance(raw, bool) else repr(raw)
    return found if len(found) <= _SHOWN else f"{found[: _SHOWN - 1]}…"


def _quantity(raw: str, units: Mapping[str, float], wanted: str) -> tuple[str, str]:
    found = _QUANTITY.fullmatch(raw.strip())
    if found is not None and found[2] in units:
        return found[1], found[2]
    said = f"is {shown(raw)}; it takes {wanted} (units: {', '.join(units)})"
    meant = _MEANT.get(found[2].lower()) if found else None
    if found and meant in units:
        said = f"is {shown(raw)}; did you mean {found[1]}{meant}? (units: {', '.join(units)})"
    raise ValueError(said)


def _number(raw: Any, wanted: str) -> float:
    if isinstance(raw, bool) or not isinstance(raw, (int, float)):
        raise ValueError(f"is {shown(raw)}; it takes {wanted}")  # noqa: TRY004 - readers raise one kind
    if isinstance(raw, float) and not math.isfinite(raw):
        raise ValueError(f"is {raw}; it takes {wanted}")
    if abs(raw) > _LARGEST:
        raise ValueError(f"is larger than {_LARGEST:,}; use a smaller number")
    return raw


def _list(raw: Any, reader: Reader) -> tuple[Any, ...]:
    if not isinstance(raw, list):
        raise ValueError(f"is {shown(raw)}; it takes a list")  # noqa: TRY004 - readers raise one kind
    if len(raw) > _LONGEST_LIST:
        raise ValueError(f"has {len(raw):,} entries; {_LONGEST_LIST:,} are allowed")
    return tuple(reader(entry) for entry in raw)
