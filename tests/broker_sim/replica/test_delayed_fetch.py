"""Cases A to H of `DelayedFetch`, each with a fetch that waits, and the edges of its wait."""

import pytest

from broker_sim.cluster.virtual.virtual_client import fetch_request
from broker_sim.errors import ErrorCode
from broker_sim.metadata import MetadataImage, PartitionState
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol.records import build_batch
from broker_sim.replica import FetchIsolation


def records_of(pending, index=0):
    return bytes(pending.response.responses[index].partitions[0].records or b"")


# -- the cases, with broker 1 alone ---------------------------------------------------------------


@pytest.fixture
def partition(broker):
    """A partition without followers and with the record 0 of epoch 0."""
    partition = broker.lead(replicas=(1,), isr=(1,))
    broker.produce(acks=1)
    return partition


@pytest.fixture
def wait(broker):
    """Park a fetch from offset 1, which has to wait."""

    def fetch(**options):
        answers = broker.fetch(**{"offset": 1, "max_wait_ms": 60_000, **options})
        assert answers == []
        assert broker.purgatories.fetch.num_delayed() == 1
        return answers

    return fetch


def completed(broker, answers):
    """Try the operation again; return the result of its partition, None while it waits."""
    broker.purgatories.fetch.check_and_complete(TopicPartition("topic", 0))
    assert broker.purgatories.fetch.num_delayed() == 1 - len(answers)
    return answers[0][0] if answers else None


def follow(partition, leader_epoch=1):
    partition.make_follower(PartitionState((1, 2), (1, 2), 2, leader_epoch, 1))


def test_case_a_former_leader_ends_a_leader_only_fetch(broker, partition, wait):
    answers = wait(has_client_metadata=False)
    assert completed(broker, answers) is None
    follow(partition)
    assert completed(broker, answers).error_code is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_former_leader_keeps_serving_a_fetch_with_client_metadata(broker, partition, wait):
    answers = wait()
    follow(partition)
    assert completed(broker, answers) is None


def test_case_b_partition_moved_to_other_brokers_ends_the_wait(broker, partition, wait):
    answers = wait()
    del broker.manager.partitions[partition.topic_partition]
    assert completed(broker, answers).error_code is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_case_c_deleted_partition_ends_the_wait(broker, partition, wait):
    answers = wait()
    del broker.manager.partitions[partition.topic_partition]
    broker.metadata.image = MetadataImage(9, "cluster")
    assert completed(broker, answers).error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_case_e_newer_leader_epoch_fences_the_waiting_fetch(broker, partition, wait):
    answers = wait(current_leader_epoch=0)
    partition.make_leader(PartitionState((1,), (1,), 1, 1, 1))
    assert completed(broker, answers).error_code is ErrorCode.FENCED_LEADER_EPOCH


def test_case_f_truncation_below_the_fetch_offset_ends_the_wait(broker, partition, wait):
    answers = wait(isolation=FetchIsolation.LOG_END)
    partition.log.truncate_to(0)
    assert completed(broker, answers).error_code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_case_f_fetch_offset_on_an_older_segment_ends_the_wait_before_min_bytes(broker, partition, wait):
    answers = wait(min_bytes=1_000_000)
    broker.produce(acks=1)
    assert completed(broker, answers) is None
    partition.log.roll()
    broker.produce(acks=1)
    assert completed(broker, answers).size_bytes > 0


def test_case_g_enough_bytes_end_the_wait(broker, partition, wait):
    size = len(build_batch([b"value"]))
    answers = wait(min_bytes=2 * size)
    broker.produce(acks=1)
    assert completed(broker, answers) is None
    broker.produce(acks=1)
    assert answers[0][0].size_bytes == 2 * size


def test_case_g_counts_each_partition_up_to_its_own_limit(broker, partition, wait):
    size = len(build_batch([b"value"]))
    answers = wait(min_bytes=2 * size, partition_max_bytes=size)
    broker.produce(acks=1)
    broker.produce(acks=1)
    assert completed(broker, answers) is None


def test_case_h_diverging_log_ends_the_wait(broker, partition, wait):
    """The record 0 of epoch 0 is truncated, and another one written in epoch 4."""
    answers = wait(last_fetched_epoch=0)
    partition.log.truncate_to(0)
    partition.make_leader(PartitionState((1,), (1,), 1, 4, 1))
    partition.append_records_to_leader(build_batch([b"other"]), 1)
    result = completed(broker, answers)
    assert (result.error_code, result.diverging_epoch) == (ErrorCode.NONE, (0, 0))


