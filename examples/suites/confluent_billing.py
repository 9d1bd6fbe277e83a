"""A worker with confluent-kafka: each order becomes one bill, in the same transaction as its offset."""

import json

from confluent_kafka import Consumer, Producer


def place(servers, order, customer="someone", **options):
    """Send an order and return its partition and offset. Raises KafkaException if the broker rejects it."""
    producer = Producer({"bootstrap.servers": servers, "acks": "all", **options})
    told = []
    producer.produce("orders", json.dumps(order), customer, on_delivery=lambda *each: told.append(each))
    producer.flush(30)
    ((error, message),) = told
    if error is not None:
        raise RuntimeError(error.name())
    return message.partition(), message.offset()


class Worker:
    """Reads orders as a member of the group `billing`; a context manager."""

    def __init__(self, servers, name="worker"):
        self.consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": "billing",
                "client.id": name,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
            }
        )
        self.producer = Producer({"bootstrap.servers": servers, "transactional.id": name})

    def __enter__(self):
        self.producer.init_transactions(30)
        self.consumer.subscribe(["orders"])
        return self

    def __exit__(self, *_):
        self.consumer.close()

    def bill(self, timeout_s=30):
        """Bill the next order and return the bill; None if none comes in time, or the record is not an order."""
        message = self.consumer.poll(timeout_s)
        if message is None or message.error():
            return None
        self.producer.begin_transaction()
        bill = bill_of(message.value())
        topic = "refused" if bill is None else "bills"
        self.producer.produce(topic, message.value() if bill is None else json.dumps(bill), message.key())
        self.producer.send_offsets_to_transaction(
            self.consumer.position(self.consumer.assignment()), self.consumer.consumer_group_metadata()
        )
        self.producer.commit_transaction(30)
        return bill


def bill_of(order):
    """Return the amount to be paid, None for a record that is not an order."""
    try:
        asked = json.loads(order)
        return {"order": asked["id"], "total": asked["count"] * asked["price"]}
    except (ValueError, KeyError, TypeError):
        return None
