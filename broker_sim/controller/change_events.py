"""Events that the controller logs about a new image: brokers, topics, leaders, configurations and ACLs.

ISR changes are logged by the leaders, as in Kafka.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.metadata import changes_between
from broker_sim.runtime.event_log import get_logger
from broker_sim.runtime.sockets import address_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker_sim_purgatory import Clock

    from broker_sim.metadata import BrokerState, ImageChanges, MetadataImage, PartitionState, TopicState
    from broker_sim.metadata.acl import Acls
    from broker_sim.runtime.event_log import EventLogger

_log = get_logger(__name__)


def log_changes(before: MetadataImage, after: MetadataImage, clock: Clock) -> None:
    """Log the differences between two images; costs nothing if such events are not logged."""
    if not _log.is_enabled_for_info:
        return
    log = _log.bind(clock, node="controller")
    if before.brokers is not after.brokers:
        _log_brokers(log, before.brokers, after.brokers)
    changes = changes_between(before, after)
    _log_topics(log, before, after, changes)
    for topic_partition, topic, state in changes.partitions:
        old_topic = before.topics.get(topic_partition.topic)
        if old_topic is not None and old_topic.topic_id == topic.topic_id:
            old = old_topic.partition(topic_partition.partition)
            if old is not None:
                _log_leader(log, str(topic_partition), old, state)
    for topic in changes.topics_with_new_configs:
        log.info("topic_configured", topic=topic.name, configs=dict(topic.configs))
    if changes.broker_configs_changed:
        configs = {name or "all brokers": dict(v) for name, v in after.broker_configs.items()}
        log.info("brokers_configured", configs=configs)
    if before.acls is not after.acls:
        _log_acls(log, before.acls, after.acls)


def _log_acls(log: EventLogger, before: Acls, after: Acls) -> None:
    for acl in after:
        if acl not in before:
            log.info("acl_created", acl=str(acl))
    for acl in before:
        if acl not in after:
            log.info("acl_deleted", acl=str(acl))


def _log_brokers(log: EventLogger, before: Mapping[int, BrokerState], after: Mapping[int, BrokerState]) -> None:
    for broker_id, broker in after.items():
        _log_broker(log, before.get(broker_id), broker)
    for broker_id, broker in before.items():
        if broker_id not in after:
            log.info("broker_unregistered", broker=broker_id, epoch=broker.epoch)


def _log_broker(log: EventLogger, before: BrokerState | None, after: BrokerState) -> None:
    if before is None or before.epoch != after.epoch:
        address = ",".join(address_text(each.host, each.port) for each in after.endpoints)
        log.info("broker_registered", broker=after.broker_id, epoch=after.epoch, address=address)
    elif before.fenced and not after.fenced:
        log.info("broker_unfenced", broker=after.broker_id, epoch=after.epoch)
    elif after.fenced and not before.fenced:
        log.info("broker_fenced", broker=after.broker_id, epoch=after.epoch)
    elif after.in_controlled_shutdown and not before.in_controlled_shutdown:
        log.info("broker_shutting_down", broker=after.broker_id, epoch=after.epoch)


def _log_topics(log: EventLogger, before: MetadataImage, after: MetadataImage, changes: ImageChanges) -> None:
    for topic in changes.deleted_topics:
        log.info("topic_deleted", topic=topic.name, topic_id=topic.topic_id.hex())
    changed = {topic.name: topic for _, topic, _ in changes.partitions}
    for name, topic in changed.items():
        old = before.topics.get(name)
        if old is None or old.topic_id != topic.topic_id:
            log.info("topic_created", topic=name, topic_id=topic.topic_id.hex(), **_size(topic))
        elif len(old.partitions) < len(topic.partitions):
            log.info("partitions_created", topic=name, **_size(after.topics[name]))


def _size(topic: TopicState) -> dict[str, int]:
    replication_factor = len(topic.partitions[0].replicas)
    return {"partitions": len(topic.partitions), "replication_factor": replication_factor}


def _log_leader(log: EventLogger, partition: str, before: PartitionState, after: PartitionState) -> None:
    if before.leader == after.leader:
        return
    if not after.has_leader:
        log.info("partition_offline", partition=partition, previous_leader=before.leader)
        return
    log.info(
        "leader_elected",
        partition=partition,
        leader=after.leader,
        previous_leader=before.leader,
        leader_epoch=after.leader_epoch,
        unclean=after.leader not in (*before.isr, *before.elr),
    )