# -- a cluster of three brokers -------------------------------------------------------------------


@pytest.mark.parametrize("max_wait_ms", [1, 100, 500, 12_345])
def test_fetch_of_an_empty_partition_waits_max_wait_to_the_millisecond(bench, max_wait_ms):
    pending = bench.fetch(max_wait_ms=max_wait_ms)
    bench.cluster.advance(max_wait_ms - 1)
    assert not pending.done
    bench.cluster.advance(1)
    assert pending.elapsed_ms == max_wait_ms
    answer = bench.partition_answer(pending)
    assert (answer.error_code, answer.high_watermark, records_of(pending)) == (0, 0, b"")


def test_fetch_without_max_wait_is_answered_at_once(bench):
    assert bench.wait(bench.fetch(max_wait_ms=0)).elapsed_ms == 0


def test_fetch_without_partitions_is_answered_at_once(bench):
    assert bench.wait(bench.client.send(1, fetch_request(max_wait_ms=500), 12)).elapsed_ms == 0


def test_produce_wakes_a_waiting_fetch(bench):
    pending = bench.fetch(max_wait_ms=5_000)
    bench.cluster.advance(200)
    assert bench.parked("fetch") == 3, "the consumer's and the two followers'"
    bench.produced(client=bench.cluster.client())
    bench.settle()
    assert pending.elapsed_ms == 200
    assert records_of(pending)


def test_min_bytes_add_up_over_several_produces(bench):
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


def test_min_bytes_add_up_over_several_partitions(make_bench):
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


def test_min_bytes_are_capped_at_max_bytes(bench):
    bench.produced()
    pending = bench.wait(bench.fetch(max_wait_ms=5_000, min_bytes=10_000, max_bytes=10))
    assert pending.elapsed_ms == 0
    assert records_of(pending), "the first batch is whole, whatever max bytes says"


def test_each_waiting_fetch_has_its_own_min_bytes(bench):
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


def test_consumer_waits_for_the_high_watermark_not_for_the_log_end(bench):
    bench.produced()
    bench.cluster.pause(2)
    pending = bench.fetch(offset=1, max_wait_ms=3_000)
    bench.produced(acks=1, client=bench.cluster.client())
    bench.cluster.run_until(lambda: pending.done)
    assert pending.elapsed_ms == 3_000
    assert bench.partition_answer(pending).high_watermark == 1


def test_fetch_between_high_watermark_and_log_end_is_answered_at_once_and_empty(bench):
    bench.produced()
    bench.cluster.pause(2)
    for _ in range(3):
        bench.produced(acks=1)
    pending = bench.wait(bench.fetch(offset=2, max_wait_ms=3_000))
    answer = bench.partition_answer(pending)
    assert (pending.elapsed_ms, answer.error_code, records_of(pending)) == (0, 0, b"")


def test_fetch_inside_the_batch_that_begins_at_the_high_watermark_waits(bench):
    bench.produced()
    bench.cluster.pause(2)
    bench.produced(acks=1, values=(b"a", b"b", b"c"))
    bench.produced(acks=1)
    inside = bench.wait(bench.fetch(offset=2, max_wait_ms=1_000))
    assert inside.elapsed_ms == 1_000
    at_the_next_batch = bench.wait(bench.fetch(offset=4, max_wait_ms=1_000))
    assert at_the_next_batch.elapsed_ms == 0


def test_fetch_beyond_the_log_end_is_answered_at_once(make_bench):
    bench = make_bench(partitions=2)
    pending = bench.wait(bench.fetch(offset=5, max_wait_ms=3_000))
    assert pending.elapsed_ms == 0
    assert bench.partition_answer(pending).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_unknown_partition_beside_a_known_one_does_not_end_the_wait(bench):
    pending = bench.wait(bench.fetch(("topic", 0), ("nowhere", 0), max_wait_ms=400))
    assert pending.elapsed_ms == 400
    assert bench.partition_answer(pending, 1).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_fetch_of_only_an_unknown_partition_is_answered_at_once(bench):
    pending = bench.wait(bench.fetch(("nowhere", 0), max_wait_ms=400))
    assert pending.elapsed_ms == 0


