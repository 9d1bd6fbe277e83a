"""An application of a share group in virtual time, whose members speak the protocol: aiokafka has no share consumer.

Each worker is one member: it sends heartbeats, fetches from the leaders of what it is assigned, works for a while,
and accepts, releases or rejects each record.
"""

import asyncio
from collections import Counter
from contextlib import contextmanager
from types import MappingProxyType

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from broker_sim.chaos import InvariantError
from broker_sim.errors import ErrorCode, WrongStateError
from broker_sim.metadata.topic_name import SHARE_GROUP_STATE_TOPIC
from broker_sim.protocol import messages
from broker_sim.share.coordinator.shard import ShareShard
from broker_sim.share.dead_letters.dead_letter_queue import DeadLetterQueue
from broker_sim.share.partition.record_state import AcknowledgeType, RecordState

from .raw_connection import Connection

GROUP, TOPIC, PARTITIONS, LIMIT = "billing", "orders", 2, 3
WORK_S = (0, 0.1, 0.3, 0.3, 1, 6)
"""How long a worker works; once in a while for longer than its lock lasts."""
FAULTS = {
    "crash": 2, "freeze": 1, "cut": 2, "slow": 1, "pause": 2, "kill": 2, "stop": 1, "roll": 1, "isolate": 1,
    "deaf": 1, "mute": 1, "unreachable": 1, "lag": 1, "transfer": 3, "move_groups": 2, "slow_disk": 1,
    "full_disk": 1,
}  # fmt: skip
"""No `shift_clock`: as in Kafka, after a step back of its wall clock a coordinator waits until that has caught up."""
LOCK_S = 5
CONFIGS = {
    "group.share.record.lock.duration.ms": LOCK_S * 1_000,
    "group.share.delivery.count.limit": LIMIT,
    "group.share.assignment.interval.ms": 0,
    "share.coordinator.snapshot.update.records.per.snapshot": 5,
    "share.coordinator.state.topic.prune.interval.ms": 3_000,
}
PRODUCER = {"request_timeout_ms": 5_000, "retry_backoff_ms": 100, "metadata_max_age_ms": 5_000}
FINAL = (AcknowledgeType.ACCEPT, AcknowledgeType.REJECT)
REJECTED_ONE_IN = 5
"""Every fifth order is bad: whoever gets it rejects it, so that each run has rejected orders."""


class Delivery:
    """What all workers together have seen of the records."""

    def __init__(self, chaos):
        self.chaos = chaos
        self.faults_over = False
        """From then on workers answer at once, and release nothing."""
        self.deliveries = Counter()
        self.settled_s = {}
        """When a worker heard that a record is accepted or rejected."""
        self.rejected = set()
        """Rejected, and answered so."""
        self.doubtful = set()
        """Acknowledged for good, and the answer was lost."""
        self.given_up = set()
        """Delivered for the last time."""
        self.errors = Counter()
        self.processes = {}
        """The worker of each member, and its process."""
        self.holders = {}
        """Who has a record, on which connection, until when at least, and the leader that gave it."""

    def acquired(self, who, leader, number, ranges, asked_s):
        """Take in what a worker was given, with its connection.

        Nothing may be in it that was settled before it was asked for, or that another one still has.
        """
        state = self.chaos.kafka.nodes.controller.image.topics[TOPIC].partitions[number]
        for one in ranges:
            if one.delivery_count > LIMIT:
                raise InvariantError("no record is delivered too often", f"{number} {one}")
            for offset in range(one.first_offset, one.last_offset + 1):
                record = number, offset
                self.deliveries[record] += 1
                self._hold(record, who, (leader, self._life_of(leader, state)), asked_s)
                settled_s = self.settled_s.get(record)
                # A leader that has been replaced, and does not know it, may deliver what the next one has settled.
                is_settled = settled_s is not None and settled_s < asked_s
                if is_settled and state.leader == leader:
                    text = f"{record} to {who} by {leader}, settled at {settled_s:.3f}, asked at {asked_s:.3f}"
                    raise InvariantError("what is settled is not delivered again", text)
                if one.delivery_count == LIMIT:
                    self.given_up.add(record)

    def _life_of(self, leader, state):
        """Return what changes when the locks of a leader's partition are gone."""
        return self.chaos.kafka.nodes.brokers.get(leader), state.leader_epoch

    def _hold(self, record, who, leader, asked_s):
        holder, before, until_s = self.holders.get(record, (None, None, 0))
        now_s = asyncio.get_running_loop().time()
        if holder is not None and before == leader and now_s < until_s and self._lives(holder[0]):
            text = f"{record} to {who}, {holder} has it until {until_s:.3f}"
            raise InvariantError("nobody gets what another one has", text)
        self.holders[record] = who, leader, asked_s + LOCK_S

    def _lives(self, member_id):
        """Whether a member was not killed, with which its connections are lost."""
        worker, process = self.processes[member_id]
        return worker.process is process

    def let_go(self, who=None, number=None):
        """Forget what somebody has, or what anybody has of a partition."""
        for record, (holder, _, _) in list(self.holders.items()):
            if holder == who or record[0] == number:
                del self.holders[record]

    def is_done(self, record):
        return record in self.settled_s or record in self.doubtful or record in self.given_up


