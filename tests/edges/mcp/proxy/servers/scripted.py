"""A server on standard streams that does what it is told, and writes down all it hears.

`scripted.py RECORD SCRIPT`: RECORD gets every line as it came; SCRIPT is JSON with `tools` (name to
behaviour), and where wanted `declared` (fields of each tool), `stdout_before`, `list` ("error",
"never") and `deaf` (does not end when its input does). No library, so nothing is lost here.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

record = Path(sys.argv[1])
script: dict[str, Any] = json.loads(sys.argv[2])
answers: dict[Any, Any] = {}
lock = threading.Lock()


def say(message: Any) -> None:
    line = message if isinstance(message, str) else json.dumps(message)
    with lock:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def reply(request_id: Any, result: Any) -> None:
    say({"jsonrpc": "2.0", "id": request_id, "result": result})


def text(said: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": said}], **more}


def failed(request_id: Any, code: int, message: str, **more: Any) -> None:
    error = {"code": code, "message": message, **more}
    say({"jsonrpc": "2.0", "id": request_id, "error": error})


def declared(name: str) -> dict[str, Any]:
    tool = {"name": name, "inputSchema": {"type": "object"}, "x-unknown": {"kept": True}}
    return {**tool, **script.get("declared", {}).get(name, {})}


def list_tools(message: dict[str, Any]) -> None:
    if script.get("list") == "error":
        failed(message["id"], -32050, "no list today", data={"why": "closed"})
    elif script.get("paged"):
        first, *rest = script["tools"]
        on = bool((message.get("params") or {}).get("cursor"))
        page = {"tools": [declared(name) for name in (rest if on else [first])]}
        reply(message["id"], page if on else {**page, "nextCursor": "2"})
    elif script.get("list") != "never":
        reply(message["id"], {"tools": [declared(name) for name in script["tools"]]})


def call(message: dict[str, Any]) -> None:
    params = message["params"]
    behaviour = script["tools"].get(params["name"], "unknown")
    for step in behaviour.split(";"):
        name, _, argument = step.partition(":")
        STEPS[name](message, argument)


def progress(message: dict[str, Any], argument: str) -> None:
    """Report progress so often, until the reply."""
    token = message["params"].get("_meta", {}).get("progressToken")

    def run() -> None:
        done = 0
        while not answers.get(message["id"]):
            time.sleep(float(argument))
            done += 1
            params = {"progressToken": token, "progress": done, "x-unknown": 1}
            say({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})

    threading.Thread(target=run, daemon=True).start()


def reply_at(message: dict[str, Any], argument: str) -> None:
    def run() -> None:
        time.sleep(float(argument))
        answers[message["id"]] = True
        reply(message["id"], text("late"))

    threading.Thread(target=run, daemon=True).start()


def ask(message: dict[str, Any], argument: str) -> None:
    """Ask the client something, and answer with what it says."""

    def run() -> None:
        params = {"message": "?", "requestedSchema": {"type": "object"}, "x-unknown": True}
        say({"jsonrpc": "2.0", "id": "seawall-1", "method": argument, "params": params})
        while "seawall-1" not in answers:
            time.sleep(0.01)
        reply(message["id"], text(json.dumps(answers.pop("seawall-1"))))

    threading.Thread(target=run, daemon=True).start()


def first_time(message: dict[str, Any], argument: str) -> None:
    """End the first process that is called; the next one answers."""
    marker = record.with_suffix(".called")
    if not marker.exists():
        marker.write_text("yes")
        os._exit(1)
    reply(message["id"], text("second time"))


def late_progress(message: dict[str, Any], argument: str) -> None:
    """Report progress of what was answered already, as often as is said."""
    token = message["params"].get("_meta", {}).get("progressToken")
    for at in range(int(argument or 1)):
        params = {"progressToken": token, "progress": 9 + at}
        say({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})


def long_progress(message: dict[str, Any], argument: str) -> None:
    """Report progress in a line of so many letters."""
    token = message["params"].get("_meta", {}).get("progressToken")
    line = "é" * int(argument)
    params = {"progressToken": token, "progress": 1, "message": line, "x-unknown": 1}
    say({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})


def text_of(argument: str) -> str:
    unit, _, times = argument.partition("*")
    return unit * int(times or 1)


STEPS: dict[str, Any] = {
    "reply": lambda m, a: reply(m["id"], text(json.dumps(m["params"].get("arguments")))),
    "result": lambda m, a: say(
        f'{{"jsonrpc":"2.0",  "id":{json.dumps(m["id"])},"result":{script["result"]},"x-top":1}}'
    ),
    "text": lambda m, a: reply(m["id"], text(text_of(a))),
    "is_error": lambda m, a: reply(m["id"], text(a, isError=True)),
    "error": lambda m, a: failed(m["id"], int(a), "as scripted", data={"n": [1, {"deep": None}]}),
    "never_reply": lambda m, a: None,
    "never_reply_even_on_cancel": lambda m, a: None,
    "kill_self_on_call": lambda m, a: os._exit(7),
    "first_time_dies": first_time,
    "progress": progress,
    "late_progress": late_progress,
    "long_progress": long_progress,
    "lines": lambda m, a: raw_lines(m["id"]),
    "reply_at": reply_at,
    "ask": ask,
    "pid": lambda m, a: reply(m["id"], text(str(os.getpid()))),
    "unknown": lambda m, a: failed(m["id"], -32602, "Unknown tool: " + m["params"]["name"]),
    "changes": lambda m, a: change(m, a),  # noqa: PLW0108  # defined below
}


def change(message: dict[str, Any], argument: str) -> None:
    script["tools"][argument] = "reply"
    say({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
    reply(message["id"], text("changed"))


def raw_lines(request_id: Any) -> None:
    """Write lines as they are given, byte by byte, then a result of that kind."""
    last = f'{{"jsonrpc":"2.0","id":{json.dumps(request_id)},"result":{script["result"]}}}'
    with lock:
        for line in [*script["lines"], last]:
            sys.stdout.buffer.write(line.encode("latin-1") + b"\n")
        sys.stdout.buffer.flush()


def heard(message: dict[str, Any]) -> None:
    method = message.get("method")
    if method is None:
        answers[message.get("id")] = message.get("result", message.get("error"))
    elif method == "tools/list":
        list_tools(message)
    elif method == "tools/call":
        call(message)
    elif method == "initialize":
        reply(
            message["id"],
            {
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": {"tools": {"listChanged": True}, "x-unknown": {}},
                "serverInfo": {"name": "scripted", "version": "0", "x-unknown": 1},
            },
        )
    elif "id" in message:
        reply(message["id"], {"method": method, "params": message.get("params"), "x": None})


if script.get("stubborn"):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if script.get("stdout_before"):
    sys.stdout.write(script["stdout_before"])
    sys.stdout.flush()
for line in sys.stdin:
    with record.open("a") as book:
        book.write(line)
    try:
        said = json.loads(line)
    except ValueError:
        failed(None, -32700, "no JSON")
    else:
        heard(said)
if script.get("deaf"):
    time.sleep(3600)
