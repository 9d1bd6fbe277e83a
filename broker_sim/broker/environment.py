"""The objects that a cluster provides to every broker: other nodes, random numbers, purgatories, faults."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping

    from broker_sim.broker.late_metadata import MetadataDelay
    from broker_sim.controller import Controller
    from broker_sim.errors import ErrorCode
    from broker_sim.handlers import ApiTable
    from broker_sim.handlers.denial_log import DenialLog
    from broker_sim.handlers.faults import FaultInjector
    from broker_sim.handlers.request_log import RequestLog
    from broker_sim.handlers.telemetry.client_metrics import ClientMetricsLog
    from broker_sim.metadata.topic_partition import TopicIdPartition
    from broker_sim.protocol import messages
    from broker_sim.quota import ControllerMutationQuotaManager
    from broker_sim.replica import ReplicaServer
    from broker_sim.runtime.links import Links
    from broker_sim.runtime.purgatories import PurgatoryFactory
    from broker_sim.share.state_apis import StateApi


class Peer(Protocol):
    """The requests that brokers send to each other."""

    @property
    def replica_server(self) -> ReplicaServer:
        """Serves the followers of the partitions that this peer leads."""

    def add_partitions_to_txn(
        self,
        request: messages.AddPartitionsToTxnRequest,
        respond: Callable[[messages.AddPartitionsToTxnResponse], object],
    ) -> None:
        """Serve, as transaction coordinator, the leader of a partition that a transaction writes to."""

    def write_txn_markers(
        self, request: messages.WriteTxnMarkersRequest, respond: Callable[[messages.WriteTxnMarkersResponse], object]
    ) -> None:
        """Append transaction markers to partitions that this peer leads."""

    def serve_share_state(self, api: StateApi, request: Any, respond: Callable[[Any], object]) -> None:
        """Serve a persister, as its share coordinator."""

    def append_dead_letters(
        self,
        batches: Mapping[TopicIdPartition, bytes],
        respond: Callable[[Mapping[TopicIdPartition, ErrorCode]], object],
    ) -> None:
        """Append a broker's dead letters to partitions that this peer leads, with acks=all."""

    def create_dead_letter_topic(self, name: str, respond: Callable[[ErrorCode], object]) -> None:
        """Create a topic for dead letters, as for a client of this peer."""


class BrokerEnvironment(NamedTuple):
    """The objects that all brokers of a cluster share, also across restarts."""

    cluster_id: str
    links: Links
    controller: Controller
    """The active controller; brokers call it only through `links`."""
    peers: Mapping[int, Peer]
    """The brokers that are alive at this moment, by id; called only through `links`."""
    random: random.Random
    make_purgatory: PurgatoryFactory
    api_table: ApiTable
    faults: FaultInjector
    metadata_delay: MetadataDelay
    requests: RequestLog
    controller_quotas: ControllerMutationQuotaManager
    denials: DenialLog
    client_metrics: ClientMetricsLog
    on_change: Callable[[], object]
    """Called when a broker has applied new metadata, and when it begins to accept connections."""
