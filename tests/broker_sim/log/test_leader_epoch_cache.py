"""The claims of Kafka's `LeaderEpochFileCacheTest`, and the worked example of the module."""

from itertools import starmap

import pytest

from broker_sim.log import EpochEntry, LeaderEpochCache


@pytest.fixture
def cache():
    return LeaderEpochCache()


def filled(*entries):
    """Return a cache to which these epochs were assigned, each with its start offset."""
    cache = LeaderEpochCache()
    for epoch, start_offset in entries:
        cache.assign(epoch, start_offset)
    return cache


def entries(start_offsets):
    """Return what a cache with these start offsets, by epoch, has."""
    return tuple(starmap(EpochEntry, start_offsets.items()))


def test_empty_cache_knows_nothing(cache):
    assert cache.latest_epoch is None
    assert cache.earliest_entry is None
    assert cache.epoch_for_offset(0) is None
    assert cache.end_offset_for(0, 33) == (-1, -1)
    assert cache.entries == ()


def test_latest_epoch_ends_at_the_log_end():
    assert filled((2, 10)).end_offset_for(2, 33) == (2, 33)


def test_undefined_epoch_has_no_end():
    assert filled((2, 10)).end_offset_for(-1, 33) == (-1, -1)


def test_epoch_newer_than_all_has_no_end():
    assert filled((5, 9), (6, 10)).end_offset_for(7, 33) == (-1, -1)


def test_epoch_older_than_all_ends_at_the_first_start_offset():
    assert filled((5, 11), (6, 12), (7, 13)).end_offset_for(4, 33) == (4, 11)


def test_epoch_ends_where_the_next_one_starts():
    cache = filled((1, 0), (2, 1), (4, 3))
    assert cache.end_offset_for(1, 9) == (1, 1)
    assert cache.end_offset_for(2, 9) == (2, 3)


def test_unknown_epoch_between_known_ones_ends_as_the_one_below_it():
    assert filled((0, 10), (2, 13), (4, 17)).end_offset_for(3, 19) == (2, 17)


def test_example_of_the_module():
    assert filled((0, 0), (2, 100)).end_offset_for(1, 150) == (0, 100)


def test_same_epoch_later_in_the_log_does_not_move_its_start():
    cache = filled((2, 6), (2, 7), (2, 8))
    assert cache.entries == (EpochEntry(2, 6),)


def test_same_epoch_earlier_in_the_log_moves_its_start():
    assert filled((1, 5), (2, 9), (2, 7)).entries == entries({1: 5, 2: 7})


def test_older_epoch_truncates_the_newer_ones():
    assert filled((2, 6), (3, 7), (4, 12), (3, 10)).entries == entries({2: 6, 3: 10})


def test_newer_epoch_drops_entries_that_start_at_or_after_it():
    assert filled((1, 10), (2, 20), (3, 30), (4, 15)).entries == entries({1: 10, 4: 15})


def test_newer_epoch_at_the_same_start_replaces_the_empty_one():
    assert filled((1, 0), (2, 6), (3, 6)).entries == entries({1: 0, 3: 6})


@pytest.mark.parametrize("entry", [(-1, 0), (0, -1)])
def test_entries_below_zero_are_refused(cache, entry):
    with pytest.raises(ValueError, match="invalid partition leader epoch entry"):
        cache.assign(*entry)
    assert cache.entries == ()


@pytest.mark.parametrize(
    ("end_offset", "expected"),
    [
        (12, {2: 6, 3: 8, 4: 11}),
        (11, {2: 6, 3: 8}),
        (9, {2: 6, 3: 8}),
        (8, {2: 6}),
        (6, {}),
        (0, {}),
        (-1, {2: 6, 3: 8, 4: 11}),
    ],
)
def test_truncation_from_the_end_drops_epochs_that_start_at_or_after(end_offset, expected):
    cache = filled((2, 6), (3, 8), (4, 11))
    cache.truncate_from_end(end_offset)
    assert cache.entries == entries(expected)


@pytest.mark.parametrize(
    ("start_offset", "expected"),
    [
        (1, {2: 6, 3: 8, 4: 11}),
        (6, {2: 6, 3: 8, 4: 11}),
        (7, {2: 7, 3: 8, 4: 11}),
        (8, {3: 8, 4: 11}),
        (9, {3: 9, 4: 11}),
        (11, {4: 11}),
        (100, {4: 100}),
    ],
)
def test_truncation_from_the_start_keeps_the_epoch_around_it(start_offset, expected):
    cache = filled((2, 6), (3, 8), (4, 11))
    cache.truncate_from_start(start_offset)
    assert cache.entries == entries(expected)


@pytest.mark.parametrize(("offset", "epoch"), [(9, None), (10, 0), (12, 0), (13, 2), (16, 2), (17, 4), (99, 4)])
def test_epoch_of_an_offset_is_the_last_that_started(offset, epoch):
    assert filled((0, 10), (2, 13), (4, 17)).epoch_for_offset(offset) == epoch


def test_clear_forgets_everything():
    cache = filled((2, 6), (4, 8))
    cache.clear()
    assert cache.entries == ()
    cache.assign(1, 1)
    assert (cache.earliest_entry, cache.latest_epoch) == ((1, 1), 1)


def test_epoch_without_records_is_written_with_its_first_record():
    kept = []
    cache = LeaderEpochCache([EpochEntry(2, 6), EpochEntry(4, 11)], kept.append)
    cache.truncate_from_end(11)
    cache.begin(5, 11)
    cache.begin(6, 11)
    assert kept == []
    assert cache.entries == entries({2: 6, 6: 11})
    cache.assign(6, 11)
    cache.assign(6, 12)
    assert kept == [entries({2: 6, 6: 11})]


def test_truncation_is_kept_before_a_record_of_an_older_epoch():
    kept = []
    cache = LeaderEpochCache([EpochEntry(2, 6), EpochEntry(4, 11)], kept.append)
    cache.truncate_from_end(9)
    cache.assign(2, 9)
    assert kept == [entries({2: 6})]


def test_leader_that_begins_its_epoch_again_leaves_it_where_it_began():
    """As a restarted broker does with the metadata of before."""
    cache = filled((2, 6), (4, 11))
    cache.begin(4, 15)
    cache.begin(5, 15)
    assert cache.entries == entries({2: 6, 4: 11, 5: 15})
