"""The drafts of JSON Schema: which keywords each enforces, and where subschemas stand.

A keyword is *enforced* by a draft, an *annotation* that says nothing about validity, or
unknown. Annotations are those of the drafts, of OpenAPI, of the Model Context Protocol and of
common editors and generators; beside them any name that cannot be a misspelt keyword: it begins
with `x-`, `_` or `@`, or holds a colon (`ui:widget`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import jsonschema_rs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class Dialect(NamedTuple):
    """One draft."""

    name: str
    uri: str
    """Its metaschema, as `$schema` names it."""
    validator: type[jsonschema_rs.Validator]
    number: int
    """What jsonschema-rs calls it."""
    enforced: frozenset[str]
    id_keyword: str = "$id"
    ref_stands_alone: bool = False
    """Keywords beside `$ref` say nothing."""

    @property
    def counts_contained(self) -> bool:
        """Whether `minContains` and `maxContains` mean something."""
        return "minContains" in self.enforced

    @property
    def own_addresses(self) -> tuple[str, ...]:
        """How the addresses begin that the validator knows by itself."""
        return (self.uri.removesuffix("#"), self.uri.removesuffix("schema") + "meta/")


def words(text: str) -> frozenset[str]:
    """Give the words of a text, which is easier to read than a list of them."""
    return frozenset(text.split())


_ALWAYS = words(
    """$ref $schema additionalProperties allOf anyOf enum exclusiveMaximum exclusiveMinimum format
    items maxItems maxLength maxProperties maximum minItems minLength minProperties minimum
    multipleOf not oneOf pattern patternProperties properties required type uniqueItems"""
)
_UNTIL_2019 = frozenset({"additionalItems", "dependencies"})
_SINCE_6 = frozenset({"const", "contains", "propertyNames"})
_SINCE_7 = _SINCE_6 | {"if", "then", "else"}
_SINCE_2019 = _SINCE_7 | words(
    """$anchor dependentRequired dependentSchemas maxContains minContains unevaluatedItems
    unevaluatedProperties"""
)

DRAFT_4 = Dialect(
    "draft-04",
    "http://json-schema.org/draft-04/schema#",
    jsonschema_rs.Draft4Validator,
    jsonschema_rs.Draft4,
    _ALWAYS | _UNTIL_2019,
    id_keyword="id",
    ref_stands_alone=True,
)
DRAFT_6 = Dialect(
    "draft-06",
    "http://json-schema.org/draft-06/schema#",
    jsonschema_rs.Draft6Validator,
    jsonschema_rs.Draft6,
    _ALWAYS | _UNTIL_2019 | _SINCE_6,
    ref_stands_alone=True,
)
DRAFT_7 = Dialect(
    "draft-07",
    "http://json-schema.org/draft-07/schema#",
    jsonschema_rs.Draft7Validator,
    jsonschema_rs.Draft7,
    _ALWAYS | _UNTIL_2019 | _SINCE_7,
    ref_stands_alone=True,
)
DRAFT_2019 = Dialect(
    "2019-09",
    "https://json-schema.org/draft/2019-09/schema",
    jsonschema_rs.Draft201909Validator,
    jsonschema_rs.Draft201909,
    _ALWAYS | _UNTIL_2019 | _SINCE_2019 | {"$recursiveRef", "$recursiveAnchor"},
)
DRAFT_2020 = Dialect(
    "2020-12",
    "https://json-schema.org/draft/2020-12/schema",
    jsonschema_rs.Draft202012Validator,
    jsonschema_rs.Draft202012,
    # What it no longer has is translated (`additionalItems`) or still enforced (`dependencies`).
    _ALWAYS | _UNTIL_2019 | _SINCE_2019 | {"prefixItems", "$dynamicRef", "$dynamicAnchor"},
)

DIALECTS: Mapping[str, Dialect] = {
    dialect.name: dialect for dialect in (DRAFT_4, DRAFT_6, DRAFT_7, DRAFT_2019, DRAFT_2020)
}

ENFORCED = frozenset().union(*(dialect.enforced for dialect in DIALECTS.values()))
"""What at least one draft enforces."""

ANNOTATIONS = words(
    # the drafts, and containers that are only referred to
    """$comment $defs $id $vocabulary components contentEncoding contentMediaType contentSchema
    default definitions deprecated description examples id readOnly title writeOnly """
    # OpenAPI, Swagger, Gemini
    """collectionFormat discriminator example externalDocs nullable propertyOrdering xml """
    # the Model Context Protocol
    """enumNames enumTitles icons meta """
    # editors and form builders
    """allowComments allowTrailingCommas defaultSnippets deprecationMessage doNotSuggest
    enumDescriptions enumItemLabels enumLabels enumSortTexts errorMessage group hidden hint
    icon label markdownDescription markdownDeprecationMessage markdownEnumDescriptions order
    patternErrorMessage placeholder propertyOrder scope section suggestSortText tags unit
    units version widget """
    # generators of code and of samples
    """existingJavaType faker goType javaType name summary tsEnumNames tsType """
)
"""What says nothing about validity and is tolerated."""

MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
SINGLES = (
    "additionalProperties",
    "unevaluatedProperties",
    "additionalItems",
    "unevaluatedItems",
    "contains",
    "contentSchema",
    "propertyNames",
    "not",
    "if",
    "then",
    "else",
)
REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


def is_tolerated(keyword: str) -> bool:
    """Whether a keyword is an annotation."""
    return keyword in ANNOTATIONS or keyword.startswith(("x-", "_", "@")) or ":" in keyword


def dialect_named(uri: Any) -> Dialect | None:
    """Find the draft that a `$schema` means; `http`, `https` and a last `#` are all one."""
    if not isinstance(uri, str):
        return None
    plain = uri.strip().removesuffix("#").removesuffix("/").partition("://")[2]
    return _BY_ADDRESS.get(plain)


_BY_ADDRESS = {
    dialect.uri.removesuffix("#").partition("://")[2]: dialect for dialect in DIALECTS.values()
} | {"json-schema.org/schema": DRAFT_2020}


def subschemas(node: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Give what stands where a schema belongs, with the way to it; it may be no schema."""
    for keyword, value in node.items():
        if keyword in _MAPPED and isinstance(value, dict):
            for name, child in value.items():
                if keyword != "dependencies" or isinstance(child, (dict, bool)):
                    yield (keyword, name), child
        elif keyword in _LISTED and isinstance(value, list):
            for index, child in enumerate(value):
                yield (keyword, str(index)), child
        elif keyword in _SINGLE:
            yield (keyword,), value


_MAPPED = frozenset((*MAPS, "dependencies"))
_LISTED = frozenset((*LISTS, "items"))
_SINGLE = frozenset((*SINGLES, "items"))
