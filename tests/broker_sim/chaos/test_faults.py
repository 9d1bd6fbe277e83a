"""What each kind of fault does to workers and brokers, and that it is undone."""

import asyncio
import time
from itertools import pairwise

import pytest

from broker_sim.chaos import Schedule, ScheduleError, run_chaos
from broker_sim.chaos.faults.cluster_faults import request_fault
from broker_sim.chaos.faults.kinds import KINDS, ON_REQUESTS
from broker_sim.errors import ErrorCode
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol.records import build_batch
from broker_sim.runtime.links import CONTROLLER_ID, LinkFault

from .applications import commit_last


def play(test, *actions, duration_ms=6_000, observe=False):
    """Run a test under some actions; raise what it raised."""
    head = f"seed=1 duration_ms={duration_ms}"
    outcome = run_chaos(test, Schedule.parse("\n".join((head, *actions))), observe=observe)
    if outcome.error is not None:
        raise outcome.error
    return outcome


def seconds_of(work, *actions):
    """Return when each second of a worker's life has passed, counted from the first fault's time 0."""
    seen = []

    async def worker(me):
        while True:
            await asyncio.sleep(1)
            work(me)
            seen.append(asyncio.get_running_loop().time())

    async def test(chaos):
        began = asyncio.get_running_loop().time()
        chaos.start(worker)
        await chaos.faults_over()
        seen[:] = [round(each - began, 3) for each in seen]

    play(test, *actions)
    return seen


def test_crashed_worker_starts_again_when_the_fault_is_over():
    assert seconds_of(lambda _: None, "1500 crash worker-1 for=2000") == [1, 4.5, 5.5]


@pytest.mark.parametrize("action", ["100 roll brokers", "100 deploy workers value=rolling", "100 kill broker-1 for=50"])
def test_test_that_fails_during_a_restart_has_an_outcome(action):
    async def test(chaos):
        chaos.start(asyncio.Event().wait, count=2)
        async with asyncio.timeout(0.16):
            await chaos.faults_over()

    outcome = run_chaos(test, Schedule.parse(f"seed=1 duration_ms=6000\n{action}"))
    assert isinstance(outcome.error, TimeoutError)


def test_slow_start_takes_its_time_as_long_as_the_fault_lasts():
    once = seconds_of(lambda _: None, "1500 slow_start worker-1 for=3000 value=2")
    assert once == [1, 4.5, 5.5]
    fault = "100 slow_start worker-1 for=5000 value=1"
    outage = "2500 fail worker-1 for=1000"
    # It starts at 1.1 s, exits at 3.1 s, and starts at 5.1 s, a second later than otherwise.
    assert seconds_of(lambda me: me.depend(), fault, outage) == [2.1]


def test_frozen_worker_makes_up_for_its_timer():
    assert seconds_of(lambda _: None, "1500 freeze worker-1 for=2000") == [1, 3.5, 4.5, 5.5]


def test_what_a_worker_depends_on_fails_and_its_supervisor_starts_it_again():
    seen = seconds_of(lambda me: me.depend("payments"), "1500 fail worker-1 for=1000")
    assert seen == [1, 4, 5]


def test_wall_clock_of_a_worker_is_off():
    times = []
    seconds_of(lambda _: times.append(round(time.time())), "1500 clock worker-1 for=2000 value=3600")
    steps = [later - earlier for earlier, later in pairwise(times)]
    assert steps == [3_601, 1, -3_599, 1]


@pytest.mark.parametrize(
    ("fault", "answered"),
    [
        *[
            (f"{fault} value={way}", answered)
            for way in ("both", "to", "from")
            for fault, answered in (
                ("cut worker-1 brokers", [1, 3.5, 3.5, 4, 5]),
                ("cut worker-1 broker-2", [1, 2, 3, 4, 5]),
                ("cut worker-1 broker-1", [1, 3.5, 3.5, 4, 5]),
            )
        ],
        ("unreachable broker-1", [1, 3.5, 3.5, 4, 5]),
        ("unreachable broker-2", [1, 2, 3, 4, 5]),
        ("slow_disk broker-1 value=1000", [1, 2.5, 3.5, 4, 5]),
    ],
)
def test_nothing_passes_between_worker_and_broker(fault, answered):
    seen = []

    async def worker(me, chaos):
        loop = asyncio.get_running_loop()
        host, port = chaos.kafka.address(1)
        reader, writer = await asyncio.open_connection(host, port)
        for second in range(1, 6):
            await asyncio.sleep(max(0, began + second - loop.time()))
            writer.write(bytes([0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, second, 255, 255]))  # ApiVersions
            await reader.readexactly(int.from_bytes(await reader.readexactly(4)))
            seen.append(round(loop.time() - began, 2))  # a message takes half a ms
        writer.close()

    async def test(chaos):
        nonlocal began
        began = asyncio.get_running_loop().time()
        chaos.start(lambda me: worker(me, chaos))
        await chaos.faults_over()

    began = 0
    play(test, f"1500 {fault} for=2000")
    assert seen == answered


