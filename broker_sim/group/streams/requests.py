"""Parsing and validation of StreamsGroupHeartbeat.

Mirrors `throwIfStreamsGroupHeartbeatRequestIsUsingUnsupportedFeatures` and
`throwIfStreamsGroupHeartbeatRequestIsInvalid` of `GroupCoordinatorService`. As in Kafka, these are rejected: regular
expressions for source topics, and before 4.4 static members, task offsets and warm-up tasks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.group.group import NO_TIMEOUT
from broker_sim.group.modern.assigned_group import LEAVE_GROUP_STATIC_EPOCH
from broker_sim.group.request_checks import check_text, invalid_request
from broker_sim.group.streams.tasks import TasksTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from broker_sim.group.streams.member import StreamsMember
    from broker_sim.group.streams.tasks import Tasks
    from broker_sim.group.streams.topics.configured_topology import ConfiguredSubtopology
    from broker_sim.protocol import messages

    Request = messages.StreamsGroupHeartbeatRequest

V = TypeVar("V")


def check_heartbeat(request: messages.StreamsGroupHeartbeatRequest, *, is_4_4: bool) -> None:
    """Raise `ApiError` if the request is invalid or uses unsupported features.

    INVALID_REQUEST, or STREAMS_INVALID_TOPOLOGY if a changelog topic has a partition count.
    """
    if not is_4_4:
        _check_features(request)
    if request.topology is not None and any(
        subtopology.source_topic_regex for subtopology in request.topology.subtopologies
    ):
        raise invalid_request("Regular expressions for source topics are not supported yet.")
    check_text(request.member_id, "MemberId can't be empty.")
    check_text(request.group_id, "GroupId can't be empty.")
    check_text(request.instance_id, "InstanceId can't be empty.")
    check_text(request.rack_id, "RackId can't be empty.")
    if request.member_epoch == 0:
        _check_joining(request)
    elif request.member_epoch == LEAVE_GROUP_STATIC_EPOCH:
        if request.instance_id is None:
            raise invalid_request("InstanceId can't be null.")
    elif request.member_epoch < LEAVE_GROUP_STATIC_EPOCH:
        raise invalid_request(f"MemberEpoch is {request.member_epoch}, but must be greater than or equal to -2.")
    owned = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    if None in owned and owned != (None, None, None):
        raise invalid_request("If one task-type is non-null, all must be non-null.")
    if request.member_epoch != 0 and request.topology is not None:
        raise invalid_request("Topology can only be provided when (re-)joining.")


def _check_features(request: messages.StreamsGroupHeartbeatRequest) -> None:
    if request.instance_id is not None:
        raise invalid_request("Static membership is not yet supported.")
    if request.task_offsets is not None:
        raise invalid_request("TaskOffsets are not supported yet.")
    if request.task_end_offsets is not None:
        raise invalid_request("TaskEndOffsets are not supported yet.")
    if request.warmup_tasks:
        raise invalid_request("WarmupTasks are not supported yet.")


def _check_joining(request: messages.StreamsGroupHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == NO_TIMEOUT:
        raise invalid_request("RebalanceTimeoutMs must be provided in first request.")
    for name, tasks in (
        ("ActiveTasks", request.active_tasks),
        ("StandbyTasks", request.standby_tasks),
        ("WarmupTasks", request.warmup_tasks),
    ):
        if tasks is None or tasks:
            raise invalid_request(f"{name} must be empty when (re-)joining.")
    if request.topology is None:
        raise invalid_request("Topology must be non-null when (re-)joining.")
    for subtopology in request.topology.subtopologies:
        for topic in subtopology.state_changelog_topics:
            if topic.partitions != 0:
                raise ApiError(
                    ErrorCode.STREAMS_INVALID_TOPOLOGY,
                    f"Changelog topic {topic.name} must have an undefined partition count, but it is "
                    f"set to {topic.partitions}.",
                )


def owned_tasks(request: messages.StreamsGroupHeartbeatRequest) -> TasksTuple | None:
    """Return the tasks that the member reports as owned; None if it does not report any.

    As in Kafka, a duplicate subtopology raises `ApiError` UNKNOWN_SERVER_ERROR.
    """
    active, standby, warmup = request.active_tasks, request.standby_tasks, request.warmup_tasks
    if active is None or standby is None or warmup is None:
        return None
    return TasksTuple(_tasks(active), _tasks(standby), _tasks(warmup))


def _tasks(owned: Sequence[Request.TaskIds]) -> Tasks:
    return _unique((tasks.subtopology_id, frozenset(tasks.partitions)) for tasks in owned)


def client_tags_of(request: messages.StreamsGroupHeartbeatRequest) -> dict[str, str] | None:
    """Return the client's tags, None if not sent. Raises `ApiError` for a duplicate tag, as in Kafka."""
    if request.client_tags is None:
        return None
    return _unique((tag.key, tag.value) for tag in request.client_tags)


def _unique(pairs: Iterable[tuple[str, V]]) -> dict[str, V]:
    values: dict[str, V] = {}
    for key, value in pairs:
        if key in values:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
        values[key] = value
    return values


def owns_only_assigned(member: StreamsMember, request: messages.StreamsGroupHeartbeatRequest) -> bool:
    """Return whether the member reports its tasks, and all of them are assigned to it."""
    assigned = member.assigned
    return (
        _is_subset(request.active_tasks, assigned.active)
        and _is_subset(request.standby_tasks, assigned.standby)
        and _is_subset(request.warmup_tasks, assigned.warmup)
    )


def _is_subset(owned: Sequence[Request.TaskIds] | None, assigned: Mapping[str, Collection[int]]) -> bool:
    return owned is not None and all(
        tasks.subtopology_id in assigned
        and all(number in assigned[tasks.subtopology_id] for number in tasks.partitions)
        for tasks in owned
    )


def check_tasks(
    subtopologies: Mapping[str, ConfiguredSubtopology], request: messages.StreamsGroupHeartbeatRequest
) -> None:
    """Raise `ApiError` INVALID_REQUEST if the member reports tasks that do not exist."""
    for owned in (request.active_tasks, request.standby_tasks, request.warmup_tasks):
        for tasks in owned or ():
            name = tasks.subtopology_id
            if name not in subtopologies:
                raise invalid_request(f"Subtopology {name} does not exist in the topology.")
            count = subtopologies[name].number_of_tasks
            for number in tasks.partitions:
                if not 0 <= number < count:
                    raise invalid_request(
                        f"Task {number} for subtopology {name} is invalid. Number of tasks for this "
                        f"subtopology: {count}"
                    )
