"""confluent-kafka's consumer in a group, that tells its partitions."""

from confluent_kafka import Consumer
from telling import tell


def subscribed(servers, group, topic, session_ms, heartbeat_ms, strategy, **more):
    """Return a consumer that has subscribed."""
    configs = {
        "bootstrap.servers": servers,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "log_level": 0,
        **more,
    }
    if strategy == "consumer":
        configs["group.protocol"] = "consumer"
    else:
        configs |= {
            "session.timeout.ms": int(session_ms),
            "heartbeat.interval.ms": int(heartbeat_ms),
            "partition.assignment.strategy": strategy,
        }
    consumer = Consumer(configs)
    told = {"on_assign": "assigned", "on_revoke": "revoked", "on_lost": "revoked"}
    consumer.subscribe([topic], **{on: _tells(event) for on, event in told.items()})
    return consumer


def _tells(event):
    def tells(_consumer, partitions):
        tell(event=event, partitions=[one.partition for one in partitions])

    return tells
