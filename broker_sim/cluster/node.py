"""One broker's machine: what stays when its process ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.log import LogManager, ProducerStateManagerConfig
from broker_sim.runtime.process import Process, ProcessState
from broker_sim.runtime.wall_clock import MachineClock

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.broker.broker import Broker
    from broker_sim.config import BrokerConfig
    from broker_sim.log import LogDirectory, MemoryAccount
    from purgatory import Clock

__all__ = ["Node"]


class Node:
    """What stays of a broker when its process ends: address, configuration, clock and logs."""

    __slots__ = (
        "address",
        "broker",
        "broker_id",
        "clients_cut_off",
        "clock",
        "config",
        "logs",
        "on_stopped",
        "process",
    )

    def __init__(
        self,
        broker_id: int,
        config: BrokerConfig,
        clock: Clock,
        address: tuple[str, int],
        memory: MemoryAccount,
        directory: LogDirectory | None = None,
    ) -> None:
        self.broker_id = broker_id
        self.config = config
        self.clock = MachineClock(clock)
        """Its wall clock gives the times of the logs; everything else goes by the monotonic time."""
        producers = ProducerStateManagerConfig(
            config.producer_id_expiration_ms, config.transaction_partition_verification_enable
        )
        self.logs = LogManager(self.clock, producers, memory, directory)
        self.address = address
        self.process: Process | None = None
        self.broker: Broker | None = None
        self.clients_cut_off = False
        self.on_stopped: Callable[[], object] | None = None
        """What `Nodes.stop` was asked to call; None unless the broker is shutting down."""

    @property
    def state(self) -> ProcessState:
        """Running, paused or dead."""
        return ProcessState.DEAD if self.process is None else self.process.state
