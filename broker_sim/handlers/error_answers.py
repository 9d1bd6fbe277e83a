"""The response of a request in which everything fails with one error: the only place that builds it.

Handlers, denials, injected faults and the gate of the dispatcher use it. `error_table.py` has the subject of each
error; this module has its fields in the response of each version. Mirrors `AbstractRequest.getErrorResponse`,
and the handlers of `KafkaApis` for errors of single things. Deliberate difference: rows are in the order of the
request, where Kafka uses the order of a hash map (Produce, WriteTxnMarkers).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from broker_sim.errors import ERROR_TEXTS, ErrorCode
from broker_sim.handlers.error_table import Place, response_error
from broker_sim.protocol import messages
from broker_sim.protocol.api_keys import ApiKey, response_class
from broker_sim.protocol.release import find_release
from broker_sim.protocol.special_values import NO_NODE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from broker_sim.handlers.context import RequestContext
    from broker_sim.protocol.message import Struct
    from broker_sim.protocol.schema import FieldSpec

    Answer = Callable[[Any, int, ErrorCode], Any]
    Fields = tuple[tuple[str, object], ...]

UNSUPPORTED_API_VERSIONS: Final = 0
"""Version of the response to an ApiVersions request of an unknown version, readable by every client (KIP-511)."""
_SESSION_ERRORS: Final = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)
"""Errors of a fetch session; their response has no partitions."""
FETCH_TOPIC_IDS: Final = 13
"""First version of Fetch with topic ids."""
METADATA_TOP_ERROR: Final = 13
"""First version of Metadata with an error of the whole request."""


class _Rows(NamedTuple):
    """Rows of a response, one for each thing in the request."""

    request_field: str
    """The field of the request that lists the things."""
    response_field: str
    """The field of the response that has the rows."""
    copied: tuple[str, ...] = ()
    """The row's fields that identify the thing: `name`, or `name=topic` if the request calls it `topic`."""
    inner: _Rows | None = None
    """The rows inside each row, which then have the error instead of the outer row."""
    has_text: bool = False
    """Whether the row has Kafka's error message instead of null."""
    fields: Fields = ()
    """Values of the row that differ from the defaults in Kafka's definition."""
    error_field: str | None = "error_code"
    """The row's error field, None for rows without one."""

    def fill(self, answer: Struct, request: Any, specs: Iterable[FieldSpec], of: type, error_code: ErrorCode) -> None:
        """Set the rows in a response, or in a row of it; `specs` describe its fields, `of` is the response's class."""
        (spec,) = (spec.struct for spec in specs if spec.name == self.response_field)
        assert spec is not None
        row_class = getattr(of, spec.name)
        rows = []
        for thing in getattr(request, self.request_field) or ():
            row = row_class(**dict(self.fields), **_copied(thing, self.copied))
            if self.inner is not None:
                self.inner.fill(row, thing, spec.fields, of, error_code)
            elif self.error_field is not None:
                setattr(row, self.error_field, error_code)
                _set_text(row, error_code if self.has_text else None)
            rows.append(row)
        setattr(answer, self.response_field, rows)


class _Form(NamedTuple):
    """The place of the error in a response."""

    is_at_top: bool = True
    has_text: bool = False
    """Whether the top level has Kafka's error message instead of null."""
    rows: _Rows | None = None
    fields: Fields = ()
    copied: tuple[str, ...] = ()
    """Fields copied from the request to the response."""

    def answer(self, api: ApiKey, request: Any, error_code: ErrorCode) -> Any:
        """Return the response."""
        of: Any = response_class(api)
        response = of(**dict(self.fields), **_copied(request, self.copied))
        if self.is_at_top:
            response.error_code = error_code
            _set_text(response, error_code if self.has_text else None)
        if self.rows is not None:
            self.rows.fill(response, request, of.SPEC.root.fields, of, error_code)
        return response


def _copied(thing: Any, names: Iterable[str]) -> dict[str, Any]:
    """Return the fields that a row copies from `thing`, which may be a plain name or number."""
    if isinstance(thing, str | int):
        return dict.fromkeys(names, thing)
    pairs = (name.split("=") for name in names)
    return {pair[0]: getattr(thing, pair[-1]) for pair in pairs}


