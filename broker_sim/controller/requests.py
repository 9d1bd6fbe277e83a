"""What the controller is asked for, and its answers.

Plain values instead of wire messages, so that the controller knows no protocol; the handlers
translate. Names follow the fields of CreateTopics, CreatePartitions, DeleteTopics,
AlterPartition, ElectLeaders, IncrementalAlterConfigs, AlterPartitionReassignments and
BrokerHeartbeat.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from broker_sim.errors import ErrorCode
from broker_sim.metadata import PartitionState


class ElectionType(IntEnum):
    """Elections that can be asked for; mirrors ``ElectionType``."""

    PREFERRED = 0
    UNCLEAN = 1


class ConfigResourceType(IntEnum):
    """Kinds of things with configurations; mirrors ``ConfigResource.Type``."""

    TOPIC = 2
    BROKER = 4


class AlterOp(IntEnum):
    """What to do with one configuration; mirrors ``AlterConfigOp.OpType``."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one item of a request ended."""

    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None

    @property
    def ok(self) -> bool:
        """Whether it was done."""
        return self.error_code is ErrorCode.NONE


@dataclass(frozen=True, slots=True)
class HeartbeatReply:
    """The controller's answer to a heartbeat; mirrors `BrokerHeartbeatReply`."""

    is_fenced: bool
    should_shutdown: bool


@dataclass(frozen=True, slots=True)
class CreatableTopic:
    """A topic to create; -1 asks for the default.

    ``assignments`` pairs partition numbers with replicas, in the order given, so that a number
    that comes twice can be told.
    """

    name: str
    num_partitions: int = -1
    replication_factor: int = -1
    assignments: Sequence[tuple[int, Sequence[int]]] = ()
    configs: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CreateTopicResult:
    """How the creation of one topic ended; the numbers are -1 when it failed."""

    name: str
    outcome: Outcome
    topic_id: bytes = bytes(16)
    num_partitions: int = -1
    replication_factor: int = -1


@dataclass(frozen=True, slots=True)
class NewPartitions:
    """A topic's wanted number of partitions, and where the new ones shall be, if given."""

    name: str
    count: int
    assignments: Sequence[Sequence[int]] | None = None


@dataclass(frozen=True, slots=True)
class DeleteTopicResult:
    """How the deletion of one topic ended; name or id may be unknown."""

    name: str | None
    topic_id: bytes
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class IsrMember:
    """A broker that the leader wants in the ISR; epoch -1 is not checked."""

    broker_id: int
    broker_epoch: int = -1


@dataclass(frozen=True, slots=True)
class PartitionAlteration:
    """A new ISR as proposed by the leader of a partition; it ends a recovery as well."""

    topic_id: bytes
    partition: int
    leader_epoch: int
    partition_epoch: int
    new_isr: Sequence[IsrMember]


@dataclass(frozen=True, slots=True)
class AlterPartitionResult:
    """What became of a proposal; ``state`` is the partition as it is now, None on an error."""

    topic_id: bytes
    partition: int
    error_code: ErrorCode
    state: PartitionState | None = None


@dataclass(frozen=True, slots=True)
class PartitionOutcome:
    """How an election or a reassignment of one partition ended."""

    topic: str
    partition: int
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class ConfigResource:
    """Whose configuration: a topic by name, a broker by its id as text, ``""`` all brokers."""

    type: ConfigResourceType
    name: str


@dataclass(frozen=True, slots=True)
class ConfigAlteration:
    """One change of one configuration."""

    name: str
    op: AlterOp
    value: str | None = None


@dataclass(frozen=True, slots=True)
class Reassignment:
    """The wanted replicas of a partition; None gives up the one under way."""

    topic: str
    partition: int
    replicas: Sequence[int] | None


@dataclass(frozen=True, slots=True)
class OngoingReassignment:
    """A reassignment under way."""

    topic: str
    partition: int
    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    removing_replicas: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ProducerIdsBlock:
    """Producer ids for one broker to give out: ``size`` from ``first_producer_id`` on."""

    first_producer_id: int
    size: int
