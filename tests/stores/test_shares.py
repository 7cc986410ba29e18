import pytest

from seawall.stores.shares import Share, to_drop


def _shares(said: str) -> list[Share]:
    """Read `a1 b2`: holder and size, the first goes first."""
    return [Share(f"{at}{one}", one[0], int(one[1:])) for at, one in enumerate(said.split())]


@pytest.mark.parametrize(
    ("kept", "most", "dropped"),
    [
        ("a1 b1", 2, []),
        ("a1 a1 b1", 2, ["0a1"]),
        ("b1 a1 a1 a1", 2, ["1a1", "2a1"]),
        ("b3 a1 a1 a1", 5, ["0b3"]),
        ("a5 b5", 5, ["0a5"]),
        ("a5", 4, ["0a5"]),
        ("a0 b1", 0, ["1b1"]),
        ("", 0, []),
    ],
)
def test_who_has_most_makes_room_with_what_is_oldest(
    kept: str, most: int, dropped: list[str]
) -> None:
    assert to_drop(_shares(kept), most) == dropped
