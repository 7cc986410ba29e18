from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall.registry.spelling import LONGEST_NAME, fold, read, spell, stem


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("get_current_weather", "get current weather"),
        ("getCurrentWeather", "get current weather"),
        ("GetCurrentWeather", "get current weather"),
        ("get-current.weather", "get current weather"),
        ("GET/CURRENT:WEATHER", "get current weather"),
        ("HTTPServerStart", "http server start"),
        ("sha256_of", "sha256 of"),
        ("  read file\n", "read file"),
        ("…🙂…", ""),
    ],
)
def test_a_name_is_the_same_words_however_it_is_written(name: str, words: str) -> None:
    assert spell(name).words == tuple(words.split())


@pytest.mark.parametrize(
    ("name", "core"),
    [
        ("functions.search", "search"),
        ("tool:execute_terminal", "execute terminal"),
        ("default_api.search", "search"),
        ("mcp__github__get_issue", "github get issue"),
        ("mcp__ab12cd34ef__gh56ij78kl_read", "read"),
        ("search_tool", "search"),
        ("functions.search:0", "search"),
        ("web_search<|channel|>json", "web search"),
        ("<|channel|>commentary to=functions.web_search<|message|>", "web search"),
        ("<tool_call>calc</tool_call>", "calc"),
        ("<function=calc>", "calc"),
        ("read_file(path='x')", "read file"),
        ('search{"query": "x"}', "search"),
        ("print(default_api.read_file(path='x'))", "read file"),
        ("tool_call(search)", "search"),
        ("sha256_file", "sha256 file"),
    ],
)
def test_what_models_and_gateways_put_around_a_name_is_noise(name: str, core: str) -> None:
    assert read(name).core.words == tuple(core.split())


@pytest.mark.parametrize("name", ["functions", "functions.", "tool", "default_api", "mcp__", ""])
def test_noise_alone_has_no_core(name: str) -> None:
    assert read(name).core.words == ()


@pytest.mark.parametrize("name", ["json", "tool_301"])
def test_noise_that_is_all_there_is_to_say_stays(name: str) -> None:
    assert read(name).core.words == read(name).full.words


@pytest.mark.parametrize(
    ("name", "tail"),
    [
        ("github.get_me", "getme"),
        ("Python REPL::repl_run_code", "replruncode"),
        ("a/b/read:0", "read"),
        ("read", "read"),
        ("functions", ""),
    ],
)
def test_the_tail_is_the_last_part_that_says_something(name: str, tail: str) -> None:
    assert read(name).tail == tail


@pytest.mark.parametrize(
    "name",
    [
        "s\N{CYRILLIC SMALL LETTER IE}arch",
        "se\N{GREEK SMALL LETTER ALPHA}rch",
        "".join(chr(ord(letter) + 0xFEE0) for letter in "search"),
        "sea\N{ZERO WIDTH SPACE}rch",
        "s\N{LATIN SMALL LETTER E WITH ACUTE}arch",
        "\N{MATHEMATICAL BOLD SMALL S}earch",
    ],
)
def test_letters_that_look_the_same_are_the_same(name: str) -> None:
    assert fold(name) == "search"


def test_names_in_other_scripts_are_still_told_apart() -> None:
    assert spell("\u043f\u043e\u0438\u0441\u043a").compact != spell("\u0437\u0430\u043f").compact


@pytest.mark.parametrize(
    ("words", "same"),
    [
        (("issue", "issues"), True),
        (("query", "queries"), True),
        (("search", "searches"), True),
        (("box", "boxes"), True),
        (("class", "classes"), True),
        (("ls", "l"), False),
        (("status", "stat"), False),
    ],
)
def test_a_plural_has_the_stem_of_its_singular(words: tuple[str, str], same: bool) -> None:
    assert (stem(words[0]) == stem(words[1])) is same


@given(st.text(st.characters(), max_size=400))
def test_any_text_is_read_within_bounds(name: str) -> None:
    reading = read(name)

    # Case folding may make three letters of one.
    assert len(reading.full.compact) <= 3 * LONGEST_NAME
    assert len(reading.core.words) <= len(reading.full.words)
    assert len(fold(name)) <= LONGEST_NAME


def test_a_compatibility_letter_that_stands_for_many_does_not_pass_the_bound() -> None:
    assert len(fold("\ufdfa" * LONGEST_NAME)) == LONGEST_NAME
