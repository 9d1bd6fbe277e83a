"""The served APIs, each with its versions and its handler: the only list of them.

A range covers all served versions, whatever release has them; a cluster advertises those that its release has.
Mirrors `ApiVersionManager` and the dispatch at the top of `KafkaApis.handle`.

The list names the module of each handler, below `broker_sim.handlers`. The module is imported at the API's first
request, so that a cluster imports only what its clients use. A handler is named `handle_` plus its key's name.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.controller import supported_features
from broker_sim.handlers.cluster.api_versions import build_api_versions, handle_api_versions
from broker_sim.metadata.acl import AclOperation
from broker_sim.protocol.api_keys import ApiKey
from broker_sim.protocol.release import find_release, releases

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from broker_sim.errors import ErrorCode
    from broker_sim.handlers.context import Handler
    from broker_sim.protocol import messages
    from broker_sim.protocol.release import Release


def _imported(module: str, function: str) -> Handler:
    handler: Handler = getattr(import_module(f"broker_sim.handlers.{module}"), function)
    return handler


class ApiSpec(NamedTuple):
    """One served API; versions outside its range get UNSUPPORTED_VERSION or a closed connection, as from Kafka."""

    key: ApiKey
    min_version: int
    max_version: int
    place: str | Handler
    """The module of the handler, such as "data.produce", or the handler itself."""
    advertised_min_version: int | None = None
    """A version below `min_version`, for APIs where clients need to see a lower one."""
    cluster_operations: tuple[AclOperation, ...] = ()
    """Cluster operations; with an authorizer, a client must be allowed at least one of them."""

    @property
    def handler(self) -> Handler:
        """The handler of this API's requests."""
        place = self.place
        return _imported(place, f"handle_{self.key.name.lower()}") if isinstance(place, str) else place

    @property
    def advertised(self) -> tuple[int, int, int]:
        """The key, and the lowest and highest version advertised to clients."""
        lowest = self.advertised_min_version
        return self.key, self.min_version if lowest is None else lowest, self.max_version

    def serves(self, api_version: int) -> bool:
        """Whether the version is served."""
        return self.min_version <= api_version <= self.max_version

    def limited_to(self, release: Release) -> ApiSpec | None:
        """Return the API limited to the versions of the release; None if no version is left."""
        lowest, highest = release.apis.get(self.key, (0, -1))
        limited = self._replace(min_version=max(lowest, self.min_version), max_version=min(highest, self.max_version))
        return limited if limited.min_version <= limited.max_version else None


_ALTER = (AclOperation.ALTER,)
_DESCRIBE = (AclOperation.DESCRIBE,)

