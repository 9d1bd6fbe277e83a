import pytest

from broker_sim.errors import ErrorCode
from broker_sim.log import OffsetsOutOfOrderError, UnexpectedAppendOffsetError
from broker_sim.protocol.record_batch import rebase, split_batches


@pytest.fixture
def leader(new_log, batch):
    leader = new_log()
    for epoch, count in ((0, 2), (0, 1), (3, 4), (5, 1)):
        leader.append_as_leader(batch(count), epoch)
    return leader


@pytest.fixture
def follower(new_log):
    return new_log()


def content(log):
    return b"".join(log.read(log.log_start_offset, 1 << 30).records)


def batches_of(log):
    return list(split_batches(content(log)))


@pytest.mark.parametrize("as_one_buffer", [False, True])
def test_follower_keeps_the_offsets_and_epochs_of_the_leader(leader, follower, as_one_buffer):
    records = leader.read(0, 1 << 30).records
    info = follower.append_as_follower(memoryview(b"".join(records)) if as_one_buffer else records)
    assert (info.first_offset, info.last_offset) == (0, 7)
    assert info.valid_bytes == leader.size_bytes
    assert content(follower) == content(leader)
    assert follower.leader_epoch_cache.entries == ((0, 0), (3, 3), (5, 7))
    assert follower.high_watermark == 0


@pytest.mark.parametrize("log_directory", ["memory"], indirect=True)
def test_whole_batches_are_shared_with_the_leader(leader, follower):
    follower.append_as_follower(leader.read(0, 1 << 30).records)
    assert follower.read(0, 1 << 30).records[0] is leader.read(0, 1 << 30).records[0]


def test_incomplete_batch_at_the_end_is_left_out(leader, follower):
    size = leader.position(3)
    for extra in (0, 1, 11, 12, 40):
        log_end = follower.log_end_offset
        follower.append_as_follower(leader.read(log_end, size + extra).records)
        assert follower.log_end_offset == 3
        follower.truncate_to(0)


def test_append_without_one_whole_batch_changes_nothing(leader, follower):
    for records in (b"", (), leader.read(0, 20).records):
        info = follower.append_as_follower(records)
        assert (info.first_offset, info.last_offset, info.valid_bytes) == (-1, -1, 0)
    assert follower.log_end_offset == 0


def test_batches_newer_than_the_fetch_epoch_are_left_out(leader, follower):
    records = batches_of(leader)
    assert follower.append_as_follower(records, 4).last_offset == 6
    assert follower.append_as_follower(records[3:], 4).valid_bytes == 0
    assert follower.append_as_follower(records[3:], 5).last_offset == 7


def test_corrupt_batch_is_refused_with_the_whole_append(leader, follower, error_of):
    data = bytearray(content(leader))
    data[-1] ^= 1
    assert error_of(follower.append_as_follower, bytes(data)) is ErrorCode.CORRUPT_MESSAGE
    assert follower.log_end_offset == 0
    assert follower.leader_epoch_cache.entries == ()


def test_batch_before_the_log_end_is_unexpected(leader, follower):
    records = batches_of(leader)
    follower.append_as_follower(records)
    with pytest.raises(UnexpectedAppendOffsetError) as caught:
        follower.append_as_follower(records[1:])
    assert (caught.value.first_offset, caught.value.last_offset) == (2, 7)
    assert follower.log_end_offset == 8


def test_batches_must_be_in_order(follower, batch):
    data = memoryview(batch(2))
    with pytest.raises(OffsetsOutOfOrderError):
        follower.append_as_follower([rebase(data, 2, 0), rebase(data, 0, 0)])
    assert follower.log_end_offset == 0


def test_offset_gap_is_appended_as_after_compaction(follower, batch):
    data = memoryview(batch(2))
    follower.append_as_follower([rebase(data, 5, 0), rebase(data, 10, 0)])
    assert follower.log_end_offset == 12
    assert follower.read(0, 1 << 30).size_bytes == 2 * len(data)
    assert follower.read(8, 1 << 30).size_bytes == len(data)


def test_one_append_is_never_divided_between_segments(new_log, leader, error_of):
    size = leader.size_bytes
    follower = new_log(internal_segment_bytes=size)
    records = batches_of(leader)
    follower.append_as_follower(records[:1])
    follower.append_as_follower(records[1:])
    assert len(follower.segments) == 1
    other = new_log(internal_segment_bytes=size - 1)
    assert error_of(other.append_as_follower, records) is ErrorCode.RECORD_LIST_TOO_LARGE
    other.append_as_follower(records[:2])
    other.append_as_follower(records[2:])
    assert [s.base_offset for s in other.segments] == [0, 3]


def test_follower_ignores_max_message_bytes(new_log, leader):
    follower = new_log(max_message_bytes=1)
    assert follower.append_as_follower(leader.read(0, 1 << 30).records).last_offset == 7


def test_malformed_marker_is_refused_with_the_whole_append(follower, batch, error_of):
    good = batch(1)
    marker = batch(1, base_offset=1, producer_id=3, producer_epoch=0, is_control=True)
    assert error_of(follower.append_as_follower, good + marker) is ErrorCode.INVALID_RECORD
    assert follower.log_end_offset == 0
