"""What a broker gives its share coordinator: time, metadata and the log."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from broker_sim.coordinator.storage import CoordinatorStorage

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim_purgatory import Clock

    from broker_sim.config import BrokerConfig
    from broker_sim.errors import ErrorCode
    from broker_sim.metadata import MetadataImage
    from broker_sim.runtime.process import CallLater


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
