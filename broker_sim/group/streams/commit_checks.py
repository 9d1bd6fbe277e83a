"""Which partitions a member may commit offsets of in an older epoch; mirrors `createAssignmentEpochValidator`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from broker_sim.group.group import CommitPartitionValidator
    from broker_sim.group.streams.member import StreamsMember
    from broker_sim.group.streams.topology import StreamsTopology


def older_epoch_check(topology: StreamsTopology | None, member: StreamsMember, epoch: int) -> CommitPartitionValidator:
    """Return a check of a partition: a member that has had its task since may commit in that older epoch.

    Raises `ApiError` STALE_MEMBER_EPOCH without a topology.
    """
    if topology is None:
        raise _stale("Topology is not available for offset commit validation.")
    subtopologies = topology.source_topic_map()

    def check(topic: str, topic_id: bytes, partition: int) -> None:  # noqa: ARG001 - others ask for it
        subtopology = subtopologies.get(topic)
        if subtopology is None:
            raise _stale(f"Topic {topic} is not in the topology.")
        since = None
        for tasks in (member.assigned, member.pending_revocation):
            if since is None:
                since = tasks.active.get(subtopology, {}).get(partition)
        if since is None:
            raise _stale(f"Task {subtopology}-{partition} is not assigned or pending revocation for member.")
        if epoch < since:
            raise _stale(
                f"Received member epoch {epoch} is older than assignment epoch {since} for task "
                f"{subtopology}-{partition}."
            )

    return check


def _stale(message: str) -> ApiError:
    return ApiError(ErrorCode.STALE_MEMBER_EPOCH, message)
