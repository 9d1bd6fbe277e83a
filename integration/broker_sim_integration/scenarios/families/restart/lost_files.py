"""A broker's start with lost and damaged files other than batches. Kafka: LogLoader, CheckpointFile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker_sim_purgatory.clock import SystemClock

from broker_sim_integration.broker_verbs import Fault
from broker_sim_integration.observations import untimed
from broker_sim_integration.scenarios.families.restart.support.broker_on_disk import ALONE, ON_DISK, BrokerOnDisk
from broker_sim_integration.scenarios.families.transactions.support.transactions_under_test import TransactionsUnderTest
from broker_sim_integration.scenarios.helpers.observe import concluded, produced
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim_integration.clients.raw_client import Reply
    from broker_sim_integration.clients.topics import Topic
    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.observations import Observation

RESTARTED: Final = untimed("the first request after a start")
SUFFIXES: Final = (".index", ".timeindex", ".snapshot")
CHECKPOINTS: Final = (
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
    "log-start-offset-checkpoint",
    "cleaner-offset-checkpoint",
)
LEADER_EPOCHS: Final = "leader-epoch-checkpoint"
META_PROPERTIES: Final = "meta.properties"
DELETES_SOON: Final = ON_DISK | {"log.initial.task.delay.ms": "500"}
"""Like ON_DISK; files marked for deletion are deleted a second after the start."""


class _Producer:
    """An idempotent producer with a topic of its own; each batch is a second later than the previous one."""

    def __init__(self, cluster: ClusterUnderTest, node: BrokerOnDisk) -> None:
        self._node = node
        self._header = {"producer_id": cluster.clients.producer_id(), "producer_epoch": 0}
        # A producer without a batch for a day expires.
        self._begin_ms = SystemClock().wall_clock_ms() - 60_000
        self.topic = node.segmented_topic()
        self._sequence = 4
        for sequence in range(self._sequence):
            self.append(sequence)

    def append(self, sequence: int) -> Reply[Any]:
        """Append the batch with this sequence; return the response."""
        return self._node.append(
            self.topic,
            b"%d" % sequence,
            base_sequence=sequence,
            timestamp_ms=self._begin_ms + 1000 * sequence,
            **self._header,
        )

    def seen(self, step: str) -> Iterator[Observation]:
        """Observe the log, offsets by timestamp, and whether the producer can continue."""
        node, last = self._node, self._sequence
        yield node.state(step, self.topic)
        found = [
            node.client.list_offset(self.topic, self._begin_ms + ms).message.topics[0].partitions[0]
            for ms in (0, 1, 2000, 3001, 99_000)
        ]
        by_time = [[each.error_code, each.offset, max(-1, each.timestamp - self._begin_ms)] for each in found]
        yield concluded(f"{step}: by time", "a state", found=by_time)
        for name, sequence in (("retry", last - 1), ("gap", last + 1), ("next", last)):
            yield produced(f"{step}: {name}", self.append(sequence), RESTARTED)
        self._sequence = last + 1


@scenario(topology=ALONE, configs=ON_DISK, needs={Fault.STOP, Fault.KILL})
def lost_indexes_and_snapshots_are_built_again(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """After a shutdown and after a kill they are rebuilt from the batches."""
    node = BrokerOnDisk(cluster)
    producers = {suffix: _Producer(cluster, node) for suffix in SUFFIXES}
    for how, end in (("stopped", node.stop), ("killed", node.kill)):
        end()
        for suffix, producer in producers.items():
            node.remove_of(producer.topic, suffix)
        node.start(*(producer.topic for producer in producers.values()))
        for suffix, producer in producers.items():
            yield from producer.seen(f"{how} without {suffix}")


@scenario(topology=ALONE, configs=ON_DISK, needs={Fault.STOP, Fault.KILL})
def damaged_indexes_and_snapshots_are_built_again(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Files of a wrong size, or with wrong content."""
    node = BrokerOnDisk(cluster)
    producers = {suffix: _Producer(cluster, node) for suffix in SUFFIXES}
    for how, end in (("stopped", node.stop), ("killed", node.kill)):
        end()
        for suffix, producer in producers.items():
            for name in node.names(producer.topic):
                if name.endswith(suffix):
                    node.write_file(f"{producer.topic.name}-0/{name}", b"damaged")
        node.start(*(producer.topic for producer in producers.values()))
        for suffix, producer in producers.items():
            yield from producer.seen(f"{how} with damaged {suffix}")


