"""A consumer with a subscription as a process: `member.py CLIENT SETTINGS`, both told by a test.

Every change of its assignment, what is revoked, and every value that it reads is a line of JSON on
stdout. Lines on stdin are commands: `commit`, `leave`.
"""

import asyncio
import json
import queue
import sys
import threading
import warnings
from contextlib import suppress

POLL_S = 0.02


def tell(event, **values):
    print(json.dumps({"event": event, **values}), flush=True)


class Commands:
    """What the test says, read by a thread because a pipe blocks."""

    def __init__(self):
        self._lines = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in sys.stdin:
            self._lines.put(line.strip())

    def next(self):
        return None if self._lines.empty() else self._lines.get()


class Watch:
    """Tells assignments when they change."""

    def __init__(self):
        self._told = None

    def see(self, partitions):
        now = sorted(partitions)
        if now != self._told:
            self._told = now
            tell("assignment", partitions=now)


def run_confluent_kafka(settings):
    _run_confluent_kafka(
        settings,
        {
            "session.timeout.ms": settings["session_ms"],
            "heartbeat.interval.ms": settings["heartbeat_ms"],
            "partition.assignment.strategy": settings["strategy"],
        },
    )


def run_confluent_kafka_of_the_consumer_protocol(settings):
    _run_confluent_kafka(settings, {"group.protocol": "consumer"})


def _run_confluent_kafka(settings, of_the_protocol):
    from confluent_kafka import Consumer

    consumer = Consumer(
        {
            "bootstrap.servers": settings["bootstrap_servers"],
            "group.id": settings["group"],
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "topic.metadata.refresh.interval.ms": 1_000,
            **of_the_protocol,
            **({"group.instance.id": settings["instance"]} if settings["instance"] else {}),
        }
    )

    def revoked(_, partitions):
        tell("revoked", partitions=sorted(each.partition for each in partitions))

    consumer.subscribe([settings["topic"]], on_revoke=revoked)
    commands, watch = Commands(), Watch()
    while True:
        message = consumer.poll(POLL_S)
        watch.see(each.partition for each in consumer.assignment())
        if message is not None and message.error() is None:
            tell("value", value=message.value().decode())
        command = commands.next()
        if command == "commit":
            consumer.commit(asynchronous=False)
            tell("committed")
        elif command == "leave":
            consumer.close()
            return


def run_kafka_python(settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        from kafka import ConsumerRebalanceListener, KafkaConsumer
        from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
        from kafka.coordinator.assignors.range import RangePartitionAssignor
    assignors = {"range": RangePartitionAssignor, "cooperative-sticky": CooperativeStickyAssignor}

    class Listener(ConsumerRebalanceListener):
        def on_partitions_revoked(self, revoked):
            tell("revoked", partitions=sorted(each.partition for each in revoked))

        def on_partitions_assigned(self, assigned):
            pass

    consumer = KafkaConsumer(
        bootstrap_servers=settings["bootstrap_servers"],
        group_id=settings["group"],
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=settings["session_ms"],
        heartbeat_interval_ms=settings["heartbeat_ms"],
        partition_assignment_strategy=[assignors[settings["strategy"]]],
        **({"group_instance_id": settings["instance"]} if settings["instance"] else {}),
    )
    # With 3.0.12, a leader that learns of the topic while it is joining neither joins nor heartbeats
    # again.
    consumer.partitions_for_topic(settings["topic"])
    consumer.subscribe([settings["topic"]], listener=Listener())
    commands, watch = Commands(), Watch()
    while True:
        polled = consumer.poll(timeout_ms=int(POLL_S * 1_000))
        watch.see(each.partition for each in consumer.assignment())
        for records in polled.values():
            for record in records:
                tell("value", value=record.value.decode())
        command = commands.next()
        if command == "commit":
            consumer.commit()
            tell("committed")
        elif command == "leave":
            consumer.close(autocommit=False)
            return


async def _run_aiokafka(settings):
    from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
    from aiokafka.coordinator.assignors.range import RangePartitionAssignor

    class Listener(ConsumerRebalanceListener):
        async def on_partitions_revoked(self, revoked):
            tell("revoked", partitions=sorted(each.partition for each in revoked))

        async def on_partitions_assigned(self, assigned):
            pass

    consumer = AIOKafkaConsumer(
        bootstrap_servers=settings["bootstrap_servers"],
        group_id=settings["group"],
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=settings["session_ms"],
        heartbeat_interval_ms=settings["heartbeat_ms"],
        partition_assignment_strategy=[RangePartitionAssignor],
        **({"group_instance_id": settings["instance"]} if settings["instance"] else {}),
    )
    consumer.subscribe([settings["topic"]], listener=Listener())
    await consumer.start()
    commands, watch = Commands(), Watch()
    while True:
        polled = await consumer.getmany(timeout_ms=int(POLL_S * 1_000))
        watch.see(each.partition for each in consumer.assignment())
        for records in polled.values():
            for record in records:
                tell("value", value=record.value.decode())
        command = commands.next()
        if command == "commit":
            await consumer.commit()
            tell("committed")
        elif command == "leave":
            # 0.14.0 leaves the group, then awaits the fetches that it cancels; one that sleeps after
            # an error raises this.
            with suppress(asyncio.CancelledError):
                await consumer.stop()
            return


def run_aiokafka(settings):
    asyncio.run(_run_aiokafka(settings))


if __name__ == "__main__":
    globals()[f"run_{sys.argv[1]}"](json.loads(sys.argv[2]))
