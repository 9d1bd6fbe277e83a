"""Whether a broker has groups of the consumer protocol; mirrors `KafkaApis.isConsumerGroupProtocolEnabled`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.group.group import CONSUMER
from broker_sim.metadata.feature_names import GROUP_VERSION

if TYPE_CHECKING:
    from broker_sim.handlers.context import RequestContext

__all__ = ["has_consumer_protocol"]


def has_consumer_protocol(context: RequestContext) -> bool:
    """Return whether the feature `group.version` is on, and the broker offers the protocol."""
    broker = context.broker
    offered = CONSUMER in broker.config.group_coordinator_rebalance_protocols
    return offered and broker.image.features.get(GROUP_VERSION, 0) > 0
