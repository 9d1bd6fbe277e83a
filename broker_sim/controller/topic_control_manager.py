"""Creates and deletes topics, and adds partitions to them.

Mirrors the part of `ReplicationControlManager` of Kafka that creates topics, and
`ControllerApis.deleteTopics`. Deliberate differences: no policies; results of
DeleteTopics are in the order of the request instead of shuffled.

Error messages are Kafka's, because clients see them.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from random import Random
from typing import Final

from broker_sim.config import BrokerConfig
from broker_sim.controller.cluster_control_manager import ClusterControlManager, is_active
from broker_sim.controller.configuration_control_manager import ConfigurationControlManager
from broker_sim.controller.replica_placer import StripedReplicaPlacer
from broker_sim.controller.requests import (
    Charge,
    CreatableTopic,
    CreateTopicResult,
    DeleteTopicResult,
    NewPartitions,
    Outcome,
    free_of_charge,
)
from broker_sim.errors import NOT_HOSTED_TEXT, ApiError, ErrorCode
from broker_sim.metadata import NO_TOPIC_ID, MetadataDelta, PartitionState, TopicState
from broker_sim.metadata.topic_name import (
    CLUSTER_METADATA_TOPIC,
    has_collision_chars,
    invalid_topic_name,
    unify_collision_chars,
)
from broker_sim.protocol.uuids import version_4

MAX_PARTITIONS_PER_REQUEST: Final = 10_000
MAX_RECORDS_PER_REQUEST: Final = 10_000
"""Kafka writes a record for each topic, each of its configurations and each of its partitions."""

_DASH: Final = 62  # the six bits that URL-safe base64 encodes as "-"


class TopicControlManager:
    """Creates, extends and deletes topics. Thread rule: the controller's thread."""

    def __init__(
        self, config: BrokerConfig, configs: ConfigurationControlManager, cluster: ClusterControlManager, rng: Random
    ) -> None:
        self._config = config
        self._configs = configs
        self._cluster = cluster
        self._rng = rng

    def create_topics(
        self, delta: MetadataDelta, topics: Sequence[CreatableTopic], charge: Charge = free_of_charge
    ) -> list[CreateTopicResult]:
        """Create the valid topics; return one result per name.

        Raises ApiError with POLICY_VIOLATION for all of them if they have too many partitions in total, or if Kafka
        would write too many records.
        """
        self._check_partition_count(topics)
        written = 0
        names_in_use = _names_in_use(delta, topics)
        names = Counter(topic.name for topic in topics)
        results = []
        for topic in {topic.name: topic for topic in topics}.values():
            try:
                _check_named_once(topic.name, names)
                state = self._create(delta, topic, names_in_use, charge)
            except ApiError as error:
                outcome = Outcome(error.error_code, error.error_message)
                results.append(CreateTopicResult(topic.name, outcome))
                continue
            written += _records_of(state)
            _check_records(written)
            results.append(
                CreateTopicResult(
                    topic.name,
                    Outcome(),
                    topic_id=state.topic_id,
                    num_partitions=len(state.partitions),
                    replication_factor=len(state.partitions[0].replicas),
                )
            )
        return results

    def create_one_by_one(self, delta: MetadataDelta, topics: Iterable[CreatableTopic]) -> None:
        """Create topics as if by separate requests. Raises ApiError for the first refused topic."""
        topics = list(topics)
        names_in_use = _names_in_use(delta, topics)
        for topic in topics:
            self._check_partition_count([topic])
            _check_records(_records_of(self._create(delta, topic, names_in_use, free_of_charge)))
            names_in_use[unify_collision_chars(topic.name)] = topic.name

    def create_partitions(
        self, delta: MetadataDelta, topics: Sequence[NewPartitions], charge: Charge = free_of_charge
    ) -> list[tuple[str, Outcome]]:
        """Add partitions to topics; return one outcome per name."""
        names = Counter(topic.name for topic in topics)
        results = []
        for new_partitions in {topic.name: topic for topic in topics}.values():
            outcome = Outcome()
            topic = delta.topic(new_partitions.name)
            try:
                _check_named_once(new_partitions.name, names)
                if topic is None:
                    outcome = Outcome(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                else:
                    self._add_partitions(delta, topic, new_partitions, charge)
            except ApiError as error:
                outcome = Outcome(error.error_code, error.error_message)
            results.append((new_partitions.name, outcome))
        return results

    def delete_topics(
        self, delta: MetadataDelta, topics: Sequence[str | bytes], charge: Charge = free_of_charge
    ) -> list[DeleteTopicResult]:
        """Delete topics by name (str) or id (bytes).

        Raises ApiError with TOPIC_DELETION_DISABLED if deletion is disabled.
        """
        if not self._config.delete_topic_enable:
            raise ApiError(ErrorCode.TOPIC_DELETION_DISABLED, "Topic deletion is disabled.")
        counts = Counter(topics)
        topics_by_name = [delta.topic(key) for key in counts if isinstance(key, str)]
        named_twice = {topic.topic_id for topic in topics_by_name if topic and topic.topic_id in counts}
        return [self._delete_topic(delta, key, counts, charge) for key in counts if key not in named_twice]

    def _delete_topic(
        self, delta: MetadataDelta, key: str | bytes, counts: Counter[str | bytes], charge: Charge
    ) -> DeleteTopicResult:
        by_name = isinstance(key, str)
        topic = delta.topic(key) if isinstance(key, str) else delta.topic_by_id(key)
        name = key if isinstance(key, str) else None
        topic_id = NO_TOPIC_ID if isinstance(key, str) else key

        def refused(code: ErrorCode, message: str) -> DeleteTopicResult:
            return DeleteTopicResult(name, topic_id, Outcome(code, message))

        if counts[key] > 1:
            kind = "name" if by_name else "id"
            return refused(ErrorCode.INVALID_REQUEST, f"Duplicate topic {kind}.")
        if topic_id == NO_TOPIC_ID and not by_name:
            return refused(ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")
        if topic is None:
            if by_name:
                return refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, NOT_HOSTED_TEXT)
            return refused(ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
        if by_name and topic.topic_id in counts:
            topic_id = topic.topic_id
            return refused(
                ErrorCode.INVALID_REQUEST, "The provided topic name maps to an ID that was already supplied."
            )
        outcome = Outcome()
        try:
            charge(len(topic.partitions))
            delta.remove_topic(topic.name)
        except ApiError as error:
            outcome = Outcome(error.error_code, error.error_message)
        return DeleteTopicResult(topic.name, topic.topic_id, outcome)

    def _check_partition_count(self, topics: Sequence[CreatableTopic]) -> None:
        _check_number(sum(map(self._requested_partitions, topics)))

    def _requested_partitions(self, topic: CreatableTopic) -> int:
        if topic.assignments:
            return len(topic.assignments)
        if topic.num_partitions == -1:
            return self._config.num_partitions
        return max(topic.num_partitions, 0)

    def _create(
        self, delta: MetadataDelta, topic: CreatableTopic, names_in_use: dict[str, str], charge: Charge
    ) -> TopicState:
        """Write the new topic into `delta`. Raises ApiError."""
        _check_name(topic.name, names_in_use)
        state = self._new_topic(delta, topic)
        charge(len(state.partitions))
        delta.set_topic(state)
        return state

    def _new_topic(self, delta: MetadataDelta, topic: CreatableTopic) -> TopicState:
        if delta.has_topic(topic.name):
            raise ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{topic.name}' already exists.")
        configs = self._configs.validate_topic_configs(delta, topic.configs)
        place = _assigned_partitions if topic.assignments else self._placed_partitions
        partitions = place(delta, topic)
        return TopicState(topic.name, self._new_topic_id(), partitions, configs)

    def _new_topic_id(self) -> bytes:
        while True:
            topic_id = version_4(self._rng.randbytes(16))
            # An id with a leading dash would look like an option to tools.
            if topic_id[0] >> 2 != _DASH:
                return topic_id

    def _placed_partitions(self, delta: MetadataDelta, topic: CreatableTopic) -> tuple[PartitionState, ...]:
        factor, count = topic.replication_factor, topic.num_partitions
        if factor < -1 or factor == 0:
            raise ApiError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                "Replication factor must be larger than 0, or -1 to use the default value.",
            )
        if count < -1 or count == 0:
            raise ApiError(
                ErrorCode.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value."
            )
        factor = self._config.default_replication_factor if factor == -1 else factor
        count = self._config.num_partitions if count == -1 else count
        try:
            placed = self._place(delta, count, factor)
        except ApiError as error:
            raise ApiError(error.error_code, f"Unable to replicate the partition {factor} time(s): {error}") from error
        return tuple(_placed_partition(delta, replicas) for replicas in placed)

    def _place(self, delta: MetadataDelta, count: int, factor: int) -> list[tuple[int, ...]]:
        brokers = self._cluster.usable_brokers(delta)
        return StripedReplicaPlacer(brokers, self._rng).place(count, factor)

    def _add_partitions(
        self, delta: MetadataDelta, topic: TopicState, new_partitions: NewPartitions, charge: Charge
    ) -> None:
        present = len(topic.partitions)
        code = ErrorCode.INVALID_PARTITIONS
        if new_partitions.count == present:
            raise ApiError(code, f"Topic already has {present} partition(s).")
        if new_partitions.count < present:
            raise ApiError(
                code,
                f"The topic {new_partitions.name} currently has {present} partition(s);"
                f" {new_partitions.count} would not be an increase.",
            )
        additional = new_partitions.count - present
        _check_number(additional)
        if new_partitions.assignments is not None and len(new_partitions.assignments) != additional:
            raise ApiError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Attempted to add {additional} additional partition(s), but only"
                f" {len(new_partitions.assignments)} assignment(s) were specified.",
            )
        charge(additional)
        factor = len(topic.partitions[0].replicas)
        if new_partitions.assignments is None:
            placed = self._place(delta, additional, factor)
            states = [_placed_partition(delta, replicas) for replicas in placed]
        else:
            states = [
                _assigned_partition(delta, present + i, replicas, factor)
                for i, replicas in enumerate(new_partitions.assignments)
            ]
        for number, state in enumerate(states, present):
            delta.set_partition(new_partitions.name, number, state)


