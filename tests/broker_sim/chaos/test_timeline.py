"""The time line: what is folded, what is left out with advice, and what of the application's logs is in it."""

import asyncio
import logging
import sys
from importlib.metadata import version

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from broker_sim.chaos import Schedule, run_chaos
from broker_sim.chaos.timeline import Moment, timeline_text

CALM = Schedule(1, workers=1, duration_ms=0)


def lines_of(moments, **options):
    """Return the lines without time and head."""
    return [line[11:] for line in timeline_text(moments, **options).splitlines()[1:]]


def test_lines_that_alternate_are_folded():
    moments = [Moment(each, "client", text) for each in range(7) for text in ("asks", "is refused")]
    assert lines_of([*moments, Moment(9, "client", "ends")]) == [
        "client  asks",
        "client  is refused  (the last 2 lines 7 times)",
        "client  ends",
    ]


def test_lines_that_only_look_alike_are_not_folded():
    moments = [Moment(each, "client", f"sends {each}") for each in range(5)]
    assert len(lines_of(moments)) == 5


def test_error_is_never_left_out_and_the_advice_stands_in_the_gaps():
    moments = [Moment(each, "worker-1", f"step {each}") for each in range(40)]
    moments[20] = Moment(20, "worker-1", "the fetcher died", "TypeError: no broker")
    shown = lines_of(moments, most=10, advice="--full shows them")
    assert len(shown) == 13
    assert shown[5:8] == [
        "... 15 more lines: --full shows them ...",
        "worker-1  the fetcher died [TypeError: no broker]",
        "... 14 more lines: --full shows them ...",
    ]
    assert len(lines_of(moments, most=None)) == 40


def test_only_first_of_equal_errors_is_shown_in_the_middle():
    refused = Moment(0, "worker-2", "cannot connect", "ConnectionRefusedError: port 9092")
    moments = [each for n in range(20) for each in (refused._replace(at_s=n), Moment(n, "test", f"step {n}"))]
    shown = lines_of(moments, most=6)
    assert len(shown) == 7
    assert shown[3] == "... 34 more lines ..."


def test_single_line_that_is_left_out_is_one_line():
    assert lines_of([Moment(at_s, "test", f"step {at_s}") for at_s in range(7)], most=6)[3] == "... 1 more line ..."


def observed_moments(test):
    """Return who did what, and with which error, in an observed run."""
    return [moment[1:] for moment in run_chaos(test, CALM, observe=True).moments]


async def log(chaos):
    async def main():
        logger = logging.getLogger("shop.orders")
        logger.setLevel(logging.INFO)
        logger.debug("is not shown")
        logger.info("order %d is taken", 7)
        logger.error("order is refused", exc_info=TypeError("no price"))
        logger.error("a task died: %r", ValueError("no stock"))
        logger.error("a commit fails", exc_info=TimeoutError("TimeoutError: in vain"))

    chaos.start(main)
    logging.getLogger("shop").warning("the test waits")
    await chaos.faults_over()


def test_logs_of_the_application_are_in_it_with_who_and_the_error():
    assert [each for each in observed_moments(log) if each[0] in {"worker-1", "test"}] == [
        ("test", "the test waits", ""),
        ("worker-1", "order 7 is taken", ""),
        ("worker-1", "order is refused", "TypeError: no price"),
        ("worker-1", "a task died: ValueError('no stock')", "ValueError: no stock"),
        ("worker-1", "a commit fails", "TimeoutError: in vain"),
        ("worker-1", "is done", ""),
    ]


async def log_apart(chaos):
    logger = logging.getLogger("kitchen")
    logger.propagate = False
    logger.setLevel(logging.INFO)
    handler = logging.StreamHandler(sys.stdout)
    logger.addHandler(handler)
    logging.getLogger("kitchen.stove").info("soup is cooked")
    logger.removeHandler(handler)
    await chaos.faults_over()


def test_logs_that_do_not_reach_the_root_logger_are_in_it_and_are_not_printed(capsys):
    assert ("test", "soup is cooked", "") in observed_moments(log_apart)
    assert capsys.readouterr().out == ""


def test_clients_of_the_test_itself_are_in_it():
    async def send(chaos):
        await chaos.kafka.create_topic("orders", partitions=1, replication_factor=1)
        async with AIOKafkaProducer(bootstrap_servers=chaos.kafka.bootstrap_servers) as producer:
            leader = chaos.kafka.leader("orders", 0)
            chaos.kafka.kill(leader)
            sent = await producer.send("orders", b"1")
            await chaos.kafka.start(leader)
            await sent

    assert "test" in {who for who, _, _ in observed_moments(send)}


def test_refused_requests_have_the_worker_that_sent_them():
    async def work(chaos, me):
        options = {"bootstrap_servers": chaos.kafka.bootstrap_servers, "group_id": "shop"}
        async with AIOKafkaConsumer("orders", **options):
            await asyncio.sleep(1 if me is None else 0.1)

    async def test(chaos):
        await chaos.kafka.create_topic("orders", partitions=1, replication_factor=1)
        chaos.start(lambda me: work(chaos, me), count=2)
        await work(chaos, None)
        await chaos.faults_over()

    joins = [who for who, what, _ in observed_moments(test) if what.startswith("JoinGroup")]
    assert {*joins} == {"worker-1", "worker-2", "aiokafka-" + version("aiokafka")}


def test_leaders_that_change_together_are_one_line():
    async def kill_leaders(chaos):
        for topic in ("orders", "bills"):
            await chaos.kafka.create_topic(topic, partitions=6, replication_factor=3)
        chaos.kafka.kill(2)
        await chaos.eventually(lambda: chaos.kafka.isr("orders", 0) == [1, 3], "the ISR shrinks")

    changes = [what for who, what, _ in observed_moments(kill_leaders) if who == "cluster"]
    assert len(changes) == 1
    assert "bills-0, " in changes[0]
    assert "; " in changes[0]
