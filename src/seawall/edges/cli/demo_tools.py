"""The demo's own tools: a shop's weather, stock, reports, labels and orders.

They show how a tool is written: a typed function, a docstring, and hints that say what a call does
to the world. Nothing here retries, waits, checks or asks; that is what the layers are for.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import quote

from pydantic import Field

from seawall.contract.annotations import Annotations
from seawall.contract.failure import Failure, FailureCode, ToolFailed
from seawall.pipeline.context import ToolContext  # noqa: TC001  # read from the signature
from seawall.registry.function import tool

if TYPE_CHECKING:
    from seawall.contract.tool import Tool

OrderId = Annotated[str, Field(pattern=r"^[A-Z]-\d{1,6}$", description="Such as A-17.")]


def demo_tools(shop: Shop) -> list[Tool]:
    """Make the tools that talk to a shop."""

    @tool(annotations=Annotations.for_reading(open_world=True), category="shop")
    async def weather(city: Annotated[str, Field(min_length=1, max_length=80)]) -> dict[str, Any]:
        """Tell the weather of a city."""
        return await shop.ask("GET", f"/weather/{quote(city)}")

    @tool(annotations=Annotations.for_reading(open_world=True), category="shop")
    async def inventory_lookup(item: Literal["bolt", "nut", "washer"]) -> dict[str, Any]:
        """Tell how many pieces of an item are in the warehouse."""
        return await shop.ask("GET", f"/inventory/{item}")

    @tool(annotations=Annotations.for_reading(open_world=True), category="shop")
    async def sales_report(
        month: Annotated[str, Field(pattern=r"^\d{4}-\d{2}$", description="Such as 2024-05.")],
    ) -> dict[str, Any]:
        """Work out the sales of a month."""
        return await shop.ask("GET", f"/reports/{month}")

    @tool(annotations=Annotations.for_changing(), category="shop", needs=("printer",))
    async def print_label(order_id: OrderId) -> dict[str, Any]:
        """Print the label of an order's parcel."""
        return await shop.ask("POST", f"/labels/{order_id}")

    @tool(annotations=Annotations.for_destroying(), category="shop")
    async def ship_order(
        order_id: OrderId,
        quantity: Annotated[int, Field(ge=1, le=100)],
        context: ToolContext,
        *,
        express: bool = False,
    ) -> dict[str, Any]:
        """Ship an order. What has left the house cannot be called back."""
        order = {"order": order_id, "quantity": quantity, "express": express}
        # The same key for all attempts of this call, so that it ships once at most.
        return await shop.ask("POST", "/orders", order, key=context.idempotency_key)

    @tool(annotations=Annotations.for_destroying(), category="shop")
    async def delete_records(
        table: Literal["customers", "orders"], older_than_days: Annotated[int, Field(ge=0)]
    ) -> dict[str, Any]:
        """Delete old records for good."""
        return await shop.ask("DELETE", f"/records/{table}?older_than_days={older_than_days}")

    return [weather, inventory_lookup, sales_report, print_label, ship_order, delete_records]


class Shop:
    """The service as its client sees it: one connection for each request."""

    def __init__(self, host: str, port: int) -> None:
        self._host = host
        self._port = port

    async def ask(
        self, method: str, path: str, body: Any = None, *, key: str = ""
    ) -> dict[str, Any]:
        """Send a request; gives its JSON answer, or raises what went wrong."""
        reader, writer = await asyncio.open_connection(self._host, self._port)
        try:
            writer.write(self._request(method, path, body, key))
            await writer.drain()
            return _answer(await reader.read())
        finally:
            # Also when the call is cancelled: the service then sees that nobody waits for it.
            writer.close()

    def _request(self, method: str, path: str, body: Any, key: str) -> bytes:
        sent = b"" if body is None else json.dumps(body).encode()
        keyed = f"Idempotency-Key: {key}\r\n" if key else ""
        return (
            f"{method} {path} HTTP/1.1\r\nHost: {self._host}:{self._port}\r\n{keyed}"
            f"Content-Length: {len(sent)}\r\nConnection: close\r\n\r\n"
        ).encode() + sent


def _answer(received: bytes) -> dict[str, Any]:
    head, _, body = received.partition(b"\r\n\r\n")
    if not body:
        raise ConnectionResetError("the connection was closed before an answer came")
    status = int(head.split(b" ", 2)[1])
    answer: dict[str, Any] = json.loads(body)
    if status == 200:
        return answer
    code = FailureCode.NOT_FOUND if status == 404 else FailureCode.EXECUTION_FAILED
    raise ToolFailed(
        Failure(
            code=code,
            # `transport` says that the way failed and not the request: it may be tried again.
            reason="transport" if status >= 500 else "",
            message=f"the service answered {status}: {answer['problem']}",
        )
    )
