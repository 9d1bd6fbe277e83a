"""Claims about clients' metrics: what a client is to push, when it is refused, and where its metrics are seen."""

import struct

import pytest

from broker_sim import VirtualCluster
from broker_sim.controller import AlterOp, ConfigAlteration, ConfigResource, ConfigResourceType
from broker_sim.errors import ErrorCode, WrongStateError
from broker_sim.handlers.telemetry.otlp import ClientMetric, parse_metrics
from broker_sim.protocol import messages
from broker_sim.protocol.api_keys import ApiKey
from broker_sim.protocol.compression import CompressionCodec, compress

NAME = "org.apache.kafka.producer.connection.creation.total"
PLUGIN = {"metric.reporters": "example.Telemetry"}
INTERVAL_MS = 1_000


def field(number, content):
    """Return a field of a protobuf message with bytes in it."""
    return bytes([number << 3 | 2, len(content)]) + content


def metrics_data(name, value, **attributes):
    """Return OpenTelemetry's `MetricsData` with one number."""
    pairs = b"".join(
        field(7, field(1, key.encode()) + field(2, field(1, text.encode()))) for key, text in attributes.items()
    )
    point = pairs + bytes([4 << 3 | 1]) + struct.pack("<d", value)
    return field(1, field(2, field(2, field(1, name.encode()) + field(7, field(1, point)))))


TOO_LARGE = bytes(1_048_577)
PAYLOAD = metrics_data(NAME, 3.0)


class Client:
    """A client of broker 1 that gets its subscription and pushes."""

    def __init__(self, cluster):
        self.cluster, self.client = cluster, cluster.client()
        self.subscription = None
        self.ask(messages.ApiVersionsRequest("library", "1.2"), 3)

    def ask(self, request, version=0):
        pending = self.client.send(1, request, version)
        self.cluster.run_until(lambda: pending.done)
        return pending.response

    def get(self):
        instance_id = self.subscription.client_instance_id if self.subscription else bytes(16)
        response = self.ask(messages.GetTelemetrySubscriptionsRequest(instance_id))
        if not response.error_code:
            self.subscription = response
        return response

    def push(self, payload=PAYLOAD, **changes):
        fields = {
            "client_instance_id": self.subscription.client_instance_id,
            "subscription_id": self.subscription.subscription_id,
            "metrics": payload,
            **changes,
        }
        return ErrorCode(self.ask(messages.PushTelemetryRequest(**fields)).error_code)


def subscribe(cluster, name="all", **configs):
    values = {"metrics": "org.apache.kafka.producer.", "interval.ms": str(INTERVAL_MS), **configs}
    changes = [ConfigAlteration(key, AlterOp.SET, value) for key, value in values.items()]
    resource = ConfigResource(ConfigResourceType.CLIENT_METRICS, name)
    ((_, outcome),) = cluster.nodes.controller.incremental_alter_configs([(resource, changes)])
    assert outcome.ok
    cluster.advance(10)


@pytest.fixture
def cluster():
    return VirtualCluster(1, seed=4, configs=PLUGIN)


@pytest.fixture
def client(cluster):
    subscribe(cluster)
    made = Client(cluster)
    assert made.get().error_code == ErrorCode.NONE
    return made


def test_without_a_plugin_telemetry_is_not_advertised_and_the_verb_fails():
    cluster = VirtualCluster(1, seed=4)
    keys = {each.api_key for each in Client(cluster).ask(messages.ApiVersionsRequest("library", "1.2"), 3).api_keys}
    assert keys.isdisjoint({ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY})
    with pytest.raises(WrongStateError, match=r"metric\.reporters"):
        cluster.client_metrics()


def test_client_gets_an_id_and_the_metrics_of_all_matching_subscriptions(cluster):
    subscribe(cluster)
    subscribe(cluster, "consumers", metrics="org.apache.kafka.consumer.", match="client_software_name=lib.*")
    subscribe(cluster, "others", metrics="*", match="client_software_name=lib", **{"interval.ms": "100"})
    response = Client(cluster).get()
    assert response.client_instance_id not in {bytes(16), bytes(15) + b"\x01"}
    assert response.requested_metrics == ["org.apache.kafka.consumer.", "org.apache.kafka.producer."]
    assert response.push_interval_ms == INTERVAL_MS
    assert response.accepted_compression_types == [4, 3, 1, 2]
    assert (response.delta_temporality, response.telemetry_max_bytes) == (True, 1_048_576)


