"""What stands before every request: who asks, under which name, and how often.

A page of another site reaches a loopback port through the browser of whoever visits it, so the
names in `Host` and `Origin` are checked before anything is answered (DNS rebinding). On loopback
calling needs no token unless one was given out; approving and administration always do, since an
agent with a shell reaches loopback too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seawall.contract.failure import FailureCode
from seawall.edges.gateway.answers import refusal
from seawall.edges.gateway.asked import ONCE, Refused, bad_request
from seawall.edges.gateway.client_rates import ClientRates
from seawall.edges.gateway.tokens import Client
from seawall.edges.requests import Hosts, bearer_in

if TYPE_CHECKING:
    from collections.abc import Callable

    from seawall.edges.gateway.answers import Answer
    from seawall.edges.gateway.asked import Asked
    from seawall.edges.gateway.settings import GatewaySettings
    from seawall.layers.rate_limit.shared import BucketStore

ANYBODY = Client("anybody", frozenset({"call"}))
"""Who calls a gateway on loopback that has given out no token for calling."""

NOBODY = Client("nobody", frozenset())

_CHALLENGE = ((b"www-authenticate", b'Bearer realm="seawall"'),)


class Guard:
    """Lets requests in, and says whose they are."""

    def __init__(
        self,
        settings: GatewaySettings,
        now: Callable[[], float],
        store: BucketStore | None = None,
    ) -> None:
        self._hosts = Hosts(settings.hosts)
        self._tokens = settings.tokens
        self._without = NOBODY if settings.asks_callers else ANYBODY
        self._max_header_bytes = settings.max_header_bytes
        self._rates = ClientRates(
            {
                client.name: client.rate or settings.client_rate
                for client in (ANYBODY, *settings.tokens.clients)
            },
            now,
            store,
            settings.workers,
        )

    def admit(self, asked: Asked) -> None:
        """Check the names and the token, and note the client; refuses what may not come in."""
        headers = asked.headers
        if asked.header_bytes > self._max_header_bytes:
            raise Refused(_too_many(self._max_header_bytes))
        if repeated := asked.repeated(ONCE):
            more = ", or the address names another" if repeated == "host" else ""
            raise Refused(
                bad_request(f"the header {repeated} came more than once{more}; send it once")
            )
        host = headers.get(b"host", b"")
        if host not in self._hosts:
            raise Refused(_wrong_host(host))
        origin = headers.get(b"origin")
        if origin is not None and origin.lower().partition(b"://")[2] != host.lower():
            raise Refused(_wrong_origin())
        asked.client = self._client(headers.get(b"authorization"))

    def demand(self, asked: Asked, scope: str) -> None:
        """Refuse a client that lacks a scope."""
        client = asked.client
        if client.may(scope):
            return
        if client in (NOBODY, ANYBODY):
            raise Refused(_unauthenticated(f"this needs a bearer token with the scope {scope}"))
        said = f"the token of {client.name} does not have the scope {scope}"
        raise Refused(refusal(FailureCode.PERMISSION_DENIED, "scope_missing", said))

    def limits(self, client: Client) -> bool:
        """Whether a client has a rate that its calls are to be counted for."""
        return client.name in self._rates

    async def count(self, client: Client) -> None:
        """Take one call from the client's rate, or refuse."""
        taken = await self._rates.take(client.name)
        if taken is None or taken.granted:
            return
        said = f"{client.name} may call {self._rates.said(client.name)} and has called that often"
        raise Refused(
            refusal(
                FailureCode.RATE_LIMITED, "rate_limited", said, retry_after_s=taken.retry_after_s
            )
        )

    def _client(self, authorization: bytes | None) -> Client:
        if authorization is None:
            return self._without
        token = bearer_in(authorization)
        if token is None:
            raise Refused(_unauthenticated("the Authorization header must say `Bearer TOKEN`"))
        found = self._tokens.client_of(token)
        if found is None:
            raise Refused(_unauthenticated("this gateway does not know this token"))
        return found


def _unauthenticated(message: str) -> Answer:
    return refusal(
        FailureCode.PERMISSION_DENIED,
        "unauthenticated",
        message,
        guidance="Send the header `Authorization: Bearer TOKEN`.",
        headers=_CHALLENGE,
    )


def _wrong_host(sent: bytes) -> Answer:
    host = sent.decode("latin-1").lower()
    return refusal(
        FailureCode.PERMISSION_DENIED,
        "host_not_allowed",
        f"this gateway does not answer under the name {host[:100]!r}",
        guidance="Ask for it by its own name; the operator adds others with --allow-host.",
    )


def _wrong_origin() -> Answer:
    return refusal(
        FailureCode.PERMISSION_DENIED,
        "origin_not_allowed",
        "pages of other sites may not use this gateway",
    )


def _too_many(limit: int) -> Answer:
    return refusal(
        FailureCode.INVALID_ARGUMENT, "headers_too_large", f"headers may hold {limit} bytes"
    )
