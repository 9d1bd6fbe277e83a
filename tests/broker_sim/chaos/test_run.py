"""Runs of tests with workers: what fails them, what does not, and that they repeat."""

import asyncio
import gc
import logging
from dataclasses import replace

import pytest
from aiokafka import AIOKafkaProducer

from broker_sim.chaos import InvariantError, Outcome, Schedule, run_chaos
from broker_sim.chaos.faults.shrink import shrink
from broker_sim.chaos.timeline import Moment, timeline_text

from .applications import commit_first, commit_last

CRASH = Schedule.parse("seed=1 duration_ms=8000\n4000 crash worker-1 for=1000")
CALM = Schedule(1, duration_ms=1_000)


def whats(outcome, who):
    return [moment.what for moment in outcome.moments if moment.who == who]


def test_commit_before_the_work_loses_an_order_when_a_worker_crashes():
    outcome = run_chaos(commit_first, CRASH)
    assert outcome.invariant == "no order is lost"
    assert str(outcome.error).startswith("no order is lost: never done: [")
    assert run_chaos(commit_last, CRASH).invariant is None


@pytest.mark.parametrize("order", ["fifo", "seeded"])
def test_a_run_repeats_and_observing_it_changes_nothing(order):
    schedule = replace(CRASH, latency_ms=5, order=order)
    once = run_chaos(commit_first, schedule)
    observed = run_chaos(commit_first, schedule, observe=True)
    assert (once.digest, once.invariant) == (observed.digest, observed.invariant)
    assert whats(observed, "FAULT") == whats(once, "FAULT")
    shown = whats(observed, "worker-1")
    assert any("Setting newly assigned partitions {orders-" in what for what in shown)
    assert any("REBALANCE_IN_PROGRESS" in moment.what for moment in observed.moments)


def test_other_seeds_take_other_courses():
    schedules = [replace(CRASH, seed=seed, latency_ms=5) for seed in (1, 2)]
    one, other = (run_chaos(commit_last, schedule) for schedule in schedules)
    assert one.digest != other.digest


def test_errors_of_the_environment_restart_a_worker_and_others_fail_the_test():
    class KafkaError(Exception):
        pass

    errors = [KafkaError("gone"), OSError("refused"), TimeoutError(), ValueError("a bug")]

    async def worker():
        raise errors.pop(0)

    async def test(chaos):
        chaos.start(worker)
        await asyncio.sleep(10)

    outcome = run_chaos(test, CALM)
    assert outcome.invariant == "ValueError"
    assert whats(outcome, "worker-1") == [
        "exits: KafkaError: gone",
        "starts again",
        "exits: OSError: refused",
        "starts again",
        "exits: TimeoutError",
        "starts again",
        "fails: ValueError: a bug",
    ]


@pytest.mark.parametrize(
    ("errors", "invariant"), [([OSError(), TimeoutError()], None), ([OSError(), ValueError()], "ValueError")]
)
def test_group_of_errors_is_judged_by_all_of_them(errors, invariant):
    async def worker(me):
        if me.starts == 1:
            raise ExceptionGroup("tasks failed", errors)

    async def test(chaos):
        chaos.start(worker)
        await asyncio.sleep(5)

    assert run_chaos(test, CALM).invariant == invariant


@pytest.mark.parametrize("at", ["worker", "test"])
def test_claim_that_fails_in_a_task_group_names_the_failure(at):
    async def fail():
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(asyncio.sleep(60))
            async with asyncio.TaskGroup() as inner:
                inner.create_task(raising())

    async def raising():
        raise InvariantError("no order is lost", "7")

    async def test(chaos):
        if at == "worker":
            chaos.start(fail)
            await asyncio.sleep(5)
        await fail()

    outcome = run_chaos(test, CALM)
    assert isinstance(outcome.error, ExceptionGroup)
    assert (outcome.invariant, outcome.text) == ("no order is lost", "no order is lost: 7")
    if at == "worker":
        assert whats(outcome, "worker-1") == ["fails: InvariantError: no order is lost: 7"]


