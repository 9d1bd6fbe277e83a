"""Reading from a replica in the consumer's rack (KIP-392), on a real Kafka and on the simulator.

No scenario, because here every broker has a configuration of its own.
"""

import os
from contextlib import ExitStack

import pytest
from broker_sim_integration.clients import admin
from broker_sim_integration.clients.broker_client import BrokerClient, Position
from broker_sim_integration.clients.session_fetches import FINAL_EPOCH, fetch_in_session
from broker_sim_integration.reference.clusters.waiting import wait_until
from broker_sim_integration.reference.errors import ReferenceUnavailableError
from broker_sim_integration.reference.progress import to_stderr
from broker_sim_integration.reference.selection import ReferenceKind, select_reference

from broker_sim import Cluster
from broker_sim.config import RACK_AWARE_SELECTOR

pytestmark = pytest.mark.soak(part="scenarios")

CONFIGS = {"replica.selector.class": RACK_AWARE_SELECTOR}
RACKS = {1: {"broker.rack": "a"}, 2: {"broker.rack": "b"}, 3: {"broker.rack": "c"}}
LEADER, FOLLOWERS = 1, (2, 3)
TIMEOUT_MS = 30_000


def seen_at(address_of):
    """Return what a consumer is answered: error, offsets, whether with records, the other replica."""
    with ExitStack() as stack:
        clients = {broker: stack.enter_context(BrokerClient(*address_of(broker))) for broker in RACKS}
        topic = admin.create_topic(clients[LEADER], "racks", [[LEADER, *FOLLOWERS]], {})
        wait_until_led(clients[LEADER], topic)
        clients[LEADER].produce(topic, b"1")
        wait_until_followers_know(clients, topic)
        return {
            (version, broker, rack_id, offset): answer(
                fetch_in_session(
                    clients[broker], Position(topic, offset=offset), epoch=FINAL_EPOCH, rack_id=rack_id, version=version
                )
            )
            for version in (10, 11, 17)
            for broker in RACKS
            for rack_id in ("", "a", "b", "c", "nowhere")
            for offset in (0, 1, 9)
        }


def wait_until_led(client, topic):
    wait_until(lambda: 0 in admin.describe_partitions(client, topic.name), "a leader", timeout_ms=TIMEOUT_MS)


def wait_until_followers_know(clients, topic):
    """Return when both followers know that the record is committed: with their next fetch."""

    def high_watermark(broker):
        reply = clients[broker].fetch(topic, max_wait_ms=500)
        return reply.message.responses[0].partitions[0].high_watermark

    for broker in FOLLOWERS:
        wait_until(lambda broker=broker: high_watermark(broker) == 1, "news", timeout_ms=TIMEOUT_MS)


def answer(reply):
    (topic,) = reply.message.responses
    (found,) = topic.partitions
    return (
        found.error_code,
        found.high_watermark,
        found.last_stable_offset,
        found.log_start_offset,
        len(bytes(found.records or b"")) > 0,
        found.preferred_read_replica,
    )


@pytest.mark.real_kafka
def test_consumers_of_a_rack_are_answered_as_by_kafka(require_or_skip):
    selection = select_reference(os.environ.get("REQUIRE_REAL_KAFKA") or "auto", make_image=False)
    if selection.kind in {ReferenceKind.RECORDED, ReferenceKind.BOOTSTRAP}:
        require_or_skip(selection.reason)
    with Cluster(3, configs=CONFIGS, broker_configs=RACKS) as cluster:
        simulated = seen_at(cluster.address)
    kafka = selection.cluster(CONFIGS, node_configs=RACKS, progress=to_stderr)
    try:
        kafka.open()
    except ReferenceUnavailableError as unavailable:
        require_or_skip(str(unavailable))
    with ExitStack() as stack:
        stack.callback(kafka.close)

        def address_of(broker):
            host, _, port = kafka.address(broker).rpartition(":")
            return host, int(port)

        real = seen_at(address_of)
    assert real[17, LEADER, "b", 0][-1] == 2
    assert simulated == real
