"""Where each API of Kafka 4.4.0 tells its errors: the fields of the response in which they stand."""

from broker_sim.handlers.error_answers import answer_version
from broker_sim.handlers.error_table import Place, errors_of, response_error
from broker_sim.protocol.api_keys import ApiKey
from tests.broker_sim.handlers.kafka_error_responses import recorded

KAFKA = recorded()
FETCH_SESSION_ERRORS = ("FETCH_SESSION_ID_NOT_FOUND", "INVALID_FETCH_SESSION_EPOCH", "FETCH_SESSION_TOPIC_ID_ERROR")
"""The handler answers them with a response of their own (`SessionErrorContext`)."""

IN_PARTITIONS = "topics.partitions.error_code"
IN_RESPONSES = "responses.partitions.error_code"
OF_EACH = {
    ApiKey.PRODUCE: {0: "responses.partition_responses.error_code"},
    ApiKey.FETCH: {0: IN_RESPONSES},
    ApiKey.LIST_OFFSETS: {0: IN_PARTITIONS},
    ApiKey.METADATA: {0: "topics.error_code"},
    ApiKey.OFFSET_COMMIT: {0: IN_PARTITIONS},
    ApiKey.OFFSET_FETCH: {0: IN_PARTITIONS, 8: "groups.topics.partitions.error_code"},
    ApiKey.OFFSET_DELETE: {0: IN_PARTITIONS},
    ApiKey.DELETE_RECORDS: {0: IN_PARTITIONS},
    ApiKey.OFFSET_FOR_LEADER_EPOCH: {0: IN_PARTITIONS},
    ApiKey.TXN_OFFSET_COMMIT: {0: IN_PARTITIONS},
    ApiKey.CREATE_TOPICS: {0: "topics.error_code"},
    ApiKey.DELETE_TOPICS: {0: "responses.error_code"},
    ApiKey.CREATE_PARTITIONS: {0: "results.error_code"},
    ApiKey.DESCRIBE_PRODUCERS: {0: IN_PARTITIONS},
    ApiKey.SHARE_FETCH: {0: IN_RESPONSES},
    ApiKey.SHARE_ACKNOWLEDGE: {0: IN_RESPONSES},
    ApiKey.LEAVE_GROUP: {3: "members.error_code"},
    ApiKey.ADD_PARTITIONS_TO_TXN: {
        0: "results_by_topic_v3_and_below.results_by_partition.partition_error_code",
        4: "results_by_transaction.topic_results.results_by_partition.partition_error_code",
    },
    ApiKey.ELECT_LEADERS: {0: "replica_election_results.partition_result.error_code"},
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: {0: IN_RESPONSES},
    ApiKey.DESCRIBE_QUORUM: {0: IN_PARTITIONS},
    ApiKey.DESCRIBE_LOG_DIRS: {0: "results.error_code"},
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: {0: "results.error_code"},
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: {0: "groups.topics.partitions.error_code"},
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: {0: IN_RESPONSES},
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: {0: "responses.error_code"},
}
"""Where errors of single things stand, from the first version on: by the handlers of `KafkaApis` 4.4.0."""


def told_errors(api):
    """Return all that an API tells."""
    return list(dict.fromkeys(error for _, tellings in errors_of(api).places() for error in tellings))


def expected_fields(api, version, error):
    """Return the fields of a response in which the API tells an error, none if it cannot."""
    told = response_error(api, version, error)
    if told is None:
        return []
    place = told.place
    if place is Place.ACKNOWLEDGEMENT:
        return ["responses.partitions.acknowledge_error_code"]
    if place is Place.EACH:
        by_version = OF_EACH[api]
        return [by_version[max(first for first in by_version if first <= version)]]
    if error.name in FETCH_SESSION_ERRORS:
        return ["error_code"]
    return KAFKA[api, answer_version(api, version, error)][0]
