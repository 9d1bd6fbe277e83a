"""The response that answers a whole request with one error; mirrors `AbstractRequest.getErrorResponse`.

An API whose response has an error for all of it gets that one. Others tell the error of each thing that
the request names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from broker_sim.errors import ERROR_TEXTS, ErrorCode
from broker_sim.protocol import messages
from broker_sim.protocol.api_keys import ApiKey, response_class
from broker_sim.protocol.special_values import NO_NODE
from broker_sim.share.state_apis import DELETE, INITIALIZE, READ, SUMMARY, WRITE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from broker_sim.share.state_apis import StateApi

    Answer = Callable[[Any, int, ErrorCode], Any]

Row = TypeVar("Row")

COORDINATORS_VERSION = 4
TRANSACTIONS_VERSION = 4
ELECTION_ERROR_VERSION = 1


class _Rows(NamedTuple):
    """How the error of each thing that a request names is told."""

    asked: str
    """The field of the request that names them."""
    told: str
    """The field of the response that has a row for each of them."""
    row: str
    copied: Sequence[str]
    """The row's fields that say which it is; the names themselves have none to be copied from."""
    message: Callable[[ErrorCode], str | None] | None = None
    """Returns the text of an error, null or not; None for a row without such a field, or whose default is null."""

    def fill(self, response: Any, request: Any, error_code: ErrorCode) -> list[Any]:
        """Return the rows of the response."""
        make = getattr(response, self.row)
        told = {} if self.message is None else {"error_message": self.message(error_code)}
        return [
            make(
                error_code=error_code,
                **told,
                **{name: item if isinstance(item, str) else getattr(item, name) for name in self.copied},
            )
            for item in getattr(request, self.asked)
        ]


def error_answer(api: ApiKey, request: Any, api_version: int, error_code: ErrorCode) -> Any:
    """Return the response to the request in that version; None if the API has no answer of one error.

    Those are APIs whose handlers answer each partition or topic, but for DescribeProducers and CreateTopics.
    """
    answer = _ANSWERS.get(api)
    if answer is not None:
        return answer(request, api_version, error_code)
    response: Any = response_class(api)()
    rows = _ROWS.get(api)
    if rows is not None:
        setattr(response, rows.told, rows.fill(response, request, error_code))
        return response
    if not hasattr(response, "error_code"):
        return None
    response.error_code = error_code
    if hasattr(response, "error_message"):
        response.error_message = None
    return response


def _no_text(_: ErrorCode) -> None:
    """Return what an error without a message of its own has as text; mirrors `ApiError.fromThrowable`."""


def _general_text(error_code: ErrorCode) -> str | None:
    """Return what Kafka says about the error wherever it happens; None where that is not known here."""
    return ERROR_TEXTS.get(error_code)


def _find_coordinator(
    request: messages.FindCoordinatorRequest, api_version: int, error_code: ErrorCode
) -> messages.FindCoordinatorResponse:
    response, text = messages.FindCoordinatorResponse, _general_text(error_code)
    if api_version < COORDINATORS_VERSION:
        return response(error_code=error_code, error_message=text, node_id=NO_NODE, port=NO_NODE)
    return response(
        coordinators=[
            response.Coordinator(key, NO_NODE, "", NO_NODE, error_code, text) for key in request.coordinator_keys
        ]
    )


def _by_topic(
    make_topic: Callable[[str, list[Any]], Row],
    make_partition: Callable[[int, ErrorCode], Any],
    asked: Iterable[tuple[str, Sequence[int]]],
    error_code: ErrorCode,
) -> list[Row]:
    """Return a row for each topic that is asked for, with the error of each of its partitions."""
    return [make_topic(name, [make_partition(number, error_code) for number in numbers]) for name, numbers in asked]


def _add_partitions_to_txn(
    request: messages.AddPartitionsToTxnRequest, api_version: int, error_code: ErrorCode
) -> messages.AddPartitionsToTxnResponse:
    response = messages.AddPartitionsToTxnResponse
    if api_version >= TRANSACTIONS_VERSION:
        return response(error_code=error_code)
    return response(
        results_by_topic_v3_and_below=_by_topic(
            response.AddPartitionsToTxnTopicResult,
            response.AddPartitionsToTxnPartitionResult,
            [(topic.name, topic.partitions) for topic in request.v3_and_below_topics],
            error_code,
        )
    )


