"""A server with all that the protocol has, built with the official SDK.

`everything.py stdio`, `everything.py http PORT`, or `everything.py host ADDRESS` for many on stdio
that are there at once (`forked.py`). Names and texts are those that the official
conformance suite asks for.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import sys
import warnings
from typing import Any

import forked  # type: ignore[import-not-found]  # a script finds what is beside it
import mcp_types as types
import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http import EventCallback, EventMessage, EventStore
from mcp.shared.exceptions import MCPError

warnings.simplefilter("ignore")

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8"
    "z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)
SOUND = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="

OPEN: dict[str, Any] = {"type": "object", "properties": {}}
PROMPT = {"type": "object", "properties": {"prompt": {"type": "string"}}, "required": ["prompt"]}
MESSAGE = {"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]}
ADD = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "required": ["a", "b"],
}
DEFINED = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
    "additionalProperties": False,
}

TOOLS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "test_simple_text": (OPEN, {}),
    "test_image_content": (OPEN, {}),
    "test_audio_content": (OPEN, {}),
    "test_embedded_resource": (OPEN, {}),
    "test_multiple_content_types": (OPEN, {}),
    "test_tool_with_logging": (OPEN, {}),
    "test_error_handling": (OPEN, {}),
    "test_tool_with_progress": (OPEN, {}),
    "test_sampling": (PROMPT, {}),
    "test_elicitation": (MESSAGE, {}),
    "test_elicitation_sep1034_defaults": (OPEN, {}),
    "test_elicitation_sep1330_enums": (OPEN, {}),
    "test_reconnection": (OPEN, {}),
    "json_schema_2020_12_tool": (DEFINED, {}),
    "add": (ADD, {}),
    "hang": (OPEN, {}),
    "die": (OPEN, {}),
    "refuse": (OPEN, {}),
    "remove": (MESSAGE, {"destructiveHint": True}),
    "what_can_the_client": (OPEN, {}),
    "say_meta": (OPEN, {}),
    "change_tools": (OPEN, {}),
    "large": ({"type": "object", "properties": {"bytes": {"type": "integer"}}}, {}),
    "was_cancelled": (OPEN, {}),
    "was_subscribed": (OPEN, {}),
    "ask_first": (MESSAGE, {}),
}

hung: list[dict[str, Any]] = []
cancelled: list[dict[str, Any]] = []
subscribed: list[str] = []


def text(said: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=said)])


def picture() -> types.ImageContent:
    return types.ImageContent(type="image", data=PIXEL, mime_type="image/png")


def embedded(uri: str, kind: str, said: str) -> types.EmbeddedResource:
    resource = types.TextResourceContents(uri=uri, mime_type=kind, text=said)
    return types.EmbeddedResource(type="resource", resource=resource)


async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
    tools = [
        types.Tool(
            name=name,
            description=f"Does {name}.",
            input_schema=schema,
            annotations=types.ToolAnnotations(**hints) if hints else None,
        )
        for name, (schema, hints) in TOOLS.items()
    ]
    return types.ListToolsResult(tools=tools, ttl_ms=0, cache_scope="private")


async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> Any:
    work = WORK.get(params.name)
    if work is None:
        raise MCPError(code=-32602, message=f"Unknown tool: {params.name}")
    return await work(ctx, params)


async def simple(ctx: Any, params: Any) -> Any:
    return text("This is a simple text response for testing.")


async def image(ctx: Any, params: Any) -> Any:
    return types.CallToolResult(content=[picture()])


async def audio(ctx: Any, params: Any) -> Any:
    sound = types.AudioContent(type="audio", data=SOUND, mime_type="audio/wav")
    return types.CallToolResult(content=[sound])


async def resource(ctx: Any, params: Any) -> Any:
    said = "This is an embedded resource content."
    found = embedded("test://embedded-resource", "text/plain", said)
    return types.CallToolResult(content=[found])


async def mixed(ctx: Any, params: Any) -> Any:
    said = json.dumps({"test": "data", "value": 123})
    return types.CallToolResult(
        content=[
            types.TextContent(type="text", text="Multiple content types test:"),
            picture(),
            embedded("test://mixed-content-resource", "application/json", said),
        ]
    )


async def logging_tool(ctx: Any, params: Any) -> Any:
    for said in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await ctx.session.send_log_message("info", said, related_request_id=ctx.request_id)
        await asyncio.sleep(0.05)
    return text("logged")


async def failing(ctx: Any, params: Any) -> Any:
    said = "This tool intentionally returns an error for testing"
    found = types.TextContent(type="text", text=said)
    return types.CallToolResult(content=[found], is_error=True)


async def progressing(ctx: Any, params: Any) -> Any:
    for done in (0, 50, 100):
        await ctx.session.report_progress(done, 100, f"Completed step {done} of 100")
        await asyncio.sleep(0.05)
    return text("progressed")


async def sampling(ctx: Any, params: Any) -> Any:
    prompt = types.TextContent(type="text", text=params.arguments["prompt"])
    found = await ctx.session.create_message(
        [types.SamplingMessage(role="user", content=prompt)],
        max_tokens=100,
        related_request_id=ctx.request_id,
    )
    return text(f"LLM response: {getattr(found.content, 'text', '')}")


async def elicited(ctx: Any, message: str, properties: dict[str, Any], *needed: str) -> Any:
    schema = {"type": "object", "properties": properties, "required": list(needed)}
    found = await ctx.session.elicit_form(message, schema, related_request_id=ctx.request_id)
    return text(f"Elicitation: action={found.action}, content={json.dumps(found.content)}")


async def elicitation(ctx: Any, params: Any) -> Any:
    properties = {"response": {"type": "string", "description": "Your answer"}}
    return await elicited(ctx, params.arguments["message"], properties, "response")


async def defaults(ctx: Any, params: Any) -> Any:
    return await elicited(
        ctx,
        "Please say who you are",
        {
            "name": {"type": "string", "default": "John Doe"},
            "age": {"type": "integer", "default": 30},
            "score": {"type": "number", "default": 95.5},
            "status": {
                "type": "string",
                "enum": ["active", "inactive", "pending"],
                "default": "active",
            },
            "verified": {"type": "boolean", "default": True},
        },
    )


def titled(*pairs: tuple[str, str]) -> list[dict[str, str]]:
    return [{"const": value, "title": title} for value, title in pairs]


async def enums(ctx: Any, params: Any) -> Any:
    options = ["option1", "option2", "option3"]
    titles = titled(("value1", "First"), ("value2", "Second"), ("value3", "Third"))
    return await elicited(
        ctx,
        "Please choose",
        {
            "untitledSingle": {"type": "string", "enum": options},
            "titledSingle": {"type": "string", "oneOf": titles},
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["One", "Two", "Three"],
            },
            "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
            "titledMulti": {"type": "array", "items": {"anyOf": titles}},
        },
    )


async def reconnection(ctx: Any, params: Any) -> Any:
    if ctx.close_sse_stream is not None:
        await ctx.close_sse_stream()
    await asyncio.sleep(0.3)
    return text("Reconnection test completed")


async def add(ctx: Any, params: Any) -> Any:
    return text(str(params.arguments["a"] + params.arguments["b"]))


async def hang(ctx: Any, params: Any) -> Any:
    hung.append({"id": ctx.request_id})
    try:
        await asyncio.sleep(3600)
    except asyncio.CancelledError:
        cancelled.append({"id": ctx.request_id})
        raise


async def die(ctx: Any, params: Any) -> Any:
    os._exit(3)


async def refuse(ctx: Any, params: Any) -> Any:
    raise MCPError(code=4711, message="no such cupboard", data={"shelf": 3})


async def remove(ctx: Any, params: Any) -> Any:
    return text(f"removed {params.arguments['message']}")


async def capabilities(ctx: Any, params: Any) -> Any:
    found = ctx.session.client_params
    said = found.capabilities.model_dump(mode="json", by_alias=True, exclude_none=True)
    return text(json.dumps(said))


async def say_meta(ctx: Any, params: Any) -> Any:
    meta = {"test/answer": [1, 2, {"deep": None}], "test/asked": dict(ctx.meta or {})}
    content = types.TextContent(type="text", text="see _meta", _meta={"test/block": 1})
    return types.CallToolResult(content=[content], structured_content={"a": 1}, _meta=meta)


async def change_tools(ctx: Any, params: Any) -> Any:
    TOOLS["late"] = (OPEN, {})
    WORK["late"] = simple
    await ctx.session.send_tool_list_changed()
    return text("changed")


async def large(ctx: Any, params: Any) -> Any:
    return text("x" * params.arguments["bytes"])


async def was_cancelled(ctx: Any, params: Any) -> Any:
    return text(json.dumps({"hung": len(hung), "cancelled": len(cancelled)}))


async def was_subscribed(ctx: Any, params: Any) -> Any:
    return text(json.dumps(subscribed))


async def subscribe(ctx: Any, params: types.SubscribeRequestParams) -> Any:
    subscribed.append(str(params.uri))
    return types.EmptyResult()


async def ask_first(ctx: Any, params: types.CallToolRequestParams) -> Any:
    """The way of revision 2026-07-28: input is required, and the client comes back with it."""
    if not params.input_responses:
        form = types.ElicitRequestFormParams(
            message="How many?",
            requested_schema={"type": "object", "properties": {"count": {"type": "integer"}}},
        )
        asked = types.ElicitRequest(params=form)
        return types.InputRequiredResult(input_requests={"count": asked}, request_state="half way")
    found = params.input_responses["count"]
    return text(f"{params.request_state}: {getattr(found, 'content', None)}")


WORK: dict[str, Any] = {
    "test_simple_text": simple,
    "test_image_content": image,
    "test_audio_content": audio,
    "test_embedded_resource": resource,
    "test_multiple_content_types": mixed,
    "test_tool_with_logging": logging_tool,
    "test_error_handling": failing,
    "test_tool_with_progress": progressing,
    "test_sampling": sampling,
    "test_elicitation": elicitation,
    "test_elicitation_sep1034_defaults": defaults,
    "test_elicitation_sep1330_enums": enums,
    "test_reconnection": reconnection,
    "json_schema_2020_12_tool": simple,
    "add": add,
    "hang": hang,
    "die": die,
    "refuse": refuse,
    "remove": remove,
    "what_can_the_client": capabilities,
    "say_meta": say_meta,
    "change_tools": change_tools,
    "large": large,
    "was_cancelled": was_cancelled,
    "was_subscribed": was_subscribed,
    "ask_first": ask_first,
}


RESOURCES = {
    "test://static-text": "This is the content of the static text resource.",
    "test://static-binary": PIXEL,
    "test://watched-resource": "Watched resource content",
}


async def list_resources(ctx: Any, params: Any) -> Any:
    found = [
        types.Resource(uri=uri, name=uri.partition("//")[2], description=f"{uri} for testing")
        for uri in RESOURCES
    ]
    return types.ListResourcesResult(resources=found, ttl_ms=0, cache_scope="private")


async def list_templates(ctx: Any, params: Any) -> Any:
    found = types.ResourceTemplate(
        uri_template="test://template/{id}/data", name="template", mime_type="application/json"
    )
    return types.ListResourceTemplatesResult(
        resource_templates=[found], ttl_ms=0, cache_scope="private"
    )


async def read_resource(ctx: Any, params: Any) -> Any:
    uri = str(params.uri)
    contents: Any
    if uri == "test://static-binary":
        contents = types.BlobResourceContents(uri=uri, mime_type="image/png", blob=PIXEL)
    elif uri.startswith("test://template/"):
        found = uri.split("/")[3]
        said = json.dumps({"id": found, "templateTest": True, "data": f"Data for ID: {found}"})
        contents = types.TextResourceContents(uri=uri, mime_type="application/json", text=said)
    elif uri in RESOURCES:
        contents = types.TextResourceContents(uri=uri, mime_type="text/plain", text=RESOURCES[uri])
    else:
        raise MCPError(code=-32602, message=f"Unknown resource: {uri}", data={"uri": uri})
    return types.ReadResourceResult(contents=[contents], ttl_ms=0, cache_scope="private")


async def done(ctx: Any, params: Any) -> Any:
    return types.EmptyResult()


def argument(name: str) -> types.PromptArgument:
    return types.PromptArgument(name=name, description=name, required=True)


PROMPTS: dict[str, list[str]] = {
    "test_simple_prompt": [],
    "test_prompt_with_arguments": ["arg1", "arg2"],
    "test_prompt_with_embedded_resource": ["resourceUri"],
    "test_prompt_with_image": [],
}


async def list_prompts(ctx: Any, params: Any) -> Any:
    found = [
        types.Prompt(name=name, description=name, arguments=[argument(a) for a in arguments])
        for name, arguments in PROMPTS.items()
    ]
    return types.ListPromptsResult(prompts=found, ttl_ms=0, cache_scope="private")


async def prompt(ctx: Any, params: Any) -> Any:
    given = params.arguments or {}
    said: Any = types.TextContent(type="text", text="This is a simple prompt for testing.")
    if params.name == "test_prompt_with_arguments":
        line = f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'"
        said = types.TextContent(type="text", text=line)
    elif params.name == "test_prompt_with_embedded_resource":
        said = embedded(
            given["resourceUri"], "text/plain", "Embedded resource content for testing."
        )
    elif params.name == "test_prompt_with_image":
        said = picture()
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=said)])


async def complete(ctx: Any, params: Any) -> Any:
    start = params.argument.value
    found = [word for word in ("paris", "park", "party") if word.startswith(start)]
    completion = types.Completion(values=found, total=len(found), has_more=False)
    return types.CompleteResult(completion=completion)


class Kept(EventStore):
    """Events in memory, so that streams can be resumed."""

    def __init__(self) -> None:
        self._events: list[tuple[str, Any]] = []

    async def store_event(self, stream_id: str, message: Any) -> str:
        self._events.append((stream_id, message))
        return str(len(self._events))

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> Any:
        at = int(last_event_id)
        stream = self._events[at - 1][0]
        for number, (one, message) in enumerate(self._events[at:], at + 1):
            if one == stream and message is not None:
                await send_callback(EventMessage(message, str(number)))
        return stream


def server() -> Server[Any]:
    made: Server[Any] = Server(
        "everything",
        version="1.2.3",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_subscribe_resource=subscribe,
        on_unsubscribe_resource=done,
        on_list_prompts=list_prompts,
        on_get_prompt=prompt,
        on_completion=complete,
        on_set_logging_level=done,
    )
    return made


async def on_stdio() -> None:
    made = server()
    async with stdio_server() as (incoming, outgoing):
        await made.run(incoming, outgoing, made.create_initialization_options())


def on_http(port: int) -> None:
    app = server().streamable_http_app(event_store=Kept(), retry_interval=200)
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning", timeout_graceful_shutdown=1)


if __name__ == "__main__":
    assert base64.b64decode(PIXEL)
    if sys.argv[1] == "stdio":
        asyncio.run(on_stdio())
    elif sys.argv[1] == "host":
        forked.host(sys.argv[2], lambda: asyncio.run(on_stdio()))
    else:
        on_http(int(sys.argv[2]))