def _set_text(row: Any, error_code: ErrorCode | None) -> None:
    if hasattr(row, "error_message"):
        row.error_message = None if error_code is None else ERROR_TEXTS.get(error_code)


def refuse(request: Any, context: RequestContext, error_code: ErrorCode) -> Any:
    """Return the response to a request that fails with this error, in the request's version."""
    return error_answer(context.api_key, request, context.api_version, error_code)


def error_answer(api: ApiKey, request: Any, api_version: int, error_code: ErrorCode) -> Any:
    """Return the response in which everything fails with this error, as that version of the API returns it.

    None for a request that gets no response: a produce without acks.
    """
    error = response_error(api, api_version, error_code)
    if error is None:
        return whole_answer(api, request, api_version, error_code)
    if error.place is Place.ACKNOWLEDGEMENT:
        return _ACKNOWLEDGED.answer(api, request, error.error_code)
    if error.place is Place.EACH and api in _EACH:
        return _of_version(_EACH[api], api_version).answer(api, request, error.error_code)
    return whole_answer(api, request, api_version, error.error_code)


def whole_answer(api: ApiKey, request: Any, api_version: int, error_code: ErrorCode) -> Any:
    """Return the response to a request that fails as a whole; mirrors `getErrorResponse`.

    None for a request that gets no response: a produce without acks.
    """
    if api is ApiKey.PRODUCE and request.acks == 0:
        return None
    special = _SPECIAL.get(api)
    if special is not None:
        return special(request, api_version, error_code)
    return _of_version(_WHOLE.get(api, _AT_TOP), api_version).answer(api, request, error_code)


def answer_version(api: ApiKey, api_version: int, error_code: ErrorCode) -> int:
    """Return the version of the response that has the error."""
    is_unknown_version = api is ApiKey.API_VERSIONS and error_code is ErrorCode.UNSUPPORTED_VERSION
    return UNSUPPORTED_API_VERSIONS if is_unknown_version else api_version


def _of_version(forms: Mapping[int, _Form], api_version: int) -> _Form:
    """Return the form of the response in that version; keys are the first versions of the forms."""
    return forms[max(since for since in forms if since <= api_version)]


# -- responses that no form describes ---------------------------------------------------------------


def _fetch(request: messages.FetchRequest, api_version: int, error_code: ErrorCode) -> Any:
    if error_code in _SESSION_ERRORS:
        return messages.FetchResponse(error_code=error_code)
    topics, top = _EACH[ApiKey.FETCH][0], _Form(copied=("session_id",))
    form = top if api_version >= FETCH_TOPIC_IDS else top._replace(rows=topics.rows)
    return form.answer(ApiKey.FETCH, request, error_code)


def _metadata(request: messages.MetadataRequest, api_version: int, error_code: ErrorCode) -> Any:
    form = _EACH[ApiKey.METADATA][0]._replace(is_at_top=api_version >= METADATA_TOP_ERROR)
    response = form.answer(ApiKey.METADATA, request, error_code)
    for topic in response.topics:
        topic.name = topic.name or ""
    return response


def _api_versions(_: messages.ApiVersionsRequest, _version: int, error_code: ErrorCode) -> messages.ApiVersionsResponse:
    response = messages.ApiVersionsResponse(error_code=error_code)
    if error_code is ErrorCode.UNSUPPORTED_VERSION:
        versions = find_release().apis[ApiKey.API_VERSIONS]
        response.api_keys = [response.ApiVersion(ApiKey.API_VERSIONS, *versions)]
    return response


def _alter_replica_log_dirs(
    request: messages.AlterReplicaLogDirsRequest, _: int, error_code: ErrorCode
) -> messages.AlterReplicaLogDirsResponse:
    of = messages.AlterReplicaLogDirsResponse
    return of(
        results=[
            of.AlterReplicaLogDirTopicResult(
                topic.name, [of.AlterReplicaLogDirPartitionResult(number, error_code) for number in topic.partitions]
            )
            for directory in request.dirs
            for topic in directory.topics
        ]
    )