class Member:
    """One worker, as a member of the share group."""

    def __init__(self, me, delivery, rng):
        self.me, self.delivery, self.rng = me, delivery, rng
        self.chaos = delivery.chaos
        self.member_id = f"{me.name}-{me.starts}"
        delivery.processes[self.member_id] = me, me.process
        servers = [one.split(":") for one in self.chaos.kafka.bootstrap_servers.split(",")]
        self.addresses = {broker: (host, int(port)) for broker, (host, port) in enumerate(servers, 1)}
        self.assigned = []
        self.topic_id = None

    async def run(self):
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.send_heartbeats())
            for broker in self.addresses:
                tasks.create_task(self.consume_from(broker))

    async def send_heartbeats(self):
        """Join, and join again when the coordinator knows nothing of this member."""
        epoch = 0
        connection = None
        while True:
            try:
                if connection is None:
                    connection = await self.find_coordinator()
                    names = [TOPIC]  # an assignment may be lost: whoever names topics is told of it again
                beat = messages.ShareGroupHeartbeatRequest(GROUP, self.member_id, epoch)
                beat.subscribed_topic_names = names
                answer = await connection.ask(beat, 1)
                if not answer.error_code:
                    names, epoch = None, answer.member_epoch
                    if answer.assignment is not None:
                        topics = answer.assignment.topic_partitions
                        self.assigned = [number for topic in topics for number in topic.partitions]
                        self.topic_id = topics[0].topic_id if topics else self.topic_id
                elif answer.error_code in (
                    ErrorCode.UNKNOWN_MEMBER_ID,
                    ErrorCode.FENCED_MEMBER_EPOCH,
                    ErrorCode.GROUP_ID_NOT_FOUND,
                ):
                    names, epoch, self.assigned = [TOPIC], 0, []
                else:
                    self.delivery.errors["heartbeat", ErrorCode(answer.error_code).name] += 1
                    connection.close()
                    connection = None
            except (OSError, TimeoutError, EOFError):
                connection = None
            await asyncio.sleep(0.5)

    async def find_coordinator(self):
        broker = self.rng.choice(list(self.addresses))
        first = await Connection.open(self.addresses[broker])
        find = messages.FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP])
        try:
            (found,) = (await first.ask(find, 6)).coordinators
        finally:
            first.close()
        if found.error_code:
            raise TimeoutError
        return await Connection.open(self.addresses[found.node_id])

    def led_by(self, broker):
        """Return which of the assigned partitions the broker leads."""
        topic = self.chaos.kafka.nodes.controller.image.topics[TOPIC]
        return [number for number in self.assigned if topic.partitions[number].leader == broker]

    async def consume_from(self, broker):
        while True:
            connection = None
            try:
                if self.led_by(broker):
                    connection = await Connection.open(self.addresses[broker])
                    await self.hold_session(broker, connection)
            except (OSError, TimeoutError, EOFError):
                pass
            finally:
                self.delivery.let_go((self.member_id, broker))
                if connection is not None:
                    connection.close()
            await asyncio.sleep(0.2)

    async def hold_session(self, broker, connection):
        """Fetch and acknowledge, for as long as the broker leads and answers."""
        session, asked = 0, []
        loop = asyncio.get_running_loop()
        while numbers := self.led_by(broker):
            request = messages.ShareFetchRequest
            fetch = request(
                GROUP,
                self.member_id,
                session,
                max_wait_ms=500,
                min_bytes=1,
                max_bytes=1_000_000,
                max_records=self.rng.choice((1, 5, 500)),
                batch_size=500,
                topics=[
                    request.FetchTopic(self.topic_id, [request.FetchPartition(number)])
                    for number in numbers
                    if number not in asked
                ],
                forgotten_topics_data=[
                    request.ForgottenTopic(self.topic_id, [number]) for number in asked if number not in numbers
                ],
            )
            asked_s = loop.time()
            answer = await connection.ask(fetch, 2)
            if answer.error_code:
                self.delivery.errors["fetch", ErrorCode(answer.error_code).name] += 1
                return
            session, asked = session + 1, numbers
            given = {}
            for topic in answer.responses:
                for partition in topic.partitions:
                    if partition.error_code:
                        code = ErrorCode(partition.error_code).name
                        self.delivery.errors["fetch of partition", code] += 1
                        self.delivery.let_go(number=partition.partition_index)
                        return
                    number, ranges = partition.partition_index, partition.acquired_records
                    who = self.member_id, broker
                    self.delivery.acquired(who, broker, number, ranges, asked_s)
                    if ranges:
                        given[number] = ranges
            if given:
                if not self.delivery.faults_over:
                    await asyncio.sleep(self.rng.choice(WORK_S))
                if self.rng.random() < 0.95:
                    self.delivery.let_go((self.member_id, broker))
                    await self.acknowledge(connection, session, given)
                    session += 1

    async def acknowledge(self, connection, session, given):
        request = messages.ShareAcknowledgeRequest
        topic = request.AcknowledgeTopic(self.topic_id, [])
        final, rejected = {}, set()
        for number, ranges in given.items():
            batches = [
                request.AcknowledgementBatch(
                    one.first_offset,
                    one.last_offset,
                    [self.draw_kind(offset) for offset in range(one.first_offset, one.last_offset + 1)],
                )
                for one in ranges
            ]
            topic.partitions.append(request.AcknowledgePartition(number, batches))
            final[number] = [
                (number, offset)
                for batch in batches
                for offset, kind in enumerate(batch.acknowledge_types, batch.first_offset)
                if kind in FINAL
            ]
            rejected |= {
                (number, offset)
                for batch in batches
                for offset, kind in enumerate(batch.acknowledge_types, batch.first_offset)
                if kind == AcknowledgeType.REJECT
            }
        for records in final.values():
            self.delivery.doubtful.update(records)  # this worker may not live until the answer
        answer = await connection.ask(request(GROUP, self.member_id, session, topics=[topic]), 2)
        if answer.error_code:
            self.delivery.errors["acknowledge", ErrorCode(answer.error_code).name] += 1
            raise TimeoutError
        now_s = asyncio.get_running_loop().time()
        for each in answer.responses:
            for partition in each.partitions:
                if partition.error_code:
                    code = ErrorCode(partition.error_code).name
                    self.delivery.errors["acknowledge of partition", code] += 1
                    self.delivery.let_go(number=partition.partition_index)
                    continue
                for record in final[partition.partition_index]:
                    self.delivery.settled_s.setdefault(record, now_s)
                    if record in rejected:
                        self.delivery.rejected.add(record)

    def draw_kind(self, offset):
        if offset % REJECTED_ONE_IN == 0:
            return AcknowledgeType.REJECT
        if self.delivery.faults_over:
            return AcknowledgeType.ACCEPT
        return self.rng.choices((AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE), (7, 3))[0]


