"""A client of one broker with topics, share groups and members, for the steps of the table."""

from __future__ import annotations

import asyncio
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from broker_sim.errors import ErrorCode
from broker_sim.protocol import messages
from broker_sim.protocol.compression import CompressionCodec
from broker_sim.protocol.record_batch import parse_header, split_batches
from broker_sim.protocol.records import Record, build_batch, iter_records
from broker_sim_integration.case_connection import Connection, eventually

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


BROKER, TOPIC, GROUP = 4, 2, 32
"""Types of resources."""
ACCEPT, RELEASE, REJECT = 1, 2, 3
PRODUCED_MS: Final = 1_700_000_000_000
LETTERS_S: Final = 20
QUIET_S: Final = 1
_DONE: Final = ("acknowledged", "archived")
_STATES: Final = ("available", "acquired", "acknowledged", "archiving", "archived")


class Topic(NamedTuple):
    """A created topic."""

    name: str
    topic_id: bytes


class Shop:
    """One broker, with names of this case only."""

    def __init__(self, address: tuple[str, int], case: str, connection: Connection) -> None:
        self._address = address
        self._case = case
        self.connection = connection
        self._members: list[Member] = []
        self.group = f"group {case}"

    @classmethod
    async def open(cls, address: tuple[str, int], case: str) -> Shop:
        """Connect to the broker."""
        return cls(address, case, await Connection.open(address))

    def close(self) -> None:
        """Close all connections."""
        for connection in (self.connection, *(member.connection for member in self._members)):
            connection.close()

    def name(self, kind: str) -> str:
        """Return the name of a topic."""
        return f"{kind}-{self._case.replace(' ', '-')}"

    # -- configurations ---------------------------------------------------------------------------

    async def create(self, name: str, partitions: int, configs: Mapping[str, str]) -> list[Any]:
        """Create a topic; return its error and message."""
        request = messages.CreateTopicsRequest
        named = [request.CreatableTopicConfig(key, value) for key, value in configs.items()]
        topic = request.CreatableTopic(name, partitions, 1, configs=named)
        (result,) = (await self.connection.ask(request([topic], 30_000), 7)).topics
        return [ErrorCode(result.error_code).name, result.error_message]

    async def make(self, kind: str, partitions: int = 1, configs: Mapping[str, str] = MappingProxyType({})) -> Topic:
        """Create a topic and return it; the broker must accept it."""
        name = self.name(kind)
        error, text = await self.create(name, partitions, configs)
        assert error == "NONE", text
        topic = await eventually(lambda: self.find(name), lambda topic: topic is not None, 10)
        assert topic is not None
        return Topic(*topic)

    async def find(self, name: str) -> Topic | None:
        """Return the topic, None without one."""
        request = messages.MetadataRequest
        (topic,) = (
            await self.connection.ask(
                request([request.MetadataRequestTopic(name=name)], allow_auto_topic_creation=False), 12
            )
        ).topics
        return None if topic.error_code or any(p.error_code for p in topic.partitions) else Topic(name, topic.topic_id)

    async def alter(self, kind: int, name: str, configs: Mapping[str, str | None]) -> list[Any]:
        """Set configurations, or remove those that are None; return error and message."""
        return await self.connection.alter(kind, name, configs)

    async def configure(self, configs: Mapping[str, str]) -> None:
        """Set configurations of the group, which must be accepted; it starts at the beginning of topics."""
        answer = await self.alter(GROUP, self.group, {"share.auto.offset.reset": "earliest", **configs})
        assert answer[0] == "NONE", answer
        wanted = len(configs) + 1

        async def own() -> int:
            rows = await self.describe(GROUP, self.group)
            return sum(row[2] == 8 for row in rows)

        await eventually(own, lambda count: count >= wanted, 10)

    async def describe(self, kind: int, name: str, *keys: str) -> list[list[Any]]:
        """Return name, value, source, type, read-only flag, and synonyms of each configuration."""
        request = messages.DescribeConfigsRequest
        resource = request.DescribeConfigsResource(kind, name, list(keys) or None)
        (result,) = (await self.connection.ask(request([resource], True), 4)).results
        return [
            [
                one.name,
                one.value,
                one.config_source,
                one.config_type,
                one.read_only,
                [[each.name, each.value, each.source] for each in one.synonyms],
            ]
            for one in result.configs
        ]

    # -- records ----------------------------------------------------------------------------------

    async def produce(
        self, topic: Topic, partition: int, records: Sequence[Record], codec: CompressionCodec = CompressionCodec.NONE
    ) -> None:
        """Produce one batch."""
        request = messages.ProduceRequest
        timed = [record._replace(timestamp=PRODUCED_MS) for record in records]
        data = request.PartitionProduceData(partition, memoryview(build_batch(timed, codec=codec)))
        asked = request(None, -1, 30_000, [request.TopicProduceData(topic.name, partition_data=[data])])
        answer = await eventually(
            lambda: self.connection.ask(asked, 9),
            lambda answer: not answer.responses[0].partition_responses[0].error_code,
            10,
        )
        assert not answer.responses[0].partition_responses[0].error_code, answer

    async def letters(self, name: str, count: int, partitions: int = 1) -> list[list[Any]]:
        """Return the records of a topic, once it has `count`, and the common fields of their batches.

        The batching is random: Kafka sends the first one alone. So the letters are sorted by their original records.
        For each record: key, value, headers, and whether its timestamp is the original's. Empty without the topic.
        """

        async def look() -> list[list[Any]]:
            if await self.find(name) is None:
                return []
            return [batch for number in range(partitions) for batch in await self._batches(name, number)]

        def has_all(batches: list[list[Any]]) -> bool:
            return sum(len(batch[1]) for batch in batches) >= count

        if not count:
            await asyncio.sleep(QUIET_S)
        batches = await eventually(look, has_all, LETTERS_S)
        kinds = sorted({str(kind) for kind, _ in batches})
        return [kinds, *sorted((record for _, records in batches for record in records), key=lambda one: one[2][2])]

    async def _batches(self, name: str, number: int) -> list[list[Any]]:
        request = messages.FetchRequest
        partition = request.FetchPartition(number, fetch_offset=0, partition_max_bytes=1 << 24)
        asked = request(
            max_wait_ms=0, min_bytes=0, max_bytes=1 << 24, topics=[request.FetchTopic(name, partitions=[partition])]
        )
        (topic,) = (await self.connection.ask(asked, 12)).responses
        batches = []
        for batch in split_batches(bytes(topic.partitions[0].records or b"")):
            header = parse_header(batch)
            records = [
                [
                    _text(record.key),
                    _text(record.value),
                    [[key, _text(value)] for key, value in record.headers],
                    record.timestamp == PRODUCED_MS,
                ]
                for record in iter_records(batch)
            ]
            kind = [header.codec.name, "log append" if header.is_log_append_time else "create", header.producer_id]
            batches.append([[number, *kind], records])
        return batches

    # -- the group --------------------------------------------------------------------------------

    async def member(self, *topics: Topic) -> Member:
        """Return a member of the group that is assigned all partitions of these topics."""
        connection = await Connection.open(self._address)
        member = Member(self, connection, f"member-{len(self._members)}", topics)
        self._members.append(member)
        await member.join()
        return member

    async def states(self, topic: Topic, partition: int = 0) -> list[Any]:
        """Return the start offset, and the state batches of the share coordinator."""
        request = messages.ReadShareGroupStateRequest
        data = request.ReadStateData(topic.topic_id, [request.PartitionData(partition, 0)])
        (result,) = (await self.connection.ask(request(self.group, [data]), 0)).results
        (state,) = result.partitions
        batches = [
            [each.first_offset, each.last_offset, _STATES[each.delivery_state], each.delivery_count]
            for each in state.state_batches
        ]
        return [state.start_offset, batches]

    async def settled(self, topic: Topic, end_offset: int, partition: int = 0) -> list[Any]:
        """Return the number of finished records once all before `end_offset` are finished, and the last batch.

        How many of them the state still has depends on the last write of the start offset.
        """

        async def look() -> list[Any]:
            start_offset, batches = await self.states(topic, partition)
            done = sum(last - first + 1 for first, last, kind, _ in batches if kind in _DONE)
            return [start_offset + done, *(last for _, *last in batches[-1:])]

        return await eventually(look, lambda seen: seen[0] >= end_offset, LETTERS_S)  # type: ignore[no-any-return]


