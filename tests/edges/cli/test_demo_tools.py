import pytest

from seawall.contract.annotations import Risk
from seawall.edges.cli.demo_script import PERSON
from seawall.edges.cli.demo_tools import Shop, demo_tools
from seawall.registry.registry import Registry


@pytest.fixture(name="registry")
def registry_fixture() -> Registry:
    return Registry(demo_tools(Shop("127.0.0.1", 1)))


@pytest.mark.parametrize(
    ("name", "risk", "retry_safe"),
    [
        ("weather", Risk.LOW, True),
        ("inventory_lookup", Risk.LOW, True),
        ("sales_report", Risk.LOW, True),
        ("print_label", Risk.MEDIUM, False),
        ("ship_order", Risk.HIGH, False),
        ("delete_records", Risk.HIGH, False),
    ],
)
def test_the_hints_say_what_a_call_does_to_the_world(
    registry: Registry, name: str, risk: Risk, retry_safe: object
) -> None:
    tool = registry.get(name)

    assert tool is not None
    assert tool.effective_risk is risk
    assert tool.retry_safe is retry_safe


def test_a_person_has_a_word_on_each_tool_that_is_asked_about(registry: Registry) -> None:
    asked = {tool.name for tool in registry if tool.effective_risk is Risk.HIGH}

    assert asked == set(PERSON)


def test_the_key_of_an_order_is_no_argument_of_the_model(registry: Registry) -> None:
    tool = registry.get("ship_order")

    assert tool is not None
    assert set(tool.input_schema["properties"]) == {"order_id", "quantity", "express"}
