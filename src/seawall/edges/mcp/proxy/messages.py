"""JSON-RPC messages, looked at and not rebuilt: who is meant, and the rest as raw bytes."""

from __future__ import annotations

import json
import unicodedata
from typing import TYPE_CHECKING, Any

import msgspec

from seawall.edges.mcp.codes import NEVER_RUN
from seawall.orchestration.progress import MAX_REPORT_BYTES, short
from seawall.pipeline.foreign import log

if TYPE_CHECKING:
    from collections.abc import Mapping

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

OWN = "seawall-"
"""How ids and progress tokens begin that the proxy made itself; a random part follows."""

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"

PROGRESS = "notifications/progress"

MAX_MESSAGE_BYTES = 64 * 1024 * 1024
"""One message in either direction."""


class Envelope(msgspec.Struct):
    """What stands outside in a message; `params`, `result` and `error` are not read further."""

    id: Any = msgspec.UNSET
    method: str | msgspec.UnsetType = msgspec.UNSET
    params: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    result: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    error: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET

    @property
    def is_request(self) -> bool:
        """Wants an answer."""
        return self.method is not msgspec.UNSET and self.id is not msgspec.UNSET

    @property
    def is_notification(self) -> bool:
        """Wants none."""
        return self.method is not msgspec.UNSET and self.id is msgspec.UNSET

    def parameters(self) -> dict[str, Any]:
        """Decode the parameters; empty if there are none, or if they cannot be read."""
        return _object(self.params)

    def results(self) -> dict[str, Any]:
        """Decode the result; empty if there is none, or if it cannot be read."""
        return _object(self.result)


def _object(raw: msgspec.Raw | msgspec.UnsetType) -> dict[str, Any]:
    if raw is msgspec.UNSET:
        return {}
    try:
        found = decoded(raw)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return {}  # raw parts are not looked at before: whoever gets it may refuse it
    return found if isinstance(found, dict) else {}


class Message(msgspec.Struct, frozen=True):
    """One message: its bytes without the line's end, and what stands outside."""

    raw: bytes
    envelope: Envelope


_envelope = msgspec.json.Decoder(Envelope)
_envelopes = msgspec.json.Decoder(list[msgspec.Raw])
_anything = msgspec.json.Decoder()
encode = msgspec.json.Encoder().encode


def decoded(raw: bytes | msgspec.Raw) -> Any:
    """Decode JSON; raises ValueError, also where a number is beyond all numbers."""
    return _anything.decode(raw)


def read(raw: bytes) -> Message | None:
    """Look at one message; None if it is none.

    What strict JSON forbids and some parsers take (NaN, comments of infinity) is written anew
    without it, so that no server reads a message otherwise than the proxy did. Bytes that are no
    UTF-8 become replacement characters, as the SDKs make them.
    """
    if not raw.isascii():
        raw = _as_utf8(raw)
    try:
        return Message(raw, _envelope.decode(raw))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        normal = _normal(raw)
    if normal is None:
        return None
    try:
        return Message(normal, _envelope.decode(normal))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def _as_utf8(raw: bytes) -> bytes:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return raw.decode("utf-8", "replace").encode()
    return raw


def folded(*keys: str) -> dict[str, str]:
    """Give keys by what they are to whoever does not mind the case of letters."""
    return {key.casefold(): key for key in keys}


_NAMES = ("jsonrpc", "id", "method", "params", "result", "error")
_OUTER = folded(*_NAMES)
_OF_A_CALL = folded("name", "arguments", "_meta", "task", "requestState", "inputResponses")
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])


CALL = "tools/call"

_MISNAMED = "a field's name differs from one of JSON-RPC in the case of its letters alone"
_DOUBLED = "a member stands twice in it, or it cannot be read whole"
_BOTH = "it is a request and an answer at once"
_NEAR = f"its method is nearly {CALL}, and some servers take it for that"
_NO_ID = f"{CALL} needs an id: a text or a number"


def fault_of(message: Message) -> str | None:
    """Say why a client's message must not go on; None if all servers read what the proxy reads.

    Some take `Method` for `method`, or the first of two equal members, or run what has no id: what
    is no call to us would be one to them. A call is not looked through: it is written anew.
    """
    envelope = message.envelope
    if envelope.method == CALL:
        return None if envelope.id.__class__ in _PLAIN_IDS else _NO_ID
    if isinstance(envelope.method, str) and _is_nearly_call(envelope.method):
        return _NEAR
    return _fault_in(message)


def _fault_in(message: Message) -> str | None:
    envelope = message.envelope
    is_answer = envelope.result is not msgspec.UNSET or envelope.error is not msgspec.UNSET
    if is_answer and envelope.method is not msgspec.UNSET:
        return _BOTH
    if any(is_misnamed(key, _OUTER) for key in _fields.decode(message.raw)):
        return _MISNAMED
    return _DOUBLED if is_doubled(message.raw) else None


def settled(message: Message) -> Message | None:
    """Give a server's message so that all clients read in it what the proxy read.

    It is the same one where that is so already. None if it is a request and an answer at once.
    """
    fault = _fault_in(message)
    if fault is _BOTH:
        return None
    envelope = message.envelope
    both = envelope.result is not msgspec.UNSET and envelope.error is not msgspec.UNSET
    if fault is None and not both:
        return message
    kept = {key: value for key, value in _fields.decode(message.raw).items() if key in _NAMES}
    if both:
        del kept["error" if bytes(envelope.error) == b"null" else "result"]  # type: ignore[arg-type]  # it is there
    return read(encode({key: _settled(value) for key, value in kept.items()}))


