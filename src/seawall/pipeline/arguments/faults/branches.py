"""Of the alternatives that a value meets none of, find the one that was meant.

First by a tag: a member that each alternative gives another constant. Then by type, then by how
many of an object's members an alternative declares, then by how far the value gets in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seawall.contract.pointer import escaped
from seawall.pipeline.arguments.faults import wording
from seawall.pipeline.arguments.schema.documents import MARK, mapping

if TYPE_CHECKING:
    from seawall.contract.failure import Issue
    from seawall.pipeline.arguments.faults.looking import Looking
    from seawall.pipeline.arguments.schema.documents import Documents, Place

_STEPS_AT_MOST = 50
_TRIALS_AT_MOST = 8


class Branch:
    """One alternative, and what it says for certain."""

    def __init__(self, documents: Documents, place: Place, index: int) -> None:
        self.place = documents.final(place)
        self.name = label(place, index)
        self.nodes = list(_certain(documents, place))
        self.types = [name for node in self.nodes for name in wording.types(node.node)]
        self.choices = next((found for n in self.nodes if (found := _choices(n.node))), None)
        if self.types == ["null"]:
            self.choices = [None]
        self.tags = _tags(documents, self.nodes)
        self.is_hopeless = place.node is False or any(MARK in node.node for node in self.nodes)

    def suits(self, value: Any) -> bool:
        """Whether the type of a value is one that this alternative takes."""
        stated = [wording.types(node.node) for node in self.nodes]
        return all(
            any(wording.has_kind(value, name) for name in names) for names in stated if names
        )

    def declared(self, value: dict[str, Any]) -> int:
        """Count the members of an object that this alternative declares."""
        names = {name for n in self.nodes for name in mapping(n.node, "properties")}
        return len(names & value.keys())

    def contradicts(self, value: dict[str, Any]) -> bool:
        """Whether a tag of the object is another one's."""
        return any(
            name in value and not any(_same(value[name], tag) for tag in tags)
            for name, tags in self.tags.items()
        )


class Union:
    """The alternatives of one `anyOf` or `oneOf`, all of which refuse a value."""

    def __init__(self, finder: Looking, place: Place, keyword: str, branches: list[Branch]) -> None:
        self._finder = finder
        self._keyword = keyword
        self._node = place.node
        self._branches = [branch for branch in branches if not branch.is_hopeless] or branches

    def tell(self, value: Any, path: str) -> None:
        """Tell what is wrong with the value, seen from the alternative that was meant."""
        suiting = [branch for branch in self._branches if branch.suits(value)]
        if isinstance(value, dict) and len(suiting) > 1:
            tag = self._tag(suiting)
            if tag is not None and self._tell_tag(tag, suiting, value, path):
                return
            suiting = [b for b in suiting if not b.contradicts(value)] or suiting
        if not suiting and any(branch.types for branch in self._branches):
            self._tell_types(value, path)
        elif all(branch.choices for branch in self._branches):
            choices = [choice for branch in self._branches for choice in branch.choices or ()]
            self._tell_choices(choices, value, path, "enum")
        else:
            self._tell_best(suiting or self._branches, value, path)

    def _tag(self, branches: list[Branch]) -> str | None:
        """Give the member that tells the alternatives apart, if all have one."""
        stated = self._node.get("discriminator")
        named = stated.get("propertyName") if isinstance(stated, dict) else None
        for name in [named, *branches[0].tags]:
            if isinstance(name, str) and all(name in branch.tags for branch in branches):
                tags = [tag for branch in branches for tag in branch.tags[name]]
                if not any(_same(a, b) for i, a in enumerate(tags) for b in tags[:i]):
                    return name
        return None

    def _tell_tag(self, tag: str, branches: list[Branch], value: dict[str, Any], path: str) -> bool:
        """Tell of a tag that is missing or means no alternative; say whether it is so."""
        tags = [known for branch in branches for known in branch.tags[tag]]
        below = f"{path}/{escaped(tag)}"
        if tag not in value:
            self._finder.tell(below, f"missing; expected {wording.one_of(tags)}", "required")
        elif not any(_same(value[tag], known) for known in tags):
            self._tell_choices(tags, value[tag], below, self._keyword)
        else:
            return False
        return True

    def _tell_choices(self, choices: list[Any], value: Any, path: str, keyword: str) -> None:
        secret = self._finder.is_secret(path)
        said = wording.broken("enum", {"enum": choices}, value, secret=secret)
        self._finder.tell(path, said, keyword)

    def _tell_types(self, value: Any, path: str) -> None:
        wanted = [name for branch in self._branches for name in branch.types]
        said = f"expected {wording.alternatives(wanted)}, got {wording.kind(value)}"
        self._finder.tell(path, said, "type")

    def _tell_best(self, branches: list[Branch], value: Any, path: str) -> None:
        best = branches
        if isinstance(value, dict) and len(best) > 1:
            most = max(branch.declared(value) for branch in best)
            best = [branch for branch in best if branch.declared(value) == most]
        trials = [
            (self._finder.trial(branch.place, value, path), branch)
            for branch in best[:_TRIALS_AT_MOST]
        ]
        issues, chosen = max(trials, key=lambda trial: _progress(trial[0]))
        is_clear = sum("null" not in branch.types for branch in self._branches) < 2
        for issue in issues:
            is_said = is_clear or _READ_AS in issue.message
            said = issue.message if is_said else f"{issue.message}{_READ_AS}{chosen.name})"
            self._finder.tell(issue.path, said, issue.keyword)


_READ_AS = " (read as "


def label(place: Place, index: int) -> str:
    """Name an alternative: by its title, the definition it refers to, or its number."""
    node = place.node if isinstance(place.node, dict) else {}
    title, reference = node.get("title"), node.get("$ref")
    if isinstance(title, str) and title:
        return wording.name(title)
    if isinstance(reference, str) and reference.rpartition("/")[2]:
        return wording.name(reference.rpartition("/")[2])
    return f"alternative {index + 1}"


def _progress(issues: list[Issue]) -> tuple[int, int]:
    """How far a value got: the depth of its first fault, then how few there are."""
    return (issues[0].path.count("/") if issues else 0, -len(issues))


def _certain(documents: Documents, place: Place) -> list[Place]:
    """Give the nodes that hold wherever the place does."""
    found: list[Place] = []
    waiting = [place]
    while waiting and len(found) < _STEPS_AT_MOST:
        now = waiting.pop(0)
        if not isinstance(now.node, dict) or any(now.node is known.node for known in found):
            continue
        found.append(now)
        waiting += documents.targets(now)
        waiting += [
            documents.child(now, "allOf", str(i)) for i in range(len(now.node.get("allOf", ())))
        ]
    return found


def _choices(node: dict[str, Any]) -> list[Any] | None:
    """Give the values a node lists, if they are all scalars."""
    listed = node.get("enum", [node["const"]] if "const" in node else None)
    if not isinstance(listed, list) or any(isinstance(v, (dict, list)) for v in listed):
        return None
    return listed


def _tags(documents: Documents, nodes: list[Place]) -> dict[str, list[Any]]:
    """Give the members that can only have certain values."""
    tags: dict[str, list[Any]] = {}
    for node in nodes:
        for name in mapping(node.node, "properties"):
            for part in _certain(documents, documents.child(node, "properties", name)):
                choices = _choices(part.node)
                if choices:
                    tags.setdefault(name, choices)
    return tags


def _same(one: Any, other: Any) -> bool:
    """Whether two scalars are equal in JSON, where true is not 1."""
    return one == other and isinstance(one, bool) == isinstance(other, bool)
