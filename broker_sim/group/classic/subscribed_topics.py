"""Which topics a consumer's subscription names; mirrors `ClassicGroup.computeSubscribedTopics`."""

from __future__ import annotations

from struct import error
from typing import TYPE_CHECKING, Final

from broker_sim.group.consumer_protocol import VERSION
from broker_sim.protocol.codec import decode
from broker_sim.protocol.errors import ProtocolError
from broker_sim.protocol.messages import ConsumerProtocolSubscription

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from broker_sim.group.classic.classic_member import ClassicMember

FIRST_VERSION: Final = 0
"""All versions begin with the fields of this one, so newer ones than ours can be read too."""


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """Return all topics that the subscriptions name; None if one of them is not a subscription."""
    topics: set[str] = set()
    for subscription in set(subscriptions):
        try:
            VERSION.unpack_from(subscription)
            decoded = decode(ConsumerProtocolSubscription, FIRST_VERSION, subscription, VERSION.size)
        except (error, ProtocolError):
            return None
        topics.update(decoded.topics)
    return frozenset(topics)


def topics_of_members(members: Collection[ClassicMember], protocol_name: str | None) -> frozenset[str] | None:
    """Return the topics of consumers that use that protocol; None if they cannot be known."""
    if not members:
        return frozenset()
    if protocol_name is None:
        return None
    return subscribed_topics(member.metadata(protocol_name) for member in members)
