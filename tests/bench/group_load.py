"""Members of a classic group without a client library: many of them in one process.

All speak our own codec over asyncio, so that what is measured is the brokers.
"""

import asyncio
import struct
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from broker_sim.protocol import messages
from broker_sim.protocol.api_keys import ApiKey
from broker_sim.protocol.headers import RequestHeader, decode_response, encode_request

VERSIONS = {
    ApiKey.CREATE_TOPICS: 5,
    ApiKey.FETCH: 11,
    ApiKey.FIND_COORDINATOR: 3,
    ApiKey.HEARTBEAT: 3,
    ApiKey.JOIN_GROUP: 5,
    ApiKey.OFFSET_COMMIT: 7,
    ApiKey.PRODUCE: 8,
    ApiKey.SYNC_GROUP: 3,
}
"""Versions that every peer serves."""
SESSION_TIMEOUT_MS = 6_000
REBALANCE_TIMEOUT_MS = 60_000
RETRY_S = 0.05
NONE, LOADING, NOT_AVAILABLE, NOT_COORDINATOR = 0, 14, 15, 16
REBALANCE_IN_PROGRESS, MEMBER_ID_REQUIRED = 27, 79
TRANSIENT = (LOADING, NOT_AVAILABLE, NOT_COORDINATOR)
_SIZE = struct.Struct(">i")


class Connection(asyncio.Protocol):
    """One connection; answers come in the order of the requests."""

    def __init__(self) -> None:
        self._transport: Any = None
        self._buffer = bytearray()
        self._waiting: deque[tuple[ApiKey, asyncio.Future[Any]]] = deque()

    @classmethod
    async def open(cls, address: tuple[str, int]) -> "Connection":
        """Connect to a broker."""
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(cls, *address)
        return connection

    def connection_made(self, transport: Any) -> None:
        """Keep the transport."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Hand every whole answer to who waits for it."""
        buffer = self._buffer
        buffer += data
        start = 0
        while len(buffer) - start >= 4:
            (size,) = _SIZE.unpack_from(buffer, start)
            if len(buffer) - start - 4 < size:
                break
            api_key, future = self._waiting.popleft()
            frame = bytes(buffer[start + 4 : start + 4 + size])
            start += 4 + size
            if not future.done():
                future.set_result(decode_response(api_key, VERSIONS[api_key], frame)[1])
        del buffer[:start]

    def connection_lost(self, error: Exception | None) -> None:
        """Fail what waits."""
        for _, future in self._waiting:
            if not future.done():
                future.set_exception(error or ConnectionError("the broker closed the connection"))

    def request(self, api_key: ApiKey, message: Any) -> asyncio.Future[Any]:
        """Send a request; returns the future of its answer."""
        future = asyncio.get_running_loop().create_future()
        self._waiting.append((api_key, future))
        header = RequestHeader(api_key, VERSIONS[api_key], len(self._waiting), "bench")
        self._transport.write(b"".join(encode_request(header, message)))
        return future

    def close(self) -> None:
        """Close it without a word."""
        self._transport.abort()


async def coordinator_of(servers: Sequence[tuple[str, int]], group_id: str) -> tuple[str, int]:
    """Return the address of the group's coordinator; it may have to make its topic first."""
    connection = await Connection.open(servers[0])
    try:
        while True:
            request = messages.FindCoordinatorRequest(key=group_id)
            found = await connection.request(ApiKey.FIND_COORDINATOR, request)
            if found.error_code == NONE:
                return found.host, found.port
            await asyncio.sleep(RETRY_S)
    finally:
        connection.close()


