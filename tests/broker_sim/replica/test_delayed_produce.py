"""Cases A to C of `DelayedProduce`, each with a produce that waits, and the edges of its timeout."""

import pytest
from broker_sim_purgatory import DelayedOperationPurgatory, InlineExecutor, SystemTimer
from broker_sim_purgatory.observer import IMMEDIATE

from broker_sim.controller import NewPartitions
from broker_sim.errors import ErrorCode
from broker_sim.protocol.records import build_batch
from broker_sim.replica import FetchIsolation, FetchParams, FetchPartition

TOPIC = "topic"


def test_case_c2_produce_completes_when_all_in_sync_replicas_have_the_records(bench):
    answer = bench.produced()
    assert answer.error_code == ErrorCode.NONE
    assert answer.base_offset == 0
    assert bench.partition().log.high_watermark == 1


class RecordingObserver:
    """An observer that records its calls."""

    def __init__(self):
        self.events = []

    def tried(self, operation, keys):
        self.events.append(("tried", operation.api, list(keys)))

    def completed(self, _operation, by):
        self.events.append(("completed", by))


def test_observer_is_called_for_a_produce_that_completes_at_once(broker):
    heard = RecordingObserver()
    timer = SystemTimer("Produce", clock=broker.clock, executor=InlineExecutor())
    broker.purgatories.produce = DelayedOperationPurgatory("Produce", timer, reaper_enabled=False, observer=heard)
    broker.lead(isr=(1,))
    ((answer,),) = [answers.values() for answers in broker.produce()]
    assert answer.error_code is ErrorCode.NONE
    assert heard.events == [("tried", "Produce", [(TOPIC, 0)]), ("completed", IMMEDIATE)]


def test_append_wakes_a_fetch_that_waits_for_it(broker):
    broker.lead(isr=(1,))
    fetched = broker.fetch(offset=0)
    assert fetched == []
    broker.produce()
    assert fetched[0][0].size_bytes


@pytest.mark.parametrize("timeout_ms", [1, 500, 1500, 7777])
def test_produce_without_a_follower_times_out_to_the_millisecond_with_its_base_offset(bench, timeout_ms):
    bench.produced()
    bench.cluster.pause(2)
    pending = bench.produce(timeout_ms=timeout_ms)
    bench.cluster.advance(timeout_ms - 1)
    assert not pending.done
    assert bench.parked("produce") == 1
    bench.cluster.advance(1)
    answer = bench.partition_answer(pending)
    assert answer.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert answer.base_offset == 1
    assert pending.elapsed_ms == timeout_ms
    assert bench.parked("produce") == 0


@pytest.mark.parametrize("timeout_ms", [0, -1, -2_000_000_000])
def test_produce_without_a_timeout_ends_at_once_and_its_records_are_in_the_log(bench, timeout_ms):
    bench.cluster.pause(2)
    pending = bench.wait(bench.produce(timeout_ms=timeout_ms))
    assert bench.partition_answer(pending).error_code == ErrorCode.REQUEST_TIMED_OUT
    assert pending.elapsed_ms == 0
    assert bench.partition().log.log_end_offset == 1


def test_produce_completes_when_the_isr_shrinks(bench):
    bench.produced()
    bench.cluster.pause(2)
    pending = bench.wait(bench.produce(timeout_ms=60_000))
    assert bench.partition_answer(pending).error_code == ErrorCode.NONE
    assert bench.isr() == {1, 3}
    # It leaves the ISR by lag (checked every 5 s) or when its session expires (9 s).
    assert 5_000 <= pending.elapsed_ms <= 15_000


def test_case_a_deleted_partition_ends_the_wait(bench):
    bench.produced()
    bench.cluster.pause(2)
    pending = bench.produce()
    bench.settle()
    bench.cluster.nodes.controller.delete_topics(["topic"])
    bench.settle()
    answer = bench.partition_answer(pending)
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_case_b_former_leader_ends_the_wait(bench):
    """A disconnected leader is replaced, and learns of it when it reconnects."""
    bench.produced()
    bench.cluster.pause(2)
    pending = bench.produce(timeout_ms=60_000)
    bench.settle()
    bench.cluster.disconnect(1)
    bench.cluster.run_until(lambda: bench.leader() not in (1, -1))
    assert not pending.done
    bench.cluster.reconnect(1)
    bench.settle()
    assert bench.partition_answer(pending).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_produce_waits_until_its_timeout_while_the_isr_is_below_the_minimum(make_bench):
    bench = make_bench(topic_configs={"min.insync.replicas": "3"})
    bench.produced()
    bench.cluster.pause(2)
    pending = bench.wait(bench.produce(timeout_ms=25_000))
    assert bench.isr() == {1, 3}
    assert bench.partition_answer(pending).error_code == ErrorCode.REQUEST_TIMED_OUT
    assert pending.elapsed_ms == 25_000


