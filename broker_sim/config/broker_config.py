"""The configuration of one broker, typed and checked.

Mirrors `kafka.server.KafkaConfig` and `AbstractKafkaConfig`. Deliberate difference: an unknown name is an
error, so that typos are found; Kafka accepts it, for plugins.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, Final, Self

from broker_sim.config.coordinator_configs import (
    GroupCoordinatorConfigs,
    ShareCoordinatorConfigs,
    ShareGroupConfigs,
    StreamsGroupConfigs,
    TransactionConfigs,
    check_consumer_configs,
    check_share_configs,
    check_streams_configs,
)
from broker_sim.config.definition import (
    ConfigDef,
    GivenValue,
    UpdateMode,
    parse_all,
    to_text,
    to_texts,
    unknown_name,
)
from broker_sim.config.listeners import (
    CONNECTION_LIMITS,
    DYNAMIC_ERROR,
    PER_LISTENER,
    check_connections_per_ip,
    listener_values,
    without_listener,
)
from broker_sim.config.log_configs import CleanerConfigs, ServerLogConfigs
from broker_sim.config.other_configs import other_configs
from broker_sim.config.security_configs import AUTHORIZERS, OF_THE_AUTHORIZER, AuthorizerConfigs, SecurityConfigs
from broker_sim.config.server_configs import (
    REPLICA_SELECTORS,
    REPLICATION_QUOTA_CONFIGS,
    KRaftConfigs,
    QuotaConfigs,
    ReplicationConfigs,
    ServerConfigs,
    SocketServerConfigs,
)
from broker_sim.errors import ConfigError

_MINUTE_MS: Final = 60_000
_HOUR_MS: Final = 60 * _MINUTE_MS
_MEBIBYTE: Final = 1 << 20
CORDONED: Final = "cordoned.log.dirs"
_AS_THE_WHOLE: Final = -2
"""Value of local retention that stands for the retention of the whole log."""
OF_ALL_BROKERS: Final = CONNECTION_LIMITS | {"num.network.threads"}
"""Configurations that may be set for a listener of all brokers."""
RETENTION: Final = frozenset(
    {"log.local.retention.bytes", "log.local.retention.ms", "log.retention.bytes", "log.retention.ms"}
)
"""Configurations that `check_local_retention` checks."""


class BrokerConfig(
    SocketServerConfigs,
    KRaftConfigs,
    ServerConfigs,
    ReplicationConfigs,
    ServerLogConfigs,
    CleanerConfigs,
    GroupCoordinatorConfigs,
    TransactionConfigs,
    ShareGroupConfigs,
    ShareCoordinatorConfigs,
    StreamsGroupConfigs,
    QuotaConfigs,
    AuthorizerConfigs,
    SecurityConfigs,
):
    """Every configuration of a broker as an attribute: Kafka's name with `_` for `.`.

    The bases only declare attributes, in the groups in which Kafka defines its configurations.
    `originals` has the values that were set, as texts, which distinguishes them from defaults.
    Immutable: any thread may read it.
    """

    originals: Mapping[str, str] = MappingProxyType({})
    others: Mapping[str, str] = MappingProxyType({})
    """Texts of the configurations that are set but have no effect in the simulator, see `other_configs`."""

    def __init__(self, **values: Any) -> None:
        """Check the rules between configurations; mirrors `KafkaConfig.validateValues`."""
        super().__init__(**values)
        if self.log_retention_time_ms == 0:
            raise ConfigError("log.retention.ms=0 must be -1, for no limit, or at least 1")
        if self.log_roll_time_ms < 1:
            raise ConfigError(f"log.roll.ms={self.log_roll_time_ms} must be at least 1")
        if self.log_roll_time_jitter_ms < 0:
            raise ConfigError(f"log.roll.jitter.ms={self.log_roll_time_jitter_ms} must be at least 0")
        if self.replica_selector_class not in REPLICA_SELECTORS:
            raise ConfigError(
                f"replica.selector.class={self.replica_selector_class!r} must be one of Kafka's:"
                f" {', '.join(filter(None, REPLICA_SELECTORS))}"
            )
        if self.authorizer_class_name not in AUTHORIZERS:
            raise ConfigError(
                f"authorizer.class.name={self.authorizer_class_name!r} must be Kafka's:"
                f" {', '.join(filter(None, AUTHORIZERS))}"
            )
        check_consumer_configs(self)
        check_share_configs(self)
        check_streams_configs(self)
        check_connections_per_ip(self.max_connections_per_ip, self.max_connections_per_ip_overrides)
        for name, limit_ms in (
            ("replica.socket.timeout.ms", self.replica_socket_timeout_ms),
            ("replica.lag.time.max.ms", self.replica_lag_time_max_ms),
        ):
            if self.replica_fetch_wait_max_ms > limit_ms:
                raise ConfigError(
                    f"replica.fetch.wait.max.ms={self.replica_fetch_wait_max_ms} must be at most {name}={limit_ms}"
                )
        _check_memory_and_connections(self)
        if CORDONED in self.others:
            _check_cordoned_dirs(self)

    @classmethod
    def from_mapping(cls, values: Mapping[str, GivenValue]) -> Self:
        """Return the configuration with `values` by Kafka's names, and defaults for the rest.

        A value is a number, a boolean, or a text as in Kafka's properties. Raises ConfigError with a one-line
        message for an unknown name or an invalid value.
        """
        return cls().with_overrides(values)

    def with_overrides(self, values: Mapping[str, GivenValue]) -> Self:
        """Return a copy with `values` set statically. Raises ConfigError as `from_mapping`."""
        texts = to_texts(values)
        for name in sorted(texts.keys() - BROKER_CONFIGS.keys()):
            if without_listener(name) not in every_broker_config():
                raise ConfigError(unknown_name(every_broker_config(), name, "broker"))
        return self.replaced(**self._parsed(texts), originals={**self.originals, **texts})

    def without_newer(self, is_at_least: Callable[[str], bool]) -> Self:
        """Return a copy in which configurations of newer Kafka releases have their defaults.

        Kafka accepts such a configuration for plugins, without an effect. `is_at_least("4.4")` returns whether the
        brokers are of that release or a newer one.
        """
        usual = type(self)()
        newer = {
            each.attribute: getattr(usual, each.attribute)
            for name in self.originals
            if (each := BROKER_CONFIGS.get(name)) is not None and not each.is_in(is_at_least)
        }
        return self.replaced(**newer) if newer else self

    def with_dynamic(self, values: Mapping[str, str]) -> Self:
        """Return a copy with the dynamic configurations `values` in effect; itself if they change nothing.

        They do not become `originals`; unknown names are for plugins and left out. Raises ConfigError for an
        invalid value.
        """
        parsed = self._parsed({name: text for name, text in values.items() if name not in OF_THE_AUTHORIZER})
        changed = {name: value for name, value in parsed.items() if getattr(self, name) != value}
        return self.replaced(**changed) if changed else self

    def for_listener(self, listener: str) -> Self:
        """Return a copy with the configurations of that listener in effect. Raises ConfigError."""
        return self.with_dynamic(listener_values(self.originals, listener))

    def _parsed(self, values: Mapping[str, str]) -> dict[str, Any]:
        """Return the fields that these values change. Raises ConfigError as `with_dynamic`."""
        declared = {name: text for name, text in values.items() if name in BROKER_CONFIGS}
        others = {name: text for name, text in values.items() if name not in BROKER_CONFIGS}
        parsed: dict[str, Any] = {**parse_all(BROKER_CONFIGS, declared, "broker")}
        if others:
            # Loaded only here, because most clusters never need these definitions.
            definitions = other_configs()
            others = {name: text for name, text in others.items() if name in definitions}
            for name, text in others.items():
                definitions[name].parse(text)
            parsed["others"] = {**self.others, **others}
        if "node_id" in parsed or "broker_id" in parsed:
            node_id = parsed.setdefault("node_id", parsed.get("broker_id"))
            if parsed.setdefault("broker_id", node_id) != node_id:
                raise ConfigError(f"node.id={node_id} and broker.id={parsed['broker_id']} must be the same number")
        return parsed

    def text_of(self, definition: ConfigDef) -> str | None:
        """Return the effective value in Kafka's notation."""
        if definition.attribute:
            return to_text(getattr(self, definition.attribute))
        return self.others.get(definition.name, to_text(definition.default))

    @property
    def log_retention_time_ms(self) -> int:
        """Retention time in ms, from the finest unit that is set; -1 for no limit."""
        if self.log_retention_ms is not None:
            retention_ms = self.log_retention_ms
        elif self.log_retention_minutes is not None:
            retention_ms = self.log_retention_minutes * _MINUTE_MS
        else:
            retention_ms = self.log_retention_hours * _HOUR_MS
        return -1 if retention_ms < 0 else retention_ms

    @property
    def log_roll_time_ms(self) -> int:
        """Age in ms at which a segment is rolled."""
        return self.log_roll_hours * _HOUR_MS if self.log_roll_ms is None else self.log_roll_ms

    @property
    def log_roll_time_jitter_ms(self) -> int:
        """Maximum random time in ms by which a segment is rolled earlier."""
        jitter_ms = self.log_roll_jitter_ms
        return self.log_roll_jitter_hours * _HOUR_MS if jitter_ms is None else jitter_ms

    @property
    def log_flush_time_ms(self) -> int:
        """Time in ms after which a log is flushed to disk."""
        interval_ms = self.log_flush_interval_ms
        return self.log_flush_scheduler_interval_ms if interval_ms is None else interval_ms


