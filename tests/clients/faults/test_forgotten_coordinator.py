"""librdkafka stands still when the group's coordinator was gone for a while (docs/recipes/transactions.md).

The soak of faults lets it pass: it restarts a broker. When a librdkafka that does better is used, this fails.
"""

import threading

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from broker_sim import Cluster

pytestmark = [pytest.mark.clients, pytest.mark.soak(part="faults")]

BROKERS = (1, 2, 3)
TIMEOUT_S = 60
CONFIGS = {
    "broker.session.timeout.ms": 1_000,
    "broker.heartbeat.interval.ms": 200,
    "group.initial.rebalance.delay.ms": 0,
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.num.partitions": 1,
}
GROUP = {
    "group.id": "billing",
    "auto.offset.reset": "earliest",
    "enable.auto.commit": False,
    "session.timeout.ms": 6_000,
}


class Billing:
    """Reads an order, writes a bill and commits both in one transaction."""

    def __init__(self, kafka):
        servers = {"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0}
        self.consumer = Consumer(servers | GROUP)
        self.consumer.subscribe(["orders"])
        self.producer = Producer(servers | {"transactional.id": "billing-1"})
        self.producer.init_transactions(TIMEOUT_S)

    def bill(self, timeout_s):
        (order,) = self.consumer.consume(1, TIMEOUT_S)
        self.producer.begin_transaction()
        self.producer.produce("bills", order.value())
        offset = TopicPartition("orders", 0, order.offset() + 1)
        group = self.consumer.consumer_group_metadata()
        self.producer.send_offsets_to_transaction([offset], group, timeout_s)
        self.producer.commit_transaction(TIMEOUT_S)


def test_librdkafka_waits_for_a_handle_that_it_has_thrown_away():
    with Cluster(3, topics=["orders:1:3", "bills:1:3"], configs=CONFIGS) as kafka:
        kafka.produce("orders", "1")
        billing = Billing(kafka)
        coordinator = kafka.leader("__consumer_offsets")
        elsewhere = next(broker for broker in BROKERS if broker != coordinator)
        for topic in ("orders", "bills", "__transaction_state"):
            kafka.transfer_leadership(topic, 0, elsewhere)
        billing.bill(TIMEOUT_S)

        kafka.kill(coordinator)
        kafka.wait_for_isr("bills", lacks=coordinator)
        while coordinator in billing.producer.list_topics().brokers:
            billing.consumer.poll(0.1)
        kafka.start(coordinator)
        kafka.wait_until_in_sync()
        kafka.wait_for_group("billing")

        kafka.produce("orders", "2")
        kafka.keep_requests()
        second = threading.Thread(target=billing.bill, args=(1,), daemon=True)
        second.start()
        second.join(5)
        assert second.is_alive()  # although the call may take a second
        asked = kafka.requests(api="AddOffsetsToTxn")
        assert [request.errors for request in asked] == [()]
        assert not kafka.requests(api="TxnOffsetCommit")

        kafka.stop(elsewhere)
        kafka.start(elsewhere)
        second.join(TIMEOUT_S)
        assert not second.is_alive()
        assert kafka.requests(api="TxnOffsetCommit")
        billing.consumer.close()
