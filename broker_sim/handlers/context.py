"""The context of a request for its handler: its connection, and the broker that serves it.

A handler is called as `handler(request, context, respond)`. `respond(message)` is called exactly
once, now or later from a completed operation; `respond(None)` ends a request without a response
(acks=0). A handler that closes the connection instead does not call it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping, Sequence

    from broker_sim_purgatory import Clock

    from broker_sim.config import BrokerConfig, Endpoint
    from broker_sim.controller.controller_link import ControllerLink
    from broker_sim.errors import ErrorCode
    from broker_sim.fetch_session import FetchManager
    from broker_sim.group.service import GroupCoordinatorService
    from broker_sim.handlers.denial_log import DenialLog
    from broker_sim.handlers.telemetry.client_metrics import ClientMetricsManager
    from broker_sim.log import LogManager
    from broker_sim.metadata import MetadataImage
    from broker_sim.protocol import messages
    from broker_sim.protocol.api_keys import ApiKey
    from broker_sim.protocol.headers import RequestHeader
    from broker_sim.protocol.release import Release
    from broker_sim.quota import ControllerMutationQuotaManager
    from broker_sim.replica import LogDirMoves, ReplicaManager, TransactionalAppends
    from broker_sim.security import Authorizer, KafkaPrincipal
    from broker_sim.share.coordinator.share_coordinator import ShareCoordinator
    from broker_sim.share.partition.share_partition_manager import SharePartitionManager
    from broker_sim.share.state_apis import StateApi
    from broker_sim.transaction.coordinator import TransactionCoordinator

    Respond = Callable[[Any], None]
    Handler = Callable[[Any, "RequestContext", Respond], None]


class RequestContext:
    """One request, without its body; mirrors Kafka's `RequestContext`."""

    __slots__ = ("api_key", "api_version", "broker", "client_id", "connection", "faults", "throttle")

    def __init__(
        self,
        broker: BrokerServices,
        connection: ClientConnection,
        api_key: ApiKey,
        api_version: int,
        client_id: str | None,
    ) -> None:
        self.broker = broker
        self.connection = connection
        self.api_key = api_key
        self.api_version = api_version
        self.client_id = client_id
        self.faults: InjectedErrors | None = None
        """The injected faults that hit this request; handlers query them while they build the response."""
        self.throttle: RequestThrottle | None = None
        """Measures the request while quotas are set; None while there are none."""

    @property
    def listener(self) -> str:
        """The listener that the client uses: responses contain the addresses of the listener with that name."""
        return self.connection.listener

    @property
    def is_for_controller(self) -> bool:
        """Whether the client uses a listener that leads to the controller."""
        return any(each.listener == self.listener for each in self.broker.controller_endpoints)

    @property
    def principal(self) -> KafkaPrincipal:
        """Principal of the client; ANONYMOUS on a listener without logins."""
        return self.connection.principal


class ClientConnection(Protocol):
    """The connection that a request came from."""

    last_request: RequestHeader | None
    """The header of its last request, shown in the list of connections."""
    software: tuple[str, str]
    """Name and version of the client's library, from its ApiVersions request; "unknown" before that."""

    @property
    def ip(self) -> str:
        """The client's address."""

    @property
    def port(self) -> int:
        """The client's port; 0 if it is unknown."""

    @property
    def listener(self) -> str:
        """Name of the broker's listener that accepted the connection."""

    @property
    def principal(self) -> KafkaPrincipal:
        """Principal of the client's last login."""

    @property
    def may_ask_for_tokens(self) -> bool:
        """Whether the client has authenticated, but not with a delegation token."""

    @property
    def sends_files(self) -> bool:
        """Whether a response may contain parts of files."""

    @property
    def peer(self) -> str:
        """The client's address and port."""

    def start_throttling(self) -> None:
        """Stop reading requests until `end_throttling` has been called equally often."""

    def end_throttling(self) -> None:
        """Undo one `start_throttling`."""

    def when_lost(self, callback: Callable[[], object]) -> None:
        """Call `callback()` once, in the broker's process, when the client disconnects."""

    def close(self, reason: str = "") -> None:
        """Close the connection, possibly instead of a response; a non-empty `reason` is logged."""


