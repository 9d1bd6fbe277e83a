"""Claims about metadata images and the deltas that derive them."""

from dataclasses import FrozenInstanceError

import pytest

from broker_sim.metadata import (
    NO_LEADER,
    BrokerState,
    MetadataDelta,
    MetadataImage,
    PartitionState,
    TopicState,
    changes_between,
)
from broker_sim.metadata.topic_partition import TopicPartition

ID_A, ID_B = b"a" * 16, b"b" * 16


def broker(broker_id, *, fenced=False, epoch=1):
    return BrokerState(broker_id, "127.0.0.1", 9000 + broker_id, None, epoch, fenced)


def partition(leader=1, partition_epoch=0):
    return PartitionState((1, 2), (1, 2), leader, 0, partition_epoch)


@pytest.fixture
def image():
    delta = MetadataDelta(MetadataImage(0, "cluster"))
    delta.set_broker(broker(2))
    delta.set_broker(broker(1))
    delta.set_broker(broker(3, fenced=True))
    delta.set_topic(TopicState("a", ID_A, (partition(), partition(2)), {"retention.ms": "5"}))
    delta.set_topic(TopicState("b", ID_B, (partition(NO_LEADER),)))
    return delta.apply()


def test_looks_up_topics_by_id_and_partitions_by_name(image):
    assert image.topic_by_id(ID_B).name == "b"
    assert image.topic_by_id(bytes(16)) is None
    assert image.partition(TopicPartition("a", 1)).leader == 2
    for missing in (TopicPartition("a", 2), TopicPartition("a", -1), TopicPartition("x", 0)):
        assert image.partition(missing) is None


def test_alive_brokers_are_unfenced_and_in_order_of_id(image):
    assert [b.broker_id for b in image.alive_brokers()] == [1, 2]
    assert image.alive_broker(3) is None
    assert image.alive_broker(9) is None


def test_leader_of_is_none_without_leader_or_with_a_fenced_one(image):
    assert image.leader_of(TopicPartition("a", 0)).broker_id == 1
    assert image.leader_of(TopicPartition("b", 0)) is None
    delta = MetadataDelta(image)
    delta.set_broker(broker(1, fenced=True))
    assert delta.apply().leader_of(TopicPartition("a", 0)) is None


def test_a_broker_in_controlled_shutdown_is_alive_but_not_active():
    leaving = BrokerState(1, "h", 1, None, 1, fenced=False, in_controlled_shutdown=True)
    assert not leaving.is_active
    assert not broker(1, fenced=True).is_active
    assert broker(1).is_active


def test_images_do_not_change(image):
    with pytest.raises(FrozenInstanceError):
        image.version = 7
    delta = MetadataDelta(image)
    delta.set_partition("a", 0, partition(2, 1))
    delta.remove_topic("b")
    delta.set_broker(broker(1, epoch=9))
    after = delta.apply()
    assert image.topics["a"].partitions[0].leader == 1
    assert "b" in image.topics
    assert ID_B in image.topic_names
    assert image.brokers[1].epoch == 1
    assert (after.version, after.topics["a"].partitions[0].leader) == (image.version + 1, 2)
    assert after.topic_by_id(ID_B) is None


def test_a_delta_reads_its_own_writes_before_it_is_applied(image):
    delta = MetadataDelta(image)
    delta.set_partition("a", 1, partition(1, 5))
    delta.set_partition("a", 2, partition(2, 0))
    assert delta.partition("a", 1).partition_epoch == 5
    assert delta.partition("a", 3) is None
    assert len(delta.topic("a").partitions) == 3
    assert delta.topic_by_id(ID_A) == delta.topic("a")
    delta.remove_topic("a")
    assert not delta.has_topic("a")
    assert delta.partition("a", 1) is None


def test_an_empty_delta_gives_the_base_itself(image):
    assert MetadataDelta(image).apply() is image


def test_untouched_topics_and_dictionaries_are_shared(image):
    delta = MetadataDelta(image)
    delta.set_partition("a", 0, partition(2, 1))
    after = delta.apply()
    assert after.topics["b"] is image.topics["b"]
    assert after.topics["a"].partitions[1] is image.topics["a"].partitions[1]
    assert after.brokers is image.brokers


def test_configs_set_and_partitions_changed_in_one_delta_are_both_kept(image):
    delta = MetadataDelta(image)
    delta.set_partition("a", 0, partition(2, 1))
    delta.set_topic_configs("a", {"retention.ms": "6"})
    topic = delta.apply().topics["a"]
    assert (topic.configs, topic.partitions[0].leader) == ({"retention.ms": "6"}, 2)


def test_broker_configs_of_all_and_of_one_broker_are_kept_apart(image):
    delta = MetadataDelta(image)
    delta.set_broker_configs("", {"log.retention.ms": "1"})
    delta.set_broker_configs("2", {"log.retention.ms": "2"})
    after = delta.apply()
    assert after.dynamic_cluster_configs() == {"log.retention.ms": "1"}
    assert after.dynamic_broker_configs(2) == {"log.retention.ms": "2"}
    assert after.dynamic_broker_configs(1) == {}
    cleared = MetadataDelta(after)
    cleared.set_broker_configs("2", {})
    assert "2" not in cleared.apply().broker_configs


def test_changes_name_only_what_changed(image):
    delta = MetadataDelta(image)
    delta.set_partition("a", 1, partition(1, 1))
    changes = changes_between(image, delta.apply())
    assert [(tp, state.leader) for tp, _, state in changes.partitions] == [
        (TopicPartition("a", 1), 1)
    ]
    assert not changes.deleted_topics
    assert not changes.topics_with_new_configs
    assert not changes.brokers_changed
    assert not changes.broker_configs_changed


def test_changes_see_new_configs_without_partition_changes(image):
    delta = MetadataDelta(image)
    delta.set_topic_configs("b", {"cleanup.policy": "compact"})
    changes = changes_between(image, delta.apply())
    assert [topic.name for topic in changes.topics_with_new_configs] == ["b"]
    assert changes.partitions == ()


def test_a_topic_made_again_is_deleted_and_all_its_partitions_are_new(image):
    delta = MetadataDelta(image)
    delta.remove_topic("a")
    delta.set_topic(TopicState("a", b"c" * 16, (partition(), partition())))
    changes = changes_between(image, delta.apply())
    assert [topic.topic_id for topic in changes.deleted_topics] == [ID_A]
    assert [tp for tp, _, _ in changes.partitions] == [
        TopicPartition("a", 0),
        TopicPartition("a", 1),
    ]


def test_no_changes_between_an_image_and_itself(image):
    changes = changes_between(image, image)
    assert (changes.deleted_topics, changes.partitions, changes.brokers_changed) == ((), (), False)
