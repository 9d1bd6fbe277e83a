"""Whether a broker has streams groups; mirrors `KafkaApis.isStreamsGroupProtocolEnabled`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.group.group import STREAMS
from broker_sim.metadata.feature_names import STREAMS_VERSION

if TYPE_CHECKING:
    from broker_sim.handlers.context import RequestContext

__all__ = ["has_streams_groups"]


def has_streams_groups(context: RequestContext) -> bool:
    """Return whether the feature `streams.version` is on, and the broker offers the protocol."""
    broker = context.broker
    offered = STREAMS in broker.config.group_coordinator_rebalance_protocols
    return offered and broker.image.features.get(STREAMS_VERSION, 0) > 0
