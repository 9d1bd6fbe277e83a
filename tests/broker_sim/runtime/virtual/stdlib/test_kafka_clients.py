"""Runs of aiokafka repeat, clients of confluent-kafka are refused; a module is prepared once, when it is imported."""

from __future__ import annotations

import asyncio
import importlib
import subprocess
import sys
from io import BytesIO
from types import SimpleNamespace

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.cluster import ClusterMetadata
from aiokafka.producer.message_accumulator import BatchBuilder, MessageBatch
from aiokafka.protocol.admin import ApiVersionResponse_v0
from aiokafka.record.memory_records import MemoryRecords
from aiokafka.structs import BrokerMetadata
from confluent_kafka import cimpl

from broker_sim.runtime.virtual import EscapeError
from broker_sim.runtime.virtual.stdlib.kafka_clients import (
    CONFLUENT_CLIENTS,
    _prepare_confluent_kafka,
    prepare_aiokafka,
    when_imported,
)

NAME = "a_module_of_this_test"


@pytest.fixture
def finders(monkeypatch, tmp_path):
    (tmp_path / f"{NAME}.py").write_text("value = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", sys.meta_path[:])
    yield sys.meta_path[:]
    sys.modules.pop(NAME, None)


def test_module_is_prepared_after_it_is_executed(finders):
    prepared = []
    when_imported(NAME, lambda module: prepared.append(module.value))
    when_imported(NAME, lambda module: prepared.append("twice"))
    assert prepared == []
    importlib.import_module(NAME)
    assert prepared == [1]
    assert sys.meta_path == finders


def test_module_that_is_there_is_prepared_at_once(finders):
    module = importlib.import_module(NAME)
    prepared = []
    when_imported(NAME, prepared.append)
    assert prepared == [module]
    assert sys.meta_path == finders


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
            ballast, batches = [], []
            for number in range(200):
                ballast.append([bytearray(size) for size in range(noise)])
                batches.append(MessageBatch(("topic", number), None, 1, 0))
            return [batch._tp[1] for batch in set(batches)]

        return run(main)

    assert order(0) == order(7) == order(100)


def test_program_without_aiokafka_is_left_alone(monkeypatch):
    monkeypatch.setitem(sys.modules, "aiokafka", None)
    prepare_aiokafka()


CONFIG = {"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "log_level": 0}
PROGRAM = """
import asyncio
from broker_sim.runtime.virtual import EscapeError, run
from broker_sim.runtime.virtual.stdlib import install
install()
import confluent_kafka, confluent_kafka.admin

async def main(make):
    await asyncio.sleep(3)
    make({"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "log_level": 0})

for make in (
    confluent_kafka.Producer, confluent_kafka.Consumer, confluent_kafka.SerializingProducer,
    confluent_kafka.DeserializingConsumer, confluent_kafka.admin.AdminClient,
):
    try:
        run(lambda loop: main(make))
    except EscapeError as error:
        print(str(error).partition(":")[0])
"""


def class_in_c(name):
    return getattr(cimpl, name).__mro__[-2]


@pytest.fixture
def prepared():
    module = SimpleNamespace(**{name: class_in_c(name) for name in CONFLUENT_CLIENTS})
    _prepare_confluent_kafka(module)
    _prepare_confluent_kafka(module)  # a second time it changes nothing
    return module


@pytest.mark.parametrize("name", CONFLUENT_CLIENTS)
def test_client_is_refused_with_the_line_that_makes_it(run, prepared, name):
    async def main():
        getattr(prepared, name)(CONFIG)

    with pytest.raises(EscapeError) as error:
        run(main)
    text = str(error.value)
    assert text.startswith(f"confluent_kafka.{name}: librdkafka cannot run on an event loop")
    assert 'write this test with "def"' in text
    assert f'File "{__file__}", line {main.__code__.co_firstlineno + 1}, in main' in text


@pytest.mark.parametrize("name", CONFLUENT_CLIENTS)
def test_client_outside_of_virtual_time_is_as_it_was(prepared, name):
    real = class_in_c(name)
    client = getattr(prepared, name)(CONFIG)
    assert isinstance(client, real)
    assert type(client).__mro__[1:] == real.__mro__
    assert (type(client).__name__, type(client).__module__) == (real.__name__, real.__module__)


def test_all_clients_of_the_library_are_refused():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == [
        f"confluent_kafka.{name}"
        for name in ("Producer", "Consumer", "SerializingProducer", "DeserializingConsumer", "AdminClient")
    ]
