"""The data of a restarted broker. Kafka: LogManager, ProducerStateManager, BrokerLifecycleManager."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim_purgatory.clock import SystemClock

from broker_sim_integration.broker_verbs import Fault
from broker_sim_integration.clients.groups import Offset, commit, committed
from broker_sim_integration.observations import at_once, untimed
from broker_sim_integration.scenarios.families.restart.support.broker_on_disk import (
    ALONE,
    ON_DISK,
    BrokerOnDisk,
    contents,
)
from broker_sim_integration.scenarios.families.transactions.support.transactions_under_test import (
    MARKERS,
    TransactionsUnderTest,
)
from broker_sim_integration.scenarios.helpers.groups import ready_group
from broker_sim_integration.scenarios.helpers.observe import concluded, deleted, described, produced
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from broker_sim_integration.clients.topics import Topic
    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.observations import Observation

RESTARTED = untimed("the first request after a start")
"""A JVM that has just started is slow."""


def _ends(node: BrokerOnDisk) -> dict[str, Callable[[], None]]:
    """Return the functions that end the broker, by name."""
    return {"stopped": node.stop, "killed": node.kill}


@scenario(topology=ALONE, configs=ON_DISK, needs={Fault.STOP, Fault.KILL})
def a_restarted_broker_has_its_log(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """All records are there, whatever the acks; each restart raises the leader epoch by one or two."""
    node = BrokerOnDisk(cluster)
    topic = node.topic(b"all")
    node.append(topic, b"one", acks=1)
    yield node.state("before", topic)
    for how, end in _ends(node).items():
        end()
        cluster.wait_until.leader(topic, -1)
        yield described(f"{how}: down", cluster, topic)
        node.start(topic)
        yield described(f"{how}: up", cluster, topic)
        yield node.state(how, topic)
        yield produced(f"{how}: next", node.append(topic, how.encode(), acks=1), RESTARTED)


@scenario(configs=ON_DISK, needs={Fault.STOP, Fault.KILL})
def a_restarted_replica_follows_and_has_all_records(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The stopped or killed leader returns as a follower and fetches the records that were appended in the meantime."""
    node = BrokerOnDisk(cluster)
    topic = cluster.topics.create([cluster.third, cluster.second, cluster.first])
    node.append(topic, b"before")
    for number, (how, end) in enumerate(_ends(node).items()):
        end()
        cluster.wait_until.isr(topic, cluster.first, cluster.second)
        yield described(f"{how}: down", cluster, topic)
        leader = cluster.metadata.describe(topic).leader
        reply = cluster.clients.ask(leader).produce(topic, how.encode())
        yield produced(f"{how}: appended", reply, untimed("a new leader"))
        node.start()
        cluster.wait_until.replicated(topic)
        yield described(f"{how}: up", cluster, topic)
        _await_contents(cluster, node, topic, number + 2)
        found = contents(node.client, topic, 0, number + 2)
        yield concluded(how, "a follower hears of its high watermark later", batches=found)


def _await_contents(cluster: ClusterUnderTest, node: BrokerOnDisk, topic: Topic, count: int) -> None:
    """Wait until the broker, a follower, serves `count` batches."""
    cluster.wait_until(
        lambda: "error" not in "".join(contents(node.client, topic, 0, count)),
        f"{count} batches of {topic.name} are served by a follower",
    )


def _all_topics(cluster: ClusterUnderTest) -> list[Topic]:
    """Return topics led by each of the brokers, with one record for acks=all and one for acks=1."""
    first, second, third = cluster.brokers
    turns = [(first, second, third), (second, third, first), (third, first, second)]
    topics = [cluster.topics.create(turn) for turn in turns]
    for topic in topics:
        leader = cluster.clients.ask(topic.preferred())
        leader.produce(topic, b"one", acks=1)
        leader.produce(topic, b"all")
    return topics


def _seen_everywhere(cluster: ClusterUnderTest, step: str, topics: list[Topic]) -> Iterator[Observation]:
    for topic in topics:
        cluster.wait_until.replicated(topic)
        cluster.wait_until.visible(topic, 2)
        found = cluster.metadata.describe(topic)
        leader = cluster.clients.ask(found.leader)
        yield concluded(
            f"{step}: led by the {cluster.brokers.role(topic.preferred())} before",
            "who leads after all have ended depends on who is back first",
            isr=cluster.brokers.roles(found.isr),
            batches=contents(leader, topic, 0, 2),
        )


