"""Which broker configurations may be changed at run time; mirrors `DynamicBrokerConfig.validateConfigs`."""

from collections.abc import Iterable, Mapping
from typing import Final

from broker_sim.config.broker_config import BROKER_CONFIGS, every_broker_config
from broker_sim.config.definition import UpdateMode
from broker_sim.config.per_listener import CONNECTION_LIMITS, PER_LISTENER, without_listener
from broker_sim.config.quota_configs import REPLICATION_QUOTA_CONFIGS
from broker_sim.errors import ConfigError

_OF_ALL_BROKERS: Final = CONNECTION_LIMITS | {"num.network.threads"}
"""May be set for a listener of all brokers."""


def check_dynamic(configs: Mapping[str, str], broker: str) -> None:
    """Raise ConfigError when one cannot be changed at run time, or not for all brokers."""
    unknown = not BROKER_CONFIGS.keys() >= configs.keys()
    definitions = every_broker_config() if unknown else BROKER_CONFIGS
    modes = {name: definitions[name].update_mode for name in configs if name in definitions}
    fixed = [name for name, mode in modes.items() if mode is UpdateMode.READ_ONLY]
    if fixed:
        raise ConfigError(f"Cannot update these configs dynamically: {_listed(fixed)}")
    per_listener = [name for name in modes if name in PER_LISTENER]
    if per_listener:
        raise ConfigError(
            "These security configs can be dynamically updated only per-listener using the"
            f" listener prefix: {_listed(per_listener)}"
        )
    _check_types(configs)
    own = [name for name, mode in modes.items() if mode is UpdateMode.PER_BROKER]
    own += [name for name in configs if without_listener(name) not in {name, *_OF_ALL_BROKERS}]
    if own and not broker:
        raise ConfigError(
            f"Cannot update these configs at default cluster level, broker id must be specified: {_listed(own)}"
        )


def _check_types(configs: Mapping[str, str]) -> None:
    """Check what is not in a BrokerConfig: for single listeners, and what is only set at run time."""
    for name in configs:
        own = without_listener(name)
        if own != name or own in REPLICATION_QUOTA_CONFIGS:
            definition = {**every_broker_config(), **REPLICATION_QUOTA_CONFIGS}.get(own)
            if definition is not None:
                definition.parse(configs[name])


def _listed(names: Iterable[str]) -> str:
    return f"[{', '.join(sorted(names))}]"
