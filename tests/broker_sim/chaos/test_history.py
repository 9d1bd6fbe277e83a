"""Histories: each judgement is broken by an application that is wrong in that way alone, and by no right one."""

import asyncio
from types import SimpleNamespace

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from broker_sim import Fault
from broker_sim.chaos import InvariantError, Schedule, run_chaos
from broker_sim.chaos.checkers import Ended, disordered, gone_back, lost, not_once, torn, twice, uncommitted
from broker_sim.chaos.history import History, read_judgement
from broker_sim.errors import ConfigError
from broker_sim.handlers.request_log import RequestStatus

CALM = Schedule(1, workers=1, duration_ms=0)
ORDERS = 6
PLACE = TopicPartition("orders", 0)


@pytest.mark.parametrize(
    ("judge", "arguments", "text"),
    [
        (lost, ([1, 2], [2, 1, 1]), ""),
        (lost, ([1, 2, 3], [2]), "lost: 1, 3"),
        (lost, (range(12), []), "lost: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more"),
        (twice, ([1, 2],), ""),
        (twice, ([b"a", b"b", b"a"],), "twice: a"),
        (disordered, ([("x", 1), ("y", 2), ("x", 3)], [2, 1, 3, 1, 3]), ""),
        (disordered, ([("x", 1), ("y", 2), ("x", 3)], [3, 2, 1]), "key x: 1 comes after 3, which was sent later"),
        (not_once, ([1, 2], [2, 1]), ""),
        (not_once, ([1, 2], [1, 1, 7]), "lost: 2; twice: 1; without an input: 7"),
        (torn, ([Ended("a", frozenset({"bills"}), frozenset({"shop"}))], "bills", "shop"), ""),
        (torn, ([Ended("a", frozenset({"bills"}), frozenset())], "bills", "shop"),
         "bills was written without offsets of shop by transactions of a"),
        (torn, ([Ended("a", frozenset({"others"}), frozenset())], "bills", "shop"), ""),
        (gone_back, ([("r", 1), ("s", 0), ("r", 1), ("r", 2)],), ""),
        (gone_back, ([(("r", b"sum"), 2), (("r", b"sum"), 1)],), "r sum goes back from 2 to 1"),
        (uncommitted, ([(("t", 0, 5), b"x")], [("t", 0, 5)]), ""),
        (uncommitted, ([(("t", 0, 6), b"x")], [("t", 0, 5)]), "t-0: x was read and is not committed"),
    ],
)  # fmt: skip
def test_verdicts(judge, arguments, text):
    assert judge(*arguments) == text


class Copy:
    """Copies orders to bills, each in a transaction with its offset; `flaw` is what is wrong with it."""

    def __init__(self, flaw):
        self.flaw = flaw
        self.done = 0

    async def test(self, chaos):
        await chaos.kafka.create_topic("orders", partitions=1, replication_factor=3)
        await chaos.kafka.create_topic("bills", partitions=1, replication_factor=3)
        self.options = {"bootstrap_servers": chaos.kafka.bootstrap_servers}
        history = chaos.history
        async with AIOKafkaProducer(**self.options) as producer:
            for order in range(ORDERS):
                await producer.send_and_wait("orders", b"%d" % order, b"customer", partition=0)
        chaos.start(lambda: self.copy(history))
        await chaos.faults_over()
        await asyncio.sleep(3)
        self.broken = [text async for text in judged(history)]

    async def copy(self, history):
        committed = {"isolation_level": "read_committed"}
        consumer = AIOKafkaConsumer(
            "orders",
            group_id="shop",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            **self.options,
            **committed,
        )
        producer = AIOKafkaProducer(transactional_id="bills", **self.options)
        async with consumer, producer:
            orders = [await consumer.getone() for _ in range(ORDERS)]
            if self.flaw == "reorders":
                orders[2:4] = orders[3], orders[2]
            for order in orders:
                if self.flaw != "loses" or order.offset != 3:
                    await self.bill(order, producer, history)
            if self.flaw == "goes back":
                await consumer.commit({PLACE: 2})
            history.saw("sum", 5)
            history.saw("sum", 4 if self.flaw == "reads stale sums" else 5)
            await self.read_bills(history)

    async def bill(self, order, producer, history):
        async with producer.transaction():
            for _ in range(2 if self.flaw == "bills twice" and order.offset == 3 else 1):
                await producer.send_and_wait("bills", order.value, order.key, partition=0)
            self.done += 1
            if self.flaw != "commits apart":
                await producer.send_offsets_to_transaction({PLACE: self.done}, "shop")
        history.handled(order)
        if self.flaw == "handles twice" and order.offset == 3:
            history.handled(order)

    async def read_bills(self, history):
        """Read all bills, also of a transaction that is aborted then."""
        isolation = "read_uncommitted" if self.flaw == "reads too much" else "read_committed"
        producer = AIOKafkaProducer(transactional_id="others", **self.options)
        consumer = AIOKafkaConsumer("bills", auto_offset_reset="earliest", isolation_level=isolation, **self.options)
        async with producer, consumer:
            await producer.begin_transaction()
            await producer.send_and_wait("bills", b"other", partition=0)
            for _ in range(3):
                for records in (await consumer.getmany(timeout_ms=500)).values():
                    for record in records:
                        history.read(record)
            await producer.abort_transaction()


