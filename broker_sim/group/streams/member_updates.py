"""What a heartbeat changes: member, topology, group epoch, target, and the member's next step.

Mirrors `GroupMetadataManager.streamsGroupHeartbeat`. One heartbeat does, in this order:
A. take over what the member says of itself
B. take the group's topology, from the first member that brings one; later ones must have the same
C. look at the topics, if they are not known or one of them has changed
D. bump the group epoch if any of that has changed, or the assignment configurations have
E. let a new group wait for more members
F. compute a new target if the group epoch is ahead of it: not while the group waits, and at most once in the
   assignment interval
G. take the member's next step towards the target
All records of it are written in one batch.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from broker_sim.coordinator.result import Result
from broker_sim.errors import ApiError, ErrorCode
from broker_sim.group.group import NO_TIMEOUT
from broker_sim.group.keys import GroupKey, MemberKey
from broker_sim.group.modern.member_timers import Wait
from broker_sim.group.request_checks import invalid_request
from broker_sim.group.streams import records
from broker_sim.group.streams.assignors import TaskAssignorError
from broker_sim.group.streams.current_assignment import Reconciliation
from broker_sim.group.streams.member import Endpoint, MemberState
from broker_sim.group.streams.membership import check_tasks
from broker_sim.group.streams.requests import owned_tasks, told_tags
from broker_sim.group.streams.status import Status
from broker_sim.group.streams.streams_group import StreamsGroup
from broker_sim.group.streams.target_assignment import compute_target
from broker_sim.group.streams.tasks import NO_TASKS, TasksTuple
from broker_sim.group.streams.topics import configure_topics
from broker_sim.group.streams.topology import StreamsTopology, topology_record_value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker_sim.group.group_client import GroupClient
    from broker_sim.group.streams.fencing import Fencing
    from broker_sim.group.streams.member_change import MemberChange
    from broker_sim.group.streams.shard_parts import ShardParts
    from broker_sim.group.streams.topics import ConfiguredTopology

UNVALIDATED_EPOCH: Final = -1
"""The epoch of a topology whose topics are not all there."""
INITIAL_DELAY: Final = "Assignment delayed due to the configured initial rebalance delay."
INTERVAL: Final = "Assignment delayed due to the configured assignment interval."


class MemberUpdates:
    """Steps A to G."""

    def __init__(self, parts: ShardParts, fencing: Fencing) -> None:
        self._parts = parts
        self._fencing = fencing

    def update(self, change: MemberChange, client: GroupClient) -> ConfiguredTopology:
        """Do A to G; returns the topology as the topics there are make it.

        Raises `ApiError`: INVALID_REQUEST, STREAMS_INVALID_TOPOLOGY, FENCED_MEMBER_EPOCH,
        UNKNOWN_SERVER_ERROR.
        """
        group = change.group
        bumps = self._take_over(change, client)
        topology = _topology(change)
        configured, metadata_hash = self._configure(group, topology)
        validated_epoch = UNVALIDATED_EPOCH
        if configured.is_ready:
            assert configured.subtopologies is not None
            validated_epoch = topology.topology_epoch
            check_tasks(configured.subtopologies, change.request)
        configs = self._parts.settings.assignment_configs(group.group_id)
        group_epoch = group.group_epoch
        if (
            bumps
            or metadata_hash != group.metadata_hash
            or validated_epoch != group.validated_topology_epoch
            or configs != group.last_assignment_configs
        ):
            group_epoch += 1
            change.written.append(
                records.group_metadata(group.group_id, group_epoch, metadata_hash, validated_epoch, configs)
            )
            self._parts.environment.counters.streams_group_rebalances += 1
            group.metadata_refreshed(group_epoch)
        if group.is_empty:
            self._wait_for_members(group.group_id)
        epoch, target = self._target(change, group_epoch, configured, configs)
        self._reconcile(change, epoch, target)
        return configured

    def _take_over(self, change: MemberChange, client: GroupClient) -> bool:
        """Do A: return whether something is new."""
        request, member = change.request, change.member
        timeout_ms, endpoint = request.rebalance_timeout_ms, request.user_endpoint
        tags = told_tags(request)
        change.updated = replace(
            member,
            rack_id=member.rack_id if request.rack_id is None else request.rack_id,
            rebalance_timeout_ms=(member.rebalance_timeout_ms if timeout_ms == NO_TIMEOUT else timeout_ms),
            topology_epoch=(member.topology_epoch if request.topology is None else request.topology.epoch),
            client_id=client.client_id,
            client_host=client.client_host,
            process_id=member.process_id if request.process_id is None else request.process_id,
            client_tags=member.client_tags if tags is None else tags,
            user_endpoint=(member.user_endpoint if endpoint is None else Endpoint(endpoint.host, endpoint.port)),
        )
        if change.updated == member:
            return False
        change.written.append(records.member_metadata(change.group.group_id, change.updated))
        return True

    def _configure(self, group: StreamsGroup, topology: StreamsTopology) -> tuple[ConfiguredTopology, int]:
        """Do C: return the topology as the topics make it, and their hash."""
        known, metadata_hash = group.configured_topology, group.metadata_hash
        if known is not None and group.topology is not None and not group.has_metadata_expired:
            return known, metadata_hash
        image = self._parts.environment.image()
        metadata_hash = self._parts.hashes.of(topology.required_topics(), image)
        if known is None or group.topology is None or metadata_hash != group.metadata_hash:
            known = configure_topics(topology, metadata_hash, image)
            group.configure(known)
        return known, metadata_hash

    # -- targets --------------------------------------------------------------------------------

    def _wait_for_members(self, group_id: str) -> None:
        """Do E, unless it waits already."""
        delay_ms = self._parts.settings.initial_rebalance_delay_ms(group_id)
        key = GroupKey(group_id)
        if delay_ms > 0 and not self._parts.timers.is_running(Wait.FIRST_TARGET, key):
            self._parts.timers.begin(
                Wait.FIRST_TARGET,
                key,
                delay_ms,
                lambda: self._parts.runtime.perform(lambda: self._first_target(group_id)),
            )

    def _first_target(self, group_id: str) -> Result[None]:
        """Do F for a group that has waited; mirrors `computeDelayedTargetAssignment`.

        As in Kafka nothing happens if only one heartbeat has come: then the next one assigns.
        """
        group = self._parts.groups.get(group_id)
        if (
            not isinstance(group, StreamsGroup)
            or group.is_empty
            or group.group_epoch <= group.assignment_epoch
            or group.configured_topology is None
            or not self._may_compute_target(group)
        ):
            return Result()
        _, written = compute_target(
            group,
            None,
            topology=group.configured_topology,
            configs=group.last_assignment_configs,
            group_epoch=group.group_epoch,
            now_ms=self._now_ms(),
        )
        return Result(records=written)

    def _may_compute_target(self, group: StreamsGroup) -> bool:
        interval_ms = self._parts.settings.assignment_interval_ms(group.group_id)
        return group.may_compute_target(interval_ms, self._now_ms())

    def _now_ms(self) -> int:
        return self._parts.environment.clock.wall_clock_ms()

    def _target(
        self, change: MemberChange, group_epoch: int, topology: ConfiguredTopology, configs: Mapping[str, str]
    ) -> tuple[int, TasksTuple]:
        """Do F: return the epoch of the target, and the member's."""
        group, updated = change.group, change.updated
        if self._parts.timers.is_running(Wait.FIRST_TARGET, GroupKey(group.group_id)):
            change.say(Status.ASSIGNMENT_DELAYED, INITIAL_DELAY)
            return group.assignment_epoch, NO_TASKS
        last = group.assignment_epoch, group.targets.get(updated.member_id, NO_TASKS)
        if group.assignment_epoch >= group_epoch:
            return last
        if not self._may_compute_target(group):
            change.say(Status.ASSIGNMENT_DELAYED, INTERVAL)
            return last
        try:
            target, written = compute_target(
                group, updated, topology=topology, configs=configs, group_epoch=group_epoch, now_ms=self._now_ms()
            )
        except TaskAssignorError as error:
            raise ApiError(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                f"Failed to compute a new target assignment for epoch {group_epoch}: {error}",
            ) from error
        change.written += written
        return group_epoch, target

    def _reconcile(self, change: MemberChange, epoch: int, target: TasksTuple) -> None:
        """Do G, and time the member if it has to give something up."""
        group, member = change.group, change.updated
        if member.is_reconciled_to(epoch):
            return
        step = Reconciliation(epoch, target, group.owners, owned_tasks(change.request))
        after = change.updated = step.next_step(member)
        if after == member:
            return
        change.written.append(records.current_assignment(group.group_id, after))
        if after.state is MemberState.UNREVOKED_TASKS:
            self._fencing.time_revocation(group.group_id, after)
        else:
            key = MemberKey(group.group_id, after.member_id)
            self._parts.timers.end(Wait.REVOCATION, key)


def _topology(change: MemberChange) -> StreamsTopology:
    """Do B: return the group's topology. Raises `ApiError` INVALID_REQUEST if the member's is another one."""
    group, told = change.group, change.request.topology
    known = group.topology
    if told is None:
        assert known is not None, "a group is made by a member that brings a topology"
        return _checked(change, known)
    asked = StreamsTopology.from_request(told)
    if known is None:
        change.written.append(records.topology_record(group.group_id, topology_record_value(told)))
        return asked
    if known.topology_epoch <= asked.topology_epoch and known != asked:
        raise invalid_request("Topology updates are not supported yet.")
    return _checked(change, known)


def _checked(change: MemberChange, known: StreamsTopology) -> StreamsTopology:
    """Return the topology; a member with an older one is told so."""
    epoch = change.updated.topology_epoch
    if epoch < known.topology_epoch:
        change.say(
            Status.STALE_TOPOLOGY,
            f"The member's topology epoch {epoch} is behind the group's topology epoch {known.topology_epoch}.",
        )
    return known
