"""The APIs that are served, each with its versions and its handler: the only list of them.

A range goes from the oldest version that any release has and that is served here to the newest one; a cluster
advertises what its release has too. Mirrors `ApiVersionManager` and the dispatch at the top of `KafkaApis.handle`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.controller import supported_features
from broker_sim.handlers.cluster.alter_partition_reassignments import handle_alter_partition_reassignments
from broker_sim.handlers.cluster.alter_replica_log_dirs import handle_alter_replica_log_dirs
from broker_sim.handlers.cluster.api_versions import build_api_versions, handle_api_versions
from broker_sim.handlers.cluster.describe_cluster import handle_describe_cluster, handle_describe_controllers
from broker_sim.handlers.cluster.describe_log_dirs import handle_describe_log_dirs
from broker_sim.handlers.cluster.describe_quorum import handle_describe_quorum
from broker_sim.handlers.cluster.elect_leaders import handle_elect_leaders
from broker_sim.handlers.cluster.list_partition_reassignments import handle_list_partition_reassignments
from broker_sim.handlers.cluster.raft_voters import (
    handle_add_raft_voter,
    handle_remove_raft_voter,
    handle_unregister_controller,
)
from broker_sim.handlers.cluster.telemetry import handle_get_telemetry_subscriptions, handle_push_telemetry
from broker_sim.handlers.cluster.unregister_broker import handle_unregister_broker
from broker_sim.handlers.cluster.update_features import handle_update_features
from broker_sim.handlers.configs.alter_configs import handle_alter_configs
from broker_sim.handlers.configs.describe_configs import handle_describe_configs
from broker_sim.handlers.configs.incremental_alter_configs import handle_incremental_alter_configs
from broker_sim.handlers.configs.list_config_resources import handle_list_config_resources
from broker_sim.handlers.data.delete_records import handle_delete_records
from broker_sim.handlers.data.fetch import handle_fetch
from broker_sim.handlers.data.list_offsets import handle_list_offsets
from broker_sim.handlers.data.offset_for_leader_epoch import handle_offset_for_leader_epoch
from broker_sim.handlers.data.produce import handle_produce
from broker_sim.handlers.groups.consumer_group_describe import handle_consumer_group_describe
from broker_sim.handlers.groups.consumer_group_heartbeat import handle_consumer_group_heartbeat
from broker_sim.handlers.groups.delete_groups import handle_delete_groups
from broker_sim.handlers.groups.describe_groups import handle_describe_groups
from broker_sim.handlers.groups.find_coordinator import handle_find_coordinator
from broker_sim.handlers.groups.heartbeat import handle_heartbeat
from broker_sim.handlers.groups.join_group import handle_join_group
from broker_sim.handlers.groups.leave_group import handle_leave_group
from broker_sim.handlers.groups.list_groups import handle_list_groups
from broker_sim.handlers.groups.offset_commit import handle_offset_commit
from broker_sim.handlers.groups.offset_delete import handle_offset_delete
from broker_sim.handlers.groups.offset_fetch import handle_offset_fetch
from broker_sim.handlers.groups.sync_group import handle_sync_group
from broker_sim.handlers.groups.txn_offset_commit import handle_txn_offset_commit
from broker_sim.handlers.quotas.alter_client_quotas import handle_alter_client_quotas
from broker_sim.handlers.quotas.describe_client_quotas import handle_describe_client_quotas
from broker_sim.handlers.security.acls import handle_create_acls, handle_delete_acls, handle_describe_acls
from broker_sim.handlers.security.alter_user_scram_credentials import handle_alter_user_scram_credentials
from broker_sim.handlers.security.delegation_tokens import (
    handle_create_delegation_token,
    handle_describe_delegation_token,
    handle_expire_delegation_token,
    handle_renew_delegation_token,
)
from broker_sim.handlers.security.describe_user_scram_credentials import handle_describe_user_scram_credentials
from broker_sim.handlers.security.sasl import handle_sasl_authenticate, handle_sasl_handshake
from broker_sim.handlers.share.alter_share_group_offsets import handle_alter_share_group_offsets
from broker_sim.handlers.share.delete_share_group_offsets import handle_delete_share_group_offsets
from broker_sim.handlers.share.describe_share_group_offsets import handle_describe_share_group_offsets
from broker_sim.handlers.share.share_acknowledge import handle_share_acknowledge
from broker_sim.handlers.share.share_fetch import handle_share_fetch
from broker_sim.handlers.share.share_group_describe import handle_share_group_describe
from broker_sim.handlers.share.share_group_heartbeat import handle_share_group_heartbeat
from broker_sim.handlers.share.share_group_state import (
    handle_delete_share_group_state,
    handle_initialize_share_group_state,
    handle_read_share_group_state,
    handle_read_share_group_state_summary,
    handle_write_share_group_state,
)
from broker_sim.handlers.streams.streams_group_describe import handle_streams_group_describe
from broker_sim.handlers.streams.streams_group_heartbeat import handle_streams_group_heartbeat
from broker_sim.handlers.streams.streams_group_topology_description_update import (
    handle_streams_group_topology_description_update,
)
from broker_sim.handlers.topics.create_partitions import handle_create_partitions
from broker_sim.handlers.topics.create_topics import handle_create_topics
from broker_sim.handlers.topics.delete_topics import handle_delete_topics
from broker_sim.handlers.topics.describe_topic_partitions import handle_describe_topic_partitions
from broker_sim.handlers.topics.metadata import handle_metadata
from broker_sim.handlers.transactions.add_offsets_to_txn import handle_add_offsets_to_txn
from broker_sim.handlers.transactions.add_partitions_to_txn import handle_add_partitions_to_txn
from broker_sim.handlers.transactions.describe_producers import handle_describe_producers
from broker_sim.handlers.transactions.describe_transactions import handle_describe_transactions
from broker_sim.handlers.transactions.end_txn import handle_end_txn
from broker_sim.handlers.transactions.init_producer_id import handle_init_producer_id
from broker_sim.handlers.transactions.list_transactions import handle_list_transactions
from broker_sim.handlers.transactions.write_txn_markers import handle_write_txn_markers
from broker_sim.metadata.acl import AclOperation
from broker_sim.protocol.api_keys import ApiKey
from broker_sim.protocol.release import find_release

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from broker_sim.errors import ErrorCode
    from broker_sim.handlers.context import Handler
    from broker_sim.protocol import messages
    from broker_sim.protocol.release import Release


class ApiSpec(NamedTuple):
    """One served API; versions outside of the range are answered as Kafka does."""

    key: ApiKey
    min_version: int
    max_version: int
    handler: Handler
    advertised_min_version: int | None = None
    """Lower than `min_version` where clients insist on it."""
    cluster_operations: tuple[AclOperation, ...] = ()
    """Operations on the cluster, of which a client must be allowed one where there is an authorizer."""

    @property
    def advertised(self) -> tuple[int, int, int]:
        """The key, and the lowest and highest version that clients are told."""
        lowest = self.advertised_min_version
        return self.key, self.min_version if lowest is None else lowest, self.max_version

    def limited_to(self, release: Release) -> ApiSpec | None:
        """Return the API in the versions that the release serves too, None without any."""
        lowest, highest = release.apis.get(self.key, (0, -1))
        limited = self._replace(min_version=max(lowest, self.min_version), max_version=min(highest, self.max_version))
        return limited if limited.min_version <= limited.max_version else None


_ALTER = (AclOperation.ALTER,)
_DESCRIBE = (AclOperation.DESCRIBE,)

_SPECS = (
    # librdkafka takes its compression types from Produce's lowest version, so 0 is advertised.
    ApiSpec(ApiKey.PRODUCE, 3, 13, handle_produce, advertised_min_version=0),
    ApiSpec(ApiKey.FETCH, 4, 18, handle_fetch),
    ApiSpec(ApiKey.LIST_OFFSETS, 1, 11, handle_list_offsets),
    ApiSpec(ApiKey.METADATA, 0, 13, handle_metadata),
    ApiSpec(ApiKey.OFFSET_COMMIT, 2, 10, handle_offset_commit),
    ApiSpec(ApiKey.OFFSET_FETCH, 1, 10, handle_offset_fetch),
    ApiSpec(ApiKey.FIND_COORDINATOR, 0, 6, handle_find_coordinator),
    ApiSpec(ApiKey.JOIN_GROUP, 0, 9, handle_join_group),
    ApiSpec(ApiKey.HEARTBEAT, 0, 4, handle_heartbeat),
    ApiSpec(ApiKey.LEAVE_GROUP, 0, 5, handle_leave_group),
    ApiSpec(ApiKey.SYNC_GROUP, 0, 5, handle_sync_group),
    ApiSpec(ApiKey.DESCRIBE_GROUPS, 0, 6, handle_describe_groups),
    ApiSpec(ApiKey.LIST_GROUPS, 0, 5, handle_list_groups),
    ApiSpec(ApiKey.DELETE_GROUPS, 0, 3, handle_delete_groups),
    ApiSpec(ApiKey.OFFSET_DELETE, 0, 0, handle_offset_delete),
    ApiSpec(ApiKey.DELETE_RECORDS, 0, 2, handle_delete_records),
    ApiSpec(ApiKey.INIT_PRODUCER_ID, 0, 5, handle_init_producer_id),
    ApiSpec(ApiKey.OFFSET_FOR_LEADER_EPOCH, 0, 4, handle_offset_for_leader_epoch),
    ApiSpec(ApiKey.ADD_PARTITIONS_TO_TXN, 0, 5, handle_add_partitions_to_txn),
    ApiSpec(ApiKey.ADD_OFFSETS_TO_TXN, 0, 4, handle_add_offsets_to_txn),
    ApiSpec(ApiKey.END_TXN, 0, 5, handle_end_txn),
    ApiSpec(
        ApiKey.WRITE_TXN_MARKERS,
        1,
        2,
        handle_write_txn_markers,
        cluster_operations=(AclOperation.ALTER, AclOperation.CLUSTER_ACTION),
    ),
    ApiSpec(ApiKey.TXN_OFFSET_COMMIT, 0, 6, handle_txn_offset_commit),
    ApiSpec(ApiKey.SASL_HANDSHAKE, 0, 1, handle_sasl_handshake),
    ApiSpec(ApiKey.SASL_AUTHENTICATE, 0, 2, handle_sasl_authenticate),
    ApiSpec(ApiKey.CREATE_TOPICS, 0, 7, handle_create_topics),
    ApiSpec(ApiKey.DELETE_TOPICS, 0, 6, handle_delete_topics),
    ApiSpec(ApiKey.CREATE_PARTITIONS, 0, 3, handle_create_partitions),
    ApiSpec(ApiKey.ELECT_LEADERS, 0, 2, handle_elect_leaders, cluster_operations=_ALTER),
    ApiSpec(ApiKey.DESCRIBE_CLUSTER, 0, 2, handle_describe_cluster),
    ApiSpec(ApiKey.DESCRIBE_PRODUCERS, 0, 0, handle_describe_producers),
    ApiSpec(ApiKey.DESCRIBE_QUORUM, 0, 2, handle_describe_quorum, cluster_operations=_DESCRIBE),
    ApiSpec(ApiKey.DESCRIBE_LOG_DIRS, 0, 5, handle_describe_log_dirs, cluster_operations=_DESCRIBE),
    ApiSpec(ApiKey.ALTER_REPLICA_LOG_DIRS, 0, 2, handle_alter_replica_log_dirs, cluster_operations=_ALTER),
    ApiSpec(ApiKey.DESCRIBE_CONFIGS, 1, 4, handle_describe_configs),
    ApiSpec(ApiKey.ALTER_CONFIGS, 0, 2, handle_alter_configs),
    ApiSpec(ApiKey.INCREMENTAL_ALTER_CONFIGS, 0, 1, handle_incremental_alter_configs),
    ApiSpec(
        ApiKey.LIST_CONFIG_RESOURCES,
        0,
        1,
        handle_list_config_resources,
        cluster_operations=(AclOperation.DESCRIBE_CONFIGS,),
    ),
    ApiSpec(
        ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, 1, handle_alter_partition_reassignments, cluster_operations=_ALTER
    ),
    ApiSpec(
        ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, 0, handle_list_partition_reassignments, cluster_operations=_DESCRIBE
    ),
    ApiSpec(
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        0,
        0,
        handle_describe_user_scram_credentials,
        cluster_operations=_DESCRIBE,
    ),
    ApiSpec(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, 0, handle_alter_user_scram_credentials, cluster_operations=_ALTER),
    ApiSpec(ApiKey.UPDATE_FEATURES, 0, 2, handle_update_features, cluster_operations=_ALTER),
    ApiSpec(ApiKey.ADD_RAFT_VOTER, 0, 1, handle_add_raft_voter, cluster_operations=_ALTER),
    ApiSpec(ApiKey.REMOVE_RAFT_VOTER, 0, 0, handle_remove_raft_voter, cluster_operations=_ALTER),
    ApiSpec(ApiKey.UNREGISTER_CONTROLLER, 0, 0, handle_unregister_controller, cluster_operations=_ALTER),
    ApiSpec(ApiKey.UNREGISTER_BROKER, 0, 0, handle_unregister_broker, cluster_operations=_ALTER),
    ApiSpec(ApiKey.DESCRIBE_ACLS, 0, 3, handle_describe_acls, cluster_operations=_DESCRIBE),
    ApiSpec(ApiKey.CREATE_ACLS, 0, 3, handle_create_acls, cluster_operations=_ALTER),
    ApiSpec(ApiKey.DELETE_ACLS, 0, 3, handle_delete_acls, cluster_operations=_ALTER),
    ApiSpec(
        ApiKey.DESCRIBE_CLIENT_QUOTAS,
        0,
        1,
        handle_describe_client_quotas,
        cluster_operations=(AclOperation.DESCRIBE_CONFIGS,),
    ),
    ApiSpec(
        ApiKey.ALTER_CLIENT_QUOTAS, 0, 1, handle_alter_client_quotas, cluster_operations=(AclOperation.ALTER_CONFIGS,)
    ),
    ApiSpec(ApiKey.CREATE_DELEGATION_TOKEN, 0, 3, handle_create_delegation_token),
    ApiSpec(ApiKey.RENEW_DELEGATION_TOKEN, 0, 2, handle_renew_delegation_token),
    ApiSpec(ApiKey.EXPIRE_DELEGATION_TOKEN, 0, 2, handle_expire_delegation_token),
    ApiSpec(ApiKey.DESCRIBE_DELEGATION_TOKEN, 0, 3, handle_describe_delegation_token),
    ApiSpec(ApiKey.DESCRIBE_TRANSACTIONS, 0, 0, handle_describe_transactions),
    ApiSpec(ApiKey.LIST_TRANSACTIONS, 0, 2, handle_list_transactions),
    ApiSpec(ApiKey.CONSUMER_GROUP_HEARTBEAT, 0, 1, handle_consumer_group_heartbeat),
    ApiSpec(ApiKey.CONSUMER_GROUP_DESCRIBE, 0, 1, handle_consumer_group_describe),
    ApiSpec(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, 0, 0, handle_get_telemetry_subscriptions),
    ApiSpec(ApiKey.PUSH_TELEMETRY, 0, 0, handle_push_telemetry),
    ApiSpec(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, 0, handle_describe_topic_partitions),
    ApiSpec(ApiKey.SHARE_GROUP_HEARTBEAT, 1, 1, handle_share_group_heartbeat),
    ApiSpec(ApiKey.SHARE_GROUP_DESCRIBE, 1, 1, handle_share_group_describe),
    ApiSpec(ApiKey.SHARE_FETCH, 1, 2, handle_share_fetch),
    ApiSpec(ApiKey.SHARE_ACKNOWLEDGE, 1, 2, handle_share_acknowledge),
    ApiSpec(ApiKey.INITIALIZE_SHARE_GROUP_STATE, 0, 0, handle_initialize_share_group_state),
    ApiSpec(ApiKey.READ_SHARE_GROUP_STATE, 0, 0, handle_read_share_group_state),
    ApiSpec(ApiKey.WRITE_SHARE_GROUP_STATE, 0, 1, handle_write_share_group_state),
    ApiSpec(ApiKey.DELETE_SHARE_GROUP_STATE, 0, 0, handle_delete_share_group_state),
    ApiSpec(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, 0, 1, handle_read_share_group_state_summary),
    ApiSpec(ApiKey.STREAMS_GROUP_HEARTBEAT, 0, 1, handle_streams_group_heartbeat),
    ApiSpec(ApiKey.STREAMS_GROUP_DESCRIBE, 0, 1, handle_streams_group_describe),
    ApiSpec(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 0, 1, handle_describe_share_group_offsets),
    ApiSpec(ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, 0, handle_alter_share_group_offsets),
    ApiSpec(ApiKey.DELETE_SHARE_GROUP_OFFSETS, 0, 0, handle_delete_share_group_offsets),
    ApiSpec(ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE, 0, 0, handle_streams_group_topology_description_update),
)
OF_CLIENT_METRICS: Final = frozenset({ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY})
"""The APIs that are served only where something takes clients' metrics."""
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
"""The APIs that controllers serve too: of Kafka's without those that only brokers and controllers send."""