def _alter_user_scram_credentials(
    request: messages.AlterUserScramCredentialsRequest, _: int, error_code: ErrorCode
) -> messages.AlterUserScramCredentialsResponse:
    of = messages.AlterUserScramCredentialsResponse
    users = dict.fromkeys(each.name for changes in (request.deletions, request.upsertions) for each in changes)
    return of(results=[of.AlterUserScramCredentialsResult(user, error_code, None) for user in users])


def _alter_client_quotas(
    request: messages.AlterClientQuotasRequest, _: int, error_code: ErrorCode
) -> messages.AlterClientQuotasResponse:
    of, text = messages.AlterClientQuotasResponse, ERROR_TEXTS.get(error_code)
    return of(
        entries=[
            of.EntryData(error_code, text, [of.EntityData(part.entity_type, part.entity_name) for part in entry.entity])
            for entry in request.entries
        ]
    )


def _share_state(*, has_text: bool) -> Answer:
    """Return the function that builds the response of a share state API."""

    def answer(request: Any, _: int, error_code: ErrorCode) -> Any:
        from broker_sim.share.state_apis import STATE_APIS  # noqa: PLC0415 - only for share groups

        (api,) = [each for each in STATE_APIS if isinstance(request, each.request)]
        return api.failed_response(request, error_code, ERROR_TEXTS.get(error_code) if has_text else None)

    return answer


_SPECIAL: Final[Mapping[ApiKey, Answer]] = {
    ApiKey.FETCH: _fetch,
    ApiKey.METADATA: _metadata,
    ApiKey.API_VERSIONS: _api_versions,
    ApiKey.ALTER_REPLICA_LOG_DIRS: _alter_replica_log_dirs,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: _alter_user_scram_credentials,
    ApiKey.ALTER_CLIENT_QUOTAS: _alter_client_quotas,
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: _share_state(has_text=False),
    ApiKey.READ_SHARE_GROUP_STATE: _share_state(has_text=True),
    ApiKey.WRITE_SHARE_GROUP_STATE: _share_state(has_text=True),
    ApiKey.DELETE_SHARE_GROUP_STATE: _share_state(has_text=False),
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: _share_state(has_text=True),
}

# -- forms ------------------------------------------------------------------------------------------

_AT_TOP: Final[Mapping[int, _Form]] = {0: _Form()}
_TEXT_AT_TOP: Final[Mapping[int, _Form]] = {0: _Form(has_text=True)}


def _in(rows: _Rows) -> _Form:
    """Return the form in which only the rows have the error."""
    return _Form(is_at_top=False, rows=rows)


def _only(rows: _Rows) -> dict[int, _Form]:
    """Return that form for all versions."""
    return {0: _in(rows)}


def _partitions(
    *names: str,
    topics: str = "topics",
    partitions: str = "partitions",
    response_topics: str = "topics",
    response_partitions: str = "partitions",
    number: str = "partition_index",
    fields: Fields = (),
    has_text: bool = False,
    error_field: str | None = "error_code",
) -> _Rows:
    """Return rows of partitions inside rows of topics; `names` are the fields of the topic rows."""
    inner = _Rows(partitions, response_partitions, (number,), fields=fields, has_text=has_text, error_field=error_field)
    return _Rows(topics, response_topics, names, inner)


_GROUP_IDS: Final = _only(_Rows("group_ids", "groups", ("group_id",)))
_RESOURCE: Final = ("resource_type", "resource_name")
_COMMITTED: Final = _only(_partitions("name", "topic_id"))
_DELETED_TOPICS: Final = _Rows("topics", "responses", ("name", "topic_id"))
_ADDED: Final = _partitions(
    "name",
    response_partitions="results_by_partition",
    response_topics="results_by_topic",
    error_field="partition_error_code",
)
_ELECTED: Final = _partitions(
    "topic",
    topics="topic_partitions",
    response_topics="replica_election_results",
    response_partitions="partition_result",
    number="partition_id",
)
_REASSIGNED: Final = _partitions("name", response_topics="responses")
_NO_TOKEN: Final = (
    ("principal_type", "User"),
    ("principal_name", "ANONYMOUS"),
    ("issue_timestamp_ms", -1),
    ("expiry_timestamp_ms", -1),
    ("max_timestamp_ms", -1),
)

