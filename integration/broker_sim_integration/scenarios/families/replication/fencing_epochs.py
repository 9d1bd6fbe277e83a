"""Leader epochs in requests. Kafka: Partition.checkCurrentLeaderEpoch, KIP-320, KIP-595."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim_integration.broker_verbs import Fault
from broker_sim_integration.clients.broker_client import EARLIEST, LATEST, MAX_TIMESTAMP, Append, Position, batch_of
from broker_sim_integration.observations import Observation, at_once, at_timeout
from broker_sim_integration.scenarios.helpers.broker_configs import QUICK_FENCING
from broker_sim_integration.scenarios.helpers.observe import epoch_end, fetched, listed
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest

NO_BROKER = 77
EPOCHS = ((-1, "none"), (0, "the present"), (5, "a future"))


@scenario(topology="1 partition x 1 replica")
def a_fetch_with_a_future_leader_epoch_is_refused(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """UNKNOWN_LEADER_EPOCH at once; with the current epoch, or without one, it is served."""
    topic = cluster.topics.create([cluster.first])
    leader = cluster.connect(cluster.first)
    leader.produce(topic, b"a")
    for epoch, name in EPOCHS:
        for version in (10, 12, 17):
            reply = leader.start_fetch(Position(topic, leader_epoch=epoch), max_wait_ms=1000, version=version).result()
            yield fetched(f"{name} epoch, version {version}", reply, at_once())


@scenario()
def list_offsets_checks_the_leader_epoch(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """UNKNOWN_LEADER_EPOCH for a future epoch; a follower returns NOT_LEADER_OR_FOLLOWER."""
    topic = cluster.topics.create()
    leader, follower = cluster.connect(cluster.first), cluster.connect(cluster.second)
    leader.produce(topic, b"a", b"b")
    for epoch, name in EPOCHS:
        reply = leader.list_offset(topic, LATEST, leader_epoch=epoch)
        yield listed(f"{name} epoch", reply, at_once())
    yield listed("at a follower", follower.list_offset(topic, LATEST), at_once())


@scenario(topology="1 partition x 1 replica")
def list_offsets_finds_offsets_by_time(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The first record at or after a timestamp, the record with the highest timestamp, or none."""
    topic = cluster.topics.create([cluster.first])
    leader = cluster.connect(cluster.first)
    times = (1_000_000, 3_000_000, 2_000_000)
    for time_ms in times:
        batch = batch_of([b"a", b"b"], timestamp_ms=time_ms)
        leader.start_produce(Append(topic, 0, batch)).result()
    for timestamp in (EARLIEST, LATEST, MAX_TIMESTAMP, 0, *times, 1_500_000, 3_000_001):
        yield listed(f"timestamp {timestamp}", leader.list_offset(topic, timestamp), at_once())
    for timestamp in (-4, -5, -6, -7):
        yield listed(f"timestamp {timestamp}", leader.list_offset(topic, timestamp), at_once())
    empty = cluster.topics.create([cluster.first])
    for timestamp in (EARLIEST, LATEST, MAX_TIMESTAMP, 0):
        reply = leader.list_offset(empty, timestamp)
        yield listed(f"empty, timestamp {timestamp}", reply, at_once())


@scenario()
def the_end_of_a_leader_epoch_is_told(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The current epoch ends at the log end, a future one is undefined; a follower returns NOT_LEADER_OR_FOLLOWER."""
    topic = cluster.topics.create()
    leader, follower = cluster.connect(cluster.first), cluster.connect(cluster.second)
    leader.produce(topic, b"a", b"b")
    for epoch in (-1, 0, 1):
        yield epoch_end(f"epoch {epoch}", leader.offset_for_leader_epoch(topic, epoch))
    reply = leader.offset_for_leader_epoch(topic, 0, current_leader_epoch=7)
    yield epoch_end("present epoch in the future", reply)
    yield epoch_end("at a follower", follower.offset_for_leader_epoch(topic, 0))


@scenario(topology="1 partition x 1 replica")
def a_fetcher_whose_last_epoch_is_unknown_is_told_where_it_diverged(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Version 12 with last_fetched_epoch: the response has the diverging epoch and no records, without a wait."""
    topic = cluster.topics.create([cluster.first])
    leader = cluster.connect(cluster.first)
    leader.produce(topic, b"a", b"b")
    for offset, epoch in ((1, 0), (2, 0), (1, 5), (5, 0), (0, 3)):
        reply = leader.start_fetch(
            Position(topic, offset=offset, last_fetched_epoch=epoch, leader_epoch=0), max_wait_ms=700
        ).result()
        waits = (offset, epoch) == (2, 0)
        due = at_timeout(700) if waits else at_once()
        yield fetched(f"offset {offset} of epoch {epoch}", reply, due)


@scenario(topology="1 partition x 2 replicas")
def a_stranger_may_not_fetch_as_a_follower(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """UNKNOWN_LEADER_EPOCH for a broker without a replica, so that it refreshes its metadata."""
    topic = cluster.topics.create([cluster.first, cluster.second])
    leader = cluster.connect(cluster.first)
    leader.produce(topic, b"a")
    for version in (12, 14, 17):
        for step, replica in (("no replica", cluster.third), ("no broker", NO_BROKER)):
            reply = leader.fetch_as_replica(topic, replica, version=version)
            yield fetched(f"{step}, version {version}", reply, at_once())
    yield fetched("a consumer", leader.fetch(topic, 0), at_once())


@scenario(topology="1 partition x 2 replicas")
def a_follower_of_an_older_broker_epoch_is_not_believed(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """NOT_LEADER_OR_FOLLOWER for a replica epoch below the registered one (KIP-903)."""
    topic = cluster.topics.create([cluster.first, cluster.second])
    leader = cluster.connect(cluster.first)
    leader.produce(topic, b"a")
    reply = leader.fetch_as_replica(topic, cluster.second, replica_epoch=0)
    yield fetched("stale replica epoch", reply, at_once())


@scenario(configs=QUICK_FENCING, needs={Fault.PAUSE})
def after_a_change_of_leader_the_old_epoch_is_fenced(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """FENCED_LEADER_EPOCH for requests with the old epoch, which ends where the new one begins."""
    topic = cluster.topics.create([cluster.second, cluster.first, cluster.third])
    cluster.connect(cluster.second).produce(topic, b"0", b"1")
    cluster.faults.pause(cluster.second)
    cluster.wait_until.leader(topic, cluster.first)
    leader = cluster.connect(cluster.first)
    leader.produce(topic, b"2")
    for epoch in (0, 1, 2):
        reply = leader.list_offset(topic, LATEST, leader_epoch=epoch)
        yield listed(f"ListOffsets with epoch {epoch}", reply, at_once())
        fetch = leader.start_fetch(Position(topic, leader_epoch=epoch), max_wait_ms=1000).result()
        yield fetched(f"fetch with epoch {epoch}", fetch, at_once())
        yield epoch_end(f"end of epoch {epoch}", leader.offset_for_leader_epoch(topic, epoch))
    for offset, last_epoch in ((2, 0), (3, 0), (3, 1), (4, 1)):
        position = Position(topic, offset=offset, last_fetched_epoch=last_epoch, leader_epoch=1)
        fetch = leader.start_fetch(position, max_wait_ms=700).result()
        step = f"offset {offset} after a record of epoch {last_epoch}"
        due = at_timeout(700) if (offset, last_epoch) == (3, 1) else at_once()
        yield fetched(step, fetch, due)
    earliest = leader.list_offset(topic, EARLIEST)
    yield listed("the epoch of the earliest", earliest, at_once())
