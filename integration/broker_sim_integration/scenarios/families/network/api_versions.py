"""Each version of each served API. Kafka: ApiVersionManager, ApiVersionsResponse."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from broker_sim.protocol import messages
from broker_sim.protocol.api_keys import ApiKey
from broker_sim_integration.clients.broker_client import Append, batch_of, produce_request
from broker_sim_integration.observations import Observation, at_once
from broker_sim_integration.scenarios.helpers.api_requests import REQUESTS, Subject
from broker_sim_integration.scenarios.helpers.observe import answer_or_end, seen_in, whole_response
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from broker_sim_integration.clients.broker_client import BrokerClient
    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest

SOFTWARE_VERSION = 3
UNORDERED = ("topics", "partitions", "responses", "results")
_HEADER = struct.Struct(">ihhih")


class Range(NamedTuple):
    """The versions of an API that a broker advertises."""

    first: int
    last: int


@scenario(topology="none")
def the_advertised_apis_and_features_are_kafkas(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Whole ApiVersions responses of each version: the version range of each API, and the features."""
    client = cluster.connect(cluster.first)
    for version in range(_ranges(cluster)[ApiKey.API_VERSIONS].last + 1):
        reply = client.request(_api_versions(version), version, messages.ApiVersionsResponse)
        yield whole_response(f"version {version}", cluster, reply, at_once())


