"""Checks of the arguments of a cluster; each error is one line with what is allowed."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from broker_sim.cluster.listeners.broker_listeners import LAST_PORT, read_security
from broker_sim.cluster.text_forms import parse_topic
from broker_sim.config import ADVERTISED_LISTENERS, LISTENERS, BrokerConfig, shift_ports
from broker_sim.errors import ConfigError, UnknownBrokerError, did_you_mean
from broker_sim.runtime.sockets import bare_host

if TYPE_CHECKING:
    from broker_sim.config import GivenValue
    from broker_sim.control.server import ControlServer

_REPLICAS: Final = {
    "offsets.topic.replication.factor": BrokerConfig.offsets_topic_replication_factor,
    "transaction.state.log.replication.factor": BrokerConfig.transaction_state_log_replication_factor,
    "transaction.state.log.min.isr": BrokerConfig.transaction_state_log_min_isr,
    "share.coordinator.state.topic.replication.factor": (BrokerConfig.share_coordinator_state_topic_replication_factor),
    "share.coordinator.state.topic.min.isr": BrokerConfig.share_coordinator_state_topic_min_isr,
}
"""The default numbers of replicas of the coordinators' topics."""
FIRST_BROKER_ID: Final = 1
LAST_BROKER_ID: Final = 2**31 - 1
ANY_ADDRESSES = ("0.0.0.0", "::")  # noqa: S104 - refused, not bound


def broker_configs_by_id(
    brokers: object,
    configs: Mapping[str, GivenValue] | None,
    broker_configs: Mapping[int, Mapping[str, GivenValue]] | None,
    first_broker_id: object = FIRST_BROKER_ID,
) -> dict[int, BrokerConfig]:
    """Return the configuration of each broker by id. Raises ConfigError, UnknownBrokerError.

    A small cluster lowers the default replication of the coordinators' topics to its number of brokers: otherwise
    groups, transactions and share groups could not be used. Kafka's own `server.properties` sets it to 1 for the same
    reason.
    """
    if not isinstance(brokers, int) or isinstance(brokers, bool):
        raise ConfigError(f"brokers must be a number, not {brokers!r}")
    if brokers < 1:
        raise ConfigError(f"a cluster needs at least one broker, not {brokers}")
    _check_mapping("configs", configs, "{'min.insync.replicas': 2}")
    _check_mapping("broker_configs", broker_configs, "{1: {'broker.rack': 'a'}}")
    ids = broker_ids(brokers, first_broker_id)
    for broker_id, single in (broker_configs or {}).items():
        if broker_id not in ids or isinstance(broker_id, bool):
            raise UnknownBrokerError(broker_id, ids)
        _check_mapping(f"broker_configs[{broker_id}]", single, "{'broker.rack': 'a'}")
    # Most clusters have one configuration for all brokers, so it is parsed once.
    parsed: dict[tuple[tuple[str, GivenValue], ...], BrokerConfig] = {}
    by_id = {}
    for broker_id in ids:
        values = {
            **fitting_replicas(brokers),
            **_with_own_ports(configs or {}, broker_id - ids[0]),
            **(broker_configs or {}).get(broker_id, {}),
        }
        key = tuple(values.items())
        by_id[broker_id] = parsed[key] = parsed.get(key) or BrokerConfig.from_mapping(values)
    return by_id


def added_config(
    brokers: int,
    configs: Mapping[str, GivenValue] | None,
    broker_configs: Mapping[int, Mapping[str, GivenValue]] | None,
    first_broker_id: int,
    broker_id: object,
    more: Mapping[str, GivenValue] | None,
) -> BrokerConfig:
    """Return the configuration of a broker that is added to a cluster with these arguments. Raises ConfigError."""
    if not isinstance(broker_id, int) or isinstance(broker_id, bool) or not 0 <= broker_id <= LAST_BROKER_ID:
        raise ConfigError(f"broker_id must be a number from 0 to {LAST_BROKER_ID}, not {broker_id!r}")
    _check_mapping("configs", more, "{'broker.rack': 'a'}")
    return BrokerConfig.from_mapping(
        {
            **fitting_replicas(brokers),
            **_with_own_ports(configs or {}, broker_id - first_broker_id),
            **(broker_configs or {}).get(broker_id, {}),
            **(more or {}),
        }
    )


