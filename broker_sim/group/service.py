"""The service of a broker's group coordinator; mirrors `GroupCoordinatorService`.

Each method finds the shard of a group (`shards.py`), lets it decide, and answers when the runtime has carried out
the result. `on_error` gets an `ApiError` for the client: errors of the shard, NOT_COORDINATOR,
COORDINATOR_LOAD_IN_PROGRESS, and after a write COORDINATOR_NOT_AVAILABLE.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.coordinator.storage import VerifiedTransaction, coordinator_error
from broker_sim.errors import ApiError, ErrorCode
from broker_sim.group.by_partition import describe_each, groups_by_partition, offsets_partition_hash
from broker_sim.group.consumer.assignors import offered_assignors
from broker_sim.group.consumer.requests import check_heartbeat
from broker_sim.group.modern.settings import GroupSettings
from broker_sim.group.shards import GroupShards
from broker_sim.group.share_service import ShareGroupService
from broker_sim.group.streams.records import UNCERTAIN_EPOCH
from broker_sim.group.streams.requests import check_heartbeat as check_streams_heartbeat
from broker_sim.group.streams.streams_group import NOT_READY, StreamsGroup
from broker_sim.group.streams.topology_descriptions import TopologyDescriptions
from broker_sim.hash_order.hash_codes import string_hash
from broker_sim.hash_order.java_order import copied_capacity, hash_order
from broker_sim.protocol import messages
from broker_sim.runtime.combined_calls import call_all

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from broker_sim.coordinator.broker_context import BrokerContext
    from broker_sim.coordinator.storage import TransactionMarker
    from broker_sim.group.group import GroupClient
    from broker_sim.group.offset_fetch import OffsetQuery
    from broker_sim.group.offsets import OffsetCommit
    from broker_sim.group.other_brokers import ListLatestOffsets, VerifyTransaction
    from broker_sim.group.shard import GroupShard
    from broker_sim.group.streams.streams_groups import StreamsGroupHeartbeatResult
    from broker_sim.log import VerificationGuard
    from broker_sim.metadata import ImageChanges, MetadataImage
    from broker_sim.share.persister.persister import Persister

    OnError = Callable[[ApiError], object]
    OnErrors = Callable[[list[ErrorCode]], object]
    FetchedGroup = messages.OffsetFetchResponse.OffsetFetchResponseGroup


DescribedStreams = messages.StreamsGroupDescribeResponse.DescribedGroup


class StreamsGroupService:
    """Serves the streams groups of this broker. Thread rule: the broker's loop."""

    def __init__(self, broker: BrokerContext, shards: GroupShards) -> None:
        """Serve the streams groups in these shards."""
        self._shards = shards
        self._settings = GroupSettings(broker, StreamsGroup.kind)
        self._is_4_4 = broker.release.is_at_least("4.4")
        self.descriptions = TopologyDescriptions(broker)

    def heartbeat_interval_ms(self, group_id: str) -> int:
        """Return the heartbeat interval of the group's members."""
        return self._settings.heartbeat_interval_ms(group_id)

    def heartbeat(
        self,
        request: messages.StreamsGroupHeartbeatRequest,
        client: GroupClient,
        on_answer: Callable[[StreamsGroupHeartbeatResult], object],
        on_error: Callable[[ApiError], object],
    ) -> None:
        """Serve a member's heartbeat, with which it joins, stays or leaves."""
        try:
            check_streams_heartbeat(request, is_4_4=self._is_4_4)
        except ApiError as error:
            on_error(error)
            return

        def answered(answer: StreamsGroupHeartbeatResult) -> None:
            self.descriptions.maybe_request(answer, request.group_id, client.api_version)
            on_answer(answer)

        self._shards.write(request.group_id, lambda shard: shard.streams.heartbeat(request, client), answered, on_error)

    def describe(
        self, group_ids: Sequence[str], *, with_description: bool = False
    ) -> list[messages.StreamsGroupDescribeResponse.DescribedGroup]:
        """Describe streams groups; a group that cannot be described has its error instead."""

        def describe_one(group_id: str) -> DescribedStreams:
            groups = self._shards.find(group_id).streams
            group = groups.describe(group_id)
            if with_description:
                self.descriptions.attach(group, groups.find_committed(group_id).descriptions)
            return group

        return describe_each(group_ids, self._shards.runtime.partition_for, describe_one, DescribedStreams)

    def update_description(
        self,
        request: messages.StreamsGroupTopologyDescriptionUpdateRequest,
        on_stored: Callable[[], object],
        on_error: Callable[[ApiError], object],
    ) -> None:
        """Store the topology description that a member has sent.

        `on_error` also gets UNSUPPORTED_VERSION, INVALID_REQUEST, GROUP_ID_NOT_FOUND or UNKNOWN_MEMBER_ID. Until it is
        stored, the group's record marks the stored description as uncertain.
        """
        group_id, epoch = request.group_id, request.topology_epoch
        try:
            description = self.descriptions.check(request)
            self._shards.find(group_id).streams.check_description(group_id, request.member_id, epoch)
        except ApiError as error:
            on_error(error)
            return

        def marked_uncertain(_: int) -> None:
            self.descriptions.store(group_id, epoch, description)
            self._shards.write(
                group_id, lambda shard: shard.streams.describe_epoch(group_id, epoch), lambda _: on_stored(), on_error
            )

        self._shards.write(
            group_id, lambda shard: shard.streams.describe_epoch(group_id, UNCERTAIN_EPOCH), marked_uncertain, on_error
        )


