"""Fetch sessions, which leave out what the fetcher already has (KIP-227). Kafka: FetchManager, FetchSession."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker_sim_integration.broker_verbs import Fault
from broker_sim_integration.clients.broker_client import Append, BrokerClient, Position, batch_of
from broker_sim_integration.clients.session_fetches import FINAL_EPOCH, fetch_in_session, start_fetch_in_session
from broker_sim_integration.clients.topics import Topic
from broker_sim_integration.observations import Observation, at_once, at_timeout
from broker_sim_integration.scenarios.helpers.due import after
from broker_sim_integration.scenarios.helpers.mechanisms import just_started
from broker_sim_integration.scenarios.helpers.observe import whole_response
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim_integration.clients.raw_client import Reply
    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.observations import Timing

VERSIONS: Final = (7, 12, 13, 17)
BY_NAME, BY_ID = 12, 13
WAIT_MS: Final = 300
NO_SLOTS: Final = {"max.incremental.fetch.session.cache.slots": "7"}
RACKS: Final = {
    "broker.rack": "everywhere",
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
}
UNKNOWN_TOPIC: Final = Topic(name="unknown", topic_id=b"\x07" * 16, replicas=())
ONE_REPLICA: Final = "1 partition x 1 replica"


class Session:
    """One session of a well-behaved client: each fetch has the next epoch."""

    def __init__(self, cluster: ClusterUnderTest, client: BrokerClient, *, version: int = 17) -> None:
        self._cluster = cluster
        self._client = client
        self.version = version
        self.session_id = 0
        self.epoch = 0

    def fetch(
        self,
        step: str,
        *positions: Position,
        forgotten: tuple[tuple[Topic, int], ...] = (),
        wait_ms: int = 0,
        timing: Timing | None = None,
        max_bytes: int = 50 << 20,
    ) -> Observation:
        """Observe the next fetch, due at once unless `timing` says otherwise."""
        reply = fetch_in_session(
            self._client,
            *positions,
            session_id=self.session_id,
            epoch=self.epoch,
            forgotten=forgotten,
            max_wait_ms=wait_ms,
            max_bytes=max_bytes,
            version=self.version,
        )
        self.session_id = reply.message.session_id
        self.epoch += 1
        return self._observed(step, reply, timing)

    def wait(self, step: str, *positions: Position) -> Observation:
        """Observe a fetch that finds no data and waits for its timeout."""
        return self.fetch(step, *positions, wait_ms=WAIT_MS, timing=at_timeout(WAIT_MS))

    def out_of_turn(self, step: str, epoch: int, *positions: Position, version: int | None = None) -> Observation:
        """Observe a fetch with another epoch; the session's own epoch stays the same."""
        reply = fetch_in_session(
            self._client,
            *positions,
            session_id=self.session_id,
            epoch=epoch,
            version=self.version if version is None else version,
        )
        return self._observed(step, reply, None)

    def _observed(self, step: str, reply: Reply[Any], timing: Timing | None) -> Observation:
        return whole_response(f"version {self.version}, {step}", self._cluster, reply, timing or at_once())


