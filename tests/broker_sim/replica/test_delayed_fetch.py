"""Cases A to H of `DelayedFetch`, each in virtual time, and the edges of its wait."""

import pytest

from broker_sim.cluster.requests import fetch_request
from broker_sim.errors import ErrorCode
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol.records import build_batch
from broker_sim.replica import FetchIsolation, FetchParams, FetchPartition


def records_of(pending, index=0):
    return bytes(pending.response.responses[index].partitions[0].records or b"")


@pytest.mark.parametrize("max_wait_ms", [1, 100, 500, 12_345])
def test_an_empty_partition_waits_for_max_wait_to_the_millisecond(bench, max_wait_ms):
    pending = bench.fetch(max_wait_ms=max_wait_ms)
    bench.cluster.advance(max_wait_ms - 1)
    assert not pending.done
    bench.cluster.advance(1)
    assert pending.elapsed_ms == max_wait_ms
    answer = bench.partition_answer(pending)
    assert (answer.error_code, answer.high_watermark, records_of(pending)) == (0, 0, b"")


def test_no_wait_asked_for_is_answered_at_once(bench):
    assert bench.wait(bench.fetch(max_wait_ms=0)).elapsed_ms == 0


def test_no_partitions_at_all_is_answered_at_once(bench):
    assert bench.wait(bench.client.send(1, fetch_request(max_wait_ms=500), 12)).elapsed_ms == 0


def test_case_g_a_produce_wakes_it(bench):
    pending = bench.fetch(max_wait_ms=5_000)
    bench.cluster.advance(200)
    assert bench.parked("fetch") == 3, "the consumer's and the two followers'"
    bench.produced(client=bench.cluster.client())
    bench.settle()
    assert pending.elapsed_ms == 200
    assert records_of(pending)


def test_case_g_min_bytes_adds_up_over_several_produces(bench):
    size = len(build_batch([b"value"]))
    pending = bench.fetch(max_wait_ms=5_000, min_bytes=3 * size)
    other = bench.cluster.client()
    for _ in range(2):
        bench.produced(client=other)
        bench.cluster.advance(10)
        assert not pending.done
    bench.produced(client=other)
    bench.settle()
    assert len(records_of(pending)) == 3 * size


def test_case_g_min_bytes_adds_up_over_several_partitions(make_bench):
    bench = make_bench(partitions=2)
    size = len(build_batch([b"value"]))
    pending = bench.fetch(("topic", 0), ("topic", 1), max_wait_ms=5_000, min_bytes=2 * size)
    other = bench.cluster.client()
    bench.wait(bench.produce(("topic", 0), client=other))
    bench.cluster.advance(10)
    assert not pending.done
    bench.wait(bench.produce(("topic", 1), client=other))
    bench.settle()
    (topic,) = pending.response.responses
    assert [len(partition.records) for partition in topic.partitions] == [size, size]


def test_min_bytes_is_never_more_than_the_requests_max_bytes(bench):
    bench.produced()
    pending = bench.wait(bench.fetch(max_wait_ms=5_000, min_bytes=10_000, max_bytes=10))
    assert pending.elapsed_ms == 0
    assert records_of(pending), "the first batch is whole, whatever max bytes says"


def test_two_fetches_with_different_min_bytes_are_woken_apart(bench):
    size = len(build_batch([b"value"]))
    one, two = bench.cluster.client(), bench.cluster.client()
    first = bench.fetch(max_wait_ms=5_000, min_bytes=1, client=one)
    second = bench.fetch(max_wait_ms=5_000, min_bytes=2 * size, client=two)
    bench.produced()
    bench.settle()
    assert first.done
    assert not second.done
    bench.produced()
    bench.settle()
    assert second.done


def test_a_consumer_waits_for_the_high_watermark_not_for_the_log_end(bench):
    bench.produced()
    bench.cluster.pause(2)
    pending = bench.fetch(offset=1, max_wait_ms=3_000)
    bench.produced(acks=1, client=bench.cluster.client())
    bench.cluster.run_until(lambda: pending.done)
    assert pending.elapsed_ms == 3_000
    assert bench.partition_answer(pending).high_watermark == 1


