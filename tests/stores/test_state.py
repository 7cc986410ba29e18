import sys
from pathlib import Path

import pytest

from seawall import Pipeline
from seawall.contract.errors import ConfigurationError, MissingExtra
from seawall.stores import open_state
from seawall.stores.keys import VARIABLE

KEY = bytes(range(32))


async def test_a_state_in_memory_needs_nothing_and_outlives_nothing() -> None:
    async with open_state() as state:
        assert not state.durable
        assert state.seal is None
        assert state.digest_key is None
        assert state.shown == "memory:"


async def test_a_file_state_seals_by_itself(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/state.db"
    async with open_state(url) as state:
        assert state.durable
        assert state.seal is not None
        sealed = state.seal.close(b"yes", "here")

    again = open_state(url)
    assert again.seal is not None
    assert again.seal.open(sealed, "here") == b"yes"
    assert again.digest_key == state.digest_key


async def test_a_server_state_seals_with_a_key_only(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)

    assert open_state(postgres_url).seal is None
    assert open_state(postgres_url, key=KEY).seal is not None


@pytest.mark.parametrize(
    ("module", "url", "extra"),
    [
        ("aiosqlite", "sqlite:///state.db", "state"),
        ("sqlalchemy.ext.asyncio", "sqlite:///state.db", "state"),
        ("cryptography.exceptions", "sqlite:///state.db", "state"),
        ("asyncpg", "postgresql://db/app", "postgres"),
    ],
)
def test_an_extra_that_is_missing_is_named(
    module: str, url: str, extra: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, module, None)

    with pytest.raises(MissingExtra, match=rf"pip install 'seawall\[{extra}\]'"):
        open_state(url)


@pytest.mark.parametrize("key", [b"", b"short", KEY + b"x"])
def test_a_key_of_another_length_is_refused(key: bytes, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="32 bytes"):
        open_state(f"sqlite:///{tmp_path}/state.db", key=key)


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(ConfigurationError, match="cannot be used: "):
        open_state(f"sqlite:///{tmp_path}/file/state.db")


async def test_a_pipeline_opens_and_closes_the_state_of_a_url(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/state.db"
    async with Pipeline([], state=url) as pipeline:
        assert pipeline.state is not None
        assert (tmp_path / "state.db").exists()

    other = Pipeline([], state=url)
    assert other.digester.text("a") == pipeline.digester.text("a")


async def test_a_pipeline_leaves_open_what_it_was_given(tmp_path: Path) -> None:
    async with open_state(f"sqlite:///{tmp_path}/state.db") as state:
        async with Pipeline([], state=state) as pipeline:
            assert pipeline.state is state

        assert state.database is not None
        await state.database.start()
