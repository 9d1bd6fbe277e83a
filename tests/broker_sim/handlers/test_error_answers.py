"""Errors stand where Kafka puts them: what its own classes answer, and what an injected fault is told as."""

import pytest

from broker_sim import Fault, VirtualCluster
from broker_sim.errors import ErrorCode
from broker_sim.handlers.error_answers import answer_version, whole_answer
from broker_sim.handlers.error_table import Place, response_error
from broker_sim.protocol import messages
from broker_sim.protocol.api_keys import ApiKey, response_class
from broker_sim.protocol.codec import decode, encode
from tests.broker_sim.handlers import kafka_broker_errors
from tests.broker_sim.handlers.error_fields import FETCH_SESSION_ERRORS, KAFKA, expected_fields, told_errors
from tests.broker_sim.handlers.kafka_error_responses import (
    ERROR,
    RECORD,
    kafka_responses,
    record_lines,
)
from tests.broker_sim.handlers.sample_requests import (
    error_places,
    in_any_order,
    sample_request,
    served_versions,
)

VERSIONS = served_versions()
APIS = list(dict.fromkeys(api for api, _ in VERSIONS))
NEED_SESSIONS = (ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE)
"""APIs whose errors of partitions need a member with a session: `share/test_share_faults.py` has them."""


def name_of(api):
    return api.api_name


def same_bytes(api, version, answer, theirs):
    """Whether an answer is Kafka's response, but for the order of rows."""
    cls = response_class(api)
    ours = decode(cls, version, b"".join(encode(answer, version)))
    return in_any_order(ours) == in_any_order(decode(cls, version, theirs))


@pytest.mark.parametrize(("api", "version"), VERSIONS, ids=lambda value: getattr(value, "api_name", value))
def test_request_that_fails_is_answered_as_by_kafkas_request_class(api, version):
    answer = whole_answer(api, sample_request(api, version), version, ERROR)
    assert same_bytes(api, version, answer, KAFKA[api, version][1])


@pytest.mark.real_kafka
def test_kafkas_request_classes_still_answer_as_recorded_and_every_error_alike(kafka_class_files):

    assert RECORD.read_text().splitlines() == record_lines(kafka_class_files)
    cases = [(api, version, error) for api, version in VERSIONS for error in told_errors(api)]
    for (api, version, error), theirs in zip(cases, kafka_responses(kafka_class_files, cases), strict=True):
        if error.name not in FETCH_SESSION_ERRORS:
            answer = whole_answer(api, sample_request(api, version), version, error)
            assert same_bytes(api, version, answer, theirs), (api, version, error)


def ask(cluster, client, request, version):
    """Return the response."""
    pending = client.send(1, request, version)
    cluster.run_until(lambda: pending.done)
    return pending.response


@pytest.fixture(scope="module")
def cluster():
    topics = [f"{field}-{number}:3:1" for field in ("name", "topic") for number in (0, 1)]
    with VirtualCluster(1, topics=topics) as made:
        client = made.client("shop")
        commit = messages.OffsetCommitRequest
        find = messages.FindCoordinatorRequest(key_type=0, coordinator_keys=["group_id-0"])
        while ask(made, client, find, 4).coordinators[0].error_code:
            made.advance(100)
        offset = commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
        topic = commit.OffsetCommitRequestTopic(name="topic-0", partitions=[offset])
        ask(made, client, commit("group_id-0", -1, "", topics=[topic]), 8)
        yield made


def told_cases(api):
    """Return the versions of an API with the errors that each tells."""
    return [
        (version, error)
        for version in (version for each, version in VERSIONS if each is api)
        for error in told_errors(api)
        if response_error(api, version, error) and answer_version(api, version, error) == version
    ]


@pytest.mark.parametrize("api", APIS, ids=name_of)
def test_injected_error_is_in_kafkas_field_in_each_version(cluster, api):
    client = cluster.client("shop")
    for version, error in told_cases(api):
        told = response_error(api, version, error)
        if api in NEED_SESSIONS and told.place is not Place.WHOLE:
            continue
        with cluster.inject(Fault(api=api, error=error)) as fault:
            answer = ask(cluster, client, sample_request(api, version), version)
        where = f"{api.api_name} {version} {error.name}"
        fields = {(field, told.error_code) for field in expected_fields(api, version, error)}
        assert error_places(answer) == fields, where
        assert fault.hits == 1, where


def test_errors_of_running_brokers_are_in_the_table_at_their_places():
    misplaced = [
        (api.api_name, version, field, error.name)
        for api, version, field, error in kafka_broker_errors.recorded()
        if field not in expected_fields(api, version, error)
    ]
    assert not misplaced


@pytest.mark.parametrize("api", APIS, ids=name_of)
def test_error_that_an_api_cannot_return_is_refused_with_a_list(api):
    untold = next(error for error in ErrorCode if error and error not in told_errors(api))
    with pytest.raises(ValueError, match=f"{api.api_name} cannot return {untold.name}; it returns .*UNKNOWN"):
        Fault(api=api, error=untold)


def test_error_unknown_to_the_version_spares_the_request(cluster):
    fault = cluster.inject(Fault(api="Metadata", error="REBOOTSTRAP_REQUIRED", count=1))
    client = cluster.client("shop")
    assert error_places(ask(cluster, client, messages.MetadataRequest(topics=None), 12)) == set()
    assert (fault.hits, fault.remaining) == (0, 1)
    assert error_places(ask(cluster, client, messages.MetadataRequest(topics=None), 13)) == {
        ("error_code", ErrorCode.REBOOTSTRAP_REQUIRED)
    }
    assert (fault.hits, fault.remaining) == (1, 0)


def test_request_error_answers_the_whole_request_despite_a_topic(cluster):
    with cluster.inject(Fault(api="OffsetFetch", topic="name-0", error="NOT_COORDINATOR")) as fault:
        answer = ask(cluster, cluster.client("shop"), sample_request(ApiKey.OFFSET_FETCH, 8), 8)
    assert [(group.group_id, group.error_code, group.topics) for group in answer.groups] == [
        (group, ErrorCode.NOT_COORDINATOR, []) for group in ("group_id-0", "group_id-1")
    ]
    assert fault.hits == 1
