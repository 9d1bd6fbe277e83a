"""The share groups that the table of rights uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.protocol import messages
from broker_sim.share.share_state import SharePartitionKey
from broker_sim_integration.acls.names import MEMBER, SHARE_GROUP, STATE_GROUP, TOPIC

if TYPE_CHECKING:
    from broker_sim_integration.acls.table_broker import TableBroker


def set_up_share_groups(broker: TableBroker, topic_id: bytes) -> None:
    """Create a share group with state of the topic, and one whose member has the topic's partition."""
    find = messages.FindCoordinatorRequest
    key = SharePartitionKey(STATE_GROUP, topic_id, 0).coordinator_key()
    coordinator = find(key_type=2, coordinator_keys=[key])
    broker.wait_until(lambda: not broker.ask_as_admin(coordinator, 6).coordinators[0].error_code)
    alter = messages.AlterShareGroupOffsetsRequest
    partitions = [alter.AlterShareGroupOffsetsRequestPartition(0, 0)]
    topic = alter.AlterShareGroupOffsetsRequestTopic(TOPIC, partitions)

    def has_state() -> bool:
        answer = broker.ask_as_admin(alter(STATE_GROUP, [topic]), 0)
        rows = [row for topic in answer.responses for row in topic.partitions]
        return bool(rows) and not any(row.error_code for row in rows)

    broker.wait_until(has_state)
    _join(broker)


def _join(broker: TableBroker) -> None:
    """Send heartbeats of the member until it has the partition of the topic."""
    heartbeat = messages.ShareGroupHeartbeatRequest
    joined = broker.ask_as_admin(heartbeat(SHARE_GROUP, MEMBER, 0, subscribed_topic_names=[TOPIC]), 1)
    epoch = joined.member_epoch

    def is_assigned() -> bool:
        nonlocal epoch
        answer = broker.ask_as_admin(heartbeat(SHARE_GROUP, MEMBER, epoch), 1)
        assert not answer.error_code, answer
        epoch = answer.member_epoch
        return answer.assignment is not None and bool(answer.assignment.topic_partitions)

    broker.wait_until(is_assigned)