def test_what_brokers_log_is_not_shown_beside_the_time_line(caplog):
    async def test(chaos):
        logging.getLogger("broker_sim.log").warning("log_offline")
        logging.getLogger("asyncio").warning("slow")

    assert run_chaos(test, CALM, observe=True).error is None
    assert caplog.text == ""
    logging.getLogger("broker_sim.log").warning("afterwards")
    assert "afterwards" in caplog.text


def test_worker_that_ends_by_itself_is_done():
    async def worker():
        await asyncio.sleep(0)

    async def test(chaos):
        chaos.start(worker, count=2)
        await asyncio.sleep(5)
        assert [each.starts for each in chaos.workers] == [1, 1]

    assert whats(run_chaos(test, CALM), "worker-2") == ["is done"]


def test_error_that_a_task_of_a_worker_has_left_is_judged_as_its_own():
    async def fail(error):
        raise error

    def with_left(error):
        async def worker():
            asyncio.get_running_loop().create_task(fail(error))
            await asyncio.sleep(3)

        async def test(chaos):
            chaos.start(worker)
            await asyncio.sleep(5)

        return run_chaos(test, CALM).invariant

    assert with_left(OSError()) is None
    assert with_left(ValueError()) == "ValueError"


def test_error_in_the_last_step_is_the_outcome():
    async def test(chaos):
        chaos.note("test", "ends")
        asyncio.get_running_loop().call_exception_handler({"message": "lost", "exception": ValueError("a bug")})

    outcome = run_chaos(test, CALM)
    assert (outcome.invariant, str(outcome.error)) == ("ValueError", "a bug")


def test_claim_that_the_last_step_breaks_does_not_hold():
    balance = [100]

    async def test(chaos):
        chaos.check(lambda: balance[0] >= 0, "the balance is never negative")
        await asyncio.sleep(1)
        balance[0] -= 130

    assert run_chaos(test, CALM).invariant == "the balance is never negative"


@pytest.mark.parametrize(("error", "invariant"), [(OSError("cut off"), None), (ValueError("a bug"), "ValueError")])
def test_error_of_an_abandoned_future_fails_the_run(error, invariant):
    left = []

    async def worker():
        left.append(asyncio.get_running_loop().create_future())
        left[0].set_exception(error)
        await asyncio.sleep(3)

    async def test(chaos):
        chaos.start(worker)
        await asyncio.sleep(1)
        left.clear()
        await asyncio.sleep(1)

    outcome = run_chaos(test, CALM)
    assert outcome.invariant == invariant
    assert whats(outcome, "python") == (["unhandled: OSError: cut off"] if not invariant else [])


def test_what_must_hold_at_every_moment_is_checked_at_every_moment():
    async def test(chaos):
        stock = [3]

        async def worker():
            while True:
                await asyncio.sleep(1)
                stock[0] -= 1

        chaos.check(lambda: stock[0] >= 0, "stock is never negative")
        chaos.start(worker)
        await asyncio.sleep(60)

    outcome = run_chaos(test, CALM)
    assert outcome.invariant == "stock is never negative"
    assert 4 <= outcome.virtual_s < 6


def test_plain_assertion_is_named_by_its_place():
    async def test(chaos):
        assert chaos.workers

    invariants = {run_chaos(test, replace(CALM, seed=seed)).invariant for seed in range(3)}
    (invariant,) = invariants
    assert invariant.startswith("AssertionError at test_run.py:")


def test_eventually_says_what_is_missing():
    async def test(chaos):
        await chaos.eventually(lambda: False, "it comes", within_s=5)

    outcome = run_chaos(test, CALM)
    assert str(outcome.error) == "it comes: not within 5 s"
    assert isinstance(outcome.error, InvariantError)


def test_eventually_awaits_an_async_condition():
    async def test(chaos):
        calls = 0

        async def third():
            nonlocal calls
            await asyncio.sleep(1)
            calls += 1
            return calls == 3

        await chaos.eventually(third, "it comes")
        assert calls == 3

    assert run_chaos(test, CALM).text == ""


