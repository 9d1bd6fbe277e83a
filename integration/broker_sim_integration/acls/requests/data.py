"""Requests that read and write records."""

from __future__ import annotations

from broker_sim.cluster.virtual.virtual_client import fetch_request, produce_request
from broker_sim.protocol import messages
from broker_sim.protocol.records import build_batch
from broker_sim_integration.acls.names import (
    CLUSTER_RESOURCE,
    ID_RESOURCE,
    NEW_RESOURCE,
    NEW_TOPIC,
    TOPIC,
    TOPIC_RESOURCE,
    TRANSACTIONAL_ID,
)
from broker_sim_integration.acls.situation import GuardedRequest, by_id, fixed


def _produce_by_id(topic_id: bytes) -> messages.ProduceRequest:
    request = produce_request((TOPIC, 0))
    request.topic_data[0].name, request.topic_data[0].topic_id = "", topic_id
    return request


def _fetch_by_id(topic_id: bytes) -> messages.FetchRequest:
    request = fetch_request((TOPIC, 0), max_wait_ms=0)
    request.topics[0].topic, request.topics[0].topic_id = "", topic_id
    return request


def _transactional_produce() -> messages.ProduceRequest:
    batch = build_batch((b"v",), producer_id=4_000_000, producer_epoch=0, base_sequence=0, is_transactional=True)
    request = produce_request((TOPIC, 0), batch=batch)
    request.transactional_id = TRANSACTIONAL_ID
    return request


def data_requests() -> list[GuardedRequest]:
    """Return the requests with the resources on which they need rights."""
    list_offsets = messages.ListOffsetsRequest
    delete_records = messages.DeleteRecordsRequest
    epochs = messages.OffsetForLeaderEpochRequest
    return [
        fixed("Produce", produce_request((TOPIC, 0)), 9, TOPIC_RESOURCE),
        by_id("Produce by id", _produce_by_id, 13, TOPIC_RESOURCE),
        fixed("Produce to an unknown topic", produce_request((NEW_TOPIC, 0)), 9, NEW_RESOURCE),
        fixed("Produce in a transaction", _transactional_produce(), 9, ID_RESOURCE, TOPIC_RESOURCE),
        fixed("Fetch", fetch_request((TOPIC, 0), max_wait_ms=0), 12, TOPIC_RESOURCE),
        by_id("Fetch by id", _fetch_by_id, 13, TOPIC_RESOURCE),
        fixed("Fetch of an unknown topic", fetch_request((NEW_TOPIC, 0), max_wait_ms=0), 12, NEW_RESOURCE),
        fixed("Fetch of a follower", fetch_request((TOPIC, 9), max_wait_ms=0, replica_id=1), 12, CLUSTER_RESOURCE),
        fixed(
            "ListOffsets",
            list_offsets(
                replica_id=-1,
                topics=[list_offsets.ListOffsetsTopic(TOPIC, [list_offsets.ListOffsetsPartition(0, timestamp=-2)])],
            ),
            7,
            TOPIC_RESOURCE,
        ),
        fixed(
            "DeleteRecords",
            delete_records(
                [delete_records.DeleteRecordsTopic(TOPIC, [delete_records.DeleteRecordsPartition(0, 0)])], 1_000
            ),
            2,
            TOPIC_RESOURCE,
        ),
        fixed(
            "OffsetForLeaderEpoch",
            epochs(
                replica_id=-1,
                topics=[epochs.OffsetForLeaderTopic(TOPIC, [epochs.OffsetForLeaderPartition(0, -1, leader_epoch=0)])],
            ),
            4,
            TOPIC_RESOURCE,
        ),
        fixed(
            "OffsetForLeaderEpoch as a broker",
            epochs(
                replica_id=-1,
                topics=[epochs.OffsetForLeaderTopic(TOPIC, [epochs.OffsetForLeaderPartition(0, -1, leader_epoch=0)])],
            ),
            4,
            CLUSTER_RESOURCE,
        ),
    ]
