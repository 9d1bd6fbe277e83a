"""Producer ids that logs know are not given again when the metadata has lost who has them."""

import asyncio

import pytest
from broker_sim_purgatory import VirtualClock

from broker_sim import AsyncCluster
from broker_sim.cluster.nodes import data_directory
from broker_sim.cluster.nodes.data_directory import highest_producer_id
from broker_sim.config import TopicConfig
from broker_sim.log import LogManager
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol.records import build_batch
from broker_sim.transaction.metadata import TxnTransitMetadata
from broker_sim.transaction.records import record_of, serde, tombstone_of
from broker_sim.transaction.state import TransactionState, TransactionVersion

FIRST_ID_NOT_KNOWN = 5_001


@pytest.fixture
def logs():
    return LogManager(VirtualClock(wall_start_ms=1_000))


def append(logs, topic, batch):
    log = logs.get_or_create(TopicPartition(topic, 0), b"t" * 16, TopicConfig())
    log.append_as_follower([batch], 0)


def transaction(producer_id, next_producer_id=-1):
    return TxnTransitMetadata(
        state=TransactionState.EMPTY,
        producer_id=producer_id,
        previous_producer_id=-1,
        next_producer_id=next_producer_id,
        producer_epoch=0,
        timeout_ms=1_000,
        partitions={},
        start_ms=-1,
        last_update_ms=0,
        client_version=TransactionVersion.TV_2,
    )


def test_without_producers_there_is_no_id(logs):
    append(logs, "t", build_batch([b"a"]))
    assert highest_producer_id(logs) == -1


def test_highest_id_of_all_logs_counts(logs):
    for topic, producer_id in (("a", 7), ("b", 4_000), ("c", 12)):
        batch = build_batch([b"a"], producer_id=producer_id, producer_epoch=0, base_sequence=0)
        append(logs, topic, batch)
    assert highest_producer_id(logs) == 4_000


@pytest.mark.parametrize(("values", "highest"), [((9,), 9), ((9, 2_000), 2_000)])
def test_ids_of_transactions_count_before_they_have_written(logs, values, highest):
    records = [record_of("id", transaction(*values), TransactionVersion.TV_2), tombstone_of("id")]
    append(logs, "__transaction_state", build_batch([serde.encode_record(each, 0) for each in records]))
    assert highest_producer_id(logs) == highest


async def allocate(tmp_path, brokers=1):
    async with AsyncCluster(brokers, data_dir=tmp_path) as cluster:
        controller = cluster.nodes.controller
        epoch = controller.image.brokers[1].epoch
        return controller.allocate_producer_ids(1, epoch).first_producer_id


async def open_and_close(tmp_path, brokers=1):
    async with AsyncCluster(brokers, data_dir=tmp_path):
        pass


def lose_the_end(tmp_path):
    metadata = tmp_path / "controller.metadata"
    metadata.write_bytes(metadata.read_bytes()[:-5])


@pytest.fixture
def known_to_logs(monkeypatch):
    """Let the logs of every broker have an id that is not in the metadata."""
    monkeypatch.setattr(data_directory, "highest_producer_id", lambda _: FIRST_ID_NOT_KNOWN - 1)


@pytest.mark.parametrize(("how", "first_id"), [("killed", FIRST_ID_NOT_KNOWN), ("closed", 1_000)])
@pytest.mark.usefixtures("known_to_logs")
def test_ids_that_only_logs_know_are_not_given_again(tmp_path, how, first_id):
    assert asyncio.run(allocate(tmp_path)) == 0
    if how == "killed":
        lose_the_end(tmp_path)
    assert asyncio.run(allocate(tmp_path)) == first_id


@pytest.mark.usefixtures("known_to_logs")
def test_ids_that_only_logs_know_are_kept_by_a_start_that_gives_none(tmp_path):
    asyncio.run(open_and_close(tmp_path))
    lose_the_end(tmp_path)
    asyncio.run(open_and_close(tmp_path))
    assert asyncio.run(allocate(tmp_path)) == FIRST_ID_NOT_KNOWN


def test_ids_that_only_logs_of_an_absent_broker_know_are_not_given_again(tmp_path, monkeypatch):
    def highest(logs):
        return FIRST_ID_NOT_KNOWN - 1 if logs.directories[0].path.name == "broker-2" else -1

    monkeypatch.setattr(data_directory, "highest_producer_id", highest)
    asyncio.run(open_and_close(tmp_path, brokers=2))
    lose_the_end(tmp_path)
    asyncio.run(open_and_close(tmp_path, brokers=1))
    assert asyncio.run(allocate(tmp_path, brokers=2)) == FIRST_ID_NOT_KNOWN
