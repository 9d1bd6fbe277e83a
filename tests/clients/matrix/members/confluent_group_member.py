"""A member of a group by confluent-kafka; see ../groups/conftest.py for what it is told and what it tells."""

import sys

from confluent_consumer import subscribed
from telling import tell, when_told_to_leave

left = when_told_to_leave()
consumer = subscribed(*sys.argv[1:])
while not left.is_set():
    message = consumer.poll(0.1)
    if message is not None and message.error() is None:
        tell(event="record", partition=message.partition(), offset=message.offset())
        consumer.commit(message=message, asynchronous=False)
        tell(event="committed", partition=message.partition(), offset=message.offset() + 1)
consumer.close()
tell(event="left")
