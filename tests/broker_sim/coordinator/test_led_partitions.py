"""Claims about the partitions that a coordinator leads: loaded before they are served, dropped at once."""

import pytest

from broker_sim.coordinator.led_partitions import LedPartitions
from broker_sim.errors import ApiError, ErrorCode
from broker_sim.metadata import MetadataImage, changes_between
from broker_sim.metadata.image import PartitionState, TopicState

TOPIC = "__some_state"
ME = 1


class Part:
    def __init__(self, partition, leader_epoch):
        self.partition = partition
        self.leader_epoch = leader_epoch


class Owner:
    """A coordinator that only tells what is asked of it, with callbacks that run when told to."""

    def __init__(self, keeps=True):
        self.told = []
        self.due = []
        self.keeps = keeps
        self.error = None
        self.partitions = LedPartitions(TOPIC, ME, self.call_later, self)

    def call_later(self, delay_ms, callback, *args):
        assert delay_ms == 0
        self.due.append((callback, args))

    def run(self):
        due, self.due = self.due, []
        for callback, args in due:
            callback(*args)

    def load(self, partition, leader_epoch):
        self.told.append(f"load {partition} in {leader_epoch}")
        if self.error is not None:
            raise self.error
        return Part(partition, leader_epoch)

    def loaded(self, part):
        assert self.partitions.get(part.partition) is part
        self.told.append(f"loaded {part.partition}")

    def reelected(self, part, leader_epoch):
        if self.keeps:
            part.leader_epoch = leader_epoch
        return self.keeps

    def unloaded(self, part):
        self.told.append(f"unloaded {part.partition}")


def error_of(partitions, partition):
    with pytest.raises(ApiError) as refused:
        partitions.get(partition)
    return refused.value.error_code


def test_partition_is_served_once_it_is_loaded():
    owner = Owner()
    assert error_of(owner.partitions, 3) is ErrorCode.NOT_COORDINATOR
    owner.partitions.elected(3, 7)
    assert error_of(owner.partitions, 3) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert owner.partitions.is_loading
    owner.run()
    assert owner.partitions.get(3).leader_epoch == 7
    assert not owner.partitions.is_loading
    owner.partitions.resigned(3)
    assert error_of(owner.partitions, 3) is ErrorCode.NOT_COORDINATOR
    assert owner.told == ["load 3 in 7", "loaded 3", "unloaded 3"]


def test_partition_lost_while_it_is_loaded_is_not_loaded():
    owner = Owner()
    owner.partitions.elected(3, 7)
    owner.partitions.resigned(3)
    owner.run()
    assert owner.told == []
    assert error_of(owner.partitions, 3) is ErrorCode.NOT_COORDINATOR


def test_partition_elected_twice_before_it_is_loaded_is_loaded_once():
    owner = Owner()
    owner.partitions.elected(3, 7)
    owner.partitions.elected(3, 8)
    owner.run()
    assert owner.told == ["load 3 in 8", "loaded 3"]


@pytest.mark.parametrize("epoch", [6, 7])
def test_epoch_that_is_known_changes_nothing(epoch):
    owner = Owner(keeps=False)
    owner.partitions.elected(3, 7)
    owner.run()
    owner.partitions.elected(3, epoch)
    assert owner.partitions.get(3).leader_epoch == 7


@pytest.mark.parametrize("keeps", [True, False])
def test_leader_that_stays_is_asked_whether_its_state_does(keeps):
    owner = Owner(keeps)
    owner.partitions.elected(3, 7)
    owner.run()
    owner.partitions.elected(3, 8)
    owner.run()
    assert owner.partitions.get(3).leader_epoch == 8
    again = [] if keeps else ["unloaded 3", "load 3 in 8", "loaded 3"]
    assert owner.told == ["load 3 in 7", "loaded 3", *again]


def test_partition_is_loaded_again_on_demand():
    owner = Owner()
    owner.partitions.elected(3, 7)
    owner.run()
    owner.partitions.reload(3)
    owner.partitions.reload(4)
    owner.run()
    assert owner.told == ["load 3 in 7", "loaded 3", "unloaded 3", "load 3 in 7", "loaded 3"]


@pytest.mark.parametrize(
    "error", [ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "offline"), ValueError("no record")]
)
def test_partition_that_cannot_be_loaded_is_failed_until_a_new_epoch(caplog, error):
    owner = Owner()
    owner.error = error
    owner.partitions.elected(3, 7)
    owner.run()
    assert not owner.partitions.is_loading
    assert error_of(owner.partitions, 3) is ErrorCode.NOT_COORDINATOR
    assert "coordinator_load_failed" in caplog.text
    assert str(error) in caplog.text
    owner.error = None
    owner.partitions.elected(3, 7)
    assert owner.due == []
    owner.partitions.elected(3, 8)
    owner.run()
    assert owner.told == ["load 3 in 7", "load 3 in 8", "loaded 3"]


def test_failed_partition_that_was_led_by_another_is_loaded_again():
    owner = Owner()
    owner.error = ValueError("no record")
    owner.partitions.elected(3, 7)
    owner.run()
    owner.error = None
    owner.partitions.resigned(3)
    owner.partitions.elected(3, 7)
    owner.run()
    assert owner.partitions.get(3).leader_epoch == 7


def image(version, leaders, name=TOPIC):
    parts = tuple(
        PartitionState((1, 2), (1, 2), leader, leader_epoch=version, partition_epoch=version)
        for leader in leaders
    )
    topics = {name: TopicState(name, b"t" * 16, parts)} if leaders else {}
    return MetadataImage(version, "c", topics=topics)


def test_roles_are_those_of_the_metadata():
    owner = Owner()
    first, second, third = image(1, [1, 2, 1]), image(2, [2, 1, 1]), image(3, [])
    owner.partitions.follow(changes_between(image(0, []), first), first)
    owner.run()
    assert [part.partition for part in owner.partitions.loaded()] == [0, 2]
    owner.partitions.follow(changes_between(first, second), second)
    owner.run()
    assert [part.partition for part in owner.partitions.loaded()] == [1, 2]
    owner.partitions.follow(changes_between(second, third), third)
    assert owner.partitions.loaded() == []


def test_other_topics_give_no_roles():
    owner = Owner()
    other = image(1, [1, 1], "other")
    owner.partitions.follow(changes_between(image(0, []), other), other)
    assert not owner.partitions.is_loading


def test_dead_broker_tells_nobody():
    owner = Owner()
    owner.partitions.elected(3, 7)
    owner.partitions.elected(4, 7)
    owner.run()
    owner.partitions.elected(5, 7)
    told = list(owner.told)
    assert [part.partition for part in owner.partitions.drop_all()] == [3, 4]
    owner.run()
    assert owner.told == told
    assert owner.partitions.loaded() == []


def test_partition_of_a_key_depends_on_how_many_the_topic_had_at_first():
    partitions = Owner().partitions
    before, seen = image(0, []), []
    for version, count in enumerate((0, 3, 4, 0, 4), 1):
        now = image(version, [1] * count)
        partitions.follow(changes_between(before, now), now)
        seen.append(partitions.partition_for("my-group", 50))
        before = now
    assert seen == [12, 0, 0, 12, 2]
