"""A member of a share group for the page: aiokafka has no share consumer, so this one speaks the protocol itself.

It sends heartbeats, fetches from the leaders of what it is assigned, works on what it gets, and acknowledges it.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from broker_sim.errors import ErrorCode
from broker_sim.protocol import messages
from broker_sim.protocol.record_batch import parse_header, split_batches
from broker_sim.protocol.records import iter_records
from broker_sim.share.partition.record_state import AcknowledgeType

ANSWERS = (AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT)
ACKNOWLEDGEMENTS = {kind.name.lower(): kind for kind in ANSWERS}
"""How a member acknowledges records, by the name in the form; with any other name it lets locks run out."""
AGAIN_S = 0.5
WAIT_MS = 5_000


class ShareMember:
    """One member; `say` tells the page what it does."""

    def __init__(self, cluster, name, group, topic, answer, work_s, say):
        self.cluster, self.name, self.group, self.topic = cluster, name, group, topic
        self.answer, self.work_s, self.say = ACKNOWLEDGEMENTS.get(answer), work_s, say
        self.client = cluster.client(name)
        self.assigned = []

    async def run(self):
        """Be a member until the task is cancelled, and leave the group then."""
        coordinator = None
        try:
            coordinator = await self._coordinator()
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._send_heartbeats(coordinator))
                for broker in self.cluster.nodes.nodes:
                    tasks.create_task(self._consume_from(broker))
        finally:
            if coordinator is not None:
                self.client.send(coordinator, messages.ShareGroupHeartbeatRequest(self.group, self.name, -1), 1)

    async def _ask(self, broker, message, version):
        """Return the answer of a broker. Raises OSError if the connection ends before it."""
        answered = asyncio.get_running_loop().create_future()
        self.client.send(broker, message, version, lambda done: answered.done() or answered.set_result(done))
        done = await answered
        if done.disconnected:
            raise ConnectionResetError(f"broker {broker} has closed the connection")
        return done.response

    async def _coordinator(self):
        """Return the broker that coordinates the group, when there is one."""
        find = messages.FindCoordinatorRequest(key_type=0, coordinator_keys=[self.group])
        while True:
            for broker in self.cluster.nodes.nodes:
                with suppress(OSError):
                    (place,) = (await self._ask(broker, find, 6)).coordinators
                    if not place.error_code:
                        return place.node_id
            await asyncio.sleep(AGAIN_S)

    async def _send_heartbeats(self, coordinator):
        epoch = 0
        while True:
            beat = messages.ShareGroupHeartbeatRequest(self.group, self.name, epoch)
            beat.subscribed_topic_names = None if epoch else [self.topic]
            pause_s = AGAIN_S
            try:
                answer = await self._ask(coordinator, beat, 1)
            except OSError:
                coordinator, epoch = await self._coordinator(), 0
                continue
            if answer.error_code:
                self.assigned, epoch = [], 0
                coordinator = await self._coordinator()
            else:
                epoch, pause_s = answer.member_epoch, answer.heartbeat_interval_ms / 1_000
                if answer.assignment is not None:
                    self._take(answer.assignment.topic_partitions)
            await asyncio.sleep(pause_s)

    def _take(self, topics):
        self.assigned = [number for topic in topics for number in topic.partitions]
        names = ", ".join(f"{self.topic}-{number}" for number in self.assigned)
        self.say(self.name, f"gets {names or 'no partition'} in share group {self.group!r}")

    def _led_by(self, broker):
        topic = self.cluster.nodes.controller.image.topics.get(self.topic)
        return [] if topic is None else [each for each in self.assigned if topic.partitions[each].leader == broker]

    async def _consume_from(self, broker):
        while True:
            with suppress(OSError):
                if self._led_by(broker):
                    await self._hold_session(broker)
            self.client.disconnect(broker)
            await asyncio.sleep(AGAIN_S)

    async def _hold_session(self, broker):
        """Fetch and acknowledge for as long as the broker leads the same partitions, and makes no error."""
        numbers, session = self._led_by(broker), 0
        topic_id = self.cluster.nodes.controller.image.topics[self.topic].topic_id
        request = messages.ShareFetchRequest
        while numbers == self._led_by(broker):
            topics = [request.FetchTopic(topic_id, [request.FetchPartition(number) for number in numbers])]
            fetch = request(
                self.group, self.name, session, max_wait_ms=WAIT_MS, min_bytes=1, max_bytes=1_000_000, max_records=500,
                batch_size=500, topics=[] if session else topics,
            )  # fmt: skip
            answer = await self._ask(broker, fetch, 2)
            parts, error = self._result(answer)
            if error:
                self.say(self.name, f"hears {ErrorCode(error).name} from broker {broker}, and asks again")
                return
            session += 1
            kinds = {each.partition_index: self._work_on(each) for each in parts if each.acquired_records}
            if kinds and self.answer is not None:
                await asyncio.sleep(self.work_s)
                await self._acknowledge(broker, session, topic_id, kinds)
                session += 1

    @staticmethod
    def _result(answer):
        """Return the partitions of an answer, and its first error or 0."""
        parts = [each for topic in answer.responses for each in topic.partitions]
        return parts, next((one for one in (answer.error_code, *(each.error_code for each in parts)) if one), 0)

    def _work_on(self, part):
        """Tell of the records of a partition; return how each of its offsets is acknowledged. A marker is a gap."""
        counts = {
            offset: one.delivery_count
            for one in part.acquired_records
            for offset in range(one.first_offset, one.last_offset + 1)
        }
        kinds = dict.fromkeys(counts, AcknowledgeType.GAP)
        for batch in split_batches(part.records):
            for record in () if parse_header(batch).is_control else iter_records(batch):
                if record.offset in counts:
                    kinds[record.offset] = self.answer
                    value = (record.value or b"").decode(errors="replace")
                    place = f"{self.topic}-{part.partition_index}, offset {record.offset}"
                    self.say(self.name, f"acquires {value!r} from {place}, delivery {counts[record.offset]}")
        return kinds

    async def _acknowledge(self, broker, session, topic_id, kinds):
        request = messages.ShareAcknowledgeRequest
        partitions = [
            request.AcknowledgePartition(
                number, [request.AcknowledgementBatch(offset, offset, [kind]) for offset, kind in of_partition.items()]
            )
            for number, of_partition in kinds.items()
        ]
        topics = [request.AcknowledgeTopic(topic_id, partitions)]
        answer = await self._ask(broker, request(self.group, self.name, session, topics=topics), 2)
        _, error = self._result(answer)
        count = sum(kind is self.answer for of_partition in kinds.values() for kind in of_partition.values())
        said = f"{self.answer.name.lower()}s" if not error else f"hears {ErrorCode(error).name} for"
        self.say(self.name, f"{said} {count} record{'s' if count != 1 else ''}")
