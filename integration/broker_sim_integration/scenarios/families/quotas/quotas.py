"""Clients above their quotas: throttle times, delayed requests, empty fetches. Kafka: ClientQuotaManager.

A client whose first request alone exceeds its quota is throttled for a time that follows from the request's
size only: bytes / quota - 10 s, as if ten complete samples of 1 s preceded it. So these times must be equal
on both sides. Later ones depend on the times of the earlier requests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker_sim.protocol import messages
from broker_sim_integration.clients.broker_client import BrokerClient
from broker_sim_integration.clients.raw_client import ConnectionEndedError
from broker_sim_integration.observations import Observation, at_once, on_event, untimed
from broker_sim_integration.scenarios.families.quotas.support.client_quotas import forget_all, limit
from broker_sim_integration.scenarios.helpers.due import after
from broker_sim_integration.scenarios.helpers.mechanisms import committed as metadata_committed
from broker_sim_integration.scenarios.helpers.observe import concluded, seen_in
from broker_sim_integration.scenarios.helpers.publication import Publication
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from broker_sim_integration.clients.raw_client import Pending, Reply
    from broker_sim_integration.clients.topics import Topic
    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest

WINDOW_MS: Final = 10_000
"""Length in ms of the ten complete samples; the eleventh sample is the current one."""
VALUE: Final = b"x" * 10_000
RATE: Final = 950
"""Quota in bytes per second; a request with one such value is throttled for about 700 ms."""
METADATA_VERSION: Final = 12
MOST_TRIES: Final = 5_000
TAKEN: Final = 10
ACCEPTOR_MS: Final = 500


class Clients:
    """Connections with client ids that no other scenario uses, and the quotas of these clients."""

    def __init__(self, cluster: ClusterUnderTest) -> None:
        self._cluster = cluster
        forget_all(cluster, cluster.clients.ask(cluster.first))
        self._published = Publication(cluster)
        self.topic = cluster.topics.create([cluster.first])

    def client_id(self, name: str = "client") -> str:
        """Return a client id for `name` that no other scenario uses."""
        return self._cluster.topics.name(name)

    def connect(self, name: str = "client") -> BrokerClient:
        """Connect with the client id of `name`."""
        host, port = self._cluster.brokers.address(self._cluster.first)
        client = BrokerClient(host, port, client_id=self.client_id(name))
        self._cluster.on_close(client.close)
        return client

    def limit(self, names: Mapping[str, str | None] | None = None, **quotas: float | None) -> None:
        """Set quotas of the named entity, by default of the client `client`."""
        names = names or {"client-id": self.client_id()}
        limit(self._cluster, self._published, names, **quotas)


def produce(client: BrokerClient, topic: Topic) -> Reply[messages.ProduceResponse]:
    """Append one value with acks=1; return the response."""
    return client.produce(topic, VALUE, acks=1)


def ask(client: BrokerClient) -> Reply[messages.MetadataResponse]:
    """Send a request that counts against no byte quota; return the response."""
    request = messages.MetadataRequest(topics=[])
    return client.request(request, METADATA_VERSION, messages.MetadataResponse)


def told(step: str, reply: Reply[Any], **fields: Any) -> Observation:
    """Observe the throttle time of a response that was due at once."""
    return Observation(
        step,
        elapsed_ms=reply.elapsed_ms,
        answered_ms=reply.answered_ms,
        timing=at_once(),
        fields={"throttle_time_ms": reply.message.throttle_time_ms, **fields},
    )


def held_up(step: str, reply: Reply[Any], throttling: Reply[Any]) -> Observation:
    """Observe the response to a request that had to wait for the throttle time of another response."""
    time_ms = throttling.message.throttle_time_ms
    timing = after(reply, throttling.answered_ms + time_ms, since=throttling.sent_ms + time_ms)
    return Observation(step, elapsed_ms=reply.elapsed_ms, answered_ms=reply.answered_ms, timing=timing)


def waits(step: str, throttle_time_ms: int, due_ms: float, earlier_ms: float) -> Observation:
    """Observe a throttle time that depends on earlier requests: at most `earlier_ms` below `due_ms`."""
    timing = on_event(due_ms, earliest_ms=due_ms - earlier_ms)
    return Observation(step, elapsed_ms=float(throttle_time_ms), timing=timing)


@scenario(topology="1 partition x 1 replica")
def a_produce_above_its_quota_is_answered_at_once(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The response contains the throttle time, and the next request on the connection is delayed by it."""
    clients = Clients(cluster)
    clients.limit(producer_byte_rate=RATE)
    client = clients.connect()
    first = produce(client, clients.topic)
    second = ask(client)
    yield told("produced", first)
    yield held_up("held up", second, first)
    yield told("after it", ask(client))


