from __future__ import annotations

import json
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seawall.registry import nearness
from seawall.registry import suggester as module
from seawall.registry.suggester import Suggester, edit_distance

HERE = Path(__file__).parents[1]
VECTORS = json.loads((HERE / "vectors" / "suggester.json").read_text("utf-8"))["cases"]
CASES = json.loads((HERE / "cases" / "unknown-tool.json").read_text("utf-8"))
ORDERED = [each for each in VECTORS if "candidates" in each["given"]]

FILES = ("read_file", "write_file", "list_files", "search_files")
MANY = tuple(
    f"{server}_{verb}_{thing}_{number}"
    for server in ("github", "gitlab", "slack", "jira", "notion")
    for verb in ("get", "list", "create", "delete")
    for thing in ("issue", "pull_request", "channel", "page", "user")
    for number in range(20)
)


@pytest.mark.parametrize("vector", ORDERED, ids=[each["id"] for each in ORDERED])
def test_the_hints_of_a_vector_come_in_its_order(vector: dict[str, Any]) -> None:
    suggester = Suggester(vector["given"]["candidates"])

    hints = suggester.suggest(vector["steps"][0]["suggest"])

    assert list(hints) == vector["expect"]["hints"]


def test_hints_are_few_and_none_when_nothing_is_near() -> None:
    vector = next(each for each in VECTORS if each["id"] == "sg-13")
    suggester = Suggester(vector["given"]["registered"])

    first, second = (suggester.suggest(step["call"]) for step in vector["steps"])

    assert list(first) == vector["expect"]["first"]["hints"]
    assert list(second) == vector["expect"]["second"]["hints"]


@pytest.mark.parametrize("case", CASES, ids=[each["id"] for each in CASES])
def test_a_reported_wrong_name_gets_the_hints_it_needed(case: dict[str, Any]) -> None:
    names, asked, hidden = registered(case), asked_for(case), case["given"].get("hidden", [])
    suggester = Suggester([*names, *hidden])

    before = time.process_time()
    hints = suggester.suggest(asked, allowed=lambda name: name not in hidden)
    took = time.process_time() - before

    expected = case["expect"]
    assert took < expected.get("max_seconds", 1)
    assert set(hints) <= set(expected.get("allowed_suggestions", names))
    assert set(expected.get("suggest_any", hints)) & set(hints) or not expected.get("suggest_any")
    assert hints[:1] == ((expected["first"],) if "first" in expected else hints[:1])
    assert hints == () or expected.get("suggestions") != "none"


def registered(case: dict[str, Any]) -> list[str]:
    made = case["given"].get("registry_gen")
    if made is None:
        return list(case["given"]["registry"])
    return [made["pattern"].format(i=i) for i in range(made["count"])]


def asked_for(case: dict[str, Any]) -> str:
    made = case["call"].get("name_gen")
    return str(case["call"]["name"] if made is None else made["unit"] * made["times"])


@pytest.mark.parametrize(
    ("asked", "names", "first"),
    [
        ("github.serch_code", ["search_code", "read"], "search_code"),
        ("serch_code", ["github.search_code", "read"], "github.search_code"),
        ("mcp__fs__read_file", ["read_file", "write_file"], "read_file"),
        ("isues_list_github", ["github_list_issues"], "github_list_issues"),
        ("searchweb", ["web_search", "calc"], "web_search"),
        ("calculator", ["calc", "search"], "calc"),
        ("repository_list", ["list_repos", "list_dirs"], "list_repos"),
        ("list_repos", ["list_repositories_all", "list_dirs"], "list_repositories_all"),
        ("read_the_file_contents", ["read_file", "write_file"], "read_file"),
        ("github_readfile", ["read_file", "write_file"], "read_file"),
        ("cloudflare_get_accounts_storage", ["cloudflare_get_accou"], "cloudflare_get_accou"),
        ("rch_documents", ["search_documents", "docs"], "search_documents"),
        ("ls", ["tools_list_all", "fs_ls"], "fs_ls"),
        ("gti", ["git", "jit"], "git"),
        ("tool_30l", ["tool_301", "tool_777"], "tool_301"),
        ("files\\read", ["files/write", "files/read"], "files/read"),
        ("I want to search the web", ["web_search", "calc"], "web_search"),
        ("x" * 150 + "y", ["x" * 150, "y"], "x" * 150),
    ],
)
def test_the_meant_name_comes_first(asked: str, names: list[str], first: str) -> None:
    assert Suggester(names).suggest(asked)[:1] == (first,)


