"""What a broker gives its persister: metadata, time, and the way to share coordinators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping

    from broker_sim.metadata import MetadataImage
    from broker_sim.runtime.process import CallLater
    from broker_sim.share.state_apis import StateApi


class ShareStateSender(Protocol):
    """The `InterBrokerSender` of one kind of request, to the share coordinators."""

    def is_busy(self, receiver: int) -> bool:
        """Whether that broker has not answered the request before."""

    def send(self, receiver: int, request: Any, on_answer: Callable[[Any | None], object]) -> None:
        """Send the request to the broker; `on_answer(None)` where it does not answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PersisterEnvironment:
    """The same for all calls of a broker's persister."""

    random: random.Random
    call_later: CallLater
    after_handler: Callable[[Callable[[], object]], object]
    """Runs a callback when the running handler has returned, before the next request is read."""
    serve: Callable[..., object]
    """Runs a callback with its arguments as a handler, and then what it has completed."""
    image: Callable[[], MetadataImage]
    partition_for: Callable[[str], int]
    """Returns the partition of `__share_group_state` that a coordinator key is in."""
    create_state_topic: Callable[[], object]
    """Asks the controller to make the topic."""
    senders: Mapping[StateApi, ShareStateSender]
