"""What the pages list is what the code has: settings, reasons, metrics, commands, names."""

from __future__ import annotations

import contextlib
import importlib
import re
from enum import Enum
from pathlib import Path
from typing import Any

import msgspec
import pytest
import typer
from prometheus_client.parser import text_string_to_metric_families

import seawall
from seawall import (
    PRESETS,
    AdaptiveLimitPolicy,
    Annotations,
    BreakerPolicy,
    Failure,
    FailureCode,
    Pipeline,
    Policies,
    Risk,
    RunPolicy,
    Span,
    Tool,
    ToolResult,
)
from seawall.contract.failure import GUIDANCE, REASONS
from seawall.contract.policy import SECTIONS
from seawall.edges.cli.app import app
from seawall.edges.cli.exits import MEANINGS
from seawall.layers.environment import STANDARD_FLAGS
from seawall.orchestration.status import STATES
from seawall.policy.build import BY_NAME
from seawall.policy.ready_made import ready_made_names
from seawall.recording.families import COUNTED as COUNTED_FAMILIES
from seawall.recording.families import WATCHED as WATCHED_FAMILIES
from seawall.testing import scripted

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
HEADINGS = ["About", "Usage", "Defaults", "Telemetry", "Diagram", "Anti-patterns"]
LAYERS = list(BY_NAME)
"""In the order of the chain, outermost first."""
SOURCES = sorted((ROOT / "src" / "seawall").rglob("*.py"))
COUNTED = re.compile(r'\b_?(?:count\((?:self\.name|LAYER)|noted\(call), "(\w+)"\)')
PRESET_COLUMNS = (
    *("timeout_s", "max_retries", "base_delay_s", "max_delay_s", "delays_s", "rate"),
    "breaker",
)
BOUNDS_IN = (
    "seawall.layers",
    "seawall.pipeline",
    *(f"seawall.pipeline.arguments.{folder}" for folder in ("reading", "schema", "faults")),
    "seawall.edges.gateway",
    "seawall.orchestration",
    "seawall.contract",
    "seawall.stores",
)

Rows = list[list[str]]


def page(name: str) -> str:
    return (DOCS / f"{name}.md").read_text(encoding="utf-8")


def sections(text: str) -> dict[str, str]:
    """What stands under each second-level heading, in order."""
    _, *parts = re.split(r"^## ", text, flags=re.MULTILINE)
    return {part.split("\n", 1)[0]: part.split("\n", 1)[1] for part in parts}


def rows(text: str) -> Rows:
    """The rows of all tables in a text, without their heads; code spans without their ticks."""
    found: Rows = []
    for table in re.findall(r"(?:^\|.*\|\n)+", text, re.MULTILINE):
        _, _, *body = table.strip().split("\n")
        found += [[cell.strip().strip("`") for cell in line.split("|")[1:-1]] for line in body]
    return found