@scenario(topology="none")
def clients_have_to_name_their_software(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """INVALID_REQUEST without APIs for an empty or malformed name or version, since version 3."""
    client = cluster.connect(cluster.first)
    names = ("good", "", "-", "a-", ".a", "a b", "a.b-c", "\u00e4", "x" * 300)
    for name in names:
        for step, named in (("name", (name, "1")), ("version", ("c", name))):
            request = messages.ApiVersionsRequest(*named)
            reply = client.request(request, 4, messages.ApiVersionsResponse)
            answer = reply.message
            told = {"error_code": answer.error_code, "has_apis": bool(answer.api_keys)}
            yield seen_in(f"{step} {name[:8]!r}", reply, **told)


@scenario(topology="none")
def newer_clients_are_told_what_there_is(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """ApiVersions above the range gets UNSUPPORTED_VERSION in version 0; the connection stays open."""
    for version in (_ranges(cluster)[ApiKey.API_VERSIONS].last + 1, 99, 32767, -1):
        client = cluster.connect(cluster.first)
        frame = _frame(ApiKey.API_VERSIONS, version)
        pending = client.send_frame(
            frame, api_key=ApiKey.API_VERSIONS, version=0, expected=messages.ApiVersionsResponse
        )
        reply = pending.result()
        yield whole_response(f"version {version}", cluster, reply, at_once())
        reply = client.request(_api_versions(0), 0, messages.ApiVersionsResponse)
        yield seen_in(f"version {version}, then 0", reply, error_code=reply.message.error_code)


@scenario(topology="none")
def versions_just_outside_end_the_connection(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """One version below and one above the range, of each API except ApiVersions: closed without a response."""
    ranges = _ranges(cluster)
    for key in (ApiKey.PRODUCE, *REQUESTS):
        for version in (ranges[key].first - 1, ranges[key].last + 1):
            pending = cluster.connect(cluster.first).send_frame(
                _frame(key, version), api_key=key, version=version, expected=messages.ApiVersionsResponse
            )
            yield answer_or_end(f"{key.name} {version}", pending, at_once())


@scenario(topology="none")
def produce_advertises_versions_that_it_does_not_serve(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The range includes 0 because librdkafka needs it; versions 0 to 2 close the connection nevertheless."""
    for version in range(3):
        pending = cluster.connect(cluster.first).send_frame(
            _frame(ApiKey.PRODUCE, version), api_key=ApiKey.PRODUCE, version=version, expected=messages.ProduceResponse
        )
        yield answer_or_end(f"version {version}", pending, at_once())


@scenario(topology="1 partition x 1 replica")
def every_version_of_produce_and_fetch_answers_alike(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Whole responses: an append, then a fetch, by topic name or by id, depending on the version."""
    topic = cluster.topics.create([cluster.first])
    client = cluster.connect(cluster.first)
    for version in range(3, _ranges(cluster)[ApiKey.PRODUCE].last + 1):
        request = produce_request([Append(topic, 0, batch_of([b"v"]))], acks=-1, timeout_ms=1000, version=version)
        reply = client.request(request, version, messages.ProduceResponse)
        yield whole_response(f"PRODUCE {version}", cluster, reply, at_once())
    yield from _sweep(cluster, [ApiKey.FETCH])


@scenario(topology="1 partition x 1 replica")
def every_version_of_the_offset_apis_answers_alike(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """ListOffsets, OffsetForLeaderEpoch and DeleteRecords for a log with records."""
    keys = (ApiKey.LIST_OFFSETS, ApiKey.OFFSET_FOR_LEADER_EPOCH, ApiKey.DELETE_RECORDS)
    yield from _sweep(cluster, keys)


@scenario(topology="1 partition x 1 replica")
def every_version_of_the_topic_apis_answers_alike(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Metadata, CreateTopics, DeleteTopics, CreatePartitions and similar APIs."""
    yield from _sweep(
        cluster,
        (
            ApiKey.METADATA,
            ApiKey.CREATE_TOPICS,
            ApiKey.CREATE_PARTITIONS,
            ApiKey.DESCRIBE_TOPIC_PARTITIONS,
            ApiKey.ELECT_LEADERS,
            ApiKey.ALTER_PARTITION_REASSIGNMENTS,
            ApiKey.LIST_PARTITION_REASSIGNMENTS,
            ApiKey.DELETE_TOPICS,
        ),
    )


@scenario(topology="1 partition x 1 replica")
def every_version_of_the_other_apis_answers_alike(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Configurations, the cluster, producer ids."""
    cluster.clients.producer_id()  # a broker requests its first block of ids when a client asks for one
    yield from _sweep(
        cluster,
        (
            ApiKey.DESCRIBE_CONFIGS,
            ApiKey.ALTER_CONFIGS,
            ApiKey.INCREMENTAL_ALTER_CONFIGS,
            ApiKey.DESCRIBE_CLUSTER,
            ApiKey.INIT_PRODUCER_ID,
        ),
    )


def _sweep(cluster: ClusterUnderTest, keys: Iterable[ApiKey]) -> Iterator[Observation]:
    """Send each API in each version that the broker advertises, for a topic with three records."""
    topic = cluster.topics.create([cluster.first])
    client = cluster.connect(cluster.first)
    client.produce(topic, b"a", b"b")
    client.produce(topic, b"c")
    ranges = _ranges(cluster)
    for key in keys:
        request_of, response = REQUESTS[key]
        for version in range(ranges[key].first, ranges[key].last + 1):
            request = request_of(Subject(cluster, topic, f"{key.name}.{version}"), version)
            reply = client.request(request, version, response)
            yield whole_response(f"{key.name} {version}", cluster, reply, unordered=UNORDERED)


def _ranges(cluster: ClusterUnderTest) -> dict[int, Range]:
    """Return the version ranges that the first broker advertises, by API key."""
    return _ranges_of(cluster.clients.ask(cluster.first))


def _ranges_of(client: BrokerClient) -> dict[int, Range]:
    reply = client.request(_api_versions(4), 4, messages.ApiVersionsResponse)
    return {api.api_key: Range(api.min_version, api.max_version) for api in reply.message.api_keys}


def _api_versions(version: int) -> messages.ApiVersionsRequest:
    if version < SOFTWARE_VERSION:
        return messages.ApiVersionsRequest()
    return messages.ApiVersionsRequest("broker-sim", "1.0")


def _frame(api_key: int, version: int) -> bytes:
    """Return a request without a body; its header has no client id and no tagged fields."""
    return _HEADER.pack(_HEADER.size - 4 + 1, api_key, version, 0, -1) + b"\0"
