"""Groups of the consumer protocol, without a minimum interval between assignments."""

from pathlib import Path

import pytest

from tests.broker_sim.group.kafka_peer import compiled_peer

SOURCE = Path(__file__).parent / "java" / "GroupPeer.java"


@pytest.fixture
def bench(make_bench):
    return make_bench(group_consumer_assignment_interval_ms=0)


@pytest.fixture(scope="session")
def peer_command(tmp_path_factory):
    """Return the command that starts the group manager of Kafka 4.3."""
    from broker_sim_integration.reference.jars import KAFKA_VERSIONS

    return compiled_peer(SOURCE, tmp_path_factory.mktemp("classes"), version=KAFKA_VERSIONS["4.3"])
