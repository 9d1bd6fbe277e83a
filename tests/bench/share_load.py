"""A member of a share group without a client library, so that what is measured is the brokers.

It reads one partition, whose leader it is connected to. Each of its fetches acknowledges what the one before has got.
"""

import asyncio
import uuid
from collections.abc import Sequence
from typing import Any

from broker_connection import NONE, RETRY_S, Connection, coordinator_of
from group_load import TRANSIENT

from broker_sim.protocol import messages
from broker_sim.protocol.api_keys import ApiKey

GROUP_RESOURCE, SET = 32, 0
ACCEPT, REJECT = 1, 3
FETCH_BYTES = 10_000_000
TRIES = 1_000
WAIT_MS, FIRST_WAIT_MS = 10_000, 100
MOST_LOCKS = 10_000
"""Maximum number of a partition's records in flight: the highest value Kafka allows."""
CONFIGS = {"group.share.max.partition.max.record.locks": str(MOST_LOCKS)}
"""Configurations of the brokers that let groups have that many."""
GROUP_CONFIGS = {"share.auto.offset.reset": "earliest", "share.partition.max.record.locks": str(MOST_LOCKS)}

Address = tuple[str, int]
Acknowledged = list[tuple[int, int, list[int]]]
"""First offset, last offset, and what is said of all these records together or of each."""


class ShareMember:
    """One member of a group that nobody else is in."""

    def __init__(self, topic_id: bytes, partition: int, leader: Connection) -> None:
        """The connection is its own: kfake has one session on each."""
        self.group_id, self.member_id = f"bench-{uuid.uuid4().hex[:8]}", str(uuid.uuid4())
        self.fetches = 0
        self._topic_id, self._partition, self._leader = topic_id, partition, leader

    async def join(self, servers: Sequence[Address], topic: str) -> None:
        """Join the group; its coordinator begins the state of its share partitions then."""
        connection = await Connection.open(servers[0])
        request = messages.IncrementalAlterConfigsRequest
        changes = [request.AlterableConfig(*item[:1], SET, item[1]) for item in GROUP_CONFIGS.items()]
        resource = request.AlterConfigsResource(GROUP_RESOURCE, self.group_id, changes)
        altered = await connection.request(ApiKey.INCREMENTAL_ALTER_CONFIGS, request([resource]))
        assert altered.responses[0].error_code == NONE, altered
        connection.close()
        coordinator = await Connection.open(await coordinator_of(servers, self.group_id))
        heartbeat = messages.ShareGroupHeartbeatRequest(self.group_id, self.member_id, 0, None, [topic])
        for _ in range(TRIES):
            beaten = await coordinator.request(ApiKey.SHARE_GROUP_HEARTBEAT, heartbeat)
            if beaten.error_code not in TRANSIENT:
                break
            await asyncio.sleep(RETRY_S)
        assert beaten.error_code == NONE, beaten
        coordinator.close()

    async def fetch(
        self, acknowledged: Acknowledged, max_records: int, *, is_limit: bool, wait_ms: int = WAIT_MS
    ) -> list[Any]:
        """Return the acquired ranges; none before the state of the share partition is there."""
        request = messages.ShareFetchRequest
        asked = []
        if acknowledged or not self.fetches:
            batches = [request.AcknowledgementBatch(*each) for each in acknowledged]
            partition = request.FetchPartition(self._partition, 0, batches)
            asked = [request.FetchTopic(self._topic_id, [partition])]
        answer = await self._leader.request(
            ApiKey.SHARE_FETCH,
            request(
                group_id=self.group_id,
                member_id=self.member_id,
                share_session_epoch=self.fetches,
                max_wait_ms=wait_ms,
                min_bytes=1,
                max_bytes=FETCH_BYTES,
                max_records=max_records,
                batch_size=max_records,
                share_acquire_mode=int(is_limit),
                topics=asked,
            ),
        )
        assert answer.error_code == NONE, answer
        self.fetches += 1
        found = [each for topic in answer.responses for each in topic.partitions]
        assert not any(each.acknowledge_error_code for each in found), answer
        return [one for each in found for one in each.acquired_records]

    def close(self) -> None:
        """End its connection, and with that its session."""
        self._leader.close()

    async def first_fetch(self, max_records: int, *, is_limit: bool) -> list[Any]:
        """Fetch until records come."""
        while True:
            acquired = await self.fetch([], max_records, is_limit=is_limit, wait_ms=FIRST_WAIT_MS)
            if acquired:
                return acquired
            await asyncio.sleep(RETRY_S)


def accept(acquired: Sequence[Any]) -> Acknowledged:
    """Accept ranges as a whole."""
    return [(one.first_offset, one.last_offset, [ACCEPT]) for one in acquired]


def accept_and_reject(acquired: Sequence[Any]) -> Acknowledged:
    """Accept every other record, and reject the others."""
    return [
        (
            one.first_offset,
            one.last_offset,
            [REJECT if offset % 2 else ACCEPT for offset in range(one.first_offset, one.last_offset + 1)],
        )
        for one in acquired
    ]


def count(acquired: Sequence[Any]) -> int:
    """Return how many records that are."""
    return sum(one.last_offset - one.first_offset + 1 for one in acquired)
