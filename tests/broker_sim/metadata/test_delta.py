from dataclasses import replace

from broker_sim.metadata import MetadataDelta, TopicState, changes_between
from broker_sim.metadata.topic_partition import TopicPartition

ID_A, ID_B = b"a" * 16, b"b" * 16


def test_delta_does_not_change_its_base(image, broker, partition):
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


def test_delta_reads_its_own_writes(image, partition):
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


def test_empty_delta_returns_its_base(image):
    assert MetadataDelta(image).apply() is image


def test_unchanged_topics_and_brokers_are_shared(image, partition):
    delta = MetadataDelta(image)
    delta.set_partition("a", 0, partition(2, 1))
    after = delta.apply()
    assert after.topics["b"] is image.topics["b"]
    assert after.topics["a"].partitions[1] is image.topics["a"].partitions[1]
    assert after.brokers is image.brokers


def test_delta_keeps_both_new_configs_and_new_partitions_of_a_topic(image, partition):
    delta = MetadataDelta(image)
    delta.set_partition("a", 0, partition(2, 1))
    delta.set_topic_configs("a", {"retention.ms": "6"})
    topic = delta.apply().topics["a"]
    assert (topic.configs, topic.partitions[0].leader) == ({"retention.ms": "6"}, 2)


def test_configs_of_all_brokers_and_of_one_are_separate(image):
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


def test_changes_contain_only_changed_partitions(image, partition):
    delta = MetadataDelta(image)
    delta.set_partition("a", 1, partition(1, 1))
    changes = changes_between(image, delta.apply())
    assert [(tp, state.leader) for tp, _, state in changes.partitions] == [(TopicPartition("a", 1), 1)]
    assert not changes.deleted_topics
    assert not changes.topics_with_new_configs
    assert not changes.broker_configs_changed


def test_changes_contain_topics_with_new_configs(image):
    delta = MetadataDelta(image)
    delta.set_topic_configs("b", {"cleanup.policy": "compact"})
    changes = changes_between(image, delta.apply())
    assert [topic.name for topic in changes.topics_with_new_configs] == ["b"]
    assert changes.partitions == ()


def test_recreated_topic_is_deleted_and_all_its_partitions_are_new(image, partition):
    delta = MetadataDelta(image)
    delta.remove_topic("a")
    delta.set_topic(TopicState("a", b"c" * 16, (partition(), partition())))
    changes = changes_between(image, delta.apply())
    assert [topic.topic_id for topic in changes.deleted_topics] == [ID_A]
    assert [tp for tp, _, _ in changes.partitions] == [TopicPartition("a", 0), TopicPartition("a", 1)]


def test_image_has_no_changes_to_itself(image):
    changes = changes_between(image, image)
    assert (changes.deleted_topics, changes.partitions) == ((), ())


class _NotWalked(dict):
    def items(self):
        raise AssertionError("all topics are looked at")


def test_changes_of_one_topic_do_not_read_the_others(image, partition):
    delta = MetadataDelta(image)
    delta.set_topic(TopicState("new", b"c" * 16, (partition(),)))
    after = delta.apply()
    image, after = (replace(each, topics=_NotWalked(each.topics)) for each in (image, after))
    changes = changes_between(image, after)
    assert [tp for tp, _, _ in changes.partitions] == [TopicPartition("new", 0)]


def test_changes_of_skipped_versions_are_found(image, partition):
    first = MetadataDelta(image)
    first.set_partition("a", 0, partition(2, 1))
    second = MetadataDelta(first.apply())
    second.remove_topic("b")
    changes = changes_between(image, second.apply())
    assert [tp for tp, _, _ in changes.partitions] == [TopicPartition("a", 0)]
    assert [topic.name for topic in changes.deleted_topics] == ["b"]


def test_change_without_topics_has_no_written_topics(image, broker, partition):
    first = MetadataDelta(image)
    first.set_partition("a", 0, partition(2, 1))
    second = MetadataDelta(first.apply())
    second.set_broker(broker(1, epoch=9))
    assert second.apply().written_topics == frozenset()
