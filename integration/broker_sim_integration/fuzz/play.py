"""Plays one sequence on one side: its topics, then its actions one after the other.

Every client has its own connection to each broker that it uses. A response that does not come within its API's
time limit counts as parked: the play goes on, and the response is used if it comes by the end. A client with a
parked request sends nothing meanwhile, as Kafka would not read it.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.protocol import messages
from broker_sim.protocol.errors import ProtocolError
from broker_sim_integration.fuzz.connection import AsyncConnection
from broker_sim_integration.fuzz.lookup import Lookup
from broker_sim_integration.fuzz.references import References
from broker_sim_integration.fuzz.sequence import Fault, Pause, Request
from broker_sim_integration.fuzz.share_lookup import ShareLookup
from broker_sim_integration.fuzz.streams_lookup import settle_streams_group

if TYPE_CHECKING:
    from broker_sim.protocol.message import Message
    from broker_sim_integration.fuzz.sequence import Sequence
    from broker_sim_integration.fuzz.side import FuzzedSide

PATIENCE_S: Final = {"JoinGroup": 0.4, "SyncGroup": 0.4}
PATIENCE_OF_SHARE_FETCHES_S: Final = 2.0
"""Limit between short and long waits of share fetches; drawn waits are far from it."""
PATIENCE_OF_OTHERS_S: Final = 8.0
ALL: Final = -1
GRACE_S: Final = 0.1
"""Time to wait for a client's parked request before its next one."""
ENDING_S: Final = 0.8
"""Time to wait for parked responses at the end."""
CHANGES_METADATA: Final = frozenset(
    {
        "AlterConfigs",
        "AlterPartitionReassignments",
        "CreatePartitions",
        "CreateTopics",
        "DeleteTopics",
        "ElectLeaders",
        "IncrementalAlterConfigs",
    }
)
"""Requests whose changes reach brokers a moment after the response."""

CHANGES_GROUPS: Final = frozenset({"JoinGroup", "OffsetCommit"})
"""Requests that may be answered before the group that they create can be described."""

CHANGES_SHARE_GROUPS: Final = frozenset({"AlterShareGroupOffsets", "ShareGroupHeartbeat"})
"""Requests that may be answered before the share partition states that they need are initialized."""

ENDS_TRANSACTIONS: Final = frozenset({"EndTxn", "InitProducerId"})
"""Requests whose markers are written after the response."""


@dataclass(slots=True)
class Outcome:
    """The outcome of one action."""

    state: str
    """answered, parked (answered later, or never), closed, busy, unreachable, done."""
    answer: Message | None = None


@dataclass(slots=True)
class Play:
    """A played sequence: an outcome for every action, and the names that it used."""

    references: References
    outcomes: list[Outcome] = field(default_factory=list)


async def play(side: FuzzedSide, sequence: Sequence, prefix: str) -> Play:
    """Play a sequence with names of this prefix. Raises PlayError if its topics do not come up."""
    player = _Player(side, prefix)
    try:
        await player.lookup.prepare(sequence.topics, player.played.references)
        for action in sequence.actions:
            player.played.outcomes.append(await player.act(action))
        await player.end()
    finally:
        await player.close()
    return player.played


class _Sent(NamedTuple):
    """A sent request, and its response once it has come."""

    message: Message
    outcome: Outcome
    pending: asyncio.Future[Message | None]


