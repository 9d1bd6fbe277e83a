"""The errors that each API tells, each with its versions and its subject: the only list of them.

An error is told of the request as a whole (`whole`), or of each thing that the request names (`each`): a partition,
a topic, a member. `error_answers.py` knows where the two stand in the response of each version. Mirrors
the handlers of `KafkaApis`, the error codes that Kafka's response classes list, and what a running 4.3.1 tells.

The notation, for a name of `ErrorCode`:

    UNKNOWN_MEMBER_ID                        in every version
    UNKNOWN_TOPIC_ID:13                      from version 13 on; before, the API cannot tell it
    PRODUCER_FENCED:4=INVALID_PRODUCER_EPOCH from version 4 on; before, clients are told the other one

Where an API tells an error in both ways, the one of each thing comes first: LeaveGroup tells UNKNOWN_MEMBER_ID
of each member from version 3 on, and of the request before. Every API can tell UNKNOWN_SERVER_ERROR.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.errors import ErrorCode
from broker_sim.protocol.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Mapping


class Place(Enum):
    """The subject of an error."""

    WHOLE = "the request"
    EACH = "each thing that the request names"
    ACKNOWLEDGEMENT = "each partition whose records a share fetch acknowledges"


class _Telling(NamedTuple):
    """The versions in which an API tells an error at one place."""

    since: int = 0
    """First version that tells it."""
    before: ErrorCode | None = None
    """The error that older versions are told instead, None where they cannot be told."""

    def told(self, error_code: ErrorCode, api_version: int) -> ErrorCode | None:
        """Return the error as clients of that version know it."""
        return error_code if api_version >= self.since else self.before


class ApiErrors:
    """The errors of one API."""

    __slots__ = ("acknowledgement", "each", "thing", "whole")

    def __init__(self, whole: str = "", *, each: str = "", thing: str = "", acknowledgement: str = "") -> None:
        self.whole = _parse(whole)
        self.each = _parse(each)
        self.acknowledgement = _parse(acknowledgement)
        self.thing = thing
        """The subject of the errors in `each`: "partition", "member"."""
        if ErrorCode.UNKNOWN_SERVER_ERROR not in self.each:
            self.whole.setdefault(ErrorCode.UNKNOWN_SERVER_ERROR, _Telling())

    def places(self) -> tuple[tuple[Place, Mapping[ErrorCode, _Telling]], ...]:
        """Return what is told where; the first place that tells an error is where it stands."""
        return (
            (Place.EACH, self.each),
            (Place.ACKNOWLEDGEMENT, self.acknowledgement),
            (Place.WHOLE, self.whole),
        )


class Told(NamedTuple):
    """An error as a client is told it."""

    error_code: ErrorCode
    place: Place


def find_told(api: ApiKey, api_version: int, error_code: ErrorCode) -> Told | None:
    """Return what an error is told as, and of what; None if the API does not tell it in that version."""
    for place, tellings in errors_of(api).places():
        telling = tellings.get(error_code)
        told = None if telling is None else telling.told(error_code, api_version)
        if told is not None:
            return Told(told, place)
    return None


def error_of_version(api: ApiKey, api_version: int, error_code: ErrorCode) -> ErrorCode:
    """Return the error that clients of an older version are told in place of one that they do not know."""
    told = find_told(api, api_version, error_code)
    return error_code if told is None else told.error_code


def check_error(api: ApiKey, error_code: ErrorCode, last_version: int) -> None:
    """Raise ValueError, with all that the API tells, for an error that it tells in no version."""
    if find_told(api, last_version, error_code) is None:
        raise ValueError(f"{api.api_name} cannot tell {error_code.name}; it tells {_names_of(errors_of(api))}")


def _names_of(errors: ApiErrors) -> str:
    of_things = [*errors.each, *errors.acknowledgement]
    names = sorted(error.name for error in errors.whole)
    if of_things:
        names.append(f"and of each {errors.thing} {', '.join(sorted(error.name for error in of_things))}")
    return ", ".join(names)


def _parse(text: str) -> dict[ErrorCode, _Telling]:
    tellings = {}
    for word in text.split():
        name, _, version = word.partition(":")
        since, _, before = version.partition("=")
        tellings[ErrorCode[name]] = _Telling(int(since or 0), ErrorCode[before] if before else None)
    return tellings


_COORDINATOR: Final = "COORDINATOR_LOAD_IN_PROGRESS COORDINATOR_NOT_AVAILABLE NOT_COORDINATOR"
_GROUP: Final = f"{_COORDINATOR} GROUP_AUTHORIZATION_FAILED INVALID_GROUP_ID"
_MODERN_GROUP: Final = f"{_GROUP} GROUP_ID_NOT_FOUND INVALID_REQUEST UNSUPPORTED_VERSION"
_MODERN_MEMBER: Final = (
    f"{_MODERN_GROUP} UNKNOWN_MEMBER_ID FENCED_MEMBER_EPOCH GROUP_MAX_SIZE_REACHED TOPIC_AUTHORIZATION_FAILED"
)
_CONTROLLER: Final = "NOT_CONTROLLER REQUEST_TIMED_OUT"
_CLUSTER: Final = "CLUSTER_AUTHORIZATION_FAILED"
_TRANSACTION: Final = (
    f"{_COORDINATOR} TRANSACTIONAL_ID_AUTHORIZATION_FAILED CONCURRENT_TRANSACTIONS INVALID_PRODUCER_EPOCH"
    " INVALID_PRODUCER_ID_MAPPING INVALID_REQUEST INVALID_TXN_STATE"
)
_LEADER: Final = (
    "UNKNOWN_SERVER_ERROR UNKNOWN_TOPIC_OR_PARTITION NOT_LEADER_OR_FOLLOWER TOPIC_AUTHORIZATION_FAILED"
    " KAFKA_STORAGE_ERROR"
)
_EPOCH: Final = "REPLICA_NOT_AVAILABLE FENCED_LEADER_EPOCH UNKNOWN_LEADER_EPOCH"
_TOPIC: Final = (
    f"{_CONTROLLER} UNKNOWN_SERVER_ERROR TOPIC_AUTHORIZATION_FAILED INVALID_TOPIC_EXCEPTION INVALID_REQUEST"
    " POLICY_VIOLATION"
)
_PLACEMENT: Final = "INVALID_PARTITIONS INVALID_REPLICATION_FACTOR INVALID_REPLICA_ASSIGNMENT"
_RESOURCE: Final = (
    "TOPIC_AUTHORIZATION_FAILED CLUSTER_AUTHORIZATION_FAILED GROUP_AUTHORIZATION_FAILED INVALID_CONFIG"
    " INVALID_REQUEST INVALID_TOPIC_EXCEPTION UNKNOWN_TOPIC_OR_PARTITION UNSUPPORTED_VERSION"
)
_TOKEN: Final = (
    f"{_CONTROLLER} DELEGATION_TOKEN_AUTH_DISABLED DELEGATION_TOKEN_REQUEST_NOT_ALLOWED"
    " DELEGATION_TOKEN_AUTHORIZATION_FAILED"
)
_FOUND_TOKEN: Final = f"{_TOKEN} DELEGATION_TOKEN_NOT_FOUND DELEGATION_TOKEN_OWNER_MISMATCH DELEGATION_TOKEN_EXPIRED"
_SHARE_MEMBER: Final = (
    "GROUP_AUTHORIZATION_FAILED INVALID_REQUEST UNSUPPORTED_VERSION UNKNOWN_SERVER_ERROR SHARE_SESSION_NOT_FOUND"
    " INVALID_SHARE_SESSION_EPOCH"
)
_SHARE_PARTITION: Final = (
    f"{_LEADER} UNKNOWN_TOPIC_ID COORDINATOR_NOT_AVAILABLE GROUP_ID_NOT_FOUND FENCED_STATE_EPOCH"
    " LEADER_NOT_AVAILABLE FENCED_LEADER_EPOCH"
)
_SHARE_STATE: Final = (
    f"{_COORDINATOR} {_CLUSTER} GROUP_ID_NOT_FOUND UNKNOWN_TOPIC_OR_PARTITION FENCED_STATE_EPOCH"
    " FENCED_LEADER_EPOCH INVALID_REQUEST"
)
_SHARE_OFFSETS: Final = f"{_MODERN_GROUP} NON_EMPTY_GROUP"
_SHARE_TOPIC: Final = "TOPIC_AUTHORIZATION_FAILED UNKNOWN_TOPIC_OR_PARTITION"

_TABLE: Final[Mapping[ApiKey, ApiErrors]] = {
    ApiKey.PRODUCE: ApiErrors(
        f"{_CLUSTER} INVALID_REQUIRED_ACKS TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
        each=f"{_LEADER} CORRUPT_MESSAGE LEADER_NOT_AVAILABLE REQUEST_TIMED_OUT MESSAGE_TOO_LARGE"
        " INVALID_TOPIC_EXCEPTION RECORD_LIST_TOO_LARGE NOT_ENOUGH_REPLICAS NOT_ENOUGH_REPLICAS_AFTER_APPEND"
        " INVALID_TIMESTAMP UNSUPPORTED_FOR_MESSAGE_FORMAT UNSUPPORTED_COMPRESSION_TYPE POLICY_VIOLATION"
        " INVALID_RECORD OUT_OF_ORDER_SEQUENCE_NUMBER DUPLICATE_SEQUENCE_NUMBER UNKNOWN_PRODUCER_ID"
        " INVALID_PRODUCER_EPOCH INVALID_PRODUCER_ID_MAPPING INVALID_TXN_STATE CONCURRENT_TRANSACTIONS"
        " TRANSACTION_ABORTABLE:11=INVALID_TXN_STATE UNKNOWN_TOPIC_ID:13",
        thing="partition",
    ),
    ApiKey.FETCH: ApiErrors(
        "FETCH_SESSION_ID_NOT_FOUND:7 INVALID_FETCH_SESSION_EPOCH:7 FETCH_SESSION_TOPIC_ID_ERROR:13",
        each="UNKNOWN_SERVER_ERROR UNKNOWN_TOPIC_OR_PARTITION NOT_LEADER_OR_FOLLOWER TOPIC_AUTHORIZATION_FAILED"
        " KAFKA_STORAGE_ERROR:6=NOT_LEADER_OR_FOLLOWER REPLICA_NOT_AVAILABLE FENCED_LEADER_EPOCH:9"
        " UNKNOWN_LEADER_EPOCH:9 OFFSET_OUT_OF_RANGE OFFSET_NOT_AVAILABLE CORRUPT_MESSAGE"
        " UNSUPPORTED_COMPRESSION_TYPE UNKNOWN_TOPIC_ID:13 INCONSISTENT_TOPIC_ID:13",
        thing="partition",
    ),
    ApiKey.LIST_OFFSETS: ApiErrors(
        each=f"{_LEADER} REPLICA_NOT_AVAILABLE FENCED_LEADER_EPOCH:4 UNKNOWN_LEADER_EPOCH:4 LEADER_NOT_AVAILABLE"
        " OFFSET_NOT_AVAILABLE:5=LEADER_NOT_AVAILABLE UNSUPPORTED_FOR_MESSAGE_FORMAT UNSUPPORTED_VERSION"
        " INVALID_REQUEST REQUEST_TIMED_OUT:10 CORRUPT_MESSAGE UNSUPPORTED_COMPRESSION_TYPE",
        thing="partition",
    ),
    ApiKey.METADATA: ApiErrors(
        "REBOOTSTRAP_REQUIRED:13",
        each="UNKNOWN_SERVER_ERROR UNKNOWN_TOPIC_OR_PARTITION LEADER_NOT_AVAILABLE INVALID_TOPIC_EXCEPTION"
        " TOPIC_AUTHORIZATION_FAILED INVALID_REPLICATION_FACTOR UNKNOWN_TOPIC_ID:10",
        thing="topic",
    ),
    ApiKey.OFFSET_COMMIT: ApiErrors(
        f"{_GROUP} ILLEGAL_GENERATION UNKNOWN_MEMBER_ID REBALANCE_IN_PROGRESS INVALID_COMMIT_OFFSET_SIZE"
        " REQUEST_TIMED_OUT UNSUPPORTED_VERSION FENCED_INSTANCE_ID:7 STALE_MEMBER_EPOCH:9 FENCED_MEMBER_EPOCH:9"
        " GROUP_ID_NOT_FOUND:9=ILLEGAL_GENERATION",
        each="UNKNOWN_TOPIC_OR_PARTITION TOPIC_AUTHORIZATION_FAILED OFFSET_METADATA_TOO_LARGE UNKNOWN_TOPIC_ID:10",
        thing="partition",
    ),
    ApiKey.OFFSET_FETCH: ApiErrors(
        f"{_GROUP} GROUP_ID_NOT_FOUND UNKNOWN_MEMBER_ID:9 STALE_MEMBER_EPOCH:9",
        each="UNKNOWN_TOPIC_OR_PARTITION TOPIC_AUTHORIZATION_FAILED UNSTABLE_OFFSET_COMMIT:7 UNKNOWN_TOPIC_ID:10",
        thing="partition",
    ),
    ApiKey.FIND_COORDINATOR: ApiErrors(
        f"COORDINATOR_NOT_AVAILABLE COORDINATOR_LOAD_IN_PROGRESS INVALID_REQUEST {_CLUSTER}"
        " GROUP_AUTHORIZATION_FAILED TRANSACTIONAL_ID_AUTHORIZATION_FAILED INVALID_GROUP_ID TRANSACTION_ABORTABLE:5"
    ),
    ApiKey.JOIN_GROUP: ApiErrors(
        f"{_GROUP} INCONSISTENT_GROUP_PROTOCOL UNKNOWN_MEMBER_ID INVALID_SESSION_TIMEOUT REBALANCE_IN_PROGRESS"
        " GROUP_MAX_SIZE_REACHED UNSUPPORTED_VERSION MEMBER_ID_REQUIRED:4 FENCED_INSTANCE_ID:5"
    ),
    # A heartbeat at a coordinator that is loading is answered without an error.
    ApiKey.HEARTBEAT: ApiErrors(
        "COORDINATOR_NOT_AVAILABLE NOT_COORDINATOR GROUP_AUTHORIZATION_FAILED INVALID_GROUP_ID ILLEGAL_GENERATION"
        " UNKNOWN_MEMBER_ID REBALANCE_IN_PROGRESS UNSUPPORTED_VERSION FENCED_INSTANCE_ID:3"
    ),
    ApiKey.LEAVE_GROUP: ApiErrors(
        f"{_GROUP} UNKNOWN_MEMBER_ID", each="UNKNOWN_MEMBER_ID:3 FENCED_INSTANCE_ID:3", thing="member"
    ),
    ApiKey.SYNC_GROUP: ApiErrors(
        f"{_GROUP} ILLEGAL_GENERATION UNKNOWN_MEMBER_ID REBALANCE_IN_PROGRESS UNSUPPORTED_VERSION"
        " FENCED_INSTANCE_ID:3 INCONSISTENT_GROUP_PROTOCOL:5"
    ),
    ApiKey.DESCRIBE_GROUPS: ApiErrors(f"{_GROUP} GROUP_ID_NOT_FOUND:6"),
    ApiKey.LIST_GROUPS: ApiErrors(f"COORDINATOR_LOAD_IN_PROGRESS COORDINATOR_NOT_AVAILABLE {_CLUSTER}"),
    ApiKey.DELETE_GROUPS: ApiErrors(f"{_GROUP} NON_EMPTY_GROUP GROUP_ID_NOT_FOUND"),
    ApiKey.OFFSET_DELETE: ApiErrors(
        f"{_GROUP} GROUP_ID_NOT_FOUND NON_EMPTY_GROUP",
        each="GROUP_SUBSCRIBED_TO_TOPIC TOPIC_AUTHORIZATION_FAILED UNKNOWN_TOPIC_OR_PARTITION",
        thing="partition",
    ),
    ApiKey.DELETE_RECORDS: ApiErrors(
        each=f"{_LEADER} OFFSET_OUT_OF_RANGE REQUEST_TIMED_OUT INVALID_TOPIC_EXCEPTION POLICY_VIOLATION",
        thing="partition",
    ),
    ApiKey.INIT_PRODUCER_ID: ApiErrors(
        f"{_TRANSACTION} {_CLUSTER} INVALID_TRANSACTION_TIMEOUT PRODUCER_FENCED:4=INVALID_PRODUCER_EPOCH"
        " TRANSACTION_ABORTABLE:5"
    ),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: ApiErrors(each=f"{_LEADER} {_EPOCH}", thing="partition"),
    ApiKey.ADD_PARTITIONS_TO_TXN: ApiErrors(
        f"{_CLUSTER}:4",
        each=f"{_TRANSACTION} TOPIC_AUTHORIZATION_FAILED UNKNOWN_TOPIC_OR_PARTITION OPERATION_NOT_ATTEMPTED"
        " PRODUCER_FENCED:2=INVALID_PRODUCER_EPOCH TRANSACTION_ABORTABLE:5",
        thing="partition",
    ),
    ApiKey.ADD_OFFSETS_TO_TXN: ApiErrors(
        f"{_TRANSACTION} GROUP_AUTHORIZATION_FAILED INVALID_GROUP_ID PRODUCER_FENCED:2=INVALID_PRODUCER_EPOCH"
        " TRANSACTION_ABORTABLE:4"
    ),
    ApiKey.END_TXN: ApiErrors(f"{_TRANSACTION} PRODUCER_FENCED:2=INVALID_PRODUCER_EPOCH TRANSACTION_ABORTABLE:4"),
    ApiKey.WRITE_TXN_MARKERS: ApiErrors(
        f"{_CLUSTER} CORRUPT_MESSAGE INVALID_PRODUCER_EPOCH UNKNOWN_TOPIC_OR_PARTITION NOT_LEADER_OR_FOLLOWER"
        " MESSAGE_TOO_LARGE RECORD_LIST_TOO_LARGE NOT_ENOUGH_REPLICAS NOT_ENOUGH_REPLICAS_AFTER_APPEND"
        " INVALID_REQUIRED_ACKS TRANSACTION_COORDINATOR_FENCED REQUEST_TIMED_OUT UNSUPPORTED_FOR_MESSAGE_FORMAT"
        " KAFKA_STORAGE_ERROR"
    ),
    ApiKey.TXN_OFFSET_COMMIT: ApiErrors(
        "COORDINATOR_LOAD_IN_PROGRESS:2=COORDINATOR_NOT_AVAILABLE COORDINATOR_NOT_AVAILABLE NOT_COORDINATOR"
        " GROUP_AUTHORIZATION_FAILED INVALID_GROUP_ID TRANSACTIONAL_ID_AUTHORIZATION_FAILED"
        " INVALID_PRODUCER_EPOCH INVALID_PRODUCER_ID_MAPPING INVALID_TXN_STATE CONCURRENT_TRANSACTIONS"
        " INVALID_COMMIT_OFFSET_SIZE UNSUPPORTED_FOR_MESSAGE_FORMAT REQUEST_TIMED_OUT UNKNOWN_MEMBER_ID:3"
        " FENCED_INSTANCE_ID:3 ILLEGAL_GENERATION:3 TRANSACTION_ABORTABLE:4=INVALID_TXN_STATE",
        each="UNKNOWN_TOPIC_OR_PARTITION TOPIC_AUTHORIZATION_FAILED OFFSET_METADATA_TOO_LARGE",
        thing="partition",
    ),
    ApiKey.SASL_HANDSHAKE: ApiErrors("UNSUPPORTED_SASL_MECHANISM ILLEGAL_SASL_STATE"),
    ApiKey.SASL_AUTHENTICATE: ApiErrors("SASL_AUTHENTICATION_FAILED ILLEGAL_SASL_STATE"),
    ApiKey.API_VERSIONS: ApiErrors("UNSUPPORTED_VERSION INVALID_REQUEST REBOOTSTRAP_REQUIRED:5"),
    ApiKey.CREATE_TOPICS: ApiErrors(
        each=f"{_TOPIC} {_PLACEMENT} TOPIC_ALREADY_EXISTS INVALID_CONFIG THROTTLING_QUOTA_EXCEEDED:6",
        thing="topic",
    ),
    ApiKey.DELETE_TOPICS: ApiErrors(
        each=f"{_TOPIC} TOPIC_DELETION_DISABLED:3=INVALID_REQUEST UNKNOWN_TOPIC_OR_PARTITION"
        " THROTTLING_QUOTA_EXCEEDED:5 UNKNOWN_TOPIC_ID:6",
        thing="topic",
    ),
    ApiKey.CREATE_PARTITIONS: ApiErrors(
        each=f"{_TOPIC} {_PLACEMENT} UNKNOWN_TOPIC_OR_PARTITION REASSIGNMENT_IN_PROGRESS THROTTLING_QUOTA_EXCEEDED:3",
        thing="topic",
    ),
    ApiKey.ELECT_LEADERS: ApiErrors(
        f"{_CONTROLLER} {_CLUSTER} INVALID_REQUEST",
        each="ELECTION_NOT_NEEDED PREFERRED_LEADER_NOT_AVAILABLE ELIGIBLE_LEADERS_NOT_AVAILABLE"
        " UNKNOWN_TOPIC_OR_PARTITION",
        thing="partition",
    ),
    ApiKey.DESCRIBE_CLUSTER: ApiErrors(
        f"{_CLUSTER} UNSUPPORTED_ENDPOINT_TYPE:1 MISMATCHED_ENDPOINT_TYPE:1 INVALID_REQUEST"
    ),
    ApiKey.DESCRIBE_PRODUCERS: ApiErrors(
        each="UNKNOWN_SERVER_ERROR INVALID_TOPIC_EXCEPTION TOPIC_AUTHORIZATION_FAILED UNKNOWN_TOPIC_OR_PARTITION"
        " NOT_LEADER_OR_FOLLOWER",
        thing="partition",
    ),
    ApiKey.DESCRIBE_QUORUM: ApiErrors(
        f"{_CLUSTER} REQUEST_TIMED_OUT INVALID_REQUEST BROKER_NOT_AVAILABLE UNSUPPORTED_VERSION",
        each="UNKNOWN_TOPIC_OR_PARTITION NOT_LEADER_OR_FOLLOWER",
        thing="partition",
    ),
    ApiKey.DESCRIBE_LOG_DIRS: ApiErrors(
        f"{_CLUSTER}:3 UNKNOWN_SERVER_ERROR:3", each="KAFKA_STORAGE_ERROR", thing="log directory"
    ),
    ApiKey.ALTER_REPLICA_LOG_DIRS: ApiErrors(
        f"{_CLUSTER} LOG_DIR_NOT_FOUND KAFKA_STORAGE_ERROR REPLICA_NOT_AVAILABLE NOT_LEADER_OR_FOLLOWER"
        " UNKNOWN_TOPIC_OR_PARTITION INVALID_TOPIC_EXCEPTION"
    ),
    ApiKey.DESCRIBE_CONFIGS: ApiErrors(_RESOURCE),
    ApiKey.ALTER_CONFIGS: ApiErrors(f"{_RESOURCE} {_CONTROLLER} POLICY_VIOLATION"),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: ApiErrors(f"{_RESOURCE} {_CONTROLLER} POLICY_VIOLATION"),
    ApiKey.LIST_CONFIG_RESOURCES: ApiErrors(f"{_CLUSTER} UNSUPPORTED_VERSION"),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: ApiErrors(
        f"{_CONTROLLER} {_CLUSTER} UNSUPPORTED_VERSION",
        each="NO_REASSIGNMENT_IN_PROGRESS INVALID_REPLICA_ASSIGNMENT UNKNOWN_TOPIC_OR_PARTITION"
        " INVALID_TOPIC_EXCEPTION INVALID_REPLICATION_FACTOR:1",
        thing="partition",
    ),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: ApiErrors(f"{_CONTROLLER} {_CLUSTER}"),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: ApiErrors(
        _CLUSTER, each="RESOURCE_NOT_FOUND DUPLICATE_RESOURCE", thing="user"
    ),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: ApiErrors(
        f"{_CONTROLLER} {_CLUSTER} RESOURCE_NOT_FOUND DUPLICATE_RESOURCE UNACCEPTABLE_CREDENTIAL"
        " UNSUPPORTED_SASL_MECHANISM UNSUPPORTED_VERSION"
    ),
    ApiKey.UPDATE_FEATURES: ApiErrors(
        f"{_CONTROLLER} {_CLUSTER} INVALID_REQUEST INVALID_UPDATE_VERSION FEATURE_UPDATE_FAILED"
    ),
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: ApiErrors("THROTTLING_QUOTA_EXCEEDED INVALID_REQUEST"),
    ApiKey.PUSH_TELEMETRY: ApiErrors(
        "THROTTLING_QUOTA_EXCEEDED INVALID_REQUEST UNKNOWN_SUBSCRIPTION_ID UNSUPPORTED_COMPRESSION_TYPE"
        " TELEMETRY_TOO_LARGE INVALID_RECORD"
    ),
    ApiKey.UNREGISTER_BROKER: ApiErrors(f"{_CONTROLLER} {_CLUSTER} BROKER_ID_NOT_REGISTERED UNSUPPORTED_VERSION"),
    ApiKey.DESCRIBE_ACLS: ApiErrors(f"{_CLUSTER} SECURITY_DISABLED INVALID_REQUEST"),
    ApiKey.CREATE_ACLS: ApiErrors(f"{_CONTROLLER} {_CLUSTER} SECURITY_DISABLED INVALID_REQUEST"),
    ApiKey.DELETE_ACLS: ApiErrors(f"{_CONTROLLER} {_CLUSTER} SECURITY_DISABLED INVALID_REQUEST"),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: ApiErrors(f"{_CLUSTER} INVALID_REQUEST UNSUPPORTED_VERSION"),
    ApiKey.ALTER_CLIENT_QUOTAS: ApiErrors(f"{_CONTROLLER} {_CLUSTER} INVALID_REQUEST UNSUPPORTED_VERSION"),
    ApiKey.CREATE_DELEGATION_TOKEN: ApiErrors(f"{_TOKEN} INVALID_PRINCIPAL_TYPE"),
    ApiKey.RENEW_DELEGATION_TOKEN: ApiErrors(_FOUND_TOKEN),
    ApiKey.EXPIRE_DELEGATION_TOKEN: ApiErrors(_FOUND_TOKEN),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: ApiErrors(_TOKEN),
    ApiKey.DESCRIBE_TRANSACTIONS: ApiErrors(
        f"{_COORDINATOR} TRANSACTIONAL_ID_AUTHORIZATION_FAILED TRANSACTIONAL_ID_NOT_FOUND INVALID_REQUEST"
    ),
    ApiKey.LIST_TRANSACTIONS: ApiErrors(
        "COORDINATOR_LOAD_IN_PROGRESS COORDINATOR_NOT_AVAILABLE INVALID_REGULAR_EXPRESSION:2"
    ),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: ApiErrors(
        f"{_MODERN_MEMBER} UNSUPPORTED_ASSIGNOR UNRELEASED_INSTANCE_ID FENCED_INSTANCE_ID INVALID_REGULAR_EXPRESSION:1"
    ),
    ApiKey.CONSUMER_GROUP_DESCRIBE: ApiErrors(f"{_MODERN_GROUP} TOPIC_AUTHORIZATION_FAILED"),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: ApiErrors(
        "INVALID_REQUEST INVALID_TOPIC_EXCEPTION TOPIC_AUTHORIZATION_FAILED UNKNOWN_TOPIC_OR_PARTITION"
        " UNSUPPORTED_VERSION"
    ),
    ApiKey.SHARE_GROUP_HEARTBEAT: ApiErrors(_MODERN_MEMBER),
    ApiKey.SHARE_GROUP_DESCRIBE: ApiErrors(f"{_MODERN_GROUP} TOPIC_AUTHORIZATION_FAILED"),
    ApiKey.SHARE_FETCH: ApiErrors(
        f"{_SHARE_MEMBER} SHARE_SESSION_LIMIT_REACHED",
        each=f"{_SHARE_PARTITION} OFFSET_OUT_OF_RANGE OFFSET_NOT_AVAILABLE CORRUPT_MESSAGE",
        acknowledgement="INVALID_RECORD_STATE",
        thing="partition",
    ),
    ApiKey.SHARE_ACKNOWLEDGE: ApiErrors(
        _SHARE_MEMBER, each=f"{_SHARE_PARTITION} INVALID_RECORD_STATE", thing="partition"
    ),
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: ApiErrors(_SHARE_STATE),
    ApiKey.READ_SHARE_GROUP_STATE: ApiErrors(_SHARE_STATE),
    ApiKey.WRITE_SHARE_GROUP_STATE: ApiErrors(_SHARE_STATE),
    ApiKey.DELETE_SHARE_GROUP_STATE: ApiErrors(_SHARE_STATE),
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: ApiErrors(_SHARE_STATE),
    ApiKey.STREAMS_GROUP_HEARTBEAT: ApiErrors(
        f"{_MODERN_MEMBER} UNRELEASED_INSTANCE_ID STREAMS_INVALID_TOPOLOGY STREAMS_INVALID_TOPOLOGY_EPOCH"
        " STREAMS_TOPOLOGY_FENCED"
    ),
    ApiKey.STREAMS_GROUP_DESCRIBE: ApiErrors(f"{_MODERN_GROUP} TOPIC_AUTHORIZATION_FAILED"),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: ApiErrors(_MODERN_GROUP, each=_SHARE_TOPIC, thing="partition"),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: ApiErrors(_SHARE_OFFSETS, each=_SHARE_TOPIC, thing="partition"),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: ApiErrors(_SHARE_OFFSETS, each=_SHARE_TOPIC, thing="topic"),
}


def errors_of(api: ApiKey) -> ApiErrors:
    """Return the errors of an API that is served."""
    return _TABLE[api]