@contextmanager
def noting(delivery):
    """Note what members cannot see: last deliveries that were lost."""
    write_state = ShareShard.write_state

    def noting_write(shard, key, written):
        result = write_state(shard, key, written)
        for first, last, delivery_state, count in written.state_batches:
            if delivery_state == RecordState.ARCHIVED and count == LIMIT:
                delivery.given_up.update((key.partition, each) for each in range(first, last + 1))
        return result

    ShareShard.write_state = noting_write
    try:
        yield
    finally:
        ShareShard.write_state = write_state


async def place_orders(chaos, placed):
    """Produce for as long as there are faults, and note what was acknowledged."""
    count = 0
    async with AIOKafkaProducer(bootstrap_servers=chaos.kafka.bootstrap_servers, acks="all", **PRODUCER) as producer:
        while True:
            try:
                sent = await producer.send_and_wait(TOPIC, b"order", partition=count % PARTITIONS)
                placed.add((sent.partition, sent.offset))
            except KafkaError:
                pass
            count += 1
            await asyncio.sleep(0.2)


async def move_share_coordinator(chaos, rng):
    """Let another broker coordinate the states now and then."""
    while True:
        await asyncio.sleep(rng.uniform(1, 8))
        topic = chaos.kafka.nodes.controller.image.topics.get(SHARE_GROUP_STATE_TOPIC)
        if topic is None:
            continue
        others = [one for one in topic.partitions[0].isr if one != topic.partitions[0].leader]
        if others:
            try:
                await chaos.kafka.transfer_leadership(SHARE_GROUP_STATE_TOPIC, 0, rng.choice(others))
            except WrongStateError:
                continue


