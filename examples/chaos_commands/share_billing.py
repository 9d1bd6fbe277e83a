"""Bills orders with two workers of a share group; exit code 1 if an order is billed twice, or never.

    broker-sim chaos --seed 1 --duration 15 --topic orders:2:3 -- python share_billing.py

It has a common bug: it treats each delivery as a new order. A record is delivered again if its leader moves while it
is being processed, if its lock expires before that ends, and if its acknowledgement is lost. `--mended` checks whether
the order has been billed already.
"""

import os
import subprocess
import sys
import threading
from collections import Counter

from confluent_kafka import AcknowledgeType, Producer, ShareConsumer

ORDERS = 40
WORK_S = 0.5
LIMIT_S = 120
SERVERS = {"bootstrap.servers": os.environ["KAFKA_BOOTSTRAP_SERVERS"], "log_level": 0}
GROUP = {"group.id": "billing", "share.acknowledgement.mode": "explicit", "max.poll.records": 1}


class Billing:
    """The bills that the workers have written."""

    def __init__(self, *, looks: bool) -> None:
        self.bills: Counter[bytes] = Counter()
        self.all_billed = threading.Event()
        self.is_over = threading.Event()
        self._looks = looks
        self._lock = threading.Lock()

    def bill(self, order: bytes) -> None:
        """Process an order, and write its bill."""
        self.is_over.wait(WORK_S)
        with self._lock:
            if not (self._looks and self.bills[order]):
                self.bills[order] += 1
            if len(self.bills) == ORDERS:
                self.all_billed.set()

    def work(self) -> None:
        """Bill the orders that this worker receives."""
        with ShareConsumer(SERVERS | GROUP) as consumer:
            consumer.subscribe(["orders"])
            while not self.is_over.is_set():
                for order in consumer.poll(1):
                    if order.error() is None:
                        self.bill(order.value())
                        consumer.acknowledge(order, AcknowledgeType.ACCEPT)
                consumer.commit_sync()


def place_orders() -> None:
    """Send the orders one by one; the group reads all of them."""
    command = [sys.executable, "-m", "broker_sim", "ctl", "set-group-configs", "billing"]
    configs = ["--config", "share.auto.offset.reset=earliest"]
    subprocess.run([*command, *configs], check=True)  # noqa: S603 - a fixed command
    producer = Producer(SERVERS | {"enable.idempotence": True})
    for order in range(ORDERS):
        producer.produce("orders", str(order), partition=order % 2)
        producer.flush()


def main() -> None:
    """Place the orders, let both workers bill them, and check the bills."""
    billing = Billing(looks="--mended" in sys.argv)
    place_orders()
    workers = [threading.Thread(target=billing.work) for _ in range(2)]
    for worker in workers:
        worker.start()
    billing.all_billed.wait(LIMIT_S)
    billing.is_over.set()
    for worker in workers:
        worker.join()
    twice = sorted(int(order) for order, count in billing.bills.items() if count > 1)
    print(f"share group: {len(billing.bills)} of {ORDERS} orders billed, twice: {twice}")
    sys.exit(len(billing.bills) < ORDERS or bool(twice))


if __name__ == "__main__":
    main()
