"""Errors of single partitions, injected or denied, and the current leader in responses (KIP-951)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from broker_sim.config import Endpoint
    from broker_sim.handlers.context import RequestContext
    from broker_sim.metadata import BrokerState, MetadataImage
    from broker_sim.metadata.topic_partition import TopicPartition
    from broker_sim.protocol import messages

    LeaderIdAndEpoch = (
        messages.ProduceResponse.LeaderIdAndEpoch
        | messages.FetchResponse.LeaderIdAndEpoch
        | messages.ShareFetchResponse.LeaderIdAndEpoch
        | messages.ShareAcknowledgeResponse.LeaderIdAndEpoch
    )

HINTED_ERRORS: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
"""Fetch errors that come with the current leader."""


class LeaderHints:
    """Fills `current_leader` structs and collects the brokers in them."""

    def __init__(self, image: MetadataImage, listener: str) -> None:
        self._image = image
        self._listener = listener
        self._leaders: dict[int, None] = {}

    def add(self, topic_partition: TopicPartition, current_leader: LeaderIdAndEpoch) -> None:
        """Fill in the leader from this broker's metadata; leave -1 if there is none."""
        state = self._image.partition(topic_partition)
        if state is None:
            return
        current_leader.leader_id = state.leader
        current_leader.leader_epoch = state.leader_epoch
        self._leaders[state.leader] = None

    def endpoints(self) -> list[tuple[int, str, int, str | None]]:
        """Return (node id, host, port, rack) of the collected brokers that the client can reach."""
        return [
            (broker.broker_id, endpoint.host, endpoint.port, broker.rack)
            for broker, endpoint in map(self._find, self._leaders)
            if broker is not None and endpoint is not None
        ]

    def _find(self, broker_id: int) -> tuple[BrokerState | None, Endpoint | None]:
        broker = self._image.alive_broker(broker_id)
        return broker, None if broker is None else broker.endpoint(self._listener)


def injected_error(
    context: RequestContext, topic: str, partition: int = -1, *, acknowledges: bool = False
) -> ErrorCode:
    """Return the injected error of the partition, or of the topic if `partition` is -1; NONE if there is none.

    With `acknowledges`, return the error of the acknowledgements in a share fetch.
    """
    faults = context.faults
    return ErrorCode.NONE if faults is None else faults.error_for(topic, partition, acknowledges=acknowledges)


def denied_or_injected_error(
    context: RequestContext, topic: str, partition: int, denied: AbstractSet[str], *, acknowledges: bool = False
) -> ErrorCode:
    """Return the error of a partition if its topic is in `denied`, otherwise the injected error.

    `acknowledges` is as in `injected_error`.
    """
    if topic in denied:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return injected_error(context, topic, partition, acknowledges=acknowledges)


def raise_injected_error(context: RequestContext, topic: str, partition: int = -1) -> None:
    """Raise ApiError with the injected error of the partition or topic, if there is one."""
    error_code = injected_error(context, topic, partition)
    if error_code:
        raise ApiError(error_code)
