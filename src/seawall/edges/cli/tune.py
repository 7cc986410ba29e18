"""`seawall policy tune`: proposals as a policy file to review."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import msgspec

from seawall.contract.errors import ConfigurationError, Fault
from seawall.contract.sentences import counted
from seawall.edges.cli.brief import plain
from seawall.edges.cli.exits import Exit
from seawall.edges.cli.simulate import recorded_calls
from seawall.edges.cli.sources import policy_path
from seawall.orchestration.replay.tune import tune
from seawall.policy.origins import dotted
from seawall.policy.ready_made import ready_made_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from seawall.edges.cli.paper import Paper
    from seawall.orchestration.replay.tune import Proposal, Tuning


class TuneOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line said."""

    traces: tuple[str, ...]
    policy: str | None = None
    registry: str | None = None
    seed: int = 0
    output: str | None = None
    as_json: bool = False


ASSUMED = "default"
"""What is taken as recorded under, where nobody says."""

WIDTH = 80
"""Columns of a comment: a terminal has as many, and so has what shows a difference of files."""

FEW = 0.01
"""Calls that may end otherwise in a replay under the very policy that they were recorded under."""


def run_tuning(options: TuneOptions, paper: Paper, errors: Paper) -> Exit:
    """Tune, and write what is proposed."""
    assumed = options.policy or ASSUMED
    base = policy_path(assumed)
    trace, tools = recorded_calls(options.traces, options.registry, errors)
    tuning = tune(trace, base, tools=tools, seed=options.seed)
    said = recorded_under(tuning, options.policy)
    if said:
        errors.line(said, lead="note: ")
    text = policy_text(tuning, _extended(assumed, options.output), said)
    if options.output is not None:
        try:
            Path(options.output).write_text(text, encoding="utf-8")
        except OSError as error:
            said = f"cannot be written: {error.strerror or type(error).__name__}"
            raise ConfigurationError([Fault(said, file=options.output)]) from None
        errors.text(f"Written to {options.output}: {counted(len(tuning.proposals), 'proposal')}.")
    if options.as_json:
        paper.text(json.dumps(msgspec.to_builtins(tuning), ensure_ascii=False, default=str))
    elif options.output is None:
        paper.text(text.rstrip("\n"))
    return Exit.OK


def recorded_under(tuning: Tuning, policy: str | None) -> str:
    """Say what is taken as the policy of the recording, where that is not known or not likely."""
    unlike = tuning.unlike > FEW * tuning.played
    some = f"{tuning.unlike} of {tuning.played} calls"
    if policy is not None:
        said = f"{some} ended otherwise than they would under {policy}: was it recorded under that?"
        return said if unlike else ""
    said = f"no --policy was given, so the calls are taken as recorded under {ASSUMED}"
    if not unlike:
        return said
    return f"{said}; {some} ended otherwise than under that: give the one it was, with --policy"


def _extended(policy: str, output: str | None) -> str:
    """Say how a file that is written to where it is asked for names the one it extends."""
    if policy in ready_made_names() and not Path(policy).exists():
        return policy
    path = Path(policy).resolve()
    folder = Path(output or "x").resolve().parent
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else str(path)


def policy_text(tuning: Tuning, extends: str, said: str = "") -> str:
    """Write the proposals as a policy file, with the evidence in comments."""
    lines = [
        "# Proposed from recorded calls; review it before it is used.",
        *([f"# Note: {_comment(said)}"] if said else []),
        *_effect(tuning),
        "",
        f"extends = {json.dumps(extends, ensure_ascii=False)}",
    ]
    sections: dict[tuple[str, str], list[Proposal]] = {}
    for one in tuning.proposals:
        sections.setdefault((one.section, one.name), []).append(one)
    for (section, name), found in sections.items():
        lines += ["", f"[{dotted((section, name))}]", *_values(found)]
    if tuning.dropped:
        lines += ["", "# Not proposed, because the simulated score was worse with it:"]
        lines += [
            f"#   {_comment(one.name)}: {one.key} = {_toml(one.value)} ({_comment(one.evidence)})"
            for one in tuning.dropped
        ]
    if tuning.withheld:
        lines += ["", "# Not proposed, although there are calls enough:"]
        lines += [
            f"#   {_comment(name)}: {why}"
            for name, found in sorted(tuning.withheld.items())
            for why in found
        ]
    if tuning.fitting:
        lines += ["", "# Nothing to change for:"]
        lines += [f"#   {_comment(name)}" for name in sorted(tuning.fitting)]
    if tuning.thin:
        lines += ["", "# Too little is known of:"]
        lines += [f"#   {_comment(name)}: {why}" for name, why in sorted(tuning.thin.items())]
    return "".join(f"{part}\n" for line in lines for part in _wrapped(line))


def _wrapped(line: str) -> list[str]:
    """Break a long comment between words; each part is a comment again."""
    if not line.startswith("#") or len(line) <= WIDTH:
        return [line]
    indent = line[: len(line) - len(line.lstrip("# "))]
    return wrap(
        line,
        WIDTH,
        subsequent_indent=f"{indent}  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _values(found: Iterable[Proposal]) -> Iterator[str]:
    for one in found:
        yield f"{one.key} = {_toml(one.value)}  # was {plain(one.was)}"
        yield f"#   {_comment(one.evidence)}"


def _effect(tuning: Tuning) -> Iterator[str]:
    before, after = tuning.before.get(""), tuning.after.get("")
    if before is None or after is None:
        yield "# No call of this trace could be played."
        return
    yield f"# Score of all calls, in seconds a call, smaller is better: {before:.3f} -> {after:.3f}"
    for name in sorted(tuning.after):
        if name and tuning.after[name] != tuning.before[name]:
            change = f"{tuning.before[name]:.3f} -> {tuning.after[name]:.3f}"
            yield f"#   {_comment(name)}: {change}"


def _comment(text: str) -> str:
    """Keep text from a trace from ending its comment."""
    return "".join(char if char.isprintable() else "?" for char in text)


def _toml(value: Any) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return f"{value:g}" if isinstance(value, float) else str(value)
