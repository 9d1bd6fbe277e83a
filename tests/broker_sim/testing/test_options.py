"""What the marker takes, and what it refuses in one line."""

import pytest

from broker_sim.cluster.arguments import ClusterOptions
from broker_sim.config import BrokerConfig
from broker_sim.errors import ConfigError
from broker_sim.testing.options import VirtualTimeOptions, configs_for_tests


def test_marker_without_arguments_is_one_run_with_three_brokers():
    options = VirtualTimeOptions.from_marker((), {})
    assert (options.seeds, options.brokers, options.order) == (1, 3, "fifo")
    assert options.range_ms() == (0, 0)


@pytest.mark.parametrize(("given", "ranged"), [(3, (3, 3)), (0.5, (0.5, 0.5)), ((1, 5), (1, 5))])
def test_latency_is_a_number_or_a_range(given, ranged):
    assert VirtualTimeOptions(latency_ms=given).range_ms() == ranged


@pytest.mark.parametrize(
    "kwargs",
    [
        {"limit_s": None},
        {"limit_s": 0.5},
        {"configs": {"replica.lag.time.max.ms": 20_000}},
        {"broker_configs": {3: {"replica.lag.time.max.ms": "20000"}}},
        {"as_version": "3.7"},
        {"deviations": "2000 order 2 1\n  2000.5 order 3 1 2\n"},
    ],
)
def test_good_arguments_are_taken(kwargs):
    options = VirtualTimeOptions.from_marker((), kwargs)
    assert {name: getattr(options, name) for name in kwargs} == kwargs


@pytest.mark.parametrize(
    ("kwargs", "text"),
    [
        (
            {"seed": 3},
            "unknown argument 'seed' (did you mean seeds?); allowed: brokers, first_broker_id, configs, ",
        ),
        ({"seeds": 0}, "seeds=0: pass a whole number"),
        ({"seeds": True}, "seeds=True: pass a whole number"),
        ({"seeds": range(3)}, "pass a whole number"),
        ({"brokers": 1.5}, "brokers=1.5: pass a whole number"),
        ({"order": "random"}, "order='random': choose 'fifo' or 'seeded'"),
        ({"order": []}, "choose 'fifo' or 'seeded'"),
        ({"deviations": "2000 order 2"}, "deviations: '2000 order 2': write a deviation as"),
        ({"deviations": 5}, "deviations: "),
        ({"latency_ms": -1}, "latency_ms=-1: pass milliseconds or"),
        ({"latency_ms": (5, 1)}, "pass milliseconds or"),
        ({"latency_ms": (1, 2, 3)}, "pass milliseconds or"),
        ({"latency_ms": "5"}, "pass milliseconds or"),
        ({"limit_s": 0}, "limit_s=0: pass seconds"),
        ({"configs": {"no.such": 1}}, "Unknown broker config name: no.such"),
        ({"configs": 5}, "configs=5: pass a mapping of configurations by name"),
        ({"topics": "orders"}, "topics='orders': pass a list of topics"),
        ({"topics": 5}, "topics=5: "),
        ({"security": "tls"}, "security must be one of plaintext, ssl, sasl_plaintext, sasl_ssl, not 'tls'"),
        ({"users": ["a"]}, "users must be a mapping such as"),
        ({"topics": ["a:b"]}, "topics=['a:b']: 'a:b' is not NAME:PARTITIONS:RF:KEY=VALUE"),
        ({"broker_configs": {4: {}}}, "unknown broker 4; the cluster has 3 brokers"),
        ({"broker_configs": {1: {"no.such": 1}}}, "Unknown broker config name: no.such"),
        ({"broker_configs": {1: None}}, "broker_configs[1]=None: pass a mapping of configurations by name"),
        ({"as_version": "9"}, "Unknown Kafka release '9'"),
    ],
)
def test_error_of_bad_arguments_is_one_line_with_the_allowed_values(kwargs, text):
    with pytest.raises(ConfigError) as error:
        VirtualTimeOptions.from_marker((), kwargs)
    assert text in str(error.value)
    assert "\n" not in str(error.value)


def test_positional_arguments_are_refused():
    with pytest.raises(ConfigError, match="keyword arguments only, not 20"):
        VirtualTimeOptions.from_marker((20,), {})


@pytest.mark.parametrize(
    ("given", "interval", "minimum"),
    [
        ({}, "200", "200"),
        ({"group.share.min.heartbeat.interval.ms": 300}, None, "300"),
        ({"group.share.heartbeat.interval.ms": 6_000}, "6000", None),
    ],
)
def test_share_groups_are_quick_unless_a_test_sets_their_times(given, interval, minimum):
    configs = configs_for_tests(ClusterOptions(configs=given))
    assert configs.get("group.share.heartbeat.interval.ms") == interval
    assert configs.get("group.share.min.heartbeat.interval.ms") == minimum
    assert ("group.share.assignment.interval.ms" in configs) == (not given)
    BrokerConfig.from_mapping(configs)


def test_configurations_of_the_marker_come_before_those_for_tests():
    given = {"group.initial.rebalance.delay.ms": 3_000, "num.partitions": 2}
    configs = configs_for_tests(ClusterOptions(configs=given))
    assert (configs["group.initial.rebalance.delay.ms"], configs["num.partitions"]) == ("3000", "2")
