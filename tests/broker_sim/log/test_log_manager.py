import pytest

from broker_sim.config import TopicConfig
from broker_sim.log import LogManager, MemoryAccount, ProducerStateManagerConfig
from broker_sim.metadata.topic_partition import TopicPartition

KEY = TopicPartition("topic", 0)
OLD_ID, NEW_ID = b"a" * 16, b"b" * 16


@pytest.fixture
def logs(clock, log_directory):
    return LogManager(
        clock, ProducerStateManagerConfig(1000), directories=() if log_directory is None else [log_directory]
    )


@pytest.fixture
def log(logs, batch):
    """The log of `KEY` with five records, all below the high watermark."""
    log = logs.get_or_create(KEY, OLD_ID, TopicConfig(retention_ms=10_000))
    log.append_as_leader(batch(5), 0)
    log.offsets.update_high_watermark(5)
    return log


def test_log_is_created_once(logs, log):
    assert logs.get_or_create(KEY, OLD_ID, TopicConfig()) is log
    assert logs.get(KEY, OLD_ID) is log


def test_log_of_an_older_topic_of_the_same_name_is_replaced(logs, log):
    assert logs.get(KEY, NEW_ID) is None
    assert logs.get_or_create(KEY, NEW_ID, TopicConfig()).log_end_offset == 0
    assert logs.get(KEY, OLD_ID) is None


def test_strays_are_the_logs_that_are_no_longer_hosted(logs, log):
    logs.get_or_create(TopicPartition("other", 0), NEW_ID, TopicConfig())
    logs.delete_strays(lambda _, topic_id: topic_id == OLD_ID)
    assert logs.get(KEY, OLD_ID) is log
    assert logs.get(TopicPartition("other", 0), NEW_ID) is None


@pytest.mark.parametrize("is_checkpointed", [True, False])
def test_deleted_records_stay_deleted_after_a_kill_if_checkpointed(logs, log, is_checkpointed):
    log.offsets.maybe_increment_log_start_offset(3)
    if is_checkpointed:
        logs.checkpoint_log_start_offsets()
    logs.recover()
    assert log.log_start_offset == (3 if is_checkpointed else 0)


def test_retention_holds_for_every_log(logs, log, clock):
    clock.advance(10_001)
    logs.delete_old_segments()
    assert log.log_start_offset == 5


def test_silent_producers_expire_in_every_log(logs, log, producer_batch, clock):
    log.append_as_leader(producer_batch(0), 0)
    clock.advance(999)
    logs.remove_expired_producers()
    assert 7 in log.producer_state.active_producers
    clock.advance(1)
    logs.remove_expired_producers()
    assert 7 not in log.producer_state.active_producers


def test_space_for_logs_in_memory_is_what_their_limit_leaves(clock, batch):
    memory = MemoryAccount(1_000)
    logs = LogManager(clock, memory=memory)
    assert logs.space("/memory") == (1_000, 1_000)
    logs.get_or_create(KEY, OLD_ID, TopicConfig()).append_as_leader(batch(5), 0)
    assert logs.space("/memory") == (1_000, 1_000 - memory.used_bytes)
    memory.limit_bytes = 10
    assert logs.space("/memory") == (10, 0)