Described = messages.DescribeGroupsResponse.DescribedGroup
DescribedConsumers = messages.ConsumerGroupDescribeResponse.DescribedGroup
DeletedGroup = messages.DeleteGroupsResponse.DeletableGroupResult


class GroupCoordinatorService:
    """Serves the groups of this broker. Thread rule: the broker's loop."""

    def __init__(
        self,
        broker: BrokerContext,
        *,
        verify_transaction: VerifyTransaction,
        latest_offsets: ListLatestOffsets,
        persister: Callable[[], Persister],
    ) -> None:
        """Use `persister()` for the states of share partitions."""
        self._verify_transaction = verify_transaction
        self._shards = GroupShards(broker)
        self.counters = self._shards.counters
        self.runtime = self._shards.runtime
        self.shares = ShareGroupService(broker, self._shards, persister, latest_offsets)
        self.streams = StreamsGroupService(broker, self._shards)
        self._assignors = offered_assignors(broker.config)

    # -- look-up --------------------------------------------------------------------------------

    def partition_for(self, group_id: str) -> int:
        """Return the partition number of `__consumer_offsets` that the group id maps to."""
        return self.runtime.partition_for(group_id)

    def shard(self, group_id: str) -> GroupShard:
        """Return the shard of the group, for reading. Raises the `ApiError` that `on_error` would get."""
        return self._shards.find(group_id)

    def shards(self) -> list[GroupShard]:
        """Return the loaded shards, ordered by partition."""
        return self._shards.loaded_shards()

    # -- members ----------------------------------------------------------------------------------

    def join_group(
        self,
        request: messages.JoinGroupRequest,
        client: GroupClient,
        respond: Callable[[messages.JoinGroupResponse], object],
        on_error: OnError,
    ) -> None:
        """Serve JoinGroup; a join that waits is parked with `respond`."""
        self._shards.write(
            request.group_id, lambda shard: shard.join_group(request, client, respond), respond, on_error
        )

    def sync_group(
        self,
        request: messages.SyncGroupRequest,
        respond: Callable[[messages.SyncGroupResponse], object],
        on_error: OnError,
    ) -> None:
        """Serve SyncGroup: answer when the leader has sent the assignments; `respond` as in `join_group`."""
        self._shards.write(request.group_id, lambda shard: shard.sync_group(request, respond), respond, on_error)

    def heartbeat(
        self, request: messages.HeartbeatRequest, on_result: Callable[[ErrorCode], object], on_error: OnError
    ) -> None:
        """Serve Heartbeat: extend the session, and return NONE or REBALANCE_IN_PROGRESS."""
        self._shards.write(request.group_id, lambda shard: shard.heartbeat(request), on_result, on_error)

    def leave_group(
        self,
        group_id: str,
        members: Sequence[messages.LeaveGroupRequest.MemberIdentity],
        on_left: Callable[[list[messages.LeaveGroupResponse.MemberResponse]], object],
        on_error: OnError,
    ) -> None:
        """Remove members from a group; `on_left` gets the outcome of each."""
        self._shards.write(group_id, lambda shard: shard.leave_group(group_id, members), on_left, on_error)

    def remove_member(self, group_id: str, member_id: str) -> None:
        """Remove a member from a group of any type, as if it had left."""
        self._shards.write(
            group_id, lambda shard: shard.remove_member(group_id, member_id), lambda _: None, lambda _: None
        )

    def rebalance(self, group_id: str, on_result: Callable[[ErrorCode], object], on_error: OnError) -> None:
        """Begin a rebalance of a group of any type."""
        self._shards.write(group_id, lambda shard: shard.rebalance(group_id), on_result, on_error)

    def consumer_group_heartbeat(
        self,
        request: messages.ConsumerGroupHeartbeatRequest,
        client: GroupClient,
        respond: Callable[[messages.ConsumerGroupHeartbeatResponse], object],
        on_error: OnError,
    ) -> None:
        """Serve the heartbeat of a consumer group's member, with which it joins, stays or leaves."""
        try:
            check_heartbeat(request, client.api_version, self._assignors)
        except ApiError as error:
            on_error(error)
            return
        self._shards.write(request.group_id, lambda shard: shard.consumer.heartbeat(request, client), respond, on_error)

    # -- offsets: an empty group id is valid -----------------------------------------------------

    def offset_commit(self, commit: OffsetCommit, on_errors: OnErrors, on_error: OnError) -> None:
        """Commit offsets; `on_errors` gets an error code for each."""
        self.runtime.write(commit.group_id, lambda shard: shard.offset_commit(commit), on_errors, on_error)

    def txn_offset_commit(
        self,
        commit: OffsetCommit,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        on_errors: OnErrors,
        on_error: OnError,
    ) -> None:
        """Commit offsets in a transaction, after its coordinator has verified or added the group's partition."""
        group_id = commit.group_id
        if not group_id:
            on_error(ApiError(ErrorCode.INVALID_GROUP_ID))
            return

        def verified(error_code: ErrorCode, guard: VerificationGuard | None) -> None:
            if error_code:
                on_error(ApiError(coordinator_error(error_code)))
                return
            self.runtime.write(
                group_id,
                lambda shard: shard.offset_metadata.commit_transactional(commit),
                on_errors,
                on_error,
                VerifiedTransaction(producer_id, producer_epoch, guard),
            )

        self._verify_transaction(
            self.partition_for(group_id), transactional_id, producer_id, producer_epoch, commit.api_version, verified
        )

    def complete_transaction(
        self, partition: int, marker: TransactionMarker, on_done: Callable[[ErrorCode], object]
    ) -> None:
        """Write a transaction's marker to a partition of `__consumer_offsets`, which commits or drops its offsets.

        `on_done` gets NONE when the marker is committed, otherwise the error for WriteTxnMarkers, such as
        NOT_LEADER_OR_FOLLOWER, or REQUEST_TIMED_OUT after `offsets.commit.timeout.ms`.
        """
        try:
            context = self.runtime.get(partition)
        except ApiError:
            on_done(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return
        context.complete_transaction(marker, on_done)

    def offset_fetch(self, query: OffsetQuery, on_group: Callable[[FetchedGroup], object], on_error: OnError) -> None:
        """Return a group's committed offsets at once, or for `require_stable` the newest ones when committed."""
        group_id = query.group.group_id
        if query.require_stable:
            self.runtime.write(group_id, lambda shard: shard.offset_metadata.fetch(query), on_group, on_error)
            return
        try:
            result = self.runtime.find(group_id).shard.offset_metadata.fetch(query)
        except ApiError as error:
            on_error(error)
            return
        assert result.response is not None
        on_group(result.response)

    def offset_delete(
        self, group_id: str, partitions: Sequence[tuple[str, int]], on_errors: OnErrors, on_error: OnError
    ) -> None:
        """Delete offsets of a group; `on_errors` gets an error code for each partition."""
        self._shards.write(
            group_id, lambda shard: shard.offset_metadata.delete(group_id, partitions), on_errors, on_error
        )

    # -- administration -------------------------------------------------------------------------

    def delete_groups(self, group_ids: Iterable[str], on_results: Callable[[list[DeletedGroup]], object]) -> None:
        """Delete groups, with one write per partition; `on_results` gets the results of all groups at once.

        For share groups, the states of their share partitions are deleted first; if that fails, the group is kept.
        """
        call_all(
            map(tuple, groups_by_partition(group_ids, self.partition_for)),
            self._delete_part,
            lambda parts: on_results([DeletedGroup(*entry) for errors in parts.values() for entry in errors.items()]),
        )

    def _delete_part(self, group_ids: Sequence[str], on_errors: Callable[[dict[str, ErrorCode]], object]) -> None:
        """Delete groups of one partition; `on_errors` gets an error code for each group."""

        def deleted(errors: dict[str, ErrorCode]) -> None:
            for group_id, error_code in errors.items():
                if not error_code:
                    self.streams.descriptions.forget(group_id)
            on_errors(errors)

        def states_deleted(refusals: dict[str, ErrorCode]) -> None:
            deletable = [group_id for group_id in group_ids if group_id not in refusals]
            # The orders are those of Kafka's set and maps.
            deletable_in_order = hash_order(deletable, string_hash, copied_capacity(len(group_ids)))
            refused_errors = {group_id: refusals[group_id] for group_id in hash_order(refusals, string_hash)}
            if not deletable_in_order:
                deleted(refused_errors)
                return
            self.runtime.write(
                deletable_in_order[0],
                lambda shard: shard.offset_metadata.delete_groups(deletable_in_order),
                lambda errors: deleted({**refused_errors, **errors}),
                lambda error: deleted({**refused_errors, **dict.fromkeys(deletable_in_order, error.error_code)}),
            )

        self.shares.delete_states(
            group_ids,
            states_deleted,
            lambda error: deleted(dict.fromkeys(hash_order(group_ids, string_hash), error.error_code)),
        )

    def list_groups(
        self, states: Collection[str], types: Collection[str]
    ) -> list[messages.ListGroupsResponse.ListedGroup]:
        """Return the groups with one of these states and types, given in lower case; empty means all.

        Raises `ApiError` COORDINATOR_LOAD_IN_PROGRESS while a partition is being loaded.
        """
        if self.runtime.is_loading:
            raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        shards = {shard.partition: shard for shard in self.shards()}
        # Kafka has its coordinators in a `ConcurrentHashMap`.
        partitions = hash_order(shards, offsets_partition_hash, copied_capacity(len(shards)))
        return [
            messages.ListGroupsResponse.ListedGroup(
                group.group_id, group.protocol_type, group.state_name, group.group_type
            )
            for partition in partitions
            for group in shards[partition].groups.all_committed()
            if (not states or _filter_name(group.state_name) in states) and (not types or group.group_type in types)
        ]

    def describe_groups(self, group_ids: Iterable[str], api_version: int) -> list[Described]:
        """Describe classic groups; a group that cannot be described has its error instead."""
        described: list[Described] = []
        for part in groups_by_partition(group_ids, self.partition_for):
            try:
                shard = self.runtime.find(part[0]).shard
            except ApiError as error:
                described += [Described(error.error_code, None, group_id) for group_id in part]
            else:
                described += [shard.describe(group_id, api_version) for group_id in part]
        return described

    def consumer_group_describe(self, group_ids: Sequence[str]) -> list[DescribedConsumers]:
        """Describe consumer groups; a group that cannot be described has its error instead."""
        return describe_each(
            group_ids,
            self.partition_for,
            lambda group_id: self.shard(group_id).consumer.describe(group_id),
            DescribedConsumers,
        )

    # -- roles ----------------------------------------------------------------------------------

    def on_image(self, changes: ImageChanges, image: MetadataImage) -> None:
        """Apply new metadata: leadership of `__consumer_offsets` partitions, and changed topics."""
        self._shards.on_image(changes, image)

    def shutdown(self) -> None:
        """Drop all groups without answers, as when the broker is killed."""
        self.runtime.shutdown()


def _filter_name(state_name: str) -> str:
    """Return the name of a state in ListGroups filters, which differs for `NOT_READY`."""
    return "not_ready" if state_name == NOT_READY else state_name.lower()
