"""One broker's machine, which outlives the broker's process: configuration, logs, memory.

Also the records lost in a power failure, and the warnings about configurations of brokers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.cluster.nodes.data_directory import directory_names
from broker_sim.config import (
    BROKER_CONFIGS,
    BROKER_WITHOUT_EFFECT,
    CONTROLLER_LISTENERS,
    JAAS_CONFIG,
    METRIC_REPORTERS,
    SERVER_HANDLER,
    SIGNED_TOKEN_HANDLERS,
    why_without_effect,
    without_listener,
)
from broker_sim.errors import ConfigError
from broker_sim.handlers.telemetry.client_metrics import MAX_BYTES_CONFIG
from broker_sim.log import MEMORY, LogDirectory, LogManager, MemoryAccount, ProducerStateManagerConfig
from broker_sim.runtime.memory import default_memory_limit, return_freed_memory
from broker_sim.runtime.process import MachineClock, Process, ProcessState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from broker_sim_purgatory import Clock

    from broker_sim.broker.broker import Broker
    from broker_sim.config import BrokerConfig, Endpoint
    from broker_sim.log import PartitionLog, SimulatedDisk
    from broker_sim.metadata.topic_partition import TopicPartition
    from broker_sim.runtime.event_log import EventLogger
    from broker_sim.runtime.process import Handle
    from broker_sim.runtime.scheduler import Scheduler

TELEMETRY_CONFIGS: Final = frozenset({METRIC_REPORTERS, MAX_BYTES_CONFIG})
"""Configurations of clients' metrics: they have an effect without being attributes of `BrokerConfig`."""
KeptBatches = dict["TopicPartition", list[tuple[int, int, bytes]]]
"""Base offset, end offset and bytes of each batch, by partition."""


class LostRecords(NamedTuple):
    """The end of a log that one broker lost in a power failure; other replicas may have it."""

    broker_id: int
    topic_partition: TopicPartition
    first_offset: int
    end_offset: int
    """The log end offset before the loss."""


def kept_batches(logs: LogManager) -> KeptBatches:
    """Return the batches of all logs that are not offline."""
    return {log.topic_partition: _batches(log) for log in logs.logs}


def _batches(log: PartitionLog) -> list[tuple[int, int, bytes]]:
    return [
        (header.base_offset, header.base_offset + header.last_offset_delta + 1, bytes(batch))
        for segment in log.segments
        for header, batch in segment.batches_from(segment.base_offset)
    ]


def lost_records(broker_id: int, before: KeptBatches, logs: LogManager) -> list[LostRecords]:
    """Return the lost records of each partition, from the first batch that differs to the former end."""
    now = {log.topic_partition: log for log in logs.logs}
    losses = []
    for key, batches in before.items():
        log = now.get(key)
        start = 0 if log is None else log.log_start_offset
        present = {} if log is None else {base: batch for base, _, batch in _batches(log)}
        for base, _, batch in batches:
            if base < start and log is not None and log.log_end_offset > start:
                continue  # deleted, not lost
            if present.get(base) != batch:
                losses.append(LostRecords(broker_id, key, base, batches[-1][1]))
                break
    return losses


MEMORY_RETURN_MS: Final = 1_000
"""Delay before freed memory is returned to the machine, so that one call returns all of it."""


class LogMemory:
    """The memory account of a cluster's logs; returns freed memory to the machine."""

    def __init__(self, scheduler: Scheduler, limit_bytes: int | None, reclaim: Callable[[], object]) -> None:
        """`limit_bytes` is the bound (default: half of the machine's memory); `reclaim()` frees deletable records."""
        self._scheduler = scheduler
        self._handle: Handle | None = None
        self.account = MemoryAccount(
            limit_bytes or default_memory_limit(), scheduler.clock, reclaim=reclaim, on_freed=self._return_soon
        )

    def _return_soon(self) -> None:
        """Return freed memory to the machine after a delay, when nothing refers to it any more."""
        if self._handle is None:
            self._handle = self._scheduler.call_later(MEMORY_RETURN_MS, self._return)

    def _return(self) -> None:
        self._handle = None
        return_freed_memory()

    def close(self) -> None:
        """Cancel a pending return of memory."""
        if self._handle is not None:
            self._handle.cancel()


