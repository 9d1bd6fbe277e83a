"""What a client sees of its quotas: times in answers, connections that take nothing, empty fetches."""

import pytest
from broker_sim_purgatory import VirtualClock

from broker_sim.broker.throttling import Throttling
from broker_sim.cluster.virtual.virtual_client import FETCH_VERSION, PRODUCE_VERSION, fetch_request, produce_request
from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim.handlers import RequestContext
from broker_sim.handlers.faults import Fault
from broker_sim.metadata.quota_entity import quota_entity
from broker_sim.protocol import messages
from broker_sim.protocol.api_keys import ApiKey
from broker_sim.protocol.codec import encode, encoded_size
from broker_sim.security import ANONYMOUS

KEY = ("t", 0)
CLIENT = "throttled"
VALUE = (b"x" * 900,)
LARGE = (b"x" * 30_000,)
METADATA_VERSION = 9
ALTER = messages.AlterClientQuotasRequest


class Clients:
    """One broker, and clients with one connection each; all but the first have an id of their own."""

    def __init__(self):
        self.cluster = VirtualCluster(1)
        self.cluster.create_topic("t", 1, 1)
        self.client = self.cluster.client(CLIENT)
        self.admin = self.cluster.client()

    def ask(self, request, version, client=None):
        pending = self.send(request, version, client)
        self.cluster.run_until(lambda: pending.done)
        return pending.response

    def send(self, request, version, client=None):
        return (client or self.client).send(1, request, version)

    def limit(self, names=(("client-id", CLIENT),), **quotas):
        entity = [ALTER.EntityData(kind, name) for kind, name in names]
        operations = [ALTER.OpData(name, value) for name, value in quotas.items()]
        response = self.ask(ALTER([ALTER.EntryData(entity, operations)]), 1, self.admin)
        assert response.entries[0].error_message is None
        known = self.cluster.nodes.brokers[1]
        version = self.cluster.nodes.controller.image.version
        self.cluster.run_until(lambda: known.image.version == version)

    def produce(self, values=VALUE, client=None, acks=1):
        request = produce_request(KEY, values=values, acks=acks)
        return self.ask(request, PRODUCE_VERSION, client)

    def fetch(self, version=FETCH_VERSION, client=None, **fields):
        return self.ask(fetch_request(KEY, max_wait_ms=0, **fields), version, client)

    @property
    def parked(self):
        by_name = {each.name: each for each in self.cluster.nodes.brokers[1].purgatories}
        return list(by_name["ThrottledChannel"].parked())


@pytest.fixture
def clients():
    return Clients()


def records_of(response):
    return [bytes(each.records) for topic in response.responses for each in topic.partitions]


def test_response_leaves_at_once_and_the_next_request_waits_its_throttle_time(clients):
    clients.limit(producer_byte_rate=50)
    first = clients.send(produce_request(KEY, values=VALUE, acks=1), PRODUCE_VERSION)
    second = clients.send(messages.MetadataRequest(topics=[]), METADATA_VERSION)
    clients.cluster.run_until(lambda: first.done)
    throttle_time_ms = first.response.throttle_time_ms
    assert first.elapsed_ms < 10
    assert throttle_time_ms > 5_000
    (parked,) = clients.parked
    (peer,) = parked.keys
    assert parked.operation == "ThrottledChannel"
    assert peer.count(":") == 1
    clients.cluster.run_until(lambda: second.done)
    assert second.elapsed_ms == pytest.approx(throttle_time_ms, abs=10)
    assert second.response.throttle_time_ms == 0
    assert not clients.parked


def test_other_clients_and_connections_of_others_go_on(clients):
    clients.limit(producer_byte_rate=50)
    assert clients.produce().throttle_time_ms
    assert clients.produce(client=clients.admin).throttle_time_ms == 0


def test_all_bytes_of_a_request_count(clients):
    request = produce_request(KEY, values=VALUE, acks=1)
    header_bytes = 2 + 2 + 4 + 2 + len(CLIENT) + 1
    size = header_bytes + encoded_size(encode(request, PRODUCE_VERSION))
    bound = size // 10 - 10
    clients.limit(producer_byte_rate=bound)
    expected = round((size / 10 - bound) / bound * 10_000)
    assert clients.ask(request, PRODUCE_VERSION).throttle_time_ms == expected


def test_produce_without_an_answer_holds_its_connection_up(clients):
    clients.limit(producer_byte_rate=50)
    clients.send(produce_request(KEY, values=VALUE, acks=0), PRODUCE_VERSION)
    after = clients.send(messages.MetadataRequest(topics=[]), METADATA_VERSION)
    clients.cluster.run_until(lambda: after.done)
    assert after.elapsed_ms > 5_000


def test_fetch_above_the_quota_is_answered_empty_and_does_not_count(clients):
    for _ in range(4):
        clients.produce(VALUE, clients.admin)
    clients.limit(consumer_byte_rate=150)
    assert records_of(clients.fetch(partition_max_bytes=1_000)) != []
    refused = clients.fetch(partition_max_bytes=1_000)
    assert (refused.error_code, refused.responses) == (0, [])
    assert refused.throttle_time_ms > 1_000
    clients.cluster.advance(20_000)
    assert records_of(clients.fetch(partition_max_bytes=1_000)) != []


def test_one_fetch_reads_no_more_than_the_whole_window_allows(clients):
    for _ in range(4):
        clients.produce(VALUE, clients.admin)
    clients.limit(consumer_byte_rate=200)
    refused = clients.fetch(offset=1)
    assert 100 < refused.throttle_time_ms < 500  # what the answer has beside the records
    clients.cluster.advance(700)  # the window has grown by so much
    assert len(records_of(clients.fetch(offset=1))[0]) == 2_000
    assert len(records_of(clients.fetch(offset=1, client=clients.admin))[0]) > 2_000


