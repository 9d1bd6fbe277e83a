"""Play the table on a broker, real or simulated; in virtual time on a virtual event loop.

Compared for each frame: the response, or that the connection is closed, and whether it came at once or after
`connection.failed.authentication.delay.ms`. After the last frame: whether the connection stays open.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from broker_sim.errors import ErrorCode
from broker_sim.metadata import SCRAM_MECHANISMS
from broker_sim.protocol import messages
from broker_sim.protocol.headers import decode_response
from broker_sim.protocol.message import Struct
from broker_sim_integration.logins.configs import ADMIN, DELAY_MS, USERS
from broker_sim_integration.logins.frames import CLIENT_NONCE, Pause, Sent, request
from broker_sim_integration.logins.table import TABLE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from broker_sim_integration.logins.table import Case

ANSWER_S: Final = 30
AT_ONCE: Final = 20
"""Number of cases at a time; Kafka's backlog has room for 50 connections, and others are a second late."""
SALT: Final = b"a salt of the table."
_NOW, _LATER = "at once", "after the delay"
_CLOSED: Final = "is closed"
_FIRST = re.compile(rf"r={CLIENT_NONCE}[0-9a-z]+,")
LONG_MS: Final = 10**9
"""Remaining lifetime in ms above which a token counts as endless: its exact value depends on the clock."""


class _Got(NamedTuple):
    data: bytes
    """The response without its size; empty if the connection was closed instead."""
    is_closed: bool
    when: str


class _Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer

    async def exchange(self, data: bytes) -> _Got:
        """Send a frame and wait for the response or the end of the connection."""
        loop = asyncio.get_running_loop()
        before_s = loop.time()
        try:
            self.writer.write(data)
            async with asyncio.timeout(ANSWER_S):
                size = int.from_bytes(await self._reader.readexactly(4), "big")
                answer, is_closed = await self._reader.readexactly(size), False
        except (ConnectionError, asyncio.IncompleteReadError):
            answer, is_closed = b"", True
        is_delayed = loop.time() - before_s > DELAY_MS / 2_000
        return _Got(answer, is_closed, _LATER if is_delayed else _NOW)

    async def stays(self) -> bool:
        """Whether the broker leaves the connection open for longer than it delays a failure."""
        try:
            async with asyncio.timeout(DELAY_MS * 1.5 / 1_000):
                return bool(await self._reader.read(1))
        except TimeoutError:
            return True
        except ConnectionError:
            return False


async def play(addresses: Mapping[str, tuple[str, int]]) -> dict[str, list[Any]]:
    """Return the outcomes by case; `addresses` are those of the listeners."""
    await _make_users(addresses[ADMIN])
    room = asyncio.Semaphore(AT_ONCE)

    async def play_case(case: Case) -> list[Any]:
        async with room:
            return await _play_case(case, addresses[case.listener])

    outcomes = await asyncio.gather(*map(play_case, TABLE.values()))
    return dict(zip(TABLE, outcomes, strict=True))


def earliest(plays: Sequence[Mapping[str, list[Any]]]) -> dict[str, list[Any]]:
    """Return the outcomes of the last play, each at the earliest time in any of the plays.

    A busy machine may delay a response or the end of a connection, but never make it early.
    """
    *before, last = plays
    return {case: _earliest(got, [play[case] for play in before]) for case, got in last.items()}


def _earliest(last: list[Any], before: Sequence[list[Any]]) -> list[Any]:
    outcomes: list[Any] = []
    for place, step in enumerate(last):
        others = [got[place] for got in before if len(got) == len(last)]
        if isinstance(step, list):
            at_once = [step[0], _NOW]
            outcomes.append(at_once if at_once in others else step)
        else:
            outcomes.append(_CLOSED if _CLOSED in others else step)
    return outcomes


async def _play_case(case: Case, address: tuple[str, int]) -> list[Any]:
    client = _Client(*await asyncio.open_connection(*address))
    outcomes: list[Any] = []
    steps = case.steps()
    answer = b""
    try:
        while True:
            step = steps.send(answer) if outcomes else next(steps)
            if isinstance(step, Pause):
                await asyncio.sleep(step.ms / 1_000)
                outcomes.append("pause")
                continue
            reply = await client.exchange(step.data)
            outcomes.append([_outcome(step, reply), reply.when])
            if reply.is_closed:
                return outcomes
            answer = _token_of(step, reply.data)
    except StopIteration:
        outcomes.append("stays" if await client.stays() else _CLOSED)
        return outcomes
    finally:
        client.writer.close()


def _decoded(sent: Sent, data: bytes) -> Any:
    assert sent.api_key is not None
    return decode_response(sent.api_key, sent.answer_version, memoryview(data))[1]


def _token_of(sent: Sent, data: bytes) -> bytes:
    """Return the message of the mechanism's server side."""
    if sent.api_key is None:
        return data
    return bytes(getattr(_decoded(sent, data), "auth_bytes", b""))


def _outcome(sent: Sent, reply: _Got) -> Any:
    if reply.is_closed:
        return "closed"
    return _plain(reply.data if sent.api_key is None else _decoded(sent, reply.data))


def _plain(value: Any) -> Any:
    """Return plain values, without random parts; lists of structures are reduced to whether they are empty."""
    if isinstance(value, Struct):
        fields = {}
        for name in value.__slots__:
            if name == "finalized_features_epoch":  # it counts changes of features
                continue
            inner = getattr(value, name)
            fields[name] = ErrorCode(inner).name if name == "error_code" else _plain(inner)
        return fields
    if isinstance(value, list) and value and isinstance(value[0], Struct):
        return True
    if isinstance(value, bytes | bytearray | memoryview):
        text = _FIRST.sub("r=NONCE,", bytes(value).decode("latin-1"))
        return "v=SIGNATURE" if text.startswith("v=") else text
    if isinstance(value, int) and value > LONG_MS:
        return "long"
    return value


async def _make_users(address: tuple[str, int]) -> None:
    """Set the users' SCRAM credentials; returns when the broker knows them."""
    client = _Client(*await asyncio.open_connection(*address))
    alter = messages.AlterUserScramCredentialsRequest
    for mechanism in SCRAM_MECHANISMS.values():
        # A request can contain each user only once.
        upsertions = [
            alter.ScramCredentialUpsertion(
                name,
                mechanism.code,
                mechanism.min_iterations,
                SALT,
                mechanism.salted_password(password, SALT, mechanism.min_iterations),
            )
            for name, password in USERS.items()
        ]
        answer = await _ask(client, request(alter([], upsertions), 0))
        assert not any(each.error_code for each in answer.results), answer
    describe = messages.DescribeUserScramCredentialsRequest
    users = request(describe([describe.UserName(name) for name in USERS]), 0)
    async with asyncio.timeout(ANSWER_S):
        credentials = 0
        while credentials < len(USERS) * len(SCRAM_MECHANISMS):
            results = (await _ask(client, users)).results
            credentials = sum(len(each.credential_infos) for each in results)
    client.writer.close()


async def _ask(client: _Client, sent: Sent) -> Any:
    reply = await client.exchange(sent.data)
    assert sent.api_key is not None
    assert not reply.is_closed, sent.api_key
    return _decoded(sent, reply.data)
