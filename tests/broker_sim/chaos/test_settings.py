"""The settings of a search: each is an option and an argument of the marker, has an effect, and is printed."""

import sys
from dataclasses import fields
from inspect import signature

import pytest

from broker_sim.chaos import Schedule, run_chaos
from broker_sim.chaos.search import NamedTest
from broker_sim.chaos.settings import Settings, settings_by_name
from broker_sim.cli.chaos import command
from broker_sim.errors import ConfigError
from broker_sim.testing.options import signatures

CALM = Schedule(1, brokers=1, workers=1, duration_ms=0)
GIVEN = {
    "brokers": 5,
    "configs": {"num.partitions": 7},
    "topics": ["orders:2"],
    "security": "sasl_plaintext",
    "users": {"billing": "secret"},
    "seeds": 3,
    "workers": 1,
    "duration_s": 7,
    "faults": {"crash"},
    "order": "seeded",
    "latency_ms": 77,
    "exhaustive": "brokers",
    "max_runs": 9,
    "schedule": "seed=8\n100 kill broker-1 for=50",
    "repair_aiokafka": True,
}
"""Something else than the default for each setting."""
OF_A_RUN = ("configs", "topics", "security", "users", "repair_aiokafka")


def test_every_setting_is_tried():
    assert list(GIVEN) == [each.name for each in fields(Settings) if each.init]
    assert {name for name, setting in settings_by_name().items() if setting.of_a_run} == {*OF_A_RUN}


def test_marker_command_and_function_take_the_settings():
    assert GIVEN.keys() <= {param.name for param in command.params}
    for name in GIVEN:
        assert f"{name}=" in signatures()["chaos"]
    assert {*signature(run_chaos).parameters} == {"test", "schedule", "observe", *OF_A_RUN}


@pytest.mark.parametrize("name", [name for name in GIVEN if name not in {*OF_A_RUN, "max_runs"}])
def test_setting_changes_what_is_drawn(name):
    settings = Settings(**{name: GIVEN[name]})
    assert [*settings.schedules()] != [*Settings().schedules()]


async def tell_the_cluster(chaos):
    """Fail with what there is of the cluster."""
    kafka = chaos.kafka
    image, protocol = kafka.nodes.controller.image, kafka.client_config("aiokafka").get("security_protocol")
    topics = {name: len(topic.partitions) for name, topic in image.topics.items()}
    default = kafka.nodes.brokers[1].config.num_partitions
    raise AssertionError(f"{topics} {default} {protocol}")


class Shop:
    """Stands for the module of the test."""

    tell_the_cluster = staticmethod(tell_the_cluster)


def test_settings_of_a_run_reach_it_and_its_printed_test(monkeypatch):
    given = {name: GIVEN[name] for name in OF_A_RUN}
    monkeypatch.setattr("broker_sim.chaos.search.load_test", lambda _: tell_the_cluster)
    failure = NamedTest("shop:tell_the_cluster", Settings(**given)).examine(CALM, shrinks=False)
    assert failure.small.text == "{'orders': 2} 7 SASL_PLAINTEXT"
    assert failure.small.repairs
    source = failure.as_test()
    assert source.startswith("import shop\nfrom broker_sim.chaos import Schedule, run_chaos\n")
    names = {}
    monkeypatch.setitem(sys.modules, "shop", Shop)
    exec(source, names)
    with pytest.raises(AssertionError, match=r"\{'orders': 2\} 7 SASL_PLAINTEXT"):
        names["test_seed_1"]()
    marker = failure.in_pytest("")
    for name, value in given.items():
        assert f"{name}={value!r}" in marker


def test_number_of_runs_is_a_limit(monkeypatch):
    async def two_meet(chaos):
        async def work():
            pass

        chaos.start(work, count=3)

    monkeypatch.setattr("broker_sim.chaos.search.load_test", lambda _: two_meet)
    test = NamedTest("shop:two_meet", Settings(exhaustive=True, max_runs=2, workers=3))
    assert test.explore(test.draw(0)).orders <= 2


def test_searches_with_different_runs_have_different_reprs():
    plain, more = Settings(faults={"pause", "crash"}), Settings(faults=["crash", "pause"], seeds=500)
    assert repr(plain) == repr(more)
    for name in ("topics", "configs", "order", "brokers", "security"):
        assert repr(Settings(**{name: GIVEN[name]})) != repr(Settings())
    assert "secret" not in repr(Settings(security="sasl_plaintext", users=GIVEN["users"]))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"repair_aiokafka": "yes"}, "repair_aiokafka='yes': choose True or False"),
        ({"duration_s": 0.5}, "duration_s=0.5: pass seconds, from 1 to a day"),
        ({"duration_s": float("nan")}, "duration_s=nan: pass seconds"),
        ({"duration_s": float("inf")}, "duration_s=inf: pass seconds"),
        ({"topics": ["a:b"]}, "is not NAME:PARTITIONS:RF:KEY=VALUE"),
        ({"configs": {"group.share.record.lock.duration.ms": 500}}, "must be at "),
    ],
)
def test_what_no_search_can_have_is_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        Settings(**settings)