def test_refused_fetch_makes_no_session_and_moves_none_on(clients):
    clients.produce(VALUE, clients.admin)
    clients.limit(consumer_byte_rate=50)

    def fetch(session_id, epoch, *keys):
        request = fetch_request(*keys, max_wait_ms=0)
        request.session_id, request.session_epoch = session_id, epoch
        return clients.ask(request, FETCH_VERSION)

    refused = fetch(0, 0, KEY)
    assert (refused.session_id, refused.responses) == (0, [])
    assert refused.throttle_time_ms > 5_000
    clients.limit(consumer_byte_rate=150)
    made = fetch(0, 0, KEY)
    assert len(records_of(made)) == 1
    refused = fetch(made.session_id, 1)
    assert (refused.session_id, refused.error_code, refused.responses) == (made.session_id, 0, [])
    assert refused.throttle_time_ms
    clients.cluster.advance(30_000)
    assert records_of(fetch(made.session_id, 2)) == records_of(made)


def test_fetches_of_followers_are_free(clients):
    clients.produce(LARGE, clients.admin)
    clients.limit(consumer_byte_rate=1)
    assert clients.fetch(replica_id=1).throttle_time_ms == 0


def test_changes_of_topics_wait_for_the_controllers_bucket(clients):
    clients.limit(controller_mutation_rate=1)

    def create(name, partitions, version):
        topic = messages.CreateTopicsRequest.CreatableTopic(name, partitions, 1)
        response = clients.ask(messages.CreateTopicsRequest([topic], 1_000), version)
        (result,) = response.topics
        return response.throttle_time_ms, result.error_code, result.error_message

    assert create("a", 12, 6) == (0, 0, None)
    assert create("b", 1, 6) == (1_000, 89, None)
    assert create("b", 3, 5) == (3_000, 0, None)  # older clients are only slowed down


def test_everything_is_free_again_without_the_quota(clients):
    clients.limit(producer_byte_rate=1)
    clients.ask(
        ALTER(
            [ALTER.EntryData([ALTER.EntityData("client-id", CLIENT)], [ALTER.OpData("producer_byte_rate", 0.0, True)])]
        ),
        1,
        clients.admin,
    )
    clients.cluster.advance(1_000)
    assert clients.produce(LARGE).throttle_time_ms == 0


def test_fault_throttles_as_a_quota_does(clients):
    clients.produce(VALUE, clients.admin)
    clients.cluster.inject(Fault(api="Fetch", throttle_ms=3_000, count=1))
    response = clients.fetch()
    assert (response.throttle_time_ms, response.responses) == (3_000, [])
    after = clients.send(messages.MetadataRequest(topics=[]), METADATA_VERSION)
    clients.cluster.run_until(lambda: after.done)
    assert after.elapsed_ms == pytest.approx(3_000, abs=10)
    assert records_of(clients.fetch()) != []


def test_throttled_channel_ends_with_its_broker(clients):
    clients.limit(producer_byte_rate=50)
    clients.produce()
    waiting = clients.send(messages.MetadataRequest(topics=[]), METADATA_VERSION)
    clients.cluster.kill(1)
    clients.cluster.run_until(lambda: waiting.done)
    assert waiting.disconnected


# -- the time that requests take ------------------------------------------------------------------------


class Connection:
    listener, principal, ip, peer, sends_files = "PLAINTEXT", ANONYMOUS, "ip", "ip:1", False

    def __init__(self):
        self.throttles = 0

    def start_throttling(self):
        self.throttles += 1

    def end_throttling(self):
        self.throttles -= 1


class Request:
    """One request of a client that may take one per cent of the time."""

    def __init__(self, broker, api_key):
        self.clock = VirtualClock()
        throttling = Throttling(broker.quotas, broker.purgatories.named("Throttled"), self.clock)
        self.context = RequestContext(broker, Connection(), api_key, 9, CLIENT)
        self.throttled = throttling.begin(self.context, 100)

    def take(self, in_handler_ms, parked_ms, message):
        """Return the throttle time of the answer, which comes after both times."""
        self.clock.advance_to(in_handler_ms)
        self.throttled.leave_handler()
        self.clock.advance_to(in_handler_ms + parked_ms)
        self.throttled.settle(message)
        return getattr(message, "throttle_time_ms", 0)


@pytest.mark.parametrize(
    ("api_key", "message", "in_handler_ms", "parked_ms", "throttle_time_ms"),
    [
        (ApiKey.METADATA, messages.MetadataResponse(), 100, 0, 0),
        (ApiKey.METADATA, messages.MetadataResponse(), 105, 0, 500),
        (ApiKey.METADATA, messages.MetadataResponse(), 200, 0, 1_000),
        (ApiKey.METADATA, messages.MetadataResponse(), 100, 9_000, 0),
        (ApiKey.PRODUCE, messages.ProduceResponse(), 105, 0, 500),
        (ApiKey.PRODUCE, None, 200, 0, 0),
        (ApiKey.WRITE_TXN_MARKERS, messages.WriteTxnMarkersResponse(), 200, 0, 0),
    ],
)
def test_time_of_a_handler_counts_for_most_requests(
    clients, api_key, message, in_handler_ms, parked_ms, throttle_time_ms
):
    broker = clients.cluster.nodes.brokers[1]
    broker.quotas.update({quota_entity({"client-id": CLIENT}): {"request_percentage": 1.0}})
    request = Request(broker, api_key)
    assert request.take(in_handler_ms, parked_ms, message) == throttle_time_ms
    assert request.context.connection.throttles == (throttle_time_ms > 0)
