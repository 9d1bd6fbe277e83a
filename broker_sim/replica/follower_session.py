"""The fetch session of one follower at its leader (KIP-227): only changes go over the link.

A follower lists a partition only when its fetch of that partition changes, and the leader returns only
partitions that may have changed. The leader holds the partitions in two groups:

* unread: read at every fetch
* idle: the last fetch was at the log end offset and returned no records, and the follower has the current
  high watermark and log start offset, or gets them with the next response

`LeaderReplicas.wake` makes an idle partition unread when an offset of its log, its ISR or its role
changes. Kafka's leaders read all partitions of a session at each fetch, and watch each waiting fetch
under all of them again; so only the cost differs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker_sim.replica.replica import IdleFetch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from broker_sim_purgatory import KeySet

    from broker_sim.metadata.topic_partition import TopicPartition
    from broker_sim.replica.fetch_params import FetchParams, FetchPartition, FetchPartitionData
    from broker_sim.replica.leader_replicas import LeaderReplicas
    from broker_sim.replica.partition import Partition
    from broker_sim.replica.replica import Replica

INITIAL_EPOCH = 0
"""The epoch of the fetch that begins a session."""


class FollowerFetch:
    """A follower's fetch; mirrors `FetchSessionHandler.FetchRequestData`. Read-only."""

    __slots__ = ("epoch", "params", "to_forget", "to_send")

    def __init__(
        self,
        params: FetchParams,
        epoch: int,
        to_send: Sequence[tuple[TopicPartition, FetchPartition]],
        to_forget: Sequence[TopicPartition] = (),
    ) -> None:
        self.params = params
        self.epoch = epoch
        self.to_send = to_send
        self.to_forget = to_forget


class IdlePartition(IdleFetch):
    """A partition of a session that has nothing new for the follower."""

    __slots__ = ("fetch", "replica", "session", "states", "topic_partition")

    def __init__(
        self,
        session: FollowerSession,
        topic_partition: TopicPartition,
        fetch: FetchPartition,
        states: LeaderReplicas,
        replica: Replica,
    ) -> None:
        self.session = session
        self.topic_partition = topic_partition
        self.fetch = fetch
        self.states = states
        self.replica = replica

    @property
    def time_ms(self) -> int:
        """The time of the session's last fetch, in ms."""
        return self.session.fetch_time_ms

    def wake(self) -> None:
        """Make the session's next fetch read the partition again."""
        self.session.wake(self)


class FollowerSession:
    """The partitions that a follower fetches from this broker. Thread rule: the broker's loop."""

    __slots__ = ("_idle", "_news", "fetch_time_ms", "keys", "next_epoch", "unread")

    def __init__(self, keys: KeySet[Any]) -> None:
        self.keys = keys
        """Keys of all partitions, under which the follower's fetches are watched."""
        self.next_epoch = INITIAL_EPOCH + 1
        """The epoch of the follower's next fetch."""
        self.fetch_time_ms = 0
        """Time of the last fetch that counts for the idle partitions, in ms."""
        self.unread: dict[TopicPartition, FetchPartition] = {}
        self._idle: dict[TopicPartition, IdlePartition] = {}
        self._news: dict[TopicPartition, FetchPartitionData] = {}

    def update(self, request: FollowerFetch) -> None:
        """Apply the partitions that a fetch forgets and sends; those it sends are read last."""
        for topic_partition in request.to_forget:
            self._forget(topic_partition)
            self.keys.discard(topic_partition)
        for topic_partition, fetch in request.to_send:
            if not self._forget(topic_partition):
                self.keys.add(topic_partition)
            self.unread[topic_partition] = fetch

    def admit(self, params: FetchParams) -> None:
        """Count the idle partitions as fetched now.

        With an old broker epoch they become unread instead, so that each is answered with the error.
        """
        idle = next(iter(self._idle.values()), None)
        if idle is None:
            return
        if idle.states.metadata.is_stale_epoch(params.replica_id, params.replica_epoch):
            self._wake_all()
        else:
            self.fetch_time_ms = idle.states.clock.now_ms()

    def note_read(
        self,
        params: FetchParams,
        results: Sequence[tuple[TopicPartition, FetchPartitionData]],
        partitions: Mapping[TopicPartition, Partition],
    ) -> None:
        """Store the results of reading the unread partitions; those with nothing new become idle."""
        for topic_partition, data in results:
            self._news[topic_partition] = data
            if data.error_code or data.size_bytes or data.diverging_epoch is not None:
                continue
            fetch = self.unread[topic_partition]
            partition = partitions[topic_partition]
            offsets, states = partition.log.offsets, partition.replica_states
            replica = states.followers.get(params.replica_id)
            if (
                replica is not None
                and fetch.fetch_offset == offsets.local_log.log_end_offset
                and data.high_watermark == offsets.high_watermark
                and data.log_start_offset == offsets.log_start_offset
                and states.may_be_idle(replica)
            ):
                del self.unread[topic_partition]
                idle = IdlePartition(self, topic_partition, fetch, states, replica)
                self._idle[topic_partition] = replica.idle = idle
                self.fetch_time_ms = states.clock.now_ms()

    def answer(
        self, results: Sequence[tuple[TopicPartition, FetchPartitionData]]
    ) -> list[tuple[TopicPartition, FetchPartitionData]]:
        """Return the response: these results, and earlier ones that were not sent yet."""
        news = self._news
        self._news = {}
        news.update(results)
        return list(news.items())

    def wake(self, idle: IdlePartition) -> None:
        """Make the partition unread: it is read again from now on."""
        del self._idle[idle.topic_partition]
        idle.replica.end_idle()
        self.unread[idle.topic_partition] = idle.fetch

    def close(self) -> None:
        """Drop all partitions, because the follower has begun another session."""
        self._wake_all()
        self.unread.clear()
        self.keys.clear()

    def _wake_all(self) -> None:
        for idle in list(self._idle.values()):
            self.wake(idle)

    def _forget(self, topic_partition: TopicPartition) -> bool:
        """Take a partition out; return whether it was in the session."""
        idle = self._idle.get(topic_partition)
        if idle is not None:
            self.wake(idle)
        self._news.pop(topic_partition, None)
        return self.unread.pop(topic_partition, None) is not None