class ApiTable:
    """The served APIs by key.

    `release` names the Kafka release, such as "3.7", whose API versions limit ours; None is the default
    one. `client_metrics` says whether clients may push metrics. Raises ConfigError for an unknown release.
    """

    def __init__(self, release: str | None = None, *, client_metrics: bool = False) -> None:
        self.release = find_release(release)
        self._client_metrics = client_metrics
        self._serve(spec for spec in _SPECS if client_metrics or spec.key not in OF_CLIENT_METRICS)

    def _serve(self, apis: Iterable[ApiSpec]) -> None:
        """Serve these APIs and ApiVersions, in the versions that the release has."""
        # Its handler has to know the ranges of all APIs, its own among them.
        api_versions = ApiSpec(ApiKey.API_VERSIONS, *API_VERSIONS_RANGE, handle_api_versions(()))
        specs = [limited for spec in (*apis, api_versions) if (limited := spec.limited_to(self.release))]
        self._specs = {spec.key: spec for spec in specs}
        self._specs[ApiKey.API_VERSIONS] = self._specs[ApiKey.API_VERSIONS]._replace(
            handler=handle_api_versions(
                sorted(spec.advertised for spec in specs), supported_features(self.release.name)
            )
        )

    def find(self, api_key: ApiKey, api_version: int) -> ApiSpec | None:
        """Return the API if it is served in that version."""
        spec = self._specs.get(api_key)
        if spec is None or not spec.min_version <= api_version <= spec.max_version:
            return None
        return spec

    def changed(self, change: Callable[[ApiSpec], ApiSpec]) -> ApiTable:
        """Return a table with what `change` makes of each API."""
        table = ApiTable(self.release.name, client_metrics=self._client_metrics)
        table._specs = {key: change(spec) for key, spec in self._specs.items()}
        return table

    def of_controllers(self) -> ApiTable:
        """Return what the controller serves on a listener of its own, in the versions that the release has."""
        table = ApiTable(self.release.name)
        table._serve(spec for spec in _SPECS if spec.key in OF_CONTROLLERS)
        describe = table.get(ApiKey.DESCRIBE_CLUSTER)
        if describe is not None:  # releases from 2.8 on have it
            table._specs[ApiKey.DESCRIBE_CLUSTER] = describe._replace(handler=handle_describe_controllers)
        return table

    def get(self, api_key: ApiKey) -> ApiSpec | None:
        """Return the API if it is served in any version."""
        return self._specs.get(api_key)

    def unsupported_version(self, error_code: ErrorCode) -> messages.ApiVersionsResponse:
        """Return what answers an ApiVersions request of an unknown version: how to ask again."""
        return build_api_versions([self._specs[ApiKey.API_VERSIONS].advertised], error_code)
