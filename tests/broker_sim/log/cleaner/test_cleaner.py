"""What stays of a log, and what goes."""

import pytest

from broker_sim.log.cleaner.batch_filter import OffsetMap
from broker_sim.log.cleaner.cleaner import Cleaner, LogCleaningAbortedError, group_segments_by_size
from broker_sim.protocol.compression import CompressionCodec
from broker_sim.protocol.records import Record, build_batch, iter_records

A, B, C = b"a", b"b", b"c"
DAY_MS = 86_400_000


def test_last_value_of_each_key_stays_at_its_offset(log):
    log.append((A, b"1"), (B, b"1"), (A, b"2"))
    log.append((C, b"1"))
    log.append((B, b"2"))
    log.roll()
    cleaner, first_dirty = log.clean()
    assert log.records == [(2, A, b"2"), (3, C, b"1"), (4, B, b"2")]
    assert first_dirty == 5
    assert (cleaner.stats.messages_read, cleaner.stats.messages_written) == (5, 3)
    assert cleaner.stats.bytes_written == log.log.size_bytes
    assert cleaner.stats.bytes_read > cleaner.stats.bytes_written


def test_active_segment_is_not_cleaned_and_its_keys_do_not_count(log):
    log.append((A, b"1"), (A, b"2"))
    log.roll()
    log.append((A, b"3"), (A, b"4"))
    log.clean()
    assert log.records == [(1, A, b"2"), (2, A, b"3"), (3, A, b"4")]


def test_fetch_from_a_removed_offset_begins_with_the_next(log):
    log.append((A, b"1"))
    log.append((A, b"2"))
    log.append((B, b"1"))
    log.roll()
    log.append((C, b"1"))
    log.clean()
    (batch,) = log.log.read(0, 1, min_one_message=True).records
    assert [record.offset for record in iter_records(batch)] == [1]
    assert log.log.log_start_offset == 0
    assert log.log.log_end_offset == 4


def test_batch_keeps_its_offsets_sequences_and_codec(log):
    records = [Record(b"%d" % number, A, 1_000_000 + number) for number in range(4)]
    batch = build_batch(
        [records[0], Record(b"x", B, 1_000_009), *records[1:]],
        codec=CompressionCodec.GZIP,
        producer_id=7,
        producer_epoch=3,
        base_sequence=10,
    )
    log.append_batch(batch)
    log.append((A, b"last"))
    log.roll()
    log.clean()
    header, kept = log.batches[0]
    assert (header.base_offset, header.last_offset) == (0, 4)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 3, 10)
    assert header.codec is CompressionCodec.GZIP
    assert header.max_timestamp == 1_000_009
    (record,) = iter_records(kept)
    assert record == Record(b"x", B, 1_000_009, 1)


def test_batch_of_which_everything_stays_is_as_it_was(log):
    log.append((A, b"1"), (B, b"1"))
    log.roll()
    before = log.batches[0][1]
    log.clean()
    assert log.batches[0][1] == before


def test_last_batch_of_the_cleaned_part_stays_empty(log):
    log.append((A, b"1"))
    log.append((B, None))
    log.roll()
    log.clean()
    log.clock.advance(DAY_MS)
    log.clean()
    (_, _), (last, _) = log.batches
    assert (last.base_offset, last.records_count, last.size_bytes) == (1, 0, 61)
    assert log.log.segments[0].end_offset == 2


# -- tombstones -----------------------------------------------------------------------------------


def test_tombstone_is_removed_after_delete_retention_ms(log):
    log.append((A, b"1"))
    log.append((A, None))
    log.append((B, b"1"))
    log.roll()
    log.clean()
    assert log.records == [(1, A, None), (2, B, b"1")]
    (tombstone, _) = log.batches[0]
    assert tombstone.delete_horizon_ms == log.clock.wall_clock_ms() + DAY_MS
    log.clock.advance(DAY_MS - 1)
    log.clean()
    assert log.records == [(1, A, None), (2, B, b"1")]
    log.clock.advance(1)
    log.clean()
    assert log.records == [(2, B, b"1")]


