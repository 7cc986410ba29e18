"""Changing a result field by field."""

from __future__ import annotations

from typing import Any

import pytest

from seawall import Failure, FailureCode, ImageContent, Issue, Replace, TextContent, ToolResult
from seawall.orchestration.hook_results import replaced

FULL = ToolResult(
    call_id="1",
    tool="t",
    content=(TextContent(text="orig"),),
    structured_content={"v": "orig"},
    details={"d": 1},
    terminate=True,
    usage={"input": 1},
    metadata={"m": 1},
    attempts=1,
)

FAILED = ToolResult.of_failure(
    Failure(
        code=FailureCode.NOT_FOUND,
        message="the secret is not there",
        guidance="look for the secret elsewhere",
        hints=("secret",),
        issues=(Issue("/secret", "secret"),),
        cause=("SecretError",),
        reason="not_found",
        layer="executor",
        retry_after_s=3,
    )
)


def fields(**fields: Any) -> Replace:
    return Replace(**fields)


def test_none_keeps_every_field() -> None:
    assert replaced(FULL, Replace()) == FULL


@pytest.mark.parametrize("value", [0, False, [], "", {}])
def test_what_is_empty_replaces_all_the_same(value: Any) -> None:
    assert replaced(FULL, Replace(details=value)).details == value
    assert replaced(FULL, Replace(structured_content=value)).structured_content == value


@pytest.mark.parametrize(
    ("content", "text"),
    [("new", "new"), ("", ""), ([], ""), ([{"type": "text", "text": "new"}], "new"), (["a"], "a")],
)
def test_new_content_drops_the_structured_content(content: Any, text: str) -> None:
    changed = replaced(FULL, Replace(content=content))

    assert (changed.text, changed.structured_content) == (text, None)
    assert (changed.details, changed.usage) == (FULL.details, FULL.usage)


def test_new_content_may_bring_its_structured_content() -> None:
    changed = replaced(FULL, Replace(content="new", structured_content={"v": "new"}))

    assert (changed.text, changed.structured_content) == ("new", {"v": "new"})


def test_content_may_be_blocks_of_any_kind() -> None:
    picture = ImageContent(data="aGk=", mime_type="image/png")

    assert replaced(FULL, Replace(content=[picture])).content == (picture,)


def test_mappings_are_replaced_whole() -> None:
    changed = replaced(FULL, Replace(usage={"output": 3}, metadata={}))

    assert (changed.usage, changed.metadata) == ({"output": 3}, {})


@pytest.mark.parametrize(("given", "found"), [(True, True), (False, False), (1, False)])
def test_only_true_asks_for_the_end(given: Any, found: bool) -> None:
    assert replaced(FULL, Replace(terminate=given)).terminate is found


def test_a_success_can_be_made_a_failure() -> None:
    changed = replaced(FULL, Replace(is_error=True))

    assert changed.is_error
    assert changed.failure is not None
    assert changed.failure.code is FailureCode.EXECUTION_FAILED
    assert (changed.failure.message, changed.failure.layer) == ("orig", "hooks")
    assert changed.text == "orig"


def test_a_failure_can_be_made_a_success() -> None:
    changed = replaced(FAILED, Replace(is_error=False, content="found"))

    assert (changed.is_error, changed.failure, changed.render()) == (False, None, "found")


def test_a_failure_stays_one_where_nothing_is_said_about_it() -> None:
    changed = replaced(FAILED, Replace(details={"d": 1}))

    assert changed.failure == FAILED.failure
    assert changed.is_error


@pytest.mark.parametrize("is_error", [None, True])
def test_what_was_taken_out_of_the_text_does_not_come_back_by_the_failure(
    is_error: bool | None,
) -> None:
    changed = replaced(FAILED, Replace(content="redacted", is_error=is_error))

    assert changed.failure is not None
    assert changed.failure.reason == "not_found"
    assert changed.failure.retry_after_s == 3
    assert "secret" not in repr(changed).lower()
    assert "redacted" in changed.render()


def test_the_message_of_a_failure_is_one_bounded_line() -> None:
    changed = replaced(FAILED, Replace(content="x" * 1_000 + "\nsecond"))

    assert changed.failure is not None
    assert len(changed.failure.message) == 300
    assert changed.failure.message.endswith("…")


@pytest.mark.parametrize(
    "change",
    [
        fields(content=[{"type": "nonsense"}]),
        fields(content=[7]),
        fields(content=7),
        fields(usage="text"),
        fields(metadata=[1]),
    ],
)
def test_a_faulty_replacement_is_told(change: Replace) -> None:
    with pytest.raises((TypeError, ValueError)):
        replaced(FULL, change)
