"""Tests of which partitions a response must include, as in Kafka's FetchSessionTest."""

import pytest

from broker_sim.errors import ErrorCode
from broker_sim.fetch_session import CachedPartition
from broker_sim.replica import FetchPartition, FetchPartitionData


def data(high_watermark=5, log_start_offset=0, size_bytes=0, **more):
    return FetchPartitionData(ErrorCode.NONE, high_watermark, high_watermark, log_start_offset, (), size_bytes, **more)


def respond(partition, data):
    """Return whether the response must include the data, and store it."""
    has_news = partition.has_news(data)
    partition.update_response_data(data)
    return has_news


@pytest.fixture
def cached():
    """Return a partition whose last response had high watermark 5 and log start offset 0."""
    partition = CachedPartition(("t", 0), "t", FetchPartition(fetch_offset=0, max_bytes=1))
    assert respond(partition, data())
    return partition


def test_unchanged_data_is_not_included(cached):
    assert not respond(cached, data())


@pytest.mark.parametrize("change", [{"high_watermark": 6}, {"log_start_offset": 1}])
def test_changed_offset_is_included_once(cached, change):
    assert respond(cached, data(**change))
    assert not respond(cached, data(**change))


@pytest.mark.parametrize("news", [{"size_bytes": 1}, {"preferred_read_replica": 2}, {"diverging_epoch": (0, 3)}])
def test_data_to_act_on_is_included_every_time(cached, news):
    assert respond(cached, data(**news))
    assert respond(cached, data(**news))
    assert not respond(cached, data())


def test_errors_and_the_offsets_after_them_are_included(cached):
    error = FetchPartitionData.failed(ErrorCode.OFFSET_OUT_OF_RANGE)
    assert respond(cached, error)
    assert respond(cached, error)
    assert respond(cached, data())
    assert not respond(cached, data())


def test_offsets_are_included_after_error_with_same_offsets(cached):
    error = data()
    error.error_code = ErrorCode.KAFKA_STORAGE_ERROR
    assert respond(cached, error)
    assert respond(cached, data())
