"""What a broker gives the runtime of a coordinator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker_sim_purgatory import Clock

    from broker_sim.coordinator.records import RecordSerde
    from broker_sim.coordinator.storage import CoordinatorStorage
    from broker_sim.protocol.compression import CompressionCodec
    from broker_sim.runtime.process import CallLater


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeEnvironment:
    """The same for all partitions of one internal topic."""

    broker_id: int
    topic: str
    default_partitions: int
    """How many partitions the topic will have where it is still to be created."""
    clock: Clock
    call_later: CallLater
    storage: CoordinatorStorage
    serde: RecordSerde
    codec: CompressionCodec
    """How batches are compressed."""
    timeout_ms: int
    """How long the in-sync replicas have to get what was written, unless a result says it."""
    base_sequence: int
    """Of every batch; a coordinator numbers nothing."""
    keeps_shards_when_reelected: bool
    """Whether a shard goes on in a new epoch of the same leader, or is loaded again."""