def states(*actions, look, every_s=0.5):
    """Return what `look(chaos)` gives at each half second, or as often as that."""
    seen = []

    async def test(chaos):
        await chaos.kafka.create_topic("orders", partitions=1, replication_factor=3)
        await chaos.kafka.wait_until_in_sync()

        async def watch():
            while True:
                await asyncio.sleep(every_s)
                seen.append(look(chaos))

        watching = asyncio.create_task(watch())
        await chaos.faults_over()
        watching.cancel()

    play(test, *actions)
    return seen


@pytest.mark.parametrize(("kind", "state"), [("pause", "paused"), ("kill", "dead"), ("stop", "dead")])
def test_broker_is_away_for_as_long_as_the_action_lasts(kind, state):
    seen = states(f"1200 {kind} broker-1 for=2000", look=lambda chaos: chaos.kafka.nodes.node(1).state.value)
    assert seen[1] == "running"
    assert seen[4] == state
    assert seen[-1] == "running"


def test_roll_restarts_one_broker_after_the_other():
    seen = states(
        "500 roll brokers",
        look=lambda chaos: (chaos.kafka.nodes.is_in_sync, [node.process for node in chaos.kafka.nodes.nodes.values()]),
        every_s=0.01,
    )
    ends = []
    for broker in range(3):
        processes = [found[broker] for _, found in seen]
        left = next(place for place, found in enumerate(processes) if found is not processes[0])
        back = next(place for place, found in enumerate(processes) if place >= left and found)
        assert all(found is processes[back] for found in processes[back:])
        ends.append((left, back))
    for (_, back), (left, _) in pairwise(ends):
        assert any(is_in_sync for is_in_sync, _ in seen[back:left])


def test_broker_whose_disk_is_full_refuses_records_and_halts_until_there_is_room():
    def look(chaos):
        faults = [str(each.fault.error) for each in chaos.kafka.nodes.faults.injected]
        return faults, chaos.kafka.nodes.node(2).state.value

    seen = states("1010 full_disk broker-2 for=2000", look=look, every_s=0.05)
    assert seen[20] == ([str(ErrorCode.KAFKA_STORAGE_ERROR)], "running")
    assert seen[30][1] == "dead"
    assert seen[-1] == ([], "running")


def test_wall_clock_of_a_broker_is_off():
    def look(chaos):
        clock = chaos.kafka.nodes.node(1).clock
        return clock.wall_clock_ms() - chaos.kafka.nodes.node(2).clock.wall_clock_ms()

    seen = states("1200 shift_clock broker-1 for=2000 value=-2000", look=look)
    assert (seen[1], seen[4], seen[-1]) == (0, -2_000, 0)


def test_member_that_is_removed_from_its_group_joins_again():
    schedule = Schedule.parse("seed=1 duration_ms=9000\n5000 rebalance brokers value=1")
    outcome = run_chaos(commit_last, schedule, observe=True)
    assert outcome.error is None
    told = [moment.what for moment in outcome.moments if moment.at_s > 5]
    assert any(text.startswith("OffsetCommit to broker") for text in told)
    assert any(text.startswith("Setting newly assigned") for text in told)


def test_isolated_broker_leaves_the_isr():
    seen = states("500 isolate broker-3 for=5000", look=lambda chaos: len(chaos.kafka.isr("orders", 0)))
    assert seen[0] == 3
    assert 2 in seen


@pytest.mark.parametrize(
    ("fault", "drop", "delay_ms"),
    [
        ("cut_link broker-1 controller for=2000", True, 0),
        ("slow_link broker-1 controller for=2000 value=40", False, 40),
    ],
)
def test_fault_of_a_link_goes_one_way_only(fault, drop, delay_ms):
    seen = states(f"1200 {fault}", look=lambda chaos: dict(chaos.kafka.nodes.links.faults))
    there = {(1, CONTROLLER_ID): LinkFault(drop=drop, delay_ms=delay_ms)}
    assert (seen[1], seen[4], seen[-1]) == ({}, there, {})


