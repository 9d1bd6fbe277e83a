"""The broker on which the table of rights is played."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.protocol.message import Message


class TableBroker(Protocol):
    """A cluster of one broker, with an authorizer and two clients."""

    principal: str
    """The principal of the client under test; not a super user."""
    host: str
    """The client's host as the broker sees it."""

    def ask(self, message: Message, version: int) -> Any:
        """Return the client's response."""

    def ask_as_admin(self, message: Message, version: int) -> Any:
        """Return a super user's response."""

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Wait until `condition()` is true."""