def validate_manual_assignment(
    delta: MetadataDelta, replicas: Sequence[int], replication_factor: int | None = None
) -> None:
    """Raise ApiError with INVALID_REPLICA_ASSIGNMENT unless the brokers exist and are distinct.

    `replication_factor` is the number of replicas of earlier partitions, None if there are none.
    """
    reason = None
    if not replicas:
        reason = "The manual partition assignment includes an empty replica list."
    for previous, broker_id in zip([None, *sorted(replicas)], sorted(replicas), strict=False):
        if broker_id not in delta.brokers:
            reason = f"The manual partition assignment includes broker {broker_id}, but no such broker is registered."
        elif broker_id == previous:
            reason = f"The manual partition assignment includes the broker {broker_id} more than once."
        if reason is not None:
            break
    if reason is None and replication_factor not in {None, len(replicas)}:
        reason = (
            f"The manual partition assignment includes a partition with {len(replicas)}"
            " replica(s), but this is not consistent with previous partitions, which have"
            f" {replication_factor} replica(s)."
        )
    if reason is not None:
        raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)


def _names_in_use(delta: MetadataDelta, topics: Iterable[CreatableTopic]) -> dict[str, str]:
    """Return the topics by their names with dots replaced by underscores, which must be unique.

    If no new name has such a character, nothing can collide, and the result is empty.
    """
    if not any(has_collision_chars(topic.name) for topic in topics):
        return {}
    return {unify_collision_chars(topic.name): topic.name for topic in delta.all_topics()}


