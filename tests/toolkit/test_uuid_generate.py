import uuid
from typing import Any

import pytest

from seawall.contract.failure import ToolFailed
from seawall.pipeline.chance import SystemChance
from seawall.toolkit.uuid_generate import UuidGenerate

NEW_YEAR = 1_767_225_600.25


class _Ones:
    """Chance whose every bit is set."""

    def uniform(self, low: float, high: float) -> float:
        return high

    def integer(self, low: int, high: int) -> int:
        return high

    def token(self, n: int) -> str:
        return "ff" * n


def _made(**arguments: Any) -> list[uuid.UUID]:
    made = UuidGenerate(lambda: NEW_YEAR, SystemChance()).uuid_generate(**arguments)
    return [uuid.UUID(text) for text in made["uuids"]]


@pytest.mark.parametrize("version", ["v4", "v7"])
def test_identifiers_are_of_their_version_and_differ(version: str) -> None:
    made = _made(version=version, count=100)

    assert {one.version for one in made} == {int(version[1])}
    assert {one.variant for one in made} == {uuid.RFC_4122}
    assert len(set(made)) == 100


def test_those_of_one_call_are_in_order_of_time() -> None:
    made = _made(version="v7", count=1000)

    assert made == sorted(made)
    assert made[0].int >> 80 == int(NEW_YEAR * 1000)


def test_a_counter_that_runs_over_moves_to_the_next_millisecond() -> None:
    maker = UuidGenerate(lambda: NEW_YEAR, _Ones())
    texts = [one for _ in range(3) for one in maker.uuid_generate("v7", 1000)["uuids"]]
    made = maker._by_time(4000)

    assert made == sorted(made)
    assert made[-1].int >> 80 == int(NEW_YEAR * 1000) + 1
    assert all(uuid.UUID(text).version == 7 for text in texts)


@pytest.mark.parametrize("namespace", ["dns", "DNS", str(uuid.NAMESPACE_DNS)])
def test_a_name_has_one_identifier(namespace: str) -> None:
    made = _made(version="v5", namespace=namespace, name="example.com")

    assert made == [uuid.uuid5(uuid.NAMESPACE_DNS, "example.com")]


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"version": "v5", "name": "a"}, "namespace"),
        ({"version": "v5", "namespace": "dsn", "name": "a"}, "namespace"),
        ({"version": "v5", "namespace": "dns", "name": "a", "count": 2}, "count"),
        ({"version": "v5", "namespace": "dns", "name": "\ud800"}, "name"),
        ({"version": "v4", "name": "a"}, "name"),
        ({"version": "v7", "namespace": "dns"}, "namespace"),
    ],
)
def test_arguments_that_do_not_belong_together_are_refused(
    arguments: dict[str, Any], field: str
) -> None:
    with pytest.raises(ToolFailed) as refused:
        _made(**arguments)

    assert refused.value.failure.fields == (field,)
