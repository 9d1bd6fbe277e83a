"""Numbers that are set on a group stay within the limits of the broker's configuration."""

import pytest

from broker_sim.config import (
    BROKER_CONFIGS,
    GROUP_CONFIGS,
    BrokerConfig,
    check_group_configs,
    group_number,
    limits_of_group_config,
    to_text,
)
from broker_sim.errors import ConfigError

LIMITED = [(name, limit) for name in GROUP_CONFIGS for limit in limits_of_group_config(name) if limit in BROKER_CONFIGS]


def test_every_number_of_consumer_and_share_groups_has_two_limits():
    kinds = [name.partition(".")[0] for name, _ in LIMITED]
    assert kinds.count("consumer") == 2 * 3
    assert kinds.count("share") == 2 * 6


@pytest.mark.parametrize(("name", "limit"), LIMITED, ids=[limit for _, limit in LIMITED])
def test_a_number_beyond_a_limit_is_refused_and_acted_on_as_the_limit(name, limit):
    low, _ = limits_of_group_config(name)
    at = int(to_text(BROKER_CONFIGS[limit].default))
    beyond = at - 1 if limit == low else at + 1
    default = BrokerConfig()
    assert group_number(default, name, str(at)) == at
    assert group_number(default, name, str(beyond)) == at
    words = "greater" if limit == low else "less"
    with pytest.raises(ConfigError) as refused:
        check_group_configs(default, {name: str(beyond)})
    # A number that no broker allows is refused by its type.
    assert str(refused.value) in {f"{name} must be {words} than or equal to {limit}", *no_group_allows(name, beyond)}


def no_group_allows(name, number):
    try:
        GROUP_CONFIGS[name].parse(str(number))
    except ConfigError as error:
        yield str(error)


def test_the_brokers_own_limits_count():
    wide = BrokerConfig.from_mapping({"group.share.min.record.lock.duration.ms": "1000"})
    name = "share.record.lock.duration.ms"
    check_group_configs(wide, {name: "1000"})
    assert group_number(wide, name, "1000") == 1000
    assert group_number(BrokerConfig(), name, "1000") == 15_000


@pytest.mark.parametrize("kind", ["consumer", "share"])
def test_a_session_is_longer_than_the_heartbeats_interval(kind):
    session = f"{kind}.session.timeout.ms"
    with pytest.raises(ConfigError, match=f"{session} must be greater than"):
        check_group_configs(
            BrokerConfig.from_mapping({f"group.{kind}.min.session.timeout.ms": "1000"}), {session: "4000"}
        )
