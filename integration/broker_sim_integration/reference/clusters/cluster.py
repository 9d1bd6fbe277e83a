"""The operations of a real Kafka of three nodes that the comparison uses, wherever it runs."""

from __future__ import annotations

import os
import platform
import re
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Self

from broker_sim_integration.broker_verbs import Fault, Reading
from broker_sim_integration.reference.clusters.listed_brokers import listed_brokers
from broker_sim_integration.reference.clusters.node_config import NODE_IDS
from broker_sim_integration.reference.clusters.waiting import wait_until
from broker_sim_integration.reference.errors import ReferenceClusterError, UnsupportedFaultError

if TYPE_CHECKING:
    from collections.abc import Callable

READY_TIMEOUT_MS = 120_000
ANSWER_TIMEOUT_S = 2.0


def _unsupported(fault: Fault) -> Callable[..., None]:
    """Return a verb that raises `UnsupportedFaultError`, for clusters that cannot cause this fault."""

    def refuse(cluster: ReferenceCluster, broker: int, *, wait: bool = True) -> None:
        del wait
        raise UnsupportedFaultError(
            f"a {cluster.kind} reference has no way to {fault} (broker {broker}); "
            "a containers reference has: --reference containers"
        )

    return refuse


class ReferenceCluster(ABC):
    """A real Kafka cluster; a context manager that starts it and removes everything at the end.

    Its verbs are those of `BrokerVerbs`. Not thread-safe: one thread opens it, calls its verbs and
    closes it.
    """

    kind: ClassVar[str]
    faults: ClassVar[frozenset[Fault]]
    readings: ClassVar[frozenset[Reading]] = frozenset()

    @property
    @abstractmethod
    def bootstrap_servers(self) -> str:
        """The brokers' addresses as a client's `bootstrap.servers`."""

    @abstractmethod
    def address(self, broker: int) -> str:
        """Return the address of one broker for clients, as `host:port`."""

    @property
    def broker_ids(self) -> tuple[int, ...]:
        """The ids of the brokers, as the verbs take them."""
        return NODE_IDS

    @abstractmethod
    def open(self) -> None:
        """Start all nodes; returns when clients see all brokers.

        Raise `ReferenceUnavailableError` if this machine lacks something, and `ReferenceClusterError` if the
        nodes do not start; either way nothing is left behind.
        """

    @abstractmethod
    def close(self) -> None:
        """Kill every node and remove its files; does nothing if none was started."""

    pause = resume = _unsupported(Fault.PAUSE)
    stop = _unsupported(Fault.STOP)
    kill = start = _unsupported(Fault.KILL)
    disconnect = reconnect = _unsupported(Fault.DISCONNECT)
    disconnect_clients = reconnect_clients = _unsupported(Fault.DISCONNECT_CLIENTS)

    def broker_log(self, broker: int) -> str:
        """Return a broker's log so far."""
        raise ReferenceClusterError(f"a {self.kind} reference does not see the log of {broker}")

    def describe(self) -> dict[str, Any]:
        """Return facts about the running cluster and its machine as plain JSON values."""
        return {
            "reference": self.kind,
            "brokers": len(self.broker_ids),
            "cpus": os.cpu_count(),
            "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
            "machine": platform.machine(),
            "system": f"{platform.system()} {platform.release()}",
            "python": platform.python_version(),
        }

    def live_brokers(self, via: int) -> frozenset[int]:
        """Return the ids of the unfenced brokers in the metadata of the broker `via`.

        Empty if it does not respond. A disconnected broker still has its old metadata.
        """
        try:
            return frozenset(listed_brokers(self.address(via), timeout_s=ANSWER_TIMEOUT_S))
        except OSError:
            return frozenset()

    def wait_until_serving(self, broker: int) -> None:
        """Return when a broker responds to clients.

        Raise `ReferenceClusterError` after two minutes, or if a node ends by itself.
        """

        def answers() -> bool:
            self._check_nodes()
            return bool(self.live_brokers(broker))

        wait_until(answers, f"broker {broker} answers", timeout_ms=READY_TIMEOUT_MS)

    def wait_for_brokers(self, expected: set[int], *, timeout_ms: int = READY_TIMEOUT_MS) -> None:
        """Return when the metadata of each of these brokers has exactly these brokers as unfenced.

        Raise `ReferenceClusterError` after `timeout_ms`, or if a node ends by itself. A broker that was killed
        or paused remains unfenced until the controller fences it, after about 9 s.
        """

        def all_agree() -> bool:
            self._check_nodes()
            return all(self.live_brokers(broker) == expected for broker in expected)

        wait_until(all_agree, f"the {self.kind} reference lists the brokers {sorted(expected)}", timeout_ms=timeout_ms)

    @abstractmethod
    def _check_nodes(self) -> None:
        """Raise `ReferenceClusterError` if a node that should run has ended."""

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def logged_kafka_version(log: str) -> str | None:
    """Return the version that a broker logs when it starts, or None before that."""
    match = re.search(r"Kafka version: (\S+)", log)
    return match.group(1) if match else None


def last_log_line(log: str) -> str:
    """Return the last line of a broker's log outside a stack trace: it names the cause of the broker's end."""
    lines = [line for line in log.splitlines() if line.strip() and not line.startswith("\tat ")]
    return lines[-1].strip() if lines else "it logged nothing"
