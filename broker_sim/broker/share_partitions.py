"""The share partitions of one broker."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from broker_sim.share.partition import (
    LogReader,
    ShareGroupSettings,
    SharePartitionEnvironment,
    SharePartitionManager,
    SharePartitionManagerEnvironment,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.broker.foundation import Foundation
    from broker_sim.replica import MetadataApplier, ReplicaManager
    from broker_sim.share.share_state import Persister, SharePartitionKey


def make_share_partition_manager(
    base: Foundation, replica_manager: ReplicaManager, applier: MetadataApplier, persister: Persister
) -> SharePartitionManager:
    """Return what serves the share partitions that are led here; their locks have a timer of their own."""
    process, environment = base.process, base.environment

    def partition_environment(
        complete_delayed: Callable[[SharePartitionKey], int], announce: Callable[[SharePartitionKey], object]
    ) -> SharePartitionEnvironment:
        return SharePartitionEnvironment(
            persister=persister,
            timer=environment.make_purgatory.make_timer("share-group-lock-timeout", process),
            clock=process.clock,
            settings=ShareGroupSettings(base.config, lambda: base.metadata.image),
            complete_delayed_share_fetch=complete_delayed,
            announce=announce,
        )

    return SharePartitionManager(
        SharePartitionManagerEnvironment(
            purgatory=base.purgatories.share_fetch,
            reader=LogReader(replica_manager),
            listeners=applier.listeners,
            after_serving=process.after_serving,
            # Of its own: what brokers draw must not depend on who fetches.
            rng=random.Random(f"share fetches of {environment.cluster_id} {base.broker_id}"),
            max_share_sessions=base.config.group_share_max_share_sessions,
        ),
        partition_environment,
    )
