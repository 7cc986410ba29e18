"""Find schemas that lead back to themselves at the same value: no value could ever settle them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seawall.pipeline.arguments.lenient.node import Node


def looping(nodes: Iterable[Node]) -> Node | None:
    """Give a node that is reached from itself without going into a member or an item."""
    settled: set[int] = set()
    for start in nodes:
        found = _search(start, settled)
        if found is not None:
            return found
    return None


def _search(start: Node, settled: set[int]) -> Node | None:
    trail = [(start, iter(_in_place(start)))]
    open_now = {id(start)}
    while trail:
        node, waiting = trail[-1]
        inner = next((inner for inner in waiting if id(inner) not in settled), None)
        if inner is None:
            trail.pop()
            open_now.discard(id(node))
            settled.add(id(node))
        elif id(inner) in open_now:
            return inner
        else:
            open_now.add(id(inner))
            trail.append((inner, iter(_in_place(inner))))
    return None


def _in_place(node: Node) -> list[Node]:
    found = [*(node.all_of or ()), *(node.any_of or ()), *(node.one_of or ())]
    found += [needs for _, needs in node.dependents if not isinstance(needs, tuple)]
    single = (
        node.negated,
        node.condition,
        node.then,
        node.otherwise,
        node.reference,
        node.dynamic,
    )
    return found + [inner for inner in single if inner is not None]
