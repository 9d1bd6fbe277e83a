"""One broker's machine: what stays when its process ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.cluster.nodes.lost_records import kept_batches, lost_records
from broker_sim.log import LogDirectory, LogManager, ProducerStateManagerConfig
from broker_sim.runtime.process import MachineClock, Process, ProcessState

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim_purgatory import Clock

    from broker_sim.broker.broker import Broker
    from broker_sim.cluster.nodes.lost_records import KeptBatches, LostRecords
    from broker_sim.config import BrokerConfig, Endpoint
    from broker_sim.log import MemoryAccount, SimulatedDisk
    from broker_sim.metadata.topic_partition import TopicPartition


class Node:
    """What stays of a broker when its process ends: addresses, configuration, clock and logs."""

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
        directory: LogDirectory | None = None,
        disk: SimulatedDisk | None = None,
        reopen: Callable[[], LogDirectory] | None = None,
    ) -> None:
        """`directory` is open for the first start; `reopen()` opens it again for each later one."""
        self.broker_id = broker_id
        self.config = config
        self.clock = MachineClock(clock)
        """Its wall clock gives the times of the logs; everything else goes by the monotonic time."""
        self._producers = ProducerStateManagerConfig(
            config.producer_id_expiration_ms, config.transaction_partition_verification_enable
        )
        self._memory = memory
        self.logs = LogManager(self.clock, self._producers, memory, directory)
        self.disk = disk
        self._reopen = reopen
        self._was_started = False
        self.lost: list[LostRecords] = []
        """What power losses have taken, found when the logs were opened again."""
        self._before_power_loss: KeptBatches = {}
        self.endpoints = endpoints
        """Where clients are told to find it, by listener."""
        self.process: Process | None = None
        self.broker: Broker | None = None
        self.clients_cut_off = False
        self.on_stopped: Callable[[], object] | None = None
        """What `Nodes.stop` was asked to call; None unless the broker is shutting down."""

    def recover_logs(self, cluster_id: str) -> None:
        """Make the logs ready for a new process, which reads them from its disk if it has one.

        Raises ConfigError for a directory that cannot be used, and OSError.
        """
        directory = self._directory_for_a_start(cluster_id)
        if directory is not None:
            self.logs = LogManager(self.clock, self._producers, self._memory, directory)
        self.logs.recover()
        before, self._before_power_loss = self._before_power_loss, {}
        self.lost += lost_records(self.broker_id, before, self.logs)

    def _directory_for_a_start(self, cluster_id: str) -> LogDirectory | None:
        """Return a directory that has just been opened; None if the logs are open already, or in memory."""
        if self.disk is not None:
            path = self.disk.root / f"broker-{self.broker_id}"
            return LogDirectory(path, cluster_id, self.broker_id, self.disk)
        was_started, self._was_started = self._was_started, True
        return self._reopen() if was_started and self._reopen is not None else None

    def lose_power(self) -> None:
        """Leave of the logs what is on the simulated disk; the process must have ended."""
        assert self.disk is not None
        self._before_power_loss = {**self._before_power_loss, **kept_batches(self.logs)}
        self.disk.lose_power()
        self.logs = LogManager(self.clock, self._producers, self._memory)

    def has_lost_records(self, topic_partition: TopicPartition) -> bool:
        """Whether a power loss has ever taken records of that log."""
        return any(each.topic_partition == topic_partition for each in self.lost)

    @property
    def address(self) -> tuple[str, int]:
        """Host and port of the first listener that clients are told of."""
        return self.endpoints[0].host, self.endpoints[0].port

    @property
    def state(self) -> ProcessState:
        """Running, paused or dead."""
        return ProcessState.DEAD if self.process is None else self.process.state
