"""What a policy changes: how calls ended before, and how they would end after."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from seawall.orchestration.replay.explain import Difference, differences
from seawall.orchestration.replay.simulate import Simulation, is_played, recorded_end, tools_of
from seawall.orchestration.replay.unplayed import unplayed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from seawall.contract.tool import Tool
    from seawall.orchestration.replay.simulate import Ended
    from seawall.policy.model import Policies
    from seawall.recording.trace_file import Trace


class Counts(msgspec.Struct):
    """Calls of one tool, or of several, as they ended under one policy."""

    calls: int = 0
    good: int = 0
    refused: int = 0
    """By a limit, before anything ran."""
    short_circuited: int = 0
    """Of these, by an open circuit."""
    timed_out: int = 0
    failed: int = 0
    """Ended with a failure after at least one attempt, the timed out ones among them."""
    retries: int = 0
    shadow_refused: int = 0
    """Refusals that layers in shadow mode would have made."""
    seconds: float = 0.0
    """From arrival to answer, all calls together."""
    refused_by: dict[str, int] = {}
    """The refused ones by the layer that refused them, as policies name it."""

    def add(self, end: Ended) -> None:
        """Count one call."""
        self.calls += 1
        self.good += end.good
        self.refused += end.refused
        self.short_circuited += end.refused and end.reason == "circuit_open"
        self.timed_out += end.timed_out
        self.failed += not end.good and end.attempts > 0
        self.retries += max(end.attempts - 1, 0)
        self.shadow_refused += end.shadowed
        self.seconds += end.elapsed_s
        if end.refused:
            self.refused_by[end.layer] = self.refused_by.get(end.layer, 0) + 1


class Effect(msgspec.Struct):
    """What changes for one tool, or for several."""

    before: Counts
    after: Counts
    saved: int = 0
    """Calls that were not answered, and would be."""
    lost: int = 0
    """Calls that were answered, and would not be."""
    newly_refused: int = 0
    newly_timed_out: int = 0
    changed: int = 0
    """Calls that would end otherwise, or after another number of attempts."""
    added_s: float = 0.0
    """What answers that there are both times would take longer, all together; below 0 shorter."""
    longest_added_s: float = 0.0

    def add(self, before: Ended, after: Ended) -> None:
        """Count one call."""
        self.before.add(before)
        self.after.add(after)
        self.saved += after.good and not before.good
        self.lost += before.good and not after.good
        self.newly_refused += after.refused and not before.refused
        self.newly_timed_out += after.timed_out and not before.timed_out
        self.changed += not before.same(after)
        if before.good and after.good:
            added_s = after.elapsed_s - before.elapsed_s
            self.added_s += added_s
            self.longest_added_s = max(self.longest_added_s, added_s)

    def share(self, count: int) -> float:
        """Give a count as a share of all calls."""
        return count / self.after.calls if self.after.calls else 0.0


def no_effect() -> Effect:
    """Begin to count."""
    return Effect(Counts(), Counts())


class Report(msgspec.Struct):
    """A replay, added up. Calls that gates refused are not played, and so not counted."""

    total: Effect
    tools: dict[str, Effect]
    families: dict[str, Effect]
    """By the families of the candidate that a tool is in; a tool may be in several."""
    not_played: int
    """Calls that gates, checks or hooks refused, which no limit decides on."""
    against: str
    """`what happened`, or `the baseline`, which was simulated too."""
    unlike: int = 0
    """Of a simulated baseline: calls that really ended otherwise. Shows how far to trust it."""
    unplayed: dict[str, tuple[str, ...]] = {}
    """By tool, what the candidate asks for that a replay cannot do."""
    differences: list[Difference] = []
    """Which those are, and at which boundary; where they were asked for."""

    def export(self) -> dict[str, Any]:
        """Give it as JSON-able values."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found


def simulate(
    trace: Trace,
    candidate: Policies,
    *,
    baseline: Policies | None = None,
    tools: Iterable[Tool] = (),
    seed: int = 0,
    explain: bool = False,
) -> Report:
    """Play a trace under `candidate` and compare.

    With a `baseline`, which is the policy that the trace was recorded under, both are simulated
    and compared; without, the candidate is compared with what happened. The same trace, policies
    and seed give the same report. `explain` tells in which calls the simulated baseline differs
    from what happened, and why.
    """
    known = tools_of(trace, tools)

    def simulation(policies: Policies) -> Simulation:
        return Simulation(trace, policies, tools=known, live=baseline, seed=seed)

    real = [recorded_end(call) if is_played(call) else None for call in trace.calls]
    replay = None if baseline is None else simulation(baseline)
    before = real if replay is None else replay.run()
    trial = simulation(candidate)
    after = trial.run()
    report = _compared(trace, before, after, _families(known, candidate))
    live = None if replay is None else replay.policies
    report.unplayed = unplayed(trace, known, trial.policies, live)
    if baseline is not None:
        report.against = "the baseline"
        report.unlike = sum(
            one is not None and other is not None and not one.same(other)
            for one, other in zip(real, before, strict=True)
        )
    if replay is not None and explain:
        report.differences = differences(trace, before, replay)
    return report


def _families(tools: Mapping[str, Tool], policies: Policies) -> dict[str, tuple[str, ...]]:
    return {name: policies.families_of(tool) for name, tool in tools.items()}


def _compared(
    trace: Trace,
    before: Sequence[Ended | None],
    after: Sequence[Ended | None],
    families: Mapping[str, tuple[str, ...]],
) -> Report:
    report = Report(no_effect(), {}, {}, 0, "what happened")
    for call, old, new in zip(trace.calls, before, after, strict=True):
        if old is None or new is None:
            report.not_played += 1
            continue
        report.total.add(old, new)
        report.tools.setdefault(call.tool, no_effect()).add(old, new)
        for family in families[call.tool]:
            report.families.setdefault(family, no_effect()).add(old, new)
    return report


class Bound(msgspec.Struct, frozen=True):
    """What may happen at most: `1%` of the calls, or `10` calls."""

    name: str
    most: float
    is_share: bool

    @classmethod
    def parse(cls, name: str, text: str) -> Bound:
        """Read `1%` or `10`; raises `ValueError`."""
        plain = text.strip()
        number = float(plain.removesuffix("%"))
        is_share = plain.endswith("%")
        if not 0 <= number <= (100 if is_share else 1e12):
            raise ValueError(f"{text!r} is no share and no count")
        return cls(name, number / 100 if is_share else number, is_share)

    def exceeded(self, report: Report) -> str | None:
        """Say by how much it is exceeded, or None."""
        total = report.total
        count = _MEASURES[self.name](total)
        found = total.share(count) if self.is_share else count
        if found <= self.most:
            return None
        said = self.name.replace("_", " ")
        if self.is_share:
            return f"{said}: {found:.2%} of the calls, at most {self.most:.2%} are allowed"
        return f"{said}: {count} calls, at most {self.most:g} are allowed"


_MEASURES: dict[str, Any] = {
    "refused": lambda effect: effect.after.refused,
    "newly_refused": lambda effect: effect.newly_refused,
    "timed_out": lambda effect: effect.after.timed_out,
    "failed": lambda effect: effect.after.failed,
    "lost": lambda effect: effect.lost,
    "shadow_refused": lambda effect: effect.after.shadow_refused,
}
"""What a bound may be for."""