def test_between_high_watermark_and_log_end_it_is_answered_at_once_and_empty(bench):
    bench.produced()
    bench.cluster.pause(2)
    for _ in range(3):
        bench.produced(acks=1)
    pending = bench.wait(bench.fetch(offset=2, max_wait_ms=3_000))
    answer = bench.partition_answer(pending)
    assert (pending.elapsed_ms, answer.error_code, records_of(pending)) == (0, 0, b"")


def test_inside_the_batch_that_begins_at_the_high_watermark_it_waits(bench):
    bench.produced()
    bench.cluster.pause(2)
    bench.produced(acks=1, values=(b"a", b"b", b"c"))
    bench.produced(acks=1)
    inside = bench.wait(bench.fetch(offset=2, max_wait_ms=1_000))
    assert inside.elapsed_ms == 1_000
    at_the_next_batch = bench.wait(bench.fetch(offset=4, max_wait_ms=1_000))
    assert at_the_next_batch.elapsed_ms == 0


def test_beyond_the_log_end_the_whole_request_is_told_at_once(make_bench):
    bench = make_bench(partitions=2)
    pending = bench.wait(bench.fetch(offset=5, max_wait_ms=3_000))
    assert pending.elapsed_ms == 0
    assert bench.partition_answer(pending).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_an_unknown_partition_beside_a_known_one_does_not_end_the_wait(bench):
    pending = bench.wait(bench.fetch(("topic", 0), ("nowhere", 0), max_wait_ms=400))
    assert pending.elapsed_ms == 400
    assert bench.partition_answer(pending, 1).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_an_unknown_partition_alone_is_told_at_once(bench):
    pending = bench.wait(bench.fetch(("nowhere", 0), max_wait_ms=400))
    assert pending.elapsed_ms == 0


def test_case_a_an_old_version_is_told_the_moment_the_leader_moves(bench):
    pending = bench.fetch(max_wait_ms=60_000, version=10)
    bench.cluster.disconnect(1)
    bench.cluster.run_until(lambda: bench.leader() == 2)
    bench.cluster.reconnect(1)
    bench.cluster.run_until(lambda: pending.done)
    assert bench.partition_answer(pending).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_case_b_and_c_the_partition_is_deleted(bench):
    pending = bench.fetch(max_wait_ms=60_000)
    bench.cluster.advance(50)
    bench.cluster.nodes.controller.delete_topics(["topic"])
    bench.settle()
    assert pending.elapsed_ms == 50
    assert bench.partition_answer(pending).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_deleted_topic_is_told_under_the_id_that_was_asked_for(bench):
    request = fetch_request(("topic", 0), max_wait_ms=60_000)
    topic_id = bench.cluster.nodes.controller.image.topics["topic"].topic_id
    request.topics[0].topic, request.topics[0].topic_id = "", topic_id
    pending = bench.client.send(1, request, 17)
    bench.cluster.advance(50)
    bench.cluster.nodes.controller.delete_topics(["topic"])
    bench.settle()
    assert pending.response.responses[0].topic_id == topic_id
    assert bench.partition_answer(pending).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_case_e_the_leader_epoch_of_the_request_is_fenced(bench):
    pending = bench.fetch(max_wait_ms=60_000, leader_epoch=0)
    bench.cluster.disconnect(1)
    bench.cluster.run_until(lambda: bench.leader() == 2)
    bench.cluster.reconnect(1)
    bench.cluster.run_until(lambda: pending.done)
    assert bench.partition_answer(pending).error_code == ErrorCode.FENCED_LEADER_EPOCH


def test_without_an_epoch_a_newer_version_stays_parked_at_what_is_a_follower_now(bench):
    pending = bench.fetch(max_wait_ms=30_000)
    bench.cluster.disconnect(1)
    bench.cluster.run_until(lambda: bench.leader() == 2)
    bench.cluster.reconnect(1)
    bench.cluster.run_until(lambda: pending.done)
    assert pending.elapsed_ms == 30_000
    assert bench.partition_answer(pending).error_code == ErrorCode.NONE


