"""Policy files on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from seawall.contract.annotations import Risk
from seawall.contract.decision import Action, Prepared
from seawall.contract.errors import ConfigurationError, Fault
from seawall.contract.policy import BreakerPolicy, RunPolicy
from seawall.contract.tool import Tool
from seawall.policy.load import MAX_BYTES, MAX_FILES
from seawall.policy.model import Policies
from seawall.policy.settings import LoopSettings


async def answer(arguments: dict[str, Any], context: Any) -> str:
    return "done"


def a_tool(name: str, **fields: Any) -> Tool:
    return Tool(name, "", {}, answer, **fields)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


BASE = 'tool = "t"\nargument = "/p"\ndecide = "ask"\n'


def load(text: str | bytes, name: str = "x.toml", **others: str) -> Policies:
    for other, content in others.items():
        Path(f"{other}.toml").write_text(content, encoding="utf-8")
    Path(name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return Policies.load(name)


def faults_in(text: str | bytes, **others: str) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        load(text, **others)
    return str(caught.value).splitlines()


def test_units_are_read() -> None:
    policy = load("""
        [tools.a]
        timeout_s = "250ms"
        deadline_s = "1h"
        delays_s = ["2s", 5]
        rate = "5/minute"
        rate_key = "caller"
        max_result_bytes = "256KiB"
        [tools.a.breaker]
        cooldown_s = "1m"
        ignore = ["KeyError"]
        outside_retry = true
        """).for_tool(a_tool("a"))

    assert policy == RunPolicy(
        timeout_s=0.25,
        deadline_s=3600,
        delays_s=(2, 5),
        rate="5/minute",
        rate_key=("caller",),
        max_result_bytes=262_144,
        breaker=BreakerPolicy(cooldown_s=60, ignore=("KeyError",), outside_retry=True),
    )


def test_false_takes_limits_and_the_breaker_away() -> None:
    policies = load(
        '[tools.a]\npreset = "network"\nrate = false\ntimeout_s = false\nbreaker = false'
    )

    policy = policies.for_tool(a_tool("a"))

    assert policy == RunPolicy(max_retries=2, base_delay_s=0.8)


def test_a_default_replaces_the_rule_by_annotations() -> None:
    policies = load('[default]\ntimeout_s = "5s"')

    assert policies.for_tool(a_tool("a")) == RunPolicy(timeout_s=5)


def test_an_empty_file_says_nothing() -> None:
    policies = load("")

    assert policies.for_tool(a_tool("a")).timeout_s == 60
    assert policies.risk.ask_from is Risk.HIGH
    assert policies.trace.capacity is None


def test_families_choose_tools_by_all_that_is_given() -> None:
    policies = load("""
        [families.git]
        match = "git_*"
        tags = ["slow"]
        categories = ["code"]
        annotations = { destructive = false }
        timeout_s = 7
        [families.server]
        servers = ["fs"]
        timeout_s = 8
        """)

    assert policies.for_tool(a_tool("git_log")).timeout_s == 60
    assert policies.for_tool(a_tool("fs__read")).timeout_s == 8
    assert policies.for_tool(a_tool("x", family="git")).timeout_s == 7


@pytest.mark.parametrize(
    ("text", "ask_from"),
    [
        ("strict = true", Risk.MEDIUM),
        ("strict = false", Risk.HIGH),
        ('ask_from = "low"', Risk.LOW),
        ('ask_from = "medium"\nstrict = true', Risk.MEDIUM),
        ('ask_from = "low"\nstrict = true', Risk.LOW),
    ],
)
def test_who_is_asked_is_said_by_a_risk_or_by_strictness(text: str, ask_from: Risk) -> None:
    assert load(f"[risk]\n{text}").risk.ask_from is ask_from


def test_lists_say_what_is_allowed_asked_and_refused() -> None:
    risk = load('[risk]\nallow = ["a", "b_*"]\nask = "c"\ndeny = ["d"]').risk

    assert (risk.allow, risk.ask, risk.deny) == (("a", "b_*"), ("c",), ("d",))
    assert risk.default_deny


def test_the_trace_may_be_larger() -> None:
    assert load("[trace]\ncapacity = 5000").trace.capacity == 5000


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("timeout_s = 5", "x.toml:1:1: timeout_s: is unknown; known are extends, presets, "),
        ("[tool.a]", "x.toml:1:2: tool: is unknown; did you mean tools?"),
        ("tools = 5", "x.toml:1:1: tools: is 5; it takes a table"),
        ("[[tools]]", "x.toml:1:3: tools: is a list; it takes a table"),
        ("[tools]\na = 5", "x.toml:2:1: tools.a: is 5; it takes a table"),
        ('[tools.""]', 'x.toml:1:8: tools."": has an empty name'),
        (
            "[tools.a]\ntimeout = 5",
            "x.toml:2:1: tools.a.timeout: is unknown; did you mean timeout_s?",
        ),
        (
            "[tools]\n a = { rate = 'often' }",
            "x.toml:2:8: tools.a.rate: is 'often'; give one rate, like 120/minute",
        ),
        ("[tools.a]\ntimeout_s = 0", "x.toml:2:1: tools.a.timeout_s: must be above 0; write false"),
        (
            "[tools.a]\ntimeout_s = true",
            "x.toml:2:1: tools.a.timeout_s: is true; it takes a number",
        ),
        (
            '[tools.a]\ntimeout_s = "5 parsecs"',
            "x.toml:2:1: tools.a.timeout_s: is '5 parsecs'; it takes a number of seconds, or one",
        ),
        ("[tools.a]\ngrace_s = -1", "x.toml:2:1: tools.a.grace_s: must not be negative (got -1)"),
        ("[tools.a]\ngrace_s = false", "x.toml:2:1: tools.a.grace_s: is false; it takes a number"),
        (
            "[tools.a]\nmax_retries = 1.5",
            "x.toml:2:1: tools.a.max_retries: is 1.5; it takes a whole",
        ),
        (
            '[tools.a]\nrate = "0/minute"',
            "x.toml:2:1: tools.a.rate: is '0/minute'; it must be above",
        ),
        ('[tools.a]\nrate = ""', "x.toml:2:1: tools.a.rate: is ''; it takes a text in quotes"),
        (
            '[tools.a]\nrate_key = ["user"]',
            "x.toml:2:1: tools.a.rate_key: takes any of tool, caller",
        ),
        ('[tools.a]\nrate_strategy = "x"', "x.toml:2:1: tools.a.rate_strategy: is 'x'; use one of"),
        ('[tools.a]\noutput = "no"', "x.toml:2:1: tools.a.output: is 'no'; use one of check, warn"),
        ('[tools.a]\npreset = "fast"', "x.toml:2:1: tools.a.preset: 'fast' is unknown; known are"),
        ("[tools.a]\nbreaker = 5", "x.toml:2:1: tools.a.breaker: is 5; it takes a table"),
        (
            "[tools.a.breaker]\nthreshold = 0",
            "x.toml:2:1: tools.a.breaker.threshold: must be at least 1 (got 0)",
        ),
        (
            "[tools.a]\n breaker.treshold = 3",
            "x.toml:2:10: tools.a.breaker.treshold: is unknown; did you mean threshold?",
        ),
        (
            '[tools.a.breaker]\ncooldown_s = "10s"\nmax_cooldown_s = "5s"',
            "x.toml:3:1: tools.a.breaker.max_cooldown_s: is below cooldown_s (10)",
        ),
        (
            "[tools.fs.read]\ntimeout_s = 5",
            'x.toml:1:11: tools.fs.read: is unknown; a name with dots is quoted: [tools."fs.read"]',
        ),
        ("[default]\nmatch = '*'", "x.toml:2:1: default.match: is unknown; "),
        ("[families.a]\nmatch = []", "x.toml:2:1: families.a.match: is empty; leave it out"),
        ("[families.a]\ntag = 'x'", "x.toml:2:1: families.a.tag: is unknown; did you mean tags?"),
        (
            "[families.a]\nannotations = { readonly = true }",
            "x.toml:2:17: families.a.annotations.readonly: is unknown; did you mean read_only?",
        ),
        (
            "[families.a]\nannotations = true",
            "x.toml:2:1: families.a.annotations: is true; it takes",
        ),
        ("[risk]\nask_from = 'extreme'", "x.toml:2:1: risk.ask_from: unknown risk 'extreme'"),
        (
            "[risk]\nask_form = 'low'",
            "x.toml:2:1: risk.ask_form: is unknown; did you mean ask_from?",
        ),
        (
            "[risk]\nask_from = 'high'\nstrict = true",
            "x.toml:3:1: risk.strict: contradicts ask_from; give one of the two",
        ),
        ("[risk]\nallow = ['a']\ndeny = ['a']", "x.toml:2:1: risk.allow: has 'a', and so has deny"),
        ("[risk]\ndeny = ['a']", "x.toml:2:1: risk.deny: needs `allow` beside it"),
        ("[trace]\ncapacity = -1", "x.toml:2:1: trace.capacity: must be from 0 to 1,000,000"),
        ("[trace]\nsize = 5", "x.toml:2:1: trace.size: is unknown; known are capacity"),
        (
            "[loop]\nthreshold = 1",
            "x.toml:2:1: loop.threshold: must be from 2 to the window (got 1)",
        ),
        ("[loop]\nwindow = 3\nthreshold = 4", "x.toml:3:1: loop.threshold: must be from 2 to"),
        ("[loop]\nwindow = 0", "x.toml:2:1: loop.window: must be above 0; write false"),
        ("[loop]\nwindow = 2000", "x.toml:2:1: loop.window: must be from 2 to 1000"),
        ("[loop]\ncycle_rounds = 1", "x.toml:2:1: loop.cycle_rounds: must be from 2 to 100"),
        ("[loop]\npause_s = 'soon'", "x.toml:2:1: loop.pause_s: is 'soon'"),
        ("[loop]\nscope = 'some'", "x.toml:2:1: loop.scope: must be all or sessions"),
        ("[loop]\nexemt = ['a']", "x.toml:2:1: loop.exemt: is unknown; did you mean exempt?"),
        ("loop = true", "x.toml:1:1: loop: is true; it takes a table"),
        ("extends = 5", "x.toml:1:1: extends: is 5; it takes a text in quotes"),
        ("extends = 'strikt'", "x.toml:1:1: extends: 'strikt' is unknown; did you mean strict?"),
        ("extends = 'y.toml'", "x.toml:1:1: extends: there is no file y.toml"),
        (
            "extends = 'x.toml'",
            "x.toml:1:1: extends: x.toml extends this file in turn; take one of the two out",
        ),
        (
            "extends = './x.toml'",
            "x.toml:1:1: extends: x.toml extends this file in turn; take one of the two out",
        ),
        ("a = [", "x.toml:1:6: Invalid value"),
        ("a = 1\na = 2", "x.toml:2:6: Cannot overwrite a value"),
        ('[tools.a]\nrate = "5', "x.toml:2:10: Unterminated string"),
        ("a = " + "9" * 5_000, "x.toml: Exceeds the limit"),
        ("a = " + "[" * 100_000, "x.toml: has brackets that are nested too deep"),
        (b"a = '\xff'", "x.toml:1:6: is no UTF-8 text (byte 5)"),
        ("#" * (MAX_BYTES + 1), "x.toml: cannot be read: it is larger than 256 KiB"),
        ("[tools.a]\nmax_retries = 0x" + "f" * 9_000, "x.toml:2:1: tools.a.max_retries: is larger"),
        ("[tools.a]\nrate = 0x" + "f" * 9_000, "x.toml:2:1: tools.a.rate: is a number that is too"),
    ],
)
def test_what_is_wrong_is_told_with_file_line_and_column(text: str | bytes, fault: str) -> None:
    found = faults_in(text)

    assert len(found) == 1
    assert found[0].startswith(fault)


def test_all_faults_are_told_at_once_in_the_order_of_the_file() -> None:
    found = faults_in("""
        extends = "strikt"
        [tools.a]
        timeout = 5
        rate = "0/minute"
        max_retries = -1
        preset = "no such"
        [families.b]
        match = 5
        breaker.threshold = "x"
        [risk]
        ask = ["a"]
        [oops]
        """)

    lines = [int(fault.split(":")[1]) for fault in found]
    assert lines == sorted(lines)
    assert len(found) == 9


def test_a_fault_has_its_parts() -> None:
    with pytest.raises(ConfigurationError) as caught:
        load("\n  tools.a.cost = 0")

    assert caught.value.faults == (
        Fault("must be at least 1 (got 0)", "tools.a.cost", "x.toml", 2, 11),
    )


def test_line_ends_and_a_mark_at_the_start_do_not_matter() -> None:
    found = faults_in(b"\xef\xbb\xbf# first\r\n[tools.a]\r\nx = 1\r\n")

    assert found[0].startswith("x.toml:3:1: tools.a.x")


@pytest.mark.parametrize(
    ("name", "said"), [("no.toml", "there is no such file"), ("folder", "it is a folder; name a")]
)
def test_what_is_no_file_is_told(name: str, said: str) -> None:
    Path("folder").mkdir()

    with pytest.raises(ConfigurationError, match=f"{name}: cannot be read: {said}"):
        Policies.load(name)


def test_a_ready_made_name_in_place_of_a_file_is_told_how_to_find_it() -> None:
    with pytest.raises(ConfigurationError, match=r'ready_made\("strict"\)'):
        Policies.load("strict")


def test_a_file_says_its_changes_over_the_one_it_extends() -> None:
    policies = load(
        """
        extends = "base.toml"
        [tools.a]
        rate = "5/minute"
        [tools.b]
        preset = "legacy"
        [families.f]
        timeout_s = 9
        [presets.network]
        cost = 2
        [risk]
        strict = true
        """,
        base="""
        [default]
        preset = "network"
        [tools.a]
        timeout_s = 5
        rate = "9/minute"
        breaker.threshold = 3
        [tools.b]
        timeout_s = 5
        [tools.c]
        timeout_s = 6
        [families.f]
        match = "f_*"
        max_retries = 1
        [presets.network]
        max_retries = 5
        [risk]
        ask_from = "high"
        [trace]
        capacity = 7
        """,
    )

    a, b, c, f = (policies.for_tool(a_tool(name)) for name in ("a", "b", "c", "f_x"))
    assert (a.timeout_s, a.rate, a.cost, a.max_retries) == (5, "5/minute", 2, 5)
    assert a.breaker is not None
    assert a.breaker.threshold == 3
    assert b == RunPolicy()
    assert c.timeout_s == 6
    assert (f.timeout_s, f.max_retries) == (9, 1)
    assert policies.risk.ask_from is Risk.MEDIUM
    assert policies.trace.capacity == 7


def test_what_is_a_loop_is_said_in_a_file() -> None:
    policies = load(
        """
        [loop]
        threshold = 3
        window = 8
        cycle_rounds = false
        pause_s = "10m"
        exempt = ["poll_*"]
        exempt_tags = []
        scope = "all"
        """
    )

    assert policies.loop == LoopSettings(
        threshold=3,
        window=8,
        cycle_rounds=None,
        pause_s=600,
        exempt=("poll_*",),
        exempt_tags=(),
        scope="all",
    )


@pytest.mark.parametrize(
    ("base", "over", "threshold"),
    [
        ("", "", 5),
        ("[loop]\nthreshold = 3", "", 3),
        ("[loop]\nthreshold = 3", "[loop]\npause_s = 5", 3),
        ("[loop]\nthreshold = 3", "[loop]\nthreshold = 4", 4),
        ("[loop]\nthreshold = 3", "loop = false", None),
        ("loop = false", "", None),
        ("loop = false", "[loop]\nthreshold = 4", 4),
    ],
)
def test_what_is_a_loop_is_laid_over_what_the_base_says(
    tmp_path: Path, base: str, over: str, threshold: int | None
) -> None:
    (tmp_path / "base.toml").write_text(base)
    (tmp_path / "over.toml").write_text(f"extends = 'base.toml'\n{over}")

    loop = Policies.load(tmp_path / "over.toml").loop

    assert (None if loop is None else loop.threshold) == threshold


@pytest.mark.parametrize(
    ("base", "over", "threshold", "permits"),
    [
        ("breaker.threshold = 3", "breaker.permits = 2", 3, 2),
        ("breaker = false", "breaker.permits = 2", 5, 2),
        ("breaker = true", "cost = 1", 5, 1),
    ],
)
def test_breakers_are_merged_key_by_key(base: str, over: str, threshold: int, permits: int) -> None:
    policies = load(f'extends = "base.toml"\n[tools.a]\n{over}', base=f"[tools.a]\n{base}")

    breaker = policies.for_tool(a_tool("a")).breaker

    assert breaker is not None
    assert (breaker.threshold, breaker.permits) == (threshold, permits)


def test_a_default_is_merged_with_the_one_it_extends() -> None:
    policies = load(
        'extends = "base.toml"\n[default]\ncost = 2', base='[default]\ntimeout_s = "5s"'
    )

    assert policies.for_tool(a_tool("a")) == RunPolicy(timeout_s=5, cost=2)


def test_lists_take_the_place_of_a_risk_that_was_said_before() -> None:
    policies = load('extends = "base.toml"\n[risk]\nallow = ["a"]', base="[risk]\nstrict = true")

    assert policies.risk.allow == ("a",)


def test_beside_lists_a_risk_says_from_where_on_even_the_allowed_are_asked_about() -> None:
    found = load('extends = "base.toml"\n[risk]\nstrict = true', base='[risk]\nallow = ["a"]')

    decide = found.risk.policy()
    said = [decide.decide(Prepared(tool=a_tool("a", risk=risk), arguments={})) for risk in Risk]
    assert [one.action for one in said] == [Action.ALLOW, Action.ASK, Action.ASK]


RULE = """
[[risk.rules]]
tool = "write_*"
argument = "/path"
under = ["/srv/data", "/tmp"]
decide = "allow"
otherwise = "deny"
reason = "agents write there alone"
"""


def test_rules_for_arguments_are_read_with_their_place() -> None:
    found = load(f"[risk]\n[risk.tools]\nwrite_x = 'low'\n{RULE}{RULE}").risk

    assert found.tools == {"write_x": Risk.LOW}
    assert [rule.place for rule in found.rules] == ["x.toml:5", "x.toml:13"]
    assert found.rules[0].said == "allow if /path is under /srv/data or /tmp, otherwise deny"


def test_rules_of_a_file_replace_those_of_the_file_that_it_extends() -> None:
    policies = load(
        'extends = "base.toml"\n[risk.tools]\nb = "low"\n[[risk.rules]]\ntool = "t"\n'
        'argument = "/n"\nabove = "0.10"\ndecide = "ask"',
        base=f"[risk.tools]\na = 'high'\n{RULE}",
    )

    assert [rule.argument for rule in policies.risk.rules] == ["/n"]
    assert policies.risk.tools == {"a": Risk.HIGH, "b": Risk.LOW}


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ('tool = "t"', "x.toml:1:3: risk.rules.0: needs argument and decide"),
        ('decide = "maybe"', "x.toml:2:1: risk.rules.0.decide: is 'maybe'; it takes allow, ask"),
        ("under = []", "x.toml:2:1: risk.rules.0.under: is empty"),
        ("above = true", "x.toml:2:1: risk.rules.0.above: is true; it takes a number"),
        ('undr = "/x"', "x.toml:2:1: risk.rules.0.undr: is unknown; did you mean under?"),
        (f"{BASE}under = 'srv'", "x.toml:5:1: risk.rules.0.under: is 'srv'; it takes an absolute"),
        (f"{BASE}host = 'a b'", "x.toml:5:1: risk.rules.0.host: is 'a b'; it takes a host"),
        (f"{BASE}host = '10.0.0.1/8'", "x.toml:5:1: risk.rules.0.host: is '10.0.0.1/8', which is"),
        (f"{BASE}at_most = 'x'", "x.toml:5:1: risk.rules.0.at_most: is 'x'; it takes a number"),
        (f"{BASE}", "x.toml:3:1: risk.rules.0.argument: needs one kind of condition"),
        (
            f"{BASE}above = 1\nunder = '/x'",
            "x.toml:3:1: risk.rules.0.argument: needs one kind of condition",
        ),
        (
            f"{BASE}above = 1\notherwise = 'ask'",
            "x.toml:6:1: risk.rules.0.otherwise: is ask as well",
        ),
    ],
)
def test_a_faulty_rule_is_told_with_its_line(lines: str, said: str) -> None:
    found = faults_in(f"[[risk.rules]]\n{lines}")

    assert said in "\n".join(found)


def test_faults_of_all_files_are_told_together() -> None:
    found = faults_in('extends = "base.toml"\n[tools.a]\nx = 1', base="[tools.a]\ny = 1")

    assert [fault.split(":")[0] for fault in found] == ["base.toml", "x.toml"]


def test_files_are_found_beside_the_one_that_extends_them() -> None:
    Path("sub").mkdir()
    Path("sub/base.toml").write_text("[tools.a]\ncost = 5\nx = 1", encoding="utf-8")
    Path("sub/x.toml").write_text('extends = "base.toml"', encoding="utf-8")

    with pytest.raises(ConfigurationError, match=r"^sub/base\.toml:3:1: tools\.a\.x"):
        Policies.load("sub/x.toml")


def test_files_that_extend_each_other_are_refused() -> None:
    found = faults_in('extends = "y.toml"', y='extends = "x.toml"')

    assert found == [
        "y.toml:1:1: extends: x.toml extends this file in turn; take one of the two out"
    ]


def test_a_chain_of_files_has_an_end() -> None:
    chain = {f"f{n}": f'extends = "f{n + 1}.toml"' for n in range(MAX_FILES + 1)}

    found = faults_in('extends = "f0.toml"', **chain)

    assert found == [
        "f14.toml:1:1: extends: this is a chain of more than 16 files; put some of them together"
    ]


def test_ready_made_files_are_extended_by_name() -> None:
    policies = load('extends = "strict"\n[tools.a]\ncost = 2')

    given = policies.explain(a_tool("a"))

    assert given["cost"].rule == "tools.a (x.toml:3)"
    assert given["rate"].rule.startswith(
        "annotations: none given -> preset mutating (policies/strict.toml:"
    )
    assert policies.for_tool(a_tool("ask_user")) == RunPolicy()


def test_everything_in_a_file_that_fits_no_tool_is_told_with_its_line() -> None:
    policies = load(
        """
        extends = "default"
        [tools.gone]
        timeout_s = 5
        [tools."old_*"]
        timeout_s = 5
        [tools."cal*"]
        timeout_s = 5
        [families.files]
        match = "file_*"
        max_retries = 1
        [families.here]
        match = "calc*"
        max_retries = 1
        [risk]
        allow = ["calculate", "calcluate"]
        deny = ["drop_*"]
        [risk.tools]
        calcluate = "high"
        [[risk.rules]]
        tool = "drop_*"
        argument = "/table"
        equals = "users"
        decide = "deny"
        [loop]
        exempt = ["poll_*"]
        """
    )

    assert policies.notes([a_tool("calculate")]) == (
        "tools.gone (x.toml:3) fits no tool",
        'tools."old_*" (x.toml:5) fits no tool',
        "families.files (x.toml:9) fits no tool",
        "risk.allow (x.toml:16) 'calcluate' fits no tool; did you mean calculate?",
        "risk.deny (x.toml:17) 'drop_*' fits no tool",
        "loop.exempt (x.toml:26) 'poll_*' fits no tool",
        "risk.tools.calcluate (x.toml:19) fits no tool; did you mean calculate?",
        "risk.rules (x.toml:20) 'drop_*' fits no tool",
    )
    assert policies.notes() == ()
