"""The JSON Schema of policy files: it takes what the loader takes, and refuses its slips."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import jsonschema_rs
import pytest

from seawall.contract.errors import ConfigurationError
from seawall.policy import schema
from seawall.policy.model import Policies
from seawall.policy.ready_made import ready_made, ready_made_names
from seawall.policy.schema import policy_schema
from seawall.policy.sheet import _RISK, _RULE, _SELECTORS, SETTINGS
from seawall.policy.units import SECTION_READERS

VALIDATOR = jsonschema_rs.validator_for(policy_schema())


@pytest.mark.parametrize("name", ready_made_names())
def test_every_ready_made_file_fits(name: str) -> None:
    document = tomllib.loads(ready_made(name).read_text())

    assert [error.message for error in VALIDATOR.iter_errors(document)] == []


def test_the_published_file_is_the_schema_of_this_version() -> None:
    published = Path(__file__).parents[2] / "policies" / "policy.schema.json"

    assert json.loads(published.read_text()) == policy_schema()


def test_the_schema_is_sound_itself() -> None:
    jsonschema_rs.meta.validate(policy_schema())


def test_the_keys_are_those_of_the_loader() -> None:
    assert set(schema.RULE) == set(_RULE)
    assert {name: set(keys) for name, keys in schema.TABLES.items()} == {
        name: set(keys) for name, keys in SECTION_READERS.items()
    }
    assert set(schema.CHOICE) == set(_SELECTORS)
    assert set(schema.RISK) == set(_RISK)
    assert {name: set(keys) for name, keys in schema.SETTINGS.items()} == {
        name: set(keys) for name, keys in SETTINGS.items()
    }


FINE = [
    'extends = "strict"',
    "loop = false",
    "[loop]\nwindow = false\npause_s = '5m'",
    "[tools.a]\nbreaker = false\ntimeout_s = false",
    '[tools.a]\nrate = "10 per 2 hours"\nrate_key = ["tool", "caller"]',
    '[tools.a]\nrate = "5/MINUTE"\nrate_key = "global"',
    '[tools.a]\ntimeout_s = "250ms"\nmax_result_bytes = "256KiB"\ndelays_s = [1, "2s"]',
    '[families.x]\nmatch = "a_*"\nannotations = { read_only = true }\npreset = "network"',
    '[tools."git_*"]\nbreaker.shared = false\nbreaker.ignore = "KeyError"',
    '[risk]\nallow = []\nask = "x"',
    '[risk]\nask_from = "Dangerous"',
    "[console]\nallow = []",
    '[tools.a]\ncache.ttl_s = "5m"\nretry_budget.share = "20%"\nadaptive_limit.max_limit = 9',
    '[tools.a]\nbreaker.failure_rate = 0.5\nbreaker.window_s = "1m"',
    '[risk]\ntools = { "x_*" = "high" }',
    '[[risk.rules]]\ntool = "w"\nargument = "/path"\nunder = ["/srv"]\ndecide = "allow"',
    "[trace]\ncapacity = 0",
]


@pytest.mark.parametrize("text", FINE)
def test_what_the_loader_takes_fits(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.toml"
    path.write_text(text)

    Policies.load(path)

    assert [error.message for error in VALIDATOR.iter_errors(tomllib.loads(text))] == []


FAULTS = [
    "tols = {}",
    'extends = "strickt"',
    "extends = 5",
    "[tools.a]\nmax_retrys = 3",
    "[tools.a]\ntimeout_s = 0",
    '[tools.a]\ntimeout_s = "0s"',
    '[tools.a]\ntimeout_s = "5 parsecs"',
    "[tools.a]\ntimeout_s = true",
    "[tools.a]\ntimeout_s = -1",
    "[tools.a]\nmax_retries = 1.5",
    "[tools.a]\nmax_retries = -1",
    '[tools.a]\nrate = "often"',
    '[tools.a]\nrate = "0/minute"',
    '[tools.a]\nrate = "5/minute; 7/hour"',
    '[tools.a]\nrate_key = ["global", "tool"]',
    '[tools.a]\nrate_key = ["user"]',
    '[tools.a]\nrate_mode = "watch"',
    '[tools.a]\nrate_strategy = "leaky"',
    "[tools.a]\nmax_result_bytes = 10",
    '[tools.a]\nmax_result_bytes = "1KB"',
    '[tools.a]\nbreaker.threshold = "five"',
    "[tools.a]\nbreaker.treshold = 5",
    "[tools.a]\nbreaker = 5",
    '[tools.a]\nbreaker.mode = "shaddow"',
    '[tools.a]\ncoercion = "some"',
    "[tools.a]\ndelays_s = 5",
    '[tools.a]\npreset = ""',
    "[families.a]\nmatch = 5",
    "[families.a]\nmatch = []",
    "[families.a]\nannotations.readonly = true",
    "[risk]\nstrict = 1",
    '[risk]\nask_from = "never"',
    "[trace]\ncapacity = -1",
    "[loop]\nthreshold = 1",
    '[loop]\nscope = "some"',
    "loop = true",
    "tools = 5",
    '[tools.a]\ncache.ttl = "5m"',
    '[tools.a]\nretry_budget.share = "a fifth"',
    '[[risk.rules]]\ntool = "w"\nargument = "/path"\ndecide = "maybe"',
    '[[risk.rules]]\ntool = "w"\nargument = "/path"',
]


@pytest.mark.parametrize("text", FAULTS)
def test_slips_that_the_loader_refuses_do_not_fit(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.toml"
    path.write_text(text)
    with pytest.raises(ConfigurationError):
        Policies.load(path)

    assert not VALIDATOR.is_valid(tomllib.loads(text))
