"""Content between LangChain's messages and our blocks."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from seawall.contract.content import (
    AudioContent,
    Content,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
)
from seawall.edges.adapters._data_urls import unreadable
from seawall.edges.adapters._langchain_content import content_for, content_of

DATA_URL = "data:image/jpeg;base64,AAAA"


@pytest.mark.parametrize(
    ("block", "kind"),
    [
        ({"type": "image", "base64": "AAAA", "mime_type": "image/jpeg"}, ImageContent),
        ({"type": "image", "source_type": "base64", "data": "AAAA"}, ImageContent),
        ({"type": "image_url", "image_url": {"url": DATA_URL}}, ImageContent),
        ({"type": "image_url", "image_url": DATA_URL}, ImageContent),
        ({"type": "image_url", "image_url": {"url": "https://x.test/a.png"}}, ResourceLink),
        ({"type": "audio", "base64": "AAAA", "mime_type": "audio/mpeg"}, AudioContent),
        ({"type": "file", "base64": "AAAA", "mime_type": "application/pdf"}, EmbeddedResource),
        ({"type": "video", "base64": "AAAA", "mime_type": "video/mp4"}, EmbeddedResource),
    ],
)
def test_a_medium_is_known_in_each_of_its_forms_and_comes_back_as_it_was(
    block: dict[str, Any], kind: type
) -> None:
    (found,) = content_of([block])

    assert isinstance(found, kind)
    assert content_for([found]) == [block]


def test_a_medium_that_somebody_changed_on_the_way_does_not_come_back_as_it_was() -> None:
    (found,) = content_of([{"type": "image", "base64": "SECRET", "mime_type": "image/jpeg"}])
    assert isinstance(found, ImageContent)

    blurred = msgspec.structs.replace(found, data="AAAA")

    assert content_for([blurred]) == [
        {"type": "image", "base64": "AAAA", "mime_type": "image/jpeg"}
    ]


def test_the_type_of_a_picture_is_read_from_its_address() -> None:
    (found,) = content_of({"type": "image_url", "image_url": DATA_URL})

    assert isinstance(found, ImageContent)
    assert (found.data, found.mime_type) == ("AAAA", "image/jpeg")


@pytest.mark.parametrize(
    ("given", "texts"),
    [
        ("a", ["a"]),
        (["a", {"type": "text", "text": "b"}], ["a", "b"]),
        ([{"type": "json", "data": 5}], ['{"type": "json", "data": 5}']),
        ([{"type": "json", "url": "u", "n": 5}], ['{"type": "json", "url": "u", "n": 5}']),
        ([7], ["7"]),
        (7, ["7"]),
        ([], []),
    ],
)
def test_what_is_no_medium_is_text(given: Any, texts: list[str]) -> None:
    assert content_of(given) == tuple(TextContent(text=text) for text in texts)


@pytest.mark.parametrize(
    ("blocks", "written"),
    [
        ([], ""),
        ([TextContent(text="a")], "a"),
        (
            [TextContent(text="a"), TextContent(text="b")],
            [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
        ),
        (
            [AudioContent(data="AAAA", mime_type="audio/wav")],
            [{"type": "audio", "base64": "AAAA", "mime_type": "audio/wav"}],
        ),
        (
            [ResourceLink(uri="https://x.test", name="x")],
            [{"type": "text", "text": "x: https://x.test"}],
        ),
        (
            [EmbeddedResource(resource={"uri": "file:a", "text": "b"})],
            [{"type": "text", "text": "b"}],
        ),
        (
            [
                ImageContent(data="A", mime_type="image/png"),
                EmbeddedResource(resource={"uri": "file:a", "blob": 7}),
            ],
            [
                {"type": "text", "text": unreadable("image/png")},
                {"type": "text", "text": unreadable("application/octet-stream")},
            ],
        ),
        (
            [EmbeddedResource(resource={"uri": "file:a", "blob": "AAAA"})],
            [{"type": "file", "base64": "AAAA", "mime_type": "application/octet-stream"}],
        ),
    ],
)
def test_each_of_our_blocks_can_be_said(blocks: list[Content], written: Any) -> None:
    assert content_for(blocks) == written