def test_client_without_a_subscription_pushes_nothing_every_five_minutes(cluster):
    response = Client(cluster).get()
    assert (response.requested_metrics, response.push_interval_ms) == ([], 300_000)


def test_last_metrics_are_in_the_verb_in_status_and_in_metrics(cluster, client):
    assert client.push(metrics_data(NAME, 3.0)) is ErrorCode.NONE
    cluster.advance(INTERVAL_MS)
    packed = compress(CompressionCodec.GZIP, metrics_data(NAME, 4.0, **{"node.id": "1"}))
    assert client.push(packed, compression_type=CompressionCodec.GZIP) is ErrorCode.NONE
    (status,) = cluster.client_metrics()
    assert (status.software, status.pushes, status.terminated) == ("library 1.2", 2, False)
    assert status.metrics == (ClientMetric(NAME, 4.0, {"node.id": "1"}),)
    assert (status.value(NAME), status.value("other")) == (4.0, None)
    assert f'{NAME.replace(".", "_")}{{client_id="{status.client_id}"' in cluster.metrics()
    assert cluster.client_metrics().to_json()["clients"][0]["metrics"][0]["value"] == 4.0
    assert cluster.status().client_metrics == (status,)
    assert cluster.status().to_json()["client_metrics"] == [status.to_json()]
    cluster.reset()
    assert cluster.client_metrics() == cluster.status().client_metrics == ()


@pytest.mark.parametrize(("late_ms", "error"), [(-1, ErrorCode.THROTTLING_QUOTA_EXCEEDED), (0, ErrorCode.NONE)])
def test_push_and_get_before_the_interval_is_over_are_throttled(cluster, client, late_ms, error):
    cluster.advance(INTERVAL_MS - 1)
    assert client.push() is ErrorCode.NONE, "the first one after a get may come at any time"
    cluster.advance(INTERVAL_MS + late_ms)
    assert client.push() is error
    assert Client(cluster).get().error_code == ErrorCode.NONE
    assert client.get().error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED


def test_terminating_push_may_be_early_and_ends_all_pushes(cluster, client):
    assert client.push() is ErrorCode.NONE
    assert client.push(terminating=True) is ErrorCode.NONE
    cluster.advance(2 * INTERVAL_MS)
    assert client.push() is ErrorCode.INVALID_REQUEST
    assert [status.terminated for status in cluster.client_metrics()] == [True]


def test_former_subscription_is_refused_and_the_new_one_returned_at_once(cluster, client):
    former = client.subscription
    subscribe(cluster, "more", metrics="org.apache.kafka.consumer.")
    assert client.push() is ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    assert client.get().error_code == ErrorCode.NONE
    assert client.subscription.subscription_id != former.subscription_id
    assert client.subscription.client_instance_id == former.client_instance_id
    assert client.push() is ErrorCode.THROTTLING_QUOTA_EXCEEDED, "the refused push counts for the interval"
    cluster.advance(INTERVAL_MS)
    assert client.push() is ErrorCode.NONE


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"client_instance_id": bytes(16)}, ErrorCode.INVALID_REQUEST),
        ({"compression_type": 9}, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        ({"metrics": TOO_LARGE}, ErrorCode.TELEMETRY_TOO_LARGE),
        (
            {"metrics": compress(CompressionCodec.GZIP, TOO_LARGE), "compression_type": 1},
            ErrorCode.INVALID_RECORD,
        ),
        ({"metrics": b"\x0a\x7f"}, ErrorCode.INVALID_RECORD),
        ({"metrics": b"no gzip", "compression_type": 1}, ErrorCode.INVALID_RECORD),
    ],
)
def test_invalid_push_is_refused(cluster, client, changes, error):
    assert client.push(**changes) is error
    assert cluster.client_metrics() == ()


@pytest.mark.parametrize("size", range(1, len(metrics_data("n", 1.0, a="b"))))
def test_cut_message_is_refused_and_never_read_beyond_its_end(size):
    with pytest.raises(ValueError, match=r"longer than its message|truncated"):
        parse_metrics(metrics_data("n", 1.0, a="b")[:size])
