"""A member of a share group by confluent-kafka; see ../groups/test_share_members.py for what it is told and tells."""

import sys

from confluent_kafka import AcknowledgeType, ShareConsumer
from telling import tell, when_told_to_leave


def verdict(message):
    """Return what is said of a delivery."""
    if message.offset() % 5 == 0:
        return AcknowledgeType.REJECT
    if message.offset() % 3 == 0 and message.delivery_count() == 1:
        return AcknowledgeType.RELEASE
    return AcknowledgeType.ACCEPT


left = when_told_to_leave()
servers, group, topic = sys.argv[1:]
consumer = ShareConsumer(
    {"bootstrap.servers": servers, "group.id": group, "share.acknowledgement.mode": "explicit", "log_level": 0}
)
consumer.subscribe([topic])
while not left.is_set():
    for message in consumer.poll(0.1):
        assert message.error() is None, message.error()
        consumer.acknowledge(message, verdict(message))
        tell(event="record", partition=message.partition(), offset=message.offset(), delivery=message.delivery_count())
    for error in consumer.commit_sync().values():
        assert error is None, error
consumer.close()
tell(event="left")
