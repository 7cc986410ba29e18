"""Who is calling, and what was allowed to them."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from seawall.contract.decision import Action, Decision
from seawall.contract.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping


ALLOWED, DENIED = "allowed for this session", "denied for this session"


class Permissions:
    """A person's standing answers for one session, by tool name."""

    __slots__ = ("answers",)

    def __init__(self) -> None:
        self.answers: dict[str, Decision] = {}
        """By tool name. To look at: a look costs a call less than `decision`."""

    def allow(self, tool: str, reason: str = ALLOWED) -> None:
        """Let the tool run without being asked about."""
        self.answers[tool] = Decision(Action.ALLOW, reason)

    def deny(self, tool: str, reason: str = DENIED) -> None:
        """Refuse the tool without asking."""
        self.answers[tool] = Decision(Action.DENY, reason)

    def reset(self, tool: str | None = None) -> None:
        """Forget one answer, or all."""
        if tool is None:
            self.answers.clear()
        else:
            self.answers.pop(tool, None)

    def decision(self, tool: str) -> Decision | None:
        """The standing answer, or None while nobody has decided."""
        return self.answers.get(tool)

    def snapshot(self) -> Mapping[str, Decision]:
        """All standing answers, as they are now."""
        return MappingProxyType(dict(self.answers))


class Services:
    """Things that tools may ask for by name. What is not listed does not exist for them."""

    __slots__ = ("_services",)

    def extended(self, more: Mapping[str, Any]) -> Services:
        """Give these and more; raises `ConfigurationError` if a name is taken."""
        found = Services(self._services)
        for name, service in more.items():
            found.register(name, service)
        return found

    def __init__(self, services: Mapping[str, Any] | None = None) -> None:
        self._services: dict[str, Any] = {}
        for name, service in (services or {}).items():
            self.register(name, service)

    def register(self, name: str, service: Any) -> None:
        """Offer a service; raises `ConfigurationError` if the name is taken."""
        if name in self._services:
            raise ConfigurationError(f"service {name!r} is registered twice; choose another name")
        self._services[name] = service

    def get(self, name: str) -> Any:
        """Give the service, or None if it is absent."""
        return self._services.get(name)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all that are offered."""
        return tuple(self._services)


def frozen_deeply(value: Any) -> Any:
    """Copy JSON-like data into a form that cannot be changed."""
    if isinstance(value, dict):
        return MappingProxyType({key: frozen_deeply(item) for key, item in value.items()})
    if isinstance(value, (list, tuple)):
        return tuple(frozen_deeply(item) for item in value)
    if isinstance(value, (set, frozenset)):
        return frozenset(value)
    return value


_EMPTY: Mapping[str, Any] = MappingProxyType({})


class Session:
    """One conversation. Keep it for as long as its permissions and its loop window should hold.

    `state` reaches tools deeply read-only; it holds what the caller gave and nothing else.
    """

    __slots__ = ("caller", "front", "id", "memory", "permissions", "recent", "services", "state")

    def __init__(
        self,
        id: str = "",  # noqa: A002  # the public name of the field
        *,
        caller: str = "",
        state: Mapping[str, Any] | None = None,
        services: Services | Mapping[str, Any] | None = None,
    ) -> None:
        self.id = id
        self.caller = caller
        self.front = ""
        """Which edge runs its calls once they are approved; empty: whoever resumes them."""
        self.state: Mapping[str, Any] = frozen_deeply(dict(state)) if state else _EMPTY
        self.services = services if isinstance(services, Services) else Services(services)
        self.permissions = Permissions()
        self.memory: dict[str, Any] = {}
        """What layers and detectors keep per session, under their own names."""
        self.recent: Any = None
        """The last calls, as the loop detector keeps them: fingerprints, bounded in number."""

    @property
    def lasting(self) -> Services:
        """The services that are offered for longer than a single call."""
        return self.services

    def offering(self, services: Mapping[str, Any]) -> Session:
        """Give this session with more services, for a single call.

        What is remembered is remembered here: permissions, the loop detector's window, memory.
        """
        return _Offering(self, services)


class OneCall(Session):
    """A session of a single call, that nobody comes back to: loops are not looked for in it."""

    __slots__ = ()


class _Offering(Session):
    """A session as one call sees it."""

    __slots__ = ("_owner",)

    def __init__(self, owner: Session, services: Mapping[str, Any]) -> None:
        self._owner = owner
        self.id = owner.id
        self.caller = owner.caller
        self.front = owner.front
        self.state = owner.state
        self.permissions = owner.permissions
        self.memory = owner.memory
        self.services = owner.services.extended(services)

    @property
    def lasting(self) -> Services:
        return self._owner.lasting

    @property
    def recent(self) -> Any:
        """The last calls of the session, whichever call looks."""
        return self._owner.recent

    @recent.setter
    def recent(self, value: Any) -> None:
        self._owner.recent = value
