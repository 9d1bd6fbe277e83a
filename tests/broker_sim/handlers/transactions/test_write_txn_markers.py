"""WriteTxnMarkers as a coordinator or a user's tool sends it, over the wire."""

import pytest

from broker_sim.errors import ErrorCode
from broker_sim.protocol import messages
from broker_sim.protocol.record_batch import parse_header
from broker_sim.protocol.records import iter_records, read_end_txn_marker

NONE = ErrorCode.NONE
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
FENCED = ErrorCode.TRANSACTION_COORDINATOR_FENCED
OLD_EPOCH = ErrorCode.INVALID_PRODUCER_EPOCH
UNEXPECTED = ErrorCode.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("is_commit", [True, False])
def test_marker_ends_the_transaction(by_hand, is_commit, version):
    by_hand.write(7)
    assert by_hand.log().last_stable_offset == 0
    assert by_hand.markers((7, 0, is_commit, [0], 4), version=version) == {(7, 0): NONE}
    assert by_hand.log().last_stable_offset == 2
    (batch,) = by_hand.log().read(1, 1_000).records
    header = parse_header(batch)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 0, -1)
    assert (header.is_control, header.is_transactional) == (True, True)
    assert read_end_txn_marker(batch) == (is_commit, 4)
    (record,) = iter_records(batch)
    assert record.timestamp == by_hand.cluster.nodes.nodes[1].clock.wall_clock_ms()


def test_marker_is_answered_when_the_in_sync_replicas_have_it(by_hand):
    by_hand.write(7)
    by_hand.cluster.pause(2)
    request = by_hand.marker_request((7, 0, True, [0], 0))
    pending = by_hand.client.send(1, request, 2)
    by_hand.cluster.advance(2_000)
    assert (pending.done, by_hand.log().log_end_offset) == (False, 2)
    assert by_hand.log().last_stable_offset == 0
    by_hand.cluster.resume(2)
    by_hand.cluster.run_until(lambda: pending.done, 60_000)
    assert by_hand.log().last_stable_offset == 2


@pytest.mark.parametrize("version", [4, 11, 12, 13, 18])
@pytest.mark.parametrize(("broker", "first_version"), [(1, 4), (2, 11)], ids=["leader", "follower"])
def test_marker_wakes_readers_of_committed_records(by_hand, broker, first_version, version):
    if version < first_version:
        broker = 1  # only the leader serves it
    by_hand.write(7)
    by_hand.cluster.advance(1_000)
    topic_id = by_hand.cluster.nodes.controller.image.topics["t"].topic_id
    request = messages.FetchRequest
    asked = request.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1_000, current_leader_epoch=-1)
    fetch = request(
        max_wait_ms=60_000,
        min_bytes=1,
        max_bytes=10_000,
        isolation_level=1,
        topics=[request.FetchTopic(topic="t", topic_id=topic_id, partitions=[asked])],
    )
    pending = by_hand.cluster.client().send(broker, fetch, version)
    by_hand.write(7, 1)
    by_hand.cluster.advance(2_000)
    assert not pending.done
    by_hand.markers((7, 0, False, [0], 0))
    by_hand.cluster.run_until(lambda: pending.done, 1_000)
    (answer,) = pending.response.responses[0].partitions
    listed = [(txn.producer_id, txn.first_offset) for txn in answer.aborted_transactions]
    assert listed == [(7, 0)]
    assert (answer.last_stable_offset, answer.high_watermark) == (3, 3)


def test_marker_moves_the_latest_offset_of_read_committed_clients(by_hand):
    def latest(isolation_level):
        request = messages.ListOffsetsRequest
        partition = request.ListOffsetsPartition(timestamp=-1)
        topics = [request.ListOffsetsTopic("t", [partition])]
        response = by_hand.ask(1, request(-1, isolation_level, topics), 11)
        return response.topics[0].partitions[0].offset

    by_hand.write(7)
    assert (latest(0), latest(1)) == (1, 0)
    by_hand.markers((7, 0, True, [0], 0))
    assert (latest(0), latest(1)) == (2, 2)


@pytest.mark.parametrize(("waited_ms", "is_answered"), [(1_999, False), (2_000, True)])
def test_marker_without_its_replicas_is_answered_after_the_request_timeout(make_by_hand, waited_ms, is_answered):
    by_hand = make_by_hand({"request.timeout.ms": "2000"})
    by_hand.cluster.pause(2)
    pending = by_hand.client.send(1, by_hand.marker_request((7, 0, True, [0], 0)), 2)
    by_hand.cluster.run_until(lambda: by_hand.log().log_end_offset == 1)
    by_hand.cluster.advance(waited_ms)
    assert pending.done is is_answered
    if is_answered:
        (topic,) = pending.response.markers[0].topics
        assert topic.partitions[0].error_code == ErrorCode.REQUEST_TIMED_OUT


