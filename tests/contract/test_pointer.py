import pytest

from seawall.contract.pointer import escaped, steps_of, unescaped


@pytest.mark.parametrize("step", ["", "a", "b/c", "~", "~1", "~01", "/", "~/~0"])
def test_a_step_is_read_as_it_was_meant(step: str) -> None:
    assert unescaped(escaped(step)) == step
    assert steps_of(f"/a/{escaped(step)}/0") == ["a", step, "0"]


@pytest.mark.parametrize(
    ("key", "step"), [("a", "a"), ("a/b", "a~1b"), ("a~b", "a~0b"), ("~1", "~01"), (3, "3")]
)
def test_a_step_of_a_pointer_is_escaped(key: str | int, step: str) -> None:
    assert escaped(key) == step


def test_a_pointer_to_the_whole_has_no_steps() -> None:
    assert steps_of("") == []