def test_fetch_of_an_old_version_ends_when_the_leader_moves(bench):
    pending = bench.fetch(max_wait_ms=60_000, version=10)
    bench.cluster.disconnect(1)
    bench.cluster.run_until(lambda: bench.leader() == 2)
    bench.cluster.reconnect(1)
    bench.cluster.run_until(lambda: pending.done)
    assert bench.partition_answer(pending).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_waiting_fetch_ends_when_its_topic_is_deleted(bench):
    pending = bench.fetch(max_wait_ms=60_000)
    bench.cluster.advance(50)
    bench.cluster.nodes.controller.delete_topics(["topic"])
    bench.settle()
    assert pending.elapsed_ms == 50
    assert bench.partition_answer(pending).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_answer_for_a_deleted_topic_has_the_requested_topic_id(bench):
    request = fetch_request(("topic", 0), max_wait_ms=60_000)
    topic_id = bench.cluster.nodes.controller.image.topics["topic"].topic_id
    request.topics[0].topic, request.topics[0].topic_id = "", topic_id
    pending = bench.client.send(1, request, 17)
    bench.cluster.advance(50)
    bench.cluster.nodes.controller.delete_topics(["topic"])
    bench.settle()
    assert pending.response.responses[0].topic_id == topic_id
    assert bench.partition_answer(pending).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_waiting_fetch_is_fenced_when_the_leader_epoch_changes(bench):
    pending = bench.fetch(max_wait_ms=60_000, leader_epoch=0)
    bench.cluster.disconnect(1)
    bench.cluster.run_until(lambda: bench.leader() == 2)
    bench.cluster.reconnect(1)
    bench.cluster.run_until(lambda: pending.done)
    assert bench.partition_answer(pending).error_code == ErrorCode.FENCED_LEADER_EPOCH


def test_fetch_without_a_leader_epoch_keeps_waiting_at_a_former_leader(bench):
    pending = bench.fetch(max_wait_ms=30_000)
    bench.cluster.disconnect(1)
    bench.cluster.run_until(lambda: bench.leader() == 2)
    bench.cluster.reconnect(1)
    bench.cluster.run_until(lambda: pending.done)
    assert pending.elapsed_ms == 30_000
    assert bench.partition_answer(pending).error_code == ErrorCode.NONE


@pytest.mark.parametrize(("epoch", "error"), [(0, ErrorCode.NONE), (1, ErrorCode.UNKNOWN_LEADER_EPOCH)])
def test_unknown_leader_epoch_is_answered_at_once(bench, epoch, error):
    pending = bench.wait(bench.fetch(max_wait_ms=100, leader_epoch=epoch))
    assert bench.partition_answer(pending).error_code == error
    assert pending.elapsed_ms == (0 if error else 100)


def test_diverging_log_is_answered_at_once_with_its_last_common_epoch(bench):
    bench.produced()
    bench.cluster.disconnect(1)
    bench.cluster.run_until(lambda: bench.leader() == 2)
    bench.cluster.run_until(lambda: bench.partition(2).is_leader)
    bench.wait(bench.produce(broker=2))
    diverged = bench.wait(bench.fetch(broker=2, offset=2, max_wait_ms=60_000, last_fetched_epoch=0))
    answer = bench.partition_answer(diverged)
    assert (answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset) == (0, 1)
    assert diverged.elapsed_ms == 0


def test_last_fetched_epoch_newer_than_all_known_is_out_of_range(bench):
    bench.produced()
    pending = bench.wait(bench.fetch(offset=1, max_wait_ms=60_000, last_fetched_epoch=7))
    assert bench.partition_answer(pending).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_followers_serve_consumers_from_version_11_on(bench):
    bench.produced()
    bench.cluster.advance(600)
    new = bench.wait(bench.fetch(broker=2, version=11))
    assert records_of(new)
    old = bench.wait(bench.fetch(broker=2, version=10))
    assert bench.partition_answer(old).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_fetch_that_waits_at_a_follower_ends_with_the_followers_next_fetch(bench):
    bench.produced()
    bench.cluster.advance(700)
    pending = bench.fetch(broker=2, version=11, offset=1, max_wait_ms=10_000)
    bench.cluster.advance(50)
    bench.produced(client=bench.cluster.client())
    bench.cluster.run_until(lambda: pending.done)
    assert 50 < pending.elapsed_ms <= 600


def test_fetch_of_a_disconnected_client_ends_at_its_max_wait(bench):
    pending = bench.fetch(max_wait_ms=2_000, client=bench.cluster.client())
    bench.settle()
    bench.cluster.pause(2)
    bench.cluster.pause(3)
    bench.cluster.advance(3_000)
    assert pending.done
    assert bench.parked("fetch") == 0
