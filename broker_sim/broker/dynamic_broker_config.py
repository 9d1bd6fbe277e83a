"""What follows a broker's dynamic configurations; mirrors the listeners' part of `DynamicBrokerConfig`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from broker_sim.config import check_dynamic
from broker_sim.errors import ConfigError, MissingExtraError
from broker_sim.runtime.event_log import get_logger

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker_sim.config import BrokerConfig
    from broker_sim.metadata import MetadataImage

log = get_logger(__name__)


class ListenerReconfigurable(Protocol):
    """A listener with stores that may change while it runs."""

    def validate(self, dynamic: Mapping[str, str]) -> None:
        """Raise ConfigError unless the broker may have these dynamic configurations."""

    def reconfigure(self, dynamic: Mapping[str, str], *, is_start: bool = False) -> None:
        """Follow them. Raises ConfigError, and changes nothing then."""


class DynamicBrokerConfig:
    """The listeners of one broker, and the configurations that they are told of."""

    def __init__(self, broker_id: int, config: BrokerConfig) -> None:
        self._broker_id = broker_id
        self._config = config
        self._listeners: list[ListenerReconfigurable] = []

    def add(self, listener: ListenerReconfigurable) -> None:
        """Let the listener follow the broker's configurations from now on."""
        self._listeners.append(listener)

    def validate(self, dynamic: Mapping[str, str]) -> None:
        """Raise ConfigError, worded as Kafka's, unless the broker may have exactly these."""
        check_dynamic(dynamic, str(self._broker_id))
        self._config.with_dynamic(dynamic)
        for listener in self._listeners:
            listener.validate(dynamic)

    def apply(self, before: MetadataImage, image: MetadataImage) -> None:
        """Tell the listeners when the broker's own configurations were set, to the same values too."""
        name = str(self._broker_id)
        if before.broker_configs.get(name) is image.broker_configs.get(name):
            return
        for listener in self._listeners:
            try:
                listener.reconfigure(image.dynamic_broker_configs(self._broker_id), is_start=before.version < 0)
            except (ConfigError, MissingExtraError) as error:
                log.warning("broker_configs_not_applied", broker=self._broker_id, reason=str(error))