def _check_memory_and_connections(config: BrokerConfig) -> None:
    """Raise ConfigError with Kafka's message if buffers or connection timeouts are too small."""
    threads = config.log_cleaner_threads
    if not threads:
        raise ConfigError("/ by zero")
    if config.log_cleaner_dedupe_buffer_size // threads <= _MEBIBYTE:
        raise ConfigError("requirement failed: log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread.")
    queued_bytes = int(config.others.get("queued.max.request.bytes", -1))
    if 0 < queued_bytes < config.socket_request_max_bytes:
        raise ConfigError(
            "requirement failed: queued.max.request.bytes must be larger or equal to socket.request.max.bytes"
        )
    idle_ms, delay_ms = config.connections_max_idle_ms, config.connection_failed_authentication_delay_ms
    if 0 <= idle_ms <= delay_ms:
        raise ConfigError(
            f"requirement failed: connection.failed.authentication.delay.ms={delay_ms} should always be less than"
            f" connections.max.idle.ms={idle_ms} to prevent failed authentication responses from timing out"
        )


def applicable(static: BrokerConfig, *layers: Mapping[str, str]) -> dict[str, str]:
    """Return the dynamic configurations of all layers; a layer that conflicts with earlier ones is left out."""
    configs: dict[str, str] = {}
    for layer in layers:
        try:
            static.with_dynamic({**configs, **layer})
        except ConfigError:
            continue
        configs |= layer
    return configs


