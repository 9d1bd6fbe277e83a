"""Random valid and invalid topologies, and random existing topics for them."""

from broker_sim.metadata import MetadataImage
from broker_sim.metadata.image import PartitionState, TopicState
from broker_sim.protocol import messages

Request = messages.StreamsGroupHeartbeatRequest

SOURCES = [f"source-{number}" for number in range(6)]
REPARTITIONS = [f"app-KSTREAM-{number}-repartition" for number in range(5)]
PARTITION = PartitionState((1,), (1,), 1, 0, 0)


def image_of(topics, rng=None):
    """Return an image with topics of these partition counts; topic ids are random with `rng`, else counted from 1."""
    states = {
        name: TopicState(
            name, number.to_bytes(16, "big") if rng is None else rng.randbytes(16), (PARTITION,) * partitions
        )
        for number, (name, partitions) in enumerate(topics.items(), 1)
    }
    return MetadataImage(1, "cluster", topics=states)


class RandomTopology:
    """A topology as of a real application; if `is_odd`, some parts of it may be invalid."""

    def __init__(self, rng):
        self.rng = rng
        self.is_odd = rng.random() < 0.15
        self.counts = {name: rng.choice([1, 2, 2, 4]) for name in SOURCES}
        ids = [str(number) for number in range(rng.choice([1, 2, 3, 4, 14]))]
        rng.shuffle(ids)
        if self.is_odd and rng.random() < 0.2:
            ids.append(ids[0])
        self.unread = rng.sample(REPARTITIONS, len(REPARTITIONS))
        self.request = Request(
            topology=Request.Topology(-1 if self._is_wrong() else 1, [self._subtopology(name) for name in ids])
        )
        if rng.random() < 0.85:
            self._write_what_is_read()

    def _write_what_is_read(self):
        """Give each repartition topic a subtopology that writes into it, and each subtopology a source."""
        subtopologies = self.request.topology.subtopologies
        written = {name for each in subtopologies for name in each.repartition_sink_topics}
        for each in subtopologies:
            if not each.source_topics and not each.repartition_source_topics:
                each.source_topics.append(self.rng.choice(SOURCES))
            for topic in each.repartition_source_topics:
                if topic.name not in written:
                    self.rng.choice(subtopologies).repartition_sink_topics.append(topic.name)

    def _is_wrong(self):
        return self.is_odd and self.rng.random() < 0.1

    def _subtopology(self, subtopology_id):
        rng = self.rng
        sources = rng.sample(SOURCES, rng.choice([0, 1, 1, 1, 2, 2, 3]))
        read = [self._repartition() for _ in range(rng.choice([0, 0, 1, 1, 2]))]
        read = [topic for topic in read if topic is not None]
        changelogs = [
            self._topic(f"app-store-{subtopology_id}-{number}-changelog", 0)
            for number in range(rng.choice([0, 0, 1, 2]))
        ]
        if self._is_wrong() and changelogs:
            changelogs.append(changelogs[0])
        return Request.Subtopology(
            subtopology_id=subtopology_id,
            source_topics=sources,
            state_changelog_topics=changelogs,
            repartition_sink_topics=rng.sample(REPARTITIONS, rng.choice([0, 1, 1, 2])),
            repartition_source_topics=read,
            copartition_groups=self._copartition_groups(len(sources), len(read)),
        )

    def _repartition(self):
        rng = self.rng
        name = rng.choice(REPARTITIONS)
        if rng.random() < 0.9:  # usually one subtopology reads a repartition topic
            if not self.unread:
                return None
            name = self.unread.pop()
        return self._topic(name, -3 if self._is_wrong() else rng.choice([0, 0, 0, 2, 3]))

    def _topic(self, name, partitions):
        rng = self.rng
        keys = rng.sample(["cleanup.policy", "segment.bytes", "retention.ms", "max.message.bytes"], 3)
        if self._is_wrong():
            keys.append(keys[0])
        configs = [Request.KeyValue(key, str(rng.randrange(9))) for key in keys]
        return Request.TopicInfo(name, partitions, rng.choice([0, 0, 1, -1]), configs)

    def _copartition_groups(self, sources, read):
        rng = self.rng
        if sources + read < 2 or rng.random() < 0.5:
            return []
        places = [place for place in range(sources) if rng.random() < 0.8]
        if self._is_wrong():
            places.append(sources)
        return [Request.CopartitionGroup(places, [], [place for place in range(read) if rng.random() < 0.8])]

    def topics(self, created=()):
        """Return the partition counts of most source topics and of a random share of the `created` topics."""
        rng = self.rng
        topics = {name: count for name, count in self.counts.items() if rng.random() < 0.97}
        share = rng.choice([0, 0.5, 1])
        for topic in created:
            if rng.random() < share:
                is_wrong = rng.random() < 0.05
                topics[topic.name] = topic.num_partitions + is_wrong
        return topics
