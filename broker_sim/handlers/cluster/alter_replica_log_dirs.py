"""AlterReplicaLogDirs (key 34), versions 0-2 (KIP-113).

Mirrors `KafkaApis.handleAlterReplicaLogDirsRequest` and `ReplicaManager.alterReplicaLogDirs`.

Behaviour:
* every broker answers for itself, before its replica has moved to the directory (see `LogDirMoves`)
* a path that is not in `log.dirs` is LOG_DIR_NOT_FOUND, even if it leads to one of those directories
* a partition without a replica on this broker is REPLICA_NOT_AVAILABLE, one that does not exist
  UNKNOWN_TOPIC_OR_PARTITION; a replica that this broker gets later is created in that directory
* if a partition is listed for several directories, the last one counts

Version notes: 2 is flexible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.errors import ErrorCode
from broker_sim.hash_order.hash_codes import java_hash_code, topic_partition_hash
from broker_sim.hash_order.scala_order import group_by_order, mutable_map_order
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.handlers.context import BrokerServices, RequestContext

LONGEST_NAME: Final = 255
"""Longest directory name a broker accepts, in characters."""
FUTURE: Final = len(f".{'0' * 32}-future")
"""Number of characters appended to the partition in a directory's name while its log moves there."""
Response = messages.AlterReplicaLogDirsResponse
Topic = Response.AlterReplicaLogDirTopicResult
Partition = Response.AlterReplicaLogDirPartitionResult


def handle_alter_replica_log_dirs(
    request: messages.AlterReplicaLogDirsRequest,
    context: RequestContext,
    respond: Callable[[messages.AlterReplicaLogDirsResponse], None],
) -> None:
    """Begin to move each replica to its directory."""
    paths = {
        TopicPartition(topic.name, number): directory.path
        for directory in request.dirs
        for topic in directory.topics
        for number in topic.partitions
    }
    by_topic: dict[str, list[TopicPartition]] = {}
    for key in paths:
        by_topic.setdefault(key.topic, []).append(key)
    results = [
        Topic(
            name,
            [
                Partition(key.partition, _error_of(context.broker, key, paths[key]))
                for key in mutable_map_order(by_topic[name], _hash_of)
            ],
        )
        for name in group_by_order(by_topic, java_hash_code)
    ]
    respond(Response(results=results))


def _error_of(broker: BrokerServices, key: TopicPartition, path: str) -> ErrorCode:
    if len(f"{key.topic}-{key.partition}") + FUTURE > LONGEST_NAME:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    if path not in broker.logs.names:
        return ErrorCode.LOG_DIR_NOT_FOUND
    partition = broker.replica_manager.get_partition_or_error(key)
    if partition in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
        broker.logs.preferred[key] = path
    if partition is ErrorCode.NOT_LEADER_OR_FOLLOWER:
        return ErrorCode.REPLICA_NOT_AVAILABLE
    if isinstance(partition, ErrorCode):
        return partition
    if partition.log is not None:
        broker.log_dir_moves.start(partition.log, path)
    return ErrorCode.NONE


def _hash_of(key: TopicPartition) -> int:
    return topic_partition_hash(key.topic, key.partition)
