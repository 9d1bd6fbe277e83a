"""Members of a share group with a dead-letter queue (KIP-932, KIP-1191) in a random run.

Each fetches records of one assigned partition, holds them for a while, and accepts, releases or rejects each; some are
forgotten until their lock is over. What is rejected, and answered without an error, must have a dead letter at the end.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from broker_sim.chaos.random_run.clients.coordinated_client import SHORT_REST_MS, AgainError, CoordinatedClient
from broker_sim.chaos.random_run.clients.group_member import LONGEST_PARKED_MS, WRONG_BROKER
from broker_sim.chaos.random_run.clients.modern_member import FENCED, JOINS
from broker_sim.chaos.random_run.schedule import TOPIC
from broker_sim.cluster.virtual.invariants import violated
from broker_sim.errors import ErrorCode
from broker_sim.protocol import messages
from broker_sim.share.partition.record_state import AcknowledgeType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker_sim.chaos.random_run.clients.shared_state import SharedState

SHARE_GROUP: Final = "share-group"
DEAD_LETTERS: Final = "dlq.topic"
LONGEST_WORK_MS: Final = 300
FORGETS_SHARE: Final = 0.1
"""Share of fetches whose records are never acknowledged."""
MAX_WAIT_MS: Final = 200
_KINDS: Final = (AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT)
_WEIGHTS: Final = (4, 2, 4)
Fetch = messages.ShareFetchRequest
Acknowledge = messages.ShareAcknowledgeRequest


class ShareMember(CoordinatedClient):
    """One member; each of its share sessions is one fetch and one acknowledgement."""

    parked_ms = LONGEST_PARKED_MS

    def __init__(self, shared: SharedState, number: int) -> None:
        super().__init__(shared, f"share-member-{number}", f"share/{number}")
        self._epoch = JOINS
        self._assigned: tuple[int, ...] = ()
        self._topic_id = b""

    async def _live(self) -> None:
        while True:
            await self._repeat(self._send_heartbeat)
            for partition in self._assigned:
                with suppress(AgainError):
                    await self._consume(partition)
                await self._rest(self._rest_ms)

    async def _send_heartbeat(self) -> None:
        """Send a heartbeat; it names the topic, so that each answer tells the assignment."""
        request = messages.ShareGroupHeartbeatRequest(SHARE_GROUP, self._name, self._epoch)
        request.subscribed_topic_names = [TOPIC]
        response = await self._ask_coordinator(SHARE_GROUP, request)
        error = ErrorCode(response.error_code)
        if error in WRONG_BROKER:
            self._forget(SHARE_GROUP)
        elif error in FENCED:
            self._epoch = JOINS
        elif error:
            violated("errors-are-expected", f"{self._name} got {error.name}")
        if error:
            raise AgainError
        self._epoch = response.member_epoch
        if response.assignment is not None:
            topics = response.assignment.topic_partitions
            self._assigned = tuple(number for topic in topics for number in topic.partitions)
            self._topic_id = topics[0].topic_id if topics else b""
        self._record(self._name, self._epoch, *self._assigned)

    async def _consume(self, partition: int) -> None:
        leader, _ = self._leader(partition)
        fetch = Fetch(
            SHARE_GROUP,
            self._name,
            share_session_epoch=0,
            max_wait_ms=MAX_WAIT_MS,
            min_bytes=1,
            max_bytes=1_000_000,
            max_records=self._chance.choice((1, 5, 500)),
            batch_size=500,
            topics=[Fetch.FetchTopic(self._topic_id, [Fetch.FetchPartition(partition)])],
        )
        answers = await self._ask_leader(leader, partition, fetch)
        ranges = [each for answer in answers for each in answer.acquired_records]
        self._record(self._name, partition, *((each.first_offset, each.last_offset) for each in ranges))
        if not ranges or self._is_drawn(FORGETS_SHARE):
            return
        await self._rest(LONGEST_WORK_MS)
        await self._acknowledge(leader, partition, ranges)

    async def _acknowledge(self, leader: int, partition: int, ranges: Sequence[Any]) -> None:
        batches = [
            Acknowledge.AcknowledgementBatch(
                each.first_offset,
                each.last_offset,
                self._chance.choices(_KINDS, _WEIGHTS, k=each.last_offset - each.first_offset + 1),
            )
            for each in ranges
        ]
        topic = Acknowledge.AcknowledgeTopic(self._topic_id, [Acknowledge.AcknowledgePartition(partition, batches)])
        await self._ask_leader(leader, partition, Acknowledge(SHARE_GROUP, self._name, 1, topics=[topic]))
        self._shared.rejected.update(
            (partition, offset)
            for batch in batches
            for offset, kind in enumerate(batch.acknowledge_types, batch.first_offset)
            if kind == AcknowledgeType.REJECT
        )

    async def _ask_leader(self, leader: int, partition: int, message: Any) -> list[Any]:
        """Return the partition's part of the response. Raises AgainError without an answer, and for an error."""
        leaders = self._leaders
        leader_and_epoch = leaders.pop(partition, None)
        response = await self._ask(leader, message, SHORT_REST_MS, self.parked_ms)
        answers = [each for topic in response.responses for each in topic.partitions]
        if response.error_code or any(each.error_code for each in answers):
            raise AgainError
        if leader_and_epoch is not None:
            leaders[partition] = leader_and_epoch
        return answers
