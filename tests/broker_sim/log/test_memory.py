"""What logs keep in memory: counted as they grow and shrink, refused at the limit, freed early."""

import random

import pytest

from broker_sim.config import TopicConfig
from broker_sim.errors import ApiError, ErrorCode
from broker_sim.log import MemoryAccount, PartitionLog, ProducerStateManagerConfig
from broker_sim.log.log_manager import LogManager
from broker_sim.log.memory import BATCH_OVERHEAD_BYTES, RECLAIM_PERIOD_MS, RETURN_BYTES
from broker_sim.metadata.topic_partition import TopicPartition

KEY = TopicPartition("topic", 0)
TOPIC_ID = b"t" * 16


@pytest.fixture
def account(clock):
    return MemoryAccount(clock=clock)


@pytest.fixture
def open_log(account, clock):
    def make(topic_partition=KEY, **config):
        return PartitionLog(
            topic_partition, TopicConfig(**config), clock, memory=account.open_replica(topic_partition, TOPIC_ID)
        )

    return make


def append(log, batch, **options):
    """Append as the only replica: the high watermark follows."""
    log.append_as_leader(batch, 0, **options)
    log.offsets.update_high_watermark(log.log_end_offset)


def replicate(leader, follower):
    data = leader.read(follower.log_end_offset, 1 << 20)
    follower.append_as_follower(data.records, 0)
    follower.offsets.update_high_watermark(leader.high_watermark)


def kept_bytes(log):
    return sum(segment.memory_bytes for segment in log.segments)


def test_a_batch_counts_with_what_it_takes_beside_its_bytes(account, open_log, batch):
    log, one = open_log(), batch()
    append(log, one)
    append(log, one)
    assert account.used_bytes == 2 * (len(one) + BATCH_OVERHEAD_BYTES)


def test_replicas_of_a_partition_count_once_and_partitions_each(account, open_log, batch):
    leader, follower, other = open_log(), open_log(), open_log(TopicPartition("topic", 1))
    append(leader, batch())
    used = account.used_bytes
    replicate(leader, follower)
    assert account.used_bytes == used
    append(other, batch())
    assert account.used_bytes == 2 * used
    leader.memory.close()
    assert account.used_bytes == 2 * used
    follower.memory.close()
    assert account.used_bytes == used


def test_count_is_that_of_the_segments_after_any_change(account, open_log, batch, clock):
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    choose = random.Random(seed)
    log = open_log(segment_bytes=700, retention_bytes=1_500)
    for _ in range(600):
        action = choose.choice(["append"] * 6 + ["start", "checkpoint", "retention", "truncate"])
        if action == "append":
            append(log, batch(choose.randint(1, 5)))
        elif action == "start":
            log.offsets.maybe_increment_log_start_offset(choose.randint(log.log_start_offset, log.high_watermark))
        elif action == "checkpoint":
            log.offsets.checkpoint_log_start_offset()
        elif action == "retention":
            log.delete_old_segments()
        elif choose.random() < 0.2:
            log.truncate_fully_and_start_at(choose.randint(0, log.log_end_offset))
        else:
            # Below the log start too, as a follower does whose leader has less.
            log.truncate_to(choose.randint(log.segments[0].base_offset, log.log_end_offset))
        clock.advance(1)
        assert account.used_bytes == kept_bytes(log)


# -- the limit ------------------------------------------------------------------------------------


def test_clients_appends_beyond_the_limit_fail_and_change_nothing(account, open_log, batch, caplog):
    log, one = open_log(), batch()
    size = len(one) + BATCH_OVERHEAD_BYTES
    account.limit_bytes = size + len(one)
    append(log, one)  # leaves room for the batch's bytes, just so
    append(log, one)
    for _ in range(3):
        with pytest.raises(ApiError) as error:
            append(log, one)
        assert error.value.error_code is ErrorCode.KAFKA_STORAGE_ERROR
        assert "delete topics or records" in error.value.error_message
    assert (log.log_end_offset, account.used_bytes) == (2, 2 * size)
    (line,) = [each for each in caplog.messages if each.startswith("memory_limit_reached")]
    assert "remedy=" in line


def test_one_byte_too_much_is_refused(account, open_log, batch):
    log, one = open_log(), batch()
    account.limit_bytes = len(one) - 1
    with pytest.raises(ApiError):
        append(log, one)
    account.limit_bytes = len(one)
    append(log, one)


def test_followers_and_coordinators_append_at_the_limit(account, open_log, batch, producer_batch):
    leader, follower = open_log(), open_log()
    append(leader, batch())
    account.limit_bytes = 1
    replicate(leader, follower)
    append(leader, batch(), origin="coordinator")
    assert (follower.log_end_offset, leader.log_end_offset) == (1, 2)


def test_retry_of_a_record_that_is_in_the_log_is_answered_at_the_limit(account, open_log, producer_batch, is_retry):
    log, one = open_log(), producer_batch(0)
    append(log, one)
    account.limit_bytes = 1
    assert is_retry(log, one)


def test_reached_limit_is_logged_again_after_usage_fell_below_it(account, open_log, batch, caplog):
    log, one = open_log(segment_bytes=100), batch()
    account.limit_bytes = 3 * (len(one) + BATCH_OVERHEAD_BYTES)
    for _ in range(2):
        for _ in range(3):
            append(log, one)
        with pytest.raises(ApiError):
            append(log, one)
        log.truncate_fully_and_start_at(log.log_end_offset)
    told = [each for each in caplog.messages if each.startswith("memory_limit_reached")]
    assert len(told) == 2


