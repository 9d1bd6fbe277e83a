"""The groups of one partition of `__consumer_offsets`; mirrors `GroupCoordinatorShard`.

What changes a group is a record. Operations return the records that they need; the runtime appends them
and replays them here, as it replays those that it loads from the log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.coordinator.result import Result
from broker_sim.errors import ErrorCode
from broker_sim.group import record_messages
from broker_sim.group.offset_metadata import OffsetMetadataManager
from broker_sim.protocol import messages
from broker_sim.protocol.record_batch import NO_PRODUCER_ID
from broker_sim.runtime.event_log import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker_sim.coordinator.result import ShardRuntime
    from broker_sim.group.classic.classic_groups import ClassicGroups
    from broker_sim.group.consumer.consumer_groups import ConsumerGroups
    from broker_sim.group.environment import GroupEnvironment
    from broker_sim.group.group import Group
    from broker_sim.group.migration import Migration
    from broker_sim.group.records import GroupRecord

__all__ = ["GroupShard"]

log = get_logger(__name__)

NOT_FOUND_VERSION: Final = 6
"""The version of DescribeGroups from which on a group that does not exist is an error."""
DEAD: Final = "Dead"
Described = messages.DescribeGroupsResponse.DescribedGroup


class GroupShard:
    """The groups and offsets of one partition.

    The coordinator completes a new shard with the two kinds of groups, `classic` and `consumer`, and
    with what moves groups between them.
    """

    classic: ClassicGroups
    consumer: ConsumerGroups
    migration: Migration

    def __init__(
        self, partition: int, environment: GroupEnvironment, runtime: ShardRuntime
    ) -> None:
        self.partition = partition
        self.environment = environment
        self.runtime = runtime
        self.groups: dict[str, Group] = {}
        self.log = log.bind(
            environment.clock, node=f"broker-{environment.broker_id}", shard=partition
        )
        self.offset_metadata = OffsetMetadataManager(
            environment, runtime, self.groups, self._get_or_create, self.log
        )
        self.offsets = self.offset_metadata.offsets
        self.transactional_offsets = self.offset_metadata.transactional_offsets

    def _get_or_create(self, group_id: str) -> Group:
        return self.classic.get_or_create(group_id)

    @property
    def is_active(self) -> bool:
        """Whether this broker still leads the partition."""
        return self.runtime.is_active

    def write(
        self,
        records: Sequence[GroupRecord],
        on_done: Callable[[ErrorCode], object],
        *,
        replay: bool = True,
        on_appended: Callable[[], object] | None = None,
    ) -> None:
        """Append the records and replay them at once; `on_done(NONE)` is called when they are committed."""
        if not self.is_active:
            on_done(ErrorCode.NOT_COORDINATOR)
            return
        self.runtime.perform(
            lambda: Result(
                None, records, replays=replay, on_appended=on_appended, on_settled=on_done
            )
        )

    def describe(self, group_id: str, api_version: int) -> Described:
        """Return what DescribeGroups answers: one that is not a classic group is dead."""
        group = self.groups.get(group_id)
        described = None if group is None else group.describe()
        if described is not None:
            return described
        if api_version < NOT_FOUND_VERSION:
            return Described(group_id=group_id, group_state=DEAD)
        text = (
            f"Group {group_id} not found."
            if group is None
            else f"Group {group_id} is not a classic group."
        )
        return Described(ErrorCode.GROUP_ID_NOT_FOUND, text, group_id, DEAD)

    # -- replay ---------------------------------------------------------------------------------

    def replay(
        self, record: GroupRecord, record_offset: int, producer_id: int = NO_PRODUCER_ID
    ) -> None:
        """Take in a record that is in the log at that offset, in a transaction if a producer is named."""
        key, value = record.key, record.value
        producer = None if producer_id == NO_PRODUCER_ID else producer_id
        if isinstance(key, record_messages.OffsetCommitKey):
            assert value is None or isinstance(value, record_messages.OffsetCommitValue)
            self.offset_metadata.replay(key, value, record_offset, producer)
        elif isinstance(key, record_messages.LegacyOffsetCommitKey):
            assert value is None or isinstance(value, record_messages.LegacyOffsetCommitValue)
            self.offset_metadata.replay(*_converted(key, value), record_offset, producer)
        elif isinstance(key, record_messages.GroupMetadataKey):
            self.classic.replay(record)
        else:
            self.consumer.replay(record)

    def replay_marker(self, producer_id: int, marker_offset: int, *, is_commit: bool) -> None:
        """Take in the marker at that offset of the log, which ends the producer's transaction."""
        self.offset_metadata.replay_marker(producer_id, marker_offset, is_commit=is_commit)

    # -- roles ----------------------------------------------------------------------------------

    def on_loaded(self) -> None:
        """Begin to work after the whole log was replayed."""
        for group in list(self.groups.values()):
            group.on_loaded()

    def on_unloaded(self) -> None:
        """Stop: another broker is the leader now, or the topic is gone."""
        for group in list(self.groups.values()):
            group.on_unloaded()


def _converted(
    key: record_messages.LegacyOffsetCommitKey,
    value: record_messages.LegacyOffsetCommitValue | None,
) -> tuple[record_messages.OffsetCommitKey, record_messages.OffsetCommitValue | None]:
    """Return a record of Kafka 0.8 as it is written now."""
    converted = record_messages.OffsetCommitKey(key.group, key.topic, key.partition)
    if value is None:
        return converted, None
    return converted, record_messages.OffsetCommitValue(
        value.offset, -1, value.metadata, value.commit_timestamp
    )
