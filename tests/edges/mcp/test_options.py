from typing import Any

import pytest

from seawall import ConfigurationError
from seawall.edges.mcp.options import McpOptions


@pytest.mark.parametrize(
    "wrong",
    [
        {"connect_s": 0},
        {"max_message_bytes": -1},
        {"base_delay_s": 0},
        {"max_delay_s": 0},
        {"max_restarts": 0},
        {"restart_window_s": float("nan")},
        {"on_change": "accept"},
        {"protocol": "2024-11-05"},
    ],
)
def test_options_that_cannot_work_are_refused_by_name(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError) as error:
        McpOptions(**wrong)

    assert [fault.key for fault in error.value.faults] == list(wrong)


def test_all_faults_are_told_together() -> None:
    with pytest.raises(ConfigurationError) as error:
        McpOptions(connect_s=0, max_restarts=-1)

    assert len(error.value.faults) == 2
