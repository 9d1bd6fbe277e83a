"""DescribeProducers: what the log of a replica knows of producers, over the wire."""

import pytest

from broker_sim.errors import ErrorCode
from broker_sim.protocol import messages

UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.fixture
def describe(by_hand):
    """Ask about partitions of a topic; return the answers, and the producers of each."""

    def call(*partitions, topic="t", broker=1):
        request = messages.DescribeProducersRequest
        response = by_hand.ask(broker, request([request.TopicRequest(topic, list(partitions))]), 0)
        return response.topics[0].partitions

    return call


def fields_of(producer):
    return (
        producer.producer_id,
        producer.producer_epoch,
        producer.last_sequence,
        producer.coordinator_epoch,
        producer.current_txn_start_offset,
    )


def producers_of(answer):
    return sorted(fields_of(producer) for producer in answer.active_producers)


def test_open_transaction_is_described_with_its_first_offset(by_hand, describe):
    by_hand.write(7, epoch=2)
    by_hand.write(8)
    by_hand.write(8, 1)
    (answer,) = describe(0)
    assert (answer.partition_index, answer.error_code, answer.error_message) == (0, 0, None)
    assert producers_of(answer) == [(7, 2, 0, -1, 0), (8, 0, 1, -1, 1)]


def test_ended_transaction_is_described_with_its_coordinator(by_hand, describe):
    by_hand.write(7)
    by_hand.markers((7, 0, False, [0], 6))
    now_ms = by_hand.cluster.nodes.nodes[1].clock.wall_clock_ms()
    (answer,) = describe(0)
    assert producers_of(answer) == [(7, 0, 0, 6, -1)]
    assert answer.active_producers[0].last_timestamp == now_ms


def test_marker_of_a_newer_epoch_forgets_the_sequences(by_hand, describe):
    by_hand.write(7)
    by_hand.markers((7, 1, True, [0], 0, 2))
    assert producers_of(describe(0)[0]) == [(7, 1, -1, 0, -1)]


def test_idempotent_producer_is_described_too(by_hand, describe):
    by_hand.write(9, 4, is_transactional=False)
    assert producers_of(describe(0)[0]) == [(9, 0, 4, -1, -1)]


def test_follower_answers_from_its_own_log(by_hand, describe):
    by_hand.write(7)
    assert producers_of(describe(0, broker=2)[0]) == [(7, 0, 0, -1, 0)]


def test_partition_without_a_local_replica_is_not_described(describe):
    (answer,) = describe(1, broker=3)
    assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_unknown_partition_has_an_error_beside_the_others(describe):
    known, unknown = describe(0, 4)
    assert (known.error_code, unknown.error_code) == (0, UNKNOWN)
    assert unknown.error_message is None


def test_unknown_topic_has_an_error(describe):
    (answer,) = describe(0, topic="none")
    assert (answer.error_code, answer.error_message) == (UNKNOWN, "This server does not host this topic-partition.")


def test_invalid_name_has_an_error(describe):
    (answer,) = describe(0, topic="a b")
    assert answer.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert answer.error_message.startswith("Topic name is invalid: 'a b' contains")
