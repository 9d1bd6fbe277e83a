"""Tests of connection counts and connection rates of brokers, listeners and addresses."""

import pytest
from broker_sim_purgatory import VirtualClock

from broker_sim.config import BrokerConfig
from broker_sim.errors import ConfigError
from broker_sim.quota import ConnectionQuotas

IP, OTHER_IP = "10.0.0.1", "10.0.0.2"
ANY, OWN = (("ip", None),), (("ip", IP),)
INSIDE, OUTSIDE = "INSIDE", "OUTSIDE"


@pytest.fixture
def clock():
    return VirtualClock()


def ip_rate(rate):
    return {"connection_creation_rate": rate}


def quotas_of(clock, configs=None, listeners=(OUTSIDE,), inter_broker="", ips=None):
    quotas = ConnectionQuotas(BrokerConfig.from_mapping(configs or {}), clock)
    quotas.listen(listeners, inter_broker)
    quotas.update(ips or {})
    return quotas


def accepted(quotas, count, listener=OUTSIDE):
    return [quotas.accept(listener) for _ in range(count)]


# -- rates --------------------------------------------------------------------------------------------


def test_throttled_connections_of_an_address_do_not_count(clock):
    """Kafka 4.3.1 at one connection per second: ten are accepted, the others are closed after 1 s each."""
    quotas = quotas_of(clock, ips={ANY: ip_rate(1.0)})
    assert [quotas.accept_from(OUTSIDE, IP) for _ in range(13)] == [0] * 10 + [1_000] * 3
    assert quotas.accept_from(OUTSIDE, OTHER_IP) == 0
    clock.advance_to(11_000)
    assert [quotas.accept_from(OUTSIDE, IP) for _ in range(11)] == [0] * 10 + [1_000]


def test_quota_of_an_address_overrides_the_default(clock):
    quotas = quotas_of(clock, ips={ANY: ip_rate(1.0), OWN: ip_rate(2.0)})
    assert sum(not quotas.accept_from(OUTSIDE, IP) for _ in range(40)) == 20
    clock.advance_to(900)  # 21 in 10.9 s; would be 41 if throttled ones counted
    assert quotas.accept_from(OUTSIDE, IP) == 0
    quotas.update({(("user", "u"),): {"producer_byte_rate": 1.0}})
    assert quotas.accept_from(OUTSIDE, IP) == 0


def test_broker_stops_accepting_above_its_rate(clock):
    quotas = quotas_of(clock, {"max.connection.creation.rate": "1"}, [OUTSIDE, INSIDE])
    assert accepted(quotas, 11) == [0] * 10 + [1_000]
    assert accepted(quotas, 1, INSIDE) == [1_000]
    assert accepted(quotas_of(clock), 1) == [0]


def test_listener_has_a_rate_of_its_own(clock):
    own = {"listener.name.outside.max.connection.creation.rate": "1"}
    quotas = quotas_of(clock, own, [OUTSIDE, INSIDE])
    assert accepted(quotas, 12) == [0] * 10 + [1_000] * 2
    assert accepted(quotas, 99, INSIDE) == [0] * 99


def test_inter_broker_listener_does_not_count_in_broker_rate(clock):
    configs = {"max.connection.creation.rate": "1"}
    quotas = quotas_of(clock, configs, [OUTSIDE, INSIDE], INSIDE)
    assert accepted(quotas, 11, INSIDE) == [0] * 10 + [1_000]
    assert accepted(quotas, 11) == [0] * 10 + [1_000]


@pytest.mark.parametrize("name", ["max.connection.creation.rate", "listener.name.outside.max.connection.creation.rate"])
def test_throttled_address_does_not_count_for_broker_or_listener(clock, name):
    quotas = quotas_of(clock, {name: "2"}, ips={OWN: ip_rate(1.0)})
    for _ in range(30):
        assert quotas.accept(OUTSIDE) == 0
        quotas.accept_from(OUTSIDE, IP)
    assert accepted(quotas, 11) == [0] * 10 + [500]


