"""Make validators that reach nothing outside and stop in time."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import jsonschema_rs

from seawall.pipeline.arguments.patterns.bounds import MAX_BACKTRACKS, PATTERNS
from seawall.pipeline.arguments.patterns.patterns import PatternError, compile_pattern
from seawall.pipeline.arguments.schema.dialects import Dialect, dialect_named
from seawall.pipeline.arguments.schema.documents import HOME

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

CompileErrors = (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError)
"""What making a validator may raise; UnicodeEncodeError is a ValueError."""

FEW_PATTERNS = 30
_FEW = PATTERNS
_MANY = jsonschema_rs.FancyRegexOptions(backtrack_limit=MAX_BACKTRACKS, size_limit=1_000_000)


def pattern_limits(count: int) -> jsonschema_rs.FancyRegexOptions:
    """Give the limits for so many patterns in one schema: all together must not be too large."""
    return _FEW if count <= FEW_PATTERNS else _MANY


def readable(pattern: str, limits: jsonschema_rs.FancyRegexOptions = _FEW) -> str | None:
    """Say a pattern in a grammar that the validator reads; None if there is none.

    Most are read as they are; some are only JavaScript without its `u` flag.
    """
    if _reads(pattern, limits):
        return pattern
    try:
        said = compile_pattern(pattern).source
    except PatternError:
        return None
    return said if _reads(said, limits) else None


def _reads(pattern: str, limits: jsonschema_rs.FancyRegexOptions) -> bool:
    try:
        jsonschema_rs.Draft202012Validator({"pattern": pattern}, pattern_options=limits)
    except CompileErrors:
        return False
    return True


class Validators:
    """Makes validators for the parts of one schema."""

    def __init__(
        self,
        root: Any,
        dialect: Dialect,
        resources: Mapping[str, Any],
        *,
        assert_formats: bool,
        limits: jsonschema_rs.FancyRegexOptions = _FEW,
    ) -> None:
        self._limits = limits
        self._root = root
        self._dialect = dialect
        self._resources = resources
        self._retrieve = _retriever(resources)
        self._assert_formats = assert_formats

    def whole(self) -> jsonschema_rs.Validator:
        """Give the validator of the schema; raises one of `CompileErrors`."""
        own = self._root.get("$schema") if isinstance(self._root, dict) else None
        if own is None or dialect_named(own) is not None:
            return self._made(self._dialect.validator, self._root, None)
        registry = self._registry({own: self._resources[own]})
        return self._made(jsonschema_rs.validator_for, self._root, registry)

    def around(self, schema: Any) -> jsonschema_rs.Validator:
        """Give the validator of a schema that refers to places of this one by address."""
        return self._made(self._dialect.validator, schema, self._with_home)

    def alone(self, schema: Any) -> jsonschema_rs.Validator:
        """Give the validator of a schema without references."""
        return self._made(self._dialect.validator, schema, None)

    def _made(
        self,
        make: Callable[..., jsonschema_rs.Validator],
        schema: Any,
        registry: jsonschema_rs.Registry | None,
    ) -> jsonschema_rs.Validator:
        return make(
            schema,
            registry=registry,
            validate_formats=self._assert_formats,
            pattern_options=self._limits,
            retriever=self._retrieve,
        )

    @cached_property
    def _with_home(self) -> jsonschema_rs.Registry:
        return self._registry({HOME: self._root})

    def _registry(self, documents: Mapping[str, Any]) -> jsonschema_rs.Registry:
        return jsonschema_rs.Registry(
            documents.items(), draft=self._dialect.number, retriever=self._retrieve
        )


def _retriever(resources: Mapping[str, Any]) -> Callable[[str], Any]:
    """Stand in for the network and the file system: known documents, nothing else.

    No method: what jsonschema-rs holds the garbage collector cannot see, so a way from there back
    to the one who holds it would keep both for ever.
    """

    def retrieve(address: str) -> Any:
        if address in resources:
            return resources[address]
        raise ValueError(f"{address} is not at hand, and nothing is fetched")

    return retrieve
