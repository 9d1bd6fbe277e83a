"""One error for a whole request, for every API that is served and in every version."""

import pytest

from broker_sim.errors import ErrorCode
from broker_sim.handlers import ApiTable
from broker_sim.handlers.faults import Fault
from broker_sim.handlers.faults.error_answers import error_answer
from broker_sim.handlers.faults.targets import PARTITIONS, TOPICS
from broker_sim.protocol import messages
from broker_sim.protocol.api_keys import ApiKey, request_class, response_class
from broker_sim.protocol.headers import decode_response, encode_response
from broker_sim.share.share_state import SharePartitionKey, WrittenState
from broker_sim.share.state_apis import (
    DELETE,
    INITIALIZE,
    READ,
    STATE_APIS,
    SUMMARY,
    WRITE,
    InitialState,
    NoArguments,
    ReaderEpoch,
)

ERROR = ErrorCode.COORDINATOR_NOT_AVAILABLE
KEY = SharePartitionKey("g", bytes(range(16)), 3)
TABLE = ApiTable()
AT_THE_GATE = [api for api in ApiKey if TABLE.get(api) and api not in PARTITIONS and api not in TOPICS]
BY_HANDLERS = [ApiKey.CREATE_TOPICS, ApiKey.DESCRIBE_PRODUCERS]
"""Their handlers tell the error of each topic or partition; an answer that does not fit is one error all the same."""


def txn(*, name="t", numbers=(3, 4)):
    return messages.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name, list(numbers))


REQUESTS = {
    ApiKey.FIND_COORDINATOR: messages.FindCoordinatorRequest(key="g", coordinator_keys=["g"]),
    ApiKey.DESCRIBE_GROUPS: messages.DescribeGroupsRequest(["g"]),
    ApiKey.CONSUMER_GROUP_DESCRIBE: messages.ConsumerGroupDescribeRequest(["g"]),
    ApiKey.SHARE_GROUP_DESCRIBE: messages.ShareGroupDescribeRequest(["g"]),
    ApiKey.STREAMS_GROUP_DESCRIBE: messages.StreamsGroupDescribeRequest(["g"]),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: messages.DescribeShareGroupOffsetsRequest(
        [messages.DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup("g")]
    ),
    ApiKey.DELETE_GROUPS: messages.DeleteGroupsRequest(["g"]),
    ApiKey.ALTER_CLIENT_QUOTAS: messages.AlterClientQuotasRequest([messages.AlterClientQuotasRequest.EntryData()]),
    ApiKey.ADD_PARTITIONS_TO_TXN: messages.AddPartitionsToTxnRequest(
        v3_and_below_topics=[txn()],
        transactions=[messages.AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction("x", topics=[txn()])],
    ),
    ApiKey.WRITE_TXN_MARKERS: messages.WriteTxnMarkersRequest(
        [
            messages.WriteTxnMarkersRequest.WritableTxnMarker(
                7, topics=[messages.WriteTxnMarkersRequest.WritableTxnMarkerTopic("t", [3])]
            )
        ]
    ),
    ApiKey.DESCRIBE_TRANSACTIONS: messages.DescribeTransactionsRequest(["x"]),
    ApiKey.DESCRIBE_CONFIGS: messages.DescribeConfigsRequest(
        [messages.DescribeConfigsRequest.DescribeConfigsResource(2, "t")]
    ),
    ApiKey.ALTER_CONFIGS: messages.AlterConfigsRequest([messages.AlterConfigsRequest.AlterConfigsResource(2, "t")]),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: messages.IncrementalAlterConfigsRequest(
        [messages.IncrementalAlterConfigsRequest.AlterConfigsResource(2, "t")]
    ),
    ApiKey.ALTER_REPLICA_LOG_DIRS: messages.AlterReplicaLogDirsRequest(
        [
            messages.AlterReplicaLogDirsRequest.AlterReplicaLogDir(
                "/d", [messages.AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic("t", [3])]
            )
        ]
    ),
    ApiKey.ELECT_LEADERS: messages.ElectLeadersRequest(
        topic_partitions=[messages.ElectLeadersRequest.TopicPartitions("t", [3])]
    ),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: messages.AlterUserScramCredentialsRequest(
        [messages.AlterUserScramCredentialsRequest.ScramCredentialDeletion("u", 1)]
    ),
    ApiKey.CREATE_ACLS: messages.CreateAclsRequest(
        [messages.CreateAclsRequest.AclCreation(2, "t", 3, "User:a", "*", 3, 3)]
    ),
    ApiKey.CREATE_TOPICS: messages.CreateTopicsRequest([messages.CreateTopicsRequest.CreatableTopic("t", 1, 1)]),
    ApiKey.DESCRIBE_PRODUCERS: messages.DescribeProducersRequest(
        [messages.DescribeProducersRequest.TopicRequest("t", [0])]
    ),
    ApiKey.DELETE_ACLS: messages.DeleteAclsRequest(
        [messages.DeleteAclsRequest.DeleteAclsFilter(1, None, 1, None, None, 1, 1)]
    ),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: messages.DescribeTopicPartitionsRequest(
        [messages.DescribeTopicPartitionsRequest.TopicRequest("t")]
    ),
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: INITIALIZE.request_of("g", [(KEY, InitialState(1, 2))]),
    ApiKey.READ_SHARE_GROUP_STATE: READ.request_of("g", [(KEY, ReaderEpoch(1))]),
    ApiKey.WRITE_SHARE_GROUP_STATE: WRITE.request_of("g", [(KEY, WrittenState(1, 2, 3, 4, ()))]),
    ApiKey.DELETE_SHARE_GROUP_STATE: DELETE.request_of("g", [(KEY, NoArguments())]),
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: SUMMARY.request_of("g", [(KEY, ReaderEpoch(1))]),
}