@scenario(topology="3 topics of 1 partition x 3 replicas", configs=ON_DISK, needs={Fault.KILL})
def killed_brokers_lose_nothing_together(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """All three are killed at once: records with acks=all and acks=1 survive, and so do committed offsets."""
    topics = _all_topics(cluster)
    group = ready_group(cluster, cluster.second)
    commit(group.tool, group.name, Offset(topics[0], 0, 2, "kept"))
    for broker in (cluster.third, cluster.second, cluster.first):
        cluster.faults.kill(broker)
    for broker in cluster.brokers:
        cluster.faults.start(broker)
    for broker in cluster.brokers:
        cluster.wait_until.serving(broker)
    yield from _seen_everywhere(cluster, "killed", topics)
    yield from _committed(cluster, group.name, topics[0])


@scenario(topology="3 topics of 1 partition x 3 replicas", configs=ON_DISK, needs={Fault.STOP})
def brokers_that_are_restarted_in_turn_lose_nothing(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Each is stopped and started when all replicas are in sync again; committed offsets survive, too."""
    topics = _all_topics(cluster)
    group = ready_group(cluster, cluster.second)
    commit(group.tool, group.name, Offset(topics[0], 0, 2, "kept"))
    for broker in (cluster.third, cluster.second, cluster.first):
        cluster.faults.stop(broker)
        cluster.faults.start(broker)
        for each in cluster.brokers:
            cluster.wait_until.serving(each)
        for topic in topics:
            cluster.wait_until.replicated(topic)
    yield from _seen_everywhere(cluster, "restarted", topics)
    yield from _committed(cluster, group.name, topics[0])


def _committed(cluster: ClusterUnderTest, group: str, topic: Topic) -> Iterator[Observation]:
    """Observe the committed offset of a group, at its present coordinator."""
    found: list[int | str | None] = []

    def is_found() -> bool:
        for broker in cluster.brokers:
            answer = committed(cluster.clients.ask(broker), group, {topic: [0]}).message.groups[0]
            if not answer.error_code:
                offset = answer.topics[0].partitions[0]
                found[:] = [offset.committed_offset, offset.metadata]
                return offset.committed_offset != -1
        return False

    cluster.wait_until(is_found, f"{group} has its offset")
    yield concluded("committed", "a coordinator has to load it first", offset=found)


@scenario(topology=ALONE, configs=ON_DISK, needs={Fault.STOP, Fault.KILL})
def an_idempotent_producer_goes_on_after_a_restart(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Its sequences survive: a retry is recognised, a gap gets an error, the next batch is appended."""
    node = BrokerOnDisk(cluster)
    topic = node.topic()
    # A producer without a batch for a day expires.
    now_ms = SystemClock().wall_clock_ms()
    producer = {"producer_id": cluster.clients.producer_id(), "producer_epoch": 0, "timestamp_ms": now_ms}
    node.append(topic, b"0", b"1", base_sequence=0, **producer)
    node.append(topic, b"2", base_sequence=2, **producer)
    sequence = 3
    for how, end in _ends(node).items():
        end()
        node.start(topic)
        for step, wanted in (("retry", sequence - 1), ("gap", sequence + 1), ("next", sequence)):
            reply = node.append(topic, b"%d" % wanted, base_sequence=wanted, **producer)
            yield produced(f"{how}: {step}", reply, RESTARTED)
        sequence += 1
        yield node.state(how, topic)


@scenario(topology=ALONE, configs=ON_DISK, needs={Fault.STOP, Fault.KILL})
def a_producer_of_old_records_is_forgotten_by_a_restart(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Its last batch is older than producer.id.expiration.ms: a retry is appended again."""
    node = BrokerOnDisk(cluster)
    topic = node.topic()
    producer = {"producer_id": cluster.clients.producer_id(), "producer_epoch": 0}
    node.append(topic, b"0", base_sequence=0, **producer)
    yield produced("retry", node.append(topic, b"0", base_sequence=0, **producer), at_once())
    for how, end in _ends(node).items():
        end()
        node.start(topic)
        reply = node.append(topic, b"0", base_sequence=0, **producer)
        yield produced(f"{how}: retry", reply, RESTARTED)


@scenario(topology=ALONE, configs=ON_DISK, needs={Fault.STOP, Fault.KILL})
def an_open_transaction_outlives_restarts(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """It holds back the last stable offset until it ends; aborted records stay aborted."""
    node = BrokerOnDisk(cluster)
    transactions = TransactionsUnderTest(cluster)
    topic = node.topic(b"plain", segment_ms=str(2**63 - 1))
    aborted, opened = transactions.producer(), transactions.producer()
    aborted.produce(node.client, topic, b"aborted")
    transactions.ended(aborted, committed=False)
    opened.produce(node.client, topic, b"open")
    node.append(topic, b"after")
    for how, end in _ends(node).items():
        end()
        node.start(topic)
        seen = transactions.read(how, node.client, topic)
        yield concluded(
            f"{how}: committed",
            "a state, asked for when the broker serves",
            error=seen.error_code,
            high_watermark=seen.high_watermark,
            **seen.fields,
        )
    opened.produce(node.client, topic, b"more")
    yield transactions.seen("commit", opened.end(), MARKERS)
    transactions.completed(opened)
    yield transactions.read("ended", node.client, topic)


@scenario(topology=ALONE, configs=ON_DISK, needs={Fault.STOP, Fault.KILL})
def a_moved_log_start_after_a_restart(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Deleted records stay deleted after a shutdown; after a kill the last checkpoint counts."""
    node = BrokerOnDisk(cluster)
    topic = node.topic(*(b"%d" % number for number in range(5)))
    for offset, (how, end) in zip((2, 4), _ends(node).items(), strict=True):
        reply = node.client.start_delete_records(topic, offset).result()
        yield deleted(f"{how}: deleted", reply, at_once())
        end()
        node.start(topic)
        yield node.state(how, topic)