class _Player:
    def __init__(self, side: FuzzedSide, prefix: str) -> None:
        self._side = side
        self.played = Play(References(prefix, side.broker))
        self.lookup = Lookup(side)
        self._shares = ShareLookup(side, self.lookup)
        self._connections: dict[tuple[str, int], AsyncConnection] = {}
        self._parked: dict[str, _Sent] = {}

    async def act(self, action: Request | Fault | Pause) -> Outcome:
        match action:
            case Request():
                return await self._request(action)
            case Fault():
                await self._side.verb(action.verb, self._side.broker(action.broker))
                await self.lookup.settle_after(action.verb, self._side.broker(action.broker))
            case Pause():
                await asyncio.sleep(action.ms / 1000)
        return Outcome("done")

    async def _request(self, request: Request) -> Outcome:
        if await self._is_busy(request.client):
            return Outcome("busy")
        references = self.played.references
        broker = await self._shares.broker(request.at)
        if broker is None:
            broker = await self.lookup.broker(references.resolve(request.at))
        message_class = getattr(messages, f"{request.api}Request")
        message = references.message(message_class, request.body)
        try:
            connection = await self._connection(request.client, broker)
            pending = connection.send(message, request.version)
        except (OSError, TimeoutError):
            return Outcome("unreachable")
        except (ProtocolError, OverflowError) as error:
            return Outcome(f"cannot be encoded: {error}")
        outcome = Outcome("parked")
        parked = _Sent(message, outcome, pending)
        await asyncio.wait([pending], timeout=_patience_s(request.api))
        if request.api in CHANGES_GROUPS:
            await self.lookup.settle_groups(broker, references.prefix)
        elif not pending.done() and request.api in PATIENCE_S:
            # The broker may be slow: then this response is late, too, and comes after the other one.
            await self.lookup.hear(broker, message.group_id)  # type: ignore[attr-defined]
        if not pending.done():
            self._parked[request.client] = parked
            return outcome
        self._take(request.client, parked)
        if outcome.answer is not None:
            await self._settle(request.api, broker, message, outcome.answer)
        return outcome

    async def _settle(self, api: str, broker: int, message: Message, answer: Message) -> None:
        """Wait until the changes made by a request are visible to later requests."""
        if api in CHANGES_METADATA:
            await self.lookup.settle_topics(message, answer)
        if api == "Produce" and getattr(message, "acks", ALL) != ALL:
            await self.lookup.settle_produced(broker, answer)
        if api in ENDS_TRANSACTIONS:
            await self.lookup.settle_transaction(getattr(message, "transactional_id", None) or "")
        await self._shares.settle_session(message)
        if api in CHANGES_SHARE_GROUPS:
            await self._shares.settle(broker, message, answer)
        if api == "StreamsGroupHeartbeat":
            await settle_streams_group(self.lookup, broker, message, answer)

    def _take(self, client: str, sent: _Sent) -> None:
        outcome = sent.outcome
        outcome.answer = sent.pending.result()
        if outcome.answer is None:
            outcome.state = "closed"
            return
        if outcome.state == "parked" and client not in self._parked:
            outcome.state = "answered"
        self.played.references.learn(client, outcome.answer)
        self.played.references.learn_share(client, sent.message, outcome.answer)

    async def _is_busy(self, client: str) -> bool:
        """Return whether a client's request is still parked; handle its response if it has come."""
        if client not in self._parked:
            return False
        sent = self._parked[client]
        await asyncio.wait([sent.pending], timeout=GRACE_S)
        if not sent.pending.done():
            return True
        self._take(client, sent)
        del self._parked[client]
        return False

    async def end(self) -> None:
        """Wait a moment for parked responses."""
        waiting = [sent.pending for sent in self._parked.values()]
        if waiting:
            await asyncio.wait(waiting, timeout=ENDING_S)
        for client, sent in self._parked.items():
            if sent.pending.done():
                self._take(client, sent)

    async def close(self) -> None:
        for connection in self._connections.values():
            await connection.close()
        with suppress(OSError, TimeoutError):
            await self.lookup.close(self.played.references)

    async def _connection(self, client: str, broker: int) -> AsyncConnection:
        connection = self._connections.get((client, broker))
        if connection is None or connection.ended:
            connection = await AsyncConnection.open(*self._side.brokers.address(broker))
            self._connections[client, broker] = connection
        return connection


def _patience_s(api: str) -> float:
    if api == "ShareFetch":
        return PATIENCE_OF_SHARE_FETCHES_S
    return PATIENCE_S.get(api, PATIENCE_OF_OTHERS_S)
