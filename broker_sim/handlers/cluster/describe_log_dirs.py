"""DescribeLogDirs (key 35), versions 0-5 (KIP-113, KIP-827).

Mirrors `KafkaApis.handleDescribeLogDirsRequest` and `ReplicaManager.describeLogDirs`.

Behaviour:
* every broker answers for itself, with each of its log directories in the order of `log.dirs`
* a request without topics describes all logs; partitions that this broker does not have are left out
* the lag of a log is 0, or -1 if the log has no replica; a future replica is listed in the directory that it moves
  to, with the lag of the copy
* a directory that cannot be read is KAFKA_STORAGE_ERROR, without logs

Version notes: 2 is flexible, 3 adds an error code (before, an unauthorized client gets no directories), 4 adds the
total and usable size of the disk (KIP-827), 5 adds whether the directory is cordoned (always false here).

Deliberate differences: for logs in memory the directories are only names, from `log.dirs` or `/memory`, and the disk
is as large as the memory limit of all logs of the cluster. A failed log is left out while the others of its directory
are described; in Kafka the whole directory goes offline.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ErrorCode
from broker_sim.handlers.support.partition_errors import injected_error
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.handlers.context import BrokerServices, RequestContext
    from broker_sim.log import PartitionLog

NOT_KNOWN = -1
Directory = messages.DescribeLogDirsResponse.DescribeLogDirsResult
Topic = messages.DescribeLogDirsResponse.DescribeLogDirsTopic
Partition = messages.DescribeLogDirsResponse.DescribeLogDirsPartition


def handle_describe_log_dirs(
    request: messages.DescribeLogDirsRequest,
    context: RequestContext,
    respond: Callable[[messages.DescribeLogDirsResponse], None],
) -> None:
    """Describe the log directories of this broker, with the logs of the requested partitions."""
    broker = context.broker
    logs = list(broker.logs.logs)
    if request.topics is not None:
        keys = {TopicPartition(topic.topic, number) for topic in request.topics for number in topic.partitions}
        logs = [log for log in logs if log.topic_partition in keys]
    error_code = injected_error(context, "")
    directories = [
        Directory(error_code, name) if error_code else _describe(broker, name, logs) for name in broker.logs.names
    ]
    respond(messages.DescribeLogDirsResponse(results=directories))


def _describe(broker: BrokerServices, name: str, logs: list[PartitionLog]) -> Directory:
    try:
        space = broker.logs.space(name)
    except OSError:
        return Directory(ErrorCode.KAFKA_STORAGE_ERROR, name)
    topics: dict[str, Topic] = {}
    partitions = broker.replica_manager.partitions
    present = (log for log in logs if broker.logs.directory_of(log.topic_partition) == name)
    for log in sorted(present, key=lambda each: each.topic_partition):
        topic, number = log.topic_partition
        described = topics.setdefault(topic, Topic(topic))
        lag = 0 if log.topic_partition in partitions else NOT_KNOWN
        described.partitions.append(Partition(number, log.size_bytes, lag))
    for future in broker.log_dir_moves.futures():
        if future.directory == name and future.log in logs:
            topic, number = future.log.topic_partition
            copied = Partition(number, future.size_bytes, future.offset_lag, is_future_key=True)
            topics.setdefault(topic, Topic(topic)).partitions.append(copied)
    return Directory(
        ErrorCode.NONE, name, list(topics.values()), total_bytes=space.total_bytes, usable_bytes=space.usable_bytes
    )
