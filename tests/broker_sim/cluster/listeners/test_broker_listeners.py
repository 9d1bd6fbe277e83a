"""Which listeners brokers have; refusals are worded as those of a starting Kafka 4.3.1."""

from functools import partial

import pytest

from broker_sim.cluster.arguments import broker_configs_by_id
from broker_sim.cluster.listeners.broker_listeners import broker_listeners, listeners_by_id, with_listeners
from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim.config import Endpoint
from broker_sim.errors import ConfigError
from broker_sim.network.socket_server import SocketServer

MAP = "INSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT,OUTSIDE:PLAINTEXT"
CONTROLLER = "CONTROLLER://:19093"
TWO = f"INSIDE://:19092,OUTSIDE://:9092,{CONTROLLER}"
SHOWN = "[INSIDE://:19092, OUTSIDE://:9092, CONTROLLER://:19093]"
INVALID_ADVERTISED = "requirement failed: advertised.listeners"


def listeners_of(configs, *, brokers=1, host="127.0.0.1", advertised_host="", ports=None, own=None):
    configs = broker_configs_by_id(brokers, configs, own)
    return listeners_by_id(configs, ports, partial(broker_listeners, host=host, advertised_host=advertised_host))


def kafka(listeners=TWO, protocols=MAP, inter_broker="INSIDE", **more):
    """Return configurations as a file of Kafka's has them; None leaves one out."""
    configs = {
        "listeners": listeners,
        "listener.security.protocol.map": protocols,
        "inter.broker.listener.name": inter_broker,
        "controller.listener.names": "CONTROLLER",
        **{name.replace("_", "."): value for name, value in more.items()},
    }
    return {name: value for name, value in configs.items() if value is not None}


def plaintext(name, host, port):
    return Endpoint(name, host, port)


def test_without_any_configuration_there_is_one_listener_at_host_and_port():
    found = listeners_of({}, brokers=2, ports=[9092, 0], advertised_host="kafka")
    assert found[1].bound == (plaintext("PLAINTEXT", "127.0.0.1", 9092),)
    assert found[1].advertised == (plaintext("PLAINTEXT", "kafka", 9092),)
    assert found[2].bound == (plaintext("PLAINTEXT", "127.0.0.1", 0),)
    assert found[2].inter_broker == "PLAINTEXT"


def test_a_configuration_of_kafka_is_taken_with_the_listener_of_its_controller():
    advertised = "Inside://kafka:19092,outside://[::1]:0"
    (found,) = listeners_of(
        kafka(f"inside://:19092,OUTSIDE://0.0.0.0:9092,{CONTROLLER}", advertised_listeners=advertised)
    ).values()
    assert found.bound == (
        plaintext("INSIDE", "127.0.0.1", 19092),
        plaintext("OUTSIDE", "0.0.0.0", 9092),
        plaintext("CONTROLLER", "127.0.0.1", 19093),
    )
    assert found.advertised == (plaintext("INSIDE", "kafka", 19092), plaintext("OUTSIDE", "::1", 0))
    assert found.controllers == (plaintext("CONTROLLER", "127.0.0.1", 19093),)
    assert found.inter_broker == "INSIDE"


@pytest.mark.parametrize(
    ("advertised_host", "configs", "address"),
    [
        ("", {}, ("localhost", 5)),
        ("kafka", {}, ("kafka", 5)),
        ("", {"advertised_listeners": "INSIDE://:1,CONTROLLER://outside:7"}, ("outside", 7)),
    ],
)
def test_a_controllers_listener_at_every_address_has_one_that_clients_can_reach(advertised_host, configs, address):
    text = "INSIDE://:0,CONTROLLER://0.0.0.0:5"
    (found,) = listeners_of(kafka(text, **configs), advertised_host=advertised_host).values()
    assert [(each.host, each.port) for each in found.controllers] == [address]


def test_a_controllers_listener_whose_port_a_broker_has_is_left_out():
    found = listeners_of(kafka(f"INSIDE://:19092,{CONTROLLER}"), brokers=3)
    assert {n: [each.port for each in found[n].bound] for n in found} == {1: [19092], 2: [19093], 3: [19094, 19095]}
    assert {n: [each.port for each in found[n].controllers] for n in found} == {1: [], 2: [], 3: [19095]}


def test_of_controllers_listeners_with_one_port_the_first_brokers_is_open():
    own = {n: {"listeners": f"INSIDE://:{n},{CONTROLLER}"} for n in (1, 2)}
    found = listeners_of(kafka(), brokers=2, own=own)
    assert {n: [each.port for each in found[n].controllers] for n in found} == {1: [19093], 2: []}


