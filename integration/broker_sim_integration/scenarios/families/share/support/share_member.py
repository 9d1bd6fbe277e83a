"""A member of a share group, request by request: heartbeats, share fetches and acknowledgements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, TypedDict, Unpack

from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from broker_sim_integration.clients.broker_client import BrokerClient
    from broker_sim_integration.clients.raw_client import Pending, RawConnection, Reply
    from broker_sim_integration.clients.topics import Topic

    Acknowledged = Mapping["SharePartition", Sequence["Ack"]]

__all__ = [
    "ACCEPT",
    "FINAL_EPOCH",
    "GAP",
    "RECORD_LIMIT",
    "REJECT",
    "RELEASE",
    "RENEW",
    "Ack",
    "FetchOptions",
    "ShareMember",
    "SharePartition",
]

HEARTBEAT_VERSION: Final = 1
SHARE_VERSION: Final = 2
"""Version of ShareFetch and of ShareAcknowledge."""
LEAVES: Final = -1
FINAL_EPOCH: Final = -1
RECORD_LIMIT: Final = 1
GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
MEBIBYTE: Final = 1 << 20


class SharePartition(NamedTuple):
    """A partition that a member fetches."""

    topic: Topic
    partition: int = 0


class Ack(NamedTuple):
    """An acknowledgement of a range of offsets, both inclusive: one type for all records, or one for each."""

    first_offset: int
    last_offset: int
    types: tuple[int, ...]


class FetchOptions(TypedDict, total=False):
    """The options of `ShareMember.start_fetch`."""

    acknowledged: Acknowledged
    forgotten: Sequence[SharePartition]
    epoch: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    max_records: int
    batch_size: int
    acquire_mode: int
    renews: bool
    version: int


@dataclass
class ShareMember:
    """A member that fetches over `client`, sends heartbeats over `coordinator`, and maintains both its epochs."""

    group: str
    member_id: str
    client: BrokerClient
    coordinator: RawConnection
    epoch: int = 0
    session_epoch: int = 0

    def heartbeat(
        self, topics: Sequence[str] | None = None, *, epoch: int | None = None, rack_id: str | None = None
    ) -> Reply[messages.ShareGroupHeartbeatResponse]:
        """Send a heartbeat with the changed fields; in epoch 0 it joins the group."""
        request = messages.ShareGroupHeartbeatRequest(
            self.group,
            self.member_id,
            self.epoch if epoch is None else epoch,
            rack_id=rack_id,
            subscribed_topic_names=None if topics is None else list(topics),
        )
        reply = self.coordinator.request(request, HEARTBEAT_VERSION, messages.ShareGroupHeartbeatResponse)
        if not reply.message.error_code:
            self.epoch = max(0, reply.message.member_epoch)
        return reply

    def leave(self) -> Reply[messages.ShareGroupHeartbeatResponse]:
        """Leave the group."""
        return self.heartbeat(epoch=LEAVES)

    def start_fetch(
        self,
        *partitions: SharePartition,
        acknowledged: Acknowledged | None = None,
        forgotten: Sequence[SharePartition] = (),
        epoch: int | None = None,
        max_wait_ms: int = 0,
        min_bytes: int = 1,
        max_bytes: int = MEBIBYTE,
        max_records: int = 500,
        batch_size: int = 500,
        acquire_mode: int = 0,
        renews: bool = False,
        version: int = SHARE_VERSION,
    ) -> Pending[messages.ShareFetchResponse]:
        """Send a share fetch with the session's new partitions and with acknowledgements."""
        request = messages.ShareFetchRequest
        acknowledged = acknowledged or {}
        topics: dict[bytes, messages.ShareFetchRequest.FetchTopic] = {}
        for one in dict.fromkeys((*partitions, *acknowledged)):
            asked = topics.setdefault(one.topic.topic_id, request.FetchTopic(one.topic.topic_id))
            batches = [
                request.AcknowledgementBatch(ack.first_offset, ack.last_offset, list(ack.types))
                for ack in acknowledged.get(one, ())
            ]
            asked.partitions.append(request.FetchPartition(one.partition, acknowledgement_batches=batches))
        sent = request(
            group_id=self.group,
            member_id=self.member_id,
            share_session_epoch=self._next_session_epoch(epoch),
            max_wait_ms=max_wait_ms,
            min_bytes=min_bytes,
            max_bytes=max_bytes,
            max_records=max_records,
            batch_size=batch_size,
            topics=list(topics.values()),
            forgotten_topics_data=[request.ForgottenTopic(one.topic.topic_id, [one.partition]) for one in forgotten],
        )
        if version >= SHARE_VERSION:
            sent.share_acquire_mode, sent.is_renew_ack = acquire_mode, renews
        return self.client.send(sent, version, messages.ShareFetchResponse)

    def fetch(self, *partitions: SharePartition, **options: Unpack[FetchOptions]) -> Reply[messages.ShareFetchResponse]:
        """Send a share fetch and wait for the response."""
        return self.start_fetch(*partitions, **options).result()

    def acknowledge(
        self, acknowledged: Acknowledged, *, epoch: int | None = None, renews: bool = False
    ) -> Reply[messages.ShareAcknowledgeResponse]:
        """Send a ShareAcknowledge request; return the response."""
        request = messages.ShareAcknowledgeRequest
        topics: dict[bytes, messages.ShareAcknowledgeRequest.AcknowledgeTopic] = {}
        for one, acks in acknowledged.items():
            named = request.AcknowledgeTopic(one.topic.topic_id)
            batches = [request.AcknowledgementBatch(ack.first_offset, ack.last_offset, list(ack.types)) for ack in acks]
            topics.setdefault(one.topic.topic_id, named).partitions.append(
                request.AcknowledgePartition(one.partition, batches)
            )
        sent = request(
            group_id=self.group,
            member_id=self.member_id,
            share_session_epoch=self._next_session_epoch(epoch),
            is_renew_ack=renews,
            topics=list(topics.values()),
        )
        return self.client.request(sent, SHARE_VERSION, messages.ShareAcknowledgeResponse)

    def end_session(self, acknowledged: Acknowledged | None = None) -> Reply[messages.ShareFetchResponse]:
        """Send the session's last share fetch; the next one begins a new session."""
        reply = self.fetch(epoch=FINAL_EPOCH, acknowledged=acknowledged or {})
        self.session_epoch = 0
        return reply

    def _next_session_epoch(self, epoch: int | None) -> int:
        """Return `epoch`, or the session's next epoch if it is None."""
        if epoch is not None:
            return epoch
        self.session_epoch += 1
        return self.session_epoch - 1
