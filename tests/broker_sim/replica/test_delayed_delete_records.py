"""Cases A to C of `DelayedDeleteRecords`, each with a deletion that waits, and its timeout."""

import pytest

from broker_sim.errors import ErrorCode
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol import messages


@pytest.fixture
def delete(bench):
    def send(offset, timeout_ms=30_000):
        request = messages.DeleteRecordsRequest(
            topics=[
                messages.DeleteRecordsRequest.DeleteRecordsTopic(
                    name="topic", partitions=[messages.DeleteRecordsRequest.DeleteRecordsPartition(0, offset)]
                )
            ],
            timeout_ms=timeout_ms,
        )
        return bench.client.send(1, request, 2)

    for _ in range(4):
        bench.produced()
    return send


def answer_of(pending):
    return pending.response.topics[0].partitions[0]


def test_case_c_deletion_completes_when_all_replicas_have_moved_their_log_start(bench, delete):
    pending = bench.wait(delete(3))
    assert (answer_of(pending).error_code, answer_of(pending).low_watermark) == (0, 3)
    assert [bench.partition(b).log.log_start_offset for b in (1, 2, 3)] == [3, 3, 3]


def test_minus_one_deletes_up_to_the_high_watermark(bench, delete):
    assert answer_of(bench.wait(delete(-1))).low_watermark == 4


def test_deletion_with_a_paused_follower_times_out_to_the_millisecond(bench, delete):
    bench.cluster.pause(3)
    pending = delete(3, timeout_ms=2_000)
    bench.cluster.advance(1_999)
    assert not pending.done
    bench.cluster.advance(1)
    answer = answer_of(pending)
    assert (answer.error_code, answer.low_watermark) == (ErrorCode.REQUEST_TIMED_OUT, 0)
    assert bench.partition().log.log_start_offset == 3, "the leader's own start has moved"


def test_deletion_beyond_the_high_watermark_is_refused_at_once(bench, delete):
    pending = bench.wait(delete(5))
    assert answer_of(pending).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert pending.elapsed_ms == 0


def test_deletion_of_the_topic_does_not_end_the_wait(bench, delete):
    """As in Kafka, which then tries only produces and fetches."""
    bench.cluster.pause(3)
    pending = delete(3, timeout_ms=20_000)
    bench.settle()
    bench.cluster.nodes.controller.delete_topics(["topic"])
    bench.wait(pending)
    assert answer_of(pending).error_code == ErrorCode.REQUEST_TIMED_OUT
    assert pending.elapsed_ms == 20_000


def test_case_b_former_leader_ends_the_wait(bench, delete):
    bench.cluster.pause(3)
    pending = delete(3, timeout_ms=60_000)
    bench.cluster.disconnect(1)
    bench.cluster.run_until(lambda: bench.leader() == 2)
    bench.cluster.reconnect(1)
    bench.settle()
    key = bench.partition().topic_partition
    bench.cluster.nodes.brokers[1].purgatories.delete_records.check_and_complete(key)
    bench.settle()
    answer = answer_of(pending)
    assert (answer.error_code, answer.low_watermark) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)


def test_case_a_partition_moved_off_the_broker_ends_the_wait(bench, delete):
    bench.cluster.pause(3)
    pending = delete(3, timeout_ms=60_000)
    bench.settle()
    bench.cluster.nodes.controller.delete_topics(["topic"])
    bench.settle()
    broker = bench.cluster.nodes.brokers[1]
    broker.purgatories.delete_records.check_and_complete(TopicPartition("topic", 0))
    bench.settle()
    answer = answer_of(pending)
    assert (answer.error_code, answer.low_watermark) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)


def test_deletion_does_not_wait_for_a_dead_replica(bench, delete):
    bench.cluster.kill(3)
    bench.cluster.run_until(lambda: 3 not in bench.isr())
    bench.settle()
    pending = bench.wait(delete(2))
    assert answer_of(pending).error_code == ErrorCode.NONE