def fitting_replicas(brokers: int) -> dict[str, GivenValue]:
    """Return the coordinators' topics' settings that need more brokers than there are, lowered to that number."""
    return {name: brokers for name, default in _REPLICAS.items() if brokers < default}


def broker_ids(brokers: int, first_broker_id: object) -> range:
    """Return the ids of the brokers. Raises ConfigError unless all of them are ids that Kafka accepts."""
    if not isinstance(first_broker_id, int) or isinstance(first_broker_id, bool) or first_broker_id < 0:
        raise ConfigError(f"first_broker_id must be a number from 0 on, not {first_broker_id!r}")
    ids = range(first_broker_id, first_broker_id + brokers)
    if ids[-1] > LAST_BROKER_ID:
        raise ConfigError(f"first_broker_id={first_broker_id}: broker ids end at {LAST_BROKER_ID}")
    return ids


def _with_own_ports(configs: Mapping[str, GivenValue], brokers_before: int) -> dict[str, GivenValue]:
    """Return the configurations with each port raised by the number of brokers before this one."""
    return {
        name: shift_ports(value, brokers_before)
        if name in {LISTENERS, ADVERTISED_LISTENERS} and isinstance(value, str)
        else value
        for name, value in configs.items()
    }


def _check_mapping(name: str, value: object, example: str) -> None:
    if value is not None and not isinstance(value, Mapping):
        raise ConfigError(f"{name} must be a mapping such as {example}, not {value!r}")


def check_hosts(host: object, advertised_host: object, configs: Mapping[int, BrokerConfig]) -> None:
    """Raise ConfigError for invalid hosts, unless configurations name others."""
    for name, value in (("host", host), ("advertised_host", advertised_host)):
        if value is not None and (not isinstance(value, str) or not value):
            raise ConfigError(f"{name} must be a name or an address, not {value!r}")
    advertised = bare_host(str(advertised_host or host))
    names = {LISTENERS, ADVERTISED_LISTENERS}
    has_others = all(names & config.originals.keys() for config in configs.values())
    if advertised in ANY_ADDRESSES and not has_others:
        raise ConfigError(
            f"clients cannot connect to {advertised}: set the advertised host (advertised_host, "
            "--advertised-host) to the name or address by which they reach the brokers"
        )


def check_ports(brokers: int, ports: object) -> None:
    """Raise ConfigError for anything but None and one port for each broker."""
    if ports is None:
        return
    if not isinstance(ports, Sequence) or isinstance(ports, str):
        raise ConfigError(f"ports must be a list with one port for each broker, not {ports!r}")
    if len(ports) != brokers:
        raise ConfigError(f"{brokers} brokers need {brokers} ports, not {len(ports)}")
    for port in ports:
        if not is_port(port):
            raise ConfigError(f"a port is a number from 0 (any free one) to {LAST_PORT}, not {port!r}")
        if port and ports.count(port) > 1:
            raise ConfigError(f"each broker needs a port of its own; {port} is used twice")


def check_control(control: object, token: object = None) -> None:
    """Raise ConfigError for an invalid `control` or `control_token`."""
    if token is not None:
        if not isinstance(token, str) or not token.strip():
            raise ConfigError(f"control_token must be a text that is not empty, not {token!r}")
        if control is False or hasattr(control, "serve"):
            raise ConfigError(
                "control_token needs a control port of the cluster: pass control=True or a port; a"
                " ControlServer has a token of its own"
            )
    if not isinstance(control, bool) and not is_port(control) and not hasattr(control, "serve"):
        raise ConfigError(
            f"control must be True, False, a port from 0 to {LAST_PORT} or a ControlServer, not {control!r}"
        )