GENERAL_TEXT = "The server experienced an unexpected error when processing the request."
WITH_GENERAL_TEXT = {
    ApiKey.ALTER_CLIENT_QUOTAS,
    ApiKey.DESCRIBE_CONFIGS,
    ApiKey.DESCRIBE_QUORUM,
    ApiKey.FIND_COORDINATOR,
    ApiKey.READ_SHARE_GROUP_STATE,
    ApiKey.WRITE_SHARE_GROUP_STATE,
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS,
    ApiKey.DELETE_SHARE_GROUP_OFFSETS,
}
"""By `getErrorResponse` of their requests in Kafka 4.3.1; all others have null."""
WITHOUT_ERRORS = {(ApiKey.DESCRIBE_LOG_DIRS, 1), (ApiKey.DESCRIBE_LOG_DIRS, 2)}
"""Versions whose response has no error but those of directories: as in Kafka it has no directory then."""


def error_codes(value):
    """Return all error codes in a message, wherever they are."""
    if isinstance(value, list):
        return [code for item in value for code in error_codes(item)]
    names = getattr(type(value), "__slots__", ())
    found = []
    for name in names:
        if name.endswith("error_code"):
            found.append(getattr(value, name))
        else:
            found += error_codes(getattr(value, name))
    return found


@pytest.mark.parametrize("api", [*AT_THE_GATE, *BY_HANDLERS], ids=lambda api: api.api_name)
def test_client_reads_the_error_in_every_version(api):
    assert Fault(api=api, error=ERROR).error is ERROR
    served = TABLE.get(api)
    request = REQUESTS.get(api) or request_class(api)()
    for version in range(served.min_version, served.max_version + 1):
        answer = error_answer(api, request, version, ERROR)
        assert isinstance(answer, response_class(api))
        frame = memoryview(b"".join(encode_response(api, version, 1, answer))[4:])
        _, read = decode_response(api, version, frame)
        codes = error_codes(read)
        assert (ERROR in codes) == ((api, version) not in WITHOUT_ERRORS), version
        assert set(codes) <= {ERROR, 0}


def texts(value):
    """Return all error messages in a message, wherever they are."""
    if isinstance(value, list):
        return [text for item in value for text in texts(item)]
    found = []
    for name in getattr(type(value), "__slots__", ()):
        if name == "error_message":
            found.append(value.error_message)
        else:
            found += texts(getattr(value, name))
    return found


@pytest.mark.parametrize("api", AT_THE_GATE, ids=lambda api: api.api_name)
def test_an_error_without_a_message_has_kafkas_text_or_null(api):
    request = REQUESTS.get(api) or request_class(api)()
    version = 3 if api is ApiKey.FIND_COORDINATOR else TABLE.get(api).max_version
    told = set(texts(error_answer(api, request, version, ErrorCode.UNKNOWN_SERVER_ERROR)))
    assert told - {None} == ({GENERAL_TEXT} if api in WITH_GENERAL_TEXT else set())


