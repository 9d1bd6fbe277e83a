"""What the share partition manager needs of its broker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from broker_sim_purgatory import DelayedOperationPurgatory

    from broker_sim.replica.metadata_applier import PartitionListeners
    from broker_sim.runtime.delayed_request import DelayedRequest
    from broker_sim.share.partition.log_reader import LogReader


@dataclass(frozen=True, slots=True, kw_only=True)
class SharePartitionManagerEnvironment:
    """Its purgatory, the logs, and the limits."""

    purgatory: DelayedOperationPurgatory[DelayedRequest]
    reader: LogReader
    listeners: PartitionListeners
    after_serving: Callable[[Callable[[], object]], object]
    """Runs an action after the request that is served now."""
    rng: random.Random
    max_share_sessions: int