def control_server(control: bool | int | ControlServer, token: str | None) -> ControlServer:
    """Return the server of the control port for a checked `control` argument that is not False."""
    from broker_sim.control.server import ControlServer  # noqa: PLC0415 - rarely used

    if isinstance(control, ControlServer):
        return control
    return ControlServer(0 if control is True else control, token=token)


def check_trace(trace: object) -> None:
    """Raise ConfigError unless it is None, a trace or the path of one."""
    if trace is not None and not isinstance(trace, str | Path) and not hasattr(trace, "observer"):
        raise ConfigError(f"trace must be the path of a file or a Trace, not {trace!r}")


def check_data_dir(data_dir: object) -> None:
    """Raise ConfigError unless it is None or a path."""
    if data_dir is not None and (not isinstance(data_dir, str | Path) or not str(data_dir)):
        raise ConfigError(f"data_dir must be the path of a directory, not {data_dir!r}")
    if data_dir is not None and sys.platform == "win32":
        raise ConfigError(
            "no data directory on Windows, where open files cannot be renamed or removed:"
            " leave out data_dir (--data-dir) to keep data in memory"
        )


def check_cluster_id(cluster_id: object) -> None:
    """Raise ConfigError unless it is None or printable ASCII without spaces; as in Kafka it need not be a UUID."""
    if cluster_id is None:
        return
    if not (isinstance(cluster_id, str) and re.fullmatch(r"[!-~]+", cluster_id)):
        raise ConfigError(
            f"cluster_id must be printable ASCII without spaces, such as 'MkU3OEVBNTcwNTJENDM2Qk', not {cluster_id!r}"
        )


def is_port(value: object) -> bool:
    """Whether the value is a valid port."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LAST_PORT


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOptions:
    """The checked arguments of the pytest marker `kafka`. Raises ConfigError."""

    brokers: int = 3
    first_broker_id: int = FIRST_BROKER_ID
    configs: Mapping[str, GivenValue] | None = None
    topics: Sequence[str] = ()
    """The topics of the test, each as NAME:PARTITIONS:RF:KEY=VALUE."""
    security: str | None = None
    users: Mapping[str, str] | None = field(default=None, repr=False)
    """Passwords by name."""
    usual_configs: ClassVar[Mapping[str, GivenValue] | None] = None
    """Configurations of brokers unless `configs` says otherwise."""

    @classmethod
    def from_marker(cls, args: tuple[object, ...], kwargs: Mapping[str, Any]) -> Self:
        """Return the options of a pytest marker with these arguments. Raises ConfigError."""
        if args:
            raise ConfigError(f"pass keyword arguments only, not {args[0]!r}")
        allowed = [each.name for each in fields(cls) if each.init]
        for name in kwargs:
            if name not in allowed:
                hint = did_you_mean(name, allowed)
                raise ConfigError(f"unknown argument {name!r}{hint}; allowed: {', '.join(allowed)}")
        return cls(**kwargs)

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """Raise ConfigError if no cluster can have these options."""
        check_count("brokers", self.brokers)
        broker_ids(self.brokers, self.first_broker_id)
        check_configs("configs", self.configs or {}, self.usual_configs)
        if isinstance(self.topics, str) or not isinstance(self.topics, Iterable):
            raise ConfigError(f"topics={self.topics!r}: pass a list of topics")
        try:
            for topic in self.topics:
                parse_topic(topic)
        except (TypeError, ValueError) as error:
            raise ConfigError(f"topics={self.topics!r}: {error}") from error
        read_security(self.security, self.users)


def check_count(name: str, value: object) -> None:
    """Raise ConfigError unless the value is a whole number of at least 1."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ConfigError(f"{name}={value!r}: pass a whole number of at least 1")


def check_configs(name: str, configs: object, usual: Mapping[str, GivenValue] | None = None) -> None:
    """Raise ConfigError unless it is a mapping of configurations that brokers accept beside the usual ones."""
    if not isinstance(configs, Mapping):
        raise ConfigError(f"{name}={configs!r}: pass a mapping of configurations by name")
    BrokerConfig.from_mapping({**(usual or {}), **configs})
