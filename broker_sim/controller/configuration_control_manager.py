"""Changes of the configurations of topics and brokers at run time.

Mirrors `ConfigurationControlManager`, `ControllerConfigurationValidator` and
`KafkaConfigSchema` of Kafka, and the checks of broker configurations that a broker performs in
`ConfigAdminManager` before it forwards the request.

With eligible leader replicas (KIP-966) the cluster always has a `min.insync.replicas`: it is
written when the cluster is created or the feature is enabled, and cannot be removed or set for one broker. Changing
it empties the ELRs of the affected topics, because they were computed with another minimum.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NoReturn

from broker_sim.config import (
    TOPIC_CONFIGS,
    BrokerConfig,
    ConfigDef,
    ConfigType,
    every_broker_config,
    to_text,
)
from broker_sim.controller.configuration_validator import ConfigurationValidator
from broker_sim.controller.features import has_eligible_leader_replicas
from broker_sim.controller.requests import AlterOp, ConfigAlteration, ConfigResource, ConfigResourceType, Outcome
from broker_sim.controller.status import CONTROLLER_ID
from broker_sim.errors import ApiError, ErrorCode
from broker_sim.metadata import MetadataDelta, TopicState
from broker_sim.metadata.topic_name import invalid_topic_name
from broker_sim.protocol.release import Release

MIN_INSYNC_REPLICAS: Final = "min.insync.replicas"
UNCLEAN_LEADER_ELECTION: Final = "unclean.leader.election.enable"

_MAX_VALUE_LENGTH: Final = 32_767
_NAMELESS: Final = {
    ConfigResourceType.TOPIC: "Default topic resources are not allowed.",
    ConfigResourceType.GROUP: "Default group resources are not allowed.",
    ConfigResourceType.CLIENT_METRICS: "Subscription name can't be empty",
}
_LISTS: Final[Mapping[ConfigResourceType, Callable[[], Mapping[str, ConfigDef]]]] = {
    ConfigResourceType.TOPIC: lambda: TOPIC_CONFIGS,
    ConfigResourceType.BROKER: every_broker_config,
    ConfigResourceType.GROUP: dict,
    ConfigResourceType.CLIENT_METRICS: dict,
}
"""Definitions that say which configurations are lists, for APPEND and SUBTRACT; Kafka has none for other types."""


class ConfigurationControlManager:
    """Checks and applies changes; `static` is the configuration that the controller started with."""

    def __init__(self, static: BrokerConfig, release: Release) -> None:
        self._static = static
        self._validator = ConfigurationValidator(static, release)

    def bootstrap(self, delta: MetadataDelta) -> None:
        """Write the configuration for ELRs: `min.insync.replicas` for the cluster, and for no single broker."""
        if not has_eligible_leader_replicas(delta.features):
            return
        for name, configs in list(delta.broker_configs.items()):
            if name and MIN_INSYNC_REPLICAS in configs:
                rest = {key: configs[key] for key in configs if key != MIN_INSYNC_REPLICAS}
                delta.set_broker_configs(name, rest)
        of_cluster = delta.broker_configs.get("", {})
        if MIN_INSYNC_REPLICAS not in of_cluster:
            value = str(self._static.min_insync_replicas)
            delta.set_broker_configs("", {**of_cluster, MIN_INSYNC_REPLICAS: value})

    def reset(self, delta: MetadataDelta) -> None:
        """Remove all dynamic configurations set since the cluster was created, except those of topics."""
        for name in list(delta.broker_configs):
            delta.set_broker_configs(name, {})
        for type_code, name in list(delta.resource_configs):
            delta.set_resource_configs(type_code, name, {})
        self.bootstrap(delta)

    def effective_min_isr(self, delta: MetadataDelta, topic: TopicState) -> int:
        """Return the topic's `min.insync.replicas`, capped at its number of replicas."""
        minimum = self._effective(delta, topic, MIN_INSYNC_REPLICAS)
        assert isinstance(minimum, int)
        return min(minimum, len(topic.partitions[0].replicas))

    def unclean_election_enabled(self, delta: MetadataDelta, topic: TopicState) -> bool:
        """Return whether a replica that may lack records may lead the topic's partitions."""
        return bool(self._effective(delta, topic, UNCLEAN_LEADER_ELECTION))

    def validate_topic_configs(self, delta: MetadataDelta, configs: Mapping[str, str | None]) -> dict[str, str]:
        """Return the configurations of a new topic. Raises ApiError with INVALID_CONFIG."""
        missing = [name for name, value in configs.items() if value is None]
        if missing:
            raise ApiError(ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {','.join(missing)}")
        values = {name: value for name, value in configs.items() if value is not None}
        self._validator.check(delta, ConfigResource(ConfigResourceType.TOPIC, ""), values)
        return values

    def incremental_alter(
        self, delta: MetadataDelta, changes: Sequence[tuple[ConfigResource, Sequence[ConfigAlteration]]]
    ) -> list[tuple[ConfigResource, Outcome]]:
        """Apply all alterations of a resource or none; return one outcome per resource."""
        counts = Counter(resource for resource, _ in changes)
        outcomes = []
        for resource, alterations in dict(changes).items():
            try:
                if counts[resource] > 1:
                    _refuse("Each resource must appear at most once.")
                self._alter_one(delta, resource, alterations)
                outcome = Outcome()
            except ApiError as error:
                outcome = Outcome(error.error_code, str(error))
            outcomes.append((resource, outcome))
        return outcomes

    def replace_all(
        self, delta: MetadataDelta, changes: Sequence[tuple[ConfigResource, Sequence[tuple[str, str | None]]]]
    ) -> list[tuple[ConfigResource, Outcome]]:
        """Set these configurations and remove all others, as AlterConfigs does."""
        alterations = []
        for resource, configs in changes:
            names = {name for name, _ in configs}
            removed = (name for name in self._existing(delta, resource) if name not in names)
            added = [ConfigAlteration(name, AlterOp.SET, value) for name, value in configs]
            dropped = [ConfigAlteration(name, AlterOp.DELETE) for name in removed]
            alterations.append((resource, [*added, *dropped]))
        return self.incremental_alter(delta, alterations)

    def _alter_one(
        self, delta: MetadataDelta, resource: ConfigResource, alterations: Sequence[ConfigAlteration]
    ) -> None:
        names = [alteration.name for alteration in alterations]
        if len(set(names)) < len(names):
            _refuse("Error due to duplicate config keys")
        missing = [a.name for a in alterations if a.value is None and a.op is not AlterOp.DELETE]
        if missing:
            _refuse(f"Null value not supported for : {', '.join(missing)}")
        if resource.type is ConfigResourceType.BROKER:
            _check_broker_name(delta, resource.name)
        current = self._existing(delta, resource)
        configs = dict(current)
        for alteration in alterations:
            self._apply(configs, resource, alteration)
        self._check_min_isr_rules(delta, resource, alterations)
        _check_name(resource)
        self._validator.check(delta, resource, configs)
        # A missing topic is reported last, after all other errors of the change.
        if resource.type is ConfigResourceType.TOPIC and not delta.has_topic(resource.name):
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{resource.name}' does not exist.")
        is_set_again = resource.type is ConfigResourceType.BROKER and bool(alterations)
        # Brokers reread key store files when a configuration is set to its current value (KAFKA-14136).
        if current != configs or is_set_again:
            self._write(delta, resource, current, configs)

    def _effective(self, delta: MetadataDelta, topic: TopicState, name: str) -> object:
        """Return the topic's value, otherwise the cluster's, otherwise the static one; all have the same name."""
        text = topic.configs.get(name)
        if text is None:
            text = delta.broker_configs.get("", {}).get(name)
        definition = TOPIC_CONFIGS[name]
        if text is None:
            return getattr(self._static, definition.attribute)
        return definition.parse(text)

    @staticmethod
    def _existing(delta: MetadataDelta, resource: ConfigResource) -> Mapping[str, str]:
        if resource.type is ConfigResourceType.BROKER:
            return delta.broker_configs.get(resource.name, {})
        if resource.type is not ConfigResourceType.TOPIC:
            return delta.resource_configs.get((resource.type, resource.name), {})
        topic = delta.topic(resource.name)
        return {} if topic is None else topic.configs

    def _apply(self, configs: dict[str, str], resource: ConfigResource, alteration: ConfigAlteration) -> None:
        name, op, value = alteration.name, alteration.op, alteration.value
        if op is AlterOp.DELETE:
            configs.pop(name, None)
            return
        assert value is not None
        if op is not AlterOp.SET:
            definitions = _LISTS[resource.type]()
            if resource.type is ConfigResourceType.BROKER and name not in definitions:
                raise ApiError(ErrorCode.INVALID_CONFIG, f"Unknown config name: {name}")
            definition = definitions.get(name)
            if definition is None or definition.type is not ConfigType.LIST:
                # Kafka's broker refuses a change of brokers before it sends it to the controller.
                reason = (
                    f"Config value {op.name.lower()} is not allowed for config key: {name}"
                    if resource.type is ConfigResourceType.BROKER
                    else f"Can't {op.name} to key {name} because its type is not LIST."
                )
                raise ApiError(ErrorCode.INVALID_CONFIG, reason)
            # The default is that of the definition, whatever is set statically.
            present = configs.get(name, to_text(definition.default) or "")
            # What a change of a broker has twice is refused like any such list of a broker.
            value = _edited_list(op, present, value, keeps_duplicates=resource.type is ConfigResourceType.BROKER)
        if len(value) > _MAX_VALUE_LENGTH:
            raise ApiError(
                ErrorCode.INVALID_CONFIG,
                "The configuration value cannot be added because it exceeds the maximum value"
                f" size of {_MAX_VALUE_LENGTH} bytes.",
            )
        configs[name] = value

    def _check_min_isr_rules(
        self, delta: MetadataDelta, resource: ConfigResource, alterations: Iterable[ConfigAlteration]
    ) -> None:
        if not has_eligible_leader_replicas(delta.features) or resource.type is not ConfigResourceType.BROKER:
            return
        for alteration in alterations:
            if alteration.name != MIN_INSYNC_REPLICAS:
                continue
            if resource.name:
                raise ApiError(
                    ErrorCode.INVALID_CONFIG, "Broker-level min.insync.replicas cannot be altered while ELR is enabled."
                )
            if alteration.op is AlterOp.DELETE:
                raise ApiError(
                    ErrorCode.INVALID_CONFIG,
                    "Cluster-level min.insync.replicas cannot be removed while ELR is enabled.",
                )

    def _write(
        self, delta: MetadataDelta, resource: ConfigResource, current: Mapping[str, str], configs: Mapping[str, str]
    ) -> None:
        minimum_changes = current.get(MIN_INSYNC_REPLICAS) != configs.get(MIN_INSYNC_REPLICAS)
        if resource.type is ConfigResourceType.TOPIC:
            delta.set_topic_configs(resource.name, configs)
            topics = [resource.name]
        elif resource.type is ConfigResourceType.BROKER:
            delta.set_broker_configs(resource.name, configs)
            topics = list(delta.base.topics)
        else:
            delta.set_resource_configs(resource.type, resource.name, configs)
            return
        if minimum_changes and has_eligible_leader_replicas(delta.features):
            for name in topics:
                _clear_elrs(delta, name)


def _refuse(message: str) -> NoReturn:
    raise ApiError(ErrorCode.INVALID_REQUEST, message)


def _check_name(resource: ConfigResource) -> None:
    """Raise ApiError if the name is invalid for its resource type, except for brokers."""
    if resource.type is ConfigResourceType.BROKER:
        return
    if not resource.name:
        _refuse(_NAMELESS[resource.type])
    if resource.type is ConfigResourceType.TOPIC:
        wrong = invalid_topic_name(resource.name)
        if wrong is not None:
            raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, wrong)


