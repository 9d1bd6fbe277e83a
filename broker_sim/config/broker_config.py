"""The configuration of one broker, typed and checked.

Mirrors ``kafka.server.KafkaConfig`` and ``AbstractKafkaConfig``. Deliberate difference: a name
that has no effect here is an error, not a warning, so that a typing mistake never passes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final, Self

from broker_sim.config.coordinator_settings import GroupCoordinatorConfigs, TransactionConfigs
from broker_sim.config.definition import (
    ConfigDef,
    GivenValue,
    definitions_of,
    parse_all,
    to_texts,
)
from broker_sim.config.log_settings import CleanerConfigs, ServerLogConfigs
from broker_sim.config.server_settings import (
    KRaftConfigs,
    ReplicationConfigs,
    ServerConfigs,
    SocketServerConfigs,
)
from broker_sim.errors import ConfigError

_MINUTE_MS: Final = 60_000
_HOUR_MS: Final = 60 * _MINUTE_MS


@dataclass(frozen=True, kw_only=True)
class BrokerConfig(
    SocketServerConfigs,
    KRaftConfigs,
    ServerConfigs,
    ReplicationConfigs,
    ServerLogConfigs,
    CleanerConfigs,
    GroupCoordinatorConfigs,
    TransactionConfigs,
):
    """Every configuration of a broker as an attribute: Kafka's name with ``_`` for ``.``.

    ``originals`` holds what was given by name, as Kafka's static configuration; it tells a
    value that was set from a default. Immutable: any thread may read it.
    """

    originals: Mapping[str, str] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        """Check what concerns more than one configuration, as ``KafkaConfig.validateValues``."""
        if self.log_retention_time_ms == 0:
            raise ConfigError("log.retention.ms must be unlimited (-1) or at least 1, and is 0")
        if self.log_roll_time_ms < 1:
            raise ConfigError(f"log.roll.ms must be at least 1, and is {self.log_roll_time_ms}")
        if self.log_roll_time_jitter_ms < 0:
            raise ConfigError(
                f"log.roll.jitter.ms must be at least 0, and is {self.log_roll_time_jitter_ms}"
            )
        for name, limit_ms in (
            ("replica.socket.timeout.ms", self.replica_socket_timeout_ms),
            ("replica.lag.time.max.ms", self.replica_lag_time_max_ms),
        ):
            if self.replica_fetch_wait_max_ms > limit_ms:
                raise ConfigError(
                    f"replica.fetch.wait.max.ms={self.replica_fetch_wait_max_ms}"
                    f" must be at most {name}={limit_ms}"
                )

    @classmethod
    def from_mapping(cls, values: Mapping[str, GivenValue]) -> Self:
        """Return the configuration with `values` by Kafka's names and defaults for the rest.

        A value is Kafka's text for it, or a number or a boolean of Python's. Raises ConfigError, one line, for an unknown name or a value that is not allowed.
        """
        return cls().with_overrides(values)

    def with_overrides(self, values: Mapping[str, GivenValue]) -> Self:
        """Return a copy with `values` set statically. Raises ConfigError as `from_mapping`."""
        texts = to_texts(values)
        changed = self.with_dynamic(texts)
        return replace(changed, originals={**self.originals, **texts})

    def with_dynamic(self, values: Mapping[str, str]) -> Self:
        """Return a copy with ``values`` in effect but not among ``originals``.

        This is how dynamic broker configurations take part. Raises ConfigError.
        """
        if not values:
            return self
        parsed = parse_all(BROKER_CONFIGS, values, "broker")
        if "node_id" in parsed or "broker_id" in parsed:
            node_id = parsed.setdefault("node_id", parsed.get("broker_id"))
            if parsed.setdefault("broker_id", node_id) != node_id:
                raise ConfigError("You must set `node.id` to the same value as `broker.id`.")
        return replace(self, **parsed)  # type: ignore[arg-type]  # parsed by their definitions

    @property
    def log_retention_time_ms(self) -> int:
        """How long records are kept: the finest of ms, minutes and hours that is set; -1 ever."""
        if self.log_retention_ms is not None:
            retention_ms = self.log_retention_ms
        elif self.log_retention_minutes is not None:
            retention_ms = self.log_retention_minutes * _MINUTE_MS
        else:
            retention_ms = self.log_retention_hours * _HOUR_MS
        return -1 if retention_ms < 0 else retention_ms

    @property
    def log_roll_time_ms(self) -> int:
        """Age at which a segment is rolled."""
        return self.log_roll_hours * _HOUR_MS if self.log_roll_ms is None else self.log_roll_ms

    @property
    def log_roll_time_jitter_ms(self) -> int:
        """Largest random share taken off `log_roll_time_ms`."""
        jitter_ms = self.log_roll_jitter_ms
        return self.log_roll_jitter_hours * _HOUR_MS if jitter_ms is None else jitter_ms

    @property
    def log_flush_time_ms(self) -> int:
        """Time after which a log is flushed to disk."""
        interval_ms = self.log_flush_interval_ms
        return self.log_flush_scheduler_interval_ms if interval_ms is None else interval_ms

    @property
    def log_directories(self) -> tuple[str, ...]:
        """The directories of the logs."""
        return self.log_dirs or self.log_dir


BROKER_CONFIGS: Final[Mapping[str, ConfigDef]] = MappingProxyType(definitions_of(BrokerConfig))
"""All broker configurations by Kafka's name."""