def test_delete_horizon_keeps_the_records_timestamps(log):
    batch = build_batch([Record(b"1", A, 500), Record(None, B, 700), Record(b"1", C, 600)])
    log.append_batch(batch)
    log.roll()
    log.clean()
    (header, kept) = log.batches[0]
    assert header.delete_horizon_ms == log.clock.wall_clock_ms() + DAY_MS
    assert [record.timestamp for record in iter_records(kept)] == [500, 700, 600]
    assert header.max_timestamp == 700


def test_horizon_is_set_once(log):
    log.append((A, None), (B, b"1"))
    log.roll()
    log.clean()
    horizon_ms = log.batches[0][0].delete_horizon_ms
    log.clock.advance(1000)
    log.append((B, b"2"))
    log.roll()
    log.clean(first_dirty_offset=2)
    assert log.records == [(0, A, None), (2, B, b"2")]
    assert log.batches[0][0].delete_horizon_ms == horizon_ms


# -- producers and transactions -------------------------------------------------------------------


def test_last_batch_of_a_known_producer_stays_empty(log):
    for sequence in range(3):
        log.append((A, b"%d" % sequence), producer_id=7, producer_epoch=0, base_sequence=sequence)
    log.append((A, b"last"))
    log.roll()
    log.clean()
    (of_producer, _), (last, _) = log.batches
    assert (of_producer.base_offset, of_producer.records_count) == (2, 0)
    assert (of_producer.producer_id, of_producer.last_sequence) == (7, 2)
    assert last.base_offset == 3
    log.log.producer_state.remove_expired_producers(log.clock.wall_clock_ms() + DAY_MS)
    log.clean()
    assert [header.base_offset for header, _ in log.batches] == [3]


def test_producer_is_known_again_from_a_cleaned_log(log):
    for sequence in range(3):
        log.append((A, b"1"), producer_id=7, producer_epoch=0, base_sequence=sequence)
    log.append((A, b"last"))
    log.roll()
    log.clean()
    log.log.producer_state.remove_snapshot(4)
    log.log.recover()
    assert log.log.producer_state.active_producers[7].last_sequence == 2


def test_records_of_aborted_transactions_go_and_do_not_hide_older_ones(log):
    log.append((A, b"before"))
    log.append_in_transaction(7, 0, (A, b"aborted"), (B, b"aborted"))
    log.end_transaction(7, commit=False)
    log.append_in_transaction(8, 0, (B, b"committed"))
    log.end_transaction(8, commit=True)
    log.append((C, b"last"))
    log.roll()
    log.clean()
    assert log.records == [(0, A, b"before"), (4, B, b"committed"), (6, C, b"last")]
    assert log.markers == {3: False, 5: False}


def test_marker_is_removed_after_its_records_and_its_horizon(log):
    log.append_in_transaction(7, 0, (A, b"aborted"))
    log.end_transaction(7, commit=False)
    log.append_in_transaction(7, 1, (A, b"committed"))
    log.end_transaction(7, commit=True)
    log.append((C, b"last"))
    log.roll()
    log.clean()
    assert log.log.aborted_transactions(0, 1000)
    assert log.markers == {1: False, 3: False}
    log.clean()  # no record of the aborted transaction is left: its marker gets a horizon
    assert not log.log.aborted_transactions(0, 1000)
    assert log.batches[0][0].delete_horizon_ms == log.clock.wall_clock_ms() + DAY_MS
    log.clock.advance(DAY_MS)
    log.clean()
    assert log.markers == {3: False}
    assert log.records == [(2, A, b"committed"), (4, C, b"last")]


def test_last_marker_of_a_producer_without_records_stays_as_a_header(log):
    log.append_in_transaction(7, 0, (A, b"aborted"))
    log.end_transaction(7, commit=False)
    log.roll()
    log.append((C, b"last"))
    log.roll()
    log.log.producer_state.active_producers[7].batch_metadata.clear()  # as after a restart
    for _ in range(2):
        log.clean()
    log.clock.advance(DAY_MS)
    log.clean()
    assert log.markers == {1: True}
    log.log.producer_state.remove_snapshot(2)
    log.log.producer_state.remove_snapshot(3)
    log.log.recover()
    assert log.log.producer_state.first_unstable_offset is None


