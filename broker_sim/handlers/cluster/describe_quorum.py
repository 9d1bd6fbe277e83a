"""DescribeQuorum (key 55), versions 0-2 (KIP-595); mirrors `KafkaRaftClient.handleDescribeQuorumRequest`.

Behaviour:
* describes the single metadata partition; any other request, even one that lists it together with
  another partition, is UNKNOWN_TOPIC_OR_PARTITION for every partition
* the controller is the only voter and leads in epoch 1, because it never fails
* brokers with a live session are observers; a broker's last heartbeat stands for its last fetch, and
  shows its metadata offset
* a broker was last caught up at a heartbeat that had all metadata of that moment or of the next heartbeat

Version notes: 1 adds timestamps (KIP-836), 2 error messages and the voters' addresses (KIP-853).

Left out: the controller's address, unless a listener of the broker leads to the controller.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from broker_sim.controller import CONTROLLER_ID
from broker_sim.errors import NOT_HOSTED_TEXT, ErrorCode
from broker_sim.metadata import NO_TOPIC_ID
from broker_sim.metadata.feature_names import KRAFT_VERSION
from broker_sim.protocol import messages
from broker_sim.protocol.uuids import version_4

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.controller import QuorumStatus
    from broker_sim.handlers.context import RequestContext
    from broker_sim.metadata import MetadataImage

LEADER_EPOCH = 1
METADATA_TOPIC = "__cluster_metadata"
METADATA_PARTITION = 0
WITH_NODES = 2
Response = messages.DescribeQuorumResponse


def handle_describe_quorum(
    request: messages.DescribeQuorumRequest,
    context: RequestContext,
    respond: Callable[[messages.DescribeQuorumResponse], None],
) -> None:
    """Describe the metadata quorum."""
    requested_topics = [(topic.topic_name, [p.partition_index for p in topic.partitions])
              for topic in request.topics]  # fmt: skip
    if requested_topics != [(METADATA_TOPIC, [METADATA_PARTITION])]:
        respond(_unknown_partitions(requested_topics))
        return
    context.broker.controller.call(
        lambda controller: controller.describe_quorum(),
        lambda status: respond(_described(status, context)),
        lambda error: respond(Response(error_code=error.error_code)),
    )


def _unknown_partitions(requested_topics: list[tuple[str, list[int]]]) -> messages.DescribeQuorumResponse:
    return Response(
        topics=[
            Response.TopicData(
                topic,
                [
                    Response.PartitionData(partition, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, NOT_HOSTED_TEXT)
                    for partition in partitions
                ],
            )
            for topic, partitions in requested_topics
        ]
    )


def _described(status: QuorumStatus, context: RequestContext) -> messages.DescribeQuorumResponse:
    end = status.log_end_offset
    replica = Response.ReplicaState
    observers = [
        replica(
            replica_id=observer.broker_id,
            log_end_offset=observer.log_end_offset,
            last_fetch_timestamp=observer.last_heartbeat_ms,
            last_caught_up_timestamp=observer.last_caught_up_ms,
        )
        for observer in status.observers
    ]
    voter = replica(
        replica_id=CONTROLLER_ID,
        replica_directory_id=controller_directory_id(context.broker.image),
        log_end_offset=end,
        last_fetch_timestamp=status.now_ms,
        last_caught_up_timestamp=status.now_ms,
    )
    partition = Response.PartitionData(
        partition_index=METADATA_PARTITION,
        leader_id=CONTROLLER_ID,
        leader_epoch=LEADER_EPOCH,
        high_watermark=end,
        current_voters=[voter],
        observers=observers,
    )
    addresses = [Response.Listener(each.listener, each.host, each.port) for each in context.broker.controller_endpoints]
    return Response(
        topics=[Response.TopicData(METADATA_TOPIC, [partition])],
        nodes=[Response.Node(CONTROLLER_ID, addresses)] if context.api_version >= WITH_NODES else [],
    )


def controller_directory_id(image: MetadataImage) -> bytes:
    """Return the id of the controller's directory: unknown at `kraft.version` 0, otherwise drawn from the cluster's."""
    if image.features.get(KRAFT_VERSION, 0) == 0:
        return NO_TOPIC_ID
    return version_4(Random(image.cluster_id).randbytes(16))
