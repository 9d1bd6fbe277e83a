"""A share group of a scenario: its members, its administration, and observations of responses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker_sim.protocol import messages
from broker_sim_integration.clients.admin_requests import GROUP, SET, alter
from broker_sim_integration.observations import Observation
from broker_sim_integration.scenarios.families.share.support.share_member import ShareMember, SharePartition
from broker_sim_integration.scenarios.helpers.groups import GroupUnderTest, groups_on
from broker_sim_integration.scenarios.helpers.observe import values_of
from broker_sim_integration.scenarios.helpers.publication import Publication

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from broker_sim_integration.clients.raw_client import Reply
    from broker_sim_integration.clients.topics import Topic
    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.observations import Timing

EARLIEST: Final = {"share.auto.offset.reset": "earliest"}
DESCRIBE_VERSION: Final = 1
OFFSETS_VERSION: Final = 1
ALTER_OFFSETS_VERSION: Final = 0
DELETE_OFFSETS_VERSION: Final = 0
INITIAL_WAIT_MS: Final = 500
"""Maximum wait in ms of the first share fetch, during which the leader reads the share partition's state."""


class ShareGroupUnderTest(GroupUnderTest):
    """A share group whose coordinator is the first broker, with partitions that the first broker leads."""

    def share_member(self, name: str, broker: int | None = None) -> ShareMember:
        """Return a new member with a connection of its own to `broker` that has not joined yet."""
        cluster = self._cluster
        leader = cluster.connect(cluster.first if broker is None else broker)
        return ShareMember(self.name, f"id-of-{name}", leader, self.tool)

    def begin(self, *topics: Topic) -> ShareMember:
        """Join a first member, and wait until all share partitions of the topics have state and are assigned to it."""
        member = self.share_member("first")
        names = [topic.name for topic in topics]
        joined = member.heartbeat(names)
        assert not joined.message.error_code, joined.message
        wanted = sum(len(topic.replicas) for topic in topics)

        def has_state() -> bool:
            # If the first attempt failed, a heartbeat starts the next one.
            return not member.heartbeat().message.error_code and self._initialized() == wanted

        self._cluster.wait_until(has_state, f"{self.name} has share partitions")
        assigned = member.heartbeat()
        assert not assigned.message.error_code, assigned.message
        return member

    def warm(self, *partitions: SharePartition) -> None:
        """Make the leader read the state of share partitions that have no records yet."""
        member = self.share_member("warm")
        member.fetch(*partitions, max_wait_ms=INITIAL_WAIT_MS)
        member.end_session()

    def configure(self, configs: Mapping[str, str]) -> None:
        """Set configurations of the group; returns when all brokers apply them."""
        configure_groups(self._cluster, [self], configs)

    def _initialized(self) -> int:
        (group,) = self.describe_offsets(None).message.groups
        return sum(len(topic.partitions) for topic in group.topics)

    def describe_offsets(
        self, topics: Mapping[str, Sequence[int]] | None, version: int = OFFSETS_VERSION
    ) -> Reply[messages.DescribeShareGroupOffsetsResponse]:
        """Describe the start offsets of these partitions, by topic, or of all partitions."""
        request = messages.DescribeShareGroupOffsetsRequest
        asked = request.DescribeShareGroupOffsetsRequestGroup(self.name, None)
        if topics is not None:
            asked.topics = [
                request.DescribeShareGroupOffsetsRequestTopic(name, list(partitions))
                for name, partitions in topics.items()
            ]
        return self.tool.request(request([asked]), version, messages.DescribeShareGroupOffsetsResponse)

    def alter_offsets(self, offsets: Mapping[str, Mapping[int, int]]) -> Reply[messages.AlterShareGroupOffsetsResponse]:
        """Set start offsets by topic and partition."""
        request = messages.AlterShareGroupOffsetsRequest
        topics = [
            request.AlterShareGroupOffsetsRequestTopic(
                name,
                [
                    request.AlterShareGroupOffsetsRequestPartition(partition, offset)
                    for partition, offset in partitions.items()
                ],
            )
            for name, partitions in offsets.items()
        ]
        return self.tool.request(
            request(self.name, topics), ALTER_OFFSETS_VERSION, messages.AlterShareGroupOffsetsResponse
        )

    def delete_offsets(self, topics: Iterable[str]) -> Reply[messages.DeleteShareGroupOffsetsResponse]:
        """Delete the share group state of these topics."""
        request = messages.DeleteShareGroupOffsetsRequest
        named = [request.DeleteShareGroupOffsetsRequestTopic(name) for name in topics]
        return self.tool.request(
            request(self.name, named), DELETE_OFFSETS_VERSION, messages.DeleteShareGroupOffsetsResponse
        )

    def described(self) -> Reply[messages.ShareGroupDescribeResponse]:
        """Describe the group."""
        return describe_share_groups(self, self.name)


