"""Kafka's pure parts of streams groups, for the tests that compare with them."""

from pathlib import Path

import pytest

from tests.broker_sim.group.kafka_peer import Peer, compiled_peer

SOURCE = Path(__file__).parent / "java" / "StreamsPeer.java"


@pytest.fixture(scope="session")
def streams_peer(tmp_path_factory):
    """Return the running peer."""
    with Peer(compiled_peer(SOURCE, tmp_path_factory.mktemp("classes"))) as peer:
        yield peer
