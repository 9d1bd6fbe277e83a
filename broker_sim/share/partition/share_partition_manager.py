"""The service of share partitions that a broker leads; mirrors `SharePartitionManager`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from broker_sim.errors import NOT_HOSTED_TEXT, ApiError, ErrorCode
from broker_sim.metadata.feature_names import SHARE_VERSION
from broker_sim.runtime.combined_calls import call_all
from broker_sim.share.partition.acknowledgement import ChangeCount
from broker_sim.share.partition.delayed_share_fetch import DelayedShareFetch
from broker_sim.share.partition.record_state import AcknowledgeType
from broker_sim.share.partition.share_partitions import SharePartitions
from broker_sim.share.session.share_sessions import ShareSessions
from broker_sim.share.share_state import SharePartitionKey

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from broker_sim.metadata import MetadataImage
    from broker_sim.metadata.topic_partition import TopicIdPartition
    from broker_sim.replica.metadata_applier import PartitionListeners
    from broker_sim.share.partition.acknowledgement import AcknowledgementBatch
    from broker_sim.share.partition.share_fetch import ShareFetch
    from broker_sim.share.partition.share_partition import SharePartition, SharePartitionEnvironment
    from broker_sim.share.session.share_session import ShareSessionKey

    Errors = Mapping["TopicIdPartition", "ApiError | None"]
    OnAcknowledged = Callable[[Errors], object]


class SharePartitionManager:
    """Serves ShareFetch and ShareAcknowledge. Thread rule: the broker's loop."""

    def __init__(
        self,
        environment: SharePartitionEnvironment,
        listeners: PartitionListeners,
        rng: random.Random,
        max_share_sessions: int,
    ) -> None:
        """Register with `listeners` to learn when the broker resigns as leader; `rng` divides the bytes of fetches."""
        self.settings = environment.settings
        self.waiting_fetches = environment.waiting_fetches
        self.dead_letters = environment.dead_letters
        self.partitions = SharePartitions(environment, listeners)
        self.sessions = ShareSessions(
            max_share_sessions, on_member_leave=self.release_session, on_group_empty=self.partitions.remove_group
        )
        self.acknowledged_records = dict.fromkeys(AcknowledgeType, 0)
        """Number of acknowledged records by type; Kafka's `RecordAcknowledgementsPerSec`."""
        self._rng = rng

    # -- fetch ----------------------------------------------------------------------------------

    def fetch(self, fetch: ShareFetch) -> None:
        """Acquire records for a member, now or when some become available."""
        if fetch.is_empty:
            fetch.maybe_complete({})
            return
        share_partitions: dict[TopicIdPartition, SharePartition] = {}
        keys: list[SharePartitionKey] = []
        for partition in fetch.partitions:
            key = SharePartitionKey.of(fetch.group_id, partition)
            try:
                share_partition = self.partitions.get_or_create(key, partition.topic_partition)
            except ApiError as error:
                fetch.add_erroneous([partition], error)
                continue
            keys.append(key)
            self.partitions.initialize(share_partition, fetch, partition)
            share_partitions[partition] = share_partition
        if fetch.has_error_in_all_partitions:
            fetch.maybe_complete({})
            return
        self.waiting_fetches.add(DelayedShareFetch(fetch, share_partitions, self.partitions, self._rng), keys)

    # -- acknowledgement ------------------------------------------------------------------------

    def acknowledge(
        self,
        session: ShareSessionKey,
        batches: Mapping[TopicIdPartition, Sequence[AcknowledgementBatch]],
        on_done: OnAcknowledged,
    ) -> None:
        """Acknowledge records of a member; answer when all partitions are written.

        If it raises FailedRequestError, `on_done` is not called.
        """
        changes = ChangeCount()

        def acknowledge_one(partition: TopicIdPartition, on_result: Callable[[ApiError | None], object]) -> None:
            key = SharePartitionKey.of(session.group_id, partition)
            share_partition = self.partitions.get(key)
            if share_partition is None:
                on_result(ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, NOT_HOSTED_TEXT))
                return

            def done(error: ApiError | None) -> None:
                if error is None:
                    self._count(batches[partition])
                else:
                    self.partitions.handle_error(key, error)
                on_result(error)

            self.waiting_fetches.announce(key)
            share_partition.acknowledge(session.member_id, batches[partition], changes, done)

        call_all(batches, acknowledge_one, on_done)

    def _count(self, batches: Iterable[AcknowledgementBatch]) -> None:
        for batch in batches:
            types = batch.acknowledge_types
            records = batch.last_offset - batch.first_offset + 1
            for acknowledge_type in set(types):
                count = records if len(types) == 1 else types.count(acknowledge_type)
                self.acknowledged_records[AcknowledgeType(acknowledge_type)] += count

    # -- closing --------------------------------------------------------------------------------

    def release_session(self, session: ShareSessionKey) -> None:
        """Close the session of a member, and release the records that it has acquired."""
        for partition in self.sessions.remove(session):
            key = SharePartitionKey.of(session.group_id, partition)
            share_partition = self.partitions.get(key)
            if share_partition is not None:
                share_partition.release_acquired_records(session.member_id, partial(self._released, key))
                self.waiting_fetches.announce(key)

    def _released(self, key: SharePartitionKey, error: ApiError | None) -> None:
        if error is not None:
            self.partitions.handle_error(key, error)

    def on_image(self, image: MetadataImage) -> None:
        """Close all sessions and share partitions if share groups are disabled in the cluster."""
        if not image.features.get(SHARE_VERSION):
            self.sessions.remove_all()
            self.partitions.remove_all()

    def shutdown(self) -> None:
        """Stop the timer of all locks, as when the broker is killed."""
        self.partitions.environment.lock_timer.shutdown()
