"""The context of a request for its handler: its connection, and the broker that serves it.

A handler is called as `handler(request, context, respond)`. `respond(message)` is called exactly
once, now or later from a completed operation; `respond(None)` ends a request that has no answer
(acks=0). A handler that closes the connection instead does not respond.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from broker_sim_purgatory import Clock

    from broker_sim.config import BrokerConfig, Endpoint
    from broker_sim.controller import Controller
    from broker_sim.errors import ApiError, ErrorCode
    from broker_sim.fetch_session import FetchManager
    from broker_sim.group.service import GroupCoordinatorService
    from broker_sim.handlers.telemetry.client_metrics import ClientMetricsManager
    from broker_sim.log import LogManager
    from broker_sim.metadata import MetadataImage
    from broker_sim.metadata.acl import AclOperation, ResourceType
    from broker_sim.protocol import messages
    from broker_sim.protocol.api_keys import ApiKey
    from broker_sim.protocol.headers import RequestHeader
    from broker_sim.protocol.release import Release
    from broker_sim.quota import ControllerMutationQuotaManager
    from broker_sim.replica import LogDirMoves, ReplicaManager, TransactionalAppends
    from broker_sim.security import KafkaPrincipal
    from broker_sim.share.coordinator.share_coordinator import ShareCoordinator
    from broker_sim.share.partition.share_partition_manager import SharePartitionManager
    from broker_sim.share.state_apis import StateApi
    from broker_sim.transaction.coordinator import TransactionCoordinator

    Respond = Callable[[Any], None]
    Handler = Callable[[Any, "RequestContext", Respond], None]

Result = TypeVar("Result")


class RequestContext:
    """One request apart from its body; mirrors Kafka's `RequestContext`."""

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
        """The injected faults that hit this request; asked where the answer is made."""
        self.throttle: RequestThrottle | None = None
        """Measures the request while quotas are set; None while there are none."""

    @property
    def listener(self) -> str:
        """The listener that the client uses: an answer has the addresses of brokers' listeners of that name."""
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
    """The header of its last request, for those who ask who is connected."""
    software: tuple[str, str]
    """Name and version of the client's library, as its ApiVersions request had them; "unknown" before."""

    @property
    def ip(self) -> str:
        """The client's address."""

    @property
    def listener(self) -> str:
        """The name of the broker's listener that it was made to."""

    @property
    def principal(self) -> KafkaPrincipal:
        """Principal of the client's last login."""

    @property
    def may_ask_for_tokens(self) -> bool:
        """Whether the client has shown who it is, and not by a delegation token."""

    @property
    def sends_files(self) -> bool:
        """Whether a response may have parts of files."""

    @property
    def peer(self) -> str:
        """The client's address and port."""

    def start_throttling(self) -> None:
        """Take no request until `end_throttling` was called as often."""

    def end_throttling(self) -> None:
        """Take requests again."""

    def when_lost(self, callback: Callable[[], object]) -> None:
        """Call `callback()` once, in the broker's process, when the client has gone."""

    def close(self, reason: str = "") -> None:
        """Close the connection, maybe in place of an answer; `reason` is logged if there is one."""


class RequestThrottle(Protocol):
    """The quotas of one request's client."""

    def hold_up(self, throttle_time_ms: int) -> None:
        """Hold the client up for that time at least."""

    def max_fetch_bytes(self) -> float | None:
        """Return what a fetch may read at most without being answered empty, None without a limit."""

    def refuses_fetch(self, response_bytes: int) -> bool:
        """Whether a fetch with an answer of that size is answered empty."""

    def exempt(self) -> None:
        """Do not measure this request."""


class InjectedErrors(Protocol):
    """The injected errors of one request."""

    def error_for(self, topic: str, partition: int = -1, *, acknowledges: bool = False) -> ErrorCode:
        """Return the error that answers this partition, or this topic; NONE without one.

        `acknowledges` is for the records of the partition that a share fetch acknowledges.
        """


class Permissions(Protocol):
    """Permissions of clients; handlers use them by `handlers.support.authorization`."""

    def allows(
        self,
        context: RequestContext,
        operation: AclOperation,
        resource_type: ResourceType,
        name: str,
        *,
        logs_denial: bool,
    ) -> bool:
        """Return whether the client may do this with the resource, and log a denial."""

    def allows_on_any(self, context: RequestContext, operation: AclOperation, resource_type: ResourceType) -> bool:
        """Return whether there is a resource of the type with which the client may do this."""