BROKER_CONFIGS: Final[Mapping[str, ConfigDef]] = MappingProxyType(BrokerConfig.definitions)
"""The broker configurations declared in Python, by Kafka's name."""


def every_broker_config() -> Mapping[str, ConfigDef]:
    """Return the definitions of all of Kafka's broker configurations, including those without effect."""
    return {**BROKER_CONFIGS, **other_configs()}


@cache
def of_listeners() -> frozenset[str]:
    """Return the configurations whose change makes a running broker update its listeners.

    Mirrors `DynamicListenerConfig.RECONFIGURABLE_CONFIGS`.
    """
    per_broker = (name for name, each in every_broker_config().items() if each.update_mode is UpdateMode.PER_BROKER)
    return OF_ALL_BROKERS | frozenset(per_broker) - {CORDONED}


def check_dynamic(configs: Mapping[str, str], broker: str) -> None:
    """Raise ConfigError if a configuration cannot be changed at run time, or not for all brokers at once.

    Mirrors `DynamicBrokerConfig.validateConfigs`; an empty `broker` stands for all brokers.
    """
    unknown = not BROKER_CONFIGS.keys() >= configs.keys()
    definitions = every_broker_config() if unknown else BROKER_CONFIGS
    known = definitions.keys() - OF_THE_AUTHORIZER
    modes = {name: definitions[name].update_mode for name in configs if name in known}
    fixed = [name for name, mode in modes.items() if mode is UpdateMode.READ_ONLY]
    if fixed:
        raise ConfigError(f"Cannot update these configs dynamically: {_listed(fixed)}")
    per_listener = [name for name in modes if name in PER_LISTENER]
    if per_listener:
        raise ConfigError(
            "These security configs can be dynamically updated only per-listener using the"
            f" listener prefix: {_listed(per_listener)}"
        )
    _check_types(configs, {**definitions, **REPLICATION_QUOTA_CONFIGS})
    own = [name for name, mode in modes.items() if mode is UpdateMode.PER_BROKER]
    own += [name for name in configs if without_listener(name) not in {name, *OF_ALL_BROKERS}]
    if own and not broker:
        raise ConfigError(
            f"Cannot update these configs at default cluster level, broker id must be specified: {_listed(own)}"
        )