_SPECS = (
    # librdkafka takes its compression types from Produce's lowest version, so 0 is advertised.
    ApiSpec(ApiKey.PRODUCE, 3, 13, "data.produce", advertised_min_version=0),
    ApiSpec(ApiKey.FETCH, 4, 18, "data.fetch"),
    ApiSpec(ApiKey.LIST_OFFSETS, 1, 11, "data.list_offsets"),
    ApiSpec(ApiKey.METADATA, 0, 13, "topics.metadata"),
    ApiSpec(ApiKey.OFFSET_COMMIT, 2, 10, "groups.offset_commit"),
    ApiSpec(ApiKey.OFFSET_FETCH, 1, 10, "groups.offset_fetch"),
    ApiSpec(ApiKey.FIND_COORDINATOR, 0, 6, "groups.find_coordinator"),
    ApiSpec(ApiKey.JOIN_GROUP, 0, 9, "groups.join_group"),
    ApiSpec(ApiKey.HEARTBEAT, 0, 4, "groups.heartbeat"),
    ApiSpec(ApiKey.LEAVE_GROUP, 0, 5, "groups.leave_group"),
    ApiSpec(ApiKey.SYNC_GROUP, 0, 5, "groups.sync_group"),
    ApiSpec(ApiKey.DESCRIBE_GROUPS, 0, 6, "groups.describe_groups"),
    ApiSpec(ApiKey.LIST_GROUPS, 0, 5, "groups.list_groups"),
    ApiSpec(ApiKey.DELETE_GROUPS, 0, 3, "groups.delete_groups"),
    ApiSpec(ApiKey.OFFSET_DELETE, 0, 0, "groups.offset_delete"),
    ApiSpec(ApiKey.DELETE_RECORDS, 0, 2, "data.delete_records"),
    ApiSpec(ApiKey.INIT_PRODUCER_ID, 0, 6, "transactions.init_producer_id"),
    ApiSpec(ApiKey.OFFSET_FOR_LEADER_EPOCH, 0, 4, "data.offset_for_leader_epoch"),
    ApiSpec(ApiKey.ADD_PARTITIONS_TO_TXN, 0, 5, "transactions.add_partitions_to_txn"),
    ApiSpec(ApiKey.ADD_OFFSETS_TO_TXN, 0, 4, "transactions.add_offsets_to_txn"),
    ApiSpec(ApiKey.END_TXN, 0, 5, "transactions.end_txn"),
    ApiSpec(
        ApiKey.WRITE_TXN_MARKERS,
        1,
        2,
        "transactions.write_txn_markers",
        cluster_operations=(AclOperation.ALTER, AclOperation.CLUSTER_ACTION),
    ),
    ApiSpec(ApiKey.TXN_OFFSET_COMMIT, 0, 6, "groups.txn_offset_commit"),
    ApiSpec(ApiKey.SASL_HANDSHAKE, 0, 1, "security.sasl"),
    ApiSpec(ApiKey.SASL_AUTHENTICATE, 0, 2, "security.sasl"),
    ApiSpec(ApiKey.CREATE_TOPICS, 0, 7, "topics.create_topics"),
    ApiSpec(ApiKey.DELETE_TOPICS, 0, 6, "topics.delete_topics"),
    ApiSpec(ApiKey.CREATE_PARTITIONS, 0, 3, "topics.create_partitions"),
    ApiSpec(ApiKey.ELECT_LEADERS, 0, 2, "cluster.elect_leaders", cluster_operations=_ALTER),
    ApiSpec(ApiKey.DESCRIBE_CLUSTER, 0, 2, "cluster.describe_cluster"),
    ApiSpec(ApiKey.DESCRIBE_PRODUCERS, 0, 0, "transactions.describe_producers"),
    ApiSpec(ApiKey.DESCRIBE_QUORUM, 0, 2, "cluster.describe_quorum", cluster_operations=_DESCRIBE),
    ApiSpec(ApiKey.DESCRIBE_LOG_DIRS, 0, 5, "cluster.describe_log_dirs", cluster_operations=_DESCRIBE),
    ApiSpec(ApiKey.ALTER_REPLICA_LOG_DIRS, 0, 2, "cluster.alter_replica_log_dirs", cluster_operations=_ALTER),
    ApiSpec(ApiKey.DESCRIBE_CONFIGS, 1, 4, "configs.describe_configs"),
    ApiSpec(ApiKey.ALTER_CONFIGS, 0, 2, "configs.alter_configs"),
    ApiSpec(ApiKey.INCREMENTAL_ALTER_CONFIGS, 0, 1, "configs.incremental_alter_configs"),
    ApiSpec(
        ApiKey.LIST_CONFIG_RESOURCES,
        0,
        1,
        "configs.list_config_resources",
        cluster_operations=(AclOperation.DESCRIBE_CONFIGS,),
    ),
    ApiSpec(
        ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, 1, "cluster.alter_partition_reassignments", cluster_operations=_ALTER
    ),
    ApiSpec(
        ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, 0, "cluster.list_partition_reassignments", cluster_operations=_DESCRIBE
    ),
    ApiSpec(
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        0,
        0,
        "security.describe_user_scram_credentials",
        cluster_operations=_DESCRIBE,
    ),
    ApiSpec(
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, 0, "security.alter_user_scram_credentials", cluster_operations=_ALTER
    ),
    ApiSpec(ApiKey.UPDATE_FEATURES, 0, 2, "cluster.update_features", cluster_operations=_ALTER),
    ApiSpec(ApiKey.ADD_RAFT_VOTER, 0, 1, "cluster.raft_voters", cluster_operations=_ALTER),
    ApiSpec(ApiKey.REMOVE_RAFT_VOTER, 0, 0, "cluster.raft_voters", cluster_operations=_ALTER),
    ApiSpec(ApiKey.UNREGISTER_CONTROLLER, 0, 0, "cluster.raft_voters", cluster_operations=_ALTER),
    ApiSpec(ApiKey.UNREGISTER_BROKER, 0, 0, "cluster.unregister_broker", cluster_operations=_ALTER),
    ApiSpec(ApiKey.DESCRIBE_ACLS, 0, 3, "security.acls", cluster_operations=_DESCRIBE),
    ApiSpec(ApiKey.CREATE_ACLS, 0, 3, "security.acls", cluster_operations=_ALTER),
    ApiSpec(ApiKey.DELETE_ACLS, 0, 3, "security.acls", cluster_operations=_ALTER),
    ApiSpec(
        ApiKey.DESCRIBE_CLIENT_QUOTAS,
        0,
        1,
        "quotas.describe_client_quotas",
        cluster_operations=(AclOperation.DESCRIBE_CONFIGS,),
    ),
    ApiSpec(
        ApiKey.ALTER_CLIENT_QUOTAS, 0, 1, "quotas.alter_client_quotas", cluster_operations=(AclOperation.ALTER_CONFIGS,)
    ),
    ApiSpec(ApiKey.CREATE_DELEGATION_TOKEN, 0, 3, "security.delegation_tokens"),
    ApiSpec(ApiKey.RENEW_DELEGATION_TOKEN, 0, 2, "security.delegation_tokens"),
    ApiSpec(ApiKey.EXPIRE_DELEGATION_TOKEN, 0, 2, "security.delegation_tokens"),
    ApiSpec(ApiKey.DESCRIBE_DELEGATION_TOKEN, 0, 3, "security.delegation_tokens"),
    ApiSpec(ApiKey.DESCRIBE_TRANSACTIONS, 0, 0, "transactions.describe_transactions"),
    ApiSpec(ApiKey.LIST_TRANSACTIONS, 0, 2, "transactions.list_transactions"),
    ApiSpec(ApiKey.CONSUMER_GROUP_HEARTBEAT, 0, 1, "groups.consumer_group_heartbeat"),
    ApiSpec(ApiKey.CONSUMER_GROUP_DESCRIBE, 0, 1, "groups.consumer_group_describe"),
    ApiSpec(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, 0, 0, "cluster.telemetry"),
    ApiSpec(ApiKey.PUSH_TELEMETRY, 0, 0, "cluster.telemetry"),
    ApiSpec(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, 0, "topics.describe_topic_partitions"),
    ApiSpec(ApiKey.SHARE_GROUP_HEARTBEAT, 1, 1, "share.share_group_heartbeat"),
    ApiSpec(ApiKey.SHARE_GROUP_DESCRIBE, 1, 1, "share.share_group_describe"),
    ApiSpec(ApiKey.SHARE_FETCH, 1, 2, "share.share_fetch"),
    ApiSpec(ApiKey.SHARE_ACKNOWLEDGE, 1, 2, "share.share_acknowledge"),
    ApiSpec(ApiKey.INITIALIZE_SHARE_GROUP_STATE, 0, 0, "share.share_group_state"),
    ApiSpec(ApiKey.READ_SHARE_GROUP_STATE, 0, 0, "share.share_group_state"),
    ApiSpec(ApiKey.WRITE_SHARE_GROUP_STATE, 0, 1, "share.share_group_state"),
    ApiSpec(ApiKey.DELETE_SHARE_GROUP_STATE, 0, 0, "share.share_group_state"),
    ApiSpec(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, 0, 1, "share.share_group_state"),
    ApiSpec(ApiKey.STREAMS_GROUP_HEARTBEAT, 0, 1, "streams.streams_group_heartbeat"),
    ApiSpec(ApiKey.STREAMS_GROUP_DESCRIBE, 0, 1, "streams.streams_group_describe"),
    ApiSpec(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 0, 1, "share.describe_share_group_offsets"),
    ApiSpec(ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, 0, "share.alter_share_group_offsets"),
    ApiSpec(ApiKey.DELETE_SHARE_GROUP_OFFSETS, 0, 0, "share.delete_share_group_offsets"),
    ApiSpec(
        ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE, 0, 0, "streams.streams_group_topology_description_update"
    ),
)
OF_CLIENT_METRICS: Final = frozenset({ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY})
"""APIs that are served only if the broker accepts client metrics."""
API_VERSIONS_RANGE = (0, 5)
OF_CONTROLLERS: Final = frozenset(
    {
        ApiKey.SASL_HANDSHAKE,
        ApiKey.SASL_AUTHENTICATE,
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.DESCRIBE_ACLS,
        ApiKey.CREATE_ACLS,
        ApiKey.DELETE_ACLS,
        ApiKey.DESCRIBE_CONFIGS,
        ApiKey.ALTER_CONFIGS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
        ApiKey.ELECT_LEADERS,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        ApiKey.ALTER_CLIENT_QUOTAS,
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        ApiKey.DESCRIBE_QUORUM,
        ApiKey.UPDATE_FEATURES,
        ApiKey.DESCRIBE_CLUSTER,
        ApiKey.UNREGISTER_BROKER,
        ApiKey.UNREGISTER_CONTROLLER,
        ApiKey.ADD_RAFT_VOTER,
        ApiKey.REMOVE_RAFT_VOTER,
    }
)
"""APIs that a controller's listener serves, without those that only brokers and controllers send."""


