import pytest
from broker_sim_purgatory import DelayedOperationPurgatory, InlineExecutor, PendingOperation, SystemTimer, VirtualClock

from broker_sim.config import BrokerConfig
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.replica import Purgatories
from broker_sim.replica.purgatories import DelayedShareFetchGroupKey, DelayedShareFetchPartitionKey

KEY = TopicPartition("topic", 0)
TOPIC_ID = b"t" * 16


@pytest.fixture
def made():
    """The purge intervals by name, in the order in which the purgatories were made."""
    return {}


@pytest.fixture
def purgatories(made):
    clock = VirtualClock()

    def make(name, purge_interval):
        made[name] = purge_interval
        timer = SystemTimer(name, clock, InlineExecutor())
        return DelayedOperationPurgatory(name, timer, reaper_enabled=False)

    config = BrokerConfig.from_mapping(
        {
            "producer.purgatory.purge.interval.requests": "11",
            "fetch.purgatory.purge.interval.requests": "12",
            "delete.records.purgatory.purge.interval.requests": "13",
            "share.fetch.purgatory.purge.interval.requests": "14",
        }
    )
    return Purgatories(make, config)


def key_in(purgatory):
    """Return the key under which that purgatory's operations wait for the partition."""
    is_share_fetch = purgatory.name == "ShareFetch"
    return DelayedShareFetchPartitionKey(TOPIC_ID, 0) if is_share_fetch else KEY


def park(purgatory):
    operation = PendingOperation(60_000)
    purgatory.try_complete_else_watch(operation, [key_in(purgatory)])
    operation.ready = True
    return operation


def completed_by(purgatories, announce):
    """Return the names of the purgatories whose operations `announce` completes."""
    operations = {purgatory.name: park(purgatory) for purgatory in purgatories}
    announce(KEY, TOPIC_ID)
    return {name for name, operation in operations.items() if operation.is_completed()}


def test_purge_intervals_are_those_of_the_configuration(made, purgatories):
    assert made == {
        "Produce": 11, "Fetch": 12, "DeleteRecords": 13, "ElectLeader": 1000, "ShareFetch": 14,
    }  # fmt: skip


def test_progress_of_a_partition_completes_all_but_elections(purgatories):
    completed = completed_by(purgatories, purgatories.check_and_complete_all)
    assert completed == {"Produce", "Fetch", "DeleteRecords", "ShareFetch"}


def test_losing_leadership_completes_produces_and_fetches(purgatories):
    completed = completed_by(purgatories, purgatories.check_and_complete_not_leader)
    assert completed == {"Produce", "Fetch", "ShareFetch"}


def test_added_purgatory_belongs_to_the_broker_and_shuts_down_with_it(made, purgatories):
    rebalance = purgatories.named("Rebalance")
    assert list(purgatories)[-1] is rebalance
    assert made["Rebalance"] == 1000
    park(rebalance)
    assert rebalance.num_delayed() == 1
    purgatories.shutdown()
    assert [purgatory.num_delayed() for purgatory in purgatories] == [0] * 6


@pytest.mark.parametrize(
    ("name", "by_append", "by_high_watermark"),
    [("fetch", True, True), ("produce", False, True), ("delete_records", False, True)],
)
def test_append_may_complete_operations_of_its_partition(purgatories, name, by_append, by_high_watermark):
    assert purgatories.may_complete(KEY, hw_increased=True) is False
    getattr(purgatories, name).try_complete_else_watch(PendingOperation(1_000), [KEY])
    assert purgatories.may_complete(KEY, hw_increased=False) is by_append
    assert purgatories.may_complete(KEY, hw_increased=True) is by_high_watermark
    assert purgatories.may_complete(TopicPartition("topic", 1), hw_increased=True) is False


def test_any_new_high_watermark_may_complete_a_share_fetch(purgatories):
    park(purgatories.share_fetch)
    assert purgatories.may_complete(KEY, hw_increased=True) is True
    assert purgatories.may_complete(KEY, hw_increased=False) is False


def test_keys_of_share_fetches_read_as_in_kafka():
    text = "topicId=dHR0dHR0dHR0dHR0dHR0dA, partition=3"
    assert str(DelayedShareFetchPartitionKey(TOPIC_ID, 3)) == text
    assert str(DelayedShareFetchGroupKey("group", TOPIC_ID, 3)) == f"groupId=group, {text}"