def code_in(text: str) -> str:
    """Everything that is written as code: blocks and spans."""
    blocks = re.findall(r"^```\w+\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    rest = re.sub(r"^```\w+\n.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return "\n".join([*blocks, *re.findall(r"`([^`]+)`", rest)])


def shown(value: Any) -> str:
    """A value as the pages write it."""
    if value is None or value == ():
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, (tuple, list)):
        return ", ".join(map(shown, value))
    if isinstance(value, BreakerPolicy):
        return shown((value.threshold, value.cooldown_s, value.max_cooldown_s))
    return f"{value:g}" if isinstance(value, float) else str(value)


def value_of(name: str) -> Any:
    """The default of a policy's key, or a bound: `timeout_s`, `breaker.permits`, `room.MAX`."""
    if name in RunPolicy.__struct_fields__:
        return getattr(RunPolicy(), name)
    section, _, key = name.partition(".")
    if section in SECTIONS and key in SECTIONS[section].__struct_fields__:
        return {f.name: f.default for f in msgspec.structs.fields(SECTIONS[section])}[key]
    module, rest = module_of(name)
    value: Any = module
    for part in rest:
        value = getattr(value() if isinstance(value, type) else value, part)
    return value


def module_of(name: str) -> tuple[Any, list[str]]:
    parts = name.split(".")
    for base in BOUNDS_IN:
        for count in range(len(parts) - 1, 0, -1):
            with contextlib.suppress(ModuleNotFoundError):
                return importlib.import_module(".".join([base, *parts[:count]])), parts[count:]
    raise AssertionError(f"{name} is neither a key of a policy nor a bound")


@pytest.mark.parametrize("layer", LAYERS)
def test_each_layer_has_a_page_with_the_same_headings(layer: str) -> None:
    assert list(sections(page(f"layers/{layer}"))) == HEADINGS


def test_there_is_no_page_of_a_layer_that_is_not_there() -> None:
    assert {path.stem for path in (DOCS / "layers").glob("*.md")} == set(LAYERS)


@pytest.mark.parametrize("layer", LAYERS)
def test_defaults_on_a_layers_page_are_those_of_the_code(layer: str) -> None:
    table = rows(sections(page(f"layers/{layer}"))["Defaults"])

    assert table
    assert {row[0]: row[1] for row in table} == {row[0]: shown(value_of(row[0])) for row in table}


def test_bounds_on_the_security_page_are_those_of_the_code() -> None:
    table = rows(sections(page("security"))["Bounds"])

    assert {row[0]: row[1] for row in table} == {row[0]: shown(value_of(row[0])) for row in table}


@pytest.mark.parametrize("layer", LAYERS)
def test_the_pages_that_list_layers_have_them_in_the_order_of_the_chain(layer: str) -> None:
    listed = (("concepts", "What each layer does"), ("index", "The layers"))
    for text in (sections(page(name))[heading] for name, heading in listed):
        linked = [re.search(r"layers/(\w+)\.md", row[0]) for row in rows(text)]

        assert [found and found[1] for found in linked].index(layer) == LAYERS.index(layer)


def test_every_key_of_a_policy_is_listed_with_its_default() -> None:
    keys: list[str] = []
    for key in RunPolicy.__struct_fields__:
        within = SECTIONS[key].__struct_fields__ if key in SECTIONS else ()
        keys += [key, *(f"{key}.{part}" for part in within)]

    table = rows(sections(page("policies"))["Keys"])

    assert [(row[0], row[1]) for row in table] == [(key, shown(value_of(key))) for key in keys]


def test_presets_are_listed_with_their_numbers() -> None:
    table = rows(sections(page("policies"))["Presets"])

    assert table == [
        [name, *(shown(getattr(preset, column)) for column in PRESET_COLUMNS)]
        for name, preset in PRESETS.items()
    ]


@pytest.mark.parametrize("preset", PRESETS)
def test_what_the_table_of_presets_leaves_out_is_the_same_in_all(preset: str) -> None:
    plain = RunPolicy()
    left_out = {key: getattr(plain, key) for key in PRESET_COLUMNS}

    assert msgspec.structs.replace(PRESETS[preset], **left_out) == plain
    assert PRESETS[preset].breaker in (None, BreakerPolicy())


def test_every_ready_made_policy_is_listed() -> None:
    table = rows(sections(page("policies"))["Ready-made files"])

    assert sorted(row[0] for row in table) == list(ready_made_names())


def test_codes_are_listed_with_their_guidance() -> None:
    table = rows(sections(page("failures"))["Codes"])

    assert table == [[code.name, GUIDANCE[code]] for code in FailureCode]


def test_reasons_are_listed_with_their_code() -> None:
    table = rows(sections(page("failures"))["Reasons"])

    assert [row[:2] for row in table] == [[reason, code.name] for reason, code in REASONS.items()]
    assert all(row[2] for row in table)


@pytest.mark.parametrize(
    ("kind", "name", "section"),
    [
        (Failure, "failures", "Fields"),
        (Span, "recording", "Trace"),
        (Tool, "writing-a-tool", "By hand"),
        (ToolResult, "concepts", "What comes back"),
    ],
)
def test_every_field_is_described(kind: type[msgspec.Struct], name: str, section: str) -> None:
    # A result's own id and tool, and how often it was tried, are told where calls are shown.
    elsewhere = {"call_id", "tool", "attempts", "terminate"} if kind is ToolResult else set()

    said = code_in(sections(page(name))[section])

    missing = [f for f in kind.__struct_fields__ if not re.search(rf"\b{f}\b", said)]
    assert set(missing) <= elsewhere


async def scraped() -> dict[str, tuple[str, frozenset[str]]]:
    """Names of a real scrape, each with its type and labels, after calls of every kind."""
    reading = Annotations.for_reading()
    tools = [
        scripted("fine", name="fine", annotations=reading),
        scripted(ConnectionError("reset"), name="broken", annotations=reading),
        scripted("never", name="asked", risk=Risk.HIGH),
    ]
    policy = RunPolicy(
        timeout_s=5,
        max_retries=1,
        rate="9/minute",
        breaker=BreakerPolicy(),
        adaptive_limit=AdaptiveLimitPolicy(),
    )
    pipeline = Pipeline(tools, policies=Policies(policy))
    for name in ("fine", "broken", "asked", "unknown"):
        await pipeline.call(name)
    found = {}
    for family in text_string_to_metric_families(pipeline.metrics.text().decode()):
        name = f"{family.name}_total" if family.type == "counter" else family.name
        if not family.samples:
            continue
        labels = {label for sample in family.samples for label in sample.labels} - {"le"}
        found[name] = (family.type, frozenset(labels))
    return found


def metrics_listed() -> dict[str, tuple[str, frozenset[str]]]:
    return {
        name: (kind, frozenset(re.findall(r"\w+", labels)) - {"none"})
        for name, kind, labels, *_ in rows(sections(page("metrics"))["What is counted"])
    }


def test_metrics_are_listed_as_the_code_has_them() -> None:
    families = (*COUNTED_FAMILIES, *WATCHED_FAMILIES)

    assert metrics_listed() == {
        family.shown_as: (family.kind, frozenset(family.labels)) for family in families
    }


async def test_metrics_are_listed_as_a_scrape_has_them() -> None:
    listed = metrics_listed()

    found = await scraped()

    assert found == {name: listed[name] for name in found}
    # A store that cannot be reached is no part of this scrape, nor is a label without a value.
    assert set(listed) - set(found) <= {"seawall_store_fallbacks_total"}


def events_listed() -> Rows:
    found = rows(sections(page("recording"))["Metrics"])
    return [row for row in found if not row[0].startswith("seawall_")]


def counts_as(path: Path, source: str) -> str:
    """The name under which a file counts: that of its one layer, or its `LAYER`."""
    named = re.findall(r'^    name = "(\w+)"$', source, re.MULTILINE)
    if named:
        return "".join(named)
    module = path.relative_to(ROOT / "src").with_suffix("")
    return str(importlib.import_module(".".join(module.parts)).LAYER)


def test_events_are_listed_as_the_sources_count_them() -> None:
    table = events_listed()
    counted = {("breaker", state) for state in STATES}
    for path in SOURCES:
        source = path.read_text(encoding="utf-8")
        counted |= {(counts_as(path, source), event) for event in COUNTED.findall(source)}

    assert {(row[0], row[1]) for row in table} == counted
    assert len(table) == len(counted)


@pytest.mark.parametrize("layer", LAYERS)
def test_events_on_a_layers_page_are_those_of_the_list(layer: str) -> None:
    listed = [row for row in events_listed() if row[0] == layer]

    said = sections(page(f"layers/{layer}"))["Telemetry"]

    told = re.findall(rf"`{layer}`/`(\w+)`", said)
    assert sorted(told) == sorted(row[1] for row in listed)


def test_the_standard_flags_are_named() -> None:
    said = code_in(page("layers/environment_gate"))

    assert [flag for flag in STANDARD_FLAGS if flag not in said] == []


def _leaves(commands: dict[str, Any], before: str = "") -> list[tuple[str, Any]]:
    """Commands, and those of groups by both names: `policy check`."""
    found: list[tuple[str, Any]] = []
    for name, command in commands.items():
        within = getattr(command, "commands", None)
        found += (
            [(before + name, command)] if within is None else _leaves(within, f"{before}{name} ")
        )
    return found


def commands() -> dict[str, list[str]]:
    """The options of each command, and of the program itself under an empty name."""
    program: Any = typer.main.get_command(app)
    found = {"": [option for one in program.params for option in one.opts]}
    for name, command in _leaves(program.commands):
        options = [one for one in command.params if one.param_type_name == "option"]
        found[name] = [option for one in options for option in one.opts]
    return found


@pytest.mark.parametrize("command", commands())
def test_every_command_is_described_with_its_options(command: str) -> None:
    text = page("command-line")
    found = sections(text)
    group = f"seawall {command.partition(' ')[0]}"
    said = code_in(found.get(f"seawall {command}") or found[group] if command else text)

    missing = [o for o in commands()[command] if not re.search(rf"(?<![\w-]){o}\b", said)]

    assert missing == []


def test_exit_codes_are_listed_with_their_meaning() -> None:
    table = rows(sections(page("command-line"))["Exit codes"])

    assert table[: len(MEANINGS)] == [
        [str(int(code)), meaning] for code, meaning in MEANINGS.items()
    ]


@pytest.mark.parametrize("name", seawall.__all__)
def test_every_public_name_is_told(name: str) -> None:
    pages = [ROOT / "README.md", *DOCS.rglob("*.md")]
    if name == "__version__":
        return  # `seawall --version` says it

    assert any(re.search(rf"\b{name}\b", code_in(p.read_text(encoding="utf-8"))) for p in pages)


def test_the_status_says_the_version() -> None:
    status = sections((ROOT / "README.md").read_text(encoding="utf-8"))["Status"]

    assert status.strip().startswith(f"Version {seawall.__version__.rpartition('.')[0]}.")
