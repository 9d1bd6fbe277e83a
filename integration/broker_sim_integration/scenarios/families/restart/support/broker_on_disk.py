"""A broker that leads partitions of its own, keeps them on disk, and whose files may be damaged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker_sim.errors import ApiError
from broker_sim.protocol.record_batch import parse_header, split_batches, verify_crc
from broker_sim.protocol.records import iter_records
from broker_sim_integration.broker_files import HasBrokerFiles
from broker_sim_integration.clients.broker_client import EARLIEST, LATEST, Append, batch_of
from broker_sim_integration.scenarios.families.transactions.support.transactions_under_test import QUICK_TRANSACTIONS
from broker_sim_integration.scenarios.helpers.observe import concluded

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim_integration.clients.broker_client import BrokerClient
    from broker_sim_integration.clients.raw_client import Reply
    from broker_sim_integration.clients.topics import Topic
    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.observations import Observation

ON_DISK: Final = QUICK_TRANSACTIONS | {
    "log.dir": "data",  # with this the simulator keeps its data on disk
    "log.initial.task.delay.ms": "3600000",
    "log.segment.delete.delay.ms": "1000",
    "broker.session.timeout.ms": "6000",
    "broker.heartbeat.interval.ms": "1000",
}
"""Data on disk on both sides. No checkpoint is written periodically: after a kill all are as old as the start."""
ALONE: Final = "1 partition x 1 replica, on the third broker"
ONE_BATCH_PER_SEGMENT: Final = "130"
"""A segment size in bytes that fits one small batch, but not two, so each append begins a new segment."""
REASON: Final = "a state, asked for when the broker serves"


def segment_file(base_offset: int, suffix: str = ".log") -> str:
    """Return the file name of a segment."""
    return f"{base_offset:020d}{suffix}"


class BrokerOnDisk:
    """The third broker, with topics that have no other replica."""

    def __init__(self, cluster: ClusterUnderTest) -> None:
        self._cluster = cluster
        self.broker = cluster.third
        # The shared modules have no such verbs: a change of them would invalidate all recordings.
        verbs = cluster.faults._verbs  # noqa: SLF001
        assert isinstance(verbs, HasBrokerFiles), "this cluster has no files"
        self._verbs: HasBrokerFiles = verbs

    @property
    def client(self) -> BrokerClient:
        """A connection to the broker, a new one after each restart."""
        return self._cluster.clients.ask(self.broker)

    # -- its topics -----------------------------------------------------------------------------

    def topic(self, *values: bytes, **configs: Any) -> Topic:
        """Create a topic on this broker alone, with one batch per value."""
        topic = self._cluster.topics.create([self.broker], settled=False, **configs)
        for value in values:
            self.append(topic, value)
        return topic

    def segmented_topic(self, *values: bytes, **configs: Any) -> Topic:
        """Create a topic in which each batch has a segment of its own."""
        return self.topic(*values, internal_segment_bytes=ONE_BATCH_PER_SEGMENT, **configs)

    def append(self, topic: Topic, *values: bytes, acks: int = -1, **header: int) -> Reply[Any]:
        """Append one batch; return the response."""
        append = Append(topic, 0, batch_of(values, **header))
        return self.client.start_produce(append, acks=acks).result()

    def state(self, step: str, topic: Topic) -> Observation:
        """Observe the start, end and batches of a topic's log, and the leader epoch of its last record."""
        found = [
            self.client.list_offset(topic, timestamp).message.topics[0].partitions[0]
            for timestamp in (EARLIEST, LATEST)
        ]
        start, end = found
        return concluded(
            step,
            REASON,
            errors=[each.error_code for each in found],
            start=start.offset,
            end=end.offset,
            epoch=end.leader_epoch,
            batches=contents(self.client, topic, start.offset, end.offset),
        )

    # -- its process ----------------------------------------------------------------------------

    def stop(self) -> None:
        """Stop the broker by a controlled shutdown."""
        self._cluster.faults.stop(self.broker)

    def kill(self) -> None:
        """Kill the broker."""
        self._cluster.faults.kill(self.broker)

    def start(self, *topics: Topic) -> None:
        """Start the broker, and wait until it leads these topics."""
        self._cluster.faults.start(self.broker)
        self._cluster.wait_until.serving(self.broker)
        for topic in topics:
            self._cluster.wait_until.leader(topic, self.broker)

    def comes_up(self) -> bool:
        """Return whether the broker starts; it is killed again if it does."""
        if not self._verbs.comes_up(self.broker):
            return False
        self._cluster.faults.kill(self.broker)
        return True

    # -- its files ------------------------------------------------------------------------------

    def names(self, topic: Topic | None = None) -> list[str]:
        """Return the file names of a topic's log, or those in the log directory."""
        directory = "" if topic is None else f"{topic.name}-0"
        return self._verbs.files.names(self.broker, directory)

    def read_file(self, path: str) -> bytes:
        """Return the content of a file in the log directory."""
        return self._verbs.files.read(self.broker, path)

    def write_file(self, path: str, content: bytes) -> None:
        """Create or replace a file in the log directory."""
        self._verbs.files.write(self.broker, path, content)

    def remove(self, path: str) -> None:
        """Remove a file from the log directory."""
        self._verbs.files.remove(self.broker, path)

    def change(self, path: str, change: Callable[[bytes], bytes]) -> None:
        """Replace a file's content by `change(content)`."""
        self.write_file(path, change(self.read_file(path)))

    def change_log(self, topic: Topic, change: Callable[[bytes], bytes], base_offset: int = 0) -> None:
        """Replace the batches of a segment by `change(batches)`."""
        self.change(f"{topic.name}-0/{segment_file(base_offset)}", change)

    def remove_of(self, topic: Topic, suffix: str) -> None:
        """Remove all files of a topic's log that end with `suffix`."""
        for name in self.names(topic):
            if name.endswith(suffix):
                self.remove(f"{topic.name}-0/{name}")


def contents(client: BrokerClient, topic: Topic, start: int, end: int) -> list[str]:
    """Return the base offset and values of each batch between the two offsets, up to the first error."""
    found: list[str] = []
    offset = start
    while offset < end:
        answer = client.fetch(topic, offset, max_wait_ms=0).message.responses[0].partitions[0]
        records: Any = answer.records or b""
        batches = split_batches(records)
        if not batches:
            return [*found, f"{offset} error {answer.error_code}"]
        for batch in batches:
            header = parse_header(batch)
            found.append(f"{header.base_offset} {_shown(batch)}")
            offset = header.base_offset + header.last_offset_delta + 1
    return found


def _shown(batch: Any) -> str:
    header = parse_header(batch)
    try:
        verify_crc(memoryview(batch), header)
    except ApiError:
        return "damaged"
    if header.is_control:
        return "marker"
    return ",".join((record.value or b"").decode() for record in iter_records(batch))