@scenario(topology="2 topics of 2 partitions x 1 replica")
def an_incremental_fetch_answers_only_what_is_new(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The response is empty, then has one partition, and has it again until the fetch offset moves on."""
    for version in VERSIONS:
        busy, idle = (cluster.topics.create([cluster.first], partitions=2) for _ in range(2))
        leader = cluster.connect(cluster.first)
        session = Session(cluster, leader, version=version)
        yield session.fetch("new", *_all_of(busy, 2), *_all_of(idle, 2))
        yield session.wait("nothing")
        leader.produce(busy, b"1", partition=1)
        yield session.fetch("one record", wait_ms=WAIT_MS)
        yield session.fetch("the same record", wait_ms=WAIT_MS)
        yield session.wait("nothing behind it", Position(busy, 1, offset=1))


@scenario(topology="1 partition x 1 replica")
def a_parked_incremental_fetch_is_woken_by_any_partition_of_its_session(
    cluster: ClusterUnderTest,
) -> Iterator[Observation]:
    """The request names no partition; the response has the one that got a record."""
    for version in VERSIONS:
        topic = cluster.topics.create([cluster.first], partitions=2)
        leader, producer = cluster.connect(cluster.first), cluster.connect(cluster.first)
        session = Session(cluster, leader, version=version)
        yield session.fetch("new", *_all_of(topic, 2))
        parked = start_fetch_in_session(
            leader, session_id=session.session_id, epoch=1, max_wait_ms=20_000, version=version
        )
        cluster.wait(100)
        produced = producer.produce(topic, b"1", partition=1)
        reply = parked.result()
        yield whole_response(f"version {version}", cluster, reply, after(reply, produced))


@scenario(topology="3 partitions x 1 replica")
def partitions_that_had_records_are_read_last(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """If only one batch fits, the partitions take turns, one per fetch."""
    for version in (BY_NAME, BY_ID):
        topic = _filled(cluster, partitions=3)
        session = Session(cluster, cluster.connect(cluster.first), version=version)
        yield session.fetch("new", *_all_of(topic, 3), max_bytes=1)
        for turn in range(1, 5):
            yield session.fetch(f"turn {turn}", max_bytes=1)
        yield session.fetch("a change keeps the place", Position(topic, 0, offset=1), max_bytes=1)
        yield session.fetch("forgotten and added again: gone", Position(topic, 1), forgotten=((topic, 1),))
        yield session.fetch("the rest")


@scenario(topology=ONE_REPLICA)
def a_wrong_epoch_is_refused_and_the_session_goes_on(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """INVALID_FETCH_SESSION_EPOCH for an epoch too low, too high or negative; the right one is still accepted."""
    topic = _filled(cluster)
    for version in (BY_NAME, 17):
        session = Session(cluster, cluster.connect(cluster.first), version=version)
        yield session.fetch("new", Position(topic))
        yield session.fetch("first", Position(topic, offset=1))
        for epoch in (1, 3, 2147483647, -2):
            yield session.out_of_turn(f"epoch {epoch}", epoch)
        yield session.wait("second")


@scenario(topology=ONE_REPLICA)
def a_full_fetch_ends_the_session_that_it_names(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Epoch 0 creates another session, epoch -1 none; FETCH_SESSION_ID_NOT_FOUND for the old session."""
    topic = _filled(cluster)
    for version in (7, 17):
        client = cluster.connect(cluster.first)
        first, second = (Session(cluster, client, version=version) for _ in range(2))
        yield first.fetch("new", Position(topic))
        second.session_id = first.session_id
        yield second.fetch("in place of it", Position(topic, offset=1))
        yield first.fetch("the old one")
        yield second.wait("the other one")
        yield second.out_of_turn("ended", FINAL_EPOCH, Position(topic))
        yield second.fetch("after its end")
        for session_id in (1, 77, 268435455, -5, 2147483640):
            second.session_id = session_id
            for epoch in (0, 1, FINAL_EPOCH):
                yield second.out_of_turn(f"id {session_id}, epoch {epoch}", epoch, Position(topic))


@scenario(topology="3 partitions x 1 replica")
def forgotten_partitions_are_read_no_more(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The session ends with its last partition; the response to that request has no session."""
    for version in (BY_NAME, BY_ID):
        topic = _filled(cluster, partitions=3)
        session = Session(cluster, cluster.connect(cluster.first), version=version)
        yield session.fetch("new", *_all_of(topic, 3))
        yield session.fetch("without 1", forgotten=((topic, 1),))
        yield session.fetch("without one that it never had", forgotten=((topic, 9),))
        yield session.fetch("all forgotten", forgotten=((topic, 0), (topic, 2)))
        yield session.fetch("is gone")
        again = Session(cluster, cluster.connect(cluster.first), version=version)
        yield again.fetch("new again", Position(topic))
        yield again.fetch("added and forgotten", Position(topic, 1), forgotten=((topic, 0), (topic, 1)))
        yield again.fetch("is gone again")
        empty = Session(cluster, cluster.connect(cluster.first), version=version)
        yield empty.fetch("without partitions")
        yield empty.fetch("still without")


@scenario(topology="1 partition x 1 replica")
def an_error_is_told_until_it_is_gone(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Offsets out of range and unknown partitions; when an error is gone, the offsets are returned once."""
    topic = _filled(cluster)
    for version in (BY_NAME, BY_ID):
        session = Session(cluster, cluster.connect(cluster.first), version=version)
        yield session.fetch("new", Position(topic, offset=1))
        yield session.fetch("out of range", Position(topic, offset=99), wait_ms=WAIT_MS)
        yield session.fetch("still", wait_ms=WAIT_MS)
        yield session.wait("in range", Position(topic, offset=1))
        yield session.wait("told before")
        yield session.wait("unknown partitions", Position(topic, 8), Position(topic, 9))
        yield session.wait("still unknown")
        yield session.fetch("alone", forgotten=((topic, 0),), wait_ms=WAIT_MS)


@scenario(topology="1 partition x 1 replica")
def a_session_has_names_or_ids(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """FETCH_SESSION_TOPIC_ID_ERROR for versions of the other kind, also without partitions in the request."""
    topic = _filled(cluster)
    for version, other in ((7, 13), (12, 17), (13, 12), (17, 7)):
        session = Session(cluster, cluster.connect(cluster.first), version=version)
        yield session.fetch("new", Position(topic, offset=1))
        yield session.out_of_turn(f"in version {other}", 1, version=other)
        yield session.wait("goes on")


@scenario(topology="2 topics of 1 partition x 1 replica")
def ids_in_a_session_may_be_unknown_or_old(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """UNKNOWN_TOPIC_ID for an unknown id, UNKNOWN_TOPIC_OR_PARTITION for a topic that was deleted in the meantime."""
    kept, doomed = cluster.topics.create([cluster.first]), cluster.topics.create([cluster.first])
    session = Session(cluster, cluster.connect(cluster.first))
    yield session.fetch("new", *map(Position, (doomed, UNKNOWN_TOPIC, kept)))
    yield session.wait("unknown")
    cluster.topics.delete(doomed)
    yield session.wait("deleted")
    yield session.wait("still")
    yield session.fetch("all that is left", forgotten=((kept, 0),), wait_ms=WAIT_MS)


@scenario(topology="1 partition x 1 replica")
def a_moved_log_start_is_told(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """It is returned once, without records, at the timeout."""
    topic = cluster.topics.create([cluster.first])
    leader = cluster.connect(cluster.first)
    for value in (b"0", b"1"):
        leader.produce(topic, value)
    session = Session(cluster, leader)
    yield session.fetch("new", Position(topic, offset=2))
    leader.start_delete_records(topic, 1).result()
    yield session.wait("deleted")
    yield session.wait("told before")


@scenario(topology="1 partition x 1 replica")
def a_session_serves_any_connection_one_request_at_a_time(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """A second request during a parked one makes the parked one end with INVALID_FETCH_SESSION_EPOCH."""
    topic = cluster.topics.create([cluster.first])
    one, other = cluster.connect(cluster.first), cluster.connect(cluster.first)
    session = Session(cluster, one)
    yield session.fetch("new", Position(topic))
    parked = start_fetch_in_session(one, session_id=session.session_id, epoch=1, max_wait_ms=2 * WAIT_MS)
    cluster.wait(100)
    beside = start_fetch_in_session(other, session_id=session.session_id, epoch=2, max_wait_ms=2 * WAIT_MS)
    for step, pending in (("parked", parked), ("beside it", beside)):
        yield whole_response(step, cluster, pending.result(), at_timeout(2 * WAIT_MS))
    reply = fetch_in_session(other, session_id=session.session_id, epoch=3)
    yield whole_response("on the other connection", cluster, reply, at_once())


@scenario(topology="1 partition x 1 replica")
def a_bad_isolation_level_takes_an_epoch(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """UNKNOWN_SERVER_ERROR in the session; the level does not matter for partitions that are not read."""
    topic = _filled(cluster)
    for version in (BY_NAME, BY_ID):
        client = cluster.connect(cluster.first)
        session = Session(cluster, client, version=version)
        yield session.fetch("new", Position(topic, offset=1))
        bad = fetch_in_session(client, session_id=session.session_id, epoch=1, isolation_level=2, version=version)
        yield whole_response(f"version {version}, level 2", cluster, bad, at_once())
        session.epoch = 2
        yield session.wait("goes on")
        for step, partition in (("read", 0), ("not read", 9)):
            bad = fetch_in_session(client, Position(topic, partition), isolation_level=2, version=version)
            yield whole_response(f"version {version}, new, {step}", cluster, bad, at_once())


@scenario(topology="1 partition x 1 replica", configs=NO_SLOTS)
def a_broker_without_slots_gives_no_sessions(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Seven slots are too few for the cache's eight shards, so no session is created; responses are complete."""
    topic = _filled(cluster)
    session = Session(cluster, cluster.connect(cluster.first))
    yield session.fetch("wanted", Position(topic))
    yield session.fetch("never given")


@scenario(topology="1 partition x 3 replicas", needs={Fault.KILL})
def a_restarted_broker_has_no_sessions(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """FETCH_SESSION_ID_NOT_FOUND; followers create sessions, too."""
    topic = cluster.topics.create([cluster.first, cluster.second, cluster.third])
    session = Session(cluster, cluster.connect(cluster.third))
    yield session.fetch("new", Position(topic))
    yield session.wait("nothing")
    cluster.faults.kill(cluster.third)
    cluster.faults.start(cluster.third)
    cluster.wait_until.serving(cluster.third)
    after_restart = Session(cluster, cluster.connect(cluster.third))
    after_restart.session_id, after_restart.epoch = session.session_id, session.epoch
    yield after_restart.fetch("after the restart", timing=just_started())


@scenario(topology="1 partition x 3 replicas", configs=RACKS)
def a_consumer_in_the_leaders_rack_reads_there(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Consumers in a rack without brokers, or without a rack, read from the leader, too (KIP-392)."""
    topic = cluster.topics.create([cluster.first, cluster.second, cluster.third])
    leader = cluster.connect(cluster.first)
    leader.produce(topic, b"1")
    for version in (11, 17):
        for rack_id in ("everywhere", "nowhere", ""):
            reply = fetch_in_session(leader, Position(topic), epoch=FINAL_EPOCH, rack_id=rack_id, version=version)
            yield whole_response(f"version {version}, rack {rack_id!r}", cluster, reply, at_once())


def _all_of(topic: Topic, partitions: int) -> list[Position]:
    return [Position(topic, partition) for partition in range(partitions)]


def _filled(cluster: ClusterUnderTest, *, partitions: int = 1) -> Topic:
    """Return a topic on the first broker alone, with one batch in every partition."""
    topic = cluster.topics.create([cluster.first], partitions=partitions)
    leader = cluster.clients.ask(cluster.first)
    for partition in range(partitions):
        batch = batch_of([b"%d" % partition])
        leader.start_produce(Append(topic, partition, batch)).result()
    return topic