def test_each_broker_has_the_next_ports_unless_they_are_its_own():
    configs = kafka("INSIDE://:19092,OUTSIDE://:0", advertised_listeners="INSIDE://in:9,OUTSIDE://out:0")
    own = {3: {"listeners": "INSIDE://:7000,OUTSIDE://:7001"}}
    found = listeners_of(configs, brokers=3, own=own)
    assert [[each.port for each in found[n].bound] for n in (1, 2, 3)] == [[19092, 0], [19093, 0], [7000, 7001]]
    assert [[each.port for each in found[n].advertised] for n in (1, 2, 3)] == [[9, 0], [10, 0], [11, 0]]


def test_arguments_make_plaintext_listeners_whose_first_is_that_between_brokers():
    configs = with_listeners(None, "in://h:0,out://h:0", "out://kafka:1,in://h:0")
    (found,) = listeners_of(configs).values()
    assert [each.listener for each in found.bound] == ["IN", "OUT"]
    assert found.inter_broker == "OUT"


def test_configurations_take_precedence_over_arguments():
    given = {"inter.broker.listener.name": "IN", "advertised.listeners": "OUT://h:1,IN://h:2"}
    (found,) = listeners_of(with_listeners(given, "IN://h:0,OUT://h:0", None)).values()
    assert found.inter_broker == "IN"
    assert [each.port for each in found.advertised] == [1, 2]


def test_the_advertised_host_is_for_listeners_that_are_not_advertised_otherwise():
    (found,) = listeners_of(kafka(TWO), advertised_host="kafka").values()
    assert {each.host for each in found.advertised} == {"kafka"}
    (found,) = listeners_of(kafka(TWO, advertised_listeners="INSIDE://in:1"), advertised_host="kafka").values()
    assert found.advertised == (plaintext("INSIDE", "in", 1),)


@pytest.mark.parametrize(
    ("configs", "reason"),
    [
        (
            kafka(protocols=None),
            (f"Error creating broker listeners from '{SHOWN}': No security protocol defined for listener INSIDE"),
        ),
        (
            kafka(advertised_listeners="OUTSIDE://localhost:9092"),
            (
                "requirement failed: inter.broker.listener.name must be a listener name defined in"
                " advertised.listeners. The valid options based on currently configured listeners are"
                " OUTSIDE"
            ),
        ),
        (
            kafka(inter_broker=None),
            (
                "requirement failed: inter.broker.listener.name must be a listener name defined in"
                " advertised.listeners. The valid options based on currently configured listeners are"
                " INSIDE,OUTSIDE"
            ),
        ),
        (
            kafka(inter_broker="FOO"),
            (
                "Listener with name FOO defined in inter.broker.listener.name not found in"
                " listener.security.protocol.map."
            ),
        ),
        (
            kafka(security_inter_broker_protocol="PLAINTEXT"),
            "Only one of inter.broker.listener.name and security.inter.broker.protocol should be set.",
        ),
        (
            kafka(
                f"INSIDE://:19092,{CONTROLLER}",
                advertised_listeners="INSIDE://localhost:19092,OUTSIDE://localhost:9092",
            ),
            (
                f"{INVALID_ADVERTISED} listener names must be equal to or a subset of the ones defined in"
                " listeners. Found INSIDE,OUTSIDE. The valid options based on the current configuration"
                " are INSIDE,CONTROLLER"
            ),
        ),
        (
            kafka(advertised_listeners="INSIDE://localhost:19092,OUTSIDE://0.0.0.0:9092"),
            (f"{INVALID_ADVERTISED} cannot use the nonroutable meta-address 0.0.0.0. Use a routable IP address."),
        ),
        (
            kafka("INSIDE://:1,INSIDE://:2"),
            (
                "Error creating broker listeners from '[INSIDE://:1, INSIDE://:2]': Each listener must have"
                " a different name, listeners: [INSIDE://:1, INSIDE://:2]"
            ),
        ),
        (
            kafka("INSIDE://:1,OUTSIDE://:1"),
            (
                "Error creating broker listeners from '[INSIDE://:1, OUTSIDE://:1]': Each listener must have"
                " a different port, listeners: [INSIDE://:1, OUTSIDE://:1]"
            ),
        ),
        (
            kafka(protocols="INSIDE:PLAIN,OUTSIDE:PLAINTEXT"),
            "Invalid security protocol `PLAIN` defined in listener.security.protocol.map",
        ),
        (
            kafka(protocols="INSIDE,OUTSIDE:PLAINTEXT"),
            ("Error parsing configuration property 'listener.security.protocol.map': begin 0, end -1, length 6"),
        ),
        (
            kafka("INSIDE:19092"),
            (
                "Error creating broker listeners from '[INSIDE:19092]': Unable to parse INSIDE:19092 to a"
                " broker endpoint"
            ),
        ),
        (
            kafka(advertised_listeners=""),
            ("Configuration 'advertised.listeners' must not be empty. Valid values include: any non-empty value"),
        ),
        (
            kafka(CONTROLLER, inter_broker=None),
            (
                "requirement failed: There must be at least one broker advertised listener. Perhaps all"
                " listeners appear in controller.listener.names?"
            ),
        ),
        (
            kafka("INSIDE://:99999"),
            "listeners has port 99999 for INSIDE; a port is a number from 0 (any free one) to 65535",
        ),
    ],
)
def test_listeners_that_a_starting_kafka_refuses(configs, reason):
    with pytest.raises(ConfigError) as refusal:
        listeners_of(configs)
    assert str(refusal.value) == reason