def test_open_transaction_and_what_follows_is_not_cleaned(log):
    log.append((A, b"1"))
    log.append((A, b"2"))
    log.roll()
    log.append_in_transaction(7, 0, (A, b"open"))
    log.append((A, b"3"))
    log.roll()
    _, first_dirty = log.clean()
    assert first_dirty == 2
    assert [value for _, _, value in log.records] == [b"2", b"open", b"3"]


def test_follower_takes_over_a_cleaned_log(log, compacted):
    log.append_in_transaction(7, 0, (A, b"aborted"))
    log.end_transaction(7, commit=False)
    log.append((A, b"1"))
    log.append((A, b"2"))
    log.roll()
    log.clean()
    log.append((B, b"1"))
    follower = compacted()
    while follower.log.log_end_offset < log.log.log_end_offset:
        offset = follower.log.log_end_offset
        follower.log.append_as_follower(log.log.read(offset, 1 << 20).records)
    assert follower.records == log.records


# -- segments -------------------------------------------------------------------------------------


def test_small_segments_become_one(log):
    for number in range(4):
        log.append((b"%d" % number, b"v"))
        log.roll()
    assert len(log.log.segments) == 5
    log.clean()
    batches = [list(segment.batches_from(0)) for segment in log.log.segments]
    assert [len(found) for found in batches] == [4, 0]
    assert [segment.base_offset for segment in log.log.segments] == [0, 4]
    assert log.log.read(2, 1, min_one_message=True).records == [log.batches[2][1]]


def test_groups_have_at_most_the_size_of_a_segment(log):
    for _ in range(5):
        log.append((A, b"v"))
        log.roll()
    segments = log.log.segments[:-1]
    size = segments[0].size_bytes
    sizes = {
        limit: [len(group) for group in group_segments_by_size(segments, limit, 5)]
        for limit in (size - 1, size, 2 * size, 5 * size)
    }
    assert sizes == {size - 1: [1] * 5, size: [1] * 5, 2 * size: [2, 2, 1], 5 * size: [5]}


def test_memory_and_size_are_those_of_the_retained_records(log):
    for number in range(10):
        log.append((A, b"%d" % number * 100))
    log.roll()
    log.append((B, b"v"))
    before = log.log.memory.used_bytes
    log.clean()
    kept = sum(len(batch) for _, batch in log.batches)
    assert log.log.size_bytes == kept
    assert log.log.memory.used_bytes < before / 4


def test_full_offset_map_ends_the_cleaned_part(log):
    for key in (A, B, C):
        log.append((key, b"1"))
        log.append((key, b"2"))
    log.roll()
    _, first_dirty = log.clean(map_bytes=24 * 2)
    assert first_dirty == 3
    assert [offset for offset, _, _ in log.records] == [1, 2, 3, 4, 5]
    _, first_dirty = log.clean(first_dirty, map_bytes=24 * 2)
    assert first_dirty == 5
    assert [offset for offset, _, _ in log.records] == [1, 3, 4, 5]
    _, first_dirty = log.clean(first_dirty, map_bytes=24 * 2)
    assert first_dirty == 6
    assert [offset for offset, _, _ in log.records] == [1, 3, 5]


def test_deletion_of_segments_during_a_cleaning_aborts_it(log):
    log.append((A, b"1"))
    log.append((A, b"2"))
    log.roll()
    log.append((B, b"1"))
    work = Cleaner(log.to_clean(), OffsetMap(1000, 1.0)).clean()
    for _two_mapped_one_copied in range(3):
        next(work)
    log.log.delete_oldest_segments(1)
    with pytest.raises(LogCleaningAbortedError):
        list(work)
    assert log.records == [(2, B, b"1")]


def test_max_timestamp_is_found_after_cleaning(log):
    log.append_batch(build_batch([Record(b"1", A, 900)]))
    log.append_batch(build_batch([Record(b"2", A, 500), Record(b"1", B, 700)]))
    log.roll()
    assert log.log.fetch_offset_by_timestamp(-3)[:2] == (900, 0)
    log.clean()
    assert log.log.fetch_offset_by_timestamp(-3)[:2] == (700, 2)
    assert log.log.fetch_offset_by_timestamp(600)[:2] == (700, 2)
    assert log.log.fetch_offset_by_timestamp(0)[:2] == (500, 1)
    assert log.log.fetch_offset_by_timestamp(701) is None
