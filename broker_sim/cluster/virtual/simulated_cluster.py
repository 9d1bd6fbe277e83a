"""An `AsyncCluster` in virtual time, with a trace and checked invariants, and hosts for its clients."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self

from broker_sim.cluster.arguments import FIRST_BROKER_ID, broker_ids
from broker_sim.cluster.async_cluster import AsyncCluster
from broker_sim.cluster.virtual.invariants import InvariantChecker, OperationWatches
from broker_sim.errors import WrongStateError
from broker_sim.log import SimulatedDisk
from broker_sim.runtime.process import ProcessState
from broker_sim.runtime.virtual.network import ANY

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    from broker_sim.config import GivenValue
    from broker_sim.log import DiskOptions
    from broker_sim.runtime.virtual import VirtualEventLoop
    from broker_sim.runtime.virtual.network import Network
    from broker_sim.runtime.virtual.programs import Program

SERVERS_VARIABLE: Final = "KAFKA_BOOTSTRAP_SERVERS"
"""Environment variable in which a program finds the cluster."""


class ClientHost:
    """A named host: code in its `with` block, and tasks created there, run on it.

    `disconnect` may be called at any time, also before or after the block.
    """

    def __init__(self, network: Network, name: str) -> None:
        self.name = name
        self._network = network
        self._entered: list[AbstractContextManager[None]] = []

    def disconnect(self) -> None:
        """Cut the host off from all others; bytes wait until `reconnect`, as with TCP."""
        self._network.cut(self.name, ANY)
        self._network.cut(ANY, self.name)

    def reconnect(self) -> None:
        """Undo `disconnect`; held bytes arrive."""
        self._network.mend(self.name, ANY)
        self._network.mend(ANY, self.name)

    def __enter__(self) -> Self:
        inside = self._network.on_host(self.name)
        inside.__enter__()
        self._entered.append(inside)
        return self

    def __exit__(self, *_: object) -> None:
        self._entered.pop().__exit__(None, None, None)


class SimulatedCluster(AsyncCluster):
    """An `AsyncCluster` on a virtual loop.

    The loop's trace gets every step of every delayed operation, and the invariants are checked
    after each callback of the loop unless `check_invariants` is False. `latency_ms(source, target)`
    returns the latency of each message between two nodes. With `disk` each broker keeps its logs on a
    simulated disk with these options, which can lose its power. All random choices come from the loop's seed.
    The other arguments are those of `AsyncCluster`.
    """

    def __init__(
        self,
        loop: VirtualEventLoop,
        brokers: int = 3,
        *,
        first_broker_id: int = FIRST_BROKER_ID,
        latency_ms: Callable[[int, int], int] | None = None,
        check_invariants: bool = True,
        disk: DiskOptions | None = None,
        **options: Any,
    ) -> None:
        super().__init__(brokers, first_broker_id=first_broker_id, seed=loop.seed, **options)
        self._loop = loop
        self._check_invariants = check_invariants
        self.invariants: InvariantChecker | None = None
        """The checker of invariants, once the cluster is open."""
        self.latency_ms = latency_ms
        self.operations = OperationWatches(loop.trace)
        self.observers.append(self.operations)
        self._busy_until_ms: dict[int, int] = {}
        self._program_starts: dict[str, int] = {}
        self._disk_options = disk
        for broker_id in broker_ids(brokers, first_broker_id):
            self._make_disk(broker_id)

    def _make_disk(self, broker_id: int) -> None:
        if self._disk_options is not None:
            self.disks[broker_id] = SimulatedDisk(
                f"{self._loop.seed}/disk-{broker_id}",
                self._disk_options,
                now_ms=self._loop.clock.wall_clock_ms,
                on_wait=partial(self._wait_for_disk, broker_id),
            )

    def _add(self, broker_id: int, configs: Mapping[str, GivenValue] | None = None) -> None:
        if broker_id not in self.disks:
            self._make_disk(broker_id)
        super()._add(broker_id, configs)

    async def open(self) -> Self:
        """Start all brokers; returns when every one of them accepts clients."""
        await super().open()
        if self._check_invariants:
            self.invariants = InvariantChecker(self.nodes)
            self._loop.after_step = self.invariants.check
        return self

    def client_host(self, name: str) -> ClientHost:
        """Return a host for clients; clients that are started in its `with` block can be cut off from the brokers."""
        return ClientHost(self._loop.network, name)

    def start_program(
        self,
        *command: str,
        name: str = "program",
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        **options: Any,
    ) -> Program:
        """Start a program of this machine, in any language, in virtual time; returns its handle at once.

        It runs in an OS process of its own, on a host `name`; `KAFKA_BOOTSTRAP_SERVERS` has the cluster's address.
        `python` is the Python that runs the test. `await program.wait()` returns the exit code; `kill`, `freeze` and
        `resume` (of its `process`) and `send_signal` act at the exact virtual time. Raises NoVirtualProgramsError
        if the machine does not support it, and OSError.
        """
        from broker_sim.runtime.virtual.programs import Program  # noqa: PLC0415 - clusters alone need no OS processes

        start = self._program_starts[name] = self._program_starts.get(name, 0) + 1
        variables = {SERVERS_VARIABLE: self.bootstrap_servers, **(env or {})}
        return Program(self._loop, name, command, env=variables, cwd=cwd, start=start, **options)

    def program_surroundings(self) -> str:
        """Return what runs of programs depend on besides the seed; empty if no program was started.

        That is the software of this machine, and the client versions in recorded requests.
        """
        if not self._program_starts:
            return ""
        from broker_sim.runtime.virtual.programs import fingerprint  # noqa: PLC0415 - as above

        kept = self.requests("ApiVersions") if self.nodes.requests.limit else ()
        hellos = [each.request for each in kept]
        clients = {f"{hello.client_software_name} {hello.client_software_version}".strip() for hello in hellos}
        return "; ".join((fingerprint(), *sorted(clients - {""})))

    def lose_power(self, *broker_ids: int) -> None:
        """Cut the power of these brokers (default: all); `restore_power` or `start` starts them again.

        Unflushed bytes are lost, except for a random part; dead brokers lose theirs too. Raises
        WrongStateError without simulated disks.
        """
        nodes = [self.nodes.node(broker_id) for broker_id in broker_ids or self.nodes.nodes]
        if any(node.disk is None for node in nodes):
            raise WrongStateError("no simulated disks; open the cluster with disk=DiskOptions()")
        for node in nodes:
            if node.state is not ProcessState.DEAD:
                self.kill(node.broker_id)
            node.lose_power()

    async def restore_power(self, *broker_ids: int) -> None:
        """Start these dead brokers (default: all); returns when clients can connect to them."""
        dead = [
            broker_id
            for broker_id in broker_ids or self.nodes.nodes
            if self.nodes.node(broker_id).state is ProcessState.DEAD
        ]
        for broker_id in dead:
            self._start(broker_id)
        await self._until(lambda: all(map(self.listeners.is_accepting, dead)), f"brokers {dead} to accept clients")

    def _wait_for_disk(self, broker_id: int, duration_ms: int) -> None:
        """Block the broker's process while its disk is busy.

        The rest of the current callback still runs. Durations of several syncs add up.
        """
        process = self.nodes.nodes[broker_id].process
        if process is None or process.state is ProcessState.DEAD:
            return
        now_ms = self.nodes.scheduler.clock.now_ms()
        until_ms = max(self._busy_until_ms.get(broker_id, 0), now_ms) + duration_ms
        self._busy_until_ms[broker_id] = until_ms
        process.block()

        def go_on() -> None:
            if self._busy_until_ms[broker_id] == until_ms:
                process.unblock()

        self.nodes.scheduler.call_later(until_ms - now_ms, go_on)

    async def close(self) -> None:
        """Stop all brokers; idempotent."""
        self._loop.after_step = None
        await super().close()
