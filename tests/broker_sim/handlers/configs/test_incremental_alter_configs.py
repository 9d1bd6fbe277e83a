import logging

import pytest

from broker_sim.controller import AlterOp, ConfigResourceType
from broker_sim.errors import ErrorCode
from broker_sim.handlers.configs.describe_configs import handle_describe_configs
from broker_sim.handlers.configs.incremental_alter_configs import handle_incremental_alter_configs
from broker_sim.protocol.messages import DescribeConfigsRequest, IncrementalAlterConfigsRequest

Resource = IncrementalAlterConfigsRequest.AlterConfigsResource
Config = IncrementalAlterConfigsRequest.AlterableConfig
TOPIC, BROKER = ConfigResourceType.TOPIC, ConfigResourceType.BROKER
GROUP, CLIENT_METRICS = ConfigResourceType.GROUP, ConfigResourceType.CLIENT_METRICS
LOGGERS = 8
LOGGER = "broker_sim.replica"
SET, DELETE, APPEND, SUBTRACT = AlterOp
VERSIONS = range(2)


@pytest.fixture
def alter(broker):
    broker.create("t", [1], retention_ms="100", cleanup_policy="compact")
    return alter_at(broker)


def alter_at(broker):
    def ask(*resources, version=1, validate_only=False):
        request = IncrementalAlterConfigsRequest(list(resources), validate_only)
        responses = broker.ask(handle_incremental_alter_configs, request, version).responses
        asked = [(r.resource_type, r.resource_name) for r in resources]
        assert [(r.resource_type, r.resource_name) for r in responses] == asked
        return [(r.error_code, r.error_message) for r in responses]

    return ask


@pytest.mark.parametrize("version", VERSIONS)
def test_each_operation_changes_one_config(broker, alter, version):
    changes = [
        Config("retention.ms", DELETE, None),
        Config("segment.ms", SET, "7000"),
        Config("cleanup.policy", APPEND, "delete"),
    ]
    assert alter(Resource(TOPIC, "t", changes), version=version) == [(ErrorCode.NONE, None)]
    configs = {"cleanup.policy": "compact,delete", "segment.ms": "7000"}
    assert broker.image.topics["t"].configs == configs
    alter(Resource(TOPIC, "t", [Config("cleanup.policy", SUBTRACT, "compact")]), version=version)
    assert broker.image.topics["t"].configs == configs | {"cleanup.policy": "delete"}


@pytest.mark.parametrize("version", VERSIONS)
def test_own_broker_and_all_brokers_can_be_changed(broker, alter, version):
    results = alter(
        Resource(BROKER, "1", [Config("log.retention.ms", SET, "200")]),
        Resource(BROKER, "", [Config("log.retention.ms", SET, "300")]),
        version=version,
    )
    assert results == [(ErrorCode.NONE, None)] * 2
    assert broker.image.dynamic_broker_configs(1) == {"log.retention.ms": "200"}
    assert broker.image.dynamic_cluster_configs()["log.retention.ms"] == "300"


def test_validate_only_changes_nothing_and_answers_the_same(broker, alter):
    before = broker.image
    results = alter(
        Resource(TOPIC, "t", [Config("segment.ms", SET, "7000")]),
        Resource(TOPIC, "u", [Config("segment.ms", SET, "7000")]),
        validate_only=True,
    )
    assert [code for code, _ in results] == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert broker.image is before


