from pathlib import Path

import pytest

from seawall import ConfigurationError
from seawall.edges.mcp.jsonc import MAX_BYTES, parsed, read_json


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1, // one\n "b": 2}', {"a": 1, "b": 2}),
        ('/* head */ {"a": [1, 2, /* x */ ], }', {"a": [1, 2]}),
        (
            '{"url": "http://x//y", "c": "/* no */ , }"}',
            {"url": "http://x//y", "c": "/* no */ , }"},
        ),
        ('{"a": "\\"// not a comment"}', {"a": '"// not a comment'}),
        ('{"a": 1, // last\n}', {"a": 1}),
    ],
)
def test_comments_and_trailing_commas_are_passed_over(text: str, value: object) -> None:
    assert parsed(text, "f") == value


def test_what_is_no_json_is_told_with_its_place() -> None:
    with pytest.raises(ConfigurationError, match=r"mcp\.json:3:3: is no JSON"):
        parsed('{"a": 1, // one\n"b": 2\n  nonsense}', "mcp.json")


def test_a_key_that_stands_twice_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"f: time: stands here twice"):
        parsed('{"mcpServers": {"time": {}, "time": {}}}', "f")


def test_deep_nesting_is_told() -> None:
    with pytest.raises(ConfigurationError, match=r"nested too deeply|is no JSON"):
        parsed("[" * 100_000, "f")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read: No such file"),
        (b"\xff\xfe{", "is no UTF-8 text"),
        (b" " * (MAX_BYTES + 1), "has more than"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(
    tmp_path: Path, content: bytes | None, said: str
) -> None:
    path = tmp_path / "mcp.json"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(ConfigurationError, match=said) as error:
        read_json(path)

    assert error.value.faults[0].file == str(path)


def test_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_bytes(b"\xef\xbb\xbf{}")

    assert read_json(path) == {}


def test_many_open_comments_take_no_long_time() -> None:
    with pytest.raises(ConfigurationError):
        parsed("{" + "/*" * 20_000, "f")
    with pytest.raises(ConfigurationError):
        parsed("[" + "1,/*" * 20_000, "f")
