"""Listeners that are called when a broker no longer leads a partition."""

import pytest

from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.replica.metadata_applier import PartitionListeners

KEY, OTHER = TopicPartition("topic", 0), TopicPartition("topic", 1)


@pytest.fixture
def calls():
    return []


@pytest.fixture
def listeners(calls):
    listeners = PartitionListeners()
    listeners.add(KEY, lambda: calls.append("first"))
    listeners.add(KEY, lambda: calls.append("second"))
    listeners.add(OTHER, lambda: calls.append("other"))
    return listeners


def test_all_listeners_are_called_each_time_the_broker_becomes_a_follower(listeners, calls):
    listeners.became_follower(KEY)
    listeners.became_follower(KEY)
    assert calls == ["first", "second"] * 2


def test_listeners_of_a_removed_partition_are_called_once(listeners, calls):
    listeners.removed(KEY)
    listeners.removed(KEY)
    listeners.became_follower(KEY)
    assert calls == ["first", "second"]


def test_removed_listener_is_not_called(calls):
    listeners = PartitionListeners()

    def remove_itself():
        calls.append("called")
        listeners.remove(KEY, remove_itself)

    listeners.add(KEY, remove_itself)
    listeners.became_follower(KEY)
    listeners.became_follower(KEY)
    listeners.remove(KEY, remove_itself)
    assert calls == ["called"]
