"""`json_path`: pick values out of a JSON document by a path of RFC 9535.

Written here because what a query may cost has to be bounded: nested filters and repeated
descents multiply. Every node that is looked at counts against one budget.
"""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, NamedTuple

from pydantic import Field

from seawall.toolkit import json_path_syntax as syntax
from seawall.toolkit.documents import MAX_SIZE, Json, fits, parsed
from seawall.toolkit.patterns import Pattern, compiled, encodable
from seawall.toolkit.refusal import invalid

MAX_STEPS = 1_000_000
"""Nodes that one call may look at."""


def json_path(
    document: Annotated[Any, Field(description="Any JSON value; text that holds JSON is read.")],
    path: Annotated[
        str,
        Field(
            min_length=1,
            max_length=syntax.MAX_LENGTH,
            description="RFC 9535: $.items[?@.price < 10].name, $..id, $.list[0:3], $['a b'].",
        ),
    ],
    limit: Annotated[int, Field(ge=1, le=1000)] = 100,
) -> dict[str, Any]:
    """Find values in a JSON document by a JSONPath query, with the place of each."""
    found = select(parsed(document), path)
    chosen = found[:limit]
    values = [node.value for node in chosen]
    if not fits(values):
        raise invalid("limit", f"the result is larger than {MAX_SIZE} characters of JSON; ask less")
    return {
        "values": values,
        "paths": [node.path() for node in chosen],
        "found": len(found),
    }


class Node(NamedTuple):
    """A value and how it was reached."""

    value: Json
    key: str | int | None = None
    parent: "Node | None" = None

    def path(self) -> str:
        """Write the normalized path."""
        parts: list[str] = []
        node: Node = self
        while node.parent is not None:
            parts.append(f"[{_quoted(node.key) if isinstance(node.key, str) else node.key}]")
            node = node.parent
        return "$" + "".join(reversed(parts))


def select(document: Json, path: str) -> list[Node]:
    """Find all nodes of a query, in the order of the RFC."""
    query = syntax.parse(path)
    return _Evaluation(Node(document)).nodes(query, Node(document))


