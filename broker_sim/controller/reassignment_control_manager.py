"""Reassignments of replicas to other brokers.

Mirrors the reassignments of `ReplicationControlManager`, `PartitionReassignmentReplicas` and
`PartitionReassignmentRevert` of Kafka (KIP-455). During a reassignment a partition has the old
and the new replicas; when the new ones are in the ISR, `PartitionChangeBuilder` removes the old
ones. Error messages are Kafka's, because clients see them.
"""

from collections.abc import Mapping, Sequence

from broker_sim.controller.partition_change_builder import Election, PartitionChangeBuilder
from broker_sim.controller.replication_control_manager import ReplicationControlManager
from broker_sim.controller.requests import OngoingReassignment, Outcome, PartitionOutcome, Reassignment
from broker_sim.controller.topic_control_manager import validate_manual_assignment
from broker_sim.errors import ApiError, ErrorCode
from broker_sim.metadata import MetadataDelta, MetadataImage, PartitionState


def alter_partition_reassignments(
    delta: MetadataDelta,
    reassignments: Sequence[Reassignment],
    replication: ReplicationControlManager,
    *,
    allow_replication_factor_change: bool,
) -> list[PartitionOutcome]:
    """Start or cancel each reassignment; return one outcome each in order."""
    outcomes = []
    for reassignment in reassignments:
        outcome = Outcome()
        try:
            _alter_one(delta, reassignment, replication, allow_replication_factor_change)
        except ApiError as error:
            outcome = Outcome(error.error_code, error.error_message)
        outcomes.append(PartitionOutcome(reassignment.topic, reassignment.partition, outcome))
    return outcomes


def _alter_one(
    delta: MetadataDelta, reassignment: Reassignment, replication: ReplicationControlManager, allow_factor_change: bool
) -> None:
    topic = delta.topic(reassignment.topic)
    if topic is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {reassignment.topic}.")
    partition = topic.partition(reassignment.partition)
    if partition is None:
        raise ApiError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"Unable to find partition {reassignment.topic}:{reassignment.partition}.",
        )
    builder = replication.change_builder(delta, topic, reassignment.partition, partition)
    if reassignment.replicas is None:
        builder.election = replication.automatic_election(delta, topic)
        _revert(builder, f"{topic.name}:{reassignment.partition}")
    else:
        validate_manual_assignment(delta, reassignment.replicas)
        if not allow_factor_change:
            _check_replication_factor(partition, len(reassignment.replicas))
        _retarget(builder, tuple(reassignment.replicas))
    replication.put_built(delta, topic, reassignment.partition, builder)


def _revert(builder: PartitionChangeBuilder, name: str) -> None:
    """Set the replicas from before the reassignment; mirrors `PartitionReassignmentRevert`."""
    partition = builder.partition
    if not partition.is_reassigning:
        raise ApiError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    replicas = _without(partition.replicas, partition.adding_replicas)
    isr = _without(partition.isr, partition.adding_replicas)
    if not replicas:
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Invalid replica assignment: addingReplicas contains all replicas.",
        )
    if not isr:
        if builder.election is not Election.UNCLEAN:
            raise ApiError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Unable to revert partition assignment for {name} because it"
                " would require an unclean leader election.",
            )
        isr = replicas[:1]
    builder.target_isr = isr
    builder.target_replicas = replicas
    builder.target_adding = builder.target_removing = ()


def ongoing_reassignments(
    image: MetadataImage, requested: Mapping[str, Sequence[int]] | None
) -> list[OngoingReassignment]:
    """Return the ongoing reassignments of the requested partitions; None requests all topics."""
    ongoing = []
    topics = image.topics if requested is None else requested
    for name in topics:
        topic = image.topics.get(name)
        if topic is None:
            continue
        numbers = range(len(topic.partitions)) if requested is None else requested[name]
        for number in numbers:
            partition = topic.partition(number)
            if partition is not None and partition.is_reassigning:
                ongoing.append(
                    OngoingReassignment(
                        name,
                        number,
                        replicas=partition.replicas,
                        adding_replicas=partition.adding_replicas,
                        removing_replicas=partition.removing_replicas,
                    )
                )
    return ongoing


def _without(replicas: tuple[int, ...], removed: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(replica for replica in replicas if replica not in removed)


def _retarget(builder: PartitionChangeBuilder, replicas: tuple[int, ...]) -> None:
    """Set the target replicas; replicas to be removed stay at the end of the list until the end."""
    present = builder.partition.replicas
    removing = tuple(sorted(set(present) - set(replicas)))
    adding = tuple(sorted(set(replicas) - set(present)))
    builder.target_replicas = replicas + removing
    if removing:
        builder.target_removing = removing
    if adding:
        builder.target_adding = adding


def _check_replication_factor(partition: PartitionState, replica_count: int) -> None:
    lasting = set(partition.replicas) - set(partition.removing_replicas)
    if len(lasting) != replica_count:
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The replication factor is changed from {len(lasting)} to {replica_count}",
        )
