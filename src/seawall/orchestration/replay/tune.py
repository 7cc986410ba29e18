"""Proposes values of a policy from recorded calls, each with its evidence, and tries them out.

A proposal is kept only if the simulated score of its tool is no worse with it, in the whole trace
and in each quarter of it: what helps in one hour alone may do harm in the next. The score is the
mean of what a call costs, in seconds: the time to its answer, and `PENALTY_S` more if it is not
answered, and `ATTEMPT_S` for each attempt after the first.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import msgspec

from seawall.contract.sentences import counted
from seawall.layers.rate_limit.strategies import parse_rate
from seawall.orchestration.replay.evidence import (
    MIN_ATTEMPTS,
    MIN_CALLS,
    MIN_OUTAGES,
    SURE_ATTEMPTS,
    arrivals_of,
    attempts_of,
    runs_of,
    tail_of,
    width_of,
)
from seawall.orchestration.replay.simulate import Ended, Simulation, recorded_end, tools_of
from seawall.policy.load import read_policy_file
from seawall.policy.model import Policies

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from seawall.contract.policy import RunPolicy
    from seawall.contract.tool import Tool
    from seawall.orchestration.replay.evidence import Most, Runs, Tail
    from seawall.recording.trace_file import Recorded, Trace

PENALTY_S = 30.0
ATTEMPT_S = 1.0

HEADROOM = 1.5
"""How much more than what was seen a limit leaves room for."""

UNPROVEN = 4.0
"""Times that, for a timeout where nothing hung or the tail is hardly known."""

CLEARLY = 0.7
"""A shorter cooldown is proposed where it is shorter by so much; else days differ more."""

LEAST_TIMEOUT_S = 1.0
LEAST_BURST = 5

QUARTERS = 4

BREAKER_GAIN = 0.08
"""Part of the score that a breaker's numbers must save to be proposed: outages differ from day to
day by more than the other evidence, and what gains less is as likely to lose."""

PERIODS = (
    *((1, "/second"), (60, "/minute"), (3_600, "/hour"), (86_400, "/day")),
    *((count, f" per {count} seconds") for count in (2, 5, 10, 15, 20, 30)),
    *((count * 60, f" per {count} minutes") for count in (2, 5, 10, 15, 20, 30)),
    *((count * 3_600, f" per {count} hours") for count in (2, 6, 12)),
)
"""What rates are counted by, in seconds and as they are written; the plain ones first."""

PLAIN_PERIODS = 4

PLAIN = 1.5
"""How much looser than what was wanted a rate may be, to be one of a plain period."""

ROUNDS = 6
"""How often proposals that do harm are taken back, and the rest is tried again."""


class Proposal(msgspec.Struct, frozen=True):
    """One value for a tool or a family."""

    section: str
    """`tools` or `families`."""
    name: str
    key: str
    value: Any
    was: Any
    evidence: str


class Tuning(msgspec.Struct):
    """What is proposed, what is not, and what both would come to."""

    proposals: list[Proposal]
    thin: dict[str, str]
    """Tools of which too little is known, and why."""
    dropped: list[Proposal]
    """Proposals that made the score worse, or of a breaker that saved too little."""
    before: dict[str, float]
    """Score of each tool under the policy as it is; smaller is better."""
    after: dict[str, float]
    withheld: dict[str, tuple[str, ...]] = {}
    """By tool, which values are not proposed although there are calls enough, and why."""
    fitting: tuple[str, ...] = ()
    """Tools of which enough is known, and that nothing is to be changed for."""
    played: int = 0
    """Calls that came past the gates, so that limits decide on them."""
    unlike: int = 0
    """Of these, how many would have ended otherwise under the policy as it is: where they are
    many, the trace was recorded under another one, or with other tools."""

    def document(self) -> dict[str, Any]:
        """Give the proposals as a policy file has them, parsed."""
        return document_of(self.proposals)


def cost(end: Ended) -> float:
    """Give what a call costs, in seconds."""
    penalty_s = 0.0 if end.good else PENALTY_S
    return end.elapsed_s + penalty_s + ATTEMPT_S * max(end.attempts - 1, 0)


def quarters(trace: Trace, ended: Sequence[Ended | None]) -> dict[str, list[float]]:
    """Give the mean cost of each tool's calls in each quarter of the trace, and in all of it."""
    size = max(math.ceil(len(ended) / QUARTERS), 1)
    costs: dict[str, list[list[float]]] = {}
    for number, (call, end) in enumerate(zip(trace.calls, ended, strict=True)):
        if end is not None:
            parts = costs.setdefault(call.tool, [[] for _ in range(QUARTERS + 1)])
            parts[number // size].append(cost(end))
            parts[QUARTERS].append(cost(end))
    return {
        name: [sum(part) / len(part) if part else 0.0 for part in parts]
        for name, parts in costs.items()
    }


def scores(trace: Trace, ended: Sequence[Ended | None]) -> dict[str, float]:
    """Give the mean cost of each tool's calls, and of all under an empty name."""
    costs: dict[str, list[float]] = {}
    for call, end in zip(trace.calls, ended, strict=True):
        if end is not None:
            costs.setdefault(call.tool, []).append(cost(end))
            costs.setdefault("", []).append(cost(end))
    return {name: sum(found) / len(found) for name, found in costs.items()}


def tune(trace: Trace, base: Path, *, tools: Iterable[Tool] = (), seed: int = 0) -> Tuning:
    """Propose changes to the policy file `base`, under which the trace is taken to be recorded."""
    known = tools_of(trace, tools)
    policies = Policies(**read_policy_file(base))
    by_tool: dict[str, list[Recorded]] = {name: [] for name in known}
    for call in trace.calls:
        by_tool[call.tool].append(call)
    tuning = Tuning([], {}, [], {}, {})
    for name, calls in by_tool.items():
        found = proposed(known[name], policies.for_tool(known[name]), calls)
        if isinstance(found, str):
            tuning.thin[name] = found
            continue
        tuning.proposals += found
        why = withheld(known[name], policies.for_tool(known[name]), calls)
        if why:
            tuning.withheld[name] = why
        elif not found:
            tuning.fitting += (name,)
    tuning.proposals = _by_family(tuning.proposals, known)
    _try_out(tuning, trace, base, known, policies, seed)
    return tuning


def _try_out(
    tuning: Tuning,
    trace: Trace,
    base: Path,
    tools: Mapping[str, Tool],
    policies: Policies,
    seed: int,
) -> None:
    """Simulate the proposals, and take back those whose tools would be worse off."""

    def played(candidate: Policies) -> list[Ended | None]:
        return Simulation(trace, candidate, tools=tools, live=policies, seed=seed).run()

    as_it_is = played(policies)
    _compare(tuning, trace, as_it_is)
    parts_before = quarters(trace, as_it_is)
    tuning.before = tuning.after = scores(trace, as_it_is)
    for _ in range(ROUNDS):
        if not tuning.proposals:
            tuning.after = tuning.before
            return
        ended = played(Policies(**read_policy_file(base, over=tuning.document())))
        tuning.after = scores(trace, ended)
        doubtful = _members_with_breakers(tuning.proposals, tools)
        worse = {
            name
            for name, parts in quarters(trace, ended).items()
            if (
                name in doubtful
                and parts[QUARTERS] > parts_before[name][QUARTERS] * (1 - BREAKER_GAIN)
            )
            or any(
                new > old * (1 + 1e-9) for new, old in zip(parts, parts_before[name], strict=True)
            )
        }
        harmful = [one for one in tuning.proposals if not worse.isdisjoint(_members(one, tools))]
        if not harmful:
            return
        # One key of each at a time: the last that was proposed is the least sure.
        last = {(one.section, one.name): one for one in sorted(harmful, key=_doubt)}
        back = list(last.values())
        tuning.dropped += back
        tuning.proposals = [one for one in tuning.proposals if one not in back]
    tuning.dropped += tuning.proposals
    tuning.proposals, tuning.after = [], tuning.before


_KEYS = (
    "timeout_s",
    "rate",
    "max_concurrency",
    "breaker.cooldown_s",
    "breaker.max_cooldown_s",
    "breaker.threshold",
)
"""From the surest to the least sure."""


def _members_with_breakers(proposals: Iterable[Proposal], tools: Mapping[str, Tool]) -> set[str]:
    of_breakers = [one for one in proposals if one.key.startswith("breaker.")]
    return {name for one in of_breakers for name in _members(one, tools)}


def _doubt(one: Proposal) -> int:
    return _KEYS.index(one.key)


def _members(one: Proposal, tools: Mapping[str, Tool]) -> set[str]:
    if one.section == "tools":
        return {one.name}
    return {name for name, tool in tools.items() if tool.family == one.name}


def _compare(tuning: Tuning, trace: Trace, as_it_is: Sequence[Ended | None]) -> None:
    """Count in how many calls the policy as it is differs from what happened."""
    both = [
        recorded_end(call).same(end)
        for call, end in zip(trace.calls, as_it_is, strict=True)
        if end is not None
    ]
    tuning.played, tuning.unlike = len(both), both.count(False)


def withheld(tool: Tool, policy: RunPolicy, calls: Sequence[Recorded]) -> tuple[str, ...]:
    """Say which values are not proposed, whatever the calls are like, and why."""
    attempts = sum(span.attempt > 0 for call in calls for span in call.spans)
    return tuple(filter(None, (_no_rate(policy, calls), _no_timeout(tool, attempts))))


def _no_rate(policy: RunPolicy, calls: Sequence[Recorded]) -> str:
    refused = sum(call.reason == "rate_limited" for call in calls)
    told = f"; {refused} of its {len(calls)} calls were refused by it" if refused else ""
    if policy.rate_key != ("tool",):
        by = " and ".join(policy.rate_key)
        return (
            f"no rate, because rate_key counts it for each {by}, and a rate is proposed only where"
            f" all calls of a tool share it{told}"
        )
    if policy.cost != 1:
        return f"no rate, because a call takes {policy.cost} of it (cost){told}"
    if len(calls) < MIN_CALLS:
        return f"no rate, because it needs {MIN_CALLS} calls, not {len(calls)}{told}"
    return ""


def _no_timeout(tool: Tool, attempts: int) -> str:
    if tool.duration is not None:
        return "no timeout_s, because its duration decides how long it may take"
    if attempts < MIN_ATTEMPTS:
        return f"no timeout_s, because it needs {MIN_ATTEMPTS} attempts, not {attempts}"
    return ""


def proposed(tool: Tool, policy: RunPolicy, calls: Sequence[Recorded]) -> list[Proposal] | str:
    """Propose from the evidence alone, nothing tried out; or say why too little is known."""
    attempts = attempts_of(calls)
    times = [call.arrival_s for call in calls]
    if len(attempts) < MIN_ATTEMPTS and len(times) < MIN_CALLS:
        return (
            f"{counted(len(times), 'call')} with {counted(len(attempts), 'attempt')} are too few:"
            " a rate needs"
            f" {MIN_CALLS} calls, a timeout {MIN_ATTEMPTS} attempts"
        )
    proposer = _Proposer(tool.name, policy)
    if tool.duration is None:
        proposer.timeout(tail_of(attempts))
    proposer.rate(times, refused=any(call.reason == "rate_limited" for call in calls))
    proposer.breaker(runs_of(attempts))
    proposer.concurrency(width_of(calls), len(times))
    return proposer.found


class _Proposer:
    def __init__(self, tool: str, policy: RunPolicy) -> None:
        self._tool = tool
        self._policy = policy
        self.found: list[Proposal] = []

    def timeout(self, tail: Tail | None) -> None:
        if tail is None:
            return
        now_s = self._policy.timeout_s
        seen = (
            f"of {tail.attempts} attempts half take up to {tail.typical_s:.3g} s,"
            f" 99 % up to {tail.p99_s:.3g} s, 99.9 % up to {tail.tail_s:.3g} s;"
            f" {tail.hung} hung or were cut off"
        )
        if now_s is not None and tail.tail_s > now_s * 0.8 and tail.hung:
            self._add("timeout_s", nice(2 * now_s), now_s, f"{seen}: the limit cuts the tail")
            return
        if tail.attempts < SURE_ATTEMPTS and not tail.hung:
            return
        proven = tail.hung and tail.attempts >= SURE_ATTEMPTS
        headroom = max(HEADROOM, tail.growth) * (1.0 if proven else UNPROVEN)
        # Where nothing hung, nothing that was seen is to be cut: it could only do harm.
        floor_s = 0.0 if tail.hung else HEADROOM * tail.longest_s
        wanted_s = max(nice(max(headroom * tail.tail_s, floor_s)), LEAST_TIMEOUT_S)
        if now_s is None or wanted_s < now_s * 0.9:
            self._add("timeout_s", wanted_s, now_s, seen)

    def _holds(self, burst: int) -> bool:
        """Whether the present rate is below what would be proposed, and yet refused nobody."""
        rate = self._policy.rate
        return rate is not None and parse_rate(rate).amount <= burst

    def rate(self, times: Sequence[float], *, refused: bool) -> None:
        arrivals = arrivals_of(times)
        if arrivals is None or self._policy.rate_key != ("tool",) or self._policy.cost != 1:
            return
        per_minute = max(arrivals.mean_per_minute, arrivals.busiest_per_minute * 0.75)
        per_second = HEADROOM * per_minute / 60
        bursts = arrivals.bursts(per_second, times)
        amount = max(bursts.spare(HEADROOM), LEAST_BURST)
        if self._holds(amount) and not refused:
            return
        value = rate_text(amount, per_second)
        if value != self._policy.rate:
            self._add(
                "rate",
                value,
                self._policy.rate,
                f"{arrivals.calls} calls, {arrivals.mean_per_minute:.3g} a minute on average and"
                f" {arrivals.busiest_per_minute} in the busiest, in bursts of up to {bursts.most}",
            )

    def breaker(self, runs: Runs | None) -> None:
        breaker = self._policy.breaker
        if runs is None or breaker is None or runs.outages < MIN_OUTAGES:
            return
        seen = (
            f"{runs.failures} failures: stray ones up to {runs.stray} in a row, and {runs.outages}"
            f" outages of {runs.outage_s:.3g} s (median)"
        )
        threshold = min(max(runs.stray + 2, 3), 20)
        if threshold != breaker.threshold:
            self._add("breaker.threshold", threshold, breaker.threshold, seen)
        # Half a cooldown after an outage calls are refused that would be answered; each probe
        # during one costs an attempt, and a retry. The cooldown is that of which both cost least.
        probe_s = 2 * (runs.failing_s + ATTEMPT_S)
        best_s = math.sqrt(2 * runs.outage_s * probe_s / (runs.per_second * PENALTY_S))
        longest_s = max(nice(best_s), 2.0)
        first_s = max(nice(best_s / 2), 2.0)
        if longest_s < breaker.max_cooldown_s * CLEARLY:
            if first_s < breaker.cooldown_s:
                self._add("breaker.cooldown_s", first_s, breaker.cooldown_s, seen)
            self._add("breaker.max_cooldown_s", longest_s, breaker.max_cooldown_s, seen)

    def concurrency(self, widths: Most, calls: int) -> None:
        width = widths.most
        if calls < MIN_CALLS or width == 0:
            return
        wanted = max(widths.spare(2.0), 4)
        now = self._policy.max_concurrency
        if now is None or now > 2 * wanted or now <= width:
            self._add("max_concurrency", wanted, now, f"at most {width} were under way at once")

    def _add(self, key: str, value: Any, was: Any, evidence: str) -> None:
        self.found.append(Proposal("tools", self._tool, key, value, was, evidence))


def _by_family(proposals: Sequence[Proposal], tools: Mapping[str, Tool]) -> list[Proposal]:
    """Say once for a family what all of its recorded tools are to have alike."""
    kept: list[Proposal] = []
    families: dict[tuple[str, str], list[Proposal]] = {}
    for one in proposals:
        family = tools[one.name].family
        if family is None:
            kept.append(one)
        else:
            families.setdefault((family, one.key), []).append(one)
    for (family, _), found in families.items():
        members = [name for name, tool in tools.items() if tool.family == family]
        if len(found) == len(members) and len({str(one.value) for one in found}) == 1:
            first = found[0]
            kept.append(msgspec.structs.replace(first, section="families", name=family))
        else:
            kept += found
    return kept


def document_of(proposals: Iterable[Proposal]) -> dict[str, Any]:
    """Write proposals as a policy file has them, parsed."""
    document: dict[str, Any] = {}
    for one in proposals:
        table = document.setdefault(one.section, {}).setdefault(one.name, {})
        *within, key = one.key.split(".")
        for part in within:
            table = table.setdefault(part, {})
        table[key] = one.value
    return document


def rate_text(burst: int, per_second: float) -> str:
    """Write a rate as people do that holds such a burst, and lets so many through in a second.

    Both at least; of the rates that do, the one that is the least looser, and one of a plain
    period if that is hardly looser.
    """
    written = [_loosened(burst, per_second, period_s) for period_s, _ in PERIODS]
    loose = [looser for looser, _ in written]
    best = loose.index(min(loose[:PLAIN_PERIODS]))
    if loose[best] > PLAIN:
        best = loose.index(min(loose))
    return f"{written[best][1]}{PERIODS[best][1]}"


def _loosened(burst: int, per_second: float, period_s: int) -> tuple[float, int]:
    """Give a whole number for a period, and how much more it allows than it has to."""
    amount = math.ceil(nice(max(burst, per_second * period_s)))
    return amount / burst * amount / (period_s * per_second), amount


def nice(value: float) -> float:
    """Round up to two digits, so that nobody looks for a meaning in the others."""
    if value <= 0:
        return 0.0
    step = 10.0 ** (math.floor(math.log10(value)) - 1)
    return round(math.ceil(value / step - 1e-9) * step, 10)