def test_brokers_lose_their_power_together_and_what_is_not_flushed():
    lost = []

    async def test(chaos):
        await chaos.kafka.create_topic("orders", partitions=1, replication_factor=3)
        await chaos.kafka.wait_until_in_sync()
        chaos.kafka.nodes.brokers[chaos.kafka.leader("orders", 0)].append_own(
            TopicPartition("orders", 0), build_batch([b"unflushed"])
        )
        await asyncio.sleep(0.5)
        await chaos.faults_over()
        lost.extend(node.lost[-1].topic_partition for node in chaos.kafka.nodes.nodes.values())

    outcome = play(test, "100 lose_power broker-1 broker-2 broker-3 for=500", observe=True)
    assert lost == [("orders", 0)] * 3
    told = [moment.what for moment in outcome.moments if "in the power failure" in moment.what]
    assert sorted(told) == [f"broker {number} lost in the power failure: orders-0 0-0" for number in (1, 2, 3)]


def test_role_is_who_has_it_when_the_fault_begins():
    leaders = []

    async def test(chaos):
        await chaos.kafka.create_topic("orders", partitions=1, replication_factor=3)
        await chaos.kafka.wait_until_in_sync()
        leaders.append(chaos.kafka.leader("orders", 0))
        await chaos.faults_over()

    outcome = play(test, "500 kill leader for=3000", "700 kill groups for=100")
    told = [moment.what for moment in outcome.moments if moment.who == "FAULT"]
    assert told[0] == f"kill broker-{leaders[0]} for 3 s"
    assert told[1].startswith("kill groups for 0.1 s: not done, __consumer_offsets-0 has no leader")


def test_leadership_moves_to_the_broker():
    seen = states(
        "1200 transfer broker-3 value=0",
        "2200 transfer broker-2 value=5",
        look=lambda chaos: chaos.kafka.leader("orders", 0),
    )
    assert (seen[3], seen[5]) == (3, 2)


@pytest.mark.parametrize(
    ("action", "error"),
    [
        ("100 error broker-1 for=1000 value=ApiVersions/INVALID_REQUEST", None),
        ("100 error broker-1 for=1000 value=ApiVersions/NOT_CONTROLLER", "ApiVersions cannot return NOT_CONTROLLER"),
        ("100 lose broker-1 for=1000 value=Prodoose", "unknown API 'Prodoose'"),
        ("100 delay broker-1 for=1000 value=Prodoose/5", "unknown API 'Prodoose'"),
        ("100 hold brokers for=1000 value=EndTxn", None),
        ("100 hold brokers for=1000 value=EndTx", "unknown API 'EndTx'"),
        ("100 damage brokers for=1000 value=half", "damage must be crc or cut, not 'half'"),
        ("100 lose brokers for=1000 value=Produce", None),
        ("100 explode broker-1", "unknown kind 'explode'"),
        ("100 pause worker-1", "add a broker, such as broker-1"),
        ("100 crash worker", "add a worker, such as worker-1"),
        ("100 kill controller", "add a broker, such as broker-1"),
        ("100 kill broker-1 broker-2", "add a broker, such as broker-1"),
        ("100 cut_link broker-1", "add a link, such as broker-1 controller"),
        ("100 slow_disk broker-1 for=100", "add a value, such as value=20"),
        ("100 slow_disk broker-1 for=100 value=1.5", "add a value, such as value=20"),
        ("100 slow worker-1 for=100 value=fast", "add a value, such as value=50"),
        ("100 clock worker-1 for=100 value=-1.5", None),
        ("100 error brokers for=100", "add a value, such as value=Produce/NOT_LEADER_OR_FOLLOWER"),
        ("100 kill broker-1 for=100 value=9", "leave out the value"),
    ],
)
def test_actions_that_mean_nothing_are_refused(action, error):
    async def test(chaos):
        await chaos.faults_over()

    if error is None:
        play(test, action)
        return
    with pytest.raises(ScheduleError, match=error):
        play(test, action)


def test_what_does_not_fit_is_not_done():
    async def test(chaos):
        await chaos.faults_over()

    outcome = play(
        test,
        "100 kill broker-1 for=1000",
        "200 pause broker-1 for=100",
        "300 crash worker-1 for=100",
        "400 move_groups broker-2",
        "500 transfer broker-2 value=0",
        "700 rebalance brokers value=0",
        "800 roll brokers",
    )
    not_done = [moment.what for moment in outcome.moments if "not done" in moment.what]
    assert [text.partition(":")[0] for text in not_done] == [
        "pause broker-1 for 0.1 s",
        "crash worker-1 for 0.1 s",
        "move_groups broker-2",
        "transfer 0 broker-2",
        "rebalance 0 brokers",
        "roll brokers",
    ]


@pytest.mark.parametrize(("kind", "value"), [(kind, value) for kind in ON_REQUESTS for value in KINDS[kind].values])
def test_only_faults_of_requests_that_can_happen_are_drawn(kind, value):
    assert request_fault(kind, None, value).count