class Member:
    """A member of a group that joins, takes its assignment and sends heartbeats."""

    def __init__(self, group_id: str, partitions: int, on_stable: Callable[[], object]) -> None:
        self.group_id, self.partitions = group_id, partitions
        self.member_id = ""
        self.generation = -1
        self.assigned: tuple[int, ...] = ()
        self.told_s = 0.0
        """When it heard of the last rebalance."""
        self._on_stable = on_stable

    async def live(self, connection: Connection, heartbeat_s: float, delay_s: float) -> None:
        """Join and stay until it is cancelled; the first heartbeat after a join comes in `delay_s`."""
        try:
            await self._join(connection)
            await asyncio.sleep(delay_s)
            while True:
                request = messages.HeartbeatRequest(self.group_id, self.generation, self.member_id)
                beaten = await connection.request(ApiKey.HEARTBEAT, request)
                if beaten.error_code == REBALANCE_IN_PROGRESS:
                    self.told_s = time.perf_counter()
                    await self._join(connection)
                    # All get the answer at once; from here on their heartbeats are spread again.
                    await asyncio.sleep(delay_s)
                else:
                    assert beaten.error_code == NONE, beaten
                    await asyncio.sleep(heartbeat_s)
        finally:
            connection.close()

    async def _join(self, connection: Connection) -> None:
        protocol = messages.JoinGroupRequest.JoinGroupRequestProtocol("bench", b"")
        while True:
            joined = await connection.request(
                ApiKey.JOIN_GROUP,
                messages.JoinGroupRequest(
                    self.group_id,
                    SESSION_TIMEOUT_MS,
                    REBALANCE_TIMEOUT_MS,
                    self.member_id,
                    None,
                    "consumer",
                    [protocol],
                ),
            )
            if joined.error_code == MEMBER_ID_REQUIRED:
                self.member_id = joined.member_id
                continue
            if joined.error_code in TRANSIENT:
                await asyncio.sleep(RETRY_S)
                continue
            assert joined.error_code in (NONE, REBALANCE_IN_PROGRESS), joined
            if joined.error_code == REBALANCE_IN_PROGRESS:
                continue
            self.member_id, self.generation = joined.member_id, joined.generation_id
            synced = await connection.request(
                ApiKey.SYNC_GROUP,
                messages.SyncGroupRequest(
                    self.group_id,
                    self.generation,
                    self.member_id,
                    assignments=self._assignments(joined),
                ),
            )
            if synced.error_code == NONE:
                break
            assert synced.error_code == REBALANCE_IN_PROGRESS, synced
        count = len(synced.assignment) // 4
        self.assigned = struct.unpack(f">{count}i", synced.assignment)
        self._on_stable()

    def _assignments(self, joined: Any) -> list[Any]:
        """Return what the leader brings: every partition to one member."""
        if joined.leader != joined.member_id:
            return []
        assignment = messages.SyncGroupRequest.SyncGroupRequestAssignment
        ids = [member.member_id for member in joined.members]
        return [
            assignment(member_id, struct.pack(f">{len(mine)}i", *mine))
            for index, member_id in enumerate(ids)
            for mine in [range(index, self.partitions, len(ids))]
        ]


class Group:
    """Many members of one group; tells when all of one generation have their assignments."""

    def __init__(self, group_id: str, partitions: int) -> None:
        self.group_id, self.partitions = group_id, partitions
        self.members: list[Member] = []
        self._connections: list[Connection] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._changed = asyncio.Event()

    async def connect(self, servers: Sequence[tuple[str, int]], count: int) -> None:
        """Connect that many members to the coordinator, which makes its topic if there is none."""
        address = await coordinator_of(servers, self.group_id)
        self._connections = [await Connection.open(address) for _ in range(count)]

    def start(self, beat_s: float) -> None:
        """Let all members join; their heartbeats are spread over the interval."""
        for index, connection in enumerate(self._connections):
            member = Member(self.group_id, self.partitions, self._changed.set)
            self.members.append(member)
            living = member.live(connection, beat_s, beat_s * index / len(self._connections))
            self._tasks.append(asyncio.create_task(living))

    async def wait_until_stable(self, beyond: int = 0) -> int:
        """Wait until all members are in one generation after `beyond`; return it."""
        while True:
            for task in self._tasks:
                if task.done() and not task.cancelled():
                    task.result()
            generations = {member.generation for member in self.members}
            assigned = sorted(part for member in self.members for part in member.assigned)
            if len(generations) == 1 and assigned == list(range(self.partitions)):
                (generation,) = generations
                if generation > beyond:
                    return generation
            self._changed.clear()
            await self._changed.wait()

    async def kill(self, count: int) -> None:
        """End members without a word."""
        for task in self._tasks[-count:]:
            task.cancel()
        await asyncio.gather(*self._tasks[-count:], return_exceptions=True)
        del self._tasks[-count:], self.members[-count:]

    async def close(self) -> None:
        """End all of them."""
        await self.kill(len(self._tasks))
