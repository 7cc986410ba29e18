import itertools

import pytest

from seawall.contract.ownership import holder_of, owner_key

NAMES = ["", "a", "b", "a:b", "@caller:", "@caller::", "\0", "\ud800", "x" * 500]


def test_only_the_same_session_of_the_same_caller_has_the_same_name() -> None:
    crafted = [owner_key(caller, session) for caller in NAMES for session in NAMES]
    pairs = list(itertools.product(NAMES, [*NAMES, *crafted]))

    assert len({owner_key(*pair) for pair in pairs}) == len(set(pairs))


def test_without_a_caller_it_is_the_id() -> None:
    assert owner_key("", "chat") == "chat"
    assert owner_key("", "") == ""


@pytest.mark.parametrize("session", NAMES)
def test_all_sessions_of_a_caller_have_one_holder(session: str) -> None:
    assert holder_of(owner_key("shop", session)) == holder_of(owner_key("shop", "else")) != ""
    assert holder_of(owner_key("", session)) == ""
