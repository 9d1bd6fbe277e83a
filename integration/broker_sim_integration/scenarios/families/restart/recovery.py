"""A broker's start with damaged batches. Kafka: LogLoader, LogSegment.recover, FileRecords."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim_integration.broker_verbs import Fault
from broker_sim_integration.observations import untimed
from broker_sim_integration.scenarios.families.restart.support.broker_on_disk import (
    ALONE,
    ON_DISK,
    BrokerOnDisk,
    contents,
)
from broker_sim_integration.scenarios.helpers.observe import concluded, described, produced
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.observations import Observation

RESTARTED: Final = untimed("the first request after a start")
VALUES: Final = (b"a", b"b", b"c", b"d")
BATCH_BYTES: Final = 69
"""Size in bytes of a batch with one value of one byte."""


def _flipped(position: int, content: bytes) -> bytes:
    """Return the content with one bit flipped in the byte at `position`; a negative one counts from the end."""
    changed = bytearray(content)
    changed[position] ^= 1
    return bytes(changed)


TAILS: Final = {
    "half a batch": lambda content: content[: -BATCH_BYTES // 2],
    "one byte less": lambda content: content[:-1],
    "less than a header": lambda content: content[: -BATCH_BYTES + 5],
    "without its last batch": lambda content: content[:-BATCH_BYTES],
    "nothing left": lambda _content: b"",
    "zeros behind": lambda content: content + bytes(200),
    "garbage behind": lambda content: content + b"garbage" * 30,
    "five bytes behind": lambda content: content + b"12345",
    "its last batch twice": lambda content: content + content[-BATCH_BYTES:],
    "a bit of its last batch": lambda content: _flipped(-2, content),
    "a bit of its second batch": lambda content: _flipped(2 * BATCH_BYTES - 2, content),
}
"""Changes of the only segment of a log, whose batches have the values a to d."""


@scenario(topology=ALONE, configs=ON_DISK, needs={Fault.KILL})
def a_torn_tail_is_cut_after_a_kill(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The log ends before the first incomplete batch; the next record gets that offset."""
    node = BrokerOnDisk(cluster)
    topics = {damage: node.topic(*VALUES) for damage in TAILS}
    node.kill()
    for damage, topic in topics.items():
        node.change_log(topic, TAILS[damage])
    node.start(*topics.values())
    for damage, topic in topics.items():
        yield node.state(damage, topic)
        yield produced(f"{damage}: next", node.append(topic, b"e"), RESTARTED)


SOUND_TAILS: Final = ("without its last batch", "a bit of its last batch", "a bit of its second batch")
"""Damage that a broker does not look for after a shutdown: all sizes match."""


@scenario(topology=ALONE, configs=ON_DISK, needs={Fault.STOP})
def a_damaged_log_is_believed_after_a_shutdown(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """A cleanly closed log is not recovered: clients get the damaged batches and see a wrong CRC."""
    node = BrokerOnDisk(cluster)
    topics = {damage: node.topic(*VALUES) for damage in SOUND_TAILS}
    node.stop()
    for damage, topic in topics.items():
        node.change_log(topic, TAILS[damage])
    node.start(*topics.values())
    for damage, topic in topics.items():
        yield node.state(damage, topic)
        yield produced(f"{damage}: next", node.append(topic, b"e"), RESTARTED)


@scenario(topology=ALONE, configs=ON_DISK, needs={Fault.STOP, Fault.KILL})
def damage_in_an_old_segment(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Below the recovery point nothing is checked; above it the log is cut, and later segments are deleted."""
    node = BrokerOnDisk(cluster)
    believed = node.segmented_topic(*VALUES)
    node.stop()
    node.change_log(believed, lambda content: _flipped(-2, content), base_offset=1)
    node.start(believed)
    yield node.state("stopped", believed)
    node.append(believed, b"e")
    recovered = node.segmented_topic(*VALUES)
    node.kill()
    node.change_log(recovered, lambda content: _flipped(-2, content), base_offset=1)
    node.start(believed, recovered)
    yield node.state("killed, below the recovery point", believed)
    yield node.state("killed, above it", recovered)
    yield produced("next", node.append(recovered, b"e"), RESTARTED)


@scenario(topology="1 partition x 3 replicas", configs=ON_DISK, needs={Fault.KILL})
def a_follower_fetches_again_what_it_has_lost(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Its torn tail is cut, and it fetches the lost records from the leader before it is in sync."""
    node = BrokerOnDisk(cluster)
    topic = cluster.topics.create([cluster.first, cluster.second, cluster.third])
    leader = cluster.clients.ask(cluster.first)
    for value in VALUES:
        leader.produce(topic, value)
    node.kill()
    cluster.wait_until.isr(topic, cluster.first, cluster.second)
    yield described("down", cluster, topic)
    node.change_log(topic, TAILS["a bit of its second batch"])
    leader.produce(topic, b"e")
    node.start()
    cluster.wait_until.replicated(topic)
    yield described("up", cluster, topic)
    cluster.wait_until(lambda: "error" not in "".join(contents(node.client, topic, 0, 5)), "a follower serves all")
    batches = contents(node.client, topic, 0, 5)
    yield concluded("contents", "a follower hears of its high watermark later", batches=batches)