def test_partitions_of_one_marker_are_answered_together(by_hand):
    expected = {(7, 0): NONE, (7, 1): ErrorCode.NOT_LEADER_OR_FOLLOWER, (7, 5): UNKNOWN}
    assert by_hand.markers((7, 0, True, [0, 1, 5], 0)) == expected


def test_broker_without_a_replica_does_not_know_the_partition(by_hand):
    assert by_hand.markers((7, 0, True, [1], 0), broker=3) == {(7, 1): UNKNOWN}
    response = by_hand.ask(1, by_hand.marker_request((7, 0, True, [0], 0), topic="none"), 2)
    assert response.markers[0].topics[0].name == "none"
    assert response.markers[0].topics[0].partitions[0].error_code == UNKNOWN


def test_markers_of_several_producers_are_answered_together(by_hand):
    by_hand.write(7)
    by_hand.write(8)
    answer = by_hand.markers((7, 0, True, [0], 0), (8, 0, False, [0], 0), (9, 0, True, [0], 0))
    assert answer == {(7, 0): NONE, (8, 0): NONE, (9, 0): NONE}
    aborted = by_hand.log().producer_state.transaction_index.collect(0, 9)
    assert [(txn.producer_id, txn.first_offset) for txn in aborted] == [(8, 1)]


def test_request_without_markers_has_an_empty_answer(by_hand):
    assert by_hand.markers() == {}


def test_older_coordinator_is_fenced_and_changes_nothing(by_hand):
    by_hand.write(7)
    assert by_hand.markers((7, 0, True, [0], 5)) == {(7, 0): NONE}
    by_hand.write(7, 1)
    assert by_hand.markers((7, 0, True, [0], 4)) == {(7, 0): FENCED}
    assert by_hand.log().last_stable_offset == 2
    assert by_hand.markers((7, 0, True, [0], 6)) == {(7, 0): NONE}


@pytest.mark.parametrize(
    ("epoch", "transaction_version", "error"),
    [(2, 0, OLD_EPOCH), (3, 0, NONE), (3, 1, NONE), (3, 2, OLD_EPOCH), (4, 2, NONE)],
)
def test_epoch_is_checked_by_the_transaction_version(by_hand, epoch, transaction_version, error):
    by_hand.write(7, epoch=3)
    marker = (7, epoch, True, [0], 0, transaction_version)
    assert by_hand.markers(marker) == {(7, 0): error}


def test_version_1_of_the_request_has_no_transaction_version(by_hand):
    by_hand.write(7, epoch=3)
    assert by_hand.markers((7, 3, True, [0], 0), version=1) == {(7, 0): NONE}


def test_unknown_transaction_version_fails_its_partition(by_hand):
    answer = by_hand.markers((7, 0, True, [0], 0, -1), (8, 0, True, [0], 0, 2))
    assert answer == {(7, 0): UNEXPECTED, (8, 0): NONE}


@pytest.mark.parametrize(("producer_id", "epoch"), [(-1, 0), (7, -1)])
def test_marker_without_a_producer_fails_the_request_after_earlier_markers(by_hand, producer_id, epoch):
    answer = by_hand.markers((5, 0, True, [0], 0), (producer_id, epoch, True, [0], 0), (6, 0, True, [0], 0))
    assert answer == {(5, 0): UNEXPECTED, (producer_id, 0): UNEXPECTED, (6, 0): UNEXPECTED}
    assert by_hand.log().log_end_offset == 1


def test_marker_needs_the_smallest_isr(make_by_hand):
    by_hand = make_by_hand({"min.insync.replicas": "2"})
    by_hand.write(7)
    by_hand.cluster.kill(2)
    by_hand.cluster.run_until(lambda: by_hand.isr() == {1})
    assert by_hand.markers((7, 0, True, [0], 0)) == {(7, 0): ErrorCode.NOT_ENOUGH_REPLICAS}
    assert (by_hand.log().log_end_offset, by_hand.log().last_stable_offset) == (1, 0)


def test_new_leader_ends_the_transactions_of_the_old_one(by_hand):
    by_hand.write(7)
    by_hand.write(8)
    assert by_hand.markers((8, 0, False, [0], 3)) == {(8, 0): NONE}
    by_hand.cluster.advance(1_000)
    by_hand.cluster.kill(1)
    by_hand.cluster.run_until(lambda: by_hand.leader() not in (1, -1))
    leader = by_hand.leader()
    by_hand.cluster.run_until(lambda: by_hand.log(leader).high_watermark == 3)
    assert by_hand.log(leader).last_stable_offset == 0
    assert by_hand.markers((8, 0, True, [0], 2), broker=leader) == {(8, 0): FENCED}
    assert by_hand.markers((7, 0, True, [0], 3), broker=leader) == {(7, 0): NONE}
    assert by_hand.log(leader).last_stable_offset == 4
