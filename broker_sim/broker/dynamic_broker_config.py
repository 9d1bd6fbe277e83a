"""Dynamic configurations of a broker's listeners; mirrors that part of `DynamicBrokerConfig`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.config import check_dynamic
from broker_sim.errors import ConfigError, MissingExtraError
from broker_sim.runtime.event_log import get_logger

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker_sim.config import BrokerConfig
    from broker_sim.metadata import MetadataImage
    from broker_sim.security.ssl_listener import SslListener

log = get_logger(__name__)


class DynamicBrokerConfig:
    """Applies changes of one broker's dynamic configurations to its listeners with TLS."""

    def __init__(self, broker_id: int, config: BrokerConfig) -> None:
        self._broker_id = broker_id
        self._config = config
        self._listeners: list[SslListener] = []

    def add(self, listener: SslListener) -> None:
        """Register a listener for changes of the broker's configurations."""
        self._listeners.append(listener)

    def validate(self, of_all: Mapping[str, str], own: Mapping[str, str], changed: str) -> None:
        """Raise ConfigError, with Kafka's message, if these cluster-wide and own configurations are invalid.

        `changed` is the name of the resource that changes: the broker's id, or empty for all brokers.
        """
        check_dynamic(own if changed else of_all, changed)
        self._config.with_dynamic({**of_all, **own})
        if changed:
            for listener in self._listeners:
                listener.validate(own)

    def apply(self, before: MetadataImage, image: MetadataImage) -> None:
        """Reconfigure the listeners if the broker's own configurations were set, even to the same values."""
        name = str(self._broker_id)
        if before.broker_configs.get(name) is image.broker_configs.get(name):
            return
        for listener in self._listeners:
            try:
                listener.reconfigure(image.dynamic_broker_configs(self._broker_id), is_start=before.version < 0)
            except (ConfigError, MissingExtraError) as error:
                log.warning("broker_configs_not_applied", broker=self._broker_id, reason=str(error))
