"""Members of share groups by librdkafka and franz-go, on both sides; Kafka's own is ../../test_java_share_consumer.py.

A member is told the bootstrap servers, its group and a topic. It releases each third record when it comes the first
time, rejects each fifth and accepts all others, and tells each delivery as a line of JSON.
"""

from contextlib import closing

import pytest

PARTITIONS = 2
RECORDS = 40
DELIVERIES = {
    (partition, offset): [1, 2] if offset % 3 == 0 and offset % 5 != 0 else [1]
    for partition in range(PARTITIONS)
    for offset in range(RECORDS)
}
COUNT = sum(len(counts) for counts in DELIVERIES.values())


def deliveries(member):
    """Return how often each record was delivered, each time."""
    found = {}
    for event in member.events:
        if event["event"] == "record":
            place = event["partition"], event["offset"]
            found.setdefault(place, []).append(event["delivery"])
    return found


@pytest.mark.threads
@pytest.mark.parametrize("kind", ["confluent", "franz_go"])
def test_records_are_delivered_until_they_are_acknowledged(side, open_processes, alter_group, kind):
    topic, group = side.names()
    side.create_topic(topic, PARTITIONS)
    alter_group(side.bootstrap_servers, group, {"share.auto.offset.reset": "earliest"})
    side.produce(topic, PARTITIONS, RECORDS)
    with closing(open_processes()) as processes:

        def start():
            return processes.start(kind, "share", side.bootstrap_servers, group, topic)

        first = start()
        first.wait_until_read(COUNT)
        first.leave()
        assert deliveries(first) == DELIVERIES
        second = start()
        side.produce(topic, PARTITIONS, 1)
        second.wait_until_read(PARTITIONS)
        second.leave()
        assert min(offset for _, offset in second.records) == RECORDS, "nothing was left"
