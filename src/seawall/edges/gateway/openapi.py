"""The description of the gateway in OpenAPI 3.1, for programs: `/openapi.json`."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from seawall import __version__
from seawall.contract.approval import ApprovalStatus
from seawall.edges.gateway.approvals import LISTED, MAX_LISTED
from seawall.edges.gateway.openapi_schemas import reference as _ref
from seawall.edges.gateway.openapi_schemas import schemas

if TYPE_CHECKING:
    from seawall.edges.gateway.openapi_schemas import Schema

_STATUSES = {
    "200": "The tool has answered.",
    "202": "A person has to answer first; `approval` says where.",
    "400": "The request is none.",
    "401": "A token is needed, or the one given is not known.",
    "403": "It is not allowed; or the token lacks the scope, or the page is another site's.",
    "404": "There is no such tool; `failure.hints` has near names. Nothing was run.",
    "405": "This method is not answered here.",
    "408": "The request was not there in time.",
    "409": (
        "The call with this Idempotency-Key is not answered yet: it runs, or its kept answer is"
        " being looked up for another who asked. Nothing was run for this request; `requestId` is"
        " that of the call. Ask again with the same key; see Retry-After."
    ),
    "413": "The body is too large.",
    "415": "The body is not application/json.",
    "421": "The gateway does not answer under this host name.",
    "422": "The arguments are no good: see `failure.issues`. Or the key was used for another call.",
    "429": "A rate is used up, or the client's requests that wait are too many; see Retry-After.",
    "431": "The headers are too large.",
    "500": "The gateway itself failed; its log says how.",
    "501": "This cannot be done here.",
    "502": "The tool failed, or what came of the call is not known.",
    "503": "Overloaded, or it stops, or the tool's circuit is open; see Retry-After.",
    "504": "It took too long.",
}
_ALWAYS = ("400", "401", "403", "405", "408", "421", "429", "431", "500", "503")
"""What any path behind the guard may answer."""


@cache
def document() -> Schema:
    """Give the whole description."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Seawall gateway",
            "version": __version__,
            "description": "Tools behind a hardened execution pipeline.",
        },
        "paths": _paths(),
        "components": {
            "schemas": schemas(),
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"bearer": []}, {}],
    }


def _paths() -> Schema:
    return {
        "/client": {"get": _reading("Say who asks, and what that client may do", "Client")},
        "/tools": {"get": _reading("List the tools", "Tools", parameters=[_VIEW])},
        "/tools/{name}": {
            "get": _reading("Show one tool", "Tool", parameters=[_NAME], extra=("404",))
        },
        "/tools/call": {"post": _call("Call a tool")},
        "/console/call": {"post": _call("Call a tool that is released on the console")},
        "/traces": {"get": _reading("Show the newest spans", "Spans", parameters=_TRACE)},
        "/usage": {"get": _reading("Show how often each tool was called", "Usages")},
        "/breakers": {"get": _reading("Show the circuits", "Breakers")},
        "/workers": {"get": _reading("Show what workers share", "Workers")},
        "/breakers/{name}": {"post": _BREAKER},
        "/approvals": {"get": _reading("List approvals", "Approvals", parameters=_LIST)},
        "/approvals/{id}": {"get": _approval(), "post": _DECISION},
        "/metrics": {"get": _text("Metrics for Prometheus", "text/plain")},
        "/events": {"get": _text("Spans, tools and approvals as they change", "text/event-stream")},
        "/healthz": {"get": _open("Whether it is there")},
        "/readyz": {"get": _open("Whether it takes calls", "503")},
    }


def _json(schema: Schema) -> Schema:
    return {"application/json": {"schema": schema}}


def _answers(*statuses: str) -> Schema:
    return {
        status: {"description": _STATUSES[status], "content": _json(_ref("Result"))}
        for status in dict.fromkeys((*statuses, *_ALWAYS))
    }


def _reading(
    summary: str,
    schema: str,
    *,
    parameters: list[Schema] | None = None,
    extra: tuple[str, ...] = (),
) -> Schema:
    return {
        "summary": summary,
        "parameters": parameters or [],
        "responses": {
            "200": {"description": summary, "content": _json(_ref(schema))},
            **_answers("400", *extra),
        },
    }


def _text(summary: str, media: str) -> Schema:
    answer = {"description": summary, "content": {media: {}}}
    return {"summary": summary, "responses": {"200": answer, **_answers()}}


