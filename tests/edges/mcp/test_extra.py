import pytest

from seawall import ConfigurationError
from seawall.edges.mcp import extra


@pytest.mark.parametrize("missing", ["mcp", "httpx2"])
def test_a_missing_sdk_is_told_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    monkeypatch.setattr(extra, "find_spec", lambda name: None if name == missing else object())

    with pytest.raises(ConfigurationError, match=r"pip install 'seawall\[mcp\]'"):
        extra.need_sdk()


def test_an_sdk_of_the_generation_before_is_said_to_be_too_old(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    there = {"mcp": object()}
    monkeypatch.setattr(extra, "find_spec", there.get)

    with pytest.raises(ConfigurationError, match=r"mcp [\d.]+ does not fit.*before 2\.0"):
        extra.need_sdk()


def test_with_the_sdk_there_is_nothing_to_say() -> None:
    extra.need_sdk()