def describe_share_groups(group: GroupUnderTest, *names: str) -> Reply[messages.ShareGroupDescribeResponse]:
    """Describe share groups at the coordinator of `group`."""
    return group.tool.request(
        messages.ShareGroupDescribeRequest(list(names)), DESCRIBE_VERSION, messages.ShareGroupDescribeResponse
    )


def share_groups_on(
    cluster: ClusterUnderTest, count: int = 1, configs: Mapping[str, str] | None = None
) -> list[ShareGroupUnderTest]:
    """Return share groups whose coordinator is the first broker, with these group configurations.

    A scenario has to request all its groups in one call: the next call returns the same groups.
    """
    found = [
        ShareGroupUnderTest(cluster, group.name, group.coordinator)
        for group in groups_on(cluster, cluster.first, count)
    ]
    if configs:
        configure_groups(cluster, found, configs)
    cluster.topics.settle()  # the offsets topic may just have been created
    return found


def configure_groups(cluster: ClusterUnderTest, groups: Iterable[GroupUnderTest], configs: Mapping[str, str]) -> None:
    """Set configurations of groups; returns when all brokers apply them."""
    changes = [(name, SET, value) for name, value in configs.items()]
    reply = alter(cluster.clients.ask(cluster.first), *((GROUP, group.name, changes) for group in groups))
    assert not any(result.error_code for result in reply.message.responses), reply.message
    Publication(cluster).wait()


def acquired(
    step: str, cluster: ClusterUnderTest, reply: Reply[messages.ShareFetchResponse], timing: Timing, *, attempt: int = 1
) -> Observation:
    """Observe the response to a share fetch, partition by partition."""
    message = reply.message
    rows = [
        (_label(cluster, topic.topic_id, found.partition_index), found)
        for topic in message.responses
        for found in topic.partitions
    ]
    ranges = [one for _, found in rows for one in found.acquired_records]
    fields: dict[str, Any] = {
        "lock_timeout_ms": message.acquisition_lock_timeout_ms,
        "partitions": sorted(label for label, _ in rows),
        "endpoints": cluster.brokers.roles(one.node_id for one in message.node_endpoints),
    }
    for label, found in sorted(rows, key=lambda row: row[0]):
        fields |= {
            f"{label}: error": [found.error_code, found.error_message],
            f"{label}: acknowledged": [found.acknowledge_error_code, found.acknowledge_error_message],
            f"{label}: leader": [
                cluster.brokers.role(found.current_leader.leader_id),
                found.current_leader.leader_epoch,
            ],
            f"{label}: acquired": [
                [one.first_offset, one.last_offset, one.delivery_count] for one in found.acquired_records
            ],
            f"{label}: values": [value.decode(errors="backslashreplace") for value in values_of(_bytes(found.records))],
        }
    return Observation(
        step,
        error_code=message.error_code,
        base_offset=ranges[0].first_offset if len(rows) == 1 and ranges else None,
        records=sum(one.last_offset - one.first_offset + 1 for one in ranges),
        elapsed_ms=reply.elapsed_ms,
        answered_ms=reply.answered_ms,
        timing=timing,
        attempt=attempt,
        fields=fields,
    )


def acknowledged(
    step: str, cluster: ClusterUnderTest, reply: Reply[messages.ShareAcknowledgeResponse], timing: Timing
) -> Observation:
    """Observe the response to an acknowledgement, partition by partition."""
    message = reply.message
    rows = sorted(
        (
            _label(cluster, topic.topic_id, found.partition_index),
            found.error_code,
            found.error_message,
            cluster.brokers.role(found.current_leader.leader_id),
        )
        for topic in message.responses
        for found in topic.partitions
    )
    return Observation(
        step,
        error_code=message.error_code,
        elapsed_ms=reply.elapsed_ms,
        answered_ms=reply.answered_ms,
        timing=timing,
        fields={
            "error_message": message.error_message,
            "lock_timeout_ms": message.acquisition_lock_timeout_ms,
            "endpoints": cluster.brokers.roles(one.node_id for one in message.node_endpoints),
            **{label: list(row) for label, *row in rows},
        },
    )


def _label(cluster: ClusterUnderTest, topic_id: bytes, partition: int) -> str:
    """Return a name of the partition that is the same on both sides."""
    ids = [topic.topic_id for topic in cluster.topics.created]
    number = ids.index(bytes(topic_id)) + 1 if bytes(topic_id) in ids else 0
    return f"topic {number}-{partition}" if number else f"unknown topic-{partition}"


def _bytes(records: Any) -> bytes:
    return bytes(records or b"")
