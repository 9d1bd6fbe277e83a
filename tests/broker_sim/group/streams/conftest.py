"""Fixtures of streams groups, and Kafka's own side-effect-free classes to compare them with."""

from pathlib import Path

import pytest

from tests.broker_sim.group.kafka_peer import Peer, compiled_peer
from tests.broker_sim.group.streams.members import Streams

SOURCE = Path(__file__).parent / "java" / "StreamsPeer.java"


@pytest.fixture(scope="session")
def streams_peer(tmp_path_factory):
    """Return the running peer of Kafka 4.3."""
    from broker_sim_integration.reference.jars import KAFKA_VERSIONS

    with Peer(compiled_peer(SOURCE, tmp_path_factory.mktemp("classes"), version=KAFKA_VERSIONS["4.3"])) as peer:
        yield peer


@pytest.fixture(scope="session")
def newest_streams_peer(tmp_path_factory):
    """Return the running peer of Kafka 4.4."""
    from tools.update_schemas import DEFAULT_VERSION

    source = SOURCE.with_name("NewestStreamsPeer.java")
    with Peer(compiled_peer(source, tmp_path_factory.mktemp("classes"), version=DEFAULT_VERSION)) as peer:
        yield peer


@pytest.fixture
def streams(make_bench):
    """Return streams groups of Kafka 4.3 without rebalance delay and assignment interval."""
    no_delays = {"group_streams_initial_rebalance_delay_ms": 0, "group_streams_assignment_interval_ms": 0}
    return Streams(make_bench(as_version="4.3", **no_delays))


@pytest.fixture
def make_newest(make_bench):
    """Return a factory of streams groups of Kafka 4.4 without rebalance delay and assignment interval."""
    no_delays = {"group_streams_initial_rebalance_delay_ms": 0, "group_streams_assignment_interval_ms": 0}
    return lambda **configs: Streams(make_bench(as_version="4.4", **{**no_delays, **configs}))


@pytest.fixture
def newest(make_newest):
    return make_newest()


@pytest.fixture
def make_streams(make_bench):
    return lambda **configs: Streams(make_bench(as_version="4.3", **configs))
