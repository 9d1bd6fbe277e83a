"""Programs of confluent-kafka are workers under chaos: a fault finds the bug, and only the bug."""

import shutil
import tempfile
import textwrap

import pytest

from broker_sim.chaos import Schedule, run_chaos

pytestmark = [
    pytest.mark.clients,
    pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler: apt-get install gcc libc6-dev"),
]
CRASH = Schedule.parse("seed=1 brokers=3 workers=2 latency_ms=0 duration_ms=9000\n5000 crash worker-2 for=2000")
PRODUCER = """
    import os
    from confluent_kafka import Producer
    producer = Producer({"bootstrap.servers": os.environ["KAFKA_BOOTSTRAP_SERVERS"], "acks": "all"})
    for number in range(20):
        producer.produce("orders", value=str(number), partition=number % 2)
    assert producer.flush(60) == 0
"""
WORKER = """
    import os, time
    from confluent_kafka import Consumer, KafkaException
    consumer = Consumer({
        "bootstrap.servers": os.environ["KAFKA_BOOTSTRAP_SERVERS"], "group.id": "shop", "auto.offset.reset": "earliest",
        "enable.auto.commit": False, "session.timeout.ms": 4000, "heartbeat.interval.ms": 1000})
    consumer.subscribe(["orders"])

    def deliver(message):
        time.sleep(0.5)
        with open(os.environ["DELIVERED"], "a") as file:
            file.write(message.value().decode() + "\\n")
        print("delivers", message.value().decode())

    def commit(message):
        try:
            consumer.commit(message, asynchronous=False)
        except KafkaException as error:
            print("refused:", error)

    steps = (commit, deliver) if os.environ["FIRST"] == "commit" else (deliver, commit)
    while True:
        message = consumer.poll(1.0)
        if message is not None and not message.error():
            for step in steps:
                step(message)
"""


def shop(first):
    """Return a test of workers that do this first: commit, or deliver."""

    async def test(chaos):
        await chaos.kafka.create_topic("orders", partitions=2, replication_factor=3)
        producer = chaos.kafka.start_program("python", "-c", textwrap.dedent(PRODUCER), name="producer")
        assert await producer.wait() == 0, producer.text
        with tempfile.NamedTemporaryFile("r") as delivered:
            env = {"DELIVERED": delivered.name, "FIRST": first}
            chaos.start(chaos.program("python", "-c", textwrap.dedent(WORKER), env=env), count=2)
            await chaos.faults_over()
            orders = set()

            def all_are_delivered():
                orders.update(delivered.read().split())
                return len(orders) == 20

            await chaos.eventually(all_are_delivered, "every order is delivered", within_s=30)

    return test


def test_worker_that_commits_first_loses_an_order_in_each_run():
    first, again = (run_chaos(shop("commit"), CRASH) for _ in range(2))
    assert first.invariant == "every order is delivered"
    assert again.digest == first.digest
    lines = [(moment.who, moment.what) for moment in first.moments]
    assert ("worker-2", "starts again") in lines
    assert any(who == "worker-1" and what.startswith("delivers") for who, what in lines)


def test_worker_that_commits_last_loses_none():
    assert run_chaos(shop("deliver"), CRASH).text == ""
