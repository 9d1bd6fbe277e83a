"""What the table of rights is played on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.protocol.message import Message


class TableBroker(Protocol):
    """A cluster of one broker, with an authorizer and two clients."""

    principal: str
    """The principal of the client that the table is about; it is no super user."""
    host: str
    """The host from which the broker sees that client connect."""

    def ask(self, message: Message, version: int) -> Any:
        """Return the answer that this client gets."""

    def ask_as_admin(self, message: Message, version: int) -> Any:
        """Return the answer that a super user gets."""

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Return when `condition()` holds."""
