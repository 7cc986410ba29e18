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


def test_with_the_sdk_there_is_nothing_to_say() -> None:
    extra.need_sdk()