def last_release_with(api_key: ApiKey, api_version: int) -> Release | None:
    """Return the newest release as which a cluster serves this version of a served API; None if there is none."""
    spec = next(each for each in _SPECS if each.key is api_key)
    for release in reversed([*releases().values()]):
        limited = spec.limited_to(release)
        if limited is not None and limited.serves(api_version):
            return release
    return None


class ApiTable:
    """The served APIs by key.

    `release` is the Kafka release whose API versions limit ours [default: the default release]. `client_metrics` says
    whether clients may push metrics.
    """

    def __init__(self, release: Release | None = None, *, client_metrics: bool = False) -> None:
        self.release = release or find_release()
        self._client_metrics = client_metrics
        self._serve(spec for spec in _SPECS if client_metrics or spec.key not in OF_CLIENT_METRICS)

    def _serve(self, apis: Iterable[ApiSpec]) -> None:
        """Serve these APIs and ApiVersions, in the versions of the release."""
        # The handler of ApiVersions has to know the ranges of all APIs, including its own.
        api_versions = ApiSpec(ApiKey.API_VERSIONS, *API_VERSIONS_RANGE, handle_api_versions(()))
        specs = [limited for spec in (*apis, api_versions) if (limited := spec.limited_to(self.release))]
        self._specs = {spec.key: spec for spec in specs}
        self._specs[ApiKey.API_VERSIONS] = self._specs[ApiKey.API_VERSIONS]._replace(
            place=handle_api_versions(sorted(spec.advertised for spec in specs), supported_features(self.release))
        )

    def find(self, api_key: ApiKey, api_version: int) -> ApiSpec | None:
        """Return the API if it is served in that version."""
        spec = self._specs.get(api_key)
        if spec is None or not spec.serves(api_version):
            return None
        if isinstance(spec.place, str):
            spec = self._specs[api_key] = spec._replace(place=spec.handler)
        return spec

    def changed(self, change: Callable[[ApiSpec], ApiSpec]) -> ApiTable:
        """Return a table in which each API is replaced by `change(api)`."""
        table = ApiTable(self.release, client_metrics=self._client_metrics)
        table._specs = {key: change(spec) for key, spec in self._specs.items()}
        return table

    def of_controllers(self) -> ApiTable:
        """Return the table of a controller's listener, in the versions of the release."""
        table = ApiTable(self.release)
        table._serve(spec for spec in _SPECS if spec.key in OF_CONTROLLERS)
        describe = table.get(ApiKey.DESCRIBE_CLUSTER)
        if describe is not None:  # releases from 2.8 on have it
            handler = _imported("cluster.describe_cluster", "handle_describe_controllers")
            table._specs[ApiKey.DESCRIBE_CLUSTER] = describe._replace(place=handler)
        return table

    def get(self, api_key: ApiKey) -> ApiSpec | None:
        """Return the API if it is served in any version."""
        return self._specs.get(api_key)

    def unsupported_version(self, error_code: ErrorCode) -> messages.ApiVersionsResponse:
        """Return the response to an ApiVersions request of an unknown version; it lists the supported range."""
        return build_api_versions([self._specs[ApiKey.API_VERSIONS].advertised], error_code)