def test_case_c1_isr_that_is_too_small_once_the_records_are_replicated_is_an_error(broker):
    """The minimum is raised between the move of the high watermark and the check.

    Below the minimum the high watermark does not move, so no other order leads here.
    """
    partition = broker.lead(replicas=(1, 2, 3), isr=(1, 2), min_insync_replicas=2)
    answers = broker.produce()
    assert broker.purgatories.produce.num_delayed() == 1
    fetch = FetchPartition(fetch_offset=1, max_bytes=1_000)
    broker.manager.read_from_log(
        FetchParams(max_wait_ms=0, min_bytes=0, max_bytes=1_000, isolation=FetchIsolation.LOG_END, replica_id=2),
        [(partition.topic_partition, fetch)],
        update_fetch_state=True,
    )
    assert (partition.log.high_watermark, answers) == (1, [])
    partition.config = partition.config.replaced(min_insync_replicas=3)
    broker.actions.try_complete_actions()
    assert broker.purgatories.produce.num_delayed() == 0
    assert answers[0][0].error_code is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    assert answers[0][0].base_offset == 0


def test_isr_below_the_minimum_refuses_the_append(make_bench):
    bench = make_bench(topic_configs={"min.insync.replicas": "3"})
    bench.produced()
    bench.cluster.pause(2)
    bench.wait(bench.produce(timeout_ms=1_000))
    bench.cluster.run_until(lambda: bench.isr() == {1, 3})
    bench.settle()
    end_offset = bench.partition().log.log_end_offset
    pending = bench.wait(bench.produce())
    answer = bench.partition_answer(pending)
    assert answer.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert answer.base_offset == -1
    assert pending.elapsed_ms == 0
    assert bench.partition().log.log_end_offset == end_offset


def test_high_watermark_stays_while_the_isr_is_below_the_minimum_and_moves_later(make_bench):
    bench = make_bench(topic_configs={"min.insync.replicas": "3"})
    bench.produced()
    bench.cluster.pause(2)
    bench.wait(bench.produce(timeout_ms=1_000))
    bench.cluster.run_until(lambda: bench.isr() == {1, 3})
    assert bench.produced(acks=1).error_code == ErrorCode.NONE
    bench.cluster.advance(2_000)
    assert bench.partition().log.high_watermark == 1
    bench.cluster.resume(2)
    bench.cluster.run_until(lambda: bench.isr() == {1, 2, 3})
    bench.cluster.run_until(lambda: bench.partition().log.high_watermark == 3)


def test_response_waits_for_the_slowest_partition(make_bench):
    bench = make_bench(partitions=1)
    bench.cluster.create_topic("other", assignments={0: [2, 1, 3]})
    bench.produced()
    bench.cluster.pause(3)
    pending = bench.wait(bench.produce(("other", 0), bench.key, timeout_ms=700))
    codes = [t.partition_responses[0].error_code for t in pending.response.responses]
    assert sorted(codes) == [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.REQUEST_TIMED_OUT]
    assert pending.elapsed_ms == 700


def test_produce_whose_partitions_all_fail_is_answered_at_once(bench):
    bench.cluster.pause(3)
    pending = bench.wait(bench.produce(broker=2))
    assert bench.partition_answer(pending).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert pending.elapsed_ms == 0


def test_pipelined_produce_is_appended_after_the_timeout_of_the_one_before(bench):
    bench.produced()
    bench.cluster.pause(2)
    pending = [bench.produce(timeout_ms=600) for _ in range(3)]
    bench.cluster.advance(300)
    assert bench.partition().log.log_end_offset == 2
    other = bench.cluster.client()
    between = bench.wait(bench.produce(acks=1, client=other))
    assert bench.partition_answer(between).base_offset == 2
    bench.cluster.run_until(lambda: all(p.done for p in pending))
    assert [p.elapsed_ms for p in pending] == [600, 1200, 1800]
    assert [bench.partition_answer(p).base_offset for p in pending] == [1, 3, 4]


@pytest.mark.parametrize("acks", [2, -2, 127])
def test_invalid_acks_are_refused_without_an_append(bench, acks):
    answer = bench.produced(acks=acks)
    assert answer.error_code == ErrorCode.INVALID_REQUIRED_ACKS
    assert answer.base_offset == -1
    assert bench.partition().log.log_end_offset == 0


def test_transactional_batch_without_a_transactional_id_is_refused(bench):
    batch = build_batch([b"value"], producer_id=1, producer_epoch=0, base_sequence=0,
                        is_transactional=True)  # fmt: skip
    answer = bench.produced(batch=batch)
    assert answer.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert bench.partition().log.log_end_offset == 0


def test_min_insync_replicas_is_capped_at_the_number_of_replicas(make_bench):
    bench = make_bench(topic_configs={"min.insync.replicas": "9"})
    assert bench.produced().error_code == ErrorCode.NONE


def test_new_partition_is_replicated_with_the_followers_next_fetch(bench):
    """The fetch that a follower has in flight does not have a partition that was added later."""
    bench.produced()
    bench.cluster.advance(100)
    bench.cluster.nodes.controller.create_partitions(
        [NewPartitions("topic", 2, assignments=[[1, 2, 3]])], validate_only=False
    )
    bench.settle()
    pending = bench.wait(bench.produce(("topic", 1)))
    assert bench.partition_answer(pending).error_code == ErrorCode.NONE
    assert 0 < pending.elapsed_ms <= 500
