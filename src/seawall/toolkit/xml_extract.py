"""`xml_extract`: pick elements, attributes and text out of XML by a short path.

Document type declarations are refused, and with them entities, which is where XML becomes
dangerous. Every element that is looked at counts against one budget.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, NamedTuple
from xml.parsers import expat

from pydantic import Field

from seawall.contract.failure import ToolFailed
from seawall.toolkit.documents import MAX_SIZE, fits
from seawall.toolkit.refusal import invalid, shown

MAX_TEXT = 1_000_000
MAX_DEPTH = 100
MAX_ELEMENTS = 100_000
MAX_STEPS = 1_000_000
MAX_PATH = 300


def xml_extract(
    xml: Annotated[str, Field(min_length=1, max_length=MAX_TEXT)],
    path: Annotated[
        str,
        Field(
            min_length=1,
            max_length=MAX_PATH,
            description=(
                "Steps such as //item[@id='7']/name, /feed/entry[2], //a/@href, //p/text();"
                " predicates [2], [last()], [@a], [@a='v'], [name], [name='v'], [.='v']."
            ),
        ),
    ],
    limit: Annotated[int, Field(ge=1, le=1000)] = 100,
) -> dict[str, Any]:
    """Extract elements, attributes or text from XML by a small part of XPath.

    A path that does not begin with / starts at the root element. Names match in any namespace, a
    prefix is ignored, {uri}name is exact. Document types and entities are refused.
    """
    selection = _Selection(_document(xml))
    found = list(selection.run(_steps(path)))
    chosen = [one if isinstance(one, str) else selection.shown(one) for one in found[:limit]]
    if not fits(chosen):
        raise invalid("limit", f"the result is larger than {MAX_SIZE} characters; ask for less")
    return {"matches": chosen, "found": len(found)}


class Element:
    """An element while it is searched."""

    __slots__ = ("attributes", "name", "parent", "parts", "space")

    def __init__(self, name: str, attributes: dict[str, str], parent: "Element | None") -> None:
        self.space, _, self.name = name.rpartition("}")
        self.attributes = attributes
        self.parent = parent
        self.parts: list[str | Element] = []

    def children(self) -> list["Element"]:
        """Give the elements directly below."""
        return [part for part in self.parts if isinstance(part, Element)]

    def own_text(self) -> str:
        """Give the text directly below."""
        return "".join(part for part in self.parts if isinstance(part, str))

    def texts(self) -> Iterator[str]:
        """Give all text below, in order; something for each part, blank for an element."""
        waiting: list[str | Element] = [self]
        while waiting:
            part = waiting.pop()
            if isinstance(part, str):
                yield part
            else:
                yield ""
                waiting.extend(reversed(part.parts))


def _local(name: str) -> str:
    return name.rpartition("}")[2]


class _Builder:
    """Takes the events of the parser."""

    def __init__(self) -> None:
        self.top = Element("", {}, None)
        self._open = self.top
        self._depth = 0
        self._count = 0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        self._count += 1
        if self._depth > MAX_DEPTH:
            raise _refusal(f"xml is nested more than {MAX_DEPTH} levels deep")
        if self._count > MAX_ELEMENTS:
            raise _refusal(f"xml has more than {MAX_ELEMENTS} elements")
        element = Element(name, attributes, self._open)
        self._open.parts.append(element)
        self._open = element

    def end(self, _name: str) -> None:
        self._depth -= 1
        self._open = self._open.parent or self.top

    def text(self, data: str) -> None:
        self._open.parts.append(data)


def _document(xml: str) -> Element:
    """Parse XML into its document node; raises the refusal of `xml`."""
    if len(xml) > MAX_TEXT:
        raise _refusal(f"xml is longer than {MAX_TEXT} characters")
    builder = _Builder()
    parser = expat.ParserCreate(namespace_separator="}")
    parser.buffer_text = True
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.text
    parser.StartDoctypeDeclHandler = _no_doctype
    try:
        parser.Parse(xml.lstrip(), True)  # noqa: FBT003  # expat takes it by position only
    except expat.ExpatError as error:
        said = expat.errors.messages.get(error.code, "it is not well-formed")
        raise _refusal(
            f"xml cannot be read at line {error.lineno}, column {error.offset + 1}: {said}"
        ) from None
    except UnicodeError:
        raise _refusal("xml holds half of a character (a lone surrogate)") from None
    return builder.top


def _no_doctype(*_declaration: object) -> None:
    raise _refusal("xml with a document type (<!DOCTYPE …>) is refused; take it out")


def _refusal(message: str) -> ToolFailed:
    return invalid("xml", message)


class _Predicate(NamedTuple):
    subject: str
    """A number, `last()`, `.`, `text()`, `@name` or `name`."""
    value: str | None
    negated: bool


class _Step(NamedTuple):
    deep: bool
    test: str
    predicates: tuple[_Predicate, ...]


_NAME = r"(?:\{[^{}]*\})?[^\W\d][\w.-]*(?::[^\W\d][\w.-]*)?"
_STEP = re.compile(rf"\.\.|\.|\*|@\*|text\(\)|@?{_NAME}")
_PREDICATE = re.compile(
    rf"\[\s*([0-9]{{1,9}}|last\(\)|\.|text\(\)|@?{_NAME})\s*(?:(!?=)\s*('[^']*'|\"[^\"]*\")\s*)?\]"
)
_SLASHES = re.compile(r"//?")


def _steps(path: str) -> list[_Step]:
    """Read a path; an absolute one begins with a step that goes to the document."""
    text = path.strip()
    if len(path) > MAX_PATH:
        raise invalid("path", f"path is longer than {MAX_PATH} characters")
    steps = [_Step(deep=False, test="/", predicates=())] if text.startswith("/") else []
    place, deep = 0, False
    if leading := _SLASHES.match(text):
        place, deep = leading.end(), leading.group() == "//"
    while True:
        test = _STEP.match(text, place)
        if test is None:
            raise _unreadable(text, place)
        place, predicates = _predicates(text, test.end())
        steps.append(_Step(deep, test.group(), predicates))
        if place == len(text):
            return steps
        slashes = _SLASHES.match(text, place)
        if slashes is None or steps[-1].test[0] == "@" or steps[-1].test == "text()":
            raise _unreadable(text, place)
        place, deep = slashes.end(), slashes.group() == "//"


def _predicates(text: str, place: int) -> tuple[int, tuple[_Predicate, ...]]:
    found: list[_Predicate] = []
    while text.startswith("[", place):
        predicate = _PREDICATE.match(text, place)
        if predicate is None:
            raise _unreadable(text, place)
        subject, sign, quoted = predicate.groups()
        found.append(_Predicate(subject, quoted and quoted[1:-1], negated=sign == "!="))
        place = predicate.end()
    return place, tuple(found)


def _unreadable(path: str, place: int) -> ToolFailed:
    found = shown(path[place : place + 20]) if place < len(path) else "the end"
    return invalid("path", f"path is not understood at character {place + 1}: {found}")


class _Selection:
    """Walks a document step by step, on one budget."""

    def __init__(self, document: Element) -> None:
        self._document = document
        self._left = MAX_STEPS

    def run(self, steps: Sequence[_Step]) -> Iterator[Element | str]:
        """Follow the steps from the root element."""
        here = self._document.children()
        for step in steps[:-1]:
            here = self._elements(here, step)
        last = steps[-1]
        if last.test[0] != "@" and last.test != "text()":
            yield from self._elements(here, last)
            return
        for element in self._within(here, deep=last.deep):
            yield from _texts(element, last.test)

    def shown(self, element: Element) -> dict[str, Any]:
        """Give what the caller reads of an element."""
        attributes = {_local(name): value for name, value in element.attributes.items()}
        return {"tag": element.name, "attributes": attributes, "text": self._text(element)}

    def _elements(self, here: Sequence[Element], step: _Step) -> list[Element]:
        # By identity and in order: a node that is reached twice is one node.
        found: dict[Element, None] = {}
        for element in self._within(here, deep=step.deep):
            chosen = self._candidates(element, step.test)
            for predicate in step.predicates:
                chosen = self._filtered(chosen, predicate)
            found.update(dict.fromkeys(chosen))
        return list(found)

    def _spend(self, steps: int = 1) -> None:
        self._left -= steps
        if self._left < 0:
            raise invalid("path", f"path looks at more than {MAX_STEPS} elements; narrow it")

    def _within(self, here: Sequence[Element], *, deep: bool) -> Iterator[Element]:
        if not deep:
            yield from here
            return
        seen: set[Element] = set()
        waiting = list(reversed(here))
        while waiting:
            element = waiting.pop()
            if element in seen:
                continue
            self._spend()
            seen.add(element)
            yield element
            waiting.extend(reversed(element.children()))

    def _candidates(self, element: Element, test: str) -> list[Element]:
        if test == "/":
            return [self._document]
        if test == ".":
            return [element]
        if test == "..":
            return [element.parent] if element.parent else []
        self._spend(1 + len(element.parts) // 2)
        return [child for child in element.children() if test == "*" or _named(child, test)]

    def _filtered(self, chosen: list[Element], predicate: _Predicate) -> list[Element]:
        if predicate.value is None and predicate.subject.isdecimal():
            place = int(predicate.subject)
            return chosen[place - 1 : place] if place else []
        if predicate.value is None and predicate.subject == "last()":
            return chosen[-1:]
        return [element for element in chosen if self._passes(element, predicate)]

    def _passes(self, element: Element, predicate: _Predicate) -> bool:
        values = self._values(element, predicate.subject)
        if predicate.value is None:
            return bool(values)
        return any((value == predicate.value) is not predicate.negated for value in values)

    def _values(self, element: Element, subject: str) -> list[str]:
        if subject == ".":
            return [self._text(element)]
        if subject[0] == "@" or subject == "text()":
            self._spend(1 + len(element.attributes) // 8 + len(element.parts) // 8)
            return list(_texts(element, subject))
        return [self._text(child) for child in self._candidates(element, subject)]

    def _text(self, element: Element) -> str:
        found: list[str] = []
        for text in element.texts():
            self._spend(1 + len(text) // 16)
            found.append(text)
        return "".join(found)


def _texts(element: Element, test: str) -> Iterator[str]:
    if test == "text()":
        if text := element.own_text():
            yield text
        return
    wanted = test[1:]
    for name, value in element.attributes.items():
        if wanted in ("*", _local(name)) or wanted.rpartition(":")[2] == _local(name):
            yield value


def _named(element: Element, test: str) -> bool:
    if test[0] == "{":
        space, _, name = test[1:].rpartition("}")
        return element.name == name and element.space == space
    return element.name == test.rpartition(":")[2]