def test_listeners_go_without_ports_and_are_given_once():
    with pytest.raises(ConfigError, match="listeners contains the ports; leave out ports"):
        listeners_of(kafka(), ports=[9092])
    with pytest.raises(ConfigError, match="listeners is set twice: as listeners and in configs"):
        with_listeners(kafka(), "A://:1", None)
    with pytest.raises(ConfigError, match=r"^advertised_listeners must be a text such as 'INSIDE://"):
        with_listeners(None, "A://:1", ["A://:1"])


def test_error_while_a_broker_opens_its_sockets_is_raised(monkeypatch):
    def fail(*_):
        raise RuntimeError("the gate is broken")

    monkeypatch.setattr(SocketServer, "start", fail)
    with pytest.raises(RuntimeError, match="the gate is broken"):
        VirtualCluster(1)


MECHANISM_IS_OFF = (
    "requirement failed: sasl.mechanism.inter.broker.protocol must be included in sasl.enabled.mechanisms when SASL is"
    " used for inter-broker communication"
)
NO_LISTENER_X = (
    "early.start.listeners contains listener x, but this is not contained in listeners or controller.listener.names"
)
LOGINS = {
    "protocols": "INSIDE:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT,OUTSIDE:PLAINTEXT",
    "sasl_enabled_mechanisms": "SCRAM-SHA-256",
}


@pytest.mark.parametrize(
    ("configs", "reason"),
    [
        (
            {**LOGINS, "sasl_mechanism_inter_broker_protocol": "PLAIN"},
            MECHANISM_IS_OFF,
        ),
        (
            {"early_start_listeners": "INSIDE,x"},
            NO_LISTENER_X,
        ),
        ({"inter_broker": " "}, "The provided listener name is null or empty string"),
        ({"protocols": ""}, f"Error creating broker listeners from '{SHOWN}': No security protocol defined for"),
    ],
)
def test_what_a_starting_broker_refuses_of_lists_of_listeners(configs, reason):
    with pytest.raises(ConfigError) as refusal:
        listeners_of(kafka(**configs))
    assert str(refusal.value).startswith(reason)


@pytest.mark.parametrize(
    "configs",
    [
        {"sasl_mechanism_inter_broker_protocol": "PLAIN"},
        {**LOGINS, "sasl_mechanism_inter_broker_protocol": "SCRAM-SHA-256"},
        LOGINS,
        {"early_start_listeners": ""},
        {"early_start_listeners": "CONTROLLER, OUTSIDE"},
    ],
)
def test_what_a_starting_broker_takes_of_lists_of_listeners(configs):
    assert listeners_of(kafka(**configs))[1].inter_broker == "INSIDE"


def test_the_controllers_listener_needs_no_protocol_where_no_map_is_set():
    plain = "PLAINTEXT://:9092"
    found = listeners_of(kafka(f"{plain},{CONTROLLER}", protocols=None, inter_broker=None))
    assert [each.listener for each in found[1].bound] == ["PLAINTEXT", "CONTROLLER"]


def test_a_map_gives_the_usual_listener_its_protocol():
    configs = {"listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT", "sasl.enabled.mechanisms": "SCRAM-SHA-256"}
    found = listeners_of(configs)
    assert found[1].bound == (Endpoint("PLAINTEXT", "127.0.0.1", 0, "SASL_PLAINTEXT"),)
