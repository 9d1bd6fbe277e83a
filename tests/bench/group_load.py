"""Members of a classic group without a client library: many of them in one process.

What is measured is the brokers, so a member costs little: it has no task and no future, fills its id into
frames that were encoded once, and reads of answers only what it needs.
"""

import asyncio
import struct
import time
from collections.abc import Sequence
from typing import Any

from broker_connection import MEMBER, NONE, RETRY_S, VERSIONS, FramedConnection, Template, coordinator_of, encode_frame

from broker_sim.protocol import messages
from broker_sim.protocol.api_keys import ApiKey
from broker_sim.protocol.headers import decode_response

REBALANCE_TIMEOUT_MS = 60_000
LOADING, NOT_AVAILABLE, NOT_COORDINATOR = 14, 15, 16
REBALANCE_IN_PROGRESS, MEMBER_ID_REQUIRED = 27, 79
TRANSIENT = (LOADING, NOT_AVAILABLE, NOT_COORDINATOR)
_LENGTH = struct.Struct(">h")
_JOINED = struct.Struct(">iihi")
"""Correlation id, throttle time, error, generation."""
_SYNCED = struct.Struct(">iihi")
"""Correlation id, throttle time, error, size of the assignment."""
_BEATEN = struct.Struct(">iih")


class Requests:
    """What the members of one group send."""

    def __init__(self, group_id: str, session_timeout_ms: int) -> None:
        self._group_id = group_id
        protocol = messages.JoinGroupRequest.JoinGroupRequestProtocol("bench", b"")
        self.join = Template(
            ApiKey.JOIN_GROUP,
            messages.JoinGroupRequest(
                group_id, session_timeout_ms, REBALANCE_TIMEOUT_MS, MEMBER, None, "consumer", [protocol]
            ),
        )
        self._generation = -1
        self._sync = self._heartbeat = self.join

    def sync(self, generation: int) -> Template:
        """Return a SyncGroup without assignments."""
        self._begin(generation)
        return self._sync

    def heartbeat(self, generation: int) -> Template:
        """Return a Heartbeat."""
        self._begin(generation)
        return self._heartbeat

    def _begin(self, generation: int) -> None:
        if generation == self._generation:
            return
        self._generation = generation
        named = (self._group_id, generation, MEMBER)
        self._sync = Template(ApiKey.SYNC_GROUP, messages.SyncGroupRequest(*named))
        self._heartbeat = Template(ApiKey.HEARTBEAT, messages.HeartbeatRequest(*named))


