from __future__ import annotations

from typing import Any

import pytest

from seawall import ConfigurationError, Shared


def test_a_shared_store_connects_to_nothing_and_shows_no_secret() -> None:
    shared = Shared("redis://user:secret@nowhere.invalid/0")

    assert repr(shared) == "Shared('redis://nowhere.invalid/0')"
    assert not shared.is_up


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"replicas": 0}, "replicas"),
        ({"replicas": 1.5}, "replicas"),
        ({"replicas": True}, "replicas"),
        ({"timeout_s": 0}, "timeout_s"),
        ({"timeout_s": "50ms"}, "timeout_s"),
        ({"timeout_s": 61}, "timeout_s"),
        ({"prefix": ""}, "prefix"),
        ({"prefix": "a\nb"}, "prefix"),
    ],
)
def test_what_cannot_work_is_told(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        Shared("redis://host", **settings)


def test_all_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(ConfigurationError) as raised:
        Shared("redis://host", replicas=0, timeout_s=0, prefix="")

    assert [fault.key for fault in raised.value.faults] == ["replicas", "timeout_s", "prefix"]
