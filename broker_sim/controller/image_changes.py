"""The changes from one image to the next as plain values for JSON, and their application to an image."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker_sim.config import Endpoint
from broker_sim.metadata import BrokerState, MetadataImage, PartitionState, ScramCredential, TopicState
from broker_sim.metadata.acl import Acl, AclOperation, Acls, PatternType, Permission, ResourceType
from broker_sim.metadata.delegation_token import DelegationToken
from broker_sim.metadata.kafka_principal import KafkaPrincipal

if TYPE_CHECKING:
    from broker_sim.metadata.quota_entity import QuotaEntity


def difference(before: MetadataImage, after: MetadataImage) -> dict[str, Any]:
    """Return the change from `before` to `after`; identical objects count as unchanged."""
    change: dict[str, Any] = {"version": after.version}
    if before.cluster_id != after.cluster_id:
        change["cluster_id"] = after.cluster_id
    if before.brokers is not after.brokers:
        change["brokers"] = [_broker_row(broker) for broker in after.brokers.values()]
    if before.topics is not after.topics:
        change["topics"] = {
            name: _topic_difference(before.topics.get(name), topic)
            for name, topic in after.topics.items()
            if before.topics.get(name) is not topic
        }
        change["removed"] = [name for name in before.topics if name not in after.topics]
    if before.broker_configs is not after.broker_configs:
        change["broker_configs"] = {name: dict(configs) for name, configs in after.broker_configs.items()}
    if before.features is not after.features:
        change["features"] = dict(after.features)
    if before.resource_configs is not after.resource_configs:
        change["resource_configs"] = [
            [code, name, dict(configs)] for (code, name), configs in after.resource_configs.items()
        ]
    return change | _access_difference(before, after)


def _access_difference(before: MetadataImage, after: MetadataImage) -> dict[str, Any]:
    """Return the changes of credentials, quotas, tokens and ACLs."""
    change: dict[str, Any] = {}
    if before.scram is not after.scram:
        change["scram"] = [
            _credential_row(user, mechanism, credential)
            for user, credentials in after.scram.items()
            for mechanism, credential in credentials.items()
        ]
    if before.client_quotas is not after.client_quotas:
        change["client_quotas"] = [[entity, quotas] for entity, quotas in after.client_quotas.items()]
    if before.delegation_tokens is not after.delegation_tokens:
        change["delegation_tokens"] = list(after.delegation_tokens.values())
    if before.acls is not after.acls:
        change["acls"] = [acl for acl in after.acls if acl not in before.acls]
        change["removed_acls"] = [acl for acl in before.acls if acl not in after.acls]
    return change


def _topic_difference(before: TopicState | None, after: TopicState) -> dict[str, Any]:
    states_before = before.partitions if before is not None and before.topic_id == after.topic_id else ()
    return {
        "id": after.topic_id.hex(),
        "configs": dict(after.configs),
        "partitions": {
            number: _partition_row(state)
            for number, state in enumerate(after.partitions)
            if number >= len(states_before) or states_before[number] is not state
        },
    }


def _partition_row(state: PartitionState) -> list[Any]:
    return [
        state.replicas,
        state.isr,
        state.leader,
        state.leader_epoch,
        state.partition_epoch,
        state.elr,
        state.last_known_elr,
        state.recovering,
        state.adding_replicas,
        state.removing_replicas,
    ]


def _partition(row: list[Any]) -> PartitionState:
    fields: list[Any] = [tuple(value) if isinstance(value, list) else value for value in row]
    return PartitionState(*fields)


def _broker_row(broker: BrokerState) -> list[Any]:
    return [
        broker.broker_id,
        broker.endpoints,
        broker.rack,
        broker.epoch,
        broker.fenced,
        broker.in_controlled_shutdown,
        broker.incarnation_id.hex(),
    ]


def _broker(row: list[Any]) -> BrokerState:
    broker_id, endpoints, rack, epoch, fenced, in_controlled_shutdown, incarnation_id = row
    return BrokerState(
        broker_id,
        tuple(Endpoint(*endpoint) for endpoint in endpoints),
        rack,
        epoch=epoch,
        fenced=fenced,
        in_controlled_shutdown=in_controlled_shutdown,
        incarnation_id=bytes.fromhex(incarnation_id),
    )


def _credential_row(user: str, mechanism: int, credential: ScramCredential) -> list[Any]:
    keys = (credential.salt, credential.stored_key, credential.server_key)
    return [user, mechanism, credential.iterations, *(key.hex() for key in keys)]


def _credentials(rows: list[list[Any]]) -> dict[str, dict[int, ScramCredential]]:
    users: dict[str, dict[int, ScramCredential]] = {}
    for user, mechanism, iterations, *keys in rows:
        salt, stored_key, server_key = map(bytes.fromhex, keys)
        credential = ScramCredential(salt, stored_key, server_key, iterations)
        users.setdefault(user, {})[mechanism] = credential
    return users


def _client_quotas(change: dict[str, Any]) -> dict[QuotaEntity, dict[str, float]]:
    return {tuple((kind, name) for kind, name in entity): quotas for entity, quotas in change["client_quotas"]}


def _tokens(change: dict[str, Any]) -> dict[str, DelegationToken]:
    tokens = (
        DelegationToken(
            token_id,
            KafkaPrincipal(*owner),
            KafkaPrincipal(*requester),
            tuple(KafkaPrincipal(*renewer) for renewer in renewers),
            *times,
        )
        for token_id, owner, requester, renewers, *times in change["delegation_tokens"]
    )
    return {token.token_id: token for token in tokens}


def _acl(row: list[Any]) -> Acl:
    resource_type, resource_name, pattern_type, principal, host, operation, permission = row
    return Acl(
        ResourceType(resource_type),
        resource_name,
        PatternType(pattern_type),
        principal,
        host,
        AclOperation(operation),
        Permission(permission),
    )


def _changed_acls(acls: Acls, change: dict[str, Any]) -> Acls:
    added, removed = (list(map(_acl, change.get(key, ()))) for key in ("acls", "removed_acls"))
    return acls.with_changes(added, removed) if added or removed else acls


def changed(image: MetadataImage, change: dict[str, Any]) -> MetadataImage:
    """Return the image after a change that `difference` returned."""
    brokers, topics = image.brokers, dict(image.topics)
    if "brokers" in change:
        brokers = {broker.broker_id: broker for broker in map(_broker, change["brokers"])}
    for name in change.get("removed", ()):
        del topics[name]
    for name, topic in change.get("topics", {}).items():
        topics[name] = _changed_topic(topics.get(name), name, topic)
    resources = image.resource_configs
    if "resource_configs" in change:
        resources = {(code, name): configs for code, name, configs in change["resource_configs"]}
    scram = _credentials(change["scram"]) if "scram" in change else image.scram
    return MetadataImage(
        change["version"],
        change.get("cluster_id", image.cluster_id),
        brokers,
        topics,
        {topic.topic_id: name for name, topic in topics.items()},
        change.get("broker_configs", image.broker_configs),
        change.get("features", image.features),
        resources,
        scram,
        _changed_acls(image.acls, change),
        _client_quotas(change) if "client_quotas" in change else image.client_quotas,
        _tokens(change) if "delegation_tokens" in change else image.delegation_tokens,
    )


def _changed_topic(before: TopicState | None, name: str, change: dict[str, Any]) -> TopicState:
    topic_id = bytes.fromhex(change["id"])
    partitions: dict[int, PartitionState] = {}
    if before is not None and before.topic_id == topic_id:
        partitions.update(enumerate(before.partitions))
    for number, row in change["partitions"].items():
        partitions[int(number)] = _partition(row)
    return TopicState(name, topic_id, tuple(partitions[number] for number in range(len(partitions))), change["configs"])