class Member(FramedConnection):
    """A member of a group that joins, takes its assignment and sends heartbeats, until it is closed."""

    def __init__(self, group: "Group") -> None:
        super().__init__()
        self.generation = -1
        self.assigned: tuple[int, ...] = ()
        self.heartbeat_s = self.delay_s = 0.0
        """The time between heartbeats, and before the first one after a join."""
        self._group = group
        self._member_id = b""
        self._timer: asyncio.TimerHandle | None = None
        self._take = self._joined
        self._is_closed = False

    def frame_received(self, frame: bytes) -> None:
        """Go on with an answer; there is one at a time."""
        try:
            self._take(frame)
        except Exception as error:  # noqa: BLE001 - the transport would swallow it
            self._group.fail(error)

    def connection_lost(self, error: Exception | None) -> None:
        """Fail unless the member was closed."""
        if not self._is_closed:
            self._group.fail(error or ConnectionError("the broker closed the connection"))

    def close(self) -> None:
        """End without a word."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        super().close()

    def join(self) -> None:
        """Ask for the next generation."""
        self._take = self._joined
        self._send(self._group.requests.join.fill(self._member_id))

    def _send(self, frame: bytes) -> None:
        self._group.requests_sent += 1
        self.transport.write(frame)

    def _joined(self, frame: bytes) -> None:
        _, _, error_code, generation = _JOINED.unpack_from(frame)
        if error_code in TRANSIENT:
            self._later(RETRY_S, self.join)
            return
        offset = _JOINED.size
        texts = []
        for _ in ("protocol", "leader", "member"):
            (length,) = _LENGTH.unpack_from(frame, offset)
            offset += _LENGTH.size + length
            texts.append(frame[offset - length : offset])
        _, leader, member_id = texts
        if error_code in (MEMBER_ID_REQUIRED, REBALANCE_IN_PROGRESS):
            self._member_id = member_id or self._member_id
            self.join()
            return
        assert error_code == NONE, f"JoinGroup: {error_code}"
        self._member_id, self.generation = member_id, generation
        self._take = self._synced
        if leader == member_id:
            request = messages.SyncGroupRequest(
                self._group.group_id, generation, member_id.decode(), assignments=self._assignments(frame)
            )
            self._send(encode_frame(ApiKey.SYNC_GROUP, request))
        else:
            self._send(self._group.requests.sync(generation).fill(member_id))

    def _assignments(self, frame: bytes) -> list[Any]:
        """Return what the leader brings: every partition to one member."""
        joined: Any = decode_response(ApiKey.JOIN_GROUP, VERSIONS[ApiKey.JOIN_GROUP], frame)[1]
        assignment = messages.SyncGroupRequest.SyncGroupRequestAssignment
        ids = [member.member_id for member in joined.members]
        return [
            assignment(member_id, struct.pack(f">{len(mine)}i", *mine))
            for index, member_id in enumerate(ids)
            for mine in [range(index, self._group.partitions, len(ids))]
        ]

    def _synced(self, frame: bytes) -> None:
        _, _, error_code, size = _SYNCED.unpack_from(frame)
        if error_code == REBALANCE_IN_PROGRESS:
            self.join()
            return
        assert error_code == NONE, f"SyncGroup: {error_code}"
        self.assigned = struct.unpack_from(f">{size // 4}i", frame, _SYNCED.size)
        self._take = self._beaten
        # All get the answer at once; from here on their heartbeats are spread again.
        self._later(self.delay_s, self._beat)
        self._group.member_is_stable(self)

    def _beat(self) -> None:
        self._send(self._group.requests.heartbeat(self.generation).fill(self._member_id))

    def _beaten(self, frame: bytes) -> None:
        _, _, error_code = _BEATEN.unpack_from(frame)
        if error_code == REBALANCE_IN_PROGRESS:
            self._group.told()
            self.join()
            return
        assert error_code == NONE, f"Heartbeat: {error_code}"
        self._later(self.heartbeat_s, self._beat)

    def _later(self, delay_s: float, action: Any) -> None:
        self._timer = asyncio.get_running_loop().call_later(delay_s, action)


class Group:
    """Many members of one group; tells when all of one generation have their assignments."""

    def __init__(self, group_id: str, partitions: int, session_timeout_ms: int) -> None:
        self.group_id, self.partitions = group_id, partitions
        self.requests = Requests(group_id, session_timeout_ms)
        self.requests_sent = 0
        self.last_told_s = 0.0
        """Time at which a member last heard of a rebalance."""
        self._members: list[Member] = []
        self._generation = -1
        self._stable: set[Member] = set()
        """Members that have an assignment of that generation."""
        self._failure: Exception | None = None
        self._changed = asyncio.Event()
        self._is_told = asyncio.Event()

    async def connect(self, servers: Sequence[tuple[str, int]], count: int) -> None:
        """Connect that many members to the coordinator, which makes its topic if there is none."""
        address = await coordinator_of(servers, self.group_id)
        loop = asyncio.get_running_loop()
        for _ in range(count):
            _, member = await loop.create_connection(lambda: Member(self), *address)
            self._members.append(member)

    def start(self, beat_s: float) -> None:
        """Let all members join; their heartbeats are spread over the interval."""
        for index, member in enumerate(self._members):
            member.heartbeat_s = beat_s
            member.delay_s = beat_s * index / len(self._members)
            member.join()

    def fail(self, error: Exception) -> None:
        """Let who waits for the group get the error."""
        self._failure = error
        self._changed.set()
        self._is_told.set()

    def told(self) -> None:
        """Note that a member has heard of a rebalance."""
        self.last_told_s = time.perf_counter()
        self._is_told.set()

    def member_is_stable(self, member: Member) -> None:
        """Note that the member has its assignment."""
        if member.generation > self._generation:
            self._generation = member.generation
            self._stable.clear()
        if member.generation == self._generation:
            self._stable.add(member)
        if len(self._stable) == len(self._members):
            self._changed.set()

    async def wait_until_told(self) -> None:
        """Wait until a member hears of the next rebalance."""
        self._is_told.clear()
        await self._is_told.wait()
        self._raise_failure()

    async def wait_until_stable(self, beyond: int = 0) -> int:
        """Wait until all members are in one generation after `beyond`; return it."""
        while len(self._stable) < len(self._members) or self._generation <= beyond:
            self._changed.clear()
            await self._changed.wait()
            self._raise_failure()
        assigned = sorted(part for member in self._members for part in member.assigned)
        assert assigned == list(range(self.partitions)), assigned
        return self._generation

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def kill(self, count: int) -> None:
        """End members without a word."""
        for member in self._members[-count:]:
            member.close()
            self._stable.discard(member)
        del self._members[-count:]

    def close(self) -> None:
        """End all of them."""
        self.kill(len(self._members))