def _write_txn_markers(
    request: messages.WriteTxnMarkersRequest, _: int, error_code: ErrorCode
) -> messages.WriteTxnMarkersResponse:
    response = messages.WriteTxnMarkersResponse
    return response(
        markers=[
            response.WritableTxnMarkerResult(
                marker.producer_id,
                _by_topic(
                    response.WritableTxnMarkerTopicResult,
                    response.WritableTxnMarkerPartitionResult,
                    [(topic.name, topic.partition_indexes) for topic in marker.topics],
                    error_code,
                ),
            )
            for marker in request.markers
        ]
    )


def _alter_replica_log_dirs(
    request: messages.AlterReplicaLogDirsRequest, _: int, error_code: ErrorCode
) -> messages.AlterReplicaLogDirsResponse:
    response = messages.AlterReplicaLogDirsResponse
    return response(
        results=_by_topic(
            response.AlterReplicaLogDirTopicResult,
            response.AlterReplicaLogDirPartitionResult,
            [(topic.name, topic.partitions) for each in request.dirs for topic in each.topics],
            error_code,
        )
    )


def _elect_leaders(
    request: messages.ElectLeadersRequest, api_version: int, error_code: ErrorCode
) -> messages.ElectLeadersResponse:
    response = messages.ElectLeadersResponse
    return response(
        error_code=error_code if api_version >= ELECTION_ERROR_VERSION else 0,
        replica_election_results=[
            response.ReplicaElectionResult(
                topic.topic,
                [response.PartitionResult(number, error_code, error_message=None) for number in topic.partitions],
            )
            for topic in request.topic_partitions or ()
        ],
    )