def _open(summary: str, *extra: str) -> Schema:
    said = _json({"type": "object", "required": ["status"]})
    statuses = {"200": {"description": summary, "content": said}}
    statuses |= {status: {"description": "It stops.", "content": said} for status in extra}
    statuses["405"] = {"description": _STATUSES["405"], "content": _json(_ref("Result"))}
    return {"summary": summary, "security": [{}], "responses": statuses}


def _call(summary: str) -> Schema:
    answers = _answers(*_STATUSES)
    for answer in answers.values():
        answer["content"]["text/event-stream"] = {}
        answer["headers"] = _HEADERS
    return {
        "summary": summary,
        "parameters": [_KEY, _ACCEPT],
        "requestBody": {"required": True, "content": _json(_ref("Call"))},
        "responses": answers,
    }


def _approval() -> Schema:
    said = _reading("Show one approval", "Approval", parameters=[_ID], extra=("404",))
    waits = {"description": "It waits for an answer.", "content": _json(_ref("Approval"))}
    said["responses"]["202"] = waits
    said["description"] = "It is `approved` until somebody runs it, and `taken` while it runs."
    return said


_NAME: Schema = {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}
_KEY: Schema = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "The same key and call again gets the first answer; nothing is run twice.",
    "schema": {"type": "string", "maxLength": 200},
}
_ACCEPT: Schema = {
    "name": "Accept",
    "in": "header",
    "description": "text/event-stream gives progress as it comes, then the result; else JSON.",
    "schema": {"type": "string", "examples": ["application/json", "text/event-stream"]},
}
_HEADERS: Schema = {
    "Retry-After": {"description": "Seconds.", "schema": {"type": "integer"}},
    "RateLimit": {"description": "What is left of the tool's rate.", "schema": {"type": "string"}},
    "RateLimit-Policy": {"description": "The tool's rate.", "schema": {"type": "string"}},
    "Idempotency-Replayed": {
        "description": "`true` if the answer is that of an earlier call.",
        "schema": {"type": "string"},
    },
}
_VIEW: Schema = {
    "name": "view",
    "in": "query",
    "description": "`brief` leaves out schemas, annotations, policy and example.",
    "schema": {"enum": ["full", "brief"], "default": "full"},
}
_TRACE: list[Schema] = [
    {"name": "limit", "in": "query", "schema": {"type": "integer", "minimum": 0, "maximum": 1000}},
    {"name": "tool", "in": "query", "schema": {"type": "string"}},
    {"name": "requestId", "in": "query", "schema": {"type": "string"}},
]
_BREAKER: Schema = {
    "summary": "Open, close or reset a circuit",
    "description": "Needs the scope admin.",
    "parameters": [_NAME],
    "requestBody": {"required": True, "content": _json({"$ref": "#/components/schemas/Change"})},
    "responses": {
        "200": {
            "description": "The circuit as it is now.",
            "content": _json({"$ref": "#/components/schemas/Breaker"}),
        },
        **_answers("400", "404", "413", "415", "501"),
    },
}


_ID: Schema = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
_STATUS: Schema = {
    "name": "status",
    "in": "query",
    "schema": {"enum": [*ApprovalStatus, "all"], "default": "pending"},
}
_LIST: list[Schema] = [
    _STATUS,
    {
        "name": "limit",
        "in": "query",
        "schema": {"type": "integer", "minimum": 1, "maximum": MAX_LISTED, "default": LISTED},
    },
    {
        "name": "after",
        "in": "query",
        "description": "What `after` was in the answer before: gives the older ones.",
        "schema": {"type": "string"},
    },
]
_ANSWERED = {
    "description": (
        "It was answered, run or expired already, and what was said then stands; or `digests` are"
        " not those of its calls."
    ),
    "content": _json(_ref("Result")),
}
_DECISION: Schema = {
    "summary": "Approve, deny or withdraw",
    "description": (
        "Needs the scope approve. What is approved as a whole is run by the gateway. `digests`,"
        " those of its calls in their order as they were shown, holds the decision to what was"
        " seen."
    ),
    "parameters": [_ID],
    "requestBody": {"required": True, "content": _json(_ref("Decision"))},
    "responses": {
        "200": {"description": "The approval as it is now.", "content": _json(_ref("Approval"))},
        **_answers("400", "404", "413", "415"),
        "409": _ANSWERED,
    },
}