class Node:
    """The machine of one broker: addresses, configuration, clock and logs."""

    __slots__ = (
        "_before_power_loss",
        "_memory",
        "_producers",
        "_reopen",
        "_was_started",
        "broker",
        "broker_id",
        "clients_cut_off",
        "clock",
        "config",
        "disk",
        "endpoints",
        "logs",
        "lost",
        "on_stopped",
        "process",
    )

    def __init__(
        self,
        broker_id: int,
        config: BrokerConfig,
        clock: Clock,
        endpoints: tuple[Endpoint, ...],
        memory: MemoryAccount,
        directories: Sequence[LogDirectory] = (),
        disk: SimulatedDisk | None = None,
        reopen: Callable[[], Sequence[LogDirectory]] | None = None,
    ) -> None:
        """`directories` are open for the first start; `reopen()` opens them again for each later one."""
        self.broker_id = broker_id
        self.config = config
        self.clock = MachineClock(clock)
        """The machine's clock; logs use its wall clock, everything else monotonic time."""
        self._producers = ProducerStateManagerConfig(
            config.producer_id_expiration_ms, config.transaction_partition_verification_enable
        )
        self._memory = memory
        self.logs = self._manager(directories)
        self.disk = disk
        self._reopen = reopen
        self._was_started = False
        self.lost: list[LostRecords] = []
        """Records lost in power failures, detected when the logs were reopened."""
        self._before_power_loss: KeptBatches = {}
        self.endpoints = endpoints
        """The advertised endpoints."""
        self.process: Process | None = None
        self.broker: Broker | None = None
        self.clients_cut_off = False
        self.on_stopped: Callable[[], object] | None = None
        """Callback of `Nodes.stop`; None unless the broker is shutting down."""

    def recover_logs(self, cluster_id: str) -> None:
        """Prepare the logs for a new process, from its disk if it has one.

        Raises ConfigError for a directory that cannot be used, and OSError.
        """
        directories = self._directories_for_a_start(cluster_id)
        if directories:
            self.logs = self._manager(directories)
        self.logs.recover()
        before, self._before_power_loss = self._before_power_loss, {}
        self.lost += lost_records(self.broker_id, before, self.logs)

    def _manager(self, directories: Sequence[LogDirectory]) -> LogManager:
        names = self.config.log_dirs or (MEMORY,)
        return LogManager(self.clock, self._producers, self._memory, directories, names)

    def _directories_for_a_start(self, cluster_id: str) -> Sequence[LogDirectory]:
        """Open and return the log directories; none if the logs are open already or in memory."""
        disk = self.disk
        if disk is not None:
            names = directory_names(self.broker_id, len(self.config.log_dirs or ()))
            first = LogDirectory(disk.root / names[0], cluster_id, self.broker_id, disk)
            more = (LogDirectory(disk.root / name, cluster_id, self.broker_id, disk, first) for name in names[1:])
            return [first, *more]
        was_started, self._was_started = self._was_started, True
        return self._reopen() if was_started and self._reopen is not None else ()

    def lose_power(self) -> None:
        """Drop everything that is not on the simulated disk; the process must have ended."""
        assert self.disk is not None
        self._before_power_loss = {**self._before_power_loss, **kept_batches(self.logs)}
        self.disk.lose_power()
        self.logs = self._manager(())

    def has_lost_records(self, topic_partition: TopicPartition) -> bool:
        """Whether the log has ever lost records in a power failure."""
        return any(each.topic_partition == topic_partition for each in self.lost)

    @property
    def address(self) -> tuple[str, int]:
        """Host and port of the first advertised listener."""
        return self.endpoints[0].host, self.endpoints[0].port

    @property
    def state(self) -> ProcessState:
        """Running, paused or dead."""
        return ProcessState.DEAD if self.process is None else self.process.state


NO_NODE_ID = -1


def log_doubtful_configs(configs: Iterable[BrokerConfig], is_at_least: Callable[[str], bool], log: EventLogger) -> None:
    """Log configurations without effect, and heartbeat intervals that are too long.

    `is_at_least("4.4")` returns whether the brokers are of that release or a newer one.
    """
    configs = list(configs)
    _log_configs_without_effect(configs, is_at_least, log)
    _log_long_heartbeat_intervals(configs, log)


def _log_configs_without_effect(
    configs: Iterable[BrokerConfig], is_at_least: Callable[[str], bool], log: EventLogger
) -> None:
    names = {
        name
        for config in configs
        for name, text in config.originals.items()
        if without_listener(name) != SERVER_HANDLER or text not in SIGNED_TOKEN_HANDLERS
    }
    has_effect = BROKER_CONFIGS.keys() - BROKER_WITHOUT_EFFECT.keys()
    reasons = {
        name: why_without_effect(name)
        for name in names - has_effect
        if name not in {*TELEMETRY_CONFIGS, CONTROLLER_LISTENERS}
        and ((own := without_listener(name)) == name or own not in {*has_effect, JAAS_CONFIG})
    }
    newer = (each for name in names if (each := BROKER_CONFIGS.get(name)) is not None and not each.is_in(is_at_least))
    reasons |= {each.name: f"it needs as_version {each.since} or newer" for each in newer}
    if reasons:
        log.warning("configuration_without_effect", names=sorted(reasons), reasons=sorted(set(reasons.values())))


def _log_long_heartbeat_intervals(configs: Iterable[BrokerConfig], log: EventLogger) -> None:
    """Log, as Kafka does, heartbeat intervals with which live brokers may be fenced."""
    for config in configs:
        heartbeat_ms = config.broker_heartbeat_interval_ms
        session_ms = config.broker_session_timeout_ms
        if heartbeat_ms * 2 > session_ms:
            log.error(
                "heartbeat_interval_too_long",
                interval_ms=heartbeat_ms,
                session_timeout_ms=session_ms,
                remedy="set broker.heartbeat.interval.ms to at most half of"
                " broker.session.timeout.ms, or a live broker may be fenced",
            )
            return


def numbered(configs: Mapping[int, BrokerConfig]) -> dict[int, BrokerConfig]:
    """Return the configurations with their broker's id. Raises ConfigError if one has a different id."""
    result = {}
    for broker_id, config in configs.items():
        if config.node_id not in (NO_NODE_ID, broker_id):
            raise ConfigError(
                f"Invalid value {config.node_id} for configuration node.id: this broker is {broker_id};"
                " the ids begin at first_broker_id (--first-broker-id)"
            )
        number = str(broker_id)
        result[broker_id] = config.with_overrides({"node.id": number, "broker.id": number})
    return result