def test_reclaiming_is_tried_once_a_second_and_may_make_room(clock, batch):
    calls = []

    def reclaim():
        calls.append(clock.now_ms())
        if len(calls) == 2:
            log.truncate_fully_and_start_at(log.log_end_offset)

    account = MemoryAccount(clock=clock, reclaim=reclaim)
    log = PartitionLog(KEY, TopicConfig(), clock, memory=account.open_replica(KEY, TOPIC_ID))
    one = batch()
    account.limit_bytes = len(one)
    append(log, one)
    for _ in range(5):
        with pytest.raises(ApiError):
            append(log, one)
    assert len(calls) == 1
    clock.advance(RECLAIM_PERIOD_MS - 1)
    with pytest.raises(ApiError):
        append(log, one)
    clock.advance(1)
    append(log, one)
    assert len(calls) == 2
    assert log.log_end_offset == 2


def test_owner_is_called_for_every_16_megabytes_freed(clock):
    heard = []
    account = MemoryAccount(clock=clock, on_freed=lambda: heard.append(account.used_bytes))
    account.grow(3 * RETURN_BYTES)
    account.grow(-RETURN_BYTES + 1)
    assert heard == []
    account.grow(-1)
    account.grow(-1)
    assert heard == [2 * RETURN_BYTES]


# -- what is freed, and when ----------------------------------------------------------------------


def test_records_below_the_log_start_are_freed_with_the_checkpoint(account, open_log, batch):
    log = open_log()
    for _ in range(4):
        append(log, batch())
    before = (account.used_bytes, log.size_bytes)
    log.offsets.maybe_increment_log_start_offset(3)
    assert account.used_bytes == before[0]
    log.offsets.checkpoint_log_start_offset()
    # Two of three: the batch with the largest timestamp, the first of its time, is one of them.
    assert account.used_bytes == before[0] - 3 * len(batch())
    assert log.size_bytes == before[1]
    assert b"".join(log.read(3, 1_000).records)
    assert log.fetch_offset_by_timestamp(-3).offset == 0


def test_freed_records_stay_deleted_after_a_kill(open_log, batch):
    log = open_log()
    for _ in range(4):
        append(log, batch())
    log.offsets.maybe_increment_log_start_offset(3)
    log.offsets.checkpoint_log_start_offset()
    log.recover()
    assert log.log_start_offset == 3
    assert log.read(3, 1_000, min_one_message=True).size_bytes == len(batch())


def test_newest_record_may_be_freed_and_its_successor_truncated(open_log, batch):
    log = open_log()
    append(log, batch(timestamp=5))
    append(log, batch(timestamp=4))
    append(log, batch(timestamp=9))
    log.offsets.maybe_increment_log_start_offset(2)
    log.offsets.checkpoint_log_start_offset()
    log.truncate_to(2)
    assert log.fetch_offset_by_timestamp(-3) is None


@pytest.mark.parametrize("tight", [False, True])
def test_deleted_records_are_freed_at_once_where_memory_is_tight(account, open_log, batch, tight):
    log = open_log()
    for _ in range(4):
        append(log, batch())
    used = account.used_bytes
    account.limit_bytes = used * 2 - tight
    log.offsets.maybe_increment_log_start_offset(4)
    assert (account.used_bytes < used) is tight


@pytest.mark.parametrize("tight", [False, True])
def test_retention_is_looked_at_with_a_new_segment_where_memory_is_tight(account, open_log, batch, tight):
    one = batch()
    log = open_log(segment_bytes=len(one), retention_bytes=2 * len(one))
    for _ in range(5):
        append(log, one)
    account.limit_bytes = account.used_bytes * 2 - tight
    append(log, one)
    # Of the five that were there two stay, and the new one.
    assert (log.log_start_offset, log.log_end_offset) == (3 * tight, 6)


def test_answer_has_the_log_start_after_that_retention(account, open_log, batch):
    one = batch()
    log = open_log(segment_bytes=len(one), retention_bytes=0)
    append(log, one)
    account.limit_bytes = account.used_bytes + len(one)
    info = log.append_as_leader(one, 0)
    assert info.log_start_offset == log.log_start_offset == 1


def test_deleted_and_replaced_logs_are_no_longer_counted(clock, batch):
    account = MemoryAccount(clock=clock)
    manager = LogManager(clock, ProducerStateManagerConfig(1_000), account)
    log = manager.get_or_create(KEY, TOPIC_ID, TopicConfig())
    append(log, batch())
    assert account.used_bytes
    manager.get_or_create(KEY, b"n" * 16, TopicConfig())
    assert account.used_bytes == 0
    append(manager.get_or_create(KEY, b"n" * 16, TopicConfig()), batch())
    manager.delete_strays(lambda *_: False)
    assert account.used_bytes == 0


def test_reclaim_frees_memory_that_the_next_checks_would_free(clock, batch):
    account, one = MemoryAccount(clock=clock), batch()
    manager = LogManager(clock, ProducerStateManagerConfig(1_000), account)
    log = manager.get_or_create(KEY, TOPIC_ID, TopicConfig(segment_bytes=len(one), retention_bytes=len(one)))
    for _ in range(3):
        append(log, one)
    manager.reclaim()
    assert log.log_start_offset == 2
    assert account.used_bytes == len(one) + BATCH_OVERHEAD_BYTES
