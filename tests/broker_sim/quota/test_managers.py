"""Tests of clients' rates and token buckets, and of quota changes."""

import pytest
from broker_sim_purgatory import VirtualClock

from broker_sim.config import BrokerConfig
from broker_sim.errors import ApiError, ErrorCode
from broker_sim.quota import Client, QuotaManagers
from broker_sim.quota.controller_mutation import TokenBucket
from broker_sim.quota.rate import Window

CLIENT, OTHER = Client("u", "c"), Client("u", "other")
C, ANY_C = (("client-id", "c"),), (("client-id", None),)
PRODUCE, FETCH, REQUEST = "producer_byte_rate", "consumer_byte_rate", "request_percentage"
MUTATION = "controller_mutation_rate"


@pytest.fixture
def clock():
    return VirtualClock()


def managers_of(clock, quotas, configs=None):
    managers = QuotaManagers(BrokerConfig.from_mapping(configs or {}), clock)
    managers.update(quotas)
    return managers


def test_nothing_is_measured_without_quotas(clock):
    managers = managers_of(clock, {})
    assert not managers.is_enabled
    assert managers.produce.record_and_get_throttle_time_ms(CLIENT, 1e12) == 0
    assert managers.fetch.max_value_in_quota_window(CLIENT) is None
    managers.update({C: {PRODUCE: 1.0}})
    assert managers.is_enabled
    assert managers.produce.record_and_get_throttle_time_ms(CLIENT, 10) == 0
    managers.update({(("ip", None),): {"connection_creation_rate": 1.0}})
    assert not managers.is_enabled


def test_kinds_and_clients_do_not_mix(clock):
    managers = managers_of(clock, {ANY_C: {PRODUCE: 1.0}, C: {FETCH: 1.0}})
    assert managers.produce.record_and_get_throttle_time_ms(CLIENT, 11) == 1_000
    assert managers.produce.record_and_get_throttle_time_ms(OTHER, 1) == 0
    assert managers.fetch.record_and_get_throttle_time_ms(OTHER, 1_000) == 0
    assert managers.fetch.record_and_get_throttle_time_ms(CLIENT, 11) == 1_000
    assert managers.request.record_and_get_throttle_time_ms(CLIENT, 1_000) == 0


def test_changed_quota_applies_to_earlier_values(clock):
    managers = managers_of(clock, {C: {PRODUCE: 1.0}})
    managers.produce.record_and_get_throttle_time_ms(CLIENT, 20)
    managers.update({C: {PRODUCE: 2.0}})
    assert managers.produce.record_and_get_throttle_time_ms(CLIENT, 2) == 1_000
    managers.update({C: {FETCH: 2.0}})
    managers.update({C: {PRODUCE: 1.0}})
    assert managers.produce.record_and_get_throttle_time_ms(CLIENT, 0) == 12_000


def test_unrecorded_values_do_not_count(clock):
    fetch = managers_of(clock, {C: {FETCH: 1.0}}).fetch
    assert fetch.record_and_get_throttle_time_ms(CLIENT, 20) == 10_000
    fetch.unrecord(CLIENT, 20)
    assert fetch.record_and_get_throttle_time_ms(CLIENT, 10) == 0
    assert fetch.max_value_in_quota_window(CLIENT) == 10
    assert fetch.max_value_in_quota_window(OTHER) is None


def test_request_quota_throttles_for_at_most_one_sample(clock):
    configs = {"quota.window.size.seconds": "2", "quota.window.num": "3"}
    managers = managers_of(clock, {C: {REQUEST: 1.0, PRODUCE: 1.0}}, configs)
    assert managers.request.record_and_get_throttle_time_ms(CLIENT, 1_000) == 2_000
    assert managers.produce.record_and_get_throttle_time_ms(CLIENT, 8) == 4_000


def test_idle_clients_are_removed_after_an_hour(clock):
    produce = managers_of(clock, {ANY_C: {PRODUCE: 1.0}}).produce
    for number in range(10):
        produce.record_and_get_throttle_time_ms(Client("u", str(number)), 1)
    clock.advance_to(3_600_000)
    produce.record_and_get_throttle_time_ms(CLIENT, 1)
    assert len(produce._sensors) == 1


# -- changes of topics ------------------------------------------------------------------------------


def test_bucket_capacity_is_the_tokens_of_the_window():
    bucket = TokenBucket(Window(3, 1_000))
    assert bucket.measure(2, 50) == 6
    bucket.record(7, 2, 50)
    assert bucket.throttle_time_ms(2, 50) == 500
    assert bucket.throttle_time_ms(2, 550) == 0
    assert bucket.measure(2, 60_000) == 6


def test_strict_quota_rejects_while_bucket_is_empty(clock):
    """Kafka 4.3.1 at 1 per second: two requests of 8 partitions are accepted, the next waits for about 5 s."""
    manager = managers_of(clock, {C: {MUTATION: 1.0}}).controller_mutation
    for _ in range(2):
        quota = manager.quota_for(CLIENT, is_strict=True)
        quota.record(8)
        assert quota.throttle_time_ms == 0
    quota = manager.quota_for(CLIENT, is_strict=True)
    with pytest.raises(ApiError) as refused:
        quota.record(1)
    assert refused.value.error_code is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert refused.value.error_message is None
    assert quota.throttle_time_ms == 5_000
    clock.advance_to(2_000)
    assert quota.throttle_time_ms == 3_000
    clock.advance_to(5_000)
    manager.quota_for(CLIENT, is_strict=True).record(1)


def test_permissive_quota_accepts_all_and_returns_throttle_time(clock):
    manager = managers_of(clock, {C: {MUTATION: 0.5}}).controller_mutation
    quota = manager.quota_for(CLIENT, is_strict=False)
    quota.record(7)
    assert quota.throttle_time_ms == 3_000
    quota.record(1)
    assert quota.throttle_time_ms == 5_000
    other = manager.quota_for(OTHER, is_strict=True)
    other.record(1_000)
    assert other.throttle_time_ms == 0


def test_changes_without_quota_are_not_throttled(clock):
    quota = managers_of(clock, {}).controller_mutation.quota_for(CLIENT, is_strict=True)
    quota.record(1_000_000)
    assert quota.throttle_time_ms == 0
