"""Claims about when a fetcher must be told of a partition, as FetchSessionTest makes them."""

import pytest

from broker_sim.errors import ErrorCode
from broker_sim.fetch_session import CachedPartition
from broker_sim.replica import FetchPartition, FetchPartitionData


def data(high_watermark=5, log_start_offset=0, size_bytes=0, **more):
    return FetchPartitionData(ErrorCode.NONE, high_watermark, high_watermark, log_start_offset, (), size_bytes, **more)


def tell(partition, data):
    """Return whether the data is news for the fetcher, and tell it."""
    has_news = partition.has_news(data)
    partition.update_response_data(data)
    return has_news


@pytest.fixture
def cached():
    """Return a partition whose fetcher knows of the high watermark 5 and the log start 0."""
    partition = CachedPartition(("t", 0), "t", FetchPartition(fetch_offset=0, max_bytes=1))
    assert tell(partition, data())
    return partition


def test_nothing_is_told_twice(cached):
    assert not tell(cached, data())


@pytest.mark.parametrize("change", [{"high_watermark": 6}, {"log_start_offset": 1}])
def test_offset_that_moved_is_told_once(cached, change):
    assert tell(cached, data(**change))
    assert not tell(cached, data(**change))


@pytest.mark.parametrize("news", [{"size_bytes": 1}, {"preferred_read_replica": 2}, {"diverging_epoch": (0, 3)}])
def test_what_the_fetcher_must_act_on_is_told_every_time(cached, news):
    assert tell(cached, data(**news))
    assert tell(cached, data(**news))
    assert not tell(cached, data())


def test_error_is_told_every_time_and_the_offsets_after_it(cached):
    error = FetchPartitionData.failed(ErrorCode.OFFSET_OUT_OF_RANGE)
    assert tell(cached, error)
    assert tell(cached, error)
    assert tell(cached, data())
    assert not tell(cached, data())


def test_offsets_are_told_after_an_error_that_had_the_same_ones(cached):
    error = data()
    error.error_code = ErrorCode.KAFKA_STORAGE_ERROR
    assert tell(cached, error)
    assert tell(cached, data())
