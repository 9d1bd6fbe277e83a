"""What can be asked for at a member's endpoint; mirrors `EndpointToPartitionsManager`.

An endpoint answers interactive queries: questions about the state of the tasks that the member runs.

Deliberate difference: subtopologies and partitions stand as after a failover. Kafka's order of subtopologies
with active tasks differs from run to run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.hash_order.hash_codes import integer_hash, string_hash
from broker_sim.hash_order.java_order import HashTable, copied_capacity, hash_order
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from broker_sim.group.streams.tasks import Tasks
    from broker_sim.group.streams.topics.configured_topology import ConfiguredSubtopology
    from broker_sim.metadata import MetadataImage

Response = messages.StreamsGroupHeartbeatResponse


def endpoint_to_partitions(
    endpoint: Response.Endpoint,
    active: Tasks,
    standby: Tasks,
    subtopologies: Mapping[str, ConfiguredSubtopology] | None,
    image: MetadataImage,
) -> Response.EndpointToPartitions:
    """Return the source partitions of the member's tasks.

    As Kafka it fails with UNKNOWN_SERVER_ERROR if a subtopology is not configured or a topic does not exist.
    """
    if subtopologies is None:
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return Response.EndpointToPartitions(
        endpoint, list(_partitions(active, subtopologies, image)), list(_partitions(standby, subtopologies, image))
    )


def _partitions(
    tasks: Tasks, subtopologies: Mapping[str, ConfiguredSubtopology], image: MetadataImage
) -> Iterator[Response.TopicPartition]:
    for subtopology_id in hash_order(tasks, string_hash):
        subtopology = subtopologies.get(subtopology_id)
        if subtopology is None:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
        numbers = sorted(tasks[subtopology_id])
        for name in _source_topics(subtopology):
            topic = image.topics.get(name)
            if topic is None:
                raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
            count = len(topic.partitions)
            # As in Kafka it is the number of tasks that tells whether a topic is too small for them.
            told = numbers[:count] if count < len(numbers) else _in_table_order(numbers)
            yield Response.TopicPartition(name, told)


def _source_topics(subtopology: ConfiguredSubtopology) -> list[str]:
    sources = subtopology.source_topics
    names: HashTable[str, None] = HashTable(string_hash, copied_capacity(len(sources)))
    for name in (*sources, *subtopology.repartition_source_topics):
        names.put(name, None)
    return names.in_order()


def _in_table_order(numbers: list[int]) -> list[int]:
    return hash_order(numbers, integer_hash, copied_capacity(len(numbers)))