def heard(raw: bytes) -> Message | None:
    """Look at one message of a server's; None if it is none. `raw` is kept if all read it alike."""
    message = read(raw)
    return None if message is None else settled(message)


def _settled(raw: msgspec.Raw) -> Any:
    """Decode a part, the last of two equal members before the first."""
    try:
        return decoded(raw)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None  # what cannot be read has said nothing


def _is_nearly_call(method: str) -> bool:
    """Whether a server that trims, folds or ends texts at a NUL would take it for a call."""
    folded = unicodedata.normalize("NFKC", method.partition("\0")[0]).casefold()
    return "".join(filter(str.isalnum, folded)) == "toolscall"


def is_doubled(raw: bytes | msgspec.Raw) -> bool:
    """Whether a member stands twice in any object of it: one reader takes the first, one the last.

    Also where that cannot be told, because it is nested too deep.
    """
    try:
        anew = encode(decoded(raw))
        if anew == bytes(raw) or anew == msgspec.json.format(bytes(raw), indent=-1):
            return False  # most are: what stands twice is written once
    except (msgspec.MsgspecError, ValueError, RecursionError):
        pass  # numbers and halves of characters that another reader takes
    try:
        json.loads(bytes(raw), object_pairs_hook=_once, parse_int=_number, parse_float=_number)
    except (ValueError, RecursionError):
        return True
    return False


def _once(pairs: list[tuple[str, Any]]) -> None:
    if len(pairs) > 1 and len({key for key, _ in pairs}) != len(pairs):
        raise ValueError


def _number(_: str) -> None:
    """Numbers are not looked at."""


def ambiguous_parameter(params: Mapping[str, Any]) -> str | None:
    """Give the key of a call's parameters that some servers take for one of the known ones."""
    return next((key for key in params if is_misnamed(key, _OF_A_CALL)), None)


def is_misnamed(key: str, known: Mapping[str, str]) -> bool:
    """Whether a key is none of the known ones but some take it for one."""
    return known.get(key.casefold(), key) != key


_BREAKS = bytes.maketrans(b"\r\n", b"  ")


def on_one_line(raw: bytes) -> bytes:
    """Take out line breaks, which JSON has between its tokens only.

    Whoever reads lines would take what follows one for a message of its own.
    """
    return raw.translate(_BREAKS) if b"\n" in raw or b"\r" in raw else raw


def batch(raw: bytes) -> list[bytes] | None:
    """Take a batch of revision 2025-03-26 apart; None if this is none."""
    if raw[:1] != b"[":
        return None
    try:
        return [bytes(part) for part in _envelopes.decode(raw)]
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def _normal(raw: bytes) -> bytes | None:
    try:
        return encode(json.loads(raw))
    except (ValueError, RecursionError, msgspec.MsgspecError):
        return None


def request(request_id: Any, method: str, params: Any = None) -> Message:
    """Write a request."""
    said = {"jsonrpc": "2.0", "id": request_id, "method": method}
    if params is None:
        return Message(encode(said), Envelope(request_id, method))
    inner = msgspec.Raw(encode(params))
    return Message(encode({**said, "params": inner}), Envelope(request_id, method, inner))


def notification(method: str, params: Any = None) -> Message:
    """Write a notification."""
    said = {"jsonrpc": "2.0", "method": method}
    if params is None:
        return Message(encode(said), Envelope(method=method))
    inner = msgspec.Raw(encode(params))
    return Message(encode({**said, "params": inner}), Envelope(method=method, params=inner))


def shortened(message: Message) -> Message:
    """Bound what a server says of a call's progress, as a pipeline does what its tools say."""
    if message.envelope.method != PROGRESS or len(message.raw) <= MAX_REPORT_BYTES:
        return message
    params = message.envelope.parameters()
    said = params.get("message")
    if not isinstance(said, str):
        return message
    return notification(PROGRESS, {**params, "message": short(said)})


def answer(request_id: Any, result: Any) -> bytes:
    """Write the answer to a request; `result` may be raw."""
    return encode({"jsonrpc": "2.0", "id": request_id, "result": result})


def error(request_id: Any, code: int, message: str, data: Any = None) -> bytes:
    """Write the error that answers a request."""
    said = {"code": code, "message": message}
    if data is not None:
        said["data"] = data
    return encode({"jsonrpc": "2.0", "id": request_id, "error": said})


def refused(message: Message, why: str, code: int = INVALID_REQUEST) -> bytes:
    """Write the error that answers a message which must not go on, and log it."""
    said = f"the message is refused: {why}"
    log.warning("a client's message is refused: %s", why)
    named = message.envelope.id.__class__ in _PLAIN_IDS
    return error(message.envelope.id if named else None, code, said)


def error_of(request_id: Any, raw: msgspec.Raw) -> bytes:
    """Write an error as somebody else said it."""
    return encode({"jsonrpc": "2.0", "id": request_id, "error": raw})


def may_have_run(status: int, said: Message | None) -> bool:
    """Whether a server may have run a call that it answered with a status and no answer to it.

    A 400 is no such answer if it is an error without an id: then the request was not read.
    """
    if status in NEVER_RUN:
        return False
    if status != 400 or said is None:
        return True
    return said.envelope.id is not None or said.envelope.error is msgspec.UNSET


_PLAIN_IDS = (str, int, float)


def key_of(request_id: Any) -> Any:
    """Make a key of an id that tells 1 from "1" and from True; any other kind is its text."""
    if request_id.__class__ in _PLAIN_IDS:
        return request_id
    return (type(request_id).__name__, repr(request_id))
