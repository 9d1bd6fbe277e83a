"""Leaders and in-sync replicas, which change when brokers come and go or on request.

Mirrors the part of `ReplicationControlManager` of Kafka that changes partitions; topics are
created in `topic_control_manager`. Deliberate difference: there are no indexes from brokers to
partitions; all partitions are searched, because brokers come and go rarely.

Every method writes into its `MetadataDelta`. A broker's own state is written first, because the delta
determines which brokers may lead. Thread rule: the controller's thread.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from broker_sim.controller.cluster_control_manager import is_active
from broker_sim.controller.configuration_control_manager import ConfigurationControlManager
from broker_sim.controller.features import has_eligible_leader_replicas
from broker_sim.controller.partition_change_builder import Election, PartitionChangeBuilder
from broker_sim.controller.requests import (
    AlterPartitionResult,
    ElectionType,
    IsrMember,
    Outcome,
    PartitionAlteration,
    PartitionOutcome,
)
from broker_sim.errors import ApiError, ErrorCode
from broker_sim.metadata import BrokerState, MetadataDelta, PartitionState, TopicState
from broker_sim.metadata.topic_partition import TopicPartition

MAX_ELECTIONS_PER_IMBALANCE: Final = 1_000
"""Maximum number of elections in one run of a periodic task."""

_NOT_NEEDED: Final = Outcome(ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition.")
_NOT_AVAILABLE: Final = {
    ElectionType.PREFERRED: Outcome(
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "The preferred leader was not available."
    ),
    ElectionType.UNCLEAN: Outcome(
        ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, "Eligible topic partition leaders are not available."
    ),
}


class ReplicationControlManager:
    """Changes partitions by the rules of `PartitionChangeBuilder`."""

    def __init__(self, configs: ConfigurationControlManager) -> None:
        self._configs = configs
        self._offline_logs: dict[int, frozenset[tuple[bytes, int]]] = {}

    def change_builder(
        self, delta: MetadataDelta, topic: TopicState, number: int, partition: PartitionState
    ) -> PartitionChangeBuilder:
        """Return a builder for the partition, with the brokers that may lead and the minimum ISR."""

        def is_acceptable_leader(broker_id: int) -> bool:
            offline_logs = self._offline_logs.get(broker_id, ())
            return is_active(delta, broker_id) and (topic.topic_id, number) not in offline_logs

        return PartitionChangeBuilder(
            partition,
            is_acceptable_leader=is_acceptable_leader,
            min_isr=self._configs.effective_min_isr(delta, topic),
            elr_enabled=has_eligible_leader_replicas(delta.features),
        )

    def automatic_election(self, delta: MetadataDelta, topic: TopicState) -> Election:
        """Return the kind of election after a change of brokers or of the ISR."""
        unclean = self._configs.unclean_election_enabled(delta, topic)
        return Election.UNCLEAN if unclean else Election.ONLINE

    def _put_partition(self, delta: MetadataDelta, topic: str, number: int, state: PartitionState) -> None:
        """Write the partition after asserting its invariants.

        The ELR may have replicas that a reassignment removed, as in Kafka; they can no longer lead. An ISR that
        became empty with ELRs enabled may stay empty after they are disabled.
        """
        before = delta.partition(topic, number)
        was_empty = before is not None and not before.isr
        assert state.isr or was_empty or has_eligible_leader_replicas(delta.features), f"{topic}-{number}: empty ISR"
        assert len(set(state.isr)) == len(state.isr), f"{topic}-{number}: {state}"
        assert set(state.isr) <= set(state.replicas), f"{topic}-{number}: {state}"
        assert not set(state.isr) & set(state.elr), f"{topic}-{number}: {state}"
        assert not state.has_leader or state.leader in state.isr, f"{topic}-{number}: {state}"
        delta.set_partition(topic, number, state)

    def handle_broker_fenced(self, delta: MetadataDelta, broker: BrokerState) -> None:
        """Remove the broker from every ISR and move its leaderships."""
        if not broker.fenced:
            delta.set_broker(broker._replace(fenced=True))
        self._remove_from_isrs(delta, broker.broker_id)

    def handle_broker_unregistered(self, delta: MetadataDelta, broker_id: int) -> None:
        """Remove an unregistered broker from every ISR; it stays a replica, and in ELRs."""
        in_elrs = list(_partitions(delta, lambda p: broker_id in p.elr))
        self._remove_from_isrs(delta, broker_id)
        for topic, number, partition in in_elrs:
            self._update_leader_and_isr(delta, topic, number, partition)
        self._offline_logs.pop(broker_id, None)

    def handle_broker_unfenced(self, delta: MetadataDelta, broker: BrokerState) -> None:
        """Unfence the broker, and elect it for partitions without a leader."""
        delta.set_broker(broker._replace(fenced=False))
        for topic, number, partition in _partitions(delta, lambda p: not p.has_leader):
            self._update_leader_and_isr(delta, topic, number, partition)

    def handle_offline_logs(self, delta: MetadataDelta, broker_id: int, logs: frozenset[tuple[bytes, int]]) -> None:
        """Remove the broker from the ISR of the partitions whose logs are offline on it."""
        before = self._offline_logs.get(broker_id, frozenset())
        self._offline_logs[broker_id] = logs
        if logs - before:
            self._remove_from_isrs(delta, broker_id, only=logs)

    def handle_controlled_shutdown(self, delta: MetadataDelta, broker: BrokerState) -> None:
        """Move the leaderships of a broker in controlled shutdown."""
        if not broker.in_controlled_shutdown:
            delta.set_broker(broker._replace(in_controlled_shutdown=True))
        self._remove_from_isrs(delta, broker.broker_id)

    def handle_new_incarnation(self, delta: MetadataDelta, broker_id: int, *, clean_shutdown: bool) -> None:
        """Remove a broker that registers again from the ISRs.

        After an unclean shutdown it is removed from the ELRs too, because its log may have lost its end.
        """
        if has_eligible_leader_replicas(delta.features) and not clean_shutdown:
            self._remove_from_isrs(delta, broker_id, unclean_shutdown=True)
        else:
            self._remove_from_isrs(delta, broker_id)

    def has_leaderships(self, delta: MetadataDelta, broker_id: int) -> bool:
        """Return whether the broker leads any partition."""
        return any(True for _ in _partitions(delta, lambda p: p.leader == broker_id))

    def alter_partitions(
        self, delta: MetadataDelta, broker_id: int, alterations: Sequence[PartitionAlteration]
    ) -> list[AlterPartitionResult]:
        """Apply the alterations that a leader proposes; each succeeds or fails alone."""
        return [self._alter_partition(delta, broker_id, change) for change in alterations]

    def elect_leaders(
        self, delta: MetadataDelta, election_type: ElectionType, partitions: Sequence[TopicPartition] | None
    ) -> list[PartitionOutcome]:
        """Elect leaders of the partitions; return their outcomes.

        None stands for all partitions; those that needed no election are then left out.
        """
        keys = partitions
        if keys is None:
            keys = [TopicPartition(t.name, number) for t, number, _ in _partitions(delta)]
        outcomes = [
            PartitionOutcome(tp.topic, tp.partition, self._elect_leader(delta, election_type, tp)) for tp in keys
        ]
        if partitions is None:
            return [o for o in outcomes if o.outcome is not _NOT_NEEDED]
        return outcomes

    def transfer_leadership(self, delta: MetadataDelta, topic_partition: TopicPartition, leader: int) -> None:
        """Make `leader` the leader of the partition; do nothing if it already is.

        Raises ApiError with UNKNOWN_TOPIC_OR_PARTITION, or with ELIGIBLE_LEADERS_NOT_AVAILABLE
        if `leader` cannot lead.
        """
        topic, partition = _existing_partition(delta, topic_partition)
        reason = None
        if leader not in partition.replicas:
            reason = f"is not one of its replicas {list(partition.replicas)}"
        elif not is_active(delta, leader):
            reason = "is fenced or in controlled shutdown"
        elif leader not in partition.isr:
            reason = f"is not in its ISR {list(partition.isr)}"
        if reason is not None:
            raise ApiError(
                ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, f"Broker {leader} cannot lead {topic_partition}: it {reason}."
            )
        builder = self.change_builder(delta, topic, topic_partition.partition, partition)
        builder.election = Election.PREFERRED
        builder.preferred_leader = leader
        self.put_built(delta, topic, topic_partition.partition, builder)

    def maybe_balance_leaders(self, delta: MetadataDelta) -> bool:
        """Elect preferred replicas; return whether there may be more work."""
        elections = 0
        for topic, number, partition in _partitions(delta, lambda p: p.leader != p.preferred_replica):
            builder = self.change_builder(delta, topic, number, partition)
            builder.election = Election.PREFERRED
            elections += self.put_built(delta, topic, number, builder)
            if elections >= MAX_ELECTIONS_PER_IMBALANCE:
                return True
        return False

    def maybe_elect_unclean_leaders(self, delta: MetadataDelta) -> bool:
        """Elect live replicas of partitions without a leader whose topic allows unclean elections.

        Returns whether there may be more work.
        """
        elections = 0
        for topic, number, _ in _partitions(delta, lambda p: not p.has_leader):
            if self._configs.unclean_election_enabled(delta, topic):
                key = TopicPartition(topic.name, number)
                elections += self._elect_leader(delta, ElectionType.UNCLEAN, key).ok
                if elections >= MAX_ELECTIONS_PER_IMBALANCE:
                    return True
        return False

    def _remove_from_isrs(
        self,
        delta: MetadataDelta,
        broker_id: int,
        *,
        unclean_shutdown: bool = False,
        only: frozenset[tuple[bytes, int]] | None = None,
    ) -> None:
        """Remove the broker from the ISRs of all partitions, or only of those in `only` (topic id, partition)."""

        def concerns(partition: PartitionState) -> bool:
            return broker_id in partition.isr or (unclean_shutdown and broker_id in partition.elr)

        for topic, number, partition in _partitions(delta, concerns):
            if only is not None and (topic.topic_id, number) not in only:
                continue
            builder = self.change_builder(delta, topic, number, partition)
            builder.election = self.automatic_election(delta, topic)
            builder.target_isr = tuple(r for r in partition.isr if r != broker_id)
            if unclean_shutdown:
                builder.unclean_shutdown_replica = broker_id
            self.put_built(delta, topic, number, builder)

    def _update_leader_and_isr(
        self, delta: MetadataDelta, topic: TopicState, number: int, partition: PartitionState
    ) -> None:
        builder = self.change_builder(delta, topic, number, partition)
        builder.election = self.automatic_election(delta, topic)
        self.put_built(delta, topic, number, builder)

    def put_built(self, delta: MetadataDelta, topic: TopicState, number: int, builder: PartitionChangeBuilder) -> bool:
        """Write the builder's next state; return whether there is one."""
        state = builder.build()
        if state is not None:
            self._put_partition(delta, topic.name, number, state)
        return state is not None

    def _alter_partition(
        self, delta: MetadataDelta, broker_id: int, change: PartitionAlteration
    ) -> AlterPartitionResult:
        name = delta.topic_name(change.topic_id)
        topic = None if name is None else delta.topic_head(name)
        if topic is None:
            return _refused(change, ErrorCode.UNKNOWN_TOPIC_ID)
        partition = delta.partition(topic.name, change.partition)
        if partition is None:
            return _refused(change, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        error = _proposal_error(delta, broker_id, partition, change)
        if error is not ErrorCode.NONE:
            return _refused(change, error)
        builder = self.change_builder(delta, topic, change.partition, partition)
        builder.election = self.automatic_election(delta, topic)
        builder.target_isr = tuple(member.broker_id for member in change.new_isr)
        builder.target_recovering = False
        state = builder.build()
        if state is None:
            return AlterPartitionResult(change.topic_id, change.partition, ErrorCode.NONE, partition)
        self._put_partition(delta, topic.name, change.partition, state)
        if state.leader != broker_id:
            # The last step of a reassignment has removed the leader itself from the replicas.
            return _refused(change, ErrorCode.NEW_LEADER_ELECTED)
        return AlterPartitionResult(change.topic_id, change.partition, ErrorCode.NONE, state)

    def _elect_leader(self, delta: MetadataDelta, election_type: ElectionType, key: TopicPartition) -> Outcome:
        try:
            topic, partition = _existing_partition(delta, key)
        except ApiError as error:
            return Outcome(error.error_code, error.error_message)
        preferred = election_type is ElectionType.PREFERRED
        if partition.leader == partition.preferred_replica if preferred else partition.has_leader:
            return _NOT_NEEDED
        builder = self.change_builder(delta, topic, key.partition, partition)
        builder.election = Election.PREFERRED if preferred else Election.UNCLEAN
        if not self.put_built(delta, topic, key.partition, builder):
            return _NOT_AVAILABLE[election_type]
        return Outcome()


def _existing_partition(delta: MetadataDelta, key: TopicPartition) -> tuple[TopicState, PartitionState]:
    """Return the partition with its topic. Raises ApiError with UNKNOWN_TOPIC_OR_PARTITION."""
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    topic = delta.topic_head(key.topic)
    if topic is None:
        raise ApiError(unknown, f"No such topic as {key.topic}")
    partition = delta.partition(key.topic, key.partition)
    if partition is None:
        raise ApiError(unknown, f"No such partition as {key}")
    return topic, partition


def _refused(change: PartitionAlteration, error_code: ErrorCode) -> AlterPartitionResult:
    return AlterPartitionResult(change.topic_id, change.partition, error_code)


def _proposal_error(
    delta: MetadataDelta, broker_id: int, partition: PartitionState, change: PartitionAlteration
) -> ErrorCode:
    """Return the error of a leader's proposal, NONE if there is none.

    NOT_CONTROLLER means that the leader has newer metadata than this controller.
    """
    new_isr = [member.broker_id for member in change.new_isr]
    error = ErrorCode.NONE
    if change.leader_epoch > partition.leader_epoch or change.partition_epoch > partition.partition_epoch:
        error = ErrorCode.NOT_CONTROLLER
    elif change.leader_epoch < partition.leader_epoch:
        error = ErrorCode.FENCED_LEADER_EPOCH
    elif broker_id != partition.leader:
        error = ErrorCode.INVALID_REQUEST
    elif change.partition_epoch < partition.partition_epoch:
        error = ErrorCode.INVALID_UPDATE_VERSION
    elif (
        len(set(new_isr)) < len(new_isr)
        or not set(new_isr) <= set(partition.replicas)
        or partition.leader not in new_isr
    ):
        error = ErrorCode.INVALID_REQUEST
    elif not all(_is_eligible(delta, member) for member in change.new_isr):
        error = ErrorCode.INELIGIBLE_REPLICA
    return error


def _is_eligible(delta: MetadataDelta, member: IsrMember) -> bool:
    """Return whether the broker may join the ISR: it is active, and its epoch is the one in the proposal."""
    if not is_active(delta, member.broker_id):
        return False
    return member.broker_epoch in {-1, delta.brokers[member.broker_id].epoch}


def _partitions(
    delta: MetadataDelta, matching: Callable[[PartitionState], bool] = lambda _: True
) -> Iterator[tuple[TopicState, int, PartitionState]]:
    """Iterate over the matching partitions, in their state before the caller changes any."""
    for topic in delta.all_topics():
        for number, partition in enumerate(topic.partitions):
            if matching(partition):
                yield topic, number, partition
