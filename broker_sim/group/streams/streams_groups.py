"""The streams groups of one shard: their part of the steps of `AssignedGroups`.

Mirrors the streams groups' part of `GroupMetadataManager` and `streams.TargetAssignmentBuilder`. Step B consists of:
B1. get the topology, which the first member has sent; those of later members must be equal
B2. configure the topology for the existing topics, if that was not done yet or one of them has changed
B3. bump the group epoch if the member, the topics or the assignment configurations have changed
B4. start the initial delay of a new group, during which no target is computed

From Kafka 4.4 on members may be static; a change of one bumps the epoch only if it may affect the assignment.
Kafka's `AssignmentRefiner`, meant to warm up tasks before they move, returns the target unchanged in 4.4.0, so no
member is assigned a warm-up task.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from broker_sim.coordinator.result import Result
from broker_sim.group import record_messages
from broker_sim.group.delayed_timeout import GroupKey
from broker_sim.group.group import NO_TIMEOUT
from broker_sim.group.modern.assigned_group import JOIN_GROUP_EPOCH, LEAVE_GROUP_STATIC_EPOCH, STABLE
from broker_sim.group.modern.assigned_groups import AssignedGroups, MemberChange, Step, Subscription, newer
from broker_sim.group.modern.member_timers import Wait
from broker_sim.group.modern.records import member_tombstones, target_epoch_record
from broker_sim.group.modern.static_members import joining_member, known_member
from broker_sim.group.request_checks import invalid_request
from broker_sim.group.streams import records
from broker_sim.group.streams.assignors.spec import NUM_STANDBY_REPLICAS, RACK_TAGS, GroupSpec, MemberSpec
from broker_sim.group.streams.assignors.sticky import assign
from broker_sim.group.streams.current_assignment import CurrentAssignmentBuilder
from broker_sim.group.streams.heartbeat_response import (
    assign_tasks,
    group_statuses,
    missing_tags,
    set_endpoints,
    topology_statuses,
)
from broker_sim.group.streams.member import Endpoint, StreamsMember
from broker_sim.group.streams.requests import check_tasks, client_tags_of, owned_tasks, owns_only_assigned
from broker_sim.group.streams.streams_group import StreamsGroup, describe_group
from broker_sim.group.streams.task_offsets import NO_OFFSETS
from broker_sim.group.streams.tasks import NO_TASKS, TasksTuple
from broker_sim.group.streams.topics.configured_topology import Status
from broker_sim.group.streams.topics.internal_topic_manager import configure_topics
from broker_sim.group.streams.topology import StreamsTopology, topology_record_value
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from broker_sim.group.group import GroupClient
    from broker_sim.group.records import GroupRecord
    from broker_sim.group.streams.topics.configured_topology import ConfiguredTopology

    Change = MemberChange[StreamsGroup, StreamsMember, messages.StreamsGroupHeartbeatRequest]

Response = messages.StreamsGroupHeartbeatResponse
CreatableTopic = messages.CreateTopicsRequest.CreatableTopic

UNVALIDATED_EPOCH: Final = -1
"""Validated epoch of a topology with missing topics."""
INITIAL_DELAY: Final = "Assignment delayed due to the configured initial rebalance delay."
INTERVAL: Final = "Assignment delayed due to the configured assignment interval."


class StreamsGroupHeartbeatResult(NamedTuple):
    """The response to a member, and the topics to create before; mirrors `StreamsGroupHeartbeatResult`."""

    response: messages.StreamsGroupHeartbeatResponse
    topics_to_create: Mapping[str, messages.CreateTopicsRequest.CreatableTopic]
    """Missing internal topics by name."""
    topology_epoch: int = -1
    """Epoch of the topology, -1 for a leaving member."""
    descriptions: records.DescriptionEpochs = records.NO_DESCRIPTION
    """Topology epochs of the group's descriptions."""


