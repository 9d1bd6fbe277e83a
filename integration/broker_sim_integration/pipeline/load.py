"""A mixed load of clients on a simulated cluster: the demonstration's source of events.

Small requests with acks=all and acks=1, long-polling consumers, deleted records; and for a while a follower is
paused, so that acks=all waits, times out, and succeeds when the ISR has shrunk.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from broker_sim.control.client import ControlClient
from broker_sim_integration.clients.stopwatch import now_ms, pause_ms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

TRACE_TOPIC: Final = "trace"
ORDERS: Final = "orders"
PAYMENTS: Final = "payments"
ASSIGNMENT: Final = [[1, 2, 3], [2, 1, 3], [1, 3, 2], [2, 3, 1]]
"""Brokers 1 and 2 lead all partitions, so that clients do not need broker 3, which is paused."""
PAUSED: Final = 3
STOP_TIMEOUT_S: Final = 20
ANSWER_TIMEOUT_S: Final = 30
BURST: Final = 400
PAUSE_MS: Final = 9_000
LAG_TIME_MS: Final = 5_000
REQUEST_TIMEOUT_MS: Final = 1_500
LOG_ERRORS: Final = 3


@dataclass(frozen=True, slots=True)
class RunningCluster:
    """The addresses of a cluster that runs in a process of its own."""

    bootstrap_servers: str
    control: str


@contextmanager
def running_cluster(trace: Path | None = None) -> Iterator[RunningCluster]:
    """Run `broker-sim run` with its trace in a topic and, with `trace`, also in a file."""
    command = [sys.executable, "-m", "broker_sim", "run", "--trace-topic", TRACE_TOPIC]
    command += ["--config", f"replica.lag.time.max.ms={LAG_TIME_MS}"]
    if trace is not None:
        command += ["--trace", str(trace)]
    process = subprocess.Popen(  # noqa: S603 - our own command
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}
    )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        if not line:
            raise RuntimeError(f"broker-sim ended with code {process.wait()} before it was ready")
        ready = json.loads(line)
        yield RunningCluster(ready["bootstrap_servers"], ready["control"])
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def traced_events(cluster: RunningCluster) -> int:
    """Return the number of events in the trace's topic."""
    consumer = _consumer(cluster)
    try:
        topic = consumer.list_topics(TRACE_TOPIC, ANSWER_TIMEOUT_S).topics[TRACE_TOPIC]
        ends = [
            consumer.get_watermark_offsets(TopicPartition(TRACE_TOPIC, number), ANSWER_TIMEOUT_S)
            for number in topic.partitions
        ]
        return sum(high for _, high in ends)
    finally:
        consumer.close()


def drive(cluster: RunningCluster, events: int, say: Callable[[str], None]) -> None:
    """Run the load until the trace has `events` events; after a third of them broker 3 is paused."""
    _create_topics(cluster)
    finished = threading.Event()
    reader = threading.Thread(target=_consume, args=(cluster, finished), name="consumer")
    reader.start()
    try:
        paused = False
        while (so_far := traced_events(cluster)) < events:
            if not paused and so_far > events // 3:
                paused = True
                say(f"{so_far} events; broker {PAUSED} is paused for {PAUSE_MS / 1000:g} s")
                _with_paused_follower(cluster)
            _burst(cluster)
            _delete_records(cluster)
        say(f"{so_far} events")
    finally:
        finished.set()
        reader.join()


def _create_topics(cluster: RunningCluster) -> None:
    admin = AdminClient(_client(cluster))
    topics = [
        NewTopic(ORDERS, len(ASSIGNMENT), replica_assignment=ASSIGNMENT),
        NewTopic(PAYMENTS, 2, replica_assignment=ASSIGNMENT[:2]),
    ]
    for future in admin.create_topics(topics).values():
        future.result(ANSWER_TIMEOUT_S)


def _client(cluster: RunningCluster) -> dict[str, Any]:
    return {"bootstrap.servers": cluster.bootstrap_servers, "log_level": LOG_ERRORS}


def _producer(cluster: RunningCluster, acks: str) -> Any:
    return Producer(
        {
            **_client(cluster),
            "client.id": f"producer-acks-{acks}",
            "acks": acks,
            "retries": 0,
            "linger.ms": 0,
            "batch.num.messages": 1,
            "request.timeout.ms": REQUEST_TIMEOUT_MS,
        }
    )


def _consumer(cluster: RunningCluster) -> Any:
    return Consumer(
        {
            **_client(cluster),
            "client.id": "consumer",
            "group.id": "load",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )


def _burst(cluster: RunningCluster) -> None:
    """Send small requests without waiting in between, most of them with acks=all."""
    for acks, topic, partitions in (("all", ORDERS, 4), ("all", PAYMENTS, 2), ("1", ORDERS, 4)):
        producer = _producer(cluster, acks)
        for number in range(BURST):
            producer.produce(topic, b"record %d" % number, partition=number % partitions)
            producer.poll(0)
        producer.flush(ANSWER_TIMEOUT_S)


def _with_paused_follower(cluster: RunningCluster) -> None:
    control = ControlClient(cluster.control)
    producers = [_producer(cluster, "all") for _ in range(8)]
    control.request("POST", f"/brokers/{PAUSED}/pause")
    ends_ms = now_ms() + PAUSE_MS
    while now_ms() < ends_ms:
        for number, producer in enumerate(producers):
            producer.produce(ORDERS, b"patience", partition=number % len(ASSIGNMENT))
            producer.poll(0)
        _delete_records(cluster, wait=False)
        pause_ms(100)
    control.request("POST", f"/brokers/{PAUSED}/resume")
    for producer in producers:
        producer.flush(ANSWER_TIMEOUT_S)


def _delete_records(cluster: RunningCluster, *, wait: bool = True) -> None:
    """Delete a partition's records below its high watermark; the request is parked until all replicas have."""
    admin = AdminClient(_client(cluster))
    futures = admin.delete_records([TopicPartition(PAYMENTS, 0, -1)], request_timeout=2.0, operation_timeout=1.0)
    if wait:
        for future in futures.values():
            future.exception(ANSWER_TIMEOUT_S)


def _consume(cluster: RunningCluster, finished: threading.Event) -> None:
    consumer = _consumer(cluster)
    consumer.assign([TopicPartition(ORDERS, number, 0) for number in range(len(ASSIGNMENT))])
    while not finished.is_set():
        consumer.consume(100, timeout=0.2)
    consumer.close()
