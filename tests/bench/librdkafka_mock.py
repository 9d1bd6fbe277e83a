"""librdkafka's mock cluster of three brokers in a process of its own, for the client benchmark.

Prints one JSON line when it listens, and serves until SIGTERM.
"""

import json
import signal
import sys

from confluent_kafka import Producer


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    producer = Producer({"test.mock.num.brokers": 3, "log_level": 0})
    brokers = producer.list_topics(timeout=10).brokers.values()
    servers = ",".join(f"{broker.host}:{broker.port}" for broker in brokers)
    print(json.dumps({"bootstrap_servers": servers}), flush=True)
    while True:
        signal.pause()


if __name__ == "__main__":
    main()
