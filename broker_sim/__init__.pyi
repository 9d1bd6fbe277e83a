# The public names of broker_sim, each with its module: the one list, which __init__.py reads too.

from broker_sim.cluster.async_cluster import AsyncCluster as AsyncCluster
from broker_sim.cluster.cluster import Cluster as Cluster
from broker_sim.cluster.kafka_container import KafkaContainer as KafkaContainer
from broker_sim.cluster.nodes.node import LostRecords as LostRecords
from broker_sim.cluster.records import TopicRecord as TopicRecord
from broker_sim.cluster.records import TopicRecords as TopicRecords
from broker_sim.cluster.status.clients_status import ClientsMetrics as ClientsMetrics
from broker_sim.cluster.status.clients_status import ClientsStatus as ClientsStatus
from broker_sim.cluster.status.clients_status import ClientStatus as ClientStatus
from broker_sim.cluster.status.cluster_status import (
    BrokerStatus as BrokerStatus,
)
from broker_sim.cluster.status.cluster_status import (
    ClusterStatus as ClusterStatus,
)
from broker_sim.cluster.status.cluster_status import (
    FaultStatus as FaultStatus,
)
from broker_sim.cluster.status.cluster_status import (
    LinkStatus as LinkStatus,
)
from broker_sim.cluster.status.cluster_status import (
    MemoryStatus as MemoryStatus,
)
from broker_sim.cluster.status.cluster_status import (
    PartitionStatus as PartitionStatus,
)
from broker_sim.cluster.status.cluster_status import PurgatoriesStatus as PurgatoriesStatus
from broker_sim.cluster.status.cluster_status import PurgatoryStatus as PurgatoryStatus
from broker_sim.cluster.status.cluster_status import (
    ReplicaStatus as ReplicaStatus,
)
from broker_sim.cluster.status.cluster_status import (
    TopicStatus as TopicStatus,
)
from broker_sim.cluster.status.coordinator_status import (
    GroupMemberStatus as GroupMemberStatus,
)
from broker_sim.cluster.status.coordinator_status import (
    GroupOffsetStatus as GroupOffsetStatus,
)
from broker_sim.cluster.status.coordinator_status import (
    GroupsStatus as GroupsStatus,
)
from broker_sim.cluster.status.coordinator_status import (
    GroupStatus as GroupStatus,
)
from broker_sim.cluster.status.picture import Picture as Picture
from broker_sim.cluster.status.share_status import (
    InFlightStatus as InFlightStatus,
)
from broker_sim.cluster.status.share_status import (
    SharePartitionStatus as SharePartitionStatus,
)
from broker_sim.cluster.status.transaction_status import (
    ProducersStatus as ProducersStatus,
)
from broker_sim.cluster.status.transaction_status import (
    ProducerStatus as ProducerStatus,
)
from broker_sim.cluster.status.transaction_status import (
    TransactionsStatus as TransactionsStatus,
)
from broker_sim.cluster.status.transaction_status import (
    TransactionStatus as TransactionStatus,
)
from broker_sim.cluster.verbs.scopes import Scope as Scope
from broker_sim.cluster.virtual.simulated_cluster import ClientHost as ClientHost
from broker_sim.cluster.virtual.simulated_cluster import SimulatedCluster as SimulatedCluster
from broker_sim.cluster.virtual.virtual_client import PendingResponse as PendingResponse
from broker_sim.cluster.virtual.virtual_client import VirtualClient as VirtualClient
from broker_sim.cluster.virtual.virtual_cluster import (
    SimulationError as SimulationError,
)
from broker_sim.cluster.virtual.virtual_cluster import (
    VirtualCluster as VirtualCluster,
)
from broker_sim.config import GivenValue as GivenValue
from broker_sim.control.server import ControlServer as ControlServer
from broker_sim.errors import (
    ApiError as ApiError,
)
from broker_sim.errors import (
    ClusterTimeoutError as ClusterTimeoutError,
)
from broker_sim.errors import (
    ConfigError as ConfigError,
)
from broker_sim.errors import (
    ErrorCode as ErrorCode,
)
from broker_sim.errors import (
    MissingExtraError as MissingExtraError,
)
from broker_sim.errors import OutlivingClientWarning as OutlivingClientWarning
from broker_sim.errors import (
    UnknownBrokerError as UnknownBrokerError,
)
from broker_sim.errors import (
    UnknownPartitionError as UnknownPartitionError,
)
from broker_sim.errors import (
    WrongStateError as WrongStateError,
)
from broker_sim.handlers.denial_log import DenialsStatus as DenialsStatus
from broker_sim.handlers.denial_log import DenialStatus as DenialStatus
from broker_sim.handlers.faults import (
    Damage as Damage,
)
from broker_sim.handlers.faults import (
    Fault as Fault,
)
from broker_sim.handlers.faults import (
    HookedRequest as HookedRequest,
)
from broker_sim.handlers.faults import (
    InjectedFault as InjectedFault,
)
from broker_sim.handlers.faults import (
    Loss as Loss,
)
from broker_sim.handlers.request_log import RequestsStatus as RequestsStatus
from broker_sim.handlers.request_log import RequestStatus as RequestStatus
from broker_sim.handlers.telemetry.client_metrics import ClientMetricsStatus as ClientMetricsStatus
from broker_sim.handlers.telemetry.otlp import ClientMetric as ClientMetric
from broker_sim.log import DiskOptions as DiskOptions
from broker_sim.log import SimulatedDisk as SimulatedDisk
from broker_sim.metadata.topic_partition import TopicPartition as TopicPartition
from broker_sim.protocol.api_keys import ApiKey as ApiKey
from broker_sim.purgatory import ParkedOperation as ParkedOperation
from broker_sim.runtime.virtual.programs import Program as Program
from broker_sim.security import KeySet as KeySet
from broker_sim.trace import Trace as Trace
from broker_sim.trace import TraceSink as TraceSink