async def judged(history):
    """Yield the name of each judgement that does not hold."""
    judgements = {
        "lost": lambda: history.nothing_lost("orders", within_s=0),
        "twice": history.nothing_twice,
        "order": lambda: history.order_kept("orders", into="bills"),
        "once": lambda: history.exactly_once("orders", "bills", within_s=0),
        "together": lambda: history.exactly_once("orders", "bills", group="shop", within_s=0),
        "reads": history.reads_never_go_back,
        "commits": lambda: history.commits_never_go_back("shop"),
        "committed": history.only_committed_is_read,
    }
    for name, judge in judgements.items():
        try:
            judgement = judge()
            if judgement is not None:
                await judgement
        except InvariantError:
            yield name


@pytest.mark.parametrize(
    ("flaw", "broken"),
    [
        ("", []),
        ("loses", ["lost", "once", "together"]),
        ("handles twice", ["twice"]),
        ("reorders", ["order"]),
        ("bills twice", ["once", "together"]),
        ("commits apart", ["together"]),
        ("reads stale sums", ["reads"]),
        ("goes back", ["commits"]),
        ("reads too much", ["committed"]),
    ],
)
def test_each_judgement_is_broken_by_its_flaw_alone(flaw, broken):
    application = Copy(flaw)
    outcome = run_chaos(application.test, CALM)
    assert outcome.error is None
    assert application.broken == broken


def test_what_was_promised_and_is_not_there_is_lost():
    async def test(chaos):
        history = chaos.history
        await chaos.kafka.create_topic("orders", partitions=1, replication_factor=3)
        async with AIOKafkaProducer(bootstrap_servers=chaos.kafka.bootstrap_servers) as producer:
            await producer.send_and_wait("orders", b"kept", partition=0)
        history.sent("orders", b"promised")
        await history.nothing_lost("orders", within_s=1)

    assert run_chaos(test, CALM).text == "nothing of orders is lost: lost: promised"


def test_record_that_was_acknowledged_and_is_gone_is_lost():
    async def test(chaos):
        history = chaos.history
        await chaos.kafka.create_topic("orders", partitions=1, replication_factor=3)
        async with AIOKafkaProducer(bootstrap_servers=chaos.kafka.bootstrap_servers) as producer:
            await producer.send_and_wait("orders", b"kept", partition=0)
            await history.nothing_lost("orders", within_s=0)
            chaos.kafka.lose_power()
            await chaos.kafka.restore_power()
        await history.nothing_lost("orders", within_s=5)

    # A schedule that may lose power gives brokers disks that do.
    schedule = Schedule.parse("seed=1 duration_ms=0\n1 lose_power broker-1 for=1")
    assert run_chaos(test, schedule).text == "nothing of orders is lost: lost: kept"


def test_acknowledged_record_is_lost_although_its_offset_was_given_again():
    async def test(chaos):
        history, loop = chaos.history, asyncio.get_running_loop()
        await chaos.kafka.create_topic("orders", partitions=1, replication_factor=3)
        async with AIOKafkaProducer(bootstrap_servers=chaos.kafka.bootstrap_servers, acks=1) as producer:
            faults = loop.create_task(chaos.faults_over())
            for order in (b"in sync", b"on its way", b"on the old leader"):
                await producer.send_and_wait("orders", order, partition=0)
                await asyncio.sleep(0.5)
            await faults
            for order in (b"at its offset", b"behind it"):
                await producer.send_and_wait("orders", order, partition=0)
        await history.nothing_lost("orders", within_s=0)

    schedule = Schedule.parse("""
        seed=1 brokers=3 workers=0 latency_ms=0 duration_ms=6000
        300 cut_link leader follower for=3000
        300 cut_link leader third for=3000
        1600 stop leader for=1000
    """)
    assert run_chaos(test, schedule).text == "nothing of orders is lost: lost: on its way, on the old leader"


def answered(number, api, **fields):
    """Return a request with a response that has no error, numbered as it came."""
    topic = SimpleNamespace(name="orders", partitions=[SimpleNamespace(error_code=0, partition_index=0)])
    response = SimpleNamespace(error_code=0, topics=[topic])
    return RequestStatus(number, 0, 1, api, 0, None, "", 0, SimpleNamespace(**fields), response, 0)