class DynamicConfigCheck(Protocol):
    """Checks dynamic configurations on the broker itself."""

    def validate(self, of_all: Mapping[str, str], own: Mapping[str, str], changed: str) -> None:
        """Raise ConfigError unless the broker may have these; `changed` names the resource that changes."""


class ProducerIdSource(Protocol):
    """Ids for idempotent producers."""

    def next_id(self) -> int | None:
        """Return an id that no other producer has, or None while none is here."""


class InternalTopicCreation(Protocol):
    """Creates the internal topics of Kafka Streams applications, and keeps their failures."""

    def create(self, topics: Iterable[messages.CreateTopicsRequest.CreatableTopic], keeps_errors_ms: int) -> None:
        """Ask the controller for those topics that are not being created, and have not failed just now."""

    def errors_of(self, names: Sequence[str]) -> dict[str, str]:
        """Return why some of these topics could not be created."""


class BrokerServices(Protocol):
    """The parts of a broker that handlers use."""

    @property
    def broker_id(self) -> int:
        """The broker that serves the request."""

    @property
    def config(self) -> BrokerConfig:
        """The broker's static configuration."""

    @property
    def client_metrics(self) -> ClientMetricsManager:
        """The clients that push metrics to this broker."""

    @property
    def dynamic_config(self) -> DynamicConfigCheck:
        """Checks changes of the broker's configuration before they are sent to the controller."""

    @property
    def authorizer(self) -> Permissions | None:
        """Decides what clients may do; None allows everything."""

    @property
    def random(self) -> random.Random:
        """The only source of chance."""

    @property
    def release(self) -> Release:
        """The release of Kafka that the broker is."""

    @property
    def replica_manager(self) -> ReplicaManager:
        """The partitions on this broker."""

    @property
    def logs(self) -> LogManager:
        """The logs of this broker, and where they are kept."""

    @property
    def log_dir_moves(self) -> LogDirMoves:
        """The replicas that move between the log directories of this broker."""

    def run_beside(self, work: Callable[[], Any], on_done: Callable[[Any], object], *, is_short: bool = False) -> None:
        """Run `work()`, which must not raise, beside the loop if it is a real one, then `on_done(result)`.

        What `is_short` waits for other short work only.
        """

    @property
    def transactional_appends(self) -> TransactionalAppends:
        """Appends that the coordinator of a transaction is asked about before."""

    def write_txn_markers(
        self, request: messages.WriteTxnMarkersRequest, respond: Callable[[messages.WriteTxnMarkersResponse], object]
    ) -> None:
        """Append the markers of transactions to partitions led here."""

    def serve_share_state(self, api: StateApi, request: Any, respond: Callable[[Any], object]) -> None:
        """Serve a client or a persister, as the coordinator of its share partitions."""

    @property
    def fetch_manager(self) -> FetchManager:
        """The fetch sessions of this broker."""

    @property
    def share_partitions(self) -> SharePartitionManager:
        """The share partitions that this broker leads."""

    @property
    def streams_internal_topics(self) -> InternalTopicCreation:
        """Creates internal topics of Kafka Streams applications."""

    @property
    def controller_quotas(self) -> ControllerMutationQuotaManager:
        """Quotas of clients for creations and deletions of partitions, as the controller measures them."""

    @property
    def controller(self) -> ControllerChannel:
        """The link to the controller."""

    @property
    def controller_endpoints(self) -> Sequence[Endpoint]:
        """The endpoints of this broker that lead to the controller."""

    @property
    def producer_ids(self) -> ProducerIdSource:
        """Ids for idempotent producers."""

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
        """The newest metadata that this broker has heard of."""

    @property
    def clock(self) -> Clock:
        """The broker's clock."""


class ControllerChannel(Protocol):
    """The link to the active controller: a verb goes there, its result comes back later.

    Mirrors `NodeToControllerChannelManager` and the forwarding of admin requests (KIP-590).
    """

    def call(
        self,
        verb: Callable[[Controller], Result],
        on_result: Callable[[Result], None],
        on_refusal: Callable[[ApiError], None],
    ) -> None:
        """Run `verb(controller)` there, and `on_result(result)` here when the result has arrived.

        `on_refusal(error)` runs here instead when the verb raised ApiError, or anything unexpected:
        then with UNKNOWN_SERVER_ERROR.
        """
