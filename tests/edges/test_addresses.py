import sys

import pytest

from seawall.edges.addresses import HeldAddress, bind, is_loopback, listen


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", True), ("::1", True), ("[::1]", True), ("localhost", True), ("0.0.0.0", False),
     ("10.1.2.3", False), ("example.org", False)],
)  # fmt: skip
def test_loopback_addresses_are_known(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux spreads connections")
def test_an_address_is_held_for_those_who_share_it_and_for_nobody_else() -> None:
    held = HeldAddress("127.0.0.1", 0)
    try:
        with bind("127.0.0.1", held.port, shared=True) as one:
            with bind("127.0.0.1", held.port, shared=True) as other:
                one.listen()
                other.listen()
            with pytest.raises(OSError, match="in use"):
                listen("127.0.0.1", held.port, 1)
            with pytest.raises(OSError, match="in use"):
                HeldAddress("127.0.0.1", held.port)
    finally:
        held.close()

    HeldAddress("127.0.0.1", held.port).close()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux spreads connections")
def test_of_two_that_hold_an_address_at_once_one_gets_it_before_anybody_listens() -> None:
    held = HeldAddress("127.0.0.1", 0)
    try:
        with pytest.raises(OSError, match="in use"):
            HeldAddress("localhost", held.port)
    finally:
        held.close()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux spreads connections")
def test_an_address_that_another_program_shares_is_not_held() -> None:
    with bind("127.0.0.1", 0, shared=True) as strange:
        strange.listen()
        with pytest.raises(OSError, match="in use"):
            HeldAddress("127.0.0.1", strange.getsockname()[1])