@pytest.mark.parametrize(
    ("resource", "error_code", "message"),
    [
        (
            Resource(BROKER, "2", [Config("log.retention.ms", SET, "1")]),
            ErrorCode.INVALID_REQUEST,
            "Unexpected broker id, expected 1, but received 2",
        ),
        (
            Resource(BROKER, "one", [Config("log.retention.ms", SET, "1")]),
            ErrorCode.INVALID_REQUEST,
            "Node id must be an integer, but it is: one",
        ),
        *(
            (
                Resource(BROKER, name, [Config("log.retention.ms", SET, "1")]),
                ErrorCode.INVALID_REQUEST,
                f"Node id must be an integer, but it is: {name}",
            )
            for name in ("2147483648", "-2147483649", " 1", "1_0", "1" * 5_000)
        ),
        (
            Resource(BROKER, "2147483647", [Config("log.retention.ms", SET, "1")]),
            ErrorCode.INVALID_REQUEST,
            "Unexpected broker id, expected 1, but received 2147483647",
        ),
        (Resource(0, "t", []), ErrorCode.INVALID_REQUEST, "Unknown resource type 0"),
        (Resource(99, "t", []), ErrorCode.INVALID_REQUEST, "Unknown resource type 99"),
        (
            Resource(BROKER, "1", [Config("log.retention.ms", 7, "1")]),
            ErrorCode.INVALID_REQUEST,
            "Unknown operations type 7",
        ),
        (
            Resource(BROKER, "1", [Config("num.partitions", SET, "1")]),
            ErrorCode.INVALID_REQUEST,
            "Cannot update these configs dynamically: [num.partitions]",
        ),
        (
            Resource(TOPIC, "u", [Config("retention.ms", SET, "1")]),
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "The topic 'u' does not exist.",
        ),
        (
            Resource(TOPIC, "t", [Config("retention.ms", SET, None)]),
            ErrorCode.INVALID_REQUEST,
            "Null value not supported for : retention.ms",
        ),
    ],
)
def test_refused_resource_fails_alone(broker, alter, resource, error_code, message):
    good = Resource(BROKER, "", [Config("log.retention.ms", SET, "300")])
    assert alter(resource, good) == [(error_code, message), (ErrorCode.NONE, None)]
    assert broker.image.dynamic_cluster_configs()["log.retention.ms"] == "300"
    assert broker.image.dynamic_broker_configs(1) == {}
    assert broker.image.topics["t"].configs["retention.ms"] == "100"


CLEANER_BUFFER = "requirement failed: log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread."
THREADS, BUFFER_BYTES = "log.cleaner.threads", "log.cleaner.dedupe.buffer.size"


@pytest.mark.parametrize(("present", "changed"), [("", "1"), ("1", ""), ("1", "1"), ("", "")])
def test_change_that_contradicts_what_is_set_is_refused(broker, alter, present, changed):
    assert alter(Resource(BROKER, present, [Config(BUFFER_BYTES, SET, str(2 << 20))])) == [(ErrorCode.NONE, None)]
    (outcome,) = alter(Resource(BROKER, changed, [Config(THREADS, SET, "2")]))
    assert outcome == (ErrorCode.INVALID_REQUEST, CLEANER_BUFFER)
    alter(Resource(BROKER, present, [Config(BUFFER_BYTES, SET, str((2 << 20) + 2))]))
    assert alter(Resource(BROKER, changed, [Config(THREADS, SET, "2")])) == [(ErrorCode.NONE, None)]


def test_removal_that_contradicts_what_is_left_is_refused(make_broker):
    alter = alter_at(make_broker({BUFFER_BYTES: 2 << 20}))
    enough, threads = Config(BUFFER_BYTES, SET, str(4 << 20)), Config(THREADS, SET, "2")
    assert alter(Resource(BROKER, "1", [enough, threads])) == [(ErrorCode.NONE, None)]
    (outcome,) = alter(Resource(BROKER, "1", [Config(BUFFER_BYTES, DELETE, None)]))
    assert outcome == (ErrorCode.INVALID_REQUEST, CLEANER_BUFFER)


def test_unknown_operation_on_a_topic_is_a_server_error_as_in_kafka(alter):
    ((error_code, _),) = alter(Resource(TOPIC, "t", [Config("retention.ms", 7, "1")]))
    assert error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_missing_value_comes_before_an_unknown_operation(alter):
    change = Resource(TOPIC, "t", [Config("retention.ms", 7, None)])
    message = "Null value not supported for : retention.ms"
    assert alter(change) == [(ErrorCode.INVALID_REQUEST, message)]