_EACH: Final[Mapping[ApiKey, Mapping[int, _Form]]] = {
    ApiKey.FETCH: _only(
        _partitions(
            "topic",
            "topic_id",
            response_topics="responses",
            number="partition_index=partition",
            fields=(("high_watermark", -1), ("records", b"")),
        )
    ),
    ApiKey.OFFSET_FETCH: {
        0: _in(
            _partitions("name", partitions="partition_indexes", fields=(("committed_offset", -1),)),
        ),
        8: _in(
            _Rows(
                "groups",
                "groups",
                ("group_id",),
                _partitions("name", "topic_id", partitions="partition_indexes", fields=(("committed_offset", -1),)),
            ),
        ),
    },
    ApiKey.OFFSET_DELETE: _only(_partitions("name")),
    ApiKey.METADATA: _only(_Rows("topics", "topics", ("name", "topic_id"))),
    ApiKey.SHARE_FETCH: _only(_partitions("topic_id", response_topics="responses")),
    ApiKey.SHARE_ACKNOWLEDGE: _only(_partitions("topic_id", response_topics="responses")),
    ApiKey.LEAVE_GROUP: _only(_Rows("members", "members", ("member_id", "group_instance_id"))),
    ApiKey.ADD_PARTITIONS_TO_TXN: {
        0: _in(
            _ADDED._replace(request_field="v3_and_below_topics", response_field="results_by_topic_v3_and_below"),
        ),
        4: _in(
            _Rows(
                "transactions",
                "results_by_transaction",
                ("transactional_id",),
                _ADDED._replace(response_field="topic_results"),
            ),
        ),
    },
    ApiKey.ELECT_LEADERS: _only(_ELECTED),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: _only(_REASSIGNED),
    ApiKey.DESCRIBE_QUORUM: _only(_partitions("topic_name", has_text=True)),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: _only(_Rows("users", "results", ("user=name",))),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: _only(
        _Rows(
            "groups",
            "groups",
            ("group_id",),
            _partitions("topic_name", fields=(("start_offset", -1), ("lag", -1)), has_text=True),
        )
    ),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: _only(_partitions("topic_name", response_topics="responses", has_text=True)),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: _only(_Rows("topics", "responses", ("topic_name",), has_text=True)),
}
"""The places of errors of single things, for APIs where they differ from errors of the request."""