class RequestThrottle(Protocol):
    """The quotas of one request's client."""

    def hold_up(self, throttle_time_ms: int) -> None:
        """Throttle the client for at least `throttle_time_ms`."""

    def max_fetch_bytes(self) -> float | None:
        """Return the maximum number of bytes a fetch may read without an empty response; None for no limit."""

    def refuses_fetch(self, response_bytes: int) -> bool:
        """Whether a fetch with a response of `response_bytes` must get an empty response."""

    def exempt(self) -> None:
        """Do not measure this request."""


class InjectedErrors(Protocol):
    """The injected errors of one request."""

    def error_for(self, topic: str, partition: int = -1, *, acknowledges: bool = False) -> ErrorCode:
        """Return the injected error of the partition, or of the topic if `partition` is -1; NONE if there is none.

        With `acknowledges`, return the error of the acknowledgements in a share fetch.
        """


class BrokerServices(Protocol):
    """The parts of a broker that handlers use."""

    @property
    def broker_id(self) -> int:
        """Id of the broker that serves the request."""

    @property
    def config(self) -> BrokerConfig:
        """The broker's static configuration."""

    @property
    def client_metrics(self) -> ClientMetricsManager:
        """The clients that push metrics to this broker."""

    def check_dynamic_configs(self, of_all: Mapping[str, str], own: Mapping[str, str], changed: str) -> None:
        """Raise ConfigError if these cluster-wide and own configurations are invalid for this broker.

        `changed` is the name of the resource that changes: the broker's id, or empty for all brokers.
        """

    @property
    def authorizer(self) -> Authorizer | None:
        """Decides what clients may do; None allows everything. Handlers use `handlers.support.authorization`."""

    @property
    def denials(self) -> DenialLog:
        """The cluster's log of denied operations."""

    @property
    def random(self) -> random.Random:
        """The broker's only source of random numbers."""

    @property
    def release(self) -> Release:
        """The Kafka release that the broker behaves as."""

    @property
    def replica_manager(self) -> ReplicaManager:
        """The partitions on this broker."""

    @property
    def logs(self) -> LogManager:
        """The logs of this broker, and their directories."""

    @property
    def log_dir_moves(self) -> LogDirMoves:
        """The replicas that move between the log directories of this broker."""

    def run_beside(self, work: Callable[[], Any], on_done: Callable[[Any], object], *, is_short: bool = False) -> None:
        """Run `work()`, which must not raise, on another thread if the loop is real, then `on_done(result)`.

        Work with `is_short` waits only for other short work.
        """

    @property
    def transactional_appends(self) -> TransactionalAppends:
        """Transactional appends, which the transaction coordinator verifies first."""

    def write_txn_markers(
        self, request: messages.WriteTxnMarkersRequest, respond: Callable[[messages.WriteTxnMarkersResponse], object]
    ) -> None:
        """Append transaction markers to partitions that this broker leads."""

    def serve_share_state(self, api: StateApi, request: Any, respond: Callable[[Any], object]) -> None:
        """Serve a client or a persister, as its share coordinator."""

    @property
    def fetch_manager(self) -> FetchManager:
        """The fetch sessions of this broker."""

    @property
    def share_partitions(self) -> SharePartitionManager:
        """The share partitions that this broker leads."""

    def create_internal_topics(
        self, topics: Mapping[str, messages.CreateTopicsRequest.CreatableTopic], keeps_errors_ms: int
    ) -> Mapping[str, str]:
        """Create internal topics of a Kafka Streams application, given by name, at the controller.

        Topics in progress are left out, and those that have failed within the last `keeps_errors_ms`. Returns the
        error messages of these failures by name.
        """

    @property
    def controller_quotas(self) -> ControllerMutationQuotaManager:
        """Clients' quotas for creating and deleting partitions, as measured by the controller."""

    @property
    def controller(self) -> ControllerLink:
        """The link to the controller."""

    @property
    def controller_endpoints(self) -> Sequence[Endpoint]:
        """The endpoints of this broker that lead to the controller."""

    def next_producer_id(self) -> int | None:
        """Return an unused producer id, or None while the broker waits for a block of ids."""

    @property
    def groups(self) -> GroupCoordinatorService:
        """The groups and offsets that this broker coordinates."""

    @property
    def transactions(self) -> TransactionCoordinator:
        """The transactional ids that this broker coordinates."""

    @property
    def share_coordinator(self) -> ShareCoordinator:
        """The state of share partitions that this broker coordinates."""

    @property
    def image(self) -> MetadataImage:
        """The newest metadata that this broker has."""

    @property
    def clock(self) -> Clock:
        """The broker's clock."""
