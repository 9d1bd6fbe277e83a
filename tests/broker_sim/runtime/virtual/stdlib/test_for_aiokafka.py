"""Runs of aiokafka repeat: the time of records, names and orders."""

from __future__ import annotations

import asyncio
import sys
from io import BytesIO

from aiokafka import AIOKafkaProducer
from aiokafka.cluster import ClusterMetadata
from aiokafka.producer.message_accumulator import BatchBuilder, MessageBatch
from aiokafka.protocol.admin import ApiVersionResponse_v0
from aiokafka.record.memory_records import MemoryRecords
from aiokafka.structs import BrokerMetadata

from broker_sim.runtime.virtual.stdlib.kafka_clients import prepare_aiokafka


def timestamp_of_record(*, timestamp=None) -> int:
    builder = BatchBuilder(1_000, 0, is_transactional=False)
    builder.append(timestamp=timestamp, key=None, value=b"x")
    (record,) = MemoryRecords(bytes(builder._build())).next_batch()
    return record.timestamp


def test_records_have_virtual_times(run):
    """aiokafka's C extension reads the C library's clock, and the broker refuses real time."""

    async def main():
        await asyncio.sleep(5)
        return timestamp_of_record(), timestamp_of_record(timestamp=17)

    assert run(main) == (1_700_000_005_000, 17)
    assert timestamp_of_record() > 1_750_000_000_000


def test_clients_without_a_name_are_counted_anew_in_each_run(run):
    async def main():
        producer = AIOKafkaProducer(bootstrap_servers="127.0.0.1:1")
        producer._closed = True
        return producer.client._client_id

    assert run(main) == run(main) == "aiokafka-producer-1"


def test_brokers_are_in_the_order_of_their_ids(run):
    async def main():
        metadata = ClusterMetadata()
        metadata._brokers = {n: BrokerMetadata(n, "localhost", n, None) for n in (3, 1, 2)}
        return [broker.nodeId for broker in metadata.brokers()], len(metadata.brokers())

    assert run(main) == ([1, 2, 3], 3)
    assert isinstance(ClusterMetadata().brokers(), set)


def test_list_of_apis_is_decoded_once_and_each_connection_has_its_own(run):
    data = ApiVersionResponse_v0(0, [(18, 0, 4), (3, 0, 13)]).encode()

    async def main():
        first = ApiVersionResponse_v0.decode(BytesIO(data))
        first.api_versions.clear()
        other = ApiVersionResponse_v0(35, [(0, 3, 13)])
        return (ApiVersionResponse_v0.decode(data), ApiVersionResponse_v0.decode(other.encode()), other)

    again, decoded, other = run(main)
    assert (again.error_code, again.api_versions) == (0, [(18, 0, 4), (3, 0, 13)])
    assert decoded == other


def test_batches_that_fail_together_fail_in_the_same_order(run):
    """Their sender keeps them in a set."""

    def order(noise):
        async def main():
            kept, batches = [], []
            for number in range(200):
                kept.append([bytearray(size) for size in range(noise)])
                batches.append(MessageBatch(("topic", number), None, 1, 0))
            return [batch._tp[1] for batch in set(batches)]

        return run(main)

    assert order(0) == order(7) == order(100)


def test_program_without_aiokafka_is_left_alone(monkeypatch):
    monkeypatch.setitem(sys.modules, "aiokafka", None)
    prepare_aiokafka()