def _alter_partition_reassignments(
    request: messages.AlterPartitionReassignmentsRequest, _: int, error_code: ErrorCode
) -> messages.AlterPartitionReassignmentsResponse:
    response = messages.AlterPartitionReassignmentsResponse
    return response(
        error_code=error_code,
        error_message=None,
        responses=[
            response.ReassignableTopicResponse(
                topic.name,
                [
                    response.ReassignablePartitionResponse(partition.partition_index, error_code, error_message=None)
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )


def _list_partition_reassignments(
    request: messages.ListPartitionReassignmentsRequest, _: int, error_code: ErrorCode
) -> messages.ListPartitionReassignmentsResponse:
    response = messages.ListPartitionReassignmentsResponse
    return response(
        error_code=error_code,
        error_message=None,
        topics=[
            response.OngoingTopicReassignment(
                topic.name, [response.OngoingPartitionReassignment(number) for number in topic.partition_indexes]
            )
            for topic in request.topics or ()
        ],
    )


def _describe_quorum(
    _request: messages.DescribeQuorumRequest, _: int, error_code: ErrorCode
) -> messages.DescribeQuorumResponse:
    return messages.DescribeQuorumResponse(error_code, _general_text(error_code))


def _alter_user_scram_credentials(
    request: messages.AlterUserScramCredentialsRequest, _: int, error_code: ErrorCode
) -> messages.AlterUserScramCredentialsResponse:
    response = messages.AlterUserScramCredentialsResponse
    users = dict.fromkeys(each.name for asked in (request.deletions, request.upsertions) for each in asked)
    return response(results=[response.AlterUserScramCredentialsResult(user, error_code, None) for user in users])


def _alter_client_quotas(
    request: messages.AlterClientQuotasRequest, _: int, error_code: ErrorCode
) -> messages.AlterClientQuotasResponse:
    response = messages.AlterClientQuotasResponse
    return response(
        entries=[
            response.EntryData(
                error_code,
                _general_text(error_code),
                [response.EntityData(part.entity_type, part.entity_name) for part in entry.entity],
            )
            for entry in request.entries
        ]
    )


def _describe_producers(
    request: messages.DescribeProducersRequest, _: int, error_code: ErrorCode
) -> messages.DescribeProducersResponse:
    response = messages.DescribeProducersResponse
    return response(
        topics=_by_topic(
            response.TopicResponse,
            response.PartitionResponse,
            [(topic.name, topic.partition_indexes) for topic in request.topics],
            error_code,
        )
    )


def _share_state(api: StateApi, text_of: Callable[[ErrorCode], str | None]) -> Answer:
    """Return what answers a request about the state of share partitions."""

    def answer(request: Any, _: int, error_code: ErrorCode) -> Any:
        return api.failed_response(request, error_code, text_of(error_code))

    return answer


def _describe_share_group_offsets(
    request: messages.DescribeShareGroupOffsetsRequest, _: int, error_code: ErrorCode
) -> messages.DescribeShareGroupOffsetsResponse:
    response = messages.DescribeShareGroupOffsetsResponse
    text = _general_text(error_code)
    return response(
        groups=[
            response.DescribeShareGroupOffsetsResponseGroup(asked.group_id, error_code=error_code, error_message=text)
            for asked in request.groups
        ]
    )


def _with_text(api: ApiKey) -> Answer:
    """Return what answers a request whose response has one error, with its text."""

    def answer(_request: Any, _version: int, error_code: ErrorCode) -> Any:
        response: Any = response_class(api)()
        response.error_code, response.error_message = error_code, _general_text(error_code)
        return response

    return answer


_RESOURCE = ("resource_type", "resource_name")
_ROWS: Mapping[ApiKey, _Rows] = {
    ApiKey.DESCRIBE_GROUPS: _Rows("groups", "groups", "DescribedGroup", ["group_id"]),
    ApiKey.CONSUMER_GROUP_DESCRIBE: _Rows("group_ids", "groups", "DescribedGroup", ["group_id"]),
    ApiKey.SHARE_GROUP_DESCRIBE: _Rows("group_ids", "groups", "DescribedGroup", ["group_id"]),
    ApiKey.STREAMS_GROUP_DESCRIBE: _Rows("group_ids", "groups", "DescribedGroup", ["group_id"]),
    ApiKey.DELETE_GROUPS: _Rows("groups_names", "results", "DeletableGroupResult", ["group_id"]),
    ApiKey.DESCRIBE_TRANSACTIONS: _Rows(
        "transactional_ids", "transaction_states", "TransactionState", ["transactional_id"]
    ),
    ApiKey.DESCRIBE_CONFIGS: _Rows("resources", "results", "DescribeConfigsResult", _RESOURCE, _general_text),
    ApiKey.ALTER_CONFIGS: _Rows("resources", "responses", "AlterConfigsResourceResponse", _RESOURCE, _no_text),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _Rows(
        "resources", "responses", "AlterConfigsResourceResponse", _RESOURCE, _no_text
    ),
    ApiKey.CREATE_TOPICS: _Rows("topics", "topics", "CreatableTopicResult", ["name"], _no_text),
    ApiKey.CREATE_ACLS: _Rows("creations", "results", "AclCreationResult", (), _no_text),
    ApiKey.DELETE_ACLS: _Rows("filters", "filter_results", "DeleteAclsFilterResult", (), _no_text),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: _Rows("topics", "topics", "DescribeTopicPartitionsResponseTopic", ["name"]),
}
_ANSWERS: Mapping[ApiKey, Answer] = {
    ApiKey.FIND_COORDINATOR: _find_coordinator,
    ApiKey.ADD_PARTITIONS_TO_TXN: _add_partitions_to_txn,
    ApiKey.WRITE_TXN_MARKERS: _write_txn_markers,
    ApiKey.ALTER_REPLICA_LOG_DIRS: _alter_replica_log_dirs,
    ApiKey.ELECT_LEADERS: _elect_leaders,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: _alter_partition_reassignments,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: _list_partition_reassignments,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: _alter_user_scram_credentials,
    ApiKey.ALTER_CLIENT_QUOTAS: _alter_client_quotas,
    ApiKey.DESCRIBE_PRODUCERS: _describe_producers,
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: _share_state(INITIALIZE, _no_text),
    ApiKey.READ_SHARE_GROUP_STATE: _share_state(READ, _general_text),
    ApiKey.WRITE_SHARE_GROUP_STATE: _share_state(WRITE, _general_text),
    ApiKey.DELETE_SHARE_GROUP_STATE: _share_state(DELETE, _no_text),
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: _share_state(SUMMARY, _general_text),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: _describe_share_group_offsets,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: _with_text(ApiKey.ALTER_SHARE_GROUP_OFFSETS),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: _with_text(ApiKey.DELETE_SHARE_GROUP_OFFSETS),
    ApiKey.DESCRIBE_QUORUM: _describe_quorum,
}
"""Those whose rows are nested, or differ between versions."""