class StreamsGroups(
    AssignedGroups[
        StreamsGroup, StreamsMember, TasksTuple, messages.StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResult
    ]
):
    """Creates, updates and replays the streams groups of one shard."""

    group_class = StreamsGroup

    def replay_own(self, group: StreamsGroup, key: Any, value: Any) -> None:
        """Apply the record of the topology."""
        assert isinstance(key, record_messages.StreamsGroupTopologyKey)
        group.topology = None if value is None else StreamsTopology.from_record(value)

    def removed(self, group_id: str) -> None:
        """Cancel the initial delay of a removed group."""
        self.timers.end(Wait.FIRST_TARGET, GroupKey(group_id))

    def on_unloaded(self, group: StreamsGroup) -> None:
        """Stop the timers of a group."""
        self.removed(group.group_id)
        super().on_unloaded(group)

    def describe(self, group_id: str) -> messages.StreamsGroupDescribeResponse.DescribedGroup:
        """Return the group in the committed view. Raises `ApiError` GROUP_ID_NOT_FOUND."""
        return describe_group(self.find_committed(group_id))

    def assignment_configs(self, group_id: str) -> dict[str, str]:
        """Return the group's assignment configurations."""
        configs = {NUM_STANDBY_REPLICAS: str(self.settings.of_group(group_id, NUM_STANDBY_REPLICAS))}
        tags = self.settings.words_of_group(group_id, RACK_TAGS)
        if tags:
            configs[RACK_TAGS] = ",".join(tags)
        return configs

    # -- the steps of a heartbeat ---------------------------------------------------------------

    def needs_room(self, group: StreamsGroup, member_id: str, instance_id: str | None, *, joins: bool) -> bool:
        """Return whether the member counts as new; before Kafka 4.4 a rejoining member does."""
        return joins and (not self.is_4_4 or super().needs_room(group, member_id, instance_id, joins=joins))

    def update_from_request(
        self, group: StreamsGroup, request: messages.StreamsGroupHeartbeatRequest, client: GroupClient
    ) -> tuple[Change, list[GroupRecord]]:
        """Run step A. As in Kafka, a duplicate client tag raises UNKNOWN_SERVER_ERROR.

        Also raises `ApiError` UNRELEASED_INSTANCE_ID and FENCED_INSTANCE_ID.
        """
        replacement: list[GroupRecord] = []
        group.refined.rename(group.static_member_id(request.instance_id), request.member_id)
        joins = request.member_epoch == JOIN_GROUP_EPOCH
        if joins:
            member, replacement = joining_member(self, group, request.member_id, request.instance_id)
        else:
            member = known_member(group, request.member_id, request.instance_id)
            lost_response = owns_only_assigned(member, request)
            self.check_epoch(member, request.member_epoch, lost_response=lost_response)
        timeout_ms, tags = request.rebalance_timeout_ms, client_tags_of(request)
        endpoint = None if joins and self.is_4_4 else member.user_endpoint
        if request.user_endpoint is not None:
            endpoint = Endpoint(request.user_endpoint.host, request.user_endpoint.port)
        updated = replace(
            member,
            instance_id=newer(request.instance_id, member.instance_id),
            rack_id=newer(request.rack_id, member.rack_id),
            rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == NO_TIMEOUT else timeout_ms,
            topology_epoch=member.topology_epoch if request.topology is None else request.topology.epoch,
            client_id=client.client_id,
            client_host=client.client_host,
            process_id=newer(request.process_id, member.process_id),
            client_tags=newer(tags, member.client_tags),
            user_endpoint=endpoint,
        )
        return MemberChange(group, member, updated, client, request), replacement

    def subscribe(self, change: Change) -> Subscription:
        """Run step B. Also raises `ApiError` INVALID_REQUEST."""
        group, request, updated = change.group, change.report, change.updated
        written_records = self.changed_member(change)
        topology = _topology(group, request)  # B1
        if group.topology is None and request.topology is not None:
            written_records.append(records.topology_record(group.group_id, topology_record_value(request.topology)))
        configured, metadata_hash = self._configure(group, topology)  # B2
        validated_epoch = UNVALIDATED_EPOCH
        if configured.is_ready:
            assert configured.subtopologies is not None
            validated_epoch = topology.topology_epoch
            check_tasks(configured.subtopologies, request)
        if request.task_offsets is not None or request.task_end_offsets is not None:
            task_offsets = group.task_offsets.get(request.member_id, NO_OFFSETS)
            group.task_offsets[request.member_id] = task_offsets.updated(request.task_offsets, request.task_end_offsets)
        configs = self.assignment_configs(group.group_id)
        group_epoch = group.group_epoch
        changes_target = (  # B3
            _may_change_tasks(change)
            or metadata_hash != group.metadata_hash
            or validated_epoch != group.validated_topology_epoch
            or configs != group.last_assignment_configs
        )
        is_refined = not changes_target and self._lacks_tasks(group, updated)
        if changes_target or is_refined:
            group_epoch += 1
            written_records.append(
                group.metadata_record(
                    group_epoch, metadata_hash=metadata_hash, validated_epoch=validated_epoch, configs=configs
                )
            )
            self.parts.counters.count_rebalance(self.kind.name)
            group.metadata_refreshed(group_epoch)
        if group.is_empty:
            self._wait_for_members(group.group_id)  # B4
        return Subscription(group_epoch, written_records, is_refined=is_refined)

    def _lacks_tasks(self, group: StreamsGroup, member: StreamsMember) -> bool:
        """Return whether the tasks of a stable group's member differ from its target; see `RefinedTargets`."""
        target = group.targets.get(member.member_id, NO_TASKS)
        return self.is_4_4 and member.assigned.tasks() != target and group.state_name == STABLE

    def _configure(self, group: StreamsGroup, topology: StreamsTopology) -> tuple[ConfiguredTopology, int]:
        """Run step B2: return the configured topology, and the hash of its topics."""
        configured, metadata_hash = group.configured_topology, group.metadata_hash
        if configured is not None and group.topology is not None and not group.has_metadata_expired:
            return configured, metadata_hash
        metadata_hash = self.parts.hashes.of(topology.required_topics(), self.image())
        if configured is None or group.topology is None or metadata_hash != group.metadata_hash:
            configured = configure_topics(topology, metadata_hash, self.image())
            group.configure(configured)
        return configured, metadata_hash

    def _wait_for_members(self, group_id: str) -> None:
        """Run step B4, unless the delay is already running."""
        delay_ms = self.settings.of_group(group_id, "initial.rebalance.delay.ms")
        if delay_ms > 0 and not self._waits_for_members(group_id):
            runtime = self.parts.runtime
            self.timers.begin(
                Wait.FIRST_TARGET,
                GroupKey(group_id),
                delay_ms,
                lambda: runtime.perform(lambda: self._first_target(group_id)),
            )

    def _waits_for_members(self, group_id: str) -> bool:
        return self.timers.is_running(Wait.FIRST_TARGET, GroupKey(group_id))

    def _first_target(self, group_id: str) -> Result[None]:
        """Run step C after the initial delay; mirrors `computeDelayedTargetAssignment`.

        As in Kafka, nothing happens if there was only one heartbeat: then the next one computes the target.
        """
        group = self.parts.groups.get(group_id)
        if (
            not isinstance(group, StreamsGroup)
            or group.is_empty
            or group.group_epoch <= group.assignment_epoch
            or group.configured_topology is None
            or not self.may_compute_target(group)
        ):
            return Result()
        _, target_records = self.compute_target(group, None, Subscription(group.group_epoch))
        return Result(records=target_records)

    def is_target_due(self, group: StreamsGroup, group_epoch: int) -> bool:
        """Return whether a target must be computed for that epoch now, which is never so in the initial delay."""
        return not self._waits_for_members(group.group_id) and super().is_target_due(group, group_epoch)

    def last_target(self, group: StreamsGroup, member: StreamsMember) -> TasksTuple:
        """Return the member's current target, which is empty in the initial delay."""
        return NO_TASKS if self._waits_for_members(group.group_id) else super().last_target(group, member)

    def target_step(
        self, group: StreamsGroup, updated: StreamsMember, subscription: Subscription
    ) -> tuple[int, TasksTuple, list[GroupRecord]]:
        """Run step C, from Kafka 4.4 on with the refined target; see `RefinedTargets`."""
        if subscription.is_refined and group.assignment_epoch >= group.group_epoch:
            epoch, target = subscription.group_epoch, group.target_of(updated)
            records_of_target = [target_epoch_record(self.kind, group.group_id, epoch, group.assignment_timestamp_ms)]
        else:
            epoch, target, records_of_target = super().target_step(group, updated, subscription)
        if not self.is_4_4 or self.settings.of_group(group.group_id, "num.warmup.replicas") == 0:
            return epoch, target, records_of_target
        refined = group.refined
        is_bumped = subscription.group_epoch != group.group_epoch and not subscription.is_refined
        if refined.epoch != epoch or (not is_bumped and group.state_name == STABLE):
            refined.epoch, refined.targets = epoch, self._targets_after(group, updated, target, records_of_target)
        return epoch, refined.targets.get(updated.member_id, NO_TASKS), records_of_target

    def _targets_after(
        self, group: StreamsGroup, updated: StreamsMember, target: TasksTuple, written: Sequence[GroupRecord]
    ) -> dict[str, TasksTuple]:
        """Return the targets of all members after these records; empty in the initial delay."""
        if self._waits_for_members(group.group_id):
            return {}
        targets = dict(group.targets)
        replaced_id = group.replaced_id(updated)
        if replaced_id is not None:
            targets.pop(replaced_id, None)
        for record in written:
            if isinstance(record.key, record_messages.StreamsGroupTargetAssignmentMemberKey):
                assert isinstance(record.value, record_messages.StreamsGroupTargetAssignmentMemberValue)
                targets[record.key.member_id] = group.target_of_record(record.value)
        targets[updated.member_id] = target
        return targets

    def assign(
        self,
        group: StreamsGroup,
        updated: StreamsMember | None,
        subscription: Subscription,  # noqa: ARG002 - streams groups have a topology instead
    ) -> dict[str, TasksTuple]:
        """Return the new targets of all members, which are empty while topics are missing."""
        topology = group.configured_topology
        assert topology is not None, "step B must configure the topology"
        configs = group.last_assignment_configs if updated is None else self.assignment_configs(group.group_id)

        def spec(member: StreamsMember, target: TasksTuple) -> MemberSpec:
            if not self.is_4_4:
                return MemberSpec(member.process_id, target)
            offsets = group.task_offsets.get(member.member_id, NO_OFFSETS).offsets
            return MemberSpec(member.process_id, member.assigned.tasks(), offsets)

        specs = self.member_specs(group, updated, spec)
        group_spec = GroupSpec(specs, configs, is_4_4=self.is_4_4)
        targets = assign(group_spec, topology.tasks()) if topology.is_ready else {}
        return {member_id: targets.get(member_id, NO_TASKS) for member_id in specs}

    def next_step(self, change: Change, epoch: int, target: TasksTuple, *, has_changed: bool) -> StreamsMember:  # noqa: ARG002
        """Return the member after its next step towards the target; the same object if there is none."""
        owned = owned_tasks(change.report)
        builder = CurrentAssignmentBuilder(epoch, target, change.group.owners, owned, keeps_state=self.is_4_4)
        return builder.build(change.updated)

    def member_record(self, group_id: str, member: StreamsMember) -> GroupRecord:
        """Return the record of a member's metadata, without its tasks."""
        return records.member_metadata(group_id, member)

    def assignment_record(self, group_id: str, member: StreamsMember) -> GroupRecord:
        """Return the record of a member's epoch and tasks."""
        return records.current_assignment(group_id, member)

    def answer(
        self, change: Change, request: messages.StreamsGroupHeartbeatRequest, step: Step[StreamsMember]
    ) -> tuple[StreamsGroupHeartbeatResult, list[GroupRecord]]:
        """Return the response, with the missing internal topics."""
        group, updated = change.group, step.member
        configured = group.configured_topology
        assert configured is not None, "step B must configure the topology"
        if request.shutdown_application:
            group.request_shutdown(request.member_id)
        response = Response(
            member_id=updated.member_id,
            member_epoch=updated.member_epoch,
            heartbeat_interval_ms=self.settings.heartbeat_interval_ms(group.group_id),
        )
        if self.is_4_4:
            response.task_offset_interval_ms = self.settings.of_group(group.group_id, "task.offset.interval.ms")
            response.acceptable_recovery_lag = self.settings.of_group(group.group_id, "acceptable.recovery.lag")
        has_other_tasks = updated.assigned != change.member.assigned
        if request.member_epoch == JOIN_GROUP_EPOCH or has_other_tasks:
            assign_tasks(response, updated)
        self._set_endpoints(change, response, updated, has_other_tasks=has_other_tasks)
        # As in Kafka, state that is not in records is lost after the first heartbeat, because replaying its
        # records creates the group in the shard.
        if request.group_id in self.parts.groups:
            response.endpoint_information_epoch = group.endpoint_information_epoch
        response.status = [
            *topology_statuses(group, updated),
            *self._delays(group, step.subscription.group_epoch),
            *group_statuses(group, configured),
        ]
        if change.client.api_version > 0:
            response.status += missing_tags(self.settings.words_of_group(group.group_id, RACK_TAGS), updated)
        topics = {} if configured.is_ready else configured.internal_topics_to_be_created
        topology_epoch = (
            group.topology_epoch if request.topology is None else max(group.topology_epoch, request.topology.epoch)
        )
        return StreamsGroupHeartbeatResult(response, topics, topology_epoch, group.descriptions), []

    def _set_endpoints(
        self,
        change: Change,
        response: messages.StreamsGroupHeartbeatResponse,
        updated: StreamsMember,
        *,
        has_other_tasks: bool,
    ) -> None:
        """Set the members' endpoints, if they have changed since the member's last response."""
        group, request = change.group, change.report
        replaced_id = group.static_member_id(updated.instance_id)
        has_moved = self.is_4_4 and updated.user_endpoint != change.member.user_endpoint
        joins = request.member_epoch == JOIN_GROUP_EPOCH
        if joins or has_other_tasks or has_moved:
            for member_id in {updated.member_id, replaced_id or updated.member_id}:
                group.cached_endpoints.pop(member_id, None)
        is_news = has_other_tasks or (joins and not self.is_4_4)
        if has_moved or (is_news and updated.user_endpoint is not None):
            group.endpoint_information_epoch += 1
        if group.endpoint_information_epoch != request.endpoint_information_epoch:
            set_endpoints(response, group, updated, self.image(), replaced_id)

    def _delays(self, group: StreamsGroup, group_epoch: int) -> list[messages.StreamsGroupHeartbeatResponse.Status]:
        """Return a status if step C was delayed."""
        if self._waits_for_members(group.group_id):
            return [Response.Status(Status.ASSIGNMENT_DELAYED, INITIAL_DELAY)]
        if group.assignment_epoch < group_epoch and not self.may_compute_target(group):
            return [Response.Status(Status.ASSIGNMENT_DELAYED, INTERVAL)]
        return []

    # -- descriptions of topologies -------------------------------------------------------------

    def check_description(self, group_id: str, member_id: str, epoch: int) -> None:
        """Raise `ApiError` unless the member may send a description of the topology with that epoch.

        GROUP_ID_NOT_FOUND, UNKNOWN_MEMBER_ID, or INVALID_REQUEST if the epoch is not the group's.
        """
        group = self.find_committed(group_id)
        group.member(member_id)
        if epoch != group.topology_epoch:
            raise invalid_request(
                f"Topology epoch {epoch} does not match the group's current topology epoch {group.topology_epoch}."
            )

    def describe_epoch(self, group_id: str, epoch: int) -> Result[int]:
        """Record the epoch of the stored description, or UNCERTAIN_EPOCH; the response has the recorded epoch.

        Raises `ApiError` GROUP_ID_NOT_FOUND.
        """
        group = self.find(group_id)
        current = group.descriptions.stored
        if epoch == current == records.UNCERTAIN_EPOCH:
            return Result(epoch)
        if epoch != records.UNCERTAIN_EPOCH:
            # A description that was deleted in the meantime stays uncertain.
            gone = current == records.NO_DESCRIPTION.stored
            epoch = records.UNCERTAIN_EPOCH if gone else max(current, epoch)
        descriptions = group.descriptions._replace(stored=epoch)
        return Result(epoch, [group.metadata_record(group.group_epoch, descriptions=descriptions)])

    # -- leaving members ------------------------------------------------------------------------

    def leave_by_heartbeat(self, request: messages.StreamsGroupHeartbeatRequest) -> Result[StreamsGroupHeartbeatResult]:
        """Serve a member that leaves permanently, or temporarily (static, epoch -2); it may request a shutdown.

        Raises `ApiError`: GROUP_ID_NOT_FOUND, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
        """
        group = self.find(request.group_id)
        if request.shutdown_application:
            group.request_shutdown(request.member_id)
        member = known_member(group, request.member_id, request.instance_id)
        answer = StreamsGroupHeartbeatResult(
            Response(member_id=member.member_id, member_epoch=request.member_epoch, status=[]), {}
        )
        if request.member_epoch == LEAVE_GROUP_STATIC_EPOCH:
            return Result(answer, [self.assignment_record(group.group_id, member.left_temporarily())])
        return self.fence(group, [member], answer)

    def leave(self, group_id: str, member_id: str) -> Result[None]:
        """Remove a member. Raises `ApiError`: GROUP_ID_NOT_FOUND, UNKNOWN_MEMBER_ID."""
        group = self.find(group_id)
        return self.fence(group, [group.member(member_id)], None)

    def removal(self, group: StreamsGroup, members: Sequence[StreamsMember]) -> list[GroupRecord]:
        """Return the records that remove the members."""
        group_id = group.group_id
        return [
            *(each for member in members for each in member_tombstones(self.kind, group_id, member.member_id)),
            self.next_epoch(group),
        ]

    def next_epoch(self, group: StreamsGroup) -> GroupRecord:
        """Return the record that bumps the group epoch without any other change."""
        return group.metadata_record(group.group_epoch + 1)


def _may_change_tasks(change: Change) -> bool:
    """Return whether the member's change bumps the epoch; for a dynamic member, any change does."""
    before, after = change.member, change.updated
    if change.report.instance_id is None:
        return after != before
    return (before.topology_epoch, before.rack_id, before.client_tags, before.process_id) != (
        after.topology_epoch,
        after.rack_id,
        after.client_tags,
        after.process_id,
    )


def _topology(group: StreamsGroup, request: messages.StreamsGroupHeartbeatRequest) -> StreamsTopology:
    """Run step B1: return the group's topology. Raises `ApiError` INVALID_REQUEST if the member's differs."""
    current = group.topology
    if request.topology is None:
        assert current is not None, "the member that creates a group must send a topology"
        return current
    topology = StreamsTopology.from_request(request.topology)
    if current is None:
        return topology
    if current.topology_epoch <= topology.topology_epoch and current != topology:
        raise invalid_request("Topology updates are not supported yet.")
    return current
