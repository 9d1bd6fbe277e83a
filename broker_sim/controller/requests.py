"""The requests to the controller and their results.

Plain values instead of wire messages, so that the controller knows no protocol; the handlers
translate. Names follow the fields of CreateTopics, CreatePartitions, DeleteTopics,
AlterPartition, ElectLeaders, IncrementalAlterConfigs, AlterPartitionReassignments, UpdateFeatures,
AlterUserScramCredentials, AlterClientQuotas, DeleteAcls and BrokerHeartbeat.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from types import MappingProxyType
from typing import NamedTuple

from broker_sim.errors import ErrorCode
from broker_sim.metadata import NO_TOPIC_ID, PartitionState
from broker_sim.metadata.acl import Acl
from broker_sim.metadata.quota_entity import QuotaEntity

Charge = Callable[[int], None]
"""Called with the number of partitions to create or delete; raises ApiError if the client must wait."""


def free_of_charge(partitions: int, /) -> None:
    """Accept any number of partitions."""


class ElectionType(IntEnum):
    """The elections of ElectLeaders; mirrors `ElectionType`."""

    PREFERRED = 0
    UNCLEAN = 1


class ConfigResourceType(IntEnum):
    """Types of resources that have configurations; mirrors `ConfigResource.Type`."""

    TOPIC = 2
    BROKER = 4
    CLIENT_METRICS = 16
    GROUP = 32


class AlterOp(IntEnum):
    """Operations on one configuration; mirrors `AlterConfigOp.OpType`."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class UpgradeType(IntEnum):
    """Kinds of feature changes; mirrors `FeatureUpdate.UpgradeType`."""

    UNKNOWN = 0
    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class FeatureUpdate(NamedTuple):
    """A feature and its requested level."""

    feature: str
    level: int
    upgrade_type: UpgradeType


class Outcome(NamedTuple):
    """The result of one item of a request."""

    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None

    @property
    def ok(self) -> bool:
        """Whether there was no error."""
        return self.error_code is ErrorCode.NONE


class HeartbeatReply(NamedTuple):
    """The controller's reply to a heartbeat; mirrors `BrokerHeartbeatReply`."""

    is_fenced: bool
    should_shutdown: bool


class CreatableTopic(NamedTuple):
    """A topic to create; -1 stands for the default.

    `assignments` are pairs of a partition number and its replicas, in the order of the request, so
    that duplicates are detected.
    """

    name: str
    num_partitions: int = -1
    replication_factor: int = -1
    assignments: Sequence[tuple[int, Sequence[int]]] = ()
    configs: Mapping[str, str | None] = MappingProxyType({})


class CreateTopicResult(NamedTuple):
    """The result of creating one topic; the numbers are -1 on failure."""

    name: str
    outcome: Outcome
    topic_id: bytes = NO_TOPIC_ID
    num_partitions: int = -1
    replication_factor: int = -1


@dataclass(frozen=True, slots=True)
class NewPartitions:
    """A topic's new partition count, and the replicas of the new partitions, or None."""

    name: str
    count: int
    assignments: Sequence[Sequence[int]] | None = None


class DeleteTopicResult(NamedTuple):
    """The result of deleting one topic; name or id may be unknown."""

    name: str | None
    topic_id: bytes
    outcome: Outcome


class IsrMember(NamedTuple):
    """A proposed ISR member; a broker epoch of -1 is not checked."""

    broker_id: int
    broker_epoch: int = -1


class PartitionAlteration(NamedTuple):
    """A new ISR proposed by the leader of a partition; it can also end a recovery."""

    topic_id: bytes
    partition: int
    leader_epoch: int
    partition_epoch: int
    new_isr: Sequence[IsrMember]


class AlterPartitionResult(NamedTuple):
    """The result of a proposal; `state` is the partition after it, None on an error."""

    topic_id: bytes
    partition: int
    error_code: ErrorCode
    state: PartitionState | None = None


class PartitionOutcome(NamedTuple):
    """The result of an election or a reassignment of one partition."""

    topic: str
    partition: int
    outcome: Outcome


class ConfigResource(NamedTuple):
    """A topic with its name, a broker with its id as text, or all brokers with an empty name."""

    type: ConfigResourceType
    name: str


class ConfigAlteration(NamedTuple):
    """One change of one configuration."""

    name: str
    op: AlterOp
    value: str | None = None


class Reassignment(NamedTuple):
    """The target replicas of a partition; None cancels its ongoing reassignment."""

    topic: str
    partition: int
    replicas: Sequence[int] | None


class OngoingReassignment(NamedTuple):
    """An ongoing reassignment."""

    topic: str
    partition: int
    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    removing_replicas: tuple[int, ...]


class ScramDeletion(NamedTuple):
    """A credential to delete; `mechanism` is Kafka's code, which may be unknown."""

    user: str
    mechanism: int


@dataclass(frozen=True, slots=True)
class ScramUpsertion:
    """A credential to create or replace; the client has salted and hashed the password."""

    user: str
    mechanism: int
    iterations: int
    salt: bytes = field(repr=False)
    salted_password: bytes = field(repr=False)


class ScramResults(NamedTuple):
    """The users that were changed, and the errors of the others; each user has at most one change."""

    deleted: tuple[str, ...]
    upserted: tuple[str, ...]
    refused: Mapping[str, Outcome]


class ClientQuotaAlteration(NamedTuple):
    """Quotas to set for an entity, by Kafka's names; None removes a quota."""

    entity: QuotaEntity
    operations: Sequence[tuple[str, float | None]]


class DeletedAcls(NamedTuple):
    """The ACLs that one filter has deleted, or the error."""

    outcome: Outcome
    acls: tuple[Acl, ...] = ()


class ProducerIdsBlock(NamedTuple):
    """`size` producer ids from `first_producer_id` on, for one broker to allocate."""

    first_producer_id: int
    size: int