class Member:
    """A member of a share group."""

    def __init__(self, shop: Shop, connection: Connection, member_id: str, topics: Sequence[Topic]) -> None:
        self._shop = shop
        self.connection = connection
        self._member_id = member_id
        self._topics = topics
        self._epoch = 0
        self._session = 0

    async def join(self) -> None:
        """Join and wait for the assignment."""
        names = {topic.name for topic in self._topics}
        # FindCoordinator creates the coordinator's topic.
        await self._shop.connection.ask(
            messages.FindCoordinatorRequest(key_type=0, coordinator_keys=[self._shop.group]), 4
        )

        async def beat() -> bool:
            request = messages.ShareGroupHeartbeatRequest(
                self._shop.group,
                self._member_id,
                self._epoch,
                subscribed_topic_names=list(names) if not self._epoch else None,
            )
            answer = await self._shop.connection.ask(request, 1)
            if answer.error_code:
                return False
            self._epoch = answer.member_epoch
            return answer.assignment is not None and len(answer.assignment.topic_partitions) == len(names)

        assert await eventually(beat, bool, 30)

    async def fetch(self, topic: Topic, partition: int, count: int) -> list[list[int]]:
        """Acquire records until there are `count`; return ranges with their delivery counts."""
        request = messages.ShareFetchRequest
        acquired: list[list[int]] = []

        async def take() -> int:
            asked = request(
                self._shop.group,
                self._member_id,
                self._session,
                max_wait_ms=200,
                min_bytes=1,
                max_bytes=1 << 20,
                max_records=500,
                batch_size=500,
                topics=[request.FetchTopic(topic.topic_id, [request.FetchPartition(partition)])],
            )
            answer = await self.connection.ask(asked, 2)
            assert not answer.error_code, answer
            self._session += 1
            for each in answer.responses:
                for found in each.partitions:
                    acquired.extend(
                        [one.first_offset, one.last_offset, one.delivery_count] for one in found.acquired_records
                    )
            return sum(last - first + 1 for first, last, _ in acquired)

        await eventually(take, lambda taken: taken >= count, 20)
        return acquired

    async def acknowledge(self, topic: Topic, partition: int, first: int, *types: int) -> str:
        """Acknowledge records from `first` on, one for each type; return the error."""
        request = messages.ShareAcknowledgeRequest
        batch = request.AcknowledgementBatch(first, first + len(types) - 1, list(types))
        named = request.AcknowledgeTopic(topic.topic_id, [request.AcknowledgePartition(partition, [batch])])
        answer = await self.connection.ask(request(self._shop.group, self._member_id, self._session, topics=[named]), 2)
        self._session += 1
        codes = [answer.error_code, *(each.error_code for one in answer.responses for each in one.partitions)]
        return ErrorCode(max(codes)).name


def _text(value: bytes | None) -> str | None:
    if value is not None and len(value) > 100:
        return f"{len(value)} bytes"
    return None if value is None else value.decode()
