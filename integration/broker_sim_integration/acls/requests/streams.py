"""The rows of the table about streams groups, and the group that they use.

Error messages are compared, too.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from broker_sim.protocol import messages
from broker_sim_integration.acls.names import (
    GROUP,
    GROUP_RESOURCE,
    MEMBER,
    NEW_RESOURCE,
    NEW_TOPIC,
    STREAMS_GROUP,
    STREAMS_RESOURCE,
    TOPIC,
    TOPIC_RESOURCE,
)
from broker_sim_integration.acls.situation import GuardedRequest, fixed

if TYPE_CHECKING:
    from broker_sim_integration.acls.table_broker import TableBroker


def _heartbeat(epoch: int, *subtopologies: tuple[str, str]) -> messages.StreamsGroupHeartbeatRequest:
    """Return a heartbeat whose subtopologies read a topic and write into a repartition topic."""
    request = messages.StreamsGroupHeartbeatRequest
    told = [
        request.Subtopology(str(number), [source], repartition_sink_topics=[sink] if sink else [])
        for number, (source, sink) in enumerate(subtopologies)
    ]
    return request(
        STREAMS_GROUP,
        MEMBER,
        epoch,
        rebalance_timeout_ms=60_000,
        topology=request.Topology(0, told),
        active_tasks=[],
        standby_tasks=[],
        warmup_tasks=[],
    )


def streams_requests() -> list[GuardedRequest]:
    """Return the rows of streams groups.

    A member that has joined may not send its topology again. So its heartbeats are rejected by the coordinator
    after the check of rights, and change nothing.
    """
    describe = messages.StreamsGroupDescribeRequest
    updated = messages.StreamsGroupTopologyDescriptionUpdateRequest
    group, topic = STREAMS_RESOURCE, TOPIC_RESOURCE
    rows = [
        fixed("StreamsGroupHeartbeat", _heartbeat(1, (TOPIC, "")), 0, group, topic),
        fixed(
            "StreamsGroupHeartbeat with two topics", _heartbeat(1, (TOPIC, NEW_TOPIC)), 0, group, topic, NEW_RESOURCE
        ),
        # There is no plugin for descriptions, an error that follows the check of rights.
        fixed("StreamsGroupTopologyDescriptionUpdate", updated(STREAMS_GROUP, MEMBER, 1), 0, group),
        fixed("StreamsGroupDescribe", describe([STREAMS_GROUP], True), 0, group, topic),
        fixed(
            "StreamsGroupDescribe of two groups",
            describe([GROUP, STREAMS_GROUP], True),
            0,
            GROUP_RESOURCE,
            group,
            topic,
        ),
    ]
    return [replace(row, has_texts=True) for row in rows]


def set_up_streams_group(broker: TableBroker) -> None:
    """Create the streams group by its first member's heartbeat."""
    joined = broker.ask_as_admin(_heartbeat(0, (TOPIC, "")), 0)
    assert not joined.error_code, joined
