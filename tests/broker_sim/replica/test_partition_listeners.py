"""Who is told that a broker leads a partition no more."""

import pytest

from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.replica.metadata_applier import PartitionListeners

KEY, OTHER = TopicPartition("topic", 0), TopicPartition("topic", 1)


@pytest.fixture
def told():
    return []


@pytest.fixture
def listeners(told):
    listeners = PartitionListeners()
    listeners.add(KEY, lambda: told.append("first"))
    listeners.add(KEY, lambda: told.append("second"))
    listeners.add(OTHER, lambda: told.append("other"))
    return listeners


def test_all_listeners_of_a_partition_hear_each_time_that_it_is_followed(listeners, told):
    listeners.became_follower(KEY)
    listeners.became_follower(KEY)
    assert told == ["first", "second"] * 2


def test_listeners_of_a_removed_partition_hear_once(listeners, told):
    listeners.removed(KEY)
    listeners.removed(KEY)
    listeners.became_follower(KEY)
    assert told == ["first", "second"]


def test_removed_listener_hears_nothing(told):
    listeners = PartitionListeners()

    def remove_itself():
        told.append("told")
        listeners.remove(KEY, remove_itself)

    listeners.add(KEY, remove_itself)
    listeners.became_follower(KEY)
    listeners.became_follower(KEY)
    listeners.remove(KEY, remove_itself)
    assert told == ["told"]