def check_local_retention(config: BrokerConfig) -> None:
    """Raise ConfigError if local retention exceeds the retention of the whole log; mirrors `DynamicLogConfig`.

    There is no tiered storage, but Kafka checks its configurations in any broker.
    """
    for name, limit, whole in (
        ("log.local.retention.ms", "log.retention.ms", config.log_retention_time_ms),
        ("log.local.retention.bytes", "log.retention.bytes", config.log_retention_bytes),
    ):
        local = int(config.text_of(other_configs()[name]) or _AS_THE_WHOLE)
        if whole < 0 or local == _AS_THE_WHOLE:
            continue
        reason = f"Value must not be more than {limit} property value: {whole}" if local > whole else ""
        if local == -1:
            reason = f"Value must not be -1 as {limit} value is set as {whole}."
        if reason:
            raise ConfigError(DYNAMIC_ERROR.format(f"Invalid value {local} for configuration {name}: {reason}"))


def _check_cordoned_dirs(config: BrokerConfig) -> None:
    """Raise ConfigError if a cordoned directory is not one of the broker's log directories; `*` stands for all."""
    directories = config.log_dirs or config.log_dir
    cordoned = [each.strip() for each in config.others[CORDONED].split(",")]
    if "*" in cordoned and len(set(cordoned)) > 1:
        raise ConfigError(f"requirement failed: When {CORDONED} is set to *, it must not contain other values")
    missing = [each for each in cordoned if each not in {"", "*", *directories}]
    if missing:
        raise ConfigError(
            f"requirement failed: All entries in {CORDONED} must be present in log.dirs or log.dir."
            f" Missing entries : {', '.join(missing)}"
        )


def _check_types(configs: Mapping[str, str], definitions: Mapping[str, ConfigDef]) -> None:
    """Raise ConfigError for the first value that a running broker refuses."""
    for name, text in configs.items():
        definition = definitions.get(without_listener(name))
        if definition is None or name in OF_THE_AUTHORIZER:
            continue
        try:
            definition.check_change(text)
        except ConfigError as error:
            if definition.update_mode is not UpdateMode.READ_ONLY:
                raise
            raise ConfigError(DYNAMIC_ERROR.format(error)) from None


def _listed(names: Iterable[str]) -> str:
    return f"[{', '.join(sorted(names))}]"
