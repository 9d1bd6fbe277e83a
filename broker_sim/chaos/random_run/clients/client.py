"""A client of a random run: a coroutine that sends one request after the other, with pauses in between.

The callback that ends its wait runs it at once. A task of the virtual loop would run one step later, after other
ready callbacks, but many checks compare a response with the state of the brokers at the moment when it arrives. (Tasks
were as fast, with 20 % more steps.) A client's error ends the run.

Like a real client it keeps the leader that it knows until a broker refuses a request, does not answer, or is gone.
So after a failover it may use the old leader. Each client has a random stream of its own.
"""

from __future__ import annotations

import random
from types import coroutine
from typing import TYPE_CHECKING, Any, Final

from broker_sim.chaos.random_run.schedule import TOPIC
from broker_sim.cluster.virtual.invariants import violated
from broker_sim.cluster.virtual.virtual_client import FETCH_VERSION, OFFSET_FETCH_VERSION, PRODUCE_VERSION
from broker_sim.protocol import messages
from broker_sim.protocol.release import find_release

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Coroutine, Generator, Mapping

    from broker_sim.chaos.random_run.clients.shared_state import SharedState
    from broker_sim.cluster.virtual.virtual_client import PendingResponse

TIMEOUTS_MS: Final = (20, 300, 1_500, 1_500)
ANSWER_SLACK_MS: Final = 1_000
"""Time in ms that a client waits beyond a broker's maximum before it closes the connection."""
REFRESH_SHARE: Final = 0.1
"""Share of requests before which a client refreshes the leader without an error, as old metadata is."""
_RANGES: Final[Mapping[int | None, tuple[int, int]]] = {
    int(key): versions for key, versions in find_release().apis.items()
}
"""The API versions that the clusters of runs advertise."""
VERSIONS: Final[Mapping[type, int]] = {
    messages.FetchRequest: FETCH_VERSION,
    messages.ProduceRequest: PRODUCE_VERSION,
    messages.OffsetFetchRequest: OFFSET_FETCH_VERSION,
    messages.OffsetCommitRequest: 9,
    messages.InitProducerIdRequest: 5,
    messages.AddPartitionsToTxnRequest: 3,
    messages.AddOffsetsToTxnRequest: 3,
}
"""Versions of requests that are not sent in the newest version, because these have topic names, not ids."""


@coroutine
def _wait() -> Generator[None, Any, Any]:
    """Suspend a client until its timer expires or its response arrives."""
    return (yield)


class Client:
    """A client; subclasses implement its behaviour in `_live`."""

    def __init__(self, shared: SharedState, name: str) -> None:
        self._shared = shared
        self._name = name
        self._versions = VERSIONS
        self._rng = random.Random(f"{shared.schedule.seed}/{name}")
        self._client = shared.cluster.client()
        self._leaders: dict[int, tuple[int, int]] = {}
        """The leader and leader epoch of each partition that this client knows."""
        self._life: Coroutine[Any, Any, None] | None = None
        self._resting: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Start, or restart, the client; for a restart none of its requests may be in flight."""
        if self._resting is not None:
            self._resting.cancel()
        self._life = self._live()
        self._resume()

    async def _live(self) -> None:
        raise NotImplementedError

    @property
    def _goes_on(self) -> bool:
        """Whether it sends new requests."""
        return self._shared.running

    @property
    def _wall_clock_ms(self) -> int:
        return self._shared.cluster.scheduler.clock.wall_clock_ms()

    def _record(self, *what: Any) -> None:
        """Add an entry to the trace of the run."""
        self._shared.cluster.trace.record(*what)

    # -- waiting ------------------------------------------------------------------------------------

    def _resume(self, result: Any = None) -> None:
        assert self._life is not None
        try:
            self._life.send(result)
        except StopIteration:
            self._life = None

    async def _rest(self, longest_ms: int) -> None:
        """Pause for up to `longest_ms`; for ever if the run is over by then."""
        delay_ms = self._rng.randint(1, longest_ms)
        self._resting = self._shared.cluster.scheduler.call_later(delay_ms, self._wake)
        await _wait()

    def _wake(self) -> None:
        if self._goes_on:
            self._resume()

    async def _send(self, broker_id: int, message: Any, timeout_ms: int) -> PendingResponse:
        """Send a request; return it once it was answered or its connection was lost."""
        shared = self._shared
        timer = shared.cluster.scheduler.call_later(
            timeout_ms + ANSWER_SLACK_MS, lambda: self._give_up(broker_id, pending)
        )
        shared.waiting += 1
        version = self._versions.get(type(message), _RANGES[message.API_KEY][1])
        pending = self._client.send(broker_id, message, version, self._resume)
        await _wait()
        timer.cancel()
        shared.waiting -= 1
        return pending

    def _give_up(self, broker_id: int, pending: PendingResponse) -> None:
        quiet_since_ms = self._shared.disturbances.quiet_since_ms
        if quiet_since_ms is not None and quiet_since_ms <= pending.sent_ms:
            violated(
                "requests-are-answered",
                f"{self._name} waits since {pending.sent_ms} ms for broker {broker_id} to answer "
                f"{pending.api_key.name}",
            )
        self._client.disconnect(broker_id)

    # -- partitions ---------------------------------------------------------------------------------

    def _leader(self, partition: int) -> tuple[int, int]:
        """Return the leader and its epoch; without a leader any broker, with the epoch -1."""
        leader = self._leaders.get(partition)
        if leader is None or self._rng.random() < REFRESH_SHARE:
            state = self._shared.cluster.nodes.controller.image.topics[TOPIC].partitions[partition]
            if not state.has_leader:
                self._leaders.pop(partition, None)
                return self._rng.randint(1, self._shared.schedule.brokers), -1
            leader = self._leaders[partition] = (state.leader, state.leader_epoch)
        return leader
