"""Which kinds of groups a broker has beside classic ones; mirrors `KafkaApis.isConsumerGroupProtocolEnabled` and its twins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.group.group import CONSUMER, STREAMS
from broker_sim.metadata.feature_names import GROUP_VERSION, SHARE_VERSION, STREAMS_VERSION

if TYPE_CHECKING:
    from broker_sim.handlers.context import RequestContext


def has_consumer_protocol(context: RequestContext) -> bool:
    """Return whether the feature `group.version` is on, and the broker offers the protocol."""
    return _is_offered(context, CONSUMER) and _is_on(context, GROUP_VERSION)


def has_streams_groups(context: RequestContext) -> bool:
    """Return whether the feature `streams.version` is on, and the broker offers the protocol."""
    return _is_offered(context, STREAMS) and _is_on(context, STREAMS_VERSION)


def has_share_groups(context: RequestContext) -> bool:
    """Return whether the feature `share.version` is on, without which their APIs are refused."""
    return _is_on(context, SHARE_VERSION)


def _is_offered(context: RequestContext, protocol: str) -> bool:
    return protocol in context.broker.config.group_coordinator_rebalance_protocols


def _is_on(context: RequestContext, feature: str) -> bool:
    return context.broker.image.features.get(feature, 0) > 0
