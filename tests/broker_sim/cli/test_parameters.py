"""Topics and configurations as people write them on a command line."""

import click
import pytest

from broker_sim.cli.parameters import check_topics, parse_broker_configs, parse_configs, parse_features, parse_users


@pytest.fixture
def topics():
    return lambda *texts: check_topics(None, None, texts)


@pytest.fixture
def configs():
    return lambda *texts: parse_configs(None, None, texts)


@pytest.mark.parametrize("text", ["orders:three", "orders:1:x", "orders:1:1:2", "orders:1:1:=v"])
def test_invalid_topic_is_refused_with_an_example(topics, text):
    with pytest.raises(click.BadParameter, match=r"NAME:PARTITIONS:RF:KEY=VALUE, for example"):
        topics(text)


def test_last_value_of_a_configuration_counts(configs):
    assert configs("a=1", "b=x=y", "a=2", "c=") == {"a": "2", "b": "x=y", "c": ""}


@pytest.mark.parametrize("text", ["a", "=1", ""])
def test_invalid_configuration_is_refused_with_an_example(configs, text):
    with pytest.raises(click.BadParameter, match=r"KEY=VALUE, for example"):
        configs(text)


def test_configurations_of_single_brokers_are_kept_apart():
    texts = ["0:broker.rack=a", "1:broker.rack=b", "0:log.dir=x:y=z"]
    assert parse_broker_configs(None, None, texts) == {
        0: {"broker.rack": "a", "log.dir": "x:y=z"},
        1: {"broker.rack": "b"},
    }


@pytest.mark.parametrize("text", ["broker.rack=a", "x:broker.rack=a", "1:broker.rack", "1:=a", ":a=b", "-1:a=b"])
def test_invalid_configuration_of_a_broker_is_refused_with_an_example(text):
    with pytest.raises(click.BadParameter, match=r"BROKER:KEY=VALUE, for example 1:broker.rack=a"):
        parse_broker_configs(None, None, [text])


@pytest.mark.parametrize("text", ["billing", "=secret", "secret="])
def test_invalid_user_is_refused_and_not_shown(text):
    with pytest.raises(click.BadParameter, match=r"a user is NAME=PASSWORD, for example") as error:
        parse_users(None, None, [text])
    assert str(error.value) == "a user is NAME=PASSWORD, for example billing=secret"


def test_users_have_passwords():
    assert parse_users(None, None, ["a=b=c", "d=e"]) == {"a": "b=c", "d": "e"}
    assert parse_users(None, None, []) is None


def test_feature_has_a_name_and_a_level():
    texts = ("metadata.version=19", "group.version=0")
    assert parse_features(None, None, texts) == {"metadata.version": 19, "group.version": 0}
    for text in ("metadata.version", "=19", "metadata.version=x", "metadata.version=-1"):
        with pytest.raises(click.BadParameter, match=r"NAME=LEVEL, for example metadata\.version=19"):
            parse_features(None, None, [text])