_ACKNOWLEDGED: Final = _in(_partitions("topic_id", response_topics="responses", error_field="acknowledge_error_code"))
_WHOLE: Final[Mapping[ApiKey, Mapping[int, _Form]]] = {
    ApiKey.PRODUCE: _only(
        _partitions(
            "name",
            "topic_id",
            topics="topic_data",
            partitions="partition_data",
            response_topics="responses",
            response_partitions="partition_responses",
            number="index",
            fields=(("base_offset", -1),),
        )
    ),
    ApiKey.LIST_OFFSETS: _only(_partitions("name")),
    ApiKey.OFFSET_COMMIT: _COMMITTED,
    ApiKey.OFFSET_FETCH: {
        0: _EACH[ApiKey.OFFSET_FETCH][0],
        2: _Form(),
        8: _in(_Rows("groups", "groups", ("group_id",))),
    },
    ApiKey.FIND_COORDINATOR: {
        0: _Form(has_text=True, fields=(("node_id", NO_NODE), ("port", NO_NODE))),
        4: _in(
            _Rows(
                "coordinator_keys",
                "coordinators",
                ("key",),
                has_text=True,
                fields=(("node_id", NO_NODE), ("port", NO_NODE)),
            ),
        ),
    },
    ApiKey.JOIN_GROUP: {0: _Form(), 7: _Form(fields=(("protocol_name", None),))},
    ApiKey.DESCRIBE_GROUPS: _only(_Rows("groups", "groups", ("group_id",))),
    ApiKey.DELETE_GROUPS: _only(_Rows("groups_names", "results", ("group_id",))),
    ApiKey.DELETE_RECORDS: _only(_partitions("name", fields=(("low_watermark", -1),))),
    ApiKey.INIT_PRODUCER_ID: {0: _Form(fields=(("producer_epoch", -1),))},
    ApiKey.OFFSET_FOR_LEADER_EPOCH: _only(_partitions("topic", number="partition")),
    ApiKey.ADD_PARTITIONS_TO_TXN: {0: _EACH[ApiKey.ADD_PARTITIONS_TO_TXN][0], 4: _Form()},
    ApiKey.WRITE_TXN_MARKERS: _only(
        _Rows("markers", "markers", ("producer_id",), _partitions("name", partitions="partition_indexes"))
    ),
    ApiKey.TXN_OFFSET_COMMIT: _COMMITTED,
    ApiKey.CREATE_TOPICS: _only(_Rows("topics", "topics", ("name",))),
    ApiKey.DELETE_TOPICS: {
        0: _in(_Rows("topic_names", "responses", ("name",))),
        6: _in(_DELETED_TOPICS),
    },
    ApiKey.CREATE_PARTITIONS: _only(_Rows("topics", "results", ("name",))),
    ApiKey.ELECT_LEADERS: {0: _EACH[ApiKey.ELECT_LEADERS][0], 1: _Form(rows=_ELECTED)},
    ApiKey.DESCRIBE_PRODUCERS: _only(_partitions("name", partitions="partition_indexes")),
    ApiKey.DESCRIBE_QUORUM: _TEXT_AT_TOP,
    # Before version 3 only directories have errors; the response then has no directory.
    ApiKey.DESCRIBE_LOG_DIRS: {0: _Form(is_at_top=False), 3: _Form()},
    ApiKey.DESCRIBE_CONFIGS: _only(_Rows("resources", "results", _RESOURCE, has_text=True)),
    ApiKey.ALTER_CONFIGS: _only(_Rows("resources", "responses", _RESOURCE)),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _only(_Rows("resources", "responses", _RESOURCE)),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: {0: _Form(rows=_REASSIGNED)},
    ApiKey.LIST_PARTITION_REASSIGNMENTS: {
        0: _Form(rows=_partitions("name", partitions="partition_indexes", error_field=None))
    },
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: {0: _Form(rows=_Rows("users", "results"))},
    ApiKey.ADD_RAFT_VOTER: _TEXT_AT_TOP,
    ApiKey.REMOVE_RAFT_VOTER: _TEXT_AT_TOP,
    ApiKey.UNREGISTER_CONTROLLER: _TEXT_AT_TOP,
    ApiKey.UNREGISTER_BROKER: _TEXT_AT_TOP,
    ApiKey.CREATE_ACLS: _only(_Rows("creations", "results")),
    ApiKey.DELETE_ACLS: _only(_Rows("filters", "filter_results")),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: {0: _Form(fields=(("entries", None),))},
    ApiKey.CREATE_DELEGATION_TOKEN: {
        0: _Form(fields=_NO_TOKEN),
        3: _Form(
            fields=(
                *_NO_TOKEN,
                ("token_requester_principal_type", "User"),
                ("token_requester_principal_name", "ANONYMOUS"),
            )
        ),
    },
    ApiKey.DESCRIBE_TRANSACTIONS: _only(_Rows("transactional_ids", "transaction_states", ("transactional_id",))),
    ApiKey.CONSUMER_GROUP_DESCRIBE: _GROUP_IDS,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: _only(_Rows("topics", "topics", ("name",))),
    ApiKey.SHARE_GROUP_DESCRIBE: _GROUP_IDS,
    ApiKey.STREAMS_GROUP_DESCRIBE: _GROUP_IDS,
    ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE: _AT_TOP,
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: _only(_Rows("groups", "groups", ("group_id",), has_text=True)),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: _TEXT_AT_TOP,
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: _TEXT_AT_TOP,
}
"""The places of errors of a whole request; in all other APIs that is the top level of the response."""
