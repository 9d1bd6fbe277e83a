from dataclasses import FrozenInstanceError

import pytest

from broker_sim.metadata import NO_TOPIC_ID
from broker_sim.metadata.topic_partition import TopicPartition

ID_B = b"b" * 16


def test_topics_are_found_by_id_and_partitions_by_name(image):
    assert image.topic_by_id(ID_B).name == "b"
    assert image.topic_by_id(NO_TOPIC_ID) is None
    assert image.partition(TopicPartition("a", 1)).leader == 2
    for missing in (TopicPartition("a", 2), TopicPartition("a", -1), TopicPartition("x", 0)):
        assert image.partition(missing) is None


def test_alive_brokers_are_unfenced_and_in_order_of_id(image):
    assert [b.broker_id for b in image.alive_brokers()] == [1, 2]
    assert image.alive_broker(3) is None
    assert image.alive_broker(9) is None


def test_only_unfenced_brokers_outside_a_controlled_shutdown_are_active(broker):
    assert broker(1).is_active
    assert not broker(1, fenced=True).is_active
    assert not broker(1, in_controlled_shutdown=True).is_active


def test_each_partition_yields_partitions_of_all_topics(image):
    named = [(str(key), state.leader) for key, state in image.each_partition()]
    assert named == [("a-0", 1), ("a-1", 2), ("b-0", -1)]


def test_image_is_immutable(image):
    with pytest.raises(FrozenInstanceError):
        image.version = 7