def _quoted(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace("'", "\\'")
    return "'" + "".join(c if c >= " " else f"\\u{ord(c):04x}" for c in escaped) + "'"


_NOTHING = object()
"""What a query for one value gives where there is none; no JSON value equals it."""


class _Evaluation:
    """One query over one document, on one budget."""

    def __init__(self, root: Node) -> None:
        self._root = root
        self._left = MAX_STEPS
        self._patterns: dict[str, Pattern] = {}

    def nodes(self, query: syntax.Query, current: Node) -> list[Node]:
        """Find the nodes of a query, below `current` if it begins with @."""
        found = [self._root if query.from_root else current]
        for segment in query.segments:
            within = [below for node in found for below in self._reach(node, segment)]
            found = [
                chosen
                for node in within
                for selector in segment.selectors
                for chosen in self._chosen(node, selector)
            ]
        return found

    def _spend(self, steps: int = 1) -> None:
        self._left -= steps
        if self._left < 0:
            raise invalid(
                "path", f"path looks at more than {MAX_STEPS} nodes of this document; narrow it"
            )

    def _reach(self, node: Node, segment: syntax.Segment) -> Iterator[Node]:
        """Give the node, and with a deep segment all below it, parents first."""
        if not segment.deep:
            yield node
            return
        waiting = [node]
        while waiting:
            here = waiting.pop()
            yield here
            waiting.extend(reversed(list(self._children(here))))

    def _children(self, node: Node) -> Iterator[Node]:
        value = node.value
        if isinstance(value, dict):
            for key, member in value.items():
                self._spend()
                yield Node(member, key, node)
        elif isinstance(value, list):
            for index, element in enumerate(value):
                self._spend()
                yield Node(element, index, node)

    def _chosen(self, node: Node, selector: syntax.Selector) -> Iterator[Node]:
        self._spend()
        value = node.value
        if isinstance(selector, syntax.Wildcard):
            yield from self._children(node)
        elif isinstance(selector, syntax.Filter):
            for child in self._children(node):
                if self._passes(selector.test, child):
                    yield child
        elif isinstance(selector, syntax.Name):
            if isinstance(value, dict) and selector.name in value:
                yield Node(value[selector.name], selector.name, node)
        elif isinstance(value, list):
            for index in _positions(selector, len(value)):
                self._spend()
                yield Node(value[index], index, node)

    def _passes(self, test: syntax.Test, node: Node) -> bool:
        if isinstance(test, syntax.Compare):
            left, right = self._value(test.left, node), self._value(test.right, node)
            return self._compared(test.sign, left, right)
        if isinstance(test, syntax.Every):
            return all(self._passes(part, node) for part in test.parts)
        if isinstance(test, syntax.Any_):
            return any(self._passes(part, node) for part in test.parts)
        if isinstance(test, syntax.Not):
            return not self._passes(test.part, node)
        if isinstance(test, syntax.Query):
            return bool(self.nodes(test, node))
        return self._matches(test, node)

    def _value(self, part: syntax.Comparable, node: Node) -> Json:
        if isinstance(part, syntax.Literal):
            return part.value
        if isinstance(part, syntax.Query):
            found = self.nodes(part, node)
            return found[0].value if found else _NOTHING
        argument = part.arguments[0]
        if part.name == "length":
            return _length(self._value(argument, node))
        # The reader has made sure that `count` and `value` are given a query.
        nodes = self.nodes(argument, node) if isinstance(argument, syntax.Query) else []
        if part.name == "count":
            return len(nodes)
        return nodes[0].value if len(nodes) == 1 else _NOTHING

    def _matches(self, call: syntax.Call, node: Node) -> bool:
        text, pattern = (self._value(argument, node) for argument in call.arguments)
        if not isinstance(text, str) or not isinstance(pattern, str):
            return False
        if pattern not in self._patterns:
            self._patterns[pattern] = compiled(pattern, "path")
        program = self._patterns[pattern]
        # What RE2 may have to do for each character grows with the size of the pattern.
        self._spend(1 + len(text) * program.programsize // 100)
        encodable(text, "document")
        find = program.fullmatch if call.name == "match" else program.search
        return find(text) is not None

    def _compared(self, sign: str, left: Json, right: Json) -> bool:
        if sign in ("==", "!="):
            return self._same(left, right) is (sign == "==")
        if sign in (">", ">="):
            left, right = right, left
        return _less(left, right) or (sign in ("<=", ">=") and self._same(left, right))

    def _same(self, left: Json, right: Json) -> bool:
        """Compare as JSON: 1 equals 1.0 but not true, members may come in any order."""
        pairs = [(left, right)]
        while pairs:
            one, other = pairs.pop()
            self._spend()
            if _kind(one) is not _kind(other):
                return False
            if isinstance(one, list):
                if len(one) != len(other):
                    return False
                pairs.extend(zip(one, other, strict=True))
            elif isinstance(one, dict):
                if one.keys() != other.keys():
                    return False
                pairs.extend((member, other[key]) for key, member in one.items())
            elif one != other:
                return False
        return True


def _positions(selector: syntax.Index | syntax.Slice, length: int) -> Sequence[int]:
    if isinstance(selector, syntax.Slice):
        if selector.step == 0:
            return ()
        return range(*slice(selector.start, selector.stop, selector.step).indices(length))
    index = selector.at + length if selector.at < 0 else selector.at
    return (index,) if 0 <= index < length else ()


def _length(value: Json) -> Json:
    return len(value) if isinstance(value, (str, list, dict)) else _NOTHING


def _kind(value: Json) -> type:
    return float if isinstance(value, int) and not isinstance(value, bool) else type(value)


def _less(left: Json, right: Json) -> bool:
    if _kind(left) is not _kind(right) or _kind(left) not in (float, str):
        return False
    return bool(left < right)