@pytest.mark.parametrize("method", ["check", "sometimes"])
def test_condition_of_every_moment_cannot_be_async(method):
    async def test(chaos):
        async def condition():
            return False

        getattr(chaos, method)(condition, "it holds")
        await asyncio.sleep(1)

    assert "cannot be async" in run_chaos(test, CALM).text


def test_error_before_the_test_began_is_no_outcome():
    async def test(chaos):
        del chaos

    frozen = gc.get_freeze_count()
    with pytest.raises(ValueError, match="min\\.insync"):
        run_chaos(test, CALM, configs={"min.insync.replicas": "many"})
    assert gc.get_freeze_count() == frozen, "the run was not closed"


def ended(schedule, invariant, deviations=()):
    return Outcome(schedule, "", 0, (), invariant, deviations=deviations)


def test_schedule_is_shrunk_to_what_the_failure_needs():
    schedule = Schedule.parse(
        "seed=1 latency_ms=20 duration_ms=20000\n"
        "1230 pause broker-1 for=3000\n"
        "4560 crash worker-1 for=3000\n"
        "7890 cut worker-2 broker-2 for=8000 value=to\n"
        "9990 transfer broker-3 value=1"
    )
    runs = []

    def run(candidate):
        runs.append(candidate)
        kinds = {action.kind for action in candidate.actions}
        return ended(candidate, "lost" if {"crash", "cut"} <= kinds else "other" if kinds else None)

    shrunk = shrink(ended(schedule, "lost"), run)
    assert str(shrunk.schedule) == (
        "seed=1 brokers=3 workers=2 latency_ms=0 duration_ms=8000\n"
        "4000 crash worker-1 for=100\n"
        "7000 cut worker-2 brokers for=100 value=to"
    )
    assert shrunk.tries == len(runs) < 40


def test_shrinking_ends_at_its_limit():
    schedule = Schedule.parse("seed=1\n" + "\n".join(f"{at} crash worker-1 for=3000" for at in range(0, 9000, 100)))
    first = ended(schedule, "lost")
    assert shrink(first, lambda each: ended(each, "lost"), max_tries=3).tries == 3


def test_time_line_begins_before_the_first_fault_folds_and_leaves_the_middle_out():
    moments = [Moment(0.1 * each, "worker-1", f"step {each}") for each in range(100)]
    moments += [Moment(4.95, "FAULT", "crash worker-1"), *[Moment(9.95, "worker-2", "waits")] * 3]
    text = timeline_text(moments, most=20)
    lines = text.splitlines()
    assert lines[0].split() == ["time", "who", "what"]
    assert lines[1].split() == ["4.500", "worker-1", "step", "45"]
    assert lines[6].split() == ["4.950", "FAULT", "crash", "worker-1"]
    assert lines[-1].endswith("waits  (3 times)")
    assert lines[11].strip() == "... 37 more lines ..."
    assert len(lines) == 22


def test_time_line_shows_both_ends_of_a_long_name():
    name = "words-68553135-b565-4dba-9cdf-e90b538d150d-StreamThread-1-consumer"
    (_, line) = timeline_text([Moment(1, name, "joins")]).splitlines()
    assert line.split() == ["1.000", "words-68553135...read-1-consumer", "joins"]
    (_, line) = timeline_text([Moment(1, "x" * 32, "joins")]).splitlines()
    assert line.split() == ["1.000", "x" * 32, "joins"]


def test_client_that_asks_for_a_leader_without_a_pause_does_not_stop_the_time():
    """aiokafka's producer asks for metadata as fast as it is answered while there is no leader."""

    async def test(chaos):
        servers = chaos.kafka.bootstrap_servers
        await chaos.kafka.create_topic("orders", partitions=1, replication_factor=1)
        async with AIOKafkaProducer(bootstrap_servers=servers) as producer:
            await producer.send_and_wait("orders", b"first")
            leader = chaos.kafka.leader("orders", 0)
            chaos.kafka.kill(leader)
            sent = await producer.send("orders", b"second")
            await asyncio.sleep(5)
            await chaos.kafka.start(leader)
            await sent

    assert run_chaos(test, CALM).error is None
