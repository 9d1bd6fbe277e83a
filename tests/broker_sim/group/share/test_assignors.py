"""Tests of share assignments while members and partitions change; the test id has the seed."""

from random import Random

import pytest

from broker_sim.group.share.assignors import ShareGroupSpec, ShareMemberSpec, assign

SEEDS = 25
STEPS = 25
TOPIC_IDS = [Random(number).randbytes(16) for number in range(3)]


class Group:
    """A group that changes; its targets are those of the last assignment."""

    def __init__(self, rng, *, homogeneous):
        self.rng = rng
        self.homogeneous = homogeneous
        self.subscriptions = {}
        self.targets = {}
        self.partitions = dict.fromkeys(TOPIC_IDS, 1)
        self.topics = TOPIC_IDS[:2]

    def change(self):
        """Apply one random change."""
        rng = self.rng
        match rng.randrange(5):
            case 0 | 1:
                self.subscriptions[f"member-{rng.randrange(12)}"] = self._some_topics()
            case 2 if self.subscriptions:
                gone = rng.choice(sorted(self.subscriptions))
                del self.subscriptions[gone]
                self.targets.pop(gone, None)
            case 3:
                self.partitions[rng.choice(TOPIC_IDS)] += rng.randint(1, 3)
            case 4:
                self.topics = rng.sample(TOPIC_IDS, rng.randint(1, 3))
                if self.homogeneous:
                    self.subscriptions = dict.fromkeys(self.subscriptions, self.topics)

    def _some_topics(self):
        if self.homogeneous:
            return self.topics
        return self.rng.sample(TOPIC_IDS, self.rng.randint(1, 3))

    def assign(self):
        spec = ShareGroupSpec(
            {
                member: ShareMemberSpec(topics, self.targets.get(member, {}))
                for member, topics in self.subscriptions.items()
            },
            self.homogeneous,
            {topic_id: list(range(count)) for topic_id, count in self.partitions.items()},
        )
        self.targets = assign(spec)

    def owned(self):
        """Return the partitions of each member, of the topics that it subscribes to."""
        return {
            member: {
                (topic_id, number)
                for topic_id, numbers in self.targets.get(member, {}).items()
                for number in numbers
                if topic_id in topics
            }
            for member, topics in self.subscriptions.items()
        }

    def subscribed_partitions(self):
        """Return all partitions of subscribed topics."""
        topics = {topic_id for topics in self.subscriptions.values() for topic_id in topics}
        return {(topic_id, number) for topic_id in topics for number in range(self.partitions[topic_id])}


def run(seed, *, homogeneous):
    """Yield the group after each change and assignment."""
    group = Group(Random(seed), homogeneous=homogeneous)
    for _ in range(STEPS):
        group.change()
        group.assign()
        if group.subscriptions:
            yield group


@pytest.mark.parametrize("seed", range(SEEDS))
def test_partitions_are_balanced_over_members(seed):
    for group in run(seed, homogeneous=True):
        owned, subscribed_partitions = group.owned(), group.subscribed_partitions()
        assert set().union(*owned.values()) == subscribed_partitions
        sharing = -(-len(owned) // len(subscribed_partitions))
        counts = [len(partitions) for partitions in owned.values()]
        assert min(counts) >= 1 or len(owned) > sharing * len(subscribed_partitions)
        assert max(counts) <= -(-sharing * len(subscribed_partitions) // len(owned))
        for partition in subscribed_partitions:
            assert sum(partition in partitions for partitions in owned.values()) <= sharing


@pytest.mark.parametrize("seed", range(SEEDS))
def test_partitions_are_assigned_to_subscribers_only(seed):
    for group in run(seed, homogeneous=False):
        owned = group.owned()
        assert set().union(*owned.values()) == group.subscribed_partitions()
        for topic_id in TOPIC_IDS:
            subscribed = [m for m, topics in group.subscriptions.items() if topic_id in topics]
            counts = [len([p for p in owned[m] if p[0] == topic_id]) for m in subscribed]
            assert not counts or max(counts) - min(counts) <= 1


@pytest.mark.parametrize("homogeneous", [True, False])
def test_assignment_is_stable_without_changes(homogeneous):
    for seed in range(SEEDS):
        for group in run(seed, homogeneous=homogeneous):
            before = group.owned()
            group.assign()
            assert group.owned() == before