@scenario(topology=ALONE, configs=ON_DISK, needs={Fault.KILL})
def a_lost_transaction_index_after_a_kill(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The aborted transactions of recovered segments are found in their batches."""
    node = BrokerOnDisk(cluster)
    transactions = TransactionsUnderTest(cluster)
    topic = node.segmented_topic(b"plain")
    for committed in (False, True):
        producer = transactions.producer()
        producer.produce(node.client, topic, b"committed" if committed else b"aborted")
        transactions.ended(producer, committed=committed)
    node.append(topic, b"after")
    node.kill()
    node.remove_of(topic, ".txnindex")
    node.start(topic)
    for offset in range(6):
        seen = transactions.read("read", node.client, topic, offset=offset)
        yield concluded(
            f"from {offset}",
            "a state, asked for when the broker serves",
            error=seen.error_code,
            high_watermark=seen.high_watermark,
            **seen.fields,
        )


def _checkpointed(node: BrokerOnDisk) -> Topic:
    """Return a topic whose log start offset has moved."""
    topic = node.topic(*(b"%d" % number for number in range(5)))
    node.client.start_delete_records(topic, 2).result()
    return topic


@scenario(topology=ALONE, configs=ON_DISK, needs={Fault.STOP})
def lost_checkpoints_after_a_shutdown(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Without the checkpoint of log start offsets deleted records are back; the others change nothing."""
    node = BrokerOnDisk(cluster)
    topic = _checkpointed(node)
    for name in CHECKPOINTS:
        node.stop()
        if name in node.names():
            node.remove(name)
        node.start(topic)
        yield node.state(f"without {name}", topic)
    yield produced("next", node.append(topic, b"5"), RESTARTED)


@scenario(topology=ALONE, configs=ON_DISK, needs={Fault.STOP, Fault.KILL})
def leader_epochs_after_a_restart(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The start offset of each epoch, with the checkpoint, without it, and without it after a kill."""
    node = BrokerOnDisk(cluster)
    topic = node.topic(b"0")
    path = f"{topic.name}-0/{LEADER_EPOCHS}"
    for how, end, removes in (
        ("stopped", node.stop, False),
        ("stopped, lost", node.stop, True),
        ("killed, lost", node.kill, True),
    ):
        end()
        if removes:
            node.remove(path)
        node.start(topic)
        ends = []
        for epoch in range(8):
            found = node.client.offset_for_leader_epoch(topic, epoch).message.topics[0].partitions[0]
            ends.append([found.error_code, found.leader_epoch, found.end_offset])
        yield concluded(how, "a state", ends=ends)
        node.append(topic, how.encode())


@scenario(topology=ALONE, configs=ON_DISK, needs={Fault.STOP, Fault.KILL})
def the_directory_of_another_broker_is_refused(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """meta.properties of another node or cluster: the broker does not start until the file is corrected."""
    node = BrokerOnDisk(cluster)
    topic = node.topic(b"0")
    node.stop()
    right = node.read_file(META_PROPERTIES)
    lines = right.decode().splitlines()
    for key, value in (("node.id", "77"), ("cluster.id", "AAAAAAAAAAAAAAAAAAAAAA"), ("version", "9")):
        changed = [f"{key}={value}" if line.startswith(f"{key}=") else line for line in lines]
        node.write_file(META_PROPERTIES, "\n".join([*changed, ""]).encode())
        yield concluded(f"another {key}", "a process that ends", comes_up=node.comes_up())
    node.write_file(META_PROPERTIES, right)
    node.start(topic)
    yield node.state("right again", topic)


@scenario(topology=ALONE, configs=DELETES_SOON, needs={Fault.STOP})
def what_else_is_in_the_log_directory(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """A log marked as deleted is removed; empty directories and files of no segment are ignored."""
    node = BrokerOnDisk(cluster)
    topic = node.topic(b"0")
    left = f"gone-0.{'0' * 32}-delete"
    node.stop()
    node.write_file(f"{left}/{'0' * 20}.log", b"")
    node.write_file(f"{topic.name}-0/note.txt", b"not a segment")
    node.write_file(f"{topic.name}-0/{'0' * 20}.log.deleted", b"half deleted")
    node.write_file(f"{topic.name}-0/{'0' * 20}.log.cleaned", b"half cleaned")
    node.start(topic)
    yield node.state("started", topic)
    cluster.wait_until(lambda: left not in node.names(), "the deleted log is gone")
    names = node.names(topic)
    yield concluded(
        "files",
        "what is deleted goes after a delay",
        note="note.txt" in names,
        deleted=any(name.endswith(".deleted") for name in names),
        cleaned=any(name.endswith(".cleaned") for name in names),
    )
