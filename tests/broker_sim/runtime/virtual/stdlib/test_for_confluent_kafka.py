"""Clients of librdkafka are refused in virtual time where they are made, and nowhere else."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import pytest
from confluent_kafka import cimpl

from broker_sim.runtime.virtual import EscapeError
from broker_sim.runtime.virtual.stdlib.kafka_clients import CONFLUENT_CLIENTS, _prepare_confluent_kafka

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
        run(lambda loop: main(make), hash_seed="any")
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
    assert text.startswith(f"confluent_kafka.{name}: librdkafka runs in real time")
    assert "use aiokafka here" in text
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