TEXT = "The coordinator is not available."


def state_answer(api, text):
    """Return the answer of a share coordinator that has one error for two partitions."""
    row = api.response.PartitionResult
    rows = [row(number, error_code=ERROR, error_message=text) for number in (3, 4)]
    return api.response([api.response_topic(KEY.topic_id, rows)])


OFFSETS = messages.DescribeShareGroupOffsetsResponse
DESCRIBED = messages.ShareGroupDescribeResponse
SHARE_ANSWERS = {
    ApiKey.SHARE_GROUP_HEARTBEAT: messages.ShareGroupHeartbeatResponse(error_code=ERROR),
    ApiKey.SHARE_GROUP_DESCRIBE: DESCRIBED(
        groups=[DESCRIBED.DescribedGroup(ERROR, None, group) for group in ("g", "h", "g")]
    ),
    ApiKey.SHARE_FETCH: messages.ShareFetchResponse(error_code=ERROR),
    ApiKey.SHARE_ACKNOWLEDGE: messages.ShareAcknowledgeResponse(error_code=ERROR),
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: state_answer(INITIALIZE, None),
    ApiKey.READ_SHARE_GROUP_STATE: state_answer(READ, TEXT),
    ApiKey.WRITE_SHARE_GROUP_STATE: state_answer(WRITE, TEXT),
    ApiKey.DELETE_SHARE_GROUP_STATE: state_answer(DELETE, None),
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: state_answer(SUMMARY, TEXT),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: OFFSETS(
        groups=[OFFSETS.DescribeShareGroupOffsetsResponseGroup(group, [], ERROR, TEXT) for group in ("g", "h", "g")]
    ),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: messages.AlterShareGroupOffsetsResponse(error_code=ERROR, error_message=TEXT),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: messages.DeleteShareGroupOffsetsResponse(error_code=ERROR, error_message=TEXT),
}
"""The whole answers, by `getErrorResponse` of each request in Kafka 4.3.1."""


def share_request(api):
    """Return a request of two groups or partitions, one of them twice where each gets a row."""
    for state_api in STATE_APIS:
        if api == state_api.request.API_KEY:
            arguments = next(iter(state_api.arguments_of(REQUESTS[api])))[1]
            return state_api.request_of("g", [(KEY, arguments), (KEY._replace(partition=4), arguments)])
    if api is ApiKey.SHARE_GROUP_DESCRIBE:
        return messages.ShareGroupDescribeRequest(["g", "h", "g"])
    if api is ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS:
        request = messages.DescribeShareGroupOffsetsRequest
        return request([request.DescribeShareGroupOffsetsRequestGroup(group) for group in ("g", "h", "g")])
    return request_class(api)()


@pytest.mark.parametrize("api", SHARE_ANSWERS, ids=lambda api: api.api_name)
def test_api_of_share_groups_has_the_error_where_kafka_has_it(api):
    version = TABLE.get(api).max_version
    assert error_answer(api, share_request(api), version, ERROR) == SHARE_ANSWERS[api]


def test_share_partition_that_is_asked_for_twice_has_two_errors():
    request = READ.request_of("g", [(KEY, ReaderEpoch(1))])
    request.topics += request.topics
    answer = error_answer(ApiKey.READ_SHARE_GROUP_STATE, request, 0, ERROR)
    assert [[row.partition for row in topic.partitions] for topic in answer.results] == [[3], [3]]


def test_an_api_that_answers_each_partition_has_no_answer_of_one_error():
    assert error_answer(ApiKey.PRODUCE, messages.ProduceRequest(), 9, ERROR) is None


def test_old_find_coordinator_has_one_error_and_a_new_one_that_of_each_key():
    request = messages.FindCoordinatorRequest(key="g", coordinator_keys=["g", "h"])
    old = error_answer(ApiKey.FIND_COORDINATOR, request, 3, ERROR)
    assert (old.error_code, old.coordinators) == (ERROR, [])
    new = error_answer(ApiKey.FIND_COORDINATOR, request, 4, ErrorCode.UNKNOWN_SERVER_ERROR)
    assert [(each.key, each.error_code, each.error_message) for each in new.coordinators] == [
        ("g", ErrorCode.UNKNOWN_SERVER_ERROR, GENERAL_TEXT),
        ("h", ErrorCode.UNKNOWN_SERVER_ERROR, GENERAL_TEXT),
    ]