def test_connections_before_the_rate_was_set_count(clock):
    """Kafka 4.3.1: with a rate of 1 set right after two connections, eight more are accepted at once."""
    quotas = quotas_of(clock)
    accepted(quotas, 2)
    quotas.reconfigure({"listener.name.outside.max.connection.creation.rate": "1"})
    assert accepted(quotas, 9) == [0] * 8 + [1_000]


# -- numbers ------------------------------------------------------------------------------------------


def test_listener_inherits_the_limit_of_its_broker(clock):
    configs = {"max.connections": "2", "listener.name.inside.max.connections": "1"}
    quotas = quotas_of(clock, configs, [OUTSIDE, INSIDE], INSIDE)
    quotas.inc(INSIDE, IP)
    assert not quotas.has_slot(INSIDE)
    quotas.inc(OUTSIDE, IP)
    assert not quotas.has_slot(OUTSIDE)
    quotas.dec(INSIDE, IP)
    assert quotas.has_slot(OUTSIDE)
    assert quotas.has_slot(INSIDE)


def test_other_listener_configs_are_ignored_even_if_invalid(clock):
    # Kafka accepts them on a running broker and applies them at the next start.
    quotas = quotas_of(clock)
    of_listener = "listener.name.outside."
    quotas.reconfigure({f"{of_listener}max.connections": "1", f"{of_listener}max.connections.per.ip.overrides": "x"})
    assert quotas.has_slot(OUTSIDE)


def test_inter_broker_listener_is_protected_if_not_the_only_one(clock):
    quotas = quotas_of(clock, {"max.connections": "2"}, [OUTSIDE, INSIDE], INSIDE)
    for _ in range(2):
        quotas.inc(OUTSIDE, IP)
    assert (quotas.has_slot(OUTSIDE), quotas.has_slot(INSIDE)) == (False, True)
    assert quotas.closing == 0
    for _ in range(2):
        quotas.inc(INSIDE, IP)
    assert not quotas.has_slot(INSIDE)
    assert quotas.closing == 2
    alone = quotas_of(clock, {"max.connections": "1"}, [INSIDE], INSIDE)
    alone.inc(INSIDE, IP)
    assert not alone.has_slot(INSIDE)


def test_addresses_have_limits_of_their_own(clock):
    configs = {
        "max.connections.per.ip": "1",
        "max.connections.per.ip.overrides": f"{IP}:2,0:0:0:0:0:0:0:1:3,localhost:0",
    }
    quotas = quotas_of(clock, configs)
    assert quotas.limit_reached("127.0.0.1") == 0
    for ip, limit in ((OTHER_IP, 1), (IP, 2), ("::1", 3)):
        for _ in range(limit):
            assert quotas.limit_reached(ip) is None
            quotas.inc(OUTSIDE, ip)
        assert quotas.limit_reached(ip) == limit
    quotas.dec(OUTSIDE, IP)
    assert quotas.limit_reached(IP) is None


def test_limits_change_at_run_time_and_go_back(clock):
    quotas = quotas_of(clock, {"max.connections": "1"}, [OUTSIDE, INSIDE])
    changes = []
    quotas.on_change = lambda: changes.append(quotas.closing)
    quotas.inc(OUTSIDE, IP)
    quotas.inc(INSIDE, IP)
    quotas.reconfigure({"max.connections": "5", "listener.name.outside.max.connections": "1"})
    assert (quotas.has_slot(OUTSIDE), quotas.has_slot(INSIDE)) == (False, True)
    quotas.reconfigure({"max.connections": "5", "max.connections.per.ip.overrides": f"{IP}:2"})
    assert quotas.has_slot(OUTSIDE)
    assert quotas.limit_reached(IP) == 2
    quotas.reconfigure({})
    assert quotas.limit_reached(IP) is None
    assert changes == [0, 0, 1]


@pytest.mark.parametrize(
    ("configs", "reason"),
    [
        ({"max.connections.per.ip": "0"}, "can be set to zero only if"),
        ({"max.connections.per.ip.overrides": "a"}, "Error parsing configuration property"),
    ],
)
def test_invalid_limits_are_rejected_at_start(configs, reason):
    with pytest.raises(ConfigError, match=reason):
        BrokerConfig.from_mapping(configs)
