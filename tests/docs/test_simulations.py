"""The simulation in the docs says what its page says, on a tenth of its scale."""

from __future__ import annotations

import asyncio
import importlib.util
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

SCRIPT = Path(__file__).parents[2] / "docs" / "simulations" / "recovery.py"


@pytest.fixture(name="recovery", scope="module")
def recovery_fixture() -> Any:
    spec = importlib.util.spec_from_file_location("recovery", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.PROCESSES, module.CAPACITY, module.DOWN, module.SECONDS = 100, 70.0, (20, 50), 90
    return module


@pytest.fixture(name="services", scope="module")
def services_fixture(recovery: Any) -> Any:
    return {name: asyncio.run(recovery.simulated(policy)) for name, policy in recovery.WAYS.items()}


def test_a_budget_with_a_single_probe_asks_less_while_it_is_down_and_as_it_recovers(
    services: Any, recovery: Any
) -> None:
    naive, jitter, ours = services.values()
    down, up = recovery.DOWN

    def mean(service: Any, begin: int, end: int) -> float:
        return float(sum(service.asked[s] for s in range(begin, end)) / (end - begin))

    usual = mean(ours, 5, down)
    assert mean(ours, down + 3, up) < 0.6 * usual
    assert min(mean(naive, down + 8, up), mean(jitter, down + 15, up)) > 4 * usual
    assert max(ours.asked[second] for second in range(up, up + 20)) < 1.5 * usual


def test_all_ways_serve_everybody_in_the_end(services: Any, recovery: Any) -> None:
    for service in services.values():
        last = range(recovery.SECONDS - 10, recovery.SECONDS - 1)
        asked, served = (sum(count[s] for s in last) for count in (service.asked, service.served))

        assert served >= 0.98 * asked
        assert asked >= 0.8 * 10 * recovery.PROCESSES / recovery.EVERY_S * 0.9


def test_the_drawing_has_a_panel_for_each_way(services: Any, recovery: Any) -> None:
    root = ET.fromstring(recovery.drawn(services))

    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    lines = list(root.iter("{http://www.w3.org/2000/svg}polyline"))
    assert [name for name in recovery.WAYS if name not in texts] == []
    assert len(lines) == 2 * len(recovery.WAYS)


def test_what_is_told_names_each_way(services: Any, recovery: Any) -> None:
    said = recovery.told(services).splitlines()

    assert [line.split(": ")[0] for line in said] == [name.split(": ")[0] for name in services]