DEAD_LETTERS = "dlq.orders"
QUEUE = {"errors.deadletterqueue.topic.name": DEAD_LETTERS}
ENABLED = {"errors.deadletterqueue.group.enable": "true"}


@contextmanager
def noting_lost_letters(lost):
    """Note the records whose letters brokers give up, as Kafka's do after five attempts."""
    give_up = DeadLetterQueue._give_up

    def noting_give_up(queue, pending, reason):
        letters = pending.letters
        lost.update((letters.source.partition, each) for each in range(pending.next_offset, letters.last_offset + 1))
        give_up(queue, pending, reason)

    DeadLetterQueue._give_up = noting_give_up
    try:
        yield
    finally:
        DeadLetterQueue._give_up = give_up


async def rejected_orders_have_letters(chaos):
    """Every order whose rejection was answered has a dead letter, or a broker says that it has given it up."""
    await chaos.kafka.create_topic(DEAD_LETTERS, partitions=1, replication_factor=3, configs=ENABLED)
    lost = set()
    with noting_lost_letters(lost):
        delivery = await orders_are_shared(chaos, QUEUE)
    written = set()
    for letter in chaos.kafka.records(DEAD_LETTERS):
        headers = dict(letter.headers)
        written.add((int(headers["__dlq.errors.partition"]), int(headers["__dlq.errors.offset"])))
    missing = delivery.rejected - written - lost
    if missing:
        raise InvariantError("no rejected record is lost", f"{sorted(missing)} have no dead letter")
    chaos.note("letters", f"{len(delivery.rejected)} rejected, {len(written)} letters, {len(lost)} given up")


async def orders_are_shared(chaos, group_configs=MappingProxyType({})):
    """Everything that is placed is accepted, rejected or given up; nothing that is settled comes again."""
    kafka = chaos.kafka
    await kafka.create_topic(TOPIC, partitions=PARTITIONS, replication_factor=3)
    await kafka.set_group_configs(GROUP, {"share.auto.offset.reset": "earliest", **group_configs})
    delivery, placed = Delivery(chaos), set()
    rng = asyncio.get_running_loop().stream("share consumers")
    with noting(delivery):
        besides = [
            asyncio.create_task(place_orders(chaos, placed)),
            asyncio.create_task(move_share_coordinator(chaos, rng)),
        ]
        chaos.start(lambda me: Member(me, delivery, rng).run(), count=2)
        await chaos.faults_over()
        for task in besides:
            task.cancel()
        delivery.faults_over = True

        def is_over():
            if not kafka.groups():
                return False  # another broker begins to coordinate it
            partitions = kafka.group(GROUP).share_partitions
            return (
                all(map(delivery.is_done, placed))
                and len(partitions) == PARTITIONS
                and all(one.lag == 0 for one in partitions)
            )

        await chaos.eventually(
            is_over,
            "every order is settled",
            within_s=90,
            text=lambda: f"{placed - set(filter(delivery.is_done, placed))}, {kafka.groups()}",
        )
    chaos.note(
        "group",
        f"{len(placed)} placed, {len(delivery.settled_s)} settled, {delivery.deliveries.total()} deliveries, "
        f"{len(delivery.given_up)} for the last time, {dict(delivery.errors)}",
    )
    return delivery
