"""A leader that throttles followers outside the ISR (KIP-73)."""

import pytest

from broker_sim.config import BrokerConfig
from broker_sim.quota import ReplicationQuotas
from broker_sim.replica import FetchIsolation

IN_SYNC, LAGGING = 2, 3
BESIDE_RECORDS = 72
"""Bytes that Kafka counts for a response with one partition, besides the records."""


@pytest.fixture
def quotas(broker):
    """Quotas under which partition 0 is throttled; there is no limit yet."""
    quotas = ReplicationQuotas(
        BrokerConfig(), broker.clock, 1, lambda _: {"leader.replication.throttled.replicas": "0:1"}
    )
    broker.manager.leader_quota = quotas.leader
    return quotas


@pytest.fixture
def partition(broker):
    """A partition with one record; follower 3 is not in its ISR."""
    partition = broker.lead(isr=(1, IN_SYNC))
    broker.produce(acks=1)
    return partition


def limit(quotas, rate):
    quotas.reconfigure({"leader.replication.throttled.rate": str(rate)})


def exceed(quotas, rate=1_000, value=2_000):
    """Let the quota be exceeded for two seconds."""
    limit(quotas, rate)
    quotas.leader.record(value)


def fetch(broker, replica_id=LAGGING, *numbers, **options):
    return broker.fetch(*numbers, replica_id=replica_id, isolation=FetchIsolation.LOG_END, **options)


def test_follower_outside_the_isr_gets_no_records_but_the_offsets(broker, partition, quotas):
    exceed(quotas)
    (result,) = fetch(broker, max_wait_ms=0)
    assert (result[0].size_bytes, list(result[0].records)) == (0, [])
    assert (result[0].error_code, result[0].high_watermark) == (0, 0)


def test_follower_in_the_isr_and_consumers_are_served(broker, partition, quotas):
    exceed(quotas)
    (result,) = fetch(broker, IN_SYNC, max_wait_ms=0)
    assert result[0].size_bytes
    (result,) = broker.fetch(isolation=FetchIsolation.LOG_END, max_wait_ms=0)
    assert result[0].size_bytes


def test_partition_that_is_not_throttled_is_served(broker, partition, quotas):
    broker.lead(1, isr=(1, IN_SYNC))
    broker.produce(1, acks=1)
    exceed(quotas)
    (result,) = fetch(broker, LAGGING, 0, 1, max_wait_ms=0)
    assert (result[0].size_bytes, result[1].size_bytes > 0) == (0, True)


def test_bytes_of_all_followers_count_and_those_of_consumers_do_not(broker, partition, quotas):
    (result,) = fetch(broker, IN_SYNC, max_wait_ms=0)
    limit(quotas, result[0].size_bytes + BESIDE_RECORDS)
    broker.fetch(isolation=FetchIsolation.LOG_END, max_wait_ms=0)
    assert not quotas.leader.is_quota_exceeded()
    limit(quotas, result[0].size_bytes + BESIDE_RECORDS - 1)
    assert quotas.leader.is_quota_exceeded()


def test_fetch_of_a_throttled_follower_waits_and_is_not_woken(broker, partition, quotas):
    exceed(quotas)
    waiting = fetch(broker, max_wait_ms=500)
    broker.produce(acks=1)
    assert not waiting
    broker.clock.advance_to(500)
    broker.purgatories.fetch.advance_clock(0)
    assert [result[0].size_bytes for result in waiting] == [0]


def test_fetch_that_waited_until_the_quota_was_met_gets_the_records(broker, partition, quotas):
    exceed(quotas)
    waiting = fetch(broker, max_wait_ms=2_000)
    broker.clock.advance_to(2_000)
    broker.purgatories.fetch.advance_clock(0)
    assert waiting[0][0].size_bytes


def test_other_partitions_wake_a_fetch_with_a_throttled_one(broker, partition, quotas):
    broker.lead(1, isr=(1, IN_SYNC))
    exceed(quotas)
    (_, waiting) = fetch(broker, LAGGING, 0, 1, max_wait_ms=0), fetch(broker, LAGGING, 0, 1)
    broker.produce(1, acks=1)
    assert (waiting[0][0].size_bytes, waiting[0][1].size_bytes > 0) == (0, True)


def test_records_on_older_segments_do_not_end_the_wait_of_a_throttled_follower(broker, quotas):
    broker.lead(isr=(1, IN_SYNC), segment_bytes=100)
    exceed(quotas)
    waiting = fetch(broker)
    for _ in range(3):
        broker.produce(acks=1)
    assert not waiting
