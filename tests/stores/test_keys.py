import base64
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from seawall.contract.errors import ConfigurationError
from seawall.stores.keys import VARIABLE, Keys, keys_for, read_keys

ONE, TWO = bytes(range(32)), bytes(range(1, 33))


@pytest.fixture(autouse=True)
def _no_key_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)


def test_a_key_is_made_once_beside_the_file_for_its_owner_alone(tmp_path: Path) -> None:
    first = keys_for(tmp_path / "state.db", None)
    second = keys_for(tmp_path / "state.db", None)

    assert first is not None
    assert second is not None
    assert first.all == second.all
    beside = tmp_path / "state.db.key"
    assert stat.S_IMODE(beside.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [beside]


def test_those_who_make_a_key_at_once_all_get_the_same(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: keys_for(tmp_path / "state.db", None), range(16)))

    assert len({keys.all for keys in found if keys is not None}) == 1


def test_a_key_that_others_may_read_is_refused(tmp_path: Path) -> None:
    keys_for(tmp_path / "state.db", None)
    (tmp_path / "state.db.key").chmod(0o640)

    with pytest.raises(ConfigurationError, match="chmod 600"):
        keys_for(tmp_path / "state.db", None)


@pytest.mark.parametrize(
    "text", [ONE.hex(), base64.b64encode(ONE).decode(), f"  {ONE.hex().upper()}\n"]
)
def test_a_key_comes_from_the_environment(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, text)

    keys = keys_for(None, None)

    assert keys is not None
    assert keys.all == (ONE,)


def test_the_environment_seals_and_the_file_still_opens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = keys_for(tmp_path / "state.db", None)
    monkeypatch.setenv(VARIABLE, f"{ONE.hex()},{TWO.hex()}")

    after = keys_for(tmp_path / "state.db", None)

    assert before is not None
    assert after is not None
    assert after.all == (ONE, TWO, *before.all)
    assert after.for_digests() == before.for_digests()


def test_with_a_key_from_outside_no_file_is_made(tmp_path: Path) -> None:
    keys = keys_for(tmp_path / "state.db", ONE)

    assert keys is not None
    assert keys.all == (ONE,)
    assert os.listdir(tmp_path) == []  # noqa: PTH208  # the plainest way to say it


def test_a_server_without_a_key_has_none() -> None:
    assert keys_for(None, None) is None


@pytest.mark.parametrize("text", ["short", ONE.hex()[:-2], base64.b64encode(ONE[:-1]).decode(), ""])
def test_what_is_no_key_is_refused_without_being_shown(text: str) -> None:
    with pytest.raises(ConfigurationError, match="VARIABLE holds") as caught:
        read_keys(text, "VARIABLE")

    assert not text or text not in str(caught.value)


def test_keys_are_shown_by_name_alone() -> None:
    assert ONE.hex() not in repr(Keys([ONE]))
