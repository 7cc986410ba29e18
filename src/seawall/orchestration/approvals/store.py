"""What approvals need of a store and of a key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from seawall.contract.approval import Frozen, WaitingRoom
    from seawall.contract.audit import AuditEntry
    from seawall.orchestration.approvals.transitions import Transition

    Noting = Callable[[Frozen], Sequence[AuditEntry]]


class ApprovalStore(Protocol):
    """Keeps turns that wait. What it raises refuses what was about to be done."""

    @property
    def box(self) -> Box | None:
        """Seals what is kept; None if there is no key, and nothing secret may be kept then."""
        ...

    async def add(
        self,
        frozen: Frozen,
        payloads: Mapping[str, bytes],
        entries: Sequence[AuditEntry] = (),
        room: WaitingRoom | None = None,
    ) -> None:
        """Keep a new one with what belongs to it, all or nothing; durable when this returns.

        Raises `ApprovalsFull`, and keeps nothing, if `room` has no place for it beside those of
        its caller that are not closed and whose time is not over, however many add at once.
        """
        ...

    async def load(self, batch_id: str) -> Frozen | None:
        """Give a record as it is."""
        ...

    async def payloads(self, batch_id: str) -> dict[str, bytes]:
        """Give all that is kept beside a record."""
        ...

    async def page(
        self,
        *,
        closed: bool,
        before: tuple[float, str] | None,
        limit: int,
        alike: Sequence[str] | None = None,
    ) -> list[Frozen]:
        """Give records, newest first, from before a time and id; with or without closed ones.

        `alike` leaves those whose `alike` is one of these or None; how many others are kept must
        not matter then.
        """
        ...

    async def change(
        self,
        batch_id: str,
        step: Transition,
        payloads: Mapping[str, bytes] | None = None,
        noting: Noting | None = None,
    ) -> Frozen:
        """Apply a step alone with the record, and keep what it gives; durable when this returns.

        What `noting` makes of the new record goes into the audit log, together with it.
        What the step raises is raised, and nothing is kept then. Raises `ApprovalNotFound`.
        """
        ...

    async def prune(self, *, read_before: float, closed_before: float) -> int:
        """Remove what was read, and what was closed, before these times; how many went."""
        ...

    async def is_gone(self, owner: str) -> bool:
        """Whether the process of an owner has ended for sure; its lease does not count then."""
        ...

    @property
    def owner(self) -> str:
        """Names this process's part in the state."""
        ...


class Box(Protocol):
    """Authenticated encryption; what is sealed for one place opens for no other."""

    def close(self, plain: bytes, place: str) -> bytes:
        """Seal."""
        ...

    def names(self, plain: bytes) -> tuple[str, ...]:
        """Fingerprint under each key, the current one first; nobody without a key can."""
        ...

    def open(self, sealed: bytes, place: str) -> bytes:
        """Give back what was sealed for this place; raises otherwise."""
        ...
