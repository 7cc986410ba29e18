"""Whatever somebody types into a policy file: it is read, or every fault is told with its place."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seawall.contract.annotations import Annotations
from seawall.contract.errors import ConfigurationError, Fault
from seawall.contract.tool import Tool
from seawall.edges.cli.brief import plain
from seawall.policy.differences import differences
from seawall.policy.model import Policies
from seawall.policy.ready_made import ready_made, ready_made_names
from seawall.policy.sheet import SETTINGS
from seawall.policy.units import RUN_READERS

if TYPE_CHECKING:
    from collections.abc import Callable

RICH = """
extends = "default"

[presets.mine]
timeout_s = "30s"
delays_s = [1, "2s", 4.5]

[default]
preset = "mine"
max_result_bytes = "256KiB"

[families.git]
match = ["git_*", "repo.*"]
servers = ["github"]
rate = "30/minute"
rate_key = ["tool", "caller"]
breaker = { threshold = 3, cooldown_s = "10s", max_cooldown_s = "2m", ignore = ["KeyError"] }

[tools."search.*"]
cache = { ttl_s = "1m", scope = "caller" }
hedge = { quantile = 0.95, delay_s = "500ms" }
retry_budget = { share = 0.2, window_s = 60, mode = "shadow" }

[tools.pay]
max_retries = 0
fallback = { text = "not now", on = ["timeout"] }
adaptive_limit = { initial = 5, min_limit = 1, max_limit = 50 }
max_concurrency = 4
coercion = "careful"

[risk]
ask_from = "medium"
allow = ["search.*"]

[loop]
threshold = 4
window = 8
exempt = ["poll_*"]

[trace]
capacity = 500

[audit]
calls = "all"
wait = false
"""

TEXTS = [RICH, *(ready_made(name).read_text() for name in ready_made_names())]

ODD_VALUES = st.sampled_from(
    [
        *("-1", "0", "1e400", "nan", "inf", "-0.0", "true", "99999999999999999999", "2026-01-01"),
        *('""', '"∞"', '"5 parsecs"', '"-3s"', '"1/0"', '"0/minute"', '"💥"', '"\\u0000"', "''"),
        *("[]", "[[]]", "[1, 'a']", "{}", "{ a = 1 }", "{ threshold = {} }", '["tool", "tool"]'),
        *("'''a'''", "0x7f", "1_000", "[", "{", '"', "=", "nil"),
    ]
)
KEYS = sorted({*RUN_READERS, *(key for section in SETTINGS.values() for key in section), "match"})
LINES = st.sampled_from(
    [
        *("[tools.a]", "[tools]", "[[tools.a]]", "[families.git]", "[default]", "[defaults]"),
        *("[risk.x]", "[tools.a.breaker.deep]", "[]", "[tools.'']", "x", "= 1", "]", "[a.b.c.d]"),
        *("extends = 'nowhere'", "extends = 5", "timeout_s = 1", "timeout_s.a = 1", "[loop]"),
        *("preset = 'nothing'", "match = '['", 'match = ["", "**"]', "[presets.default]"),
    ]
)


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """Change a valid file in one to four places."""
    lines = draw(st.sampled_from(TEXTS)).splitlines()
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(lines)))
        lines[place:place] = draw(_changes(lines[place] if place < len(lines) else ""))
        if place < len(lines) and draw(st.booleans()):
            del lines[min(place + 1, len(lines) - 1)]
    return draw(st.sampled_from(["\n", "\r\n"])).join(lines) + "\n"


def _changes(line: str) -> st.SearchStrategy[list[str]]:
    key, equals, _ = line.partition("=")
    choices: list[st.SearchStrategy[list[str]]] = [
        LINES.map(lambda one: [one]),
        st.tuples(st.sampled_from(KEYS), ODD_VALUES).map(lambda two: [f"{two[0]} = {two[1]}"]),
        st.text(max_size=8).map(lambda text: [text]),
        st.integers(0, max(len(line) - 1, 0)).map(lambda at: [line[:at] + line[at + 1 :]]),
        st.just([line, line]),
    ]
    if equals:
        choices.append(ODD_VALUES.map(lambda value: [f"{key}= {value}"]))
        choices.append(st.just([f"{key.rstrip()}x = 1"]))
    return st.one_of(choices)


def loaded(text: str) -> Policies | tuple[Fault, ...]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "made.toml"
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        try:
            return Policies.load(path)
        except ConfigurationError as error:
            return error.faults


TOOLS = [
    Tool("git_push", "", {"type": "object"}, lambda *_: None, family="git", tags=("polling",)),
    Tool("search.web", "", {"type": "object"}, lambda *_: None, annotations=Annotations()),
    Tool("pay", "", {"type": "object"}, lambda *_: None, annotations=Annotations.for_reading()),
]


@settings(max_examples=400, deadline=None)
@given(mutated())
def test_a_file_is_read_or_each_fault_is_told_with_file_line_and_column(text: str) -> None:
    found = loaded(text)

    if isinstance(found, Policies):
        return
    assert found
    for fault in found:
        assert fault.message
        assert fault.file is not None
        assert fault.file.endswith(".toml")
        assert fault.line is not None, fault
        assert 1 <= fault.line <= text.count("\n") + 1
        assert fault.column is None or fault.column >= 1
        assert str(fault).isprintable()


@settings(max_examples=200, deadline=None)
@given(mutated(), mutated())
def test_whatever_is_read_can_be_explained_and_compared(one: str, other: str) -> None:
    found = [policies for text in (one, other) if isinstance(policies := loaded(text), Policies)]

    for policies in found:
        for tool in TOOLS:
            assert all(plain(given.value) for given in policies.explain(tool).values())
            assert all(given.rule for given in policies.explain(tool).values())
        assert differences(policies, policies, TOOLS) == []
    if len(found) == 2:
        there = differences(found[0], found[1], TOOLS)
        back = differences(found[1], found[0], TOOLS)
        assert [(d.tool, d.key) for d in there] == [(d.tool, d.key) for d in back]
        assert all(d.before != d.after for d in there)


def _swapped(key: str) -> str:
    return key[:1] + key[2:3] + key[1:2] + key[3:]


@pytest.mark.parametrize("misspell", [lambda key: key + "s", lambda key: key[:-1], _swapped])
@pytest.mark.parametrize("key", sorted(RUN_READERS))
def test_a_key_that_is_misspelt_is_suggested(key: str, misspell: Callable[[str], str]) -> None:
    wrong = misspell(key)
    if wrong in RUN_READERS or len(key) < 5:
        return

    (fault,) = loaded(f"[tools.a]\n\n{wrong} = 1\n")  # type: ignore[misc]  # it is no policy

    assert (fault.line, fault.column) == (3, 1)
    assert f"did you mean {key}?" in fault.message


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(TEXTS), st.integers(0, 10_000), st.sampled_from([b"\xff", b"\xc3", b"\x80"]))
def test_bytes_that_are_no_text_are_told_with_their_place(
    text: str, place: int, byte: bytes
) -> None:
    raw = text.encode()
    place %= len(raw)
    while raw[place] & 0xC0 == 0x80:  # not within a letter
        place -= 1

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "made.toml"
        path.write_bytes(raw[:place] + byte + raw[place:])
        with pytest.raises(ConfigurationError) as caught:
            Policies.load(path)

    (fault,) = caught.value.faults
    assert fault.line == raw[:place].count(b"\n") + 1
    assert fault.column is not None
    assert fault.column >= 1
