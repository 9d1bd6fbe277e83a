"""An image of three brokers, one of which is fenced, and two topics."""

import pytest

from broker_sim.config import Endpoint
from broker_sim.metadata import NO_LEADER, BrokerState, MetadataDelta, MetadataImage, PartitionState, TopicState

ID_A, ID_B = b"a" * 16, b"b" * 16


@pytest.fixture
def broker():
    """Return a broker factory; `fenced` and `epoch` are optional."""

    def make(broker_id, *, fenced=False, epoch=1, **fields):
        endpoints = (Endpoint("PLAINTEXT", "127.0.0.1", 9000 + broker_id),)
        return BrokerState(broker_id, endpoints, None, epoch=epoch, fenced=fenced, **fields)

    return make


@pytest.fixture
def partition():
    """Return a factory of partitions on brokers 1 and 2."""

    def make(leader=1, partition_epoch=0):
        return PartitionState((1, 2), (1, 2), leader, 0, partition_epoch)

    return make


@pytest.fixture
def image(broker, partition):
    delta = MetadataDelta(MetadataImage(0, "cluster"))
    delta.set_broker(broker(2))
    delta.set_broker(broker(1))
    delta.set_broker(broker(3, fenced=True))
    delta.set_topic(TopicState("a", ID_A, (partition(), partition(2)), {"retention.ms": "5"}))
    delta.set_topic(TopicState("b", ID_B, (partition(NO_LEADER),)))
    return delta.apply()
