"""What the checks of transactions excuse, as Kafka does it too: coordinators that load what a later one lacks."""

import pytest

from broker_sim.chaos.random_run import RunFailedError, run_schedule
from broker_sim.chaos.random_run.checks.coordinators import LostLoads
from broker_sim.chaos.random_run.schedule import Schedule

HEAD = "replication_factor=2 producers= consumers=0 transaction_version=1"
LOST = {
    "timed out by a coordinator that was killed and started twice within its session": f"""
        seed=2217930870 brokers=3 latency_ms=0 duration_ms=2000 transactional=0,1 {HEAD}
        1000 kill leader for=100
        2000 roll brokers
    """,
    "aborted by a coordinator that heard of the timeout in time, and then one that did not": """
        seed=14828108 brokers=3 latency_ms=20 duration_ms=1600 producers= consumers=0 \
            transactional=0 transaction_version=1
        940 isolate broker-2 for=50
        1270 move_transactions broker-2
        1390 move_transactions broker-3
        1510 move_transactions broker-1
        1600 move_transactions broker-2
    """,
    "written to where only a coordinator that was killed and started knows": f"""
        seed=81583164 brokers=3 latency_ms=5 duration_ms=2680 group_members=2 transactional=0,0,1 {HEAD}
        980 slow_link leader follower for=1100 value=100
        1230 move_transactions broker-2
        1520 move_transactions broker-1
        1800 move_transactions broker-3
        1860 kill transactions for=100
        2680 move_transactions broker-2
    """,
    "committed where only a coordinator that leads for a moment knows": """
        seed=540604169 brokers=3 latency_ms=5 duration_ms=2000 partitions=2 \
            replication_factor=2 min_insync_replicas=1 producers= consumers=0 transactional=0,1
        1000 move_transactions broker-1
        1000 slow_link transactions broker-3 for=1000 value=100
        1180 move_transactions broker-3
        1300 move_transactions broker-1
        1500 move_transactions broker-3
        1700 move_transactions broker-1
        1900 move_transactions broker-3
    """,
}
KEPT = """
    seed=3 brokers=3 latency_ms=0 duration_ms=2000 producers= consumers=0 transactional=0,1 transaction_version=1
    500 move_transactions broker-2
    1000 move_transactions broker-3
    1500 kill broker-3 for=100
"""


@pytest.fixture
def loads(monkeypatch):
    """Those of the runs of the test, in their order."""
    made = []

    class Kept(LostLoads):
        def __init__(self):
            super().__init__()
            self.coordinators = self._led
            made.append(self)

    monkeypatch.setattr(f"{run_schedule.__module__}.LostLoads", Kept)
    return made


def run(text):
    return run_schedule(Schedule.parse("\n".join(line.strip() for line in text.strip().splitlines())))


@pytest.mark.parametrize("text", LOST.values(), ids=LOST)
def test_transaction_of_which_a_coordinator_knew_more_than_a_later_one_may_end_as_in_kafka(text, loads, monkeypatch):
    run(text)
    assert loads[0].are_there
    monkeypatch.setattr(LostLoads, "excuse", lambda *_: False)
    with pytest.raises(RunFailedError, match=r"transactions-end|committed-offsets-stay"):
        run(text)


def test_nothing_is_lost_by_coordinators_whose_records_the_next_one_has(loads):
    assert run(KEPT).transactions_committed
    (seen,) = loads
    assert len(seen.coordinators) >= 3
    assert not seen.are_there