@pytest.mark.parametrize(
    ("epoch", "error"), [(0, ErrorCode.NONE), (1, ErrorCode.UNKNOWN_LEADER_EPOCH)]
)
def test_an_epoch_that_is_not_known_yet_is_told_at_once(bench, epoch, error):
    pending = bench.wait(bench.fetch(max_wait_ms=100, leader_epoch=epoch))
    assert bench.partition_answer(pending).error_code == error
    assert pending.elapsed_ms == (0 if error else 100)


def test_case_f_a_truncated_log_ends_the_wait_of_a_fetch_beyond_its_end(bench):
    for _ in range(3):
        bench.produced()
    results = []
    manager = bench.cluster.nodes.brokers[1].replica_manager
    manager.fetch_messages(
        FetchParams(
            max_wait_ms=60_000, min_bytes=1, max_bytes=1_000_000, isolation=FetchIsolation.LOG_END
        ),
        [(TopicPartition("topic", 0), FetchPartition(fetch_offset=3, max_bytes=1_000))],
        results.extend,
    )
    assert results == []
    bench.partition().log.truncate_to(1)
    manager.purgatories.fetch.check_and_complete(TopicPartition("topic", 0))
    assert [data.error_code for _, data in results] == [ErrorCode.OFFSET_OUT_OF_RANGE]


def test_case_f_a_rolled_segment_ends_the_wait_before_min_bytes(make_bench):
    bench = make_bench()
    bench.produced()
    pending = bench.fetch(offset=1, max_wait_ms=60_000, min_bytes=1_000_000)
    bench.settle()
    other = bench.cluster.client()
    bench.produced(client=other)
    bench.settle()
    assert not pending.done
    bench.partition().log.roll(2)
    bench.produced(client=other)
    bench.settle()
    assert pending.done


def test_case_h_a_diverging_log_is_told_where_it_leaves_the_leaders(bench):
    bench.produced()
    bench.cluster.disconnect(1)
    bench.cluster.run_until(lambda: bench.leader() == 2)
    bench.cluster.run_until(lambda: bench.partition(2).is_leader)
    bench.wait(bench.produce(broker=2))
    diverged = bench.wait(bench.fetch(broker=2, offset=2, max_wait_ms=60_000, last_fetched_epoch=0))
    answer = bench.partition_answer(diverged)
    assert (answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset) == (0, 1)
    assert diverged.elapsed_ms == 0


def test_case_h_an_epoch_newer_than_all_known_cannot_be_placed(bench):
    bench.produced()
    pending = bench.wait(bench.fetch(offset=1, max_wait_ms=60_000, last_fetched_epoch=7))
    assert bench.partition_answer(pending).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_any_follower_serves_a_consumer_from_version_11_on(bench):
    bench.produced()
    bench.cluster.advance(600)
    new = bench.wait(bench.fetch(broker=2, version=11))
    assert records_of(new)
    old = bench.wait(bench.fetch(broker=2, version=10))
    assert bench.partition_answer(old).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_fetch_parked_at_a_follower_wakes_with_the_followers_next_fetch(bench):
    bench.produced()
    bench.cluster.advance(700)
    pending = bench.fetch(broker=2, version=11, offset=1, max_wait_ms=10_000)
    bench.cluster.advance(50)
    bench.produced(client=bench.cluster.client())
    bench.cluster.run_until(lambda: pending.done)
    assert 50 < pending.elapsed_ms <= 600


def test_a_client_that_leaves_while_its_fetch_is_parked_leaves_nothing_behind(bench):
    pending = bench.fetch(max_wait_ms=2_000, client=bench.cluster.client())
    bench.settle()
    bench.cluster.pause(2)
    bench.cluster.pause(3)
    bench.cluster.advance(3_000)
    assert pending.done
    assert bench.parked("fetch") == 0