def commit(number, offset, **fields):
    partitions = [SimpleNamespace(partition_index=0, committed_offset=offset)]
    topics = [SimpleNamespace(name="orders", partitions=partitions)]
    api = "TxnOffsetCommit" if fields else "OffsetCommit"
    return answered(number, api, group_id="shop", topics=topics, **fields)


def commit_in_transaction(number, offset, epoch):
    return commit(number, offset, producer_id=7, producer_epoch=epoch)


def end(number, epoch, committed=True):
    fields = {"transactional_id": "bills", "producer_id": 7, "producer_epoch": epoch, "committed": committed}
    return answered(number, "EndTxn", **fields)


@pytest.mark.parametrize(
    ("requests", "goes_back"),
    [
        ([commit(1, 5), commit(2, 4)], True),
        pytest.param([commit(2, 5), commit(1, 4)], False, id="the former coordinator sends its response late"),
        pytest.param([commit(2, 4), commit(1, 5)], True, id="the later commit is answered first"),
        pytest.param([commit_in_transaction(1, 5, 0), end(2, 0), commit_in_transaction(3, 4, 1), end(4, 1)], True,
                     id="in a later transaction"),
        pytest.param([commit_in_transaction(1, 5, 0), end(2, 0, committed=False), commit(3, 4)], False, id="aborted"),
        pytest.param([commit_in_transaction(1, 6, 0), commit_in_transaction(2, 5, 1), end(3, 1)], False,
                     id="of a fenced producer"),
        pytest.param([commit_in_transaction(2, 5, 0), commit_in_transaction(3, 6, 0), commit_in_transaction(1, 5, 0),
                      end(4, 0)], False, id="a part answered late"),
        pytest.param([commit_in_transaction(2, 5, 0), end(3, 0), commit_in_transaction(4, 6, 0),
                      commit_in_transaction(1, 5, 0), end(5, 0)], False, id="a part answered in the next transaction"),
        pytest.param([commit_in_transaction(1, 4, 0), commit_in_transaction(3, 5, 0), end(2, 0), commit(4, 4)], False,
                     id="an end answered late leaves the next transaction open"),
        pytest.param([commit_in_transaction(1, 5, 0), commit(2, 6), end(3, 0)], True,
                     id="a transaction that ends later"),
    ],
)  # fmt: skip
def test_commits_go_back_in_the_order_of_requests(requests, goes_back):
    history = History(None)
    for request in requests:
        history.take(request)
    if goes_back:
        with pytest.raises(InvariantError, match="offsets of shop never go back"):
            history.commits_never_go_back("shop")
    else:
        history.commits_never_go_back("shop")


def test_offsets_of_a_producer_that_died_do_not_count_for_its_successor():
    async def test(chaos):
        kafka, history = chaos.kafka, chaos.history
        for topic in ("orders", "bills"):
            await kafka.create_topic(topic, partitions=1, replication_factor=3)
        await kafka.produce("orders", b"0")
        options = {"bootstrap_servers": kafka.bootstrap_servers, "transactional_id": "bills"}
        async with AIOKafkaProducer(**options) as dead:
            await dead.begin_transaction()
            await dead.send_offsets_to_transaction({PLACE: 1}, "shop")
            async with AIOKafkaProducer(**options) as successor, successor.transaction():
                await successor.send_and_wait("bills", b"0", partition=0)
        await history.exactly_once("orders", "bills", group="shop", within_s=0)

    assert "bills was written without offsets of shop" in run_chaos(test, CALM).text


def test_commit_that_was_held_counts_when_it_is_released():
    async def test(chaos):
        kafka, history = chaos.kafka, chaos.history
        await kafka.create_topic("orders", partitions=1, replication_factor=3)
        options = {"bootstrap_servers": kafka.bootstrap_servers, "group_id": "shop", "enable_auto_commit": False}
        async with AIOKafkaConsumer(**options) as one, AIOKafkaConsumer(**options) as other:
            for consumer in (one, other):
                consumer.assign([PLACE])
            held = kafka.inject(Fault(api="OffsetCommit", hold=True, count=1))
            late = asyncio.get_running_loop().create_task(one.commit({PLACE: 2}))
            await asyncio.sleep(1)
            await other.commit({PLACE: 6})
            held.release()
            await late
        history.commits_never_go_back("shop")

    assert "goes back from 6 to 2" in run_chaos(test, CALM).text


async def judge_late(chaos):
    async def main():
        await asyncio.sleep(1)

    chaos.start(main)
    return getattr(chaos, "his" + "tory")


def test_history_read_after_workers_start_raises():
    assert "read chaos.history before chaos.start" in run_chaos(judge_late, CALM).text


@pytest.mark.parametrize("text", ["lost", "lost=", "once=orders", "back=a:b", "sum=orders"])
def test_invalid_judgement_is_refused(text):
    with pytest.raises(ConfigError, match="unknown judgement"):
        read_judgement(text)