def test_bad_value_leaves_the_whole_resource_unchanged(broker, alter):
    changes = [Config("segment.ms", SET, "7000"), Config("retention.ms", SET, "soon")]
    ((error_code, message),) = alter(Resource(TOPIC, "t", changes))
    assert error_code == ErrorCode.INVALID_CONFIG
    assert "retention.ms" in message
    assert "segment.ms" not in broker.image.topics["t"].configs


def test_resource_that_comes_twice_is_refused_twice_and_not_changed(broker, alter):
    twice = Resource(TOPIC, "t", [Config("retention.ms", SET, "1")])
    good = Resource(BROKER, "1", [Config("log.retention.ms", SET, "200")])
    refused = (ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
    assert alter(twice, good, twice) == [refused, (ErrorCode.NONE, None), refused]
    assert broker.image.topics["t"].configs["retention.ms"] == "100"


def test_resource_that_comes_twice_is_not_changed_though_one_of_the_two_is_valid(broker, alter):
    bad = Resource(BROKER, "1", [Config("log.retention.ms", 7, "1")])
    good = Resource(BROKER, "1", [Config("log.retention.ms", SET, "200")])
    refused = (ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
    assert alter(bad, good) == [refused, refused]
    assert broker.image.dynamic_broker_configs(1) == {}


def test_config_that_comes_twice_is_refused(alter):
    changes = [Config("retention.ms", SET, "1"), Config("retention.ms", DELETE, None)]
    assert alter(Resource(TOPIC, "t", changes)) == [(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")]


def test_empty_request_has_an_empty_response(alter):
    assert alter() == []


@pytest.fixture
def levels():
    """Let a test change levels of loggers; afterwards they are as before."""
    loggers = [logging.getLogger(name) for name in (None, LOGGER)]
    before = [logger.level for logger in loggers]
    yield
    for logger, level in zip(loggers, before, strict=True):
        logger.setLevel(level)


def described(broker, kind, name, *keys):
    """Return value, source and synonyms of configurations as the broker describes them."""
    wanted = DescribeConfigsRequest.DescribeConfigsResource(kind, name, list(keys))
    request = DescribeConfigsRequest([wanted], include_synonyms=True)
    (result,) = broker.ask(handle_describe_configs, request, 4).results
    return {
        c.name: (c.value, c.config_source, [(s.name, s.value, s.source) for s in c.synonyms]) for c in result.configs
    }


SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"


def test_configs_of_a_group_are_set_described_and_deleted(broker, alter):
    changes = [Config(SESSION, SET, " 47000 "), Config("share.isolation.level", SET, "read_committed")]
    assert alter(Resource(GROUP, "g", changes)) == [(ErrorCode.NONE, None)]
    default = ("group.consumer.session.timeout.ms", "45000", 5)
    assert described(broker, GROUP, "g", SESSION, HEARTBEAT) == {
        HEARTBEAT: ("5000", 5, [("group.consumer.heartbeat.interval.ms", "5000", 5)]),
        SESSION: ("47000", 8, [(SESSION, "47000", 8), default]),
    }
    assert described(broker, GROUP, "other", SESSION) == {SESSION: ("45000", 5, [default])}
    assert alter(Resource(GROUP, "g", [Config(SESSION, DELETE, None)])) == [(ErrorCode.NONE, None)]
    assert broker.image.configs_of_resource(GROUP, "g") == {"share.isolation.level": "read_committed"}


INVALID = (
    (SESSION, "44999", f"{SESSION} must be in the range 45000 to 60000 inclusive."),
    (SESSION, "60001", f"{SESSION} must be in the range 45000 to 60000 inclusive."),
    (SESSION, "0", f"Invalid value 0 for configuration {SESSION}: Value must be at least 1"),
    (SESSION, "", f"Invalid value  for configuration {SESSION}: Not a number of type INT"),
    ("bogus", "1", "Unknown group config name: bogus"),
    ("share.auto.offset.reset", "by_duration:-PT1H", "of the format 'by_duration:<PnDTnHnMn.nS>'."),
    ("share.auto.offset.reset", "by_duration:P", "of the format 'by_duration:<PnDTnHnMn.nS>'."),
    ("share.isolation.level", "x", "String must be one of: read_committed, read_uncommitted"),
    ("streams.num.standby.replicas", "3", "streams.num.standby.replicas must be less than or equal to 2"),
    ("share.delivery.count.limit", "11", "share.delivery.count.limit must be in the range 2 to 10 inclusive."),
    ("share.delivery.count.limit", "1", "Value must be at least 2"),
)


@pytest.mark.parametrize(("name", "value", "message"), INVALID)
def test_value_that_a_group_may_not_have_is_refused(broker, alter, name, value, message):
    ((code, said),) = alter(Resource(GROUP, "g", [Config(name, SET, value)]))
    assert code == ErrorCode.INVALID_CONFIG
    assert message in said
    assert broker.image.configs_of_resource(GROUP, "g") == {}


@pytest.mark.parametrize("value", ["earliest", "by_duration:PT1H", "by_duration:p1dt2.5s"])
def test_share_groups_may_begin_where_kafka_lets_them(alter, value):
    change = Config("share.auto.offset.reset", SET, value)
    assert alter(Resource(GROUP, "g", [change])) == [(ErrorCode.NONE, None)]


def test_session_of_a_group_is_longer_than_its_heartbeat(make_broker):
    low = {"group.consumer.min.session.timeout.ms": "5000"}
    broker = make_broker(low)
    request = IncrementalAlterConfigsRequest([Resource(GROUP, "g", [Config(SESSION, SET, "5000")])])
    (response,) = broker.ask(handle_incremental_alter_configs, request, 1).responses
    assert response.error_message == f"{SESSION} must be greater than {HEARTBEAT}"


def test_subscription_is_altered_and_described(broker, alter):
    changes = [Config("interval.ms", SET, "1000"), Config("metrics", SET, " a , b,a")]
    assert alter(Resource(CLIENT_METRICS, "s", changes)) == [(ErrorCode.NONE, None)]
    assert described(broker, CLIENT_METRICS, "s", "interval.ms", "match", "metrics") == {
        "interval.ms": ("1000", 7, [("interval.ms", "1000", 7)]),
        "match": ("", 5, []),
        "metrics": ("a,b", 7, [("metrics", "a,b", 7)]),
    }


@pytest.mark.parametrize(
    ("name", "value", "code", "message"),
    [
        ("interval.ms", "99", ErrorCode.INVALID_REQUEST, "must be between 100 and 3600000 (1 hour)"),
        ("interval.ms", "3600001", ErrorCode.INVALID_REQUEST, "must be between 100 and 3600000"),
        ("interval.ms", "x", ErrorCode.INVALID_CONFIG, "Not a number of type INT"),
        ("bogus", "1", ErrorCode.INVALID_REQUEST, "Unknown client metrics configuration: bogus"),
        ("match", "client_id=", ErrorCode.INVALID_CONFIG, "matching pattern: client_id="),
        ("match", "client_id=a=b", ErrorCode.INVALID_CONFIG, "matching pattern: client_id=a=b"),
        ("match", "client_id=a,x=y", ErrorCode.INVALID_CONFIG, "matching pattern: x=y"),
        ("match", "client_id=(", ErrorCode.INVALID_CONFIG, "matching pattern: client_id=("),
        ("metrics", "a,,b", ErrorCode.INVALID_CONFIG, "'metrics' values must not be empty."),
    ],
)
def test_value_that_a_subscription_may_not_have_is_refused(alter, name, value, code, message):
    ((told, said),) = alter(Resource(CLIENT_METRICS, "s", [Config(name, SET, value)]))
    assert told == code
    assert message in said


@pytest.mark.parametrize("operation", [APPEND, SUBTRACT])
def test_lists_of_subscriptions_are_not_appended_to(alter, operation):
    message = f"Can't {operation.name} to key metrics because its type is not LIST."
    change = Config("metrics", operation, "a")
    assert alter(Resource(CLIENT_METRICS, "s", [change])) == [(ErrorCode.INVALID_CONFIG, message)]


def test_groups_and_subscriptions_need_a_name(alter):
    assert alter(Resource(GROUP, "", [Config(SESSION, DELETE, None)]), Resource(CLIENT_METRICS, "", [])) == [
        (ErrorCode.INVALID_REQUEST, "Default group resources are not allowed."),
        (ErrorCode.INVALID_REQUEST, "Subscription name can't be empty"),
    ]


def test_reset_of_the_cluster_forgets_configs_of_groups(broker, alter):
    alter(Resource(GROUP, "g", [Config(SESSION, SET, "47000")]))
    broker.active.reset()
    assert broker.image.resource_configs == {}


@pytest.mark.usefixtures("levels")
def test_level_of_a_logger_is_set_described_and_removed(broker, alter):
    logging.getLogger().setLevel(logging.WARNING)
    assert alter(Resource(LOGGERS, "1", [Config(LOGGER, SET, "TRACE")])) == [(ErrorCode.NONE, None)]
    assert described(broker, LOGGERS, "1", LOGGER) == {LOGGER: ("TRACE", 6, [])}
    assert logging.getLogger(LOGGER).isEnabledFor(5)
    assert alter(Resource(LOGGERS, "1", [Config("root", SET, "ERROR")])) == [(ErrorCode.NONE, None)]
    alter(Resource(LOGGERS, "1", [Config(LOGGER, DELETE, None)]))
    assert described(broker, LOGGERS, "1", LOGGER, "root") == {
        "root": ("ERROR", 6, []), LOGGER: ("ERROR", 6, []),
    }  # fmt: skip


@pytest.mark.usefixtures("levels")
@pytest.mark.parametrize(
    ("name", "changes", "code", "message"),
    [
        ("1", [Config("no.such", SET, "INFO")], ErrorCode.INVALID_CONFIG, "Logger no.such does not"),
        ("1", [Config("no.such", DELETE, None)], ErrorCode.INVALID_CONFIG, "Logger no.such does"),
        ("1", [Config(LOGGER, SET, "debug")], ErrorCode.INVALID_CONFIG, "DEBUG, ERROR, FATAL, INFO,"),
        ("1", [Config("root", DELETE, None)], ErrorCode.INVALID_REQUEST, "Removing the log level"),
        ("1", [Config(LOGGER, APPEND, "INFO")], ErrorCode.INVALID_REQUEST, "APPEND operation is not"),
        ("1", [Config(LOGGER, SET, None)], ErrorCode.INVALID_REQUEST, f"supported for : {LOGGER}"),
        ("1", [Config(LOGGER, 9, "INFO")], ErrorCode.UNKNOWN_SERVER_ERROR, ""),
        ("2", [Config(LOGGER, SET, "INFO")], ErrorCode.INVALID_REQUEST, "Expected 1, but received 2"),
        ("", [Config(LOGGER, SET, "INFO")], ErrorCode.INVALID_REQUEST, "must be an integer, but it"),
        (
            "1",
            [Config(LOGGER, SET, "INFO"), Config(LOGGER, DELETE, None)],
            ErrorCode.INVALID_REQUEST,
            "Error due to duplicate config keys",
        ),
    ],
)
def test_change_of_loggers_that_kafka_refuses_changes_none(alter, name, changes, code, message):
    level = logging.getLogger(LOGGER).level
    changed = [Config("broker_sim.replica", SET, "FATAL")] if changes[0].name == "no.such" else []
    ((told, said),) = alter(Resource(LOGGERS, name, changed + changes))
    assert told == code
    assert message in (said or "")
    assert logging.getLogger(LOGGER).level == level


@pytest.mark.usefixtures("levels")
def test_validate_only_does_not_change_log_levels(alter):
    level = logging.getLogger(LOGGER).level
    change = Resource(LOGGERS, "1", [Config(LOGGER, SET, "TRACE")])
    assert alter(change, validate_only=True) == [(ErrorCode.NONE, None)]
    assert logging.getLogger(LOGGER).level == level