def test_an_exact_name_comes_before_other_spellings_of_it() -> None:
    suggester = Suggester(["get-me", "getMe", "get_me"])

    assert suggester.suggest("get_me") == ("get_me", "getMe", "get-me")


def test_a_name_without_letters_is_found_when_it_is_exact() -> None:
    assert Suggester(["!!", "??"]).suggest("!!") == ("!!",)


def test_a_looser_hint_is_dropped_beside_a_better_one() -> None:
    suggester = Suggester(["list_issues", "get_issue_s"])

    assert suggester.suggest("get_issues") == ("get_issue_s",)
    suggester.remove("get_issue_s")
    assert suggester.suggest("get_issues") == ("list_issues",)


def test_a_refused_name_is_passed_over() -> None:
    hints = Suggester(FILES).suggest("file", allowed=lambda name: name != "read_file")

    assert hints == ("write_file", "list_files", "search_files")


@pytest.mark.parametrize("asked", ["kanban_list", "kanbanList", "functions.kanban_list"])
def test_no_other_tool_is_offered_for_a_refused_one(asked: str) -> None:
    suggester = Suggester(["kanban_lists", "kanban_list", "kanban_link", "kanban_list_all"])

    assert suggester.suggest(asked, allowed=lambda name: name != "kanban_list") == ()


def test_a_name_that_is_less_near_than_a_refused_one_is_not_offered() -> None:
    suggester = Suggester(["get_issue_s", "list_issues"])

    assert suggester.suggest("get_issues", allowed=lambda name: name == "list_issues") == ()


def test_refused_names_do_not_crowd_out_allowed_ones() -> None:
    mine = {"notion_list_user_18", "notion_list_user_19"}

    assert set(Suggester(MANY).suggest("list", allowed=mine.__contains__)) == mine


def test_nothing_is_offered_when_every_name_is_refused() -> None:
    assert Suggester(MANY).suggest("list", allowed=lambda _: False) == ()


@pytest.mark.parametrize(("limit", "count"), [(-1, 0), (0, 0), (1, 1), (4, 4), (10**12, 2000)])
def test_there_are_at_most_as_many_hints_as_asked_for(limit: int, count: int) -> None:
    names = [f"web_{number}" for number in range(2000)]

    assert len(Suggester(names).suggest("web", limit=limit)) == count


def test_an_added_name_is_suggested_and_a_removed_one_no_longer() -> None:
    suggester = Suggester()
    assert suggester.suggest("serch") == ()

    suggester.add("search")
    assert suggester.suggest("serch") == ("search",)

    suggester.remove("search")
    suggester.remove("search")
    assert suggester.suggest("serch") == ()


def test_a_name_added_twice_is_suggested_once_and_keeps_its_place() -> None:
    suggester = Suggester(["web_a", "web_b"])

    suggester.add("web_a")

    assert suggester.suggest("web") == ("web_a", "web_b")


def test_a_text_of_any_length_costs_little_time() -> None:
    suggester = Suggester(MANY)
    suggester.suggest("warm")
    texts = ("a" * 1_000_000, "get_issue " * 100_000, "é" * 1_000_000, "<|" * 500_000)

    before = time.process_time()
    for text in texts:
        suggester.suggest(text)

    assert time.process_time() - before < 1


def test_a_long_registered_name_is_kept_but_not_spelled_out() -> None:
    names = [f"{number}" + "_long name" * 10_000 for number in range(100)]

    tracemalloc.start()
    suggester = Suggester(names)
    suggester.suggest("long")
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert kept < 100 * 20_000


def test_the_distance_that_hints_are_built_on_is_offered_too() -> None:
    assert edit_distance("kitten", "sitting", 5) == 3


WORDS = st.sampled_from(["get", "list", "issue", "issues", "files", "mcp", "tool", "a", "x1", "ls"])
WRITTEN = st.builds(
    lambda words, separator: separator.join(words),
    st.lists(WORDS, max_size=5),
    st.sampled_from(["_", "-", ".", "__", "", "/", "::", " ", "<|channel|>", "("]),
)
NAMES = WRITTEN | st.text(st.characters(), max_size=12)