@scenario(topology="1 partition x 1 replica")
def a_produce_without_an_answer_holds_its_connection_up(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """acks=0 above the quota: the next request is delayed, although there was no response."""
    clients = Clients(cluster)
    clients.limit(producer_byte_rate=RATE)
    clients.limit({"client-id": clients.client_id("answered")}, producer_byte_rate=RATE)
    # The names of both clients have the same length, so both requests have the same size.
    time_ms = produce(clients.connect("answered"), clients.topic).message.throttle_time_ms
    client = clients.connect("silenced")
    clients.limit({"client-id": clients.client_id("silenced")}, producer_byte_rate=RATE)
    client.produce_unanswered(clients.topic, VALUE)
    reply = ask(client)
    yield concluded("told to another client", throttle_time_ms=time_ms)
    yield Observation(
        "held up",
        elapsed_ms=reply.elapsed_ms,
        answered_ms=reply.answered_ms,
        timing=on_event(float(time_ms), earliest_ms=time_ms - 2.0),
    )


@scenario(topology="1 partition x 1 replica")
def connections_of_a_client_id_share_its_quota(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The bytes of the first connection make the second one's produce exceed it; only the second is delayed."""
    clients = Clients(cluster)
    clients.limit(producer_byte_rate=2 * RATE)
    one, other = clients.connect(), clients.connect()
    first = produce(one, clients.topic)
    second = produce(other, clients.topic)
    yield told("first", first)
    alone = produce_alone_ms(clients)
    between_ms = second.sent_ms - first.sent_ms
    yield waits("second", second.message.throttle_time_ms, alone - between_ms, second.elapsed_ms + 2)
    yield told("the first goes on", ask(one))
    yield held_up("the second waits", ask(other), second)


def produce_alone_ms(clients: Clients) -> float:
    """Return the throttle time in ms of a produce of a client that has its quota for itself."""
    clients.limit({"client-id": clients.client_id("single")}, producer_byte_rate=RATE)
    return float(produce(clients.connect("single"), clients.topic).message.throttle_time_ms)


@scenario(topology="1 partition x 1 replica")
def other_client_ids_are_free(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """A client without a quota gets no throttle time, while another client has a quota."""
    clients = Clients(cluster)
    clients.limit(producer_byte_rate=1)
    client = clients.connect("other")
    for attempt in range(3):
        yield told(f"attempt {attempt}", produce(client, clients.topic))


@scenario(topology="1 partition x 1 replica")
def the_most_specific_quota_holds(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The client id takes precedence over the default one, the default user over both, and a user over that.

    The throttle time shows which quota was used.
    """
    clients = Clients(cluster)
    levels: tuple[tuple[str, dict[str, str | None]], ...] = (
        ("default client id", {"client-id": None}),
        ("client id", {"client-id": ""}),
        ("default user, default client id", {"client-id": None, "user": None}),
        ("default user, client id", {"client-id": "", "user": None}),
        ("user, default client id", {"client-id": None, "user": "ANONYMOUS"}),
        ("user, client id", {"client-id": "", "user": "ANONYMOUS"}),
    )
    for number, (step, names) in enumerate(levels):
        client_id = clients.client_id(f"c{number}")
        own = {kind: client_id if name == "" else name for kind, name in names.items()}
        clients.limit(own, producer_byte_rate=RATE - 10 * number)
        yield told(step, produce(clients.connect(f"c{number}"), clients.topic))


@scenario(topology="1 partition x 1 replica")
def a_changed_quota_holds_at_once(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """A raised or removed quota ends the throttling."""
    clients = Clients(cluster)
    clients.limit(producer_byte_rate=RATE)
    yield told("at first", produce(clients.connect(), clients.topic))
    clients.limit(producer_byte_rate=100 * RATE)
    yield told("raised", produce(clients.connect(), clients.topic))
    clients.limit(producer_byte_rate=None)
    yield told("removed", produce(clients.connect(), clients.topic))


@scenario(topology="1 partition x 1 replica")
def a_fetch_above_its_quota_is_answered_empty(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """No topics, no session and no error, but a throttle time; afterwards the records are returned.

    An empty response does not count, so the next fetch of the same records is empty as well.
    """
    clients = Clients(cluster)
    produce(cluster.clients.ask(cluster.first), clients.topic)
    clients.limit(consumer_byte_rate=RATE)
    client = clients.connect()
    first = client.fetch(clients.topic)
    second = client.fetch(clients.topic)
    for step, reply in (("first", first), ("second", second)):
        yield concluded(
            f"{step}, what it has",
            topics=len(reply.message.responses),
            session=reply.message.session_id,
            error=reply.message.error_code,
        )
    yield told("first", first)
    yield held_up("second", second, first)
    clients.limit(consumer_byte_rate=100 * RATE)
    third = clients.connect().fetch(clients.topic)
    yield told("with more", third, topics=len(third.message.responses))


@scenario(topology="1 partition x 1 replica")
def a_fetch_reads_no_more_than_the_window_allows(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Three of ten records, each a third of the window, are read; with their overhead they exceed the quota."""
    clients = Clients(cluster)
    for _ in range(10):
        produce(cluster.clients.ask(cluster.first), clients.topic)
    clients.limit(consumer_byte_rate=3 * RATE)
    yield told("throttled", clients.connect().fetch(clients.topic))
    free = clients.connect("other").fetch(clients.topic)
    data = free.message.responses[0].partitions[0].records
    yield seen_in("without a quota", free, bytes_read=len(data or b""))


@scenario(topology="1 partition x 1 replica")
def a_refused_fetch_leaves_its_session_as_it_was(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """An incremental fetch above the quota keeps the session's id; the next epoch returns the records."""
    clients = Clients(cluster)
    produce(cluster.clients.ask(cluster.first), clients.topic)
    client = clients.connect()

    def fetch(session_id: int, epoch: int, *, names: bool = False) -> Reply[messages.FetchResponse]:
        request = messages.FetchRequest(
            max_wait_ms=0, min_bytes=1, max_bytes=1 << 20, session_id=session_id, session_epoch=epoch
        )
        if names:
            wanted = messages.FetchRequest.FetchPartition(partition_max_bytes=1 << 20)
            request.topics = [messages.FetchRequest.FetchTopic(clients.topic.name, partitions=[wanted])]
        return client.request(request, 12, messages.FetchResponse)

    made = fetch(0, 0, names=True)
    session_id = made.message.session_id
    clients.limit(consumer_byte_rate=RATE)
    refused = fetch(session_id, 1)
    clients.limit(consumer_byte_rate=None)
    again = fetch(session_id, 2)
    for step, reply in (("made", made), ("refused", refused), ("again", again)):
        yield concluded(
            step,
            topics=len(reply.message.responses),
            is_of_the_session=bool(session_id) and reply.message.session_id == session_id,
            error=reply.message.error_code,
            throttle_time_ms=reply.message.throttle_time_ms,
        )


@scenario(topology="1 partition x 1 replica")
def fetches_of_others_than_consumers_are_free(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """A fetch with a replica id is not measured, whatever the quota of its client id."""
    clients = Clients(cluster)
    produce(cluster.clients.ask(cluster.first), clients.topic)
    clients.limit(consumer_byte_rate=1)
    client = clients.connect()
    yield told("as a replica", client.fetch_as_replica(clients.topic, cluster.first))
    yield concluded("as a consumer", is_throttled=client.fetch(clients.topic).message.throttle_time_ms > WINDOW_MS)


def create(client: BrokerClient, name: str, partitions: int, version: int) -> Reply[messages.CreateTopicsResponse]:
    """Create a topic with one replica; return the response."""
    topic = messages.CreateTopicsRequest.CreatableTopic(name, partitions, 1)
    request = messages.CreateTopicsRequest([topic], 30_000)
    return client.request(request, version, messages.CreateTopicsResponse)


@scenario(topology="3 topics of 1 to 12 partitions")
def topics_above_the_quota_are_refused(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """THROTTLING_QUOTA_EXCEEDED without a message since version 6; in older versions the topic is created.

    The bucket holds eleven seconds; a request may take more than the rest of it, and the next one waits.
    """
    clients = Clients(cluster)
    clients.limit(controller_mutation_rate=1)
    client = clients.connect()
    first = create(client, cluster.topics.name("q1"), 12, 7)
    second = create(client, cluster.topics.name("q2"), 1, 7)
    third = create(client, cluster.topics.name("q2"), 1, 5)
    for step, reply in (("first", first), ("second", second), ("third", third)):
        (topic,) = reply.message.topics
        yield Observation(
            step,
            error_code=topic.error_code,
            timing=untimed("the time that it tells is judged, and that of the next one"),
            fields={"message": topic.error_message, "is_throttled": reply.message.throttle_time_ms > 0},
        )
    since_ms = second.answered_ms - first.sent_ms + 2.0
    yield waits("refused", second.message.throttle_time_ms, 1_000 - (second.sent_ms - first.answered_ms), since_ms)
    yield Observation(
        "held up",
        elapsed_ms=third.elapsed_ms,
        answered_ms=third.answered_ms,
        timing=after(
            third,
            second.answered_ms + second.message.throttle_time_ms,
            since=second.sent_ms + second.message.throttle_time_ms,
            spread_ms=metadata_committed().spread_ms,
            reason=metadata_committed().reason,
        ),
    )


@scenario(topology="3 topics of 1 to 12 partitions")
def deletions_and_new_partitions_count_as_well(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Each deleted or added partition counts; requests that only validate count, too."""
    clients = Clients(cluster)
    admin = cluster.clients.ask(cluster.first)
    names = [cluster.topics.name(name) for name in ("d1", "d2")]
    for name in names:
        create(admin, name, 12, 7)
    clients.limit(controller_mutation_rate=1)
    client = clients.connect()
    delete = messages.DeleteTopicsRequest
    for step, name in zip(("deleted", "refused"), names, strict=True):
        request = delete(topic_names=[name], timeout_ms=30_000)
        deleted = client.request(request, 5, messages.DeleteTopicsResponse)
        (result,) = deleted.message.responses
        is_throttled = deleted.message.throttle_time_ms > 0
        yield concluded(step, error=result.error_code, text=result.error_message, told=is_throttled)
    grow = messages.CreatePartitionsRequest
    clients.limit({"client-id": clients.client_id("growing")}, controller_mutation_rate=1)
    client = clients.connect("growing")
    for step, count, validate_only in (("validated", 24, True), ("grown", 13, False)):
        grown = client.request(
            grow([grow.CreatePartitionsTopic(names[1], count, None)], 30_000, validate_only),
            3,
            messages.CreatePartitionsResponse,
        )
        (outcome,) = grown.message.results
        is_throttled = grown.message.throttle_time_ms > 0
        yield concluded(step, error=outcome.error_code, text=outcome.error_message, told=is_throttled)


@scenario(topology="1 partition x 1 replica")
def the_time_of_requests_is_held_up_for_a_second_at_most(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """However far a client exceeds its percentage, each request is delayed by one sample."""
    clients = Clients(cluster)
    clients.limit(request_percentage=1e-6)
    client = clients.connect()
    first = next(reply for reply in (ask(client) for _ in range(MOST_TRIES)) if reply.message.throttle_time_ms)
    yield told("first", first)
    second = ask(client)
    yield held_up("second", second, first)
    yield concluded("second, told", throttle_time_ms=second.message.throttle_time_ms)


@scenario(topology="1 partition x 1 replica")
def addresses_above_their_rate_are_closed_unserved(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """At one connection per second ten at once are accepted, the eleventh is closed after up to a second.

    Fewer are accepted if there were some in the last ten seconds, and then the delay is shorter.
    """
    clients = Clients(cluster)
    clients.limit({"ip": None}, connection_creation_rate=1)
    pending = [
        clients.connect().send(messages.MetadataRequest(topics=[]), METADATA_VERSION, messages.MetadataResponse)
        for _ in range(TAKEN + 1)
    ]
    closed = [ended for ended in map(end_of, pending) if ended is not None]
    clients.limit({"ip": None}, connection_creation_rate=None)
    yield concluded("some are closed", is_one_closed=bool(closed))
    yield Observation(
        "closed",
        elapsed_ms=closed[-1].elapsed_ms,
        timing=on_event(
            1_000.0,
            earliest_ms=0.0,
            spread_ms=ACCEPTOR_MS,
            reason="the acceptor looks for connections to close twice a second",
        ),
    )
    yield told("afterwards", ask(clients.connect()))


def end_of(pending: Pending[Any]) -> ConnectionEndedError | None:
    """Return the end of the connection, or None if there was a response."""
    try:
        pending.result()
    except ConnectionEndedError as ended:
        return ended
    return None
