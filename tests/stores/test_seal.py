import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall.contract.errors import SealBroken
from seawall.stores.keys import Keys
from seawall.stores.seal import Seal

ONE, TWO = bytes(range(32)), bytes(range(1, 33))
SEAL = Seal(Keys([ONE]))


@given(st.binary(max_size=200), st.text(max_size=40).filter(str.isprintable))
def test_what_was_sealed_is_opened_at_its_place(plain: bytes, place: str) -> None:
    sealed = SEAL.close(plain, place)

    assert SEAL.open(sealed, place) == plain
    assert len(plain) < 8 or plain not in sealed


def test_the_same_is_never_sealed_twice_in_the_same_way() -> None:
    assert SEAL.close(b"yes", "a") != SEAL.close(b"yes", "a")


def test_what_was_sealed_opens_nowhere_else() -> None:
    with pytest.raises(SealBroken, match="changed, or moved"):
        SEAL.open(SEAL.close(b"yes", "a"), "b")


@given(st.data())
def test_a_changed_byte_is_noticed(data: st.DataObject) -> None:
    sealed = bytearray(SEAL.close(b"pay 10", "a"))
    position = data.draw(st.integers(0, len(sealed) - 1))
    sealed[position] ^= data.draw(st.integers(1, 255))

    with pytest.raises(SealBroken):
        SEAL.open(bytes(sealed), "a")


@pytest.mark.parametrize("cut", [0, 1, 5, 16, 17, 30])
def test_a_piece_is_not_opened(cut: int) -> None:
    with pytest.raises(SealBroken):
        SEAL.open(SEAL.close(b"pay 10", "a")[:cut], "a")


def test_a_new_key_seals_and_the_old_one_still_opens() -> None:
    old, both = Seal(Keys([ONE])), Seal(Keys([TWO, ONE]))
    before, after = old.close(b"yes", "a"), both.close(b"no", "a")

    assert both.open(before, "a") == b"yes"
    assert Seal(Keys([TWO])).open(after, "a") == b"no"


def test_without_its_key_the_error_names_the_key_that_is_missing() -> None:
    sealed = Seal(Keys([ONE])).close(b"yes", "a")

    with pytest.raises(SealBroken, match=SEAL.key_id):
        Seal(Keys([TWO])).open(sealed, "a")


def test_a_name_is_the_same_for_the_same_text_and_key_alone() -> None:
    assert SEAL.names(b"pay 10") == SEAL.names(b"pay 10")
    assert not {*SEAL.names(b"pay 10")} & {*SEAL.names(b"pay 11")}
    assert not {*SEAL.names(b"pay 10")} & {*Seal(Keys([TWO])).names(b"pay 10")}


def test_what_was_named_with_an_old_key_is_found_with_the_new_one_before_it() -> None:
    (before,) = Seal(Keys([ONE])).names(b"pay 10")
    (after,) = Seal(Keys([TWO])).names(b"pay 10")

    assert Seal(Keys([TWO, ONE])).names(b"pay 10") == (after, before)
