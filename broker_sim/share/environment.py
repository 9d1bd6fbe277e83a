"""What a broker gives its share coordinator and its persister: time, metadata, the log, other brokers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from broker_sim.coordinator.storage import CoordinatorStorage

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping

    from broker_sim_purgatory import Clock

    from broker_sim.config import BrokerConfig
    from broker_sim.errors import ErrorCode
    from broker_sim.metadata import MetadataImage
    from broker_sim.runtime.process import CallLater
    from broker_sim.share.state_apis import StateApi


class ShareStorage(CoordinatorStorage, Protocol):
    """The partitions of `__share_group_state`, from which records can be deleted."""

    def delete_records(self, partition: int, before_offset: int, on_done: Callable[[ErrorCode], object]) -> None:
        """Delete the records before the offset, from all replicas."""


@dataclass(slots=True)
class ShareCoordinatorCounters:
    """What has happened since the broker's start; mirrors the sensors of `ShareCoordinatorMetrics`."""

    writes: int = 0
    """Writes of states, also refused ones, and reads that have noted a new leader epoch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareCoordinatorEnvironment:
    """The same for all share partitions that a broker coordinates."""

    broker_id: int
    config: BrokerConfig
    clock: Clock
    """`now_ms` for waits, `wall_clock_ms` for what is written into records."""
    call_later: CallLater
    image: Callable[[], MetadataImage]
    """Returns the newest metadata that the broker has heard of."""
    storage: ShareStorage
    counters: ShareCoordinatorCounters = field(default_factory=ShareCoordinatorCounters)


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
