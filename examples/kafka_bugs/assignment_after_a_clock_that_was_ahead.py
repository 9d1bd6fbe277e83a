r"""A group's new members get no partition until the time is reached that its coordinator's clock once showed.

    python assignment_after_a_clock_that_was_ahead.py 127.0.0.1:9092,... 2 "docker compose stop kafka-{}"
    broker-sim chaos --schedule ahead.txt --config offsets.topic.num.partitions=9 -- sh -c \
        'python assignment_after_a_clock_that_was_ahead.py $KAFKA_BOOTSTRAP_SERVERS 2 "broker-sim ctl stop {}"'

Needs three brokers, the id of the one whose clock is an hour ahead, a command that stops the broker whose id replaces
{}, and confluent-kafka 2.12 or newer. Debian's package faketime sets the clock of one broker by its environment:

    LD_PRELOAD=/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1 FAKETIME=+3600s
    FAKETIME_DONT_FAKE_MONOTONIC=1 FAKETIME_FORCE_MONOTONIC_FIX=0  # otherwise Java's timed waits end at once

In the simulator a schedule does, ahead.txt:

    seed=0 brokers=3 workers=1 latency_ms=0 duration_ms=100000
    0 shift_clock broker-2 for=90000 value=3600000

Since KIP-1263 a coordinator computes no target assignment within `group.consumer.assignment.interval.ms` (1 s) of the
last one, whose time by the wall clock is in the group's records. If that clock was ahead, and is right again or another
broker is the coordinator now, a group that changes stays in state Assigning until that time. Chaos with correct workers
of Java found it at seed 10067. Seen on three nodes of Kafka 4.4.0 and 4.3.1 with confluent-kafka 2.16.1; 4.2.1, which
has no such interval, is right. The configuration `consumer.assignment.interval.ms=0` of such a group ends it at once.
"""

import subprocess
import sys
from uuid import uuid4

from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient, NewTopic

PARTITIONS = 4
GROUPS = 50
LIMIT_S = 60


def main(servers, ahead, stop):
    """Let a member join at the broker whose clock is ahead, stop this broker, and let a second member join."""
    topic = f"orders-{uuid4().hex[:8]}"
    common = {"bootstrap.servers": servers}
    admin = AdminClient(common)
    admin.create_topics([NewTopic(topic, PARTITIONS, 3)])[topic].result()

    def join(group):
        consumer = Consumer({**common, "group.id": group, "group.protocol": "consumer"})
        consumer.subscribe([topic])
        return consumer

    for number in range(GROUPS):
        group = f"{topic}-{number}"
        first = join(group)
        while not first.assignment():
            first.poll(0.2)
        if admin.describe_consumer_groups([group])[group].result().coordinator.id == int(ahead):
            break
        first.close()
    else:
        sys.exit(f"broker {ahead} is the coordinator of none of {GROUPS} groups")
    print(f"broker {ahead} is the coordinator of group {group} with one member, it is stopped", flush=True)
    subprocess.run(stop.format(ahead), shell=True, check=True, stdout=subprocess.DEVNULL)
    while int(ahead) in first.list_topics(timeout=LIMIT_S).brokers:
        first.poll(0.2)

    second = join(group)
    for _ in range(LIMIT_S * 5):
        if second.assignment():
            break
        first.poll(0.1)
        second.poll(0.1)
    counts = [len(consumer.assignment()) for consumer in (first, second)]
    if all(counts):
        print(f"it is right: the two members have {counts} of {PARTITIONS} partitions")
    else:
        print(f"WRONG: after {LIMIT_S} s the two members have {counts} of {PARTITIONS} partitions")


if __name__ == "__main__":
    main(*sys.argv[1:])
