import itertools
from fnmatch import fnmatchcase

import pytest

from seawall.edges.mcp.names import prefix_of, tool_name
from seawall.registry.registry import MAX_NAME, name_faults

SERVERS = [
    "a",
    "a__b",
    "a_",
    "_a",
    "a_b",
    "a-b",
    "a b",
    "a.b",
    "A",
    "",
    "__",
    "é",
    "a" * 60,
    "a" * 61,
]
TOOLS = ["c", "b__c", "_c", "__c", "b", "x" * 128]


@pytest.mark.parametrize("server", ["time", "my-server", "a_b", "io.github.x"])
def test_a_plain_server_name_is_its_prefix(server: str) -> None:
    assert prefix_of(server) == server


def test_no_two_tools_of_any_servers_have_one_name() -> None:
    names = [tool_name(server, tool) for server, tool in itertools.product(SERVERS, TOOLS)]

    assert len(set(names)) == len(names)
    assert not [fault for name in names for fault in name_faults(name)]


def test_a_rule_for_one_server_covers_no_other() -> None:
    for server, other in itertools.permutations(SERVERS, 2):
        rule = f"{prefix_of(server)}__*"
        assert not [tool for tool in TOOLS if fnmatchcase(tool_name(other, tool), rule)]


def test_long_names_end_in_a_hash_and_fit() -> None:
    one, other = tool_name("s", "x" * 128), tool_name("s", "x" * 127 + "y")

    assert len(one) == MAX_NAME
    assert one != other
