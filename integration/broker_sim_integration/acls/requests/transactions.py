"""Requests of producers that have an id or a transaction."""

from __future__ import annotations

from broker_sim.protocol import messages
from broker_sim_integration.acls.names import (
    CLUSTER_RESOURCE,
    GROUP,
    GROUP_RESOURCE,
    ID_RESOURCE,
    TOPIC,
    TOPIC_RESOURCE,
    TRANSACTIONAL_ID,
)
from broker_sim_integration.acls.situation import GuardedRequest, fixed


def transactions_requests() -> list[GuardedRequest]:
    """Return the requests with the resources on which they need rights."""
    add, markers = messages.AddPartitionsToTxnRequest, messages.WriteTxnMarkersRequest
    init, producers = messages.InitProducerIdRequest, messages.DescribeProducersRequest
    topic = add.AddPartitionsToTxnTopic(TOPIC, [0])
    batch = [add.AddPartitionsToTxnTransaction(TRANSACTIONAL_ID, 4_000_000, 0, True, topics=[topic])]
    marker = markers.WritableTxnMarker(4_000_000, 0, False, [markers.WritableTxnMarkerTopic(TOPIC, [9])], 0)
    return [
        fixed("InitProducerId", init(TRANSACTIONAL_ID, 60_000, -1, -1), 4, ID_RESOURCE),
        fixed("InitProducerId of an idempotent producer", init(None, 60_000), 4, CLUSTER_RESOURCE),
        fixed("InitProducerId of who may write", init(None, 60_000), 4, TOPIC_RESOURCE),
        fixed(
            "AddPartitionsToTxn",
            add(
                v3_and_below_transactional_id=TRANSACTIONAL_ID,
                v3_and_below_producer_id=4_000_000,
                v3_and_below_producer_epoch=0,
                v3_and_below_topics=[topic],
            ),
            3,
            ID_RESOURCE,
            TOPIC_RESOURCE,
        ),
        fixed("AddPartitionsToTxn as a broker", add(transactions=batch), 5, CLUSTER_RESOURCE),
        fixed(
            "AddOffsetsToTxn",
            messages.AddOffsetsToTxnRequest(TRANSACTIONAL_ID, 4_000_000, 0, GROUP),
            3,
            ID_RESOURCE,
            GROUP_RESOURCE,
        ),
        fixed("EndTxn", messages.EndTxnRequest(TRANSACTIONAL_ID, 4_000_000, 0, True), 3, ID_RESOURCE),
        fixed("WriteTxnMarkers", markers([marker]), 1, CLUSTER_RESOURCE),
        fixed("DescribeTransactions", messages.DescribeTransactionsRequest([TRANSACTIONAL_ID]), 0, ID_RESOURCE),
        fixed("ListTransactions", messages.ListTransactionsRequest(), 0, ID_RESOURCE),
        fixed("DescribeProducers", producers([producers.TopicRequest(TOPIC, [0])]), 0, TOPIC_RESOURCE),
    ]
