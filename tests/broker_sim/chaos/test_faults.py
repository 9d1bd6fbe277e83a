"""What each kind of fault does to workers and brokers, and that it is undone."""

import asyncio
import time
from itertools import pairwise

import pytest

from broker_sim.chaos import Schedule, ScheduleError, run_chaos


def play(test, *actions, duration_ms=6_000):
    """Run a test under some actions; raise what it raised."""
    head = f"seed=1 duration_ms={duration_ms}"
    outcome = run_chaos(test, Schedule.parse("\n".join((head, *actions))))
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


def test_frozen_worker_makes_up_for_its_timer():
    assert seconds_of(lambda _: None, "1500 freeze worker-1 for=2000") == [1, 3.5, 4.5, 5.5]


def test_what_a_worker_depends_on_fails_and_its_supervisor_starts_it_again():
    seen = seconds_of(lambda me: me.depend("payments"), "1500 fail worker-1 for=1000")
    assert seen == [1, 4, 5]


def test_wall_clock_of_a_worker_is_off():
    times = []
    seconds_of(
        lambda _: times.append(round(time.time())), "1500 clock worker-1 for=2000 value=3600"
    )
    steps = [later - earlier for earlier, later in pairwise(times)]
    assert steps == [3_601, 1, -3_599, 1]


@pytest.mark.parametrize(
    ("cut", "answered"),
    [
        ("worker-1 brokers", [1, 3.5, 5]),
        ("worker-1 broker-2", [1, 2, 3, 4, 5]),
        ("worker-1 broker-1", [1, 3.5, 5]),
    ],
)
@pytest.mark.parametrize("way", ["both", "to", "from"])
def test_worker_is_cut_off_from_brokers(cut, answered, way):
    seen = []

    async def worker(me, chaos):
        loop = asyncio.get_running_loop()
        host, port = chaos.kafka.address(1)
        reader, writer = await asyncio.open_connection(host, port)
        for second in range(1, 6):
            await asyncio.sleep(max(0, began + second - loop.time()))
            writer.write(
                bytes([0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, second, 255, 255])
            )  # ApiVersions
            await reader.readexactly(int.from_bytes(await reader.readexactly(4)))
            seen.append(round(loop.time() - began, 3))
        writer.close()

    async def test(chaos):
        nonlocal began
        began = asyncio.get_running_loop().time()
        chaos.start(lambda me: worker(me, chaos))
        await chaos.faults_over()

    began = 0
    play(test, f"1500 cut {cut} for=2000 value={way}")
    assert seen[:2] == answered[:2]
    assert len(seen) == 5


def states(*actions, look):
    """Return what `look(chaos)` gives at each half second."""
    seen = []

    async def test(chaos):
        await chaos.kafka.create_topic("orders", partitions=1, replication_factor=3)
        await chaos.kafka.wait_until_in_sync()

        async def watch():
            while True:
                await asyncio.sleep(0.5)
                seen.append(look(chaos))

        watching = asyncio.create_task(watch())
        await chaos.faults_over()
        watching.cancel()

    play(test, *actions)
    return seen


@pytest.mark.parametrize(
    ("kind", "state"), [("pause", "paused"), ("kill", "dead"), ("stop", "dead")]
)
def test_broker_is_away_for_as_long_as_the_action_lasts(kind, state):
    seen = states(
        f"1200 {kind} broker-1 for=2000",
        look=lambda chaos: chaos.kafka.nodes.node(1).state.value,
    )
    assert seen[1] == "running"
    assert seen[4] == state
    assert seen[-1] == "running"


def test_isolated_broker_leaves_the_isr():
    seen = states(
        "500 isolate broker-3 for=5000", look=lambda chaos: len(chaos.kafka.isr("orders", 0))
    )
    assert seen[0] == 3
    assert 2 in seen


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
        ("100 error broker-1 for=1000 value=ApiVersions/NOT_CONTROLLER", None),
        ("100 lose brokers for=1000 value=Produce", None),
        ("100 explode broker-1", "there is no kind 'explode'"),
        ("100 pause worker-1", "say on which broker, as broker-1"),
        ("100 crash worker", "say on which worker, as worker-1"),
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
        "300 crash worker-7 for=100",
        "400 move_groups broker-2",
        "500 transfer broker-2 value=0",
        "600 isolate broker-9 for=100",
    )
    not_done = [moment.what for moment in outcome.moments if "not done" in moment.what]
    assert [text.partition(":")[0] for text in not_done] == [
        "pause broker-1 for 0.1 s",
        "crash worker-7 for 0.1 s",
        "move_groups broker-2",
        "transfer 0 broker-2",
        "isolate broker-9 for 0.1 s",
    ]
