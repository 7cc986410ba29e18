from __future__ import annotations

import hashlib
import stat
from typing import TYPE_CHECKING

import pytest

from seawall import ConfigurationError
from seawall.edges.gateway.tokens import (
    MadeToken,
    tokens_from_environment,
    tokens_from_file,
)

if TYPE_CHECKING:
    from pathlib import Path

TOKEN = "a-token-of-some-length"


def written(path: Path, text: str, mode: int = 0o600) -> Path:
    path.write_text(text)
    path.chmod(mode)
    return path


def test_a_file_gives_clients_by_token_or_by_digest(tmp_path: Path) -> None:
    digest = hashlib.sha256(b"another-token-of-length").hexdigest()
    path = written(
        tmp_path / "tokens.toml",
        f'[tokens.ci]\ntoken = "{TOKEN}"\nscopes = ["call", "approve"]\nrate = "5/second"\n'
        f'[tokens.ops]\nsha256 = "{digest}"\nscopes = ["admin"]\n',
    )

    tokens = tokens_from_file(path)

    ci = tokens.client_of(TOKEN.encode())
    ops = tokens.client_of(b"another-token-of-length")
    assert ci is not None
    assert (ci.name, ci.rate, ci.may("approve"), ci.may("admin")) == ("ci", "5/second", True, False)
    assert ops is not None
    assert ops.may("call")
    assert tokens.client_of(b"neither") is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[tokens.a]\n", "tokens.a: needs either token or sha256"),
        ('[tokens.a]\ntoken = "short"\n', "tokens.a.token: must be a text of 16 to 4096"),
        ('[tokens.a]\ntoken = "with a blank in it"\n', "without blanks"),
        ('[tokens.a]\nsha256 = "12"\n', "tokens.a.sha256: must be 64 hexadecimal digits"),
        (f'[tokens.a]\ntoken = "{TOKEN}"\nscopes = ["root"]\n', "tokens.a.scopes: must be a list"),
        (f'[tokens.a]\ntoken = "{TOKEN}"\nscopes = []\n', "tokens.a.scopes: must be a list"),
        (f'[tokens.a]\ntoken = "{TOKEN}"\nrate = "often"\n', "tokens.a.rate: is 'often'"),
        (f'[tokens.a]\ntoken = "{TOKEN}"\nscope = "call"\n', "tokens.a.scope: is not known"),
        (f'[tokens.a]\ntoken = "{TOKEN}"\n[tokens.b]\ntoken = "{TOKEN}"\n', "the same token"),
        ("[token.a]\n", "token: is not known"),
        ("tokens = 5\n", "tokens: must be at most"),
        ("[tokens", "cannot be read"),
    ],
)
def test_a_faulty_file_says_where(tmp_path: Path, text: str, said: str) -> None:
    path = written(tmp_path / "tokens.toml", text)

    with pytest.raises(ConfigurationError) as caught:
        tokens_from_file(path)

    assert said in str(caught.value)
    assert str(path) in str(caught.value)
    assert TOKEN not in str(caught.value)


def test_a_file_that_others_may_read_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "tokens.toml", f'[tokens.a]\ntoken = "{TOKEN}"\n', 0o640)

    with pytest.raises(ConfigurationError, match="chmod 600"):
        tokens_from_file(path)


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="No such file"):
        tokens_from_file(tmp_path / "tokens.toml")


def test_the_environment_gives_two_tokens() -> None:
    tokens = tokens_from_environment({"SEAWALL_TOKEN": TOKEN, "SEAWALL_ADMIN_TOKEN": TOKEN + "2"})

    assert [sorted(client.scopes) for client in tokens.clients] == [["call"], ["admin"]]


def test_a_short_token_in_the_environment_names_the_variable() -> None:
    with pytest.raises(ConfigurationError, match="SEAWALL_TOKEN: must be a text"):
        tokens_from_environment({"SEAWALL_TOKEN": "x"})


def test_a_made_token_is_in_a_file_that_only_its_owner_can_read(tmp_path: Path) -> None:
    path = tmp_path / "state" / "token"

    made = MadeToken(path)
    made.write()

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    client = made.tokens.client_of(path.read_text().strip().encode())
    assert client is not None
    assert client.may("admin")
    assert [item.name for item in path.parent.iterdir()] == ["token"]


def test_a_run_takes_its_own_token_away_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "token"
    first, second = MadeToken(path), MadeToken(path)
    first.write()
    second.write()

    first.remove()
    assert path.exists()

    second.remove()
    second.remove()
    assert list(tmp_path.iterdir()) == []


def test_a_made_token_takes_the_place_of_the_former(tmp_path: Path) -> None:
    path = tmp_path / "token"
    MadeToken(path).write()
    former = path.read_text()

    MadeToken(path).write()

    assert path.read_text() != former
