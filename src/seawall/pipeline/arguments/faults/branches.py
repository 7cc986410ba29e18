"""Of the alternatives that a value meets none of, find the one that was meant.

First by a tag: a member that each alternative gives another constant. Then by type, then by how
many of an object's members an alternative declares, then by how far the value gets in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seawall.contract.pointer import escaped
from seawall.pipeline.arguments.faults import wording
from seawall.pipeline.arguments.faults.alternative import is_same
from seawall.pipeline.arguments.faults.misnamed import Misnamed
from seawall.pipeline.arguments.schema.redaction import declared_names

if TYPE_CHECKING:
    from seawall.contract.failure import Issue
    from seawall.pipeline.arguments.faults.looking import Looking
    from seawall.pipeline.arguments.faults.survey import Spot

_TRIALS_AT_MOST = 8


class Union:
    """The alternatives of one `anyOf` or `oneOf`, all of which refuse a value."""

    def __init__(
        self, finder: Looking, node: dict[str, Any], keyword: str, branches: list[Spot]
    ) -> None:
        self._finder = finder
        self._keyword = keyword
        self._node = node
        self._branches = [
            branch for branch in branches if not branch.alternative.is_hopeless
        ] or branches

    def tell(self, value: Any, path: str) -> None:
        """Tell what is wrong with the value, seen from the alternative that was meant."""
        suiting = [branch for branch in self._branches if branch.alternative.suits(value)]
        if isinstance(value, dict) and len(suiting) > 1:
            tag = self._tag(suiting)
            if tag is not None and self._tell_tag(tag, suiting, value, path):
                return
            suiting = [b for b in suiting if not b.alternative.contradicts(value)] or suiting
        if not suiting and any(branch.alternative.types for branch in self._branches):
            self._tell_types(value, path)
        elif all(branch.alternative.choices for branch in self._branches):
            choices = [
                choice for branch in self._branches for choice in branch.alternative.choices or ()
            ]
            self._tell_choices(choices, value, path, "enum")
        else:
            self._tell_best(suiting or self._branches, value, path)

    def _tag(self, branches: list[Spot]) -> str | None:
        """Give the member that tells the alternatives apart, if all have one."""
        stated = self._node.get("discriminator")
        named = stated.get("propertyName") if isinstance(stated, dict) else None
        for name in [named, *branches[0].alternative.tags]:
            if isinstance(name, str) and all(
                name in branch.alternative.tags for branch in branches
            ):
                tags = [tag for branch in branches for tag in branch.alternative.tags[name]]
                if len({(isinstance(known, bool), known) for known in tags}) == len(tags):
                    return name
        return None

    def _tell_tag(self, tag: str, branches: list[Spot], value: dict[str, Any], path: str) -> bool:
        """Tell of a tag that is missing or means no alternative; say whether it is so."""
        tags = [known for branch in branches for known in branch.alternative.tags[tag]]
        below = f"{path}/{escaped(tag)}"
        if tag not in value:
            known = declared_names(place for branch in branches for place in branch.together)
            said = f"missing; expected {wording.one_of(tags)}"
            said += Misnamed(self._finder, value, path, known).instead_of(tag)
            self._finder.tell(below, said, "required")
        elif not any(is_same(value[tag], known) for known in tags):
            self._tell_choices(tags, value[tag], below, self._keyword)
        else:
            return False
        return True

    def _tell_choices(self, choices: list[Any], value: Any, path: str, keyword: str) -> None:
        secret = self._finder.is_secret(path)
        said = wording.broken("enum", {"enum": choices}, value, secret=secret)
        self._finder.tell(path, said, keyword)

    def _tell_types(self, value: Any, path: str) -> None:
        wanted = [name for branch in self._branches for name in branch.alternative.types]
        said = f"expected {wording.alternatives(wanted)}, got {wording.kind(value)}"
        self._finder.tell(path, said, "type")

    def _tell_best(self, branches: list[Spot], value: Any, path: str) -> None:
        best = branches
        if isinstance(value, dict) and len(best) > 1:
            most = max(branch.alternative.declared(value) for branch in best)
            best = [branch for branch in best if branch.alternative.declared(value) == most]
        trials = [
            (self._finder.trial(branch.final, value, path), branch)
            for branch in best[:_TRIALS_AT_MOST]
        ]
        issues, chosen = max(trials, key=lambda trial: _progress(trial[0]))
        read_as = f"{_READ_AS}{chosen.alternative.name})"
        is_clear = sum("null" not in branch.alternative.types for branch in self._branches) < 2
        for issue in issues:
            is_said = is_clear or _READ_AS in issue.message
            said = issue.message if is_said else issue.message + read_as
            self._finder.tell(issue.path, said, issue.keyword)


_READ_AS = " (read as "


def _progress(issues: list[Issue]) -> tuple[int, int]:
    """How far a value got: the depth of its first fault, then how few there are."""
    return (issues[0].path.count("/") if issues else 0, -len(issues))
