"""A certificate that an admin client replaces, as a client on librdkafka sees it."""

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from broker_sim import Cluster
from broker_sim.security import Certificates

LISTENERS = {
    "listeners": "INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0",
    "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:SSL",
    "inter.broker.listener.name": "INSIDE",
}
PREFIX = "listener.name.outside.ssl.keystore."


def alter(cluster, values):
    entries = [
        ConfigEntry(PREFIX + name, value, incremental_operation=AlterConfigOpType.SET) for name, value in values.items()
    ]
    resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=entries)
    admin = AdminClient(cluster.client_config("confluent", listener="INSIDE"))
    admin.incremental_alter_configs([resource])[resource].result(30)


def delivered(producer):
    errors = []
    producer.produce("orders", b"x", on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(30) == 0
    return errors == [None]


def refuses_the_certificate(config):
    """Connect; returns whether that fails because of the broker's certificate, within half a minute."""
    errors = []
    producer = Producer(config | {"error_cb": errors.append, "log_level": 0})
    for _ in range(300):
        producer.poll(0.1)
        if any("certificate verify failed" in error.str() for error in errors):
            return True
    return False


def test_new_clients_need_the_new_authority_and_connected_ones_stay():
    others = Certificates()
    pair = others.for_hosts(["127.0.0.1"])
    with Cluster(1, configs=LISTENERS, topics=["orders"]) as kafka:
        config = kafka.client_config("confluent", listener="OUTSIDE")
        before = Producer(config)
        assert delivered(before)
        with pytest.raises(KafkaException, match="Invalid PEM keystore configs"):
            alter(kafka, {"type": "PEM", "certificate.chain": "x", "key": pair.key})
        alter(kafka, {"type": "PEM", "certificate.chain": pair.chain, "key": pair.key})
        assert delivered(before)
        assert refuses_the_certificate(config)
        assert delivered(Producer(config | {"ssl.ca.pem": others.authority}))
