"""Faults that took effect: counted by kind in each run, and a search in which none did fails with what to do."""

import asyncio

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from broker_sim.chaos import Schedule, run_chaos
from broker_sim.chaos.search import NamedTest, run_seed
from broker_sim.chaos.sightings import FaultCount, Sightings
from tests.broker_sim.chaos.applications import CLIENT, GROUP

WITHOUT_EFFECT = FaultCount(drawn=1, happened=1, effective=0)
EFFECTIVE = FaultCount(drawn=1, happened=1, effective=1)
NOT_HAPPENED = FaultCount(drawn=1, happened=0, effective=0)


def schedule(fault):
    return Schedule.parse(f"seed=1 workers=1 duration_ms=8000\n{fault}")


async def consume(chaos):
    """A member of a group, which waits for records that never come, and asks what it depends on."""

    async def main(me):
        options = {"bootstrap_servers": chaos.kafka.bootstrap_servers, **CLIENT, **GROUP}
        async with AIOKafkaConsumer("orders", **options) as orders:
            while True:
                await orders.getmany(timeout_ms=500)
                me.depend("payments")

    await chaos.kafka.create_topic("orders", partitions=1, replication_factor=3)
    chaos.start(main)
    await chaos.faults_over()


async def send_once(chaos):
    """A producer that has sent its record before the first fault, and keeps its connection."""

    async def main():
        options = {"bootstrap_servers": chaos.kafka.bootstrap_servers, "metadata_max_age_ms": 600_000, **CLIENT}
        options |= {"metadata_max_age_ms": 600_000, "acks": "all"}
        async with AIOKafkaProducer(**options) as orders:
            await orders.send_and_wait("orders", b"1", partition=0)
            await asyncio.Event().wait()

    await chaos.kafka.create_topic("orders", partitions=1, replication_factor=3)
    chaos.start(main)
    await chaos.faults_over()


async def start_nobody(chaos):
    await chaos.faults_over()


async def end_at_once(chaos):
    async def main():
        await asyncio.sleep(0.1)

    chaos.start(main)
    await chaos.faults_over()


async def forget_the_faults(chaos):
    async def main():
        await asyncio.sleep(60)

    chaos.start(main)
    await asyncio.sleep(1)


WORKERS_FAULTS = [
    "3000 crash worker-1 for=500",
    "3000 slow_start worker-1 for=500 value=2",
    "3000 freeze worker-1 for=2000",
    "3000 cut worker-1 brokers for=2000 value=both",
    "3000 slow worker-1 for=2000 value=50",
    "3000 fail worker-1 for=2000",
    "3000 clock worker-1 for=2000 value=2",
]
BROKERS_FAULTS = [
    "3000 pause groups for=2000",
    "3000 kill leader for=2000",
    "3000 stop leader for=2000",
    "3000 isolate leader for=2000",
    "3000 mute leader for=2000",
    "3000 roll leader",
    "3000 lose brokers for=2000 value=Fetch",
    "3000 error brokers for=2000 value=Heartbeat/NOT_COORDINATOR",
]


@pytest.mark.parametrize("fault", [*WORKERS_FAULTS, *BROKERS_FAULTS])
def test_fault_of_what_works_takes_effect(fault):
    kind = fault.split()[1]
    assert run_chaos(consume, schedule(fault)).faults == {kind: EFFECTIVE}


@pytest.mark.parametrize(
    "fault",
    [
        "6000 crash worker-1 for=500",
        "3000 freeze worker-1 for=2000",
        "3000 cut worker-1 brokers for=2000 value=both",
        "3000 slow worker-1 for=2000 value=50",
        "3000 fail worker-1 for=2000",
        "3000 pause leader for=2000",
        "3000 unreachable leader for=2000",
        "3000 transfer leader value=0",
        "3000 lose brokers for=2000 value=Fetch",
    ],
)
def test_fault_of_what_has_done_its_work_takes_none(fault):
    kind = fault.split()[1]
    assert run_chaos(send_once, schedule(fault)).faults == {kind: WITHOUT_EFFECT}


@pytest.mark.parametrize("test", [start_nobody, end_at_once, forget_the_faults])
def test_fault_of_a_missing_worker_does_not_happen(test):
    assert run_chaos(test, schedule("3000 freeze worker-1 for=2000")).faults == {"freeze": NOT_HAPPENED}


@pytest.mark.parametrize(
    ("test", "faults", "advice"),
    [
        ("forget_the_faults", {"crash"}, "await chaos.faults_over() in the test, after starting as many workers"),
        ("start_nobody", {"freeze"}, "await chaos.faults_over() in the test, after starting as many workers"),
        ("send_once", {"cut"}, "keep the workers busy until the last fault is over"),
    ],
)
def test_search_without_effect_fails_with_what_to_do(test, faults, advice):
    named, search = NamedTest.of(f"{__name__}:{test}", faults=faults, duration_s=2, workers=1), Sightings()
    for seed in range(2):
        outcome = run_seed(named, seed)
        assert outcome.invariant is None
        search.add(outcome.seen, outcome.faults)
    assert search.failure().startswith("no fault took effect in 2 seeds, ")
    assert advice in search.failure()


def test_summary_tells_the_faults_by_kind():
    search = Sightings()
    search.add({}, {"crash": (3, 2, 1), "pause": (1, 0, 0)})
    search.add({}, {"crash": (1, 1, 1)})
    assert search.lines() == ["faults that took effect / happened / were drawn: 2/3/5 (crash 2/3/4, pause 0/0/1)"]
    assert search.failure() is None