def _check_number(partitions: int) -> None:
    if partitions > MAX_PARTITIONS_PER_REQUEST:
        raise ApiError(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")


def _records_of(topic: TopicState) -> int:
    """Return the number of records that Kafka writes to create the topic."""
    return 1 + len(topic.configs) + len(topic.partitions)


def _check_records(records: int) -> None:
    if records > MAX_RECORDS_PER_REQUEST:
        raise ApiError(ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")


def _check_named_once(name: str, names: Counter[str]) -> None:
    if names[name] > 1:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")


def _check_name(name: str, names_in_use: dict[str, str]) -> None:
    if name == CLUSTER_METADATA_TOPIC:
        why = f"Creation of internal topic {name} is prohibited."
        raise ApiError(ErrorCode.INVALID_REQUEST, why)
    wrong = invalid_topic_name(name)
    other = names_in_use.get(unify_collision_chars(name))
    if wrong is None and other not in {None, name}:
        wrong = f"Topic '{name}' collides with existing topic: {other}"
    if wrong is not None:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, wrong)


def _new_partition(delta: MetadataDelta, replicas: Iterable[int], refusal: ApiError) -> PartitionState:
    """Return a partition whose ISR is its active replicas. Raises `refusal` if there are none."""
    isr = tuple(replica for replica in replicas if is_active(delta, replica))
    if not isr:
        raise refusal
    return PartitionState(tuple(replicas), isr, isr[0], leader_epoch=0, partition_epoch=0)


def _placed_partition(delta: MetadataDelta, replicas: tuple[int, ...]) -> PartitionState:
    why = (
        f"Unable to replicate the partition {len(replicas)} time(s): All brokers are"
        " currently fenced or in controlled shutdown."
    )
    return _new_partition(delta, replicas, ApiError(ErrorCode.INVALID_REPLICATION_FACTOR, why))


def _assigned_partition(
    delta: MetadataDelta, number: int, replicas: Sequence[int], replication_factor: int | None
) -> PartitionState:
    validate_manual_assignment(delta, replicas, replication_factor)
    why = (
        f"All brokers specified in the manual partition assignment for partition {number} are"
        " fenced or in controlled shutdown."
    )
    refusal = ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, why)
    return _new_partition(delta, replicas, refusal)


def _assigned_partitions(delta: MetadataDelta, topic: CreatableTopic) -> tuple[PartitionState, ...]:
    for name, value in (("replication factor", topic.replication_factor), ("numPartitions", topic.num_partitions)):
        if value != -1:
            raise ApiError(
                ErrorCode.INVALID_REQUEST, f"A manual partition assignment was specified, but {name} was not set to -1."
            )
    states: dict[int, PartitionState] = {}
    factor = None
    for number, replicas in topic.assignments:
        if number in states:
            raise ApiError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Found multiple manual partition assignments for partition {number}",
            )
        states[number] = _assigned_partition(delta, number, replicas, factor)
        factor = len(replicas)
    if set(states) != set(range(len(states))):
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "partitions should be a consecutive 0-based integer sequence"
        )
    return tuple(states[number] for number in range(len(states)))