def _check_broker_name(delta: MetadataDelta, name: str) -> None:
    if not name:
        return
    try:
        broker_id = int(name)
    except ValueError:
        _refuse("Unable to parse broker name as a base 10 number.")
    if broker_id < 0:
        _refuse("Invalid negative broker ID.")
    if broker_id not in delta.brokers and broker_id != CONTROLLER_ID:
        raise ApiError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker ID {broker_id} is not registered.")


def _edited_list(op: AlterOp, present: str, change: str, *, keeps_duplicates: bool) -> str:
    """Return the list after SUBTRACT, or after APPEND of its missing parts."""
    parts = [part for part in present.split(",") if part]
    # As Java splits: empty parts at the end do not count, but a text without a comma is a part.
    changes = change.rstrip(",").split(",") if change.strip(",") or not change else []
    if op is AlterOp.SUBTRACT:
        for part in changes:
            if part in parts:
                parts.remove(part)
        return ",".join(parts)
    new = [part for part in changes if part not in parts]
    return ",".join(parts + (new if keeps_duplicates else list(dict.fromkeys(new))))


def _clear_elrs(delta: MetadataDelta, topic: str) -> None:
    """Empty the ELRs of a topic; mirrors `ClearElrRecord`."""
    state = delta.topic(topic)
    assert state is not None
    for number, partition in enumerate(state.partitions):
        if partition.elr or partition.last_known_elr:
            cleared = partition._replace(elr=(), last_known_elr=(), partition_epoch=partition.partition_epoch + 1)
            delta.set_partition(topic, number, cleared)