@given(st.lists(NAMES, max_size=30), NAMES, st.integers(0, 5), st.data())
@settings(deadline=None)
def test_hints_are_known_allowed_distinct_and_few(
    names: list[str], asked: str, limit: int, data: st.DataObject
) -> None:
    usable = {name for name in names if data.draw(st.booleans())}

    hints = Suggester(names).suggest(asked, limit=limit, allowed=usable.__contains__)

    assert set(hints) <= usable
    assert len(hints) == len(set(hints)) <= limit


@given(st.lists(NAMES, min_size=1, max_size=30), st.data())
@settings(deadline=None)
def test_a_registered_name_is_its_own_first_hint(names: list[str], data: st.DataObject) -> None:
    asked = data.draw(st.sampled_from(names))

    assert Suggester(names).suggest(asked)[:1] == (asked,)


@given(st.lists(NAMES, max_size=20), st.lists(NAMES, max_size=20), NAMES)
@settings(deadline=None)
def test_a_changed_suggester_answers_like_a_new_one(
    kept: list[str], removed: list[str], asked: str
) -> None:
    changed = Suggester([*dict.fromkeys([*removed, *kept])])
    changed.suggest(asked)
    for name in set(removed) - set(kept):
        changed.remove(name)
    left = [name for name in dict.fromkeys([*removed, *kept]) if name in set(kept)]

    assert changed.suggest(asked) == Suggester(left).suggest(asked)


@given(st.sampled_from(MANY), st.data())
@settings(deadline=None, max_examples=60)
def test_one_typing_error_in_a_word_is_always_near(name: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(1, name.index("_") - 1))
    instead = data.draw(st.sampled_from(["", "z", "z" + name[at]]))
    wrong = name[:at] + instead + name[at + 1 :]

    assert name in Suggester(MANY).suggest(wrong, limit=len(MANY))


class Looks:
    """Counts names that are looked at closely."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        grade = nearness.grade

        def counting(*given: Any) -> Any:
            self.count += 1
            return grade(*given)

        monkeypatch.setattr(module, "grade", counting)

    def at(self, suggester: Suggester, name: str, **options: Any) -> int:
        before = self.count
        suggester.suggest(name, **options)
        return self.count - before


def test_a_wrong_name_that_comes_again_is_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looks, suggester = Looks(monkeypatch), Suggester(MANY)
    wrong = "github_get_isue_7"
    first = suggester.suggest(wrong)

    assert first
    assert looks.at(suggester, wrong) == 0
    assert suggester.suggest(wrong) == first


def test_what_is_kept_of_a_wrong_name_allows_nobody_more(monkeypatch: pytest.MonkeyPatch) -> None:
    looks, suggester = Looks(monkeypatch), Suggester(MANY)
    wrong = "github_get_isue_7"
    first, *others = suggester.suggest(wrong)
    before = looks.count

    allowed = suggester.suggest(wrong, allowed=lambda name: name != first)

    assert looks.count == before
    assert first not in allowed
    assert allowed[: len(others)] == tuple(others)


def test_only_so_many_wrong_names_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    looks, suggester = Looks(monkeypatch), Suggester(FILES)
    wrong = [f"raed_file_{number}" for number in range(65)]
    for name in wrong:
        assert looks.at(suggester, name) > 0

    assert [looks.at(suggester, name) for name in wrong[1:]] == [0] * 64
    assert looks.at(suggester, wrong[0]) > 0
    assert looks.at(suggester, wrong[1]) > 0


def test_long_wrong_names_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    looks, suggester = Looks(monkeypatch), Suggester(FILES)
    wrong = "read_file_" * 13
    assert looks.at(suggester, wrong) == looks.at(suggester, wrong) > 0


def test_a_tool_that_comes_later_is_found_though_a_wrong_name_was_kept() -> None:
    suggester = Suggester(["write_file"])
    before = suggester.suggest("raed_file")
    suggester.add("read_file")
    assert suggester.suggest("raed_file")[:1] == ("read_file",) != before[:1]
