"""How a broker asks the controller: a verb goes there over a link, its result comes back later.

Mirrors `NodeToControllerChannelManager` and the forwarding of admin requests (KIP-590).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.controller import Controller
    from broker_sim.errors import ApiError

Result = TypeVar("Result")


class ControllerChannel(Protocol):
    """The link to the active controller."""

    def call(
        self,
        verb: Callable[[Controller], Result],
        on_result: Callable[[Result], None],
        on_refusal: Callable[[ApiError], None],
    ) -> None:
        """Run `verb(controller)` there, and `on_result(result)` here when the result has arrived.

        `on_refusal(error)` runs here instead when the verb raised ApiError, or anything unexpected:
        then with UNKNOWN_SERVER_ERROR.
        """
